/*
 * Figures for predictions: the arithmetic on them, and what the model has no
 * figures for. Pure. See predict.h.
 */
#include "coordinator/commands/predict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "transport/method.h"

double rf_predict_disk_ms(const struct rf_link_figures *figures,
                          uint64_t written_bytes, uint64_t read_bytes)
{
    return (double)written_bytes / figures->write_gbytes_per_s / 1e6 +
           (double)read_bytes / figures->read_gbytes_per_s / 1e6;
}

void rf_predict_step(const struct rf_timeline *timeline,
                     struct rf_prediction *p)
{
    double refit_s = timeline->refits * p->ms / 1e3;
    p->step_s =
        timeline->rollout_s + timeline->train_s + timeline->other_s + refit_s;
    p->share = p->step_s > 0 ? refit_s / p->step_s : 0;
}

static bool has_link(const struct rf_links *links, uint32_t node, bool out)
{
    if (links->nic_gbytes_per_s[node] > 0) {
        return true;
    }
    for (uint32_t other = 0; other < links->n_nodes; other++) {
        size_t at = out ? (size_t)node * links->n_nodes + other
                        : (size_t)other * links->n_nodes + node;
        if (links->pair_gbytes_per_s[at] > 0) {
            return true;
        }
    }
    return false;
}

enum use { COPYING, LINKS_OUT, LINKS_IN, N_USES };

/* Whether the schedule uses what has no figure. */
static bool lacks(const struct rf_schedule *schedule,
                  const struct rf_links *links, enum use use, uint32_t n)
{
    switch (use) {
    case COPYING:
        return schedule->node_copy[n] > 0 && links->copy_gbytes_per_s[n] <= 0;
    case LINKS_OUT:
        return schedule->node_send[n] > 0 && !has_link(links, n, true);
    default:
        return schedule->node_recv[n] > 0 && !has_link(links, n, false);
    }
}

/* "no figures for copying on a, b; for links out of a", or NULL. */
static char *lacking_rates(const struct rf_schedule *schedule,
                           const struct rf_links *links,
                           const char *const *names, bool device)
{
    const char *const uses[N_USES] = {
        device ? "copying in GPU memory on" : "copying on",
        device ? "GPU links out of" : "links out of",
        device ? "GPU links into" : "links into"};
    char *list = NULL;
    for (size_t use = 0; use < N_USES; use++) {
        bool first = true;
        for (uint32_t n = 0; n < links->n_nodes; n++) {
            char *longer;
            if (!lacks(schedule, links, (enum use)use, n)) {
                continue;
            }
            longer =
                list == NULL
                    ? rf_xasprintf("no figures for %s %s", uses[use], names[n])
                : first
                    ? rf_xasprintf("%s; for %s %s", list, uses[use], names[n])
                    : rf_xasprintf("%s, %s", list, names[n]);
            free(list);
            list = longer;
            first = false;
        }
    }
    return list;
}

char *rf_predict_gap(const struct rf_predict_input *input)
{
    const struct rf_scenario *scenario = input->scenario;
    const char *method = input->method;
    const struct rf_method_info *info = rf_method_info_find(method);
    char *lacking, *gap;
    if (!info->moves_bytes) {
        return rf_xasprintf("method %s moves nothing", method);
    }
    if (scenario->spec->infer.quantize) {
        return rf_xstrdup("the time of infer.quantize is not modelled");
    }
    if (info->needs_folder) {
        return input->figures.write_gbytes_per_s > 0 &&
                       input->figures.read_gbytes_per_s > 0
                   ? NULL
                   : rf_xasprintf("method %s needs write_gbytes_per_s and "
                                  "read_gbytes_per_s in \"links\"",
                                  method);
    }
    if (info->may_alias && !input->own) {
        return rf_xasprintf("method %s may leave bytes in place; give it "
                            "figures of its own in links.methods.%s",
                            method, method);
    }
    if (strcmp(info->name, "tcp") == 0 && !input->own &&
        scenario->plan->totals.bytes_intra_node > 0) {
        return rf_xasprintf("method %s also uses sockets inside nodes; give it "
                            "figures of its own in links.methods.%s",
                            method, method);
    }
    lacking = lacking_rates(scenario->schedule, &input->links,
                            scenario->config->node_names,
                            info->memory == RF_DEVICE_MEMORY);
    if (lacking != NULL && info->memory == RF_DEVICE_MEMORY) {
        gap = rf_xasprintf("%s; give copy_gbytes_per_s "
                           "and link_gbytes_per_s in links.methods.%s (probes "
                           "of host memory and TCP do not count)",
                           lacking, method);
        free(lacking);
        return gap;
    }
    return lacking;
}
