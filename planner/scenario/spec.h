/*
 * A scenario with all defaults filled in: what to move, from where to where,
 * and how. Result files contain the same object, and ranks receive and parse
 * it.
 */
#ifndef RF_PLANNER_SCENARIO_SPEC_H
#define RF_PLANNER_SCENARIO_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json.h"
#include "planner/scenario/spec_side.h"
#include "planner/scenario/spec_group.h"
#include "planner/scenario/spec_load.h"
#include "planner/scenario/spec_update.h"

enum rf_mode { RF_COLOCATED, RF_DISAGGREGATED };

/* The builders that make a strategy's operations: for each,
 * strategy/strategy.h declares rf_strategy_NAME(). */
#define RF_BUILDER_MAP(X) X(direct) X(replicate) X(gather)

/* One row per strategy: its name in capitals, its name in files, and its
 * builder. */
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
        RF_STRATEGIES,                /* number of strategies */
    RF_STRATEGY_AUTO = RF_STRATEGIES, /* until choose_strategy.h picks one */
};

/* X(ID, name, differences): what travels of an update: everything, or the
 * changed elements as positions and values, or in some blocks differences. */
#define RF_ENCODING_MAP(X)                                                     \
    X(DENSE, "dense", false)                                                   \
    X(AUTO, "auto", true)                                                      \
    X(AUTO_RAW, "auto+raw", false)                                             \
    X(GAP8, "gap8", false)                                                     \
    X(IDX16, "idx16", false)                                                   \
    X(BITMAP, "bitmap", false)                                                 \
    X(RUNS, "runs", false)                                                     \
    X(AUTO_DIFF, "auto+diff", true)                                            \
    X(GAP8_DIFF, "gap8+diff", true)                                            \
    X(IDX16_DIFF, "idx16+diff", true)                                          \
    X(BITMAP_DIFF, "bitmap+diff", true)                                        \
    X(RUNS_DIFF, "runs+diff", true)                                            \
    X(GAP8_DIFF_ZSTD, "gap8+diff+zstd", true)                                  \
    X(XOR_ZSTD, "xor+zstd", true)

enum rf_encoding {
#define RF_ENCODING_ENUM(capitals, ...) RF_ENCODING_##capitals,
    RF_ENCODING_MAP(RF_ENCODING_ENUM)
#undef RF_ENCODING_ENUM
        RF_ENCODINGS
};

enum rf_balance {
    RF_BALANCE_NONE,
    RF_BALANCE_SIZE,
    RF_BALANCE_ORDER,
    RF_BALANCE_TIME, /* as `size`, by link capacity (link_weights.h) */
};

#define RF_NODE_NICS_MAX 64
#define RF_LINK_WEIGHT_MAX 1000

/* The bandwidth of a node's NICs relative to those of other nodes. Ranks share
 * the NICs by slot. */
struct rf_link_weight {
    uint32_t nics;
    uint32_t weight; /* per NIC, 1 to RF_LINK_WEIGHT_MAX */
};

struct rf_spec {
    char *name;
    enum rf_mode mode;
    union {
        struct {
            struct rf_side_spec train, infer;
        };
        struct rf_side_spec side[RF_SIDES_MAX]; /* the same two, and the pools
                                                   after the first */
    };
    uint32_t n_sides; /* 1 and the number of pools */
    char *method; /* canonical name, e.g. "host"; includes "memory", so it also
                     tells where weights are */
    enum rf_strategy strategy;
    enum rf_balance balance;
    /* with balance time, per node of the cluster; NULL until chosen, see
     * choose_strategy.h */
    struct rf_link_weight *balance_links;
    uint32_t n_balance_links;
    bool serialize;
    bool separate_processes; /* colocated: trainer and engine in separate
                                processes */
    bool cast_at_source;     /* where a dtype change happens */
    uint32_t warmup;
    uint32_t iterations;     /* the maximum, with ci_percent */
    uint32_t min_iterations; /* with ci_percent */
    double ci_percent;       /* required precision of the medians; 0: none */
    uint32_t max_s;          /* of measuring, with ci_percent; 0: no limit */
    bool yardstick;          /* measured with every iteration */
    struct rf_load_spec load;
    uint64_t bucket_bytes; /* limit of staging memory */
    uint64_t chunk_bytes; /* forwarding granularity; 0: chosen by the planner */
    struct rf_group_spec group;
    char *disk_folder; /* method disk; NULL otherwise */
    bool disk_fsync, disk_drop_cache;
    bool ucx_gets; /* method ucx: destinations read; else sources write */
    struct rf_update_spec update;
    enum rf_encoding encoding;
    uint32_t timeout_s; /* of one iteration, 0: derived */
};

/*
 * Reads one scenario object after its matrix lists have been expanded. Unknown
 * keys are errors. Node names in "nodes" are looked up in `node_names`.
 * Defaults are those of refit-cluster(5). Rules between keys that need no model
 * are checked here; rf_mesh_rules_place() and rf_plan_build() check rules that
 * need the model or the world.
 */
enum rf_status rf_spec_from_json(const struct rf_jnode *node,
                                 const char *const *node_names,
                                 uint32_t n_node_names, struct rf_spec **out,
                                 struct rf_err *err) RF_MUST_CHECK;

/* The canonical name of the method that a scenario object names; NULL if it
 * names none. */
const char *rf_spec_method(const json_t *scenario);
/* The other names of methods, from 0; NULL after the last. */
const char *rf_spec_method_alias(size_t i);

/* Our name for one of Alpa's words for a balance; NULL for other words. */
const char *rf_spec_balance_meant(const char *word);

/* The whole scenario with defaults; rf_spec_from_json() reads it back equal. A
 * new reference. */
json_t *rf_spec_to_json(const struct rf_spec *spec,
                        const char *const *node_names);
void rf_spec_destroy(struct rf_spec *spec);

/* "train"; "infer" or, of several pools, "infer[0]" and so on. */
const char *rf_spec_side_name(const struct rf_spec *spec, enum rf_side side);
/* For people: "training", "inference" or the name of one of several pools. */
const char *rf_spec_side_title(const struct rf_spec *spec, enum rf_side side);

/* Whether two sides are on the same slots. */
bool rf_spec_share_slots(const struct rf_spec *spec, enum rf_side a,
                         enum rf_side b);

/* A "quantize" of the scenario, if any pool has one. All that have one agree in
 * "at" and "overlap", at the sender in everything. */
const struct rf_quantize_spec *rf_spec_quantize(const struct rf_spec *spec);

const char *rf_strategy_name(enum rf_strategy strategy);
const char *rf_balance_name(enum rf_balance balance);
const char *rf_encoding_name(enum rf_encoding encoding);
/* Whether it sends differences, or what takes no more bits. */
bool rf_encoding_is_diff(enum rf_encoding encoding);

#endif
