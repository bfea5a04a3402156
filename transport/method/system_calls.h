/* Whether this process may make the system calls that a method needs: profiles
 * of containers refuse some, old kernels do not have all. */
#ifndef RF_TRANSPORT_METHOD_SYSTEM_CALLS_H
#define RF_TRANSPORT_METHOD_SYSTEM_CALLS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

struct rf_system_call {
    const char *name;
    bool (*works)(void); /* makes it and undoes it; false: errno says why */
};

/* RF_ERR_UNSUPPORTED with the first of them that does not work. */
enum rf_status rf_system_calls_try(const struct rf_system_call *calls, size_t n,
                                   struct rf_err *err) RF_MUST_CHECK;

#endif
