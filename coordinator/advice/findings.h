/*
 * A list of findings, as printed by `check`. Levels: E cannot work, W worth a
 * look, I advice.
 */
#ifndef RF_COORDINATOR_ADVICE_FINDINGS_H
#define RF_COORDINATOR_ADVICE_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/compiler.h"

enum rf_advice_level { RF_ADVICE_INFO, RF_ADVICE_WARNING, RF_ADVICE_ERROR };

struct rf_finding {
    enum rf_advice_level level;
    size_t count; /* its hosts or scenarios */
    char *about;  /* a host, a scenario, "cluster" */
    char *text;
};

/* Starts zeroed; free with rf_findings_free(). */
struct rf_findings {
    struct rf_finding *list;
    size_t n, cap;
};

void rf_findings_add(struct rf_findings *findings, enum rf_advice_level level,
                     const char *about, const char *fmt, ...) RF_PRINTF(4, 5);
void rf_findings_free(struct rf_findings *findings);
size_t rf_findings_count(const struct rf_findings *findings,
                         enum rf_advice_level level);

/* Joins findings that differ only in their subject: "a, b". */
void rf_findings_merge(struct rf_findings *findings);

/* Prints them to standard output, the gravest first, with the numbers of errors
 * and warnings; as JSON if `json`. `quiet` omits advice from the text. */
void rf_findings_print(const struct rf_findings *findings, bool json,
                       bool quiet);

#endif
