/*
 * Opening refit-cuda.so and refit-ucx.so. See module.h.
 *
 * Each is tried once per process: beside the executable (or where an
 * installation puts it), then on the dynamic linker's path; the outcome is
 * kept. A module of another ABI is closed before any of its functions is
 * called.
 */
#include "transport/method/module.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"

/* The outcome of the one attempt to load each module. */
static struct {
    pthread_once_t once;
    const struct rf_module *module;
    struct rf_err err;
} loaded = {.once = PTHREAD_ONCE_INIT};
static struct {
    pthread_once_t once;
    const struct rf_ucx_module *module;
    struct rf_err err;
} loaded_ucx = {.once = PTHREAD_ONCE_INIT};

static void log_line(int level, const char *line)
{
    rf_log((enum rf_log_level)level, "%s", line);
}

/* Folders of the module relative to the executable's: in a build or a bundle,
 * and in an installation. */
static const char *const beside[] = {"", "../lib/refit-coord/"};

/* NULL with the reason. The error of a module that exists but does not load
 * takes precedence. */
static void *open_library(const char *file, struct rf_err *err)
{
    char folder[4096], path[sizeof(folder) + 64];
    ssize_t n = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    char *slash;
    void *library;
    folder[n > 0 ? n : 0] = '\0';
    slash = strrchr(folder, '/');
    folder[slash != NULL ? slash - folder : 0] = '\0';
    for (size_t i = 0; i < RF_ARRAY_SIZE(beside); i++) {
        struct stat found;
        snprintf(path, sizeof(path), "%s/%s%s", folder, beside[i], file);
        if (stat(path, &found) != 0) {
            continue;
        }
        if (!S_ISREG(found.st_mode)) { /* a FIFO would block */
            rf_err_set(err, RF_ERR_UNSUPPORTED, "%s: not a regular file", path);
            return NULL;
        }
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) {
            rf_err_set(err, RF_ERR_UNSUPPORTED, "%s", dlerror());
        }
        return library;
    }
    library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        rf_err_set(err, RF_ERR_UNSUPPORTED, "%s", dlerror());
    }
    return library;
}

/* The table at a module's symbol; it begins with the ABI number. If that is not
 * `abi`, closes the library and returns NULL. */
static const void *find_table(void *library, const char *symbol, uint32_t abi,
                              const char *file, struct rf_err *err)
{
    const uint32_t *table = dlsym(library, symbol);
    if (table != NULL && *table == abi) {
        return table;
    }
    rf_err_set(err, RF_ERR_UNSUPPORTED,
               "%s has interface %" PRIu32 ", but this program needs %" PRIu32
               " (install both from one build)",
               file, table == NULL ? 0 : *table, abi);
    dlclose(library);
    return NULL;
}

static void load(void)
{
    static const struct rf_module_host host = {log_line, rf_ucx_module_load};
    void *library = open_library(RF_MODULE_FILE, &loaded.err);
    const struct rf_module *module;
    if (library == NULL) {
        return;
    }
    module = find_table(library, RF_MODULE_SYMBOL, RF_MODULE_ABI,
                        RF_MODULE_FILE, &loaded.err);
    if (module == NULL) {
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

static void load_ucx(void)
{
    void *library = open_library(RF_UCX_MODULE_FILE, &loaded_ucx.err);
    if (library != NULL) {
        loaded_ucx.module =
            find_table(library, RF_UCX_MODULE_SYMBOL, RF_UCX_MODULE_ABI,
                       RF_UCX_MODULE_FILE, &loaded_ucx.err);
    }
}

const struct rf_ucx_module *rf_ucx_module_load(struct rf_err *err)
{
    pthread_once(&loaded_ucx.once, load_ucx);
    if (loaded_ucx.module == NULL && err != NULL) {
        *err = loaded_ucx.err;
    }
    return loaded_ucx.module;
}
