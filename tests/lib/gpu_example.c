/* Plans of the GPU examples. See gpu_example.h. */
#include "tests/lib/gpu_example.h"

#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* The model of a cluster file, with its configuration inlined. */
static char *inline_model(const json_t *cluster)
{
    json_auto_t *model = json_deep_copy(json_object_get(cluster, "model"));
    const char *path = json_string_value(json_object_get(model, "config"));
    json_t *config;
    ck_assert_int_eq(strncmp(path, "../", 3), 0);
    config = json_load_file(path + 3, 0, NULL);
    ck_assert_ptr_nonnull(config);
    json_object_set_new(model, "config", config);
    return json_dumps(model, 0);
}

/* Renames "gpu-a", … to the first of planned_nodes (planned.h). */
static void rename_nodes(char *text)
{
    char *at;
    while ((at = strstr(text, "\"gpu-")) != NULL) {
        const char digit = (char)('0' + at[5] - 'a');
        memcpy(at, "\"n", 2);
        at[2] = digit;
        at[3] = '"';
        memmove(at + 4, at + 7, strlen(at + 7) + 1);
    }
}

static char *scenario_of(const json_t *cluster, const char *name,
                         const char *strategy)
{
    const json_t *scenario;
    size_t index;
    json_array_foreach (json_object_get(cluster, "scenarios"), index,
                        scenario) {
        const json_t *own = json_object_get(scenario, "name");
        if (strcmp(json_string_value(own), name) == 0) {
            json_t *copy = json_deep_copy(scenario);
            char *text;
            json_object_set_new(copy, "strategy", json_string(strategy));
            json_object_set_new(copy, "method", json_string("nccl"));
            text = json_dumps(copy, 0);
            json_decref(copy);
            rename_nodes(text);
            return text;
        }
    }
    ck_abort_msg("no scenario %s", name);
    return NULL;
}

void gpu_example_make(struct planned *planned, const char *file,
                      const char *name, const char *strategy)
{
    const uint32_t slots[] = {8, 8};
    char path[64];
    AUTO_FREE char *model, *scenario;
    json_auto_t *cluster;
    snprintf(path, sizeof(path), "examples/%s.json", file);
    cluster = json_load_file(path, 0, NULL);
    ck_assert_msg(cluster != NULL, "cannot read %s", path);
    model = inline_model(cluster);
    scenario = scenario_of(cluster, name, strategy);
    ck_assert_msg(planned_make(planned, model, scenario, slots,
                               (uint32_t)json_array_size(
                                   json_object_get(cluster, "nodes"))) == RF_OK,
                  "%s: %s", path, planned->err.text);
}
