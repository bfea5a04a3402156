/* How large this process's stacks may be. */
#ifndef RF_COMMON_STACK_LIMIT_H
#define RF_COMMON_STACK_LIMIT_H

#include "common/err.h"

/* Raises a low soft limit, for this thread and those to come. RF_ERR_LAUNCH,
 * with the limit that would be enough, where the hard one is too low. To be
 * called first, by a function with little on its stack. */
enum rf_status rf_stack_limit_raise(struct rf_err *err) RF_MUST_CHECK;

#endif
