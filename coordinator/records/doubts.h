/* What is doubtful about the figures of a scenario. */
#ifndef RF_COORDINATOR_RECORDS_DOUBTS_H
#define RF_COORDINATOR_RECORDS_DOUBTS_H

#include <jansson.h>
#include <stdbool.h>

/* Flags that others ask for. */
#define RF_DOUBT_SLOW_YARDSTICKS "slow_yardsticks"
#define RF_DOUBT_BIMODAL "bimodal"
#define RF_DOUBT_UNMAPPED "unmapped"

/* `flags` of a record that has all other fields, in the order of
 * docs/RESULTS.md. A new reference. */
json_t *rf_doubts_json(const json_t *record);

/* What setup.registration says from "messages by posix/..." on, where ranks of
 * a node have UCX's shared memory but not their weights in it: there was no
 * room. NULL: it does not say so. Borrowed. */
const char *rf_doubts_unmapped(const json_t *record);

/* Whether they have one. */
bool rf_doubts_has(const json_t *record, const char *flag);

/* Why a record's `flags` say that it is unstable: "drift, outliers"; NULL: it
 * is stable. To be freed. */
char *rf_doubts_reasons(const json_t *record);

#endif
