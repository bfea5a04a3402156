/* What two records disagree about. Pure. */
#ifndef RF_COORDINATOR_RESULTS_DIFFERENCE_H
#define RF_COORDINATOR_RESULTS_DIFFERENCE_H

#include <jansson.h>

/* Where two JSON values first differ, as a path; NULL when equal. malloc'ed. */
char *rf_json_difference(const json_t *a, const json_t *b);

/* Likewise; the values at that place are borrowed from `a` and `b`, NULL where
 * one of them lacks it. Set only where they differ. */
char *rf_json_difference_at(const json_t *a, const json_t *b,
                            const json_t **in_a, const json_t **in_b);

#endif
