/*
 * How fast nodes usually copy, by the probes of results, so that results of a
 * machine that was another one for a while can be left out. Pure. See
 * predict.h.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/commands/predict/predict.h"
#include "coordinator/results/fields.h"
#include "transport/method.h"

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

bool rf_predict_in_memory(const json_t *result, enum rf_memory_kind memory)
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

static double copy_figure(const json_t *node)
{
    double figure = 0;
    (void)rf_result_number(node, NULL, "copy_gbytes_per_s", &figure);
    return figure;
}

/* --- What probes found -----------------------------------------------------
 */

struct found {
    double *figures;
    size_t n, cap;
    size_t n_records; /* with a figure of the node */
    bool in_record;   /* the one at hand has one */
};

static void find(const struct rf_config *config, const json_t *probe,
                 struct found *found)
{
    const json_t *nodes = json_object_get(probe, "nodes"), *node;
    size_t i;
    json_array_foreach (nodes, i, node) {
        const uint32_t n =
            rf_predict_node(config, json_object_get(node, "host"));
        const double figure = copy_figure(node);
        if (n != RF_NONE && figure > 0) {
            RF_PUSH(found[n].figures, found[n].n, found[n].cap, figure);
            found[n].in_record = true;
        }
    }
}

static void find_all(const struct rf_result_set *set,
                     const struct rf_config *config, enum rf_memory_kind memory,
                     struct found *found)
{
    const json_t *record;
    for (size_t f = 0; f < set->n; f++) {
        const json_t *result = set->files[f].result;
        for (size_t r = 0; rf_predict_in_memory(result, memory) &&
                           (record = rf_predict_record(result, r)) != NULL;
             r++) {
            find(config, rf_predict_probe(record, false), found);
            find(config, rf_predict_probe(record, true), found);
            for (uint32_t n = 0; n < config->n_nodes; n++) {
                found[n].n_records += found[n].in_record;
                found[n].in_record = false;
            }
        }
    }
}

static int compare_figures(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One that was found, not the middle of two: a machine may have two speeds. */
static double median_of(struct found *found)
{
    if (found->n_records < RF_PREDICT_SPEED_RECORDS) {
        return 0;
    }
    qsort(found->figures, found->n, sizeof(*found->figures), compare_figures);
    return found->figures[(found->n - 1) / 2];
}

/* --- Comparing with it -----------------------------------------------------
 */

bool rf_predict_is_usual(const struct rf_predict_speeds *speeds, uint32_t node,
                         double gbytes_per_s)
{
    const double usual = speeds->copy_gbytes_per_s[node];
    return usual <= 0 || (gbytes_per_s <= usual * RF_PREDICT_SPEED_WITHIN &&
                          usual <= gbytes_per_s * RF_PREDICT_SPEED_WITHIN);
}

/* How many of a probe's nodes have a figure to compare; `other` gets one that
 * is off. */
static size_t compare_nodes(const struct rf_predict_speeds *speeds,
                            const json_t *probe,
                            struct rf_predict_other_speed *other)
{
    const json_t *nodes = json_object_get(probe, "nodes"), *node;
    size_t i, n_compared = 0;
    json_array_foreach (nodes, i, node) {
        const uint32_t n =
            rf_predict_node(speeds->config, json_object_get(node, "host"));
        const double figure = copy_figure(node);
        if (n == RF_NONE || figure <= 0 || speeds->copy_gbytes_per_s[n] <= 0) {
            continue;
        }
        n_compared++;
        if (!rf_predict_is_usual(speeds, n, figure)) {
            *other = (struct rf_predict_other_speed){
                speeds->config->node_names[n], figure,
                speeds->copy_gbytes_per_s[n]};
        }
    }
    return n_compared;
}

static size_t compare_record(const struct rf_predict_speeds *speeds,
                             const json_t *record,
                             struct rf_predict_other_speed *other)
{
    *other = (struct rf_predict_other_speed){.node = NULL};
    return compare_nodes(speeds, rf_predict_probe(record, false), other) +
           compare_nodes(speeds, rf_predict_probe(record, true), other);
}

bool rf_predict_was_usual(const struct rf_predict_speeds *speeds,
                          const json_t *record,
                          struct rf_predict_other_speed *other)
{
    (void)compare_record(speeds, record, other);
    return other->node == NULL;
}

/* Whether most records say that this is what is usual. */
static bool are_usual(const struct rf_result_set *set,
                      enum rf_memory_kind memory,
                      const struct rf_predict_speeds *speeds)
{
    struct rf_predict_other_speed other;
    size_t n = 0, n_usual = 0;
    const json_t *record;
    for (size_t f = 0; f < set->n; f++) {
        const json_t *result = set->files[f].result;
        for (size_t r = 0; rf_predict_in_memory(result, memory) &&
                           (record = rf_predict_record(result, r)) != NULL;
             r++) {
            if (compare_record(speeds, record, &other) > 0) {
                n++;
                n_usual += other.node == NULL;
            }
        }
    }
    return 2 * n_usual > n;
}

/* --- All of them -----------------------------------------------------------
 */

void rf_predict_speeds_init(const struct rf_result_set *set,
                            const struct rf_config *config,
                            enum rf_memory_kind memory,
                            struct rf_predict_speeds *speeds)
{
    struct found *found = rf_xcalloc(config->n_nodes + 1, sizeof(*found));
    *speeds = (struct rf_predict_speeds){
        .config = config,
        .copy_gbytes_per_s = rf_xcalloc(config->n_nodes + 1,
                                        sizeof(*speeds->copy_gbytes_per_s))};
    find_all(set, config, memory, found);
    for (uint32_t n = 0; n < config->n_nodes; n++) {
        speeds->copy_gbytes_per_s[n] = median_of(&found[n]);
        free(found[n].figures);
    }
    free(found);
    if (!are_usual(set, memory, speeds)) {
        memset(speeds->copy_gbytes_per_s, 0,
               config->n_nodes * sizeof(*speeds->copy_gbytes_per_s));
    }
}

void rf_predict_speeds_free(struct rf_predict_speeds *speeds)
{
    free(speeds->copy_gbytes_per_s);
    speeds->copy_gbytes_per_s = NULL;
}
