/* Bytes that nodes' networks counted, beside those planned; what is conspicuous
 * about them. docs/MEASURING.md, "What moved where", has the rules. */
#ifndef RF_COORDINATOR_RECORDS_NETWORK_H
#define RF_COORDINATOR_RECORDS_NETWORK_H

#include <jansson.h>

/* `summary.network` of a record with `iterations` and `environment`: the nodes
 * with planned bytes and a network namespace of their own, over the iterations
 * in which the bytes of all their NICs are known. A new reference. */
json_t *rf_network_summary_json(const json_t *record);

/* The JSON Schema of an entry. A new reference. */
json_t *rf_network_summary_schema(void);

/*
 * These describe the first node in `summary.network` to which they apply, "1 of
 * 2 used on node-a", and say how many more there are; NULL if there is none. The
 * caller frees it.
 */

/* Other NICs of the kind and speed of its busiest one carried nothing. */
char *rf_network_idle(const json_t *record);
/* More crossed than headers explain. */
char *rf_network_extra(const json_t *record);
/* TCP repeated enough segments to become slower. */
char *rf_network_repeated(const json_t *record);

#endif
