/* Whether system calls may be made. See system_calls.h. */
#include "transport/method/system_calls.h"

#include <errno.h>
#include <string.h>

enum rf_status rf_system_calls_try(const struct rf_system_call *calls, size_t n,
                                   struct rf_err *err)
{
    for (size_t i = 0; i < n; i++) {
        int why;
        if (calls[i].works()) {
            continue;
        }
        why = errno;
        if (why == EPERM || why == ENOSYS) {
            return rf_err_set(err, RF_ERR_UNSUPPORTED,
                              "the system call %s: %s (does a seccomp profile, "
                              "as containers have, refuse it?)",
                              calls[i].name, strerror(why));
        }
        return rf_err_errno(err, RF_ERR_UNSUPPORTED, why, "the system call %s",
                            calls[i].name);
    }
    return RF_OK;
}
