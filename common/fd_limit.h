/* How many descriptors this process may have open. */
#ifndef RF_COMMON_FD_LIMIT_H
#define RF_COMMON_FD_LIMIT_H

#include <stdint.h>

#include "common/err.h"

/* Raises the soft limit to the hard one, to a million at most: a program that
 * inherits it may walk through all of them. Without effect where that is not
 * allowed. */
void rf_fd_limit_raise(void);

/* Whether `n` more can be opened now and the limit is at least `least`; opens
 * none. RF_ERR_LAUNCH, with the limit that would be enough for both, where not.
 */
enum rf_status rf_fd_limit_need(uint32_t n, uint32_t least,
                                struct rf_err *err) RF_MUST_CHECK;

/* How many more can be opened now; `most` where there are more than that. */
uint32_t rf_fd_limit_free(uint32_t most);

#endif
