/* What nodes say of themselves in HELLO, compared with each other and us. */
#ifndef RF_COORDINATOR_RUN_HELLO_H
#define RF_COORDINATOR_RUN_HELLO_H

#include <jansson.h>
#include <stdbool.h>

#include "common/err.h"

/* Whether two nodes are one machine by their boot ids; false where one is not
 * known. Either may be NULL: a node that has not joined. */
bool rf_hello_same_machine(const json_t *a, const json_t *b);

/* Whether the node's worker is of our version and build; otherwise
 * RF_ERR_LAUNCH with both of them and what to do. Where one of the two is not
 * known it is only refused with `strict`; where neither is, it never is. */
enum rf_status rf_hello_check_build(const json_t *hello, bool strict,
                                    struct rf_err *err) RF_MUST_CHECK;

#endif
