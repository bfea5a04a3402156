/*
 * Walks the records of results, and takes figures for predictions from their
 * probes. Nodes are probed in the memory of the scenario's method, links always
 * over TCP: host memory does not predict GPUs, nor TCP other transports. Pure.
 * See predict.h.
 */

#include <string.h>

#include "common/mem.h"
#include "coordinator/predict/predict.h"
#include "coordinator/records/fields.h"

/* --- Records of results --------------------------------------------------- */

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

/* --- Figures of probes ---------------------------------------------------- */

/* Takes the better of the present figures and those in one record's probe, for
 * nodes that copied at their usual speed; `only` NULL: all nodes. */
static void take_nodes(const struct rf_predict_speeds *speeds,
                       const json_t *record, bool after, const bool *only,
                       struct rf_capacities *links)
{
    const uint64_t copy_bytes = rf_predict_copy_bytes(record);
    const json_t *nodes =
        json_object_get(rf_predict_probe(record, after), "nodes");
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *node = json_array_get(nodes, i);
        const uint32_t n =
            rf_predict_node(speeds->config, json_object_get(node, "host"));
        const double all = rf_result_figure(node, NULL, "copy_gbytes_per_s");
        if (n != RF_NONE && (only == NULL || only[n]) &&
            rf_predict_is_usual(speeds, copy_bytes, n, all)) {
            double single =
                rf_result_figure(node, NULL, "single_copy_gbytes_per_s");
            links->copy_gbytes_per_s[n] =
                RF_MAX(links->copy_gbytes_per_s[n], all);
            links->copy1_gbytes_per_s[n] =
                RF_MAX(links->copy1_gbytes_per_s[n], single);
            links->scan_gbytes_per_s[n] =
                RF_MAX(links->scan_gbytes_per_s[n],
                       rf_result_figure(node, NULL, "scan_gbytes_per_s"));
        }
    }
}

/* From probes with buffers of that size; with `only`, from the other sizes, for
 * these nodes. */
static void take_size(const struct rf_result_set *set,
                      const struct rf_predict_speeds *speeds,
                      enum rf_memory_kind memory, uint64_t copy_bytes,
                      const bool *only, struct rf_capacities *links)
{
    struct rf_predict_walk walk = {.set = set, .memory = &memory};
    const json_t *record;
    while ((record = rf_predict_next(&walk)) != NULL) {
        if ((only == NULL) == (rf_predict_copy_bytes(record) == copy_bytes)) {
            take_nodes(speeds, record, false, only, links);
            take_nodes(speeds, record, true, only, links);
        }
    }
}

/* Likewise for links between nodes, whatever the nodes' speed. */
static void take_pairs(const struct rf_config *config, const json_t *probe,
                       struct rf_capacities *links)
{
    const json_t *pairs = json_object_get(probe, "pairs");
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        const json_t *pair = json_array_get(pairs, i);
        uint32_t a = rf_predict_node(config, json_object_get(pair, "from"));
        uint32_t b = rf_predict_node(config, json_object_get(pair, "to"));
        if (a != RF_NONE && b != RF_NONE) {
            size_t at = (size_t)a * links->n_nodes + b;
            double rate = rf_result_figure(pair, NULL, "gbytes_per_s");
            if (rate > links->pair_gbytes_per_s[at]) {
                links->pair_gbytes_per_s[at] = rate;
                links->pair_latency_us[at] =
                    rf_result_figure(pair, NULL, "latency_us");
            }
        }
    }
}

void rf_predict_links(const struct rf_result_set *set,
                      const struct rf_predict_speeds *speeds,
                      const struct rf_method_info *method, uint64_t copy_bytes,
                      struct rf_capacities *links)
{
    const enum rf_memory_kind memory = method->memory;
    const uint32_t n_nodes = speeds->config->n_nodes;
    struct rf_predict_walk all = {.set = set};
    bool *unknown = rf_xcalloc(n_nodes + 1, sizeof(*unknown));
    const json_t *record;
    take_size(set, speeds, memory, copy_bytes, NULL, links);
    for (uint32_t n = 0; n < n_nodes; n++) {
        unknown[n] = links->copy_gbytes_per_s[n] <= 0;
    }
    take_size(set, speeds, memory, copy_bytes, unknown, links);
    free(unknown);
    while (method->links_by_tcp && (record = rf_predict_next(&all)) != NULL) {
        take_pairs(speeds->config, rf_predict_probe(record, false), links);
        take_pairs(speeds->config, rf_predict_probe(record, true), links);
    }
}

/* Whether a result's yardsticks copied nothing from a rank to itself, which no
 * method sends through sockets: gather_broadcast unpacks what it has staged. */
static bool only_sent(const json_t *result)
{
    double own = 1;
    (void)rf_result_number(result, "plan", "bytes_local", &own);
    return own == 0 && strcmp(rf_result_text(result, "scenario", "strategy"),
                              rf_strategy_name(RF_GATHER_BROADCAST)) != 0;
}

/* What an entry of "links.methods" itself says of a node; 0: nothing. */
static double given_rate(const struct rf_config *config, const json_t *given,
                         uint32_t node, const char *key)
{
    const json_t *own = json_object_get(json_object_get(given, "nodes"),
                                        config->node_names[node]);
    const double rate = json_number_value(json_object_get(own, key));
    return rate > 0 ? rate : json_number_value(json_object_get(given, key));
}

void rf_predict_sockets(const struct rf_result_set *set,
                        const struct rf_predict_speeds *speeds,
                        const struct rf_method_info *method,
                        const json_t *given, struct rf_capacities *links)
{
    struct rf_predict_walk walk = {.set = set, .memory = &method->memory};
    struct rf_predict_other_speed other;
    const json_t *record, *node;
    size_t i;
    memset(links->copy_gbytes_per_s, 0,
           links->n_nodes * sizeof(*links->copy_gbytes_per_s));
    while ((record = rf_predict_next(&walk)) != NULL) {
        const json_t *result = set->files[walk.file].result;
        if (strcmp(rf_result_text(result, "scenario", "method"),
                   method->name) != 0 ||
            !only_sent(result) ||
            !rf_predict_was_usual(speeds, record, &other)) {
            continue;
        }
        json_array_foreach (rf_result_value(record, "bound.yardstick", "nodes"),
                            i, node) {
            const uint32_t n =
                rf_predict_node(speeds->config, json_object_get(node, "host"));
            if (n != RF_NONE) {
                links->copy_gbytes_per_s[n] =
                    RF_MAX(links->copy_gbytes_per_s[n],
                           rf_result_figure(node, NULL, "copy_gbytes_per_s"));
            }
        }
    }
    for (uint32_t n = 0; n < links->n_nodes; n++) {
        const double rate =
            given_rate(speeds->config, given, n, "copy_gbytes_per_s");
        links->copy_gbytes_per_s[n] =
            rate > 0 ? rate : links->copy_gbytes_per_s[n];
        links->copy1_gbytes_per_s[n] =
            given_rate(speeds->config, given, n, "single_copy_gbytes_per_s");
    }
}

/* With `only`, of those nodes, at any speed. */
static void take_conversions(const struct rf_predict_speeds *speeds,
                             const json_t *record, bool after, const bool *only,
                             struct rf_capacities *links)
{
    const uint64_t copy_bytes = rf_predict_copy_bytes(record);
    const json_t *node;
    size_t i;
    json_array_foreach (
        json_object_get(rf_predict_probe(record, after), "nodes"), i, node) {
        const uint32_t n =
            rf_predict_node(speeds->config, json_object_get(node, "host"));
        if (n != RF_NONE &&
            (only != NULL
                 ? only[n]
                 : rf_predict_is_usual(
                       speeds, copy_bytes, n,
                       rf_result_figure(node, NULL, "copy_gbytes_per_s")))) {
            links->convert_gbytes_per_s[n] =
                RF_MAX(links->convert_gbytes_per_s[n],
                       rf_result_figure(node, NULL, "convert_gbytes_per_s"));
        }
    }
}

#define NO_FORMAT "-" /* as rf_result_text() says of what is absent */

/* What each pool converts to. */
struct formats {
    const char *of[RF_POOLS_MAX];
    size_t n;
};

static struct formats formats_of_spec(const struct rf_spec *spec)
{
    struct formats out = {.n = spec->n_sides - RF_INFER};
    for (size_t i = 0; i < out.n; i++) {
        const struct rf_quant_format *format =
            spec->side[RF_INFER + i].quantize.format;
        out.of[i] = format != NULL ? format->name : NO_FORMAT;
    }
    return out;
}

static struct formats formats_of_result(const json_t *result)
{
    const json_t *pools = rf_result_value(result, "scenario", "infer");
    struct formats out = {
        .of = {rf_result_text(result, "scenario.quantize", "format")}, .n = 1};
    if (json_is_array(pools)) {
        out.n = RF_MIN(json_array_size(pools), (size_t)RF_POOLS_MAX);
        for (size_t i = 0; i < out.n; i++) {
            out.of[i] =
                rf_result_text(json_array_get(pools, i), "quantize", "format");
        }
    }
    return out;
}

/* The only one, NO_FORMAT if there is none; NULL: there are several. */
static const char *only_of(const struct formats *formats)
{
    const char *only = NO_FORMAT;
    for (size_t i = 0; i < formats->n; i++) {
        const char *name = formats->of[i];
        if (strcmp(only, NO_FORMAT) == 0) {
            only = name;
        } else if (strcmp(name, NO_FORMAT) != 0 && strcmp(name, only) != 0) {
            return NULL;
        }
    }
    return only;
}

/* Nodes convert to the same: one format wherever it is, or those of pools. */
static bool are_same(const struct formats *a, const struct formats *b)
{
    const char *x = only_of(a), *y = only_of(b);
    bool same = a->n == b->n;
    for (size_t i = 0; i < a->n && same; i++) {
        same = strcmp(a->of[i], b->of[i]) == 0;
    }
    return same || (x != NULL && y != NULL && strcmp(x, y) == 0);
}

void rf_predict_conversions(const struct rf_result_set *set,
                            const struct rf_predict_speeds *speeds,
                            const struct rf_spec *spec,
                            struct rf_capacities *links)
{
    const enum rf_memory_kind memory = RF_HOST_MEMORY;
    const struct formats wanted = formats_of_spec(spec);
    bool *unknown = rf_xcalloc(links->n_nodes + 1, sizeof(*unknown));
    for (int pass = 0; pass < 2; pass++) {
        struct rf_predict_walk walk = {.set = set, .memory = &memory};
        const bool *only = pass == 0 ? NULL : unknown;
        const json_t *record;
        while ((record = rf_predict_next(&walk)) != NULL) {
            const struct formats found =
                formats_of_result(set->files[walk.file].result);
            if (are_same(&found, &wanted)) {
                take_conversions(speeds, record, false, only, links);
                take_conversions(speeds, record, true, only, links);
            }
        }
        for (uint32_t n = 0; n < links->n_nodes; n++) {
            unknown[n] = links->convert_gbytes_per_s[n] <= 0;
        }
    }
    free(unknown);
}

static bool names_node(const struct rf_config *config, const json_t *probe)
{
    const json_t *nodes = json_object_get(probe, "nodes"), *node;
    size_t i;
    json_array_foreach (nodes, i, node) {
        if (rf_predict_node(config, json_object_get(node, "host")) != RF_NONE) {
            return true;
        }
    }
    return false;
}

bool rf_predict_knows_nodes(const struct rf_result_set *set,
                            const struct rf_config *config)
{
    struct rf_predict_walk walk = {.set = set};
    const json_t *record;
    while ((record = rf_predict_next(&walk)) != NULL) {
        if (names_node(config, rf_predict_probe(record, false)) ||
            names_node(config, rf_predict_probe(record, true))) {
            return true;
        }
    }
    return false;
}
