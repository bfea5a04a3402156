/* Result folders as a source of figures, for any command. See predict.h. */
#include "coordinator/predict/predict.h"

#include <string.h>

static struct rf_jnode links_of(const struct rf_config *config)
{
    struct rf_jnode root = rf_jnode_root(config->document, config->file);
    return rf_jnode_get(&root, "links");
}

struct rf_jnode rf_predict_methods(const struct rf_config *config)
{
    const struct rf_jnode links = links_of(config);
    return rf_jnode_get(&links, "methods");
}

/* Without "links": checks that results have any figure for the nodes. */
static enum rf_status check_measured(const struct rf_predict_results *results,
                                     struct rf_err *err)
{
    const struct rf_config *config = results->config;
    if (rf_predict_knows_nodes(&results->set, config)) {
        return RF_OK;
    }
    if (config->n_nodes == 0) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: no figures to predict from: it has neither "
                          "\"links\" nor nodes to look up in results",
                          config->file);
    }
    return rf_err_set(err, RF_ERR_CONFIG,
                      "%s: no figures to predict from: no result has probes of "
                      "its nodes (the first is %s); add \"links\" to it, or "
                      "name results of these nodes",
                      config->file, config->node_names[0]);
}

enum rf_status rf_predict_results_read(const struct rf_config *config,
                                       const char *const *folders, size_t n,
                                       struct rf_predict_results *out,
                                       struct rf_err *err)
{
    *out = (struct rf_predict_results){.config = config};
    for (size_t i = 0; i < n; i++) {
        RF_TRY(rf_result_set_add(&out->set, folders[i], err));
    }
    for (int k = 0; k < RF_MEMORY_KINDS; k++) {
        rf_predict_speeds_init(&out->set, config, (enum rf_memory_kind)k,
                               &out->speeds[k]);
    }
    return out->set.n == 0 || links_of(config).value != NULL
               ? RF_OK
               : check_measured(out, err);
}

void rf_predict_results_free(struct rf_predict_results *results)
{
    for (int k = 0; k < RF_MEMORY_KINDS; k++) {
        rf_predict_speeds_free(&results->speeds[k]);
    }
    rf_result_set_free(&results->set);
}

bool rf_predict_has_own(const struct rf_config *config,
                        const struct rf_method_info *info)
{
    return json_object_get(rf_predict_methods(config).value, info->name) !=
           NULL;
}

void rf_predict_results_conversions(const struct rf_predict_results *results,
                                    const struct rf_scenario *scenario,
                                    const struct rf_method_info *info,
                                    struct rf_capacities *links)
{
    if (rf_spec_quantize(scenario->spec)->format != NULL &&
        info->memory == RF_HOST_MEMORY) {
        rf_predict_conversions(&results->set, &results->speeds[RF_HOST_MEMORY],
                               scenario->spec, links);
    }
}

void rf_predict_results_links(const struct rf_predict_results *results,
                              const struct rf_scenario *scenario,
                              const struct rf_method_info *info,
                              struct rf_capacities *links)
{
    const struct rf_config *config = results->config;
    struct rf_capacities memory;
    rf_capacities_init(links, scenario->world->n_nodes);
    links->devices = info->memory == RF_DEVICE_MEMORY;
    links->sends_inside = info->sockets_inside;
    if (!rf_predict_has_own(config, info)) {
        rf_predict_links(&results->set, &results->speeds[info->memory], info,
                         rf_scenario_copy_bytes(scenario), links);
    }
    rf_predict_results_conversions(results, scenario, info, links);
    rf_links_apply(&config->links, info, links); /* these have priority */
    if (!info->sockets_inside) {
        return;
    }
    rf_predict_results_links(results, scenario,
                             &rf_method_infos[RF_METHOD_HOST], &memory);
    memcpy(links->own_gbytes_per_s, memory.copy_gbytes_per_s,
           links->n_nodes * sizeof(*links->own_gbytes_per_s));
    rf_capacities_free(&memory);
    rf_predict_sockets(
        &results->set, &results->speeds[info->memory], info,
        json_object_get(rf_predict_methods(config).value, info->name), links);
}
