/* One record of several attempts at a scenario. */
#ifndef RF_COORDINATOR_RECORDS_REPEATS_H
#define RF_COORDINATOR_RECORDS_REPEATS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The record of all repeats, in their order: those in `before` (a record of
 * several, or of one attempt, which then is repeat 0; NULL: none) and `record`,
 * one attempt's, as number `repeat`, in place of one that `before` has. Both
 * are borrowed. A new reference.
 */
json_t *rf_repeats_add(const json_t *before, const json_t *record,
                       uint32_t repeat);

/*
 * The record of all attempts of two records of the same scenario, each of one
 * attempt or of several: the repeats of `record` are numbered on from those of
 * `before`. Both are borrowed. A new reference.
 */
json_t *rf_repeats_join(const json_t *before, const json_t *record);

/* Whether a record has that repeat, and it was ok. */
bool rf_repeats_has(const json_t *record, uint32_t repeat);

#endif
