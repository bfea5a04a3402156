/*
 * Private to advice.c, advice_rules.c and advice_gpu.c: what a rule of advice
 * looks at, and the rules of the table.
 */
#ifndef RF_COORDINATOR_ADVICE_ADVICE_RULES_H
#define RF_COORDINATOR_ADVICE_ADVICE_RULES_H

#include "coordinator/scenario/scenario.h"
#include "transport/control/message_fields.h"

/* What is looked at. A rule reads only the members that its place in the table
 * fills in. */
struct rf_advice_view {
    const struct rf_scenario *scenario;
    const struct rf_config *config;
    const struct rf_msg_hello *const *hellos; /* NULL: has not joined */
    uint32_t node;
    const char *host;                 /* its name, */
    const struct rf_msg_hello *hello; /* and what it said */
    uint32_t first; /* of a pair: the node that it is compared with */
    size_t item;    /* of the node's interfaces, or of its methods */
    bool strict;
};

/* Rules: what there is to say, malloc'ed; NULL: nothing. */
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
char *rf_advice_rule_folders(const struct rf_advice_view *view);
char *rf_advice_rule_unreachable(const struct rf_advice_view *view);
char *rf_advice_rule_unfit(const struct rf_advice_view *view);
/* That the node lacks its address where its ranks listen, and elsewhere. */
char *rf_advice_rule_no_address(const struct rf_advice_view *view);
char *rf_advice_rule_idle_address(const struct rf_advice_view *view);
/* That UCX cannot put the ranks' weights where they share them. */
char *rf_advice_rule_small_shm(const struct rf_advice_view *view);

/* Of methods between GPUs only, on a node with ranks (advice_gpu.c). */
char *rf_advice_rule_gpus_in_use(const struct rf_advice_view *view);
char *rf_advice_rule_gpus_with_errors(const struct rf_advice_view *view);
char *rf_advice_rule_gpus_slowed(const struct rf_advice_view *view);
/* Of those that also go from this node to others. */
char *rf_advice_rule_no_adapter(const struct rf_advice_view *view);
char *rf_advice_rule_no_verbs(const struct rf_advice_view *view);
char *rf_advice_rule_no_peermem(const struct rf_advice_view *view);
char *rf_advice_rule_low_memlock(const struct rf_advice_view *view);

/* The first node that is the same machine as `node`; itself where none is. */
uint32_t rf_advice_rule_machine(const struct rf_msg_hello *const *hellos,
                                uint32_t node);

#endif
