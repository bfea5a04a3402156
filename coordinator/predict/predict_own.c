/*
 * The figures that a result ran on. A prediction may be of other links, or of
 * faster memory, as "links" says; measured times are compared with simulations
 * of what was there. Nominal figures, and those of methods that probes do not
 * measure, are what files claim: results calibrate them. Pure. See predict.h.
 */
#include <stdlib.h>
#include <string.h>

#include "coordinator/predict/predict.h"
#include "coordinator/records/fields.h"

/* "links" of the result's own cluster file; none that this file's nodes do not
 * fit. */
static struct rf_links links_of_file(const struct rf_config *config,
                                     const json_t *result)
{
    const struct rf_jnode root =
        rf_jnode_root(json_object_get(result, "cluster"), "cluster");
    struct rf_links links;
    if (rf_links_read(&root, config->node_names, config->n_nodes, &links,
                      NULL) != RF_OK) {
        memset(links.all, 0, sizeof(links.all));
        links.n_nodes = 0;
    }
    return links;
}

static void take_known(double *to, const double *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = from[i] > 0 ? from[i] : to[i];
    }
}

static void take_nodes(const struct rf_capacities *from,
                       struct rf_capacities *to)
{
    const uint32_t n = to->n_nodes;
    take_known(to->copy_gbytes_per_s, from->copy_gbytes_per_s, n);
    take_known(to->own_gbytes_per_s, from->own_gbytes_per_s, n);
    take_known(to->copy1_gbytes_per_s, from->copy1_gbytes_per_s, n);
    take_known(to->scan_gbytes_per_s, from->scan_gbytes_per_s, n);
    take_known(to->convert_gbytes_per_s, from->convert_gbytes_per_s, n);
}

/* Rates of links alone; latencies stay, unless `from` has one. */
static void take_links(const struct rf_capacities *from,
                       struct rf_capacities *to)
{
    const size_t n = to->n_nodes;
    memcpy(to->pair_gbytes_per_s, from->pair_gbytes_per_s,
           n * n * sizeof(*to->pair_gbytes_per_s));
    memcpy(to->nic_gbytes_per_s, from->nic_gbytes_per_s,
           n * sizeof(*to->nic_gbytes_per_s));
    memcpy(to->nics, from->nics, n * sizeof(*to->nics));
    take_known(to->pair_latency_us, from->pair_latency_us, n * n);
}

/* The best that yardsticks of any repeat sent and received. */
static void take_yardsticks(const struct rf_config *config,
                            const json_t *result, struct rf_capacities *to)
{
    const json_t *record, *node;
    for (size_t r = 0; (record = rf_predict_record(result, r)) != NULL; r++) {
        size_t i;
        json_array_foreach (rf_result_value(record, "bound.yardstick", "nodes"),
                            i, node) {
            const uint32_t n =
                rf_predict_node(config, json_object_get(node, "host"));
            if (n != RF_NONE) {
                to->out_gbytes_per_s[n] =
                    RF_MAX(to->out_gbytes_per_s[n],
                           rf_result_figure(node, NULL, "sent_gbytes_per_s"));
                to->in_gbytes_per_s[n] = RF_MAX(
                    to->in_gbytes_per_s[n],
                    rf_result_figure(node, NULL, "received_gbytes_per_s"));
            }
        }
    }
}

/* Links between nodes, from the best source that says anything of them. */
static bool own_links(const struct rf_predict_results *results,
                      const struct rf_result_file *file,
                      const struct rf_schedule *schedule,
                      const struct rf_method_info *info,
                      const struct rf_links *given, struct rf_capacities *own)
{
    const struct rf_result_set one = {.files = (struct rf_result_file *)file,
                                      .n = 1};
    const struct rf_predict_speeds any = {.config = results->config};
    const bool nominal =
        rf_links_of(&results->config->links, info)->nominal_nic &&
        rf_links_of(given, info)->nominal_nic;
    struct rf_capacities found;
    rf_capacities_init(&found, own->n_nodes);
    if (!nominal) {
        rf_predict_links(&one, &any, info, 0, &found);
    }
    if (rf_predict_lacks_links(schedule, &found)) {
        rf_links_apply(given, info, &found);
    }
    take_links(&found, own);
    rf_capacities_free(&found);
    if (rf_predict_lacks_links(schedule, own)) {
        take_yardsticks(results->config, file->result, own);
    }
    return !rf_predict_lacks_links(schedule, own);
}

bool rf_predict_own(const struct rf_predict_results *results,
                    const struct rf_result_file *file,
                    const struct rf_predict_input *input,
                    struct rf_predict_input *out)
{
    const struct rf_method_info *info = rf_method_info_find(input->method);
    const struct rf_scenario *scenario = input->scenario;
    const struct rf_capacities *links = &input->links;
    struct rf_capacities *own = &out->links;
    const struct rf_result_set one = {.files = (struct rf_result_file *)file,
                                      .n = 1};
    const struct rf_predict_speeds any = {.config = results->config};
    const json_t *entry =
        rf_result_value(file->result, "cluster.links.methods", info->name);
    struct rf_links given = links_of_file(results->config, file->result);
    struct rf_capacities found;
    bool known;
    *out = *input;
    rf_link_figures_overrule(&out->figures, rf_links_of(&given, info));
    rf_capacities_init(own, links->n_nodes);
    own->devices = links->devices;
    own->sends_inside = links->sends_inside;
    take_nodes(links, own);
    take_links(links, own);
    rf_capacities_init(&found, links->n_nodes);
    rf_predict_links(&results->set, &results->speeds[info->memory], info,
                     rf_scenario_copy_bytes(scenario), &found);
    rf_predict_results_conversions(results, scenario, info, &found);
    memcpy(found.own_gbytes_per_s, found.copy_gbytes_per_s,
           found.n_nodes * sizeof(*found.own_gbytes_per_s));
    if (info->memory == RF_DEVICE_MEMORY || entry != NULL) {
        rf_links_apply(&given, info, &found);
    }
    if (info->sockets_inside) {
        rf_predict_sockets(&one, &any, info, entry, &found);
    }
    take_nodes(&found, own);
    own->port_gbytes_per_s = found.port_gbytes_per_s > 0
                                 ? found.port_gbytes_per_s
                                 : links->port_gbytes_per_s;
    rf_capacities_free(&found);
    known = info->needs_folder || /* it uses none */
            own_links(results, file, scenario->schedule, info, &given, own);
    free(given.own);
    return known;
}
