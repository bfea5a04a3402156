/* Descriptors that may be missing. */
#ifndef RF_COMMON_FD_H
#define RF_COMMON_FD_H

#include <unistd.h>

/* Closes a descriptor, unless it is below 0, and makes it -1. */
static inline void rf_fd_close(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

#endif
