/*
 * Usual copy speeds of nodes, from the probes of results, to leave out results
 * of a machine that temporarily ran at a different speed. Pure. See predict.h.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"
#include "coordinator/predict/predict.h"
#include "coordinator/records/fields.h"

static double copy_figure(const json_t *node)
{
    return rf_result_figure(node, NULL, "copy_gbytes_per_s");
}

/* --- Speeds in probes ----------------------------------------------------- */

/* The slowest and the fastest figure of one node in one record. */
struct speed_range {
    double low, high;
};

/* For one node. */
struct found {
    double *figures;
    size_t n, cap;
    struct speed_range *records; /* records with a figure of the node */
    size_t n_records, records_cap;
    struct speed_range at_hand; /* of the current record; 0: none */
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
            struct speed_range *range = &found[n].at_hand;
            range->low = range->low > 0 ? RF_MIN(range->low, figure) : figure;
            range->high = RF_MAX(range->high, figure);
            RF_PUSH(found[n].figures, found[n].n, found[n].cap, figure);
        }
    }
}

static void end_record(struct found *found)
{
    if (found->at_hand.low > 0) {
        RF_PUSH(found->records, found->n_records, found->records_cap,
                found->at_hand);
    }
    found->at_hand = (struct speed_range){0, 0};
}

static bool is_near(double usual, double gbytes_per_s)
{
    return gbytes_per_s <= usual * RF_PREDICT_SPEED_WITHIN &&
           usual <= gbytes_per_s * RF_PREDICT_SPEED_WITHIN;
}

static size_t count_near(const struct found *found, double usual)
{
    size_t n = 0;
    for (size_t i = 0; i < found->n_records; i++) {
        n += is_near(usual, found->records[i].low) &&
             is_near(usual, found->records[i].high);
    }
    return n;
}

/* The figure near to most records; if there are several, the middle one. */
static double usual_of(struct found *found)
{
    size_t most = 0, n = 0;
    if (found->n_records < RF_PREDICT_SPEED_RECORDS) {
        return 0;
    }
    qsort(found->figures, found->n, sizeof(*found->figures), rf_stats_by_value);
    for (size_t i = 0; i < found->n; i++) {
        const size_t near = count_near(found, found->figures[i]);
        n = near > most ? 0 : n;
        most = RF_MAX(most, near);
        if (near == most) {
            found->figures[n++] = found->figures[i];
        }
    }
    return found->figures[(n - 1) / 2];
}

/* Finds the usual speeds for one buffer size. */
static void find_speed(struct rf_predict_walk walk,
                       const struct rf_config *config,
                       struct rf_predict_speed *speed)
{
    struct found *found = rf_xcalloc(config->n_nodes + 1, sizeof(*found));
    const json_t *record;
    while ((record = rf_predict_next(&walk)) != NULL) {
        if (rf_predict_copy_bytes(record) != speed->copy_bytes) {
            continue;
        }
        find(config, rf_predict_probe(record, false), found);
        find(config, rf_predict_probe(record, true), found);
        for (uint32_t n = 0; n < config->n_nodes; n++) {
            end_record(&found[n]);
        }
    }
    for (uint32_t n = 0; n < config->n_nodes; n++) {
        speed->copy_gbytes_per_s[n] = usual_of(&found[n]);
        free(found[n].figures);
        free(found[n].records);
    }
    free(found);
}

/* --- Comparison ----------------------------------------------------------- */

static const struct rf_predict_speed *
speed_for(const struct rf_predict_speeds *speeds, uint64_t copy_bytes)
{
    for (size_t i = 0; i < speeds->n; i++) {
        if (speeds->of[i].copy_bytes == copy_bytes) {
            return &speeds->of[i];
        }
    }
    return NULL;
}

static bool is_usual(const struct rf_predict_speed *speed, uint32_t node,
                     double gbytes_per_s)
{
    const double usual = speed == NULL ? 0 : speed->copy_gbytes_per_s[node];
    return usual <= 0 || is_near(usual, gbytes_per_s);
}

bool rf_predict_is_usual(const struct rf_predict_speeds *speeds,
                         uint64_t copy_bytes, uint32_t node,
                         double gbytes_per_s)
{
    return is_usual(speed_for(speeds, copy_bytes), node, gbytes_per_s);
}

/* Number of the probe's nodes that could be compared; `other` gets an unusual
 * one, if any. */
static size_t compare_nodes(const struct rf_config *config,
                            const struct rf_predict_speed *speed,
                            const json_t *probe,
                            struct rf_predict_other_speed *other)
{
    const json_t *nodes = json_object_get(probe, "nodes"), *node;
    size_t i, n_compared = 0;
    json_array_foreach (nodes, i, node) {
        const uint32_t n =
            rf_predict_node(config, json_object_get(node, "host"));
        const double figure = copy_figure(node);
        if (n == RF_NONE || figure <= 0 || speed->copy_gbytes_per_s[n] <= 0) {
            continue;
        }
        n_compared++;
        if (!is_usual(speed, n, figure)) {
            *other = (struct rf_predict_other_speed){
                config->node_names[n], figure, speed->copy_gbytes_per_s[n]};
        }
    }
    return n_compared;
}

static size_t compare_record(const struct rf_config *config,
                             const struct rf_predict_speed *speed,
                             const json_t *record,
                             struct rf_predict_other_speed *other)
{
    *other = (struct rf_predict_other_speed){.node = NULL};
    if (speed == NULL) {
        return 0;
    }
    return compare_nodes(config, speed, rf_predict_probe(record, false),
                         other) +
           compare_nodes(config, speed, rf_predict_probe(record, true), other);
}

bool rf_predict_was_usual(const struct rf_predict_speeds *speeds,
                          const json_t *record,
                          struct rf_predict_other_speed *other)
{
    const struct rf_predict_speed *speed =
        speed_for(speeds, rf_predict_copy_bytes(record));
    (void)compare_record(speeds->config, speed, record, other);
    return other->node == NULL;
}

/* Whether `n_usual` of `n` records are enough to call a speed usual. */
static bool enough(size_t n_usual, size_t n)
{
    return 2 * n_usual > n ||
           (3 * n_usual >= n && n_usual >= RF_PREDICT_SPEED_RECORDS);
}

/* Drops a speed if too few records have it on all their nodes. */
static void settle(struct rf_predict_walk walk, const struct rf_config *config,
                   struct rf_predict_speed *speed, size_t *n_unsettled)
{
    struct rf_predict_other_speed other;
    size_t n = 0, n_usual = 0;
    const json_t *record;
    while ((record = rf_predict_next(&walk)) != NULL) {
        if (rf_predict_copy_bytes(record) == speed->copy_bytes &&
            compare_record(config, speed, record, &other) > 0) {
            n++;
            n_usual += other.node == NULL;
        }
    }
    if (!enough(n_usual, n)) {
        *n_unsettled += n;
        memset(speed->copy_gbytes_per_s, 0,
               config->n_nodes * sizeof(*speed->copy_gbytes_per_s));
    }
}

/* --- All speeds ----------------------------------------------------------- */

void rf_predict_speeds_init(const struct rf_result_set *set,
                            const struct rf_config *config,
                            enum rf_memory_kind memory,
                            struct rf_predict_speeds *speeds)
{
    const struct rf_predict_walk start = {.set = set, .memory = &memory};
    struct rf_predict_walk walk = start;
    const json_t *record;
    *speeds = (struct rf_predict_speeds){.config = config};
    while ((record = rf_predict_next(&walk)) != NULL) {
        const uint64_t bytes = rf_predict_copy_bytes(record);
        if (speed_for(speeds, bytes) == NULL) {
            const struct rf_predict_speed speed = {
                bytes, rf_xcalloc(config->n_nodes + 1,
                                  sizeof(*speed.copy_gbytes_per_s))};
            RF_PUSH(speeds->of, speeds->n, speeds->cap, speed);
        }
    }
    for (size_t i = 0; i < speeds->n; i++) {
        find_speed(start, config, &speeds->of[i]);
        settle(start, config, &speeds->of[i], &speeds->n_unsettled);
    }
}

void rf_predict_speeds_free(struct rf_predict_speeds *speeds)
{
    for (size_t i = 0; i < speeds->n; i++) {
        free(speeds->of[i].copy_gbytes_per_s);
    }
    free(speeds->of);
    *speeds = (struct rf_predict_speeds){.config = NULL};
}
