/* Loading NVSHMEM. See nvshmem_api.h. */
#include "cuda/nvshmem/nvshmem_api.h"

#include <dlfcn.h>

#include "cuda/nvml/dynamic_library.h"

#define LIBRARY "libnvshmem_host.so.3"
#define BOOTSTRAP "nvshmem_bootstrap_uid.so.3"

static struct rf_nvshmem table;
static unsigned users; /* of the started library */

static const struct rf_dynamic_library_symbol symbols[] = {
#define X(name, result, args) {#name, (void **)(void *)&table.name},
    RF_NVSHMEM_FUNCTIONS(X)
#undef X
};

static enum rf_status load(struct rf_err *err)
{
    void *library;
    /* The library opens its bootstrap by bare name; if it is already loaded,
     * any folder will do. */
    (void)dlopen(BOOTSTRAP, RTLD_NOW | RTLD_GLOBAL);
    return rf_dynamic_library_open(LIBRARY, RTLD_GLOBAL, symbols,
                                   RF_ARRAY_SIZE(symbols), &library, err);
}

const struct rf_nvshmem *rf_nvshmem_load(struct rf_err *err)
{
    static struct rf_dynamic_library library = RF_LIBRARY_INIT;
    return rf_dynamic_library_load(&library, load, err) == RF_OK ? &table
                                                                 : NULL;
}

int rf_nvshmem_start(struct rf_nvshmem_attr *attr)
{
    const int code = users > 0 ? 0
                               : table.nvshmemx_hostlib_init_attr(
                                     RF_NVSHMEM_INIT_WITH_UNIQUEID, attr);
    users += code == 0;
    return code;
}

bool rf_nvshmem_started(void)
{
    return users > 0;
}

void rf_nvshmem_stop(void)
{
    if (--users == 0) {
        table.nvshmemx_hostlib_finalize();
    }
}
