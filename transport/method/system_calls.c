/* Whether system calls may be made. See system_calls.h. */
#include "transport/method/system_calls.h"

#include <errno.h>
#include <string.h>

enum rf_status rf_system_calls_try(const struct rf_system_call *calls, size_t n,
                                   struct rf_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!calls[i].works()) {
            return rf_err_set(err, RF_ERR_UNSUPPORTED,
                              "the system call %s: %s%s", calls[i].name,
                              strerror(errno),
                              errno == EPERM || errno == ENOSYS
                                  ? " (does a seccomp profile, as containers "
                                    "have, refuse it?)"
                                  : "");
        }
    }
    return RF_OK;
}
