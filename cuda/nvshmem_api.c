/* Loading NVSHMEM. See nvshmem_api.h. */
#include "cuda/nvshmem_api.h"

#include <dlfcn.h>

#include "cuda/library.h"

#define LIBRARY "libnvshmem_host.so.3"
#define BOOTSTRAP "nvshmem_bootstrap_uid.so.3"

static struct rf_nvshmem table;

static enum rf_status load(struct rf_err *err)
{
    void *library;
    /* The library opens its bootstrap by bare name; if it is there already, any
     * folder will do. */
    (void)dlopen(BOOTSTRAP, RTLD_NOW | RTLD_GLOBAL);
    library = dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED, "%s", dlerror());
    }
#define X(name, result, args)                                                  \
    *(void **)(void *)&table.name = dlsym(library, #name);                     \
    if (table.name == NULL) {                                                  \
        dlclose(library);                                                      \
        return rf_err_set(err, RF_ERR_UNSUPPORTED, LIBRARY " has no " #name);  \
    }
    RF_NVSHMEM_FUNCTIONS(X)
#undef X
    return RF_OK;
}

const struct rf_nvshmem *rf_nvshmem_load(struct rf_err *err)
{
    static struct rf_library library = RF_LIBRARY_INIT;
    return rf_library_load(&library, load, err) == RF_OK ? &table : NULL;
}
