/* The limit on open descriptors. */
#ifndef RF_COMMON_FD_LIMIT_H
#define RF_COMMON_FD_LIMIT_H

#include <stdint.h>

#include "common/err.h"

/* Raises the soft limit to the hard one, but at most to a million: a program
 * that inherits it may walk through all of them. Does nothing where raising is
 * not allowed. */
void rf_fd_limit_raise(void);

/* Checks that `n` more descriptors can be opened and that the limit is at least
 * `least`; opens none. Otherwise RF_ERR_LAUNCH with a sufficient limit. */
enum rf_status rf_fd_limit_need(uint32_t n, uint32_t least,
                                struct rf_err *err) RF_MUST_CHECK;

/* The number of descriptors that can still be opened, capped at `most`. */
uint32_t rf_fd_limit_free(uint32_t most);

#endif
