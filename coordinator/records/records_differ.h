/* What was run, and where, in two records of one scenario. */
#ifndef RF_COORDINATOR_RECORDS_RECORDS_DIFFER_H
#define RF_COORDINATOR_RECORDS_RECORDS_DIFFER_H

#include <jansson.h>

#include "coordinator/records/difference.h"

/* The first difference within each of scenario, model, plan, tool and
 * environment, "plan.digest, environment[0].kernel"; NULL: none. What varies
 * between runs of the same thing and what older records leave out do not count;
 * of interfaces those do that can carry data, by name, without addresses:
 * "environment[0].nics.eth0.mtu". To be freed. */
char *rf_records_differ(const json_t *a, const json_t *b);

/* Gives each of all differences in these parts to `take`. */
void rf_records_each_difference(const json_t *a, const json_t *b,
                                rf_json_difference_fn take, void *data);

#endif
