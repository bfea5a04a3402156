/* Libraries loaded at run time, once, on first use. */
#ifndef RF_CUDA_NVML_DYNAMIC_LIBRARY_H
#define RF_CUDA_NVML_DYNAMIC_LIBRARY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

struct rf_dynamic_library {
    pthread_mutex_t lock;
    bool tried;
    enum rf_status status;
    struct rf_err why;
};

#define RF_LIBRARY_INIT                                                        \
    {                                                                          \
        .lock = PTHREAD_MUTEX_INITIALIZER                                      \
    }

/* Runs `load` on the first call; all calls return its outcome. */
enum rf_status
rf_dynamic_library_load(struct rf_dynamic_library *library,
                        enum rf_status (*load)(struct rf_err *err),
                        struct rf_err *err);

/* A function of a library and the destination of its address. */
struct rf_dynamic_library_symbol {
    const char *name;
    void **address;
};

/* dlopen() of `file` with RTLD_LOCAL or RTLD_GLOBAL, then all of `symbols`.
 * RF_ERR_UNSUPPORTED that names the missing part; *out is then not set. */
enum rf_status
rf_dynamic_library_open(const char *file, int scope,
                        const struct rf_dynamic_library_symbol *symbols,
                        size_t n_symbols, void **out,
                        struct rf_err *err) RF_MUST_CHECK;

#endif
