/*
 * What is read of results: their records, one after the other, and the probes
 * of each. Pure. See predict.h.
 */
#include <string.h>

#include "coordinator/predict/predict.h"
#include "coordinator/records/fields.h"

uint32_t rf_predict_node(const struct rf_config *config, const json_t *host)
{
    const char *name = json_string_value(host);
    for (uint32_t i = 0; name != NULL && i < config->n_nodes; i++) {
        if (strcmp(config->node_names[i], name) == 0) {
            return i;
        }
    }
    return RF_NONE;
}

static bool is_in_memory(const json_t *result, enum rf_memory_kind memory)
{
    const struct rf_method_info *info =
        rf_method_info_find(rf_result_text(result, "scenario", "method"));
    return info != NULL && info->memory == memory;
}

const json_t *rf_predict_record(const json_t *result, size_t i)
{
    const json_t *repeats = json_object_get(result, "repeats");
    return json_array_size(repeats) > 0 ? json_array_get(repeats, i)
           : i == 0                     ? result
                                        : NULL;
}

const json_t *rf_predict_probe(const json_t *record, bool after)
{
    const json_t *bound = json_object_get(record, "bound");
    return json_object_get(json_object_get(bound, "probe"),
                           after ? "after" : "before");
}

uint64_t rf_predict_copy_bytes(const json_t *record)
{
    const json_t *bound = json_object_get(record, "bound");
    const json_t *bytes =
        json_object_get(json_object_get(bound, "probe"), "copy_bytes");
    return json_integer_value(bytes) > 0 ? (uint64_t)json_integer_value(bytes)
                                         : 0;
}

const json_t *rf_predict_next(struct rf_predict_walk *walk)
{
    for (; walk->file < walk->set->n; walk->file++, walk->record = 0) {
        const json_t *result = walk->set->files[walk->file].result;
        const json_t *record = rf_predict_record(result, walk->record);
        if (record != NULL &&
            (walk->memory == NULL || is_in_memory(result, *walk->memory))) {
            walk->record++;
            return record;
        }
    }
    return NULL;
}
