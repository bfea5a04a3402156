/* What nodes say of themselves in HELLO, compared with each other and us. */
#ifndef RF_COORDINATOR_PREFLIGHT_HELLO_H
#define RF_COORDINATOR_PREFLIGHT_HELLO_H

#include <stdbool.h>

#include "transport/control/message_fields.h"

/* Whether two nodes are one machine by their boot ids; false where one is not
 * known. Either may be NULL: a node that has not joined. */
bool rf_hello_same_machine(const struct rf_msg_hello *a,
                           const struct rf_msg_hello *b);

/* Whether two nodes are known to have networks of their own: other machines,
 * or other network namespaces of one. Either may be NULL. */
bool rf_hello_apart(const struct rf_msg_hello *a, const struct rf_msg_hello *b);

/* Whether the node can use a method; otherwise `*why` says why not, borrowed
 * from the HELLO. */
bool rf_hello_offers(const struct rf_msg_hello *hello, const char *method,
                     const char **why);

/* Whether the node's worker is of our version and build; otherwise
 * RF_ERR_LAUNCH with both of them and what to do. Where one of the two is not
 * known it is only refused with `strict`; where neither is, it never is. */
enum rf_status rf_hello_check_build(const struct rf_msg_hello *hello,
                                    bool strict,
                                    struct rf_err *err) RF_MUST_CHECK;

#endif
