/* What two records disagree about: what was run, and where. Pure. */
#ifndef RF_COORDINATOR_RECORDS_RECORDS_DIFFER_H
#define RF_COORDINATOR_RECORDS_RECORDS_DIFFER_H

#include <jansson.h>
#include <stdbool.h>

/* A place where two JSON values differ, and what they have there: NULL where
 * one of them lacks it. All are borrowed. Returns whether to go on. */
typedef bool (*rf_json_difference_fn)(const char *path, const json_t *in_a,
                                      const json_t *in_b, void *data);

/* Gives every such place to `take`, with `name` before its path: members of
 * objects and of lists that have as many; else the whole list. False when
 * `take` said to stop. */
bool rf_json_each_difference(const char *name, const json_t *a, const json_t *b,
                             rf_json_difference_fn take, void *data);

/* Where two JSON values first differ, as a path; NULL when equal. malloc'ed. */
char *rf_json_difference(const json_t *a, const json_t *b);

/* Likewise; the values at that place are borrowed from `a` and `b`, NULL where
 * one of them lacks it. Set only where they differ. */
char *rf_json_difference_at(const json_t *a, const json_t *b,
                            const json_t **in_a, const json_t **in_b);

/* The first difference within each of scenario, model, plan, tool and
 * environment, "plan.digest, environment[0].kernel"; NULL: none. What varies
 * between runs of the same thing and what older records leave out do not count;
 * of interfaces those do that can carry data, by name, without addresses:
 * "environment[0].nics.eth0.mtu". To be freed. */
char *rf_records_differ(const json_t *a, const json_t *b);

/* Gives each of all differences in these parts to `take`. */
void rf_records_each_difference(const json_t *a, const json_t *b,
                                rf_json_difference_fn take, void *data);

/* A copy of a scenario's settings without those that make no difference to how
 * long a refit takes. A new reference. */
json_t *rf_refit_settings(const json_t *scenario);

/* What of a model makes a difference; NULL without a model. A new reference. */
json_t *rf_refit_model(const json_t *model);

#endif
