/* What `advise` found, for people and as JSON. */
#ifndef RF_COORDINATOR_ADVICE_ADVISE_PRINT_H
#define RF_COORDINATOR_ADVICE_ADVISE_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "coordinator/advice/advise_search.h"

/* `timeline` is the one that was searched with; `assumed`: what of it is not
 * the file's, NULL: nothing. */
struct rf_advise_report {
    const struct rf_scenario *base;
    const struct rf_timeline *timeline;
    char *assumed;
    struct rf_advised advised;
};

/* The best choices, the rules that they break, what was assumed, and the first
 * choice as a scenario of cluster.json. */
void rf_advise_print(const struct rf_advise_report *report, FILE *to);

/* All choices. A new reference. */
json_t *rf_advise_json(const struct rf_advise_report *report);

#endif
