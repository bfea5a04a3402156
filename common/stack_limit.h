/* The stack size limit of this process. */
#ifndef RF_COMMON_STACK_LIMIT_H
#define RF_COMMON_STACK_LIMIT_H

#include "common/err.h"

/* Raises a low soft limit, for this thread and later ones. RF_ERR_LAUNCH, with
 * a sufficient limit, when the hard one is too low. Call it first, from a
 * function with little on its stack. */
enum rf_status rf_stack_limit_raise(struct rf_err *err) RF_MUST_CHECK;

#endif
