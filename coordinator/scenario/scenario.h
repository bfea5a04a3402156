/*
 * One planned scenario: its specification with defaults, ranks, plan and
 * schedule. Pure: `plan`, `run`, `predict` and the ranks all start from the
 * same two JSON objects and get the same digests.
 */
#ifndef RF_COORDINATOR_SCENARIO_SCENARIO_H
#define RF_COORDINATOR_SCENARIO_SCENARIO_H

#include "coordinator/config/config.h"
#include "planner/model/model.h"
#include "planner/predict/choose_balance.h"
#include "planner/schedule/schedule.h"
#include "transport/info/method_info.h"

/* A node's share of a scenario: ranks, the slots up to its last, memory. */
struct rf_scenario_share {
    uint32_t n_ranks, n_slots;
    uint32_t first; /* of its ranks in by_node */
    uint64_t bytes;
};

struct rf_scenario {
    const struct rf_config *config; /* borrowed */
    size_t index;                   /* into config->scenarios */
    struct rf_spec *spec;
    const struct rf_method_info *method; /* named in `spec` */
    struct rf_model *own_model;          /* NULL: the file's; use plan->model */
    struct rf_world *world;
    struct rf_plan *plan;
    struct rf_schedule *schedule;
    struct rf_choice *choice; /* of strategy auto; NULL: strategy given. All
                                 else here has the strategy chosen */
    struct rf_balance_choice *balance_choice; /* the same for balance time */
    struct rf_scenario_share *shares;         /* by node */
    uint32_t *by_node;                        /* ranks, those of node 0 first */
    bool links_assumed; /* the choice assumes missing link figures */
    int64_t built_ns;   /* time it took to build */
    json_t *document;   /* with defaults, as sent to the ranks and printed */
};

/* Builds and proves the scenario, with `model` (borrowed) unless the scenario
 * has its own. Errors name the file, the scenario and the rule; RF_ERR_CONFIG
 * if the scenario cannot work. */
enum rf_status rf_scenario_build(const struct rf_config *config,
                                 const struct rf_model *model, size_t index,
                                 struct rf_scenario **out,
                                 struct rf_err *err) RF_MUST_CHECK;
void rf_scenario_destroy(struct rf_scenario *scenario); /* NULL is fine */

/* The names of its nodes; of the imaginary one if the file has none. */
const char *const *rf_scenario_node_names(const struct rf_scenario *scenario);

/* How strategy auto was resolved; NULL if the file names a strategy. A new
 * reference. */
json_t *rf_scenario_choice_json(const struct rf_scenario *scenario);
/* The same for balance time; NULL if the file names another balance, or the
 * weights. */
json_t *rf_scenario_balance_choice_json(const struct rf_scenario *scenario);

/* The encoding that has an effect with a method (NULL: the scenario's own):
 * weights that pass through staging travel whole, and encoding auto copies
 * inside nodes without comparing. */
enum rf_encoding rf_scenario_encoding(const struct rf_scenario *scenario,
                                      const struct rf_method_info *method);

/* Predicted peak memory of a rank: arenas of both sides, staging and quantised
 * parts, in host or device memory (depending on the method); on hosts also
 * RF_PLAN_PROCESS_BYTES. */
uint64_t rf_scenario_rank_bytes(const struct rf_scenario *scenario,
                                uint32_t rank);
uint64_t rf_scenario_node_bytes(const struct rf_scenario *scenario,
                                uint32_t node);
uint32_t rf_scenario_node_ranks(const struct rf_scenario *scenario,
                                uint32_t node);
/* Those of them that the scenario's "load" runs on. */
uint32_t rf_scenario_loaded_ranks(const struct rf_scenario *scenario,
                                  uint32_t node);
/* The node's ranks, ascending; rf_scenario_node_ranks() of them. */
const uint32_t *rf_scenario_ranks_of(const struct rf_scenario *scenario,
                                     uint32_t node);
uint32_t rf_scenario_node_slots(const struct rf_scenario *scenario,
                                uint32_t node);
/* Whether the rank exists and is on `node`. */
bool rf_scenario_rank_on(const struct rf_scenario *scenario, uint32_t rank,
                         uint32_t node);

/* Whether the weights live in device memory. */
bool rf_scenario_on_device(const struct rf_scenario *scenario);

/* Whether ranks convert weights in host memory, which probes measure. */
bool rf_scenario_converts(const struct rf_scenario *scenario);

/* Whether traffic between nodes uses our own TCP, as link probes do. Other
 * links are known only from their yardsticks. */
bool rf_scenario_crosses_by_tcp(const struct rf_scenario *scenario);

/* Whether ranks of the node listen for data, so that its address must be known:
 * over TCP they receive from other nodes or, with method tcp, from each
 * other. */
bool rf_scenario_listens_on(const struct rf_scenario *scenario, uint32_t node);
/* Size of the buffers that copy probes use: the scenario's largest inference
 * arena, so that what fits into a cache in the refit also does in the probe;
 * limited to 1 to 64 MiB. */
uint64_t rf_scenario_copy_bytes(const struct rf_scenario *scenario);

#endif
