/*
 * Figures for predictions: arithmetic, and which figures are missing. Pure. See
 * predict.h.
 */
#include "coordinator/predict/predict.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/text.h"
#include "planner/plan/quantize.h"
#include "planner/predict/encoded.h"
#include "transport/info/disk_reads.h"
#include "transport/info/method_info.h"

/* A part of a rank's training memory that it writes to its file. */
struct held_range {
    uint32_t rank;
    uint64_t at, end;
};

struct held_ranges {
    struct held_range *of;
    size_t n, capacity;
};

static int by_rank_and_start(const void *a, const void *b)
{
    const struct held_range *x = a, *y = b;
    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank)
                              : (x->at > y->at) - (x->at < y->at);
}

/* Adds the bytes covered by each rank's ranges to `written`. */
static void add_held(const struct held_ranges *ranges, uint64_t *written)
{
    uint64_t end = 0;
    if (ranges->n > 0) {
        qsort(ranges->of, ranges->n, sizeof(*ranges->of), by_rank_and_start);
    }
    for (size_t i = 0; i < ranges->n; i++) {
        const struct held_range *range = &ranges->of[i];
        const bool first = i == 0 || range->rank != ranges->of[i - 1].rank;
        const uint64_t from = first ? range->at : RF_MAX(range->at, end);
        written[range->rank] += range->end - RF_MIN(from, range->end);
        end = first ? range->end : RF_MAX(end, range->end);
    }
}

/* Bytes that each rank writes, reads and scatters. */
static void load_ranks(const struct rf_schedule *schedule, uint64_t *written,
                       uint64_t *read, uint64_t *scattered)
{
    struct held_ranges held = {.n = 0};
    struct rf_schedule_walk walk;
    const struct rf_op *op;
    rf_schedule_walk_start(&walk, schedule);
    while ((op = rf_schedule_walk_next(&walk)) != NULL) {
        if (rf_op_reads_held(op)) {
            const struct held_range range = {op->src, op->src_offset,
                                             rf_op_src_end(op)};
            RF_PUSH(held.of, held.n, held.capacity, range);
        } else {
            written[op->src] += rf_op_bytes(op);
        }
        read[op->dst] += rf_disk_reads_bytes(op);
        scattered[op->dst] += rf_disk_reads_scattered(op);
    }
    add_held(&held, written);
    free(held.of);
}

static struct rf_file_load sum_up(const uint64_t *bytes, uint32_t n_ranks)
{
    struct rf_file_load load = {0, 0};
    for (uint32_t r = 0; r < n_ranks; r++) {
        load.all += bytes[r];
        load.most = RF_MAX(load.most, bytes[r]);
    }
    return load;
}

/* For the busiest node, by the sum over its ranks. */
static struct rf_file_load busiest_node(const struct rf_world *world,
                                        const uint64_t *bytes)
{
    struct rf_file_load load = sum_up(bytes, world->n_ranks);
    uint64_t *nodes = rf_xcalloc(world->n_nodes, sizeof(*nodes));
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        nodes[world->ranks[r].node] += bytes[r];
    }
    load.all = sum_up(nodes, world->n_nodes).most;
    free(nodes);
    return load;
}

void rf_predict_file_loads(const struct rf_world *world,
                           const struct rf_schedule *schedule,
                           struct rf_file_loads *out)
{
    const uint32_t n = world->n_ranks;
    uint64_t *written = rf_xcalloc(n, sizeof(*written));
    uint64_t *read = rf_xcalloc(n, sizeof(*read));
    uint64_t *scattered = rf_xcalloc(n, sizeof(*scattered));
    load_ranks(schedule, written, read, scattered);
    out->written = sum_up(written, n);
    out->read = sum_up(read, n);
    out->scattered = busiest_node(world, scattered);
    free(written);
    free(read);
    free(scattered);
}

/* The longer of the times for all ranks together and for the busiest alone; a
 * rate of 0 is no limit. */
static double file_ms(struct rf_file_load load, double rate, double single)
{
    const double together = rate > 0 ? (double)load.all / rate / 1e6 : 0;
    return single > 0 ? RF_MAX(together, (double)load.most / single / 1e6)
                      : together;
}

double rf_predict_disk_ms(const struct rf_link_figures *figures,
                          const struct rf_file_loads *loads)
{
    return file_ms(loads->written, figures->write_gbytes_per_s,
                   figures->single_write_gbytes_per_s) +
           file_ms(loads->read, figures->read_gbytes_per_s,
                   figures->single_read_gbytes_per_s) +
           RF_PREDICT_CACHED_COPY * file_ms(loads->scattered,
                                            figures->copy_gbytes_per_s,
                                            figures->single_copy_gbytes_per_s);
}

void rf_predict_step(const struct rf_timeline *timeline,
                     struct rf_prediction *p)
{
    double refit_s = timeline->refits * p->ms / 1e3;
    p->step_s =
        timeline->rollout_s + timeline->train_s + timeline->other_s + refit_s;
    p->share = p->step_s > 0 ? refit_s / p->step_s : 0;
}

enum use { COPYING, SOCKETS, LINKS_OUT, LINKS_IN, N_USES };

/* Whether the schedule uses something without a figure. */
static bool lacks(const struct rf_schedule *schedule,
                  const struct rf_capacities *links, enum use use, uint32_t n)
{
    const uint64_t sent = links->sends_inside ? schedule->node_peer[n] : 0;
    switch (use) {
    case COPYING:
        return schedule->node_copy[n] > sent &&
               RF_MAX(links->copy_gbytes_per_s[n],
                      links->own_gbytes_per_s[n]) <= 0;
    case SOCKETS:
        return sent > 0 && links->copy_gbytes_per_s[n] <= 0;
    case LINKS_OUT:
        return schedule->node_send[n] > 0 &&
               rf_capacities_capacity(links, n, true) <= 0;
    default:
        return schedule->node_recv[n] > 0 &&
               rf_capacities_capacity(links, n, false) <= 0;
    }
}

static bool any_lacks(const struct rf_schedule *schedule,
                      const struct rf_capacities *links, enum use use)
{
    for (uint32_t n = 0; n < links->n_nodes; n++) {
        if (lacks(schedule, links, use, n)) {
            return true;
        }
    }
    return false;
}

bool rf_predict_lacks_links(const struct rf_schedule *schedule,
                            const struct rf_capacities *links)
{
    return any_lacks(schedule, links, LINKS_OUT) ||
           any_lacks(schedule, links, LINKS_IN);
}

/* "no figures for copying on a, b; for links out of a", or NULL. */
static char *lacking_rates(const struct rf_schedule *schedule,
                           const struct rf_capacities *links,
                           const char *const *names,
                           const struct rf_method_info *info)
{
    const bool device = info->memory == RF_DEVICE_MEMORY;
    const char *const uses[N_USES] = {
        device ? "copying in GPU memory on" : "copying on", "sockets inside",
        device ? "GPU links out of" : "links out of",
        device ? "GPU links into" : "links into"};
    char *list = NULL;
    for (size_t use = 0; use < N_USES; use++) {
        char *nodes = NULL;
        for (uint32_t n = 0; n < links->n_nodes; n++) {
            if (lacks(schedule, links, (enum use)use, n)) {
                rf_text_add(&nodes, ", ", "%s", names[n]);
            }
        }
        if (nodes != NULL) {
            rf_text_add(&list, "; ", "%sfor %s %s",
                        list == NULL ? "no figures " : "", uses[use], nodes);
        }
        free(nodes);
    }
    return list;
}

/* The missing figures, and where to get them; takes `lacking`. `others`: beside
 * those of sockets. */
static char *with_advice(char *lacking, const struct rf_method_info *info,
                         bool sockets, bool others, bool named)
{
    if (sockets) {
        rf_text_add(&lacking, "; ",
                    "set copy_gbytes_per_s in links.methods.%s, or %s "
                    "with method %s inside these nodes, which have yardsticks",
                    info->name,
                    named ? "add to the named results some" : "name results",
                    info->name);
        if (others) {
            rf_text_add(&lacking, "; ",
                        "set the others in \"links\", or run this scenario on "
                        "these nodes");
        }
    } else if (info->links_by_tcp || !info->crosses_nodes) {
        rf_text_add(&lacking, "; ",
                    named ? "the named results do not have them: run this "
                            "scenario on these nodes, or set them in \"links\""
                          : "set them in \"links\", or name results of these "
                            "nodes");
    } else if (info->memory == RF_HOST_MEMORY) {
        rf_text_add(&lacking, "; ",
                    "set nic_gbytes_per_s or link_gbytes_per_s in \"links\" "
                    "(TCP probes do not count)");
    } else {
        rf_text_add(
            &lacking, "; ",
            "set copy_gbytes_per_s and link_gbytes_per_s in links.methods.%s "
            "(probes of host memory and TCP do not count)",
            info->name);
    }
    return lacking;
}

/* Says what to do about a figure that `nodes` lack; NULL, if none does. Takes
 * `nodes`. */
static char *figure_gap(char *nodes, const char *what, const char *figure,
                        const char *with, bool named)
{
    char *gap = NULL;
    if (nodes != NULL && named) {
        gap = rf_xasprintf("no figure for %s on %s in the named results; run a "
                           "scenario with %s there, or set %s in \"links\"",
                           what, nodes, with, figure);
    } else if (nodes != NULL) {
        gap = rf_xasprintf("no figure for %s on %s; set %s in \"links\", or "
                           "name results of these nodes with %s",
                           what, nodes, figure, with);
    }
    free(nodes);
    return gap;
}

uint64_t rf_predict_compared(const struct rf_schedule *schedule,
                             const struct rf_method_info *info,
                             enum rf_encoding encoding, uint32_t node)
{
    return encoding != RF_ENCODING_AUTO ? schedule->node_copy[node]
           : info->copies_inside        ? 0
                                        : schedule->node_peer[node];
}

/* Why the time of the scenario's encoding is not known, or NULL. */
static char *encoding_gap(const struct rf_predict_input *input,
                          const struct rf_method_info *info)
{
    const struct rf_scenario *scenario = input->scenario;
    const struct rf_schedule *schedule = scenario->schedule;
    const char *why =
        info->needs_folder
            ? "files of changes are not modelled"
            : rf_encoded_gap(scenario->plan, scenario->spec->encoding);
    char *nodes = NULL;
    if (why != NULL) {
        return rf_xasprintf("encoding %s: %s",
                            rf_encoding_name(scenario->spec->encoding), why);
    }
    for (uint32_t n = 0; n < input->links.n_nodes; n++) {
        const bool compares =
            schedule->node_send[n] + schedule->node_recv[n] +
                rf_predict_compared(schedule, info, scenario->spec->encoding,
                                    n) >
            0;
        if (compares && input->links.scan_gbytes_per_s[n] <= 0) {
            rf_text_add(&nodes, ", ", "%s", scenario->config->node_names[n]);
        }
    }
    return figure_gap(nodes, "comparing", "scan_gbytes_per_s", "an encoding",
                      input->named);
}

/* "quantize fp8" or, of several pools, "quantize fp8, nvfp4". Caller frees. */
static char *formats_of(const struct rf_spec *spec)
{
    const struct rf_quant_format *first = rf_spec_quantize(spec)->format;
    char *list = rf_xasprintf("quantize %s", first->name);
    for (uint32_t i = RF_INFER; i < spec->n_sides; i++) {
        const struct rf_quant_format *format = spec->side[i].quantize.format;
        if (format != NULL && format != first) {
            rf_text_add(&list, ", ", "%s", format->name);
        }
    }
    return list;
}

/* Why the time of conversions is not known, or NULL. */
static char *conversion_gap(const struct rf_predict_input *input,
                            const struct rf_method_info *info)
{
    const struct rf_scenario *scenario = input->scenario;
    const struct rf_world *world = scenario->world;
    const enum rf_side side = rf_quantize_side(scenario->plan);
    bool *listed;
    char *nodes = NULL, *formats, *gap;
    if (info->needs_folder || info->memory == RF_DEVICE_MEMORY) {
        return rf_xasprintf("the time of quantize is not modelled %s",
                            info->needs_folder ? "beside files"
                                               : "in GPU memory");
    }
    listed = rf_xcalloc(world->n_nodes, sizeof(*listed));
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        const uint32_t n = world->ranks[r].node;
        if (world->ranks[r].index[side] != RF_NONE && !listed[n] &&
            rf_plan_converted(scenario->plan, r) != NULL &&
            input->links.convert_gbytes_per_s[n] <= 0) {
            listed[n] = true;
            rf_text_add(&nodes, ", ", "%s", scenario->config->node_names[n]);
        }
    }
    free(listed);
    formats = formats_of(scenario->spec);
    gap = figure_gap(nodes, "converting", "convert_gbytes_per_s", formats,
                     input->named);
    free(formats);
    return gap;
}

char *rf_predict_gap(const struct rf_predict_input *input)
{
    const struct rf_scenario *scenario = input->scenario;
    const char *method = input->method;
    const struct rf_method_info *info = rf_method_info_find(method);
    char *lacking;
    if (!info->moves_bytes) {
        return rf_xasprintf("method %s moves nothing", method);
    }
    if (rf_spec_quantize(scenario->spec)->format != NULL) {
        char *gap = conversion_gap(input, info);
        if (gap != NULL) {
            return gap;
        }
    }
    if (rf_scenario_encoding(scenario, info) != RF_ENCODING_DENSE) {
        char *gap = encoding_gap(input, info);
        if (gap != NULL) {
            return gap;
        }
    }
    if (info->needs_folder) {
        return input->figures.write_gbytes_per_s > 0 &&
                       input->figures.read_gbytes_per_s > 0
                   ? NULL
                   : rf_xasprintf("method %s needs write_gbytes_per_s and "
                                  "read_gbytes_per_s in \"links\"",
                                  method);
    }
    if (info->inside.left != RF_LEFT_NOTHING &&
        info->memory == RF_DEVICE_MEMORY && !input->own) {
        return rf_xasprintf("method %s may leave bytes in place; set its "
                            "figures in links.methods.%s",
                            method, method);
    }
    lacking = lacking_rates(scenario->schedule, &input->links,
                            scenario->config->node_names, info);
    return lacking == NULL
               ? NULL
               : with_advice(
                     lacking, info,
                     any_lacks(scenario->schedule, &input->links, SOCKETS),
                     any_lacks(scenario->schedule, &input->links, COPYING) ||
                         rf_predict_lacks_links(scenario->schedule,
                                                &input->links),
                     input->named);
}

const char *rf_predict_note(const struct rf_predict_input *input)
{
    return input->figures.nominal_nic &&
                   rf_method_info_find(input->method)->links_by_tcp &&
                   input->scenario->schedule->inter_node_bytes > 0
               ? "nic_gbytes_per_s of the fabric is nominal: TCP, which the "
                 "method uses, may be far slower"
               : NULL;
}

struct rf_simulate_env rf_predict_env(const struct rf_predict_input *input)
{
    return (struct rf_simulate_env){
        .plan = input->scenario->plan,
        .schedule = input->scenario->schedule,
        .links = &input->links,
        .node_names = input->scenario->config->node_names,
        .per_op_us = input->figures.per_op_us,
        .inside = rf_method_info_find(input->method)->inside};
}
