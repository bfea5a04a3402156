/* Pooling several attempts at a scenario into one record. */
#ifndef RF_COORDINATOR_RECORDS_REPEATS_H
#define RF_COORDINATOR_RECORDS_REPEATS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Pools `record`, one attempt, as number `repeat`, with the repeats of
 * `before`: a record of several, or of one attempt, which becomes repeat 0, or
 * NULL. Replaces a repeat of the same number; keeps the order of numbers. Both
 * are borrowed. A new reference.
 */
json_t *rf_repeats_add(const json_t *before, const json_t *record,
                       uint32_t repeat);

/*
 * Pools all attempts of two records of a scenario, each of one attempt or
 * several. Repeats of `record` get the numbers after those of `before`. Both
 * are borrowed. A new reference.
 */
json_t *rf_repeats_join(const json_t *before, const json_t *record);

/* Whether a record has that repeat, with status ok. */
bool rf_repeats_has(const json_t *record, uint32_t repeat);

/* The member by which entries of a record of several attempts name theirs, for
 * a list of members (common/json_schema.h). */
#define RF_REPEATS_MARK(M) M(COUNT, repeat, OPTIONAL, NULL)

/* Makes the JSON Schema of one attempt's record that of records of several,
 * too. */
void rf_repeats_schema(json_t *record);

#endif
