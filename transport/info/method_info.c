/*
 * Facts about every method, from the rows in method_info.h. Separate from the
 * registry in methods.c, so that the coordinator and refit-cuda.so can link it
 * alone.
 */
#include "transport/info/method_info.h"

#include <stdio.h>
#include <string.h>

#include "common/json.h"

const struct rf_method_info rf_method_infos[RF_METHOD_COUNT] = {
#define X(ID, ops, NAME, ...) {.name = (NAME), __VA_ARGS__},
    RF_METHOD_MAP(X)
#undef X
};

const struct rf_method_info *rf_method_info_find(const char *name)
{
    for (size_t i = 0; i < RF_METHOD_COUNT; i++) {
        if (strcmp(rf_method_infos[i].name, name) == 0) {
            return &rf_method_infos[i];
        }
    }
    return NULL;
}

enum rf_status rf_method_unknown(const char *name, struct rf_err *err)
{
    const char *names[RF_METHOD_COUNT + 1] = {NULL};
    char known[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < RF_METHOD_COUNT; i++) {
        names[i] = rf_method_infos[i].name;
    }
    for (size_t i = 0; i < RF_METHOD_COUNT && used < sizeof(known); i++) {
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s",
                                 i > 0 ? ", " : "", rf_method_infos[i].name);
    }
    return rf_err_set(err, RF_ERR_CONFIG,
                      "unknown method \"%s\"%s; must be one of %s", name,
                      rf_did_you_mean(name, names).text, known);
}
