/* Services that the worker lends to the module. See host.h. */
#include "cuda/device/host.h"

#include <stdarg.h>
#include <stdio.h>

static struct rf_module_host host;

void rf_cuda_lend(const struct rf_module_host *lent)
{
    host = *lent;
}

void rf_cuda_log(enum rf_log_level level, const char *fmt, ...)
{
    char line[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    if (host.log != NULL) {
        host.log((int)level, line);
    }
}

const struct rf_ucx_wire_ops *rf_cuda_ucx_wire(struct rf_err *err)
{
    const struct rf_ucx_module *module = host.ucx(err);
    return module != NULL ? module->wire : NULL;
}
