/*
 * A scenario, every default filled in: what to move where and how. The same
 * object is printed in result files, sent to the ranks and read back by them.
 */
#ifndef RF_PLANNER_SPEC_H
#define RF_PLANNER_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json.h"
#include "planner/model/layout_kind.h"
#include "planner/model/model.h"

enum rf_mode { RF_COLOCATED, RF_DISAGGREGATED };

enum rf_strategy {
    RF_SEND_RECV,
    RF_BROADCAST,
    RF_ALLGATHER,        /* completed inside each node */
    RF_ALLGATHER_GLOBAL, /* completed across all replicas */
    RF_GATHER_BROADCAST,
    RF_HIERARCHICAL,
    RF_STRATEGIES,                    /* how many there are */
    RF_STRATEGY_AUTO = RF_STRATEGIES, /* until choose_strategy.h has one */
};

#define RF_SIDE_SIZE_MAX 65536 /* of any one parallel size */

enum rf_balance {
    RF_BALANCE_NONE,
    RF_BALANCE_SIZE,
    RF_BALANCE_ORDER,
    RF_BALANCE_TIME, /* as `size`, by what links can send (link_weights.h) */
};

#define RF_NODE_NICS_MAX 64
#define RF_LINK_WEIGHT_MAX 1000

/* What the NICs of a node send in relation to those of other nodes. Ranks share
 * them by slot. */
struct rf_link_weight {
    uint32_t nics;
    uint32_t weight; /* of each, 1 to RF_LINK_WEIGHT_MAX */
};

/* One side of a refit. */
struct rf_side_spec {
    enum rf_layout_kind layout;
    uint32_t tp, cp, ep, etp, pp, vpp; /* ≥ 1 */
    uint32_t dp;                       /* ≥ 1 once the world is built */
    bool dp_given;
    uint32_t dp_replicate; /* copies of the weights among the dp ranks */
    uint32_t attention_dp; /* groups of tp's ranks that each have all heads */
    enum rf_dtype dtype;
    bool dtype_given;    /* otherwise each tensor keeps the model's */
    bool quantize;       /* inference: to fp8 after arrival (plan/quantize.h) */
    uint32_t *pp_layers; /* layers of each stage, n_pp_layers = pp; or NULL */
    uint32_t n_pp_layers;
    uint32_t first_stage_layers, last_stage_layers; /* 0 = even */
    uint32_t *nodes; /* indices into the cluster's nodes; NULL: any */
    uint32_t n_nodes;
    /* spec layout: mesh[0] × mesh[1] devices, one entry per tensor dimension */
    uint32_t mesh[2];
    char spec[RF_TENSOR_MAX_DIMS][4]; /* "R", "S0", "S1", "S01" */
    uint32_t n_spec;
};

struct rf_spec {
    char *name;
    enum rf_mode mode;
    struct rf_side_spec train, infer;
    char *method; /* canonical name, e.g. "host"; says where weights are, too:
                     "memory" is part of it */
    enum rf_strategy strategy;
    enum rf_balance balance;
    /* with balance time, per node of the cluster; NULL until they are chosen,
     * see choose_strategy.h */
    struct rf_link_weight *balance_links;
    uint32_t n_balance_links;
    bool serialize;
    bool separate_processes; /* colocated: trainer and engine apart */
    bool cast_at_source;     /* where a dtype change happens */
    uint32_t warmup;
    uint32_t iterations;     /* or the most of them, with ci_percent */
    uint32_t min_iterations; /* with ci_percent */
    double ci_percent; /* how near the medians are to be known; 0: any way */
    uint32_t max_s;    /* of measuring, with ci_percent; 0: no limit */
    bool yardstick;    /* is measured beside every iteration */
    uint64_t bucket_bytes; /* bound of staging memory */
    uint64_t chunk_bytes; /* forwarding granularity; 0: chosen by the planner */
    char *disk_folder;    /* method disk; NULL otherwise */
    bool disk_fsync, disk_drop_cache;
    bool ucx_gets;      /* method ucx: destinations read, else sources write */
    uint32_t timeout_s; /* of one iteration, 0: derived */
};

/*
 * Reads one scenario object without lists-as-matrix (those are expanded
 * before). Unknown keys are errors. Node names in "nodes" are looked up in
 * `node_names`. Defaults as in refit-cluster(5). Rules between keys that need
 * no model are checked here; rules that need the model or the world are checked
 * by rf_world_build() and rf_plan_build().
 */
enum rf_status rf_spec_from_json(const struct rf_jnode *node,
                                 const char *const *node_names,
                                 uint32_t n_node_names, struct rf_spec **out,
                                 struct rf_err *err) RF_MUST_CHECK;

/* Whether scenario objects may have the key. */
bool rf_spec_has_key(const char *key);

/* The canonical name of the method in a scenario object; NULL: it names none.
 */
const char *rf_spec_method(const json_t *scenario);

/* The whole scenario with defaults, such that rf_spec_from_json() reads it back
 * equal. A new reference. */
json_t *rf_spec_to_json(const struct rf_spec *spec,
                        const char *const *node_names);
void rf_spec_destroy(struct rf_spec *spec);

/* The ETP of a side that does not name one, by its layout, TP and EP. */
uint32_t rf_side_default_etp(const struct rf_side_spec *side);

/* The dtype on a side of a tensor that has `own` in the model. */
enum rf_dtype rf_side_dtype(const struct rf_side_spec *side, enum rf_dtype own);

const char *rf_mode_name(enum rf_mode mode);
const char *rf_strategy_name(enum rf_strategy strategy);
const char *rf_balance_name(enum rf_balance balance);

#endif
