/*
 * Opening refit-cuda.so. See module.h.
 *
 * Tried once per process: next to the executable first (or where an
 * installation puts it), then wherever the dynamic linker looks; the outcome is
 * kept. A module of another ABI is closed before any of its functions is
 * called.
 */
#include "transport/module.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"

/* The outcome of the one attempt. */
static struct {
    pthread_once_t once;
    const struct rf_module *module;
    struct rf_err err;
} loaded = {.once = PTHREAD_ONCE_INIT};

static void log_line(int level, const char *line)
{
    rf_log((enum rf_log_level)level, "%s", line);
}

/* Folders of the module relative to that of the executable: a build or a
 * bundle, an installation. */
static const char *const beside[] = {"", "../lib/refit-coord/"};

/* NULL with why; a module that is there but does not load says more than one
 * that is not there. */
static void *open_library(struct rf_err *err)
{
    char folder[4096], path[sizeof(folder) + 64];
    ssize_t n = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    char *slash;
    void *library;
    folder[n > 0 ? n : 0] = '\0';
    slash = strrchr(folder, '/');
    folder[slash != NULL ? slash - folder : 0] = '\0';
    for (size_t i = 0; i < RF_ARRAY_SIZE(beside); i++) {
        snprintf(path, sizeof(path), "%s/%s" RF_MODULE_FILE, folder, beside[i]);
        if (access(path, F_OK) != 0) {
            continue;
        }
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) {
            rf_err_set(err, RF_ERR_UNSUPPORTED, "%s", dlerror());
        }
        return library;
    }
    library = dlopen(RF_MODULE_FILE, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        rf_err_set(err, RF_ERR_UNSUPPORTED, "%s", dlerror());
    }
    return library;
}

static void load(void)
{
    static const struct rf_module_host host = {log_line};
    void *library = open_library(&loaded.err);
    const struct rf_module *module;
    if (library == NULL) {
        return;
    }
    module = dlsym(library, RF_MODULE_SYMBOL);
    if (module == NULL || module->abi != RF_MODULE_ABI) {
        rf_err_set(&loaded.err, RF_ERR_UNSUPPORTED,
                   RF_MODULE_FILE " has interface %" PRIu32
                                  ", but this program needs %d (install both "
                                  "from one build)",
                   module == NULL ? 0 : module->abi, RF_MODULE_ABI);
        dlclose(library);
        return;
    }
    if (module->init(&host, &loaded.err) != RF_OK) {
        dlclose(library);
        return;
    }
    loaded.module = module;
}

const struct rf_module *rf_module_load(struct rf_err *err)
{
    pthread_once(&loaded.once, load);
    if (loaded.module == NULL && err != NULL) {
        *err = loaded.err;
    }
    return loaded.module;
}
