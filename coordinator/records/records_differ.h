/* Differences between two records: what was run, and where. Pure. */
#ifndef RF_COORDINATOR_RECORDS_RECORDS_DIFFER_H
#define RF_COORDINATOR_RECORDS_RECORDS_DIFFER_H

#include <jansson.h>
#include <stdbool.h>

/* Gets the path of a difference between two JSON values, and both values there,
 * NULL where missing. All are borrowed. Returns whether to go on. */
typedef bool (*rf_json_difference_fn)(const char *path, const json_t *in_a,
                                      const json_t *in_b, void *data);

/* Calls `take` for each such place, with `name` before its path. Compares
 * members of objects and of lists of equal length; other lists differ as a
 * whole. False when `take` stopped it. */
bool rf_json_each_difference(const char *name, const json_t *a, const json_t *b,
                             rf_json_difference_fn take, void *data);

/* The path of the first difference between two JSON values; NULL when equal.
 * Caller frees. */
char *rf_json_difference(const json_t *a, const json_t *b);

/* Likewise, with the values there, borrowed from `a` and `b`, NULL where
 * missing. Set only if there is a difference. */
char *rf_json_difference_at(const json_t *a, const json_t *b,
                            const json_t **in_a, const json_t **in_b);

/* The first difference within each of scenario, model, plan, setup, tool,
 * environment and source, "plan.digest, environment[0].kernel"; NULL: none.
 * Ignores what varies between runs of the same scenario and what older records
 * lack. Network interfaces count only if they can carry data, by name, without
 * addresses: "environment[0].nics.eth0.mtu". Caller frees. */
char *rf_records_differ(const json_t *a, const json_t *b);

/* Calls `take` for every difference in these parts. */
void rf_records_each_difference(const json_t *a, const json_t *b,
                                rf_json_difference_fn take, void *data);

/* A copy of those of a scenario's settings that affect the refit's time. A new
 * reference. */
json_t *rf_refit_settings(const json_t *scenario);

/* The fields of a model that affect the refit; NULL without a model. A new
 * reference. */
json_t *rf_refit_model(const json_t *model);

#endif
