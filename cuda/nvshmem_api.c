/* Loading NVSHMEM. See nvshmem_api.h. */
#include "cuda/nvshmem_api.h"

#include <dlfcn.h>

#include "cuda/library.h"

#define LIBRARY "libnvshmem_host.so.3"
#define BOOTSTRAP "nvshmem_bootstrap_uid.so.3"

static struct rf_nvshmem table;

static const struct rf_library_symbol symbols[] = {
#define X(name, result, args) {#name, (void **)(void *)&table.name},
    RF_NVSHMEM_FUNCTIONS(X)
#undef X
};

static enum rf_status load(struct rf_err *err)
{
    void *library;
    /* The library opens its bootstrap by bare name; if it is there already, any
     * folder will do. */
    (void)dlopen(BOOTSTRAP, RTLD_NOW | RTLD_GLOBAL);
    return rf_library_open(LIBRARY, RTLD_GLOBAL, symbols,
                           RF_ARRAY_SIZE(symbols), &library, err);
}

const struct rf_nvshmem *rf_nvshmem_load(struct rf_err *err)
{
    static struct rf_library library = RF_LIBRARY_INIT;
    return rf_library_load(&library, load, err) == RF_OK ? &table : NULL;
}
