/* See dynamic_library.h. */
#include "cuda/nvml/dynamic_library.h"

#include <dlfcn.h>

enum rf_status
rf_dynamic_library_load(struct rf_dynamic_library *library,
                        enum rf_status (*load)(struct rf_err *err),
                        struct rf_err *err)
{
    enum rf_status status;
    pthread_mutex_lock(&library->lock);
    if (!library->tried) {
        library->status = load(&library->why);
        library->tried = true;
    }
    status = library->status;
    if (status != RF_OK && err != NULL) {
        *err = library->why;
    }
    pthread_mutex_unlock(&library->lock);
    return status;
}

enum rf_status
rf_dynamic_library_open(const char *file, int scope,
                        const struct rf_dynamic_library_symbol *symbols,
                        size_t n_symbols, void **out, struct rf_err *err)
{
    void *library = dlopen(file, RTLD_NOW | scope);
    if (library == NULL) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED, "%s", dlerror());
    }
    for (size_t i = 0; i < n_symbols; i++) {
        *symbols[i].address = dlsym(library, symbols[i].name);
        if (*symbols[i].address == NULL) {
            dlclose(library);
            return rf_err_set(err, RF_ERR_UNSUPPORTED, "%s has no %s", file,
                              symbols[i].name);
        }
    }
    *out = library;
    return RF_OK;
}
