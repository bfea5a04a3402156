/*
 * A scenario, every default filled in: what to move where and how. The same
 * object is printed in result files, sent to the ranks and read back by them.
 */
#ifndef RF_PLANNER_SCENARIO_SPEC_H
#define RF_PLANNER_SCENARIO_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json.h"
#include "planner/scenario/spec_side.h"

enum rf_mode { RF_COLOCATED, RF_DISAGGREGATED };

/* A row for each strategy: its name in capitals and as it is written, and which
 * function of strategy/strategy.h makes its operations. */
#define RF_STRATEGY_MAP(X)                                                     \
    X(SEND_RECV, send_recv, direct)                                            \
    X(BROADCAST, broadcast, replicate)                                         \
    X(ALLGATHER, allgather, replicate) /* completed inside each node */        \
    X(ALLGATHER_GLOBAL, allgather_global, replicate) /* across all replicas */ \
    X(GATHER_BROADCAST, gather_broadcast, gather)                              \
    X(HIERARCHICAL, hierarchical, replicate)

enum rf_strategy {
#define RF_STRATEGY_ENUM(capitals, name, builder) RF_##capitals,
    RF_STRATEGY_MAP(RF_STRATEGY_ENUM)
#undef RF_STRATEGY_ENUM
        RF_STRATEGIES,                /* how many there are */
    RF_STRATEGY_AUTO = RF_STRATEGIES, /* until choose_strategy.h has one */
};

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

struct rf_spec {
    char *name;
    enum rf_mode mode;
    union {
        struct {
            struct rf_side_spec train, infer;
        };
        struct rf_side_spec side[RF_SIDES]; /* the same two */
    };
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
 * by rf_mesh_rules_place() and rf_plan_build().
 */
enum rf_status rf_spec_from_json(const struct rf_jnode *node,
                                 const char *const *node_names,
                                 uint32_t n_node_names, struct rf_spec **out,
                                 struct rf_err *err) RF_MUST_CHECK;

/* The canonical name of the method in a scenario object; NULL: it names none.
 */
const char *rf_spec_method(const json_t *scenario);

/* Of one of Alpa's words for a balance, our name; NULL: it is none of them. */
const char *rf_spec_balance_meant(const char *word);

/* The whole scenario with defaults, such that rf_spec_from_json() reads it back
 * equal. A new reference. */
json_t *rf_spec_to_json(const struct rf_spec *spec,
                        const char *const *node_names);
void rf_spec_destroy(struct rf_spec *spec);

const char *rf_mode_name(enum rf_mode mode);
const char *rf_strategy_name(enum rf_strategy strategy);
const char *rf_balance_name(enum rf_balance balance);

#endif
