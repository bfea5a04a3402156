/* What nodes say of themselves in HELLO, compared. */
#ifndef RF_COORDINATOR_HELLO_H
#define RF_COORDINATOR_HELLO_H

#include <jansson.h>
#include <stdbool.h>

/* Whether two nodes are one machine by their boot ids; false where one is not
 * known. Either may be NULL: a node that has not joined. */
bool rf_hello_same_machine(const json_t *a, const json_t *b);

#endif
