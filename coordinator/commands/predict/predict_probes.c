/*
 * Figures for predictions from the probes of runs that were. Nodes are probed
 * in the memory of the scenario's method, links always over TCP: what host
 * memory does says nothing of GPUs, nor TCP of their links. Pure. See
 * predict.h.
 */
#include <string.h>

#include "common/mem.h"
#include "coordinator/commands/predict/predict.h"
#include "coordinator/results/fields.h"
#include "transport/method.h"

static uint32_t node_by_name(const struct rf_config *config, const char *name)
{
    for (uint32_t i = 0; name != NULL && i < config->n_nodes; i++) {
        if (strcmp(config->node_names[i], name) == 0) {
            return i;
        }
    }
    return RF_NONE;
}

/* One of the two probes of each result: before it and after it. */
static const json_t *probe_of(const struct rf_result_set *set, size_t i)
{
    const json_t *bound = json_object_get(set->files[i / 2].result, "bound");
    return json_object_get(json_object_get(bound, "probe"),
                           i % 2 == 0 ? "before" : "after");
}

static double number_of(const json_t *object, const char *key)
{
    double value = 0;
    (void)rf_result_number(object, NULL, key, &value);
    return value;
}

/* Takes the better of what is there and what one probe says of the nodes. */
static void take_nodes(const struct rf_config *config, const json_t *probe,
                       struct rf_links *links)
{
    const json_t *nodes = json_object_get(probe, "nodes");
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *node = json_array_get(nodes, i);
        uint32_t n = node_by_name(
            config, json_string_value(json_object_get(node, "host")));
        if (n != RF_NONE) {
            double all = number_of(node, "copy_gbytes_per_s");
            double single = number_of(node, "single_copy_gbytes_per_s");
            links->copy_gbytes_per_s[n] =
                RF_MAX(links->copy_gbytes_per_s[n], all);
            links->copy1_gbytes_per_s[n] =
                RF_MAX(links->copy1_gbytes_per_s[n], single);
        }
    }
}

/* Likewise of the links between them. */
static void take_pairs(const struct rf_config *config, const json_t *probe,
                       struct rf_links *links)
{
    const json_t *pairs = json_object_get(probe, "pairs");
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        const json_t *pair = json_array_get(pairs, i);
        uint32_t a = node_by_name(
            config, json_string_value(json_object_get(pair, "from")));
        uint32_t b = node_by_name(
            config, json_string_value(json_object_get(pair, "to")));
        if (a != RF_NONE && b != RF_NONE) {
            size_t at = (size_t)a * links->n_nodes + b;
            double rate = number_of(pair, "gbytes_per_s");
            if (rate > links->pair_gbytes_per_s[at]) {
                links->pair_gbytes_per_s[at] = rate;
                links->pair_latency_us[at] = number_of(pair, "latency_us");
            }
        }
    }
}

void rf_predict_links(const struct rf_result_set *set,
                      const struct rf_config *config,
                      enum rf_memory_kind memory, struct rf_links *links)
{
    for (size_t i = 0; i < 2 * set->n; i++) {
        const json_t *result = set->files[i / 2].result;
        const struct rf_method_info *info =
            rf_method_info_find(rf_result_text(result, "scenario", "method"));
        if (info != NULL && info->memory == memory) {
            take_nodes(config, probe_of(set, i), links);
        }
        if (memory == RF_HOST_MEMORY) {
            take_pairs(config, probe_of(set, i), links);
        }
    }
}

bool rf_predict_knows_nodes(const struct rf_result_set *set,
                            const struct rf_config *config)
{
    for (size_t i = 0; i < 2 * set->n; i++) {
        const json_t *nodes = json_object_get(probe_of(set, i), "nodes");
        for (size_t n = 0; n < json_array_size(nodes); n++) {
            const json_t *host =
                json_object_get(json_array_get(nodes, n), "host");
            if (node_by_name(config, json_string_value(host)) != RF_NONE) {
                return true;
            }
        }
    }
    return false;
}
