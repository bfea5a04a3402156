/* What the links of a run gave, over all of its scenarios. */
#ifndef RF_COORDINATOR_RESULTS_RESULT_PROBE_H
#define RF_COORDINATOR_RESULTS_RESULT_PROBE_H

#include <jansson.h>

/*
 * Takes the probes of a scenario's record into `probe` of the document of
 * run.json: of each node and pair the best figure of all probes (highest rate,
 * lowest latency). Leaves the document alone when there is none.
 */
void rf_result_probe_add(json_t *document, const json_t *result);

#endif
