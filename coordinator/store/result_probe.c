/*
 * The probe of a run. Shared machines drift, and a link can do what it did at
 * its best moment, so each figure keeps its best value (highest rate, lowest
 * latency), as for a scenario's bound. See docs/RESULTS.md.
 */
#include "coordinator/store/result_probe.h"

#include <string.h>

#include "common/mem.h"
#include "common/json_schema.h"
#include "coordinator/store/result_bound.h"

/* Whether both are of the same pair, or of the same node with equal buffer
 * sizes. */
static bool same_place(const json_t *a, const json_t *b)
{
    static const char *const keys[] = {"host", "copy_bytes", "from", "to"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys); i++) {
        if (!json_equal(json_object_get(a, keys[i]),
                        json_object_get(b, keys[i])) &&
            json_object_get(a, keys[i]) != json_object_get(b, keys[i])) {
            return false;
        }
    }
    return true;
}

static json_t *find_place(json_t *list, const json_t *entry)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (same_place(json_array_get(list, i), entry)) {
            return json_array_get(list, i);
        }
    }
    return NULL;
}

static void keep_better(json_t *kept, const json_t *entry)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)entry, key, value) {
        double now = json_number_value(value);
        double before = json_number_value(json_object_get(kept, key));
        bool less_is_better = strcmp(key, "latency_us") == 0;
        if (json_is_number(value) &&
            (less_is_better ? now < before : now > before)) {
            json_object_set(kept, key, value);
        }
    }
}

static void add_list(json_t *document, const char *name, const json_t *from)
{
    json_t *probe = json_object_get(document, "probe");
    for (size_t i = 0; i < json_array_size(from); i++) {
        json_t *entry = json_array_get(from, i), *kept;
        if (!json_is_object(probe)) {
            probe = json_pack("{s:[], s:[]}", "nodes", "pairs");
            json_object_set_new(document, "probe", probe);
        }
        kept = find_place(json_object_get(probe, name), entry);
        if (kept != NULL) {
            keep_better(kept, entry);
        } else {
            json_array_append_new(json_object_get(probe, name),
                                  json_deep_copy(entry));
        }
    }
}

/* A new reference. */
static json_t *with_size(const json_t *nodes, const json_t *probe)
{
    json_t *out = json_deep_copy(nodes), *node;
    size_t i;
    json_array_foreach (out, i, node) {
        json_object_set(node, "copy_bytes",
                        json_object_get(probe, "copy_bytes"));
    }
    return out;
}

void rf_result_probe_add(json_t *document, const json_t *result)
{
    static const char *const moments[] = {"before", "after"};
    const json_t *probe =
        json_object_get(json_object_get(result, "bound"), "probe");
    for (size_t i = 0; i < RF_ARRAY_SIZE(moments); i++) {
        const json_t *links = json_object_get(probe, moments[i]);
        json_t *nodes = with_size(json_object_get(links, "nodes"), probe);
        add_list(document, "nodes", nodes);
        json_decref(nodes);
        add_list(document, "pairs", json_object_get(links, "pairs"));
    }
}

json_t *rf_result_probe_schema(void)
{
    json_t *out = rf_result_bound_probe_schema();
    json_t *nodes =
        json_object_get(json_object_get(out, "properties"), "nodes");
    rf_json_schema_describe(json_object_get(nodes, "items"), "copy_bytes",
                            RF_NULLABLE, rf_json_schema_count());
    return out;
}
