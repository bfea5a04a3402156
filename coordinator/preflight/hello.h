/* Compares the HELLOs of nodes with each other and with this program. */
#ifndef RF_COORDINATOR_PREFLIGHT_HELLO_H
#define RF_COORDINATOR_PREFLIGHT_HELLO_H

#include <stdbool.h>

#include "transport/control/message_fields.h"

/* Whether two nodes are one machine by their boot ids; false if one is unknown.
 * Either may be NULL: a node that has not joined. */
bool rf_hello_same_machine(const struct rf_msg_hello *a,
                           const struct rf_msg_hello *b);

/* Whether two nodes are known to have separate networks: other machines, or
 * other network namespaces of one. Either may be NULL. */
bool rf_hello_apart(const struct rf_msg_hello *a, const struct rf_msg_hello *b);

/* Whether the node can use a method; otherwise `*why` is the reason, borrowed
 * from the HELLO. */
bool rf_hello_offers(const struct rf_msg_hello *hello, const char *method,
                     const char **why);

/* Whether the node's worker has our version and build; otherwise RF_ERR_LAUNCH
 * with both and what to do. If one of the two is unknown, only `strict` refuses
 * it; if both are, it is never refused. */
enum rf_status rf_hello_check_build(const struct rf_msg_hello *hello,
                                    bool strict,
                                    struct rf_err *err) RF_MUST_CHECK;

#endif
