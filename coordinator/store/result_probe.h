/* Best figures of nodes and links in a run. */
#ifndef RF_COORDINATOR_STORE_RESULT_PROBE_H
#define RF_COORDINATOR_STORE_RESULT_PROBE_H

#include <jansson.h>

/*
 * Merges the probes of a scenario's record into "probe" of run.json: each node
 * and pair keeps its best figures (highest rate, lowest latency). Does nothing
 * without a probe.
 */
void rf_result_probe_add(json_t *document, const json_t *result);

json_t *rf_result_probe_schema(void); /* of that "probe": a new reference */

#endif
