/* What run/ still asks of HELLO as JSON. */
#ifndef RF_COORDINATOR_COMMANDS_HELLO_JSON_H
#define RF_COORDINATOR_COMMANDS_HELLO_JSON_H

#include <stdlib.h>

#include "common/mem.h"
#include "coordinator/run/folders.h"
#include "coordinator/run/hello.h"
#include "transport/messages.h"

static inline json_t *rf_hello_json(const struct rf_msg_hello *hello)
{
    return hello != NULL ? rf_schema_encode(&rf_msg_hello_schema, hello) : NULL;
}

static inline bool rf_hello_json_same_machine(const struct rf_msg_hello *a,
                                              const struct rf_msg_hello *b)
{
    json_t *x = json_pack("{s:s?}", "boot_id", a != NULL ? a->boot_id : NULL);
    json_t *y = json_pack("{s:s?}", "boot_id", b != NULL ? b->boot_id : NULL);
    bool same = rf_hello_same_machine(x, y);
    json_decref(x);
    json_decref(y);
    return same;
}

static inline enum rf_status
rf_hello_json_check_build(const struct rf_msg_hello *hello, bool strict,
                          struct rf_err *err)
{
    json_t *object = rf_hello_json(hello);
    enum rf_status status = rf_hello_check_build(object, strict, err);
    json_decref(object);
    return status;
}

static inline enum rf_status
rf_hello_json_folders(const struct rf_scenario *scenario,
                      const struct rf_msg_hello *const *hellos,
                      struct rf_err *err)
{
    uint32_t n = scenario->config->n_nodes;
    json_t **objects = rf_xcalloc(n, sizeof(*objects));
    enum rf_status status;
    for (uint32_t i = 0; i < n && scenario->spec->disk_folder != NULL; i++) {
        objects[i] = rf_hello_json(hellos[i]);
    }
    status = rf_folders_check(scenario, (const json_t *const *)objects, err);
    for (uint32_t i = 0; i < n; i++) {
        json_decref(objects[i]);
    }
    free(objects);
    return status;
}

#define rf_hello_same_machine rf_hello_json_same_machine
#define rf_hello_check_build rf_hello_json_check_build
#define rf_folders_check rf_hello_json_folders

#endif
