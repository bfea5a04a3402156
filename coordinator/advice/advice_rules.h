/*
 * Private to advice.c, advice_rules.c and advice_gpu.c: the input of a rule of
 * advice, and the rules of the table.
 */
#ifndef RF_COORDINATOR_ADVICE_ADVICE_RULES_H
#define RF_COORDINATOR_ADVICE_ADVICE_RULES_H

#include "coordinator/scenario/scenario.h"
#include "transport/control/message_fields.h"

/* Input of a rule. A rule reads only the members set for its subject. */
struct rf_advice_view {
    const struct rf_scenario *scenario;
    const struct rf_config *config;
    const struct rf_msg_hello *const *hellos; /* NULL: has not joined */
    uint32_t node;
    const char *host;                 /* `node`'s name */
    const struct rf_msg_hello *hello; /* `node`'s HELLO */
    uint32_t first;                   /* for a pair: the other node */
    size_t item; /* index of the node's interface or method */
    bool strict;
};

/* A rule returns its advice, malloc'ed, or NULL. */
typedef char *(*rf_advice_rule_fn)(const struct rf_advice_view *view);

char *rf_advice_rule_other_build(const struct rf_advice_view *view);
char *rf_advice_rule_refused_build(const struct rf_advice_view *view);

char *rf_advice_rule_node(const struct rf_advice_view *view);
char *rf_advice_rule_interface(const struct rf_advice_view *view);
char *rf_advice_rule_methods(const struct rf_advice_view *view);

char *rf_advice_rule_one_machine(const struct rf_advice_view *view);
char *rf_advice_rule_builds(const struct rf_advice_view *view);
char *rf_advice_rule_kernels(const struct rf_advice_view *view);
char *rf_advice_rule_cpus(const struct rf_advice_view *view);
char *rf_advice_rule_congestion(const struct rf_advice_view *view);
char *rf_advice_rule_link_speeds(const struct rf_advice_view *view);
char *rf_advice_rule_mtus(const struct rf_advice_view *view);

char *rf_advice_rule_processors(const struct rf_advice_view *view);
char *rf_advice_rule_load(const struct rf_advice_view *view);
char *rf_advice_rule_folders(const struct rf_advice_view *view);
char *rf_advice_rule_unreachable(const struct rf_advice_view *view);
char *rf_advice_rule_unfit(const struct rf_advice_view *view);
/* The node lacks its address: where its ranks listen; elsewhere. */
char *rf_advice_rule_no_address(const struct rf_advice_view *view);
char *rf_advice_rule_idle_address(const struct rf_advice_view *view);
/* UCX cannot put the ranks' weights into shared memory. */
char *rf_advice_rule_small_shm(const struct rf_advice_view *view);

/* Only for methods between GPUs, on a node with ranks (advice_gpu.c). */
char *rf_advice_rule_gpus_in_use(const struct rf_advice_view *view);
char *rf_advice_rule_gpus_with_errors(const struct rf_advice_view *view);
char *rf_advice_rule_gpus_slowed(const struct rf_advice_view *view);
/* Likewise, if they also cross from this node to others. */
char *rf_advice_rule_no_adapter(const struct rf_advice_view *view);
char *rf_advice_rule_no_verbs(const struct rf_advice_view *view);
char *rf_advice_rule_no_peermem(const struct rf_advice_view *view);
char *rf_advice_rule_low_memlock(const struct rf_advice_view *view);
/* The NICs nearest to a GPU are on another NUMA node. */
char *rf_advice_rule_far_nics(const struct rf_advice_view *view);

/* The first node on the same machine as `node`; `node` if there is none. */
uint32_t rf_advice_rule_machine(const struct rf_msg_hello *const *hellos,
                                uint32_t node);

#endif
