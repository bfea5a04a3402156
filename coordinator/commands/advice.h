/*
 * What `check` has to say: findings about the configuration (pure) and about
 * nodes that have joined. Levels: E this cannot work, W look at it, I advice.
 */
#ifndef RF_COORDINATOR_COMMANDS_ADVICE_H
#define RF_COORDINATOR_COMMANDS_ADVICE_H

#include <jansson.h>

#include "coordinator/run/scenario.h"

enum rf_advice_level { RF_ADVICE_INFO, RF_ADVICE_WARNING, RF_ADVICE_ERROR };

struct rf_finding {
    enum rf_advice_level level;
    size_t count; /* hosts or scenarios that it is about */
    char *about;  /* a host, a scenario, "cluster" */
    char *text;
};

struct rf_findings {
    struct rf_finding *list;
    size_t n, cap;
};

void rf_findings_add(struct rf_findings *findings, enum rf_advice_level level,
                     const char *about, const char *fmt, ...) RF_PRINTF(4, 5);
void rf_findings_free(struct rf_findings *findings);
size_t rf_findings_count(const struct rf_findings *findings,
                         enum rf_advice_level level);

/* Makes one of findings that differ only in whom they are about: "a, b". */
void rf_findings_merge(struct rf_findings *findings);

/* Rules of thumb about one scenario's meshes; `timeline` may be NULL. */
void rf_advise_scenario(const struct rf_scenario *scenario,
                        const json_t *timeline, struct rf_findings *out);

/* Whether a node's worker is of our build; with `strict` it must be. */
void rf_advise_build(const char *host, const json_t *hello, bool strict,
                     struct rf_findings *out);

/* What a node said in HELLO: memory, methods, links. */
void rf_advise_node(const char *host, const json_t *hello,
                    struct rf_findings *out);

/* Whether nodes have the addresses that cluster.json gives them. */
void rf_advise_addresses(const struct rf_config *config,
                         const json_t *const *hellos, struct rf_findings *out);

/* Nodes against each other: machines, versions, link speeds, kernels.
 * `hellos[i]` may be NULL. */
void rf_advise_nodes(const char *const *hosts, const json_t *const *hellos,
                     uint32_t n, struct rf_findings *out);

/* One scenario against the nodes: methods, memory and processors. */
void rf_advise_fit(const struct rf_scenario *scenario,
                   const json_t *const *hellos, struct rf_findings *out);

#endif
