/* What is doubtful about the figures of a scenario. */
#ifndef RF_COORDINATOR_RESULTS_FLAGS_H
#define RF_COORDINATOR_RESULTS_FLAGS_H

#include <jansson.h>

/* `flags` of a record that has all other fields, in the order of
 * docs/RESULTS.md. A new reference. */
json_t *rf_flags_json(const json_t *record);

/* Adds a record whose `flags` say that it is unstable, and why, to the sentence
 * under a table. `*list` is NULL at first and while all are stable; to be
 * freed. */
void rf_flags_collect(char **list, const json_t *record);

#endif
