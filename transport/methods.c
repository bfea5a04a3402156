/*
 * The registry of methods.
 *
 * rf_method_infos is plain data, also for the coordinator. Only the worker
 * looks up a method's functions: those of device methods in refit-cuda.so,
 * those of UCX in refit-ucx.so.
 */
#include "transport/method/method.h"
#include "transport/method/module.h"

#include <string.h>

static const struct rf_method_ops *const worker_methods[] = {
#define X(ID, ops, ...) &rf_method_##ops,
    RF_WORKER_METHODS(X)
#undef X
};

const struct rf_method_ops *rf_method_find(const char *name, struct rf_err *err)
{
    const struct rf_method_info *info = rf_method_info_find(name);
    const struct rf_module *module;
    const struct rf_ucx_module *ucx;
    if (info == NULL) {
        rf_method_unknown(name, err);
        return NULL;
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(worker_methods); i++) {
        if (worker_methods[i]->info == info) {
            return worker_methods[i];
        }
    }
    if (info == &rf_method_infos[RF_METHOD_UCX]) {
        ucx = rf_ucx_module_load(err);
        return ucx != NULL ? ucx->method : NULL;
    }
    module = rf_module_load(err);
    if (module == NULL) {
        return NULL;
    }
    for (size_t i = 0; module->methods[i] != NULL; i++) {
        if (strcmp(module->methods[i]->info->name, info->name) == 0) {
            return module->methods[i];
        }
    }
    rf_err_set(err, RF_ERR_UNSUPPORTED,
               "not part of this build's " RF_MODULE_FILE);
    return NULL;
}
