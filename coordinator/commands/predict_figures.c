/*
 * Figures for predictions: reading them from cluster.json, the arithmetic on
 * them, and what the model has no figures for. Pure. See predict.h.
 */
#include "coordinator/commands/predict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "transport/method.h"

/* Figures of "links" in order of struct rf_link_figures; a rate of 0 would be
 * no time at all, so it is refused. */
static const struct {
    const char *key;
    bool is_rate;
} figure_keys[] = {
    {"copy_gbytes_per_s", true},  {"single_copy_gbytes_per_s", true},
    {"link_gbytes_per_s", true},  {"link_latency_us", false},
    {"per_op_us", false},         {"setup_ms", false},
    {"write_gbytes_per_s", true}, {"read_gbytes_per_s", true},
};

enum rf_status rf_link_figures_read(const struct rf_jnode *node,
                                    struct rf_link_figures *out,
                                    struct rf_err *err)
{
    const char *keys[RF_ARRAY_SIZE(figure_keys) + 2] = {"methods"};
    double *const fields[] = {
        &out->copy_gbytes_per_s,  &out->single_copy_gbytes_per_s,
        &out->link_gbytes_per_s,  &out->link_latency_us,
        &out->per_op_us,          &out->setup_ms,
        &out->write_gbytes_per_s, &out->read_gbytes_per_s};
    enum rf_status status;
    for (size_t i = 0; i < RF_ARRAY_SIZE(figure_keys); i++) {
        keys[i + 1] = figure_keys[i].key;
    }
    status = rf_jnode_check_keys(node, keys, err);
    for (size_t i = 0; status == RF_OK && i < RF_ARRAY_SIZE(fields); i++) {
        struct rf_jnode figure = rf_jnode_get(node, figure_keys[i].key);
        status =
            rf_jnode_number(node, figure_keys[i].key, 0, 1e9, fields[i], err);
        if (status == RF_OK && figure.value != NULL && figure_keys[i].is_rate &&
            *fields[i] <= 0) {
            status = rf_jnode_fail(
                &figure, err,
                "must be above 0; leave out a rate that is not known");
        }
    }
    return status;
}

enum rf_status rf_timeline_read(const struct rf_jnode *root,
                                struct rf_timeline *out, struct rf_err *err)
{
    static const char *const keys[] = {
        "rollout_s",       "train_s",      "other_s",     "refits",
        "sequence_length", "global_batch", "micro_batch", NULL};
    struct rf_jnode node = rf_jnode_get(root, "timeline");
    double *const fields[] = {&out->rollout_s, &out->train_s, &out->other_s,
                              &out->refits};
    enum rf_status status;
    *out = (struct rf_timeline){.refits = 1};
    if (node.value == NULL) {
        return RF_OK;
    }
    out->given = true;
    status = rf_jnode_check_keys(&node, keys, err);
    for (size_t i = 0; status == RF_OK && i < RF_ARRAY_SIZE(fields); i++) {
        status = rf_jnode_number(&node, keys[i], 0, 1e9, fields[i], err);
    }
    return status;
}

enum rf_status rf_predict_check(const struct rf_jnode *root, struct rf_err *err)
{
    struct rf_jnode links = rf_jnode_get(root, "links");
    struct rf_jnode methods = rf_jnode_get(&links, "methods");
    struct rf_link_figures figures;
    struct rf_timeline timeline;
    const char *method;
    json_t *value;
    enum rf_status status = rf_timeline_read(root, &timeline, err);
    if (status != RF_OK || links.value == NULL) {
        return status;
    }
    status = rf_link_figures_read(&links, &figures, err);
    if (status == RF_OK && methods.value != NULL &&
        !json_is_object(methods.value)) {
        status =
            rf_jnode_fail(&methods, err, "must be an object by method name");
    }
    json_object_foreach (methods.value, method, value) {
        struct rf_jnode node = rf_jnode_get(&methods, method);
        if (status == RF_OK && rf_method_info_find(method) == NULL) {
            struct rf_err why;
            rf_method_unknown(method, &why);
            status = rf_jnode_fail(&node, err, "%s", why.text);
        }
        if (status == RF_OK) {
            status = rf_link_figures_read(&node, &figures, err);
        }
    }
    return status;
}

static void overrule(double *figure, double given)
{
    if (given > 0) {
        *figure = given;
    }
}

void rf_link_figures_spread(const struct rf_link_figures *figures,
                            struct rf_links *links)
{
    size_t n = links->n_nodes;
    for (size_t i = 0; i < n; i++) {
        overrule(&links->copy_gbytes_per_s[i], figures->copy_gbytes_per_s);
        overrule(&links->copy1_gbytes_per_s[i],
                 figures->single_copy_gbytes_per_s);
        for (size_t j = 0; j < n; j++) {
            if (i != j) {
                overrule(&links->pair_gbytes_per_s[i * n + j],
                         figures->link_gbytes_per_s);
                overrule(&links->pair_latency_us[i * n + j],
                         figures->link_latency_us);
            }
        }
    }
}

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

char *rf_predict_gap(const struct rf_scenario *scenario, const char *method,
                     const struct rf_link_figures *figures, bool own,
                     const struct rf_links *links)
{
    const struct rf_method_info *info = rf_method_info_find(method);
    char *lacking, *gap;
    if (!info->moves_bytes) {
        return rf_xasprintf("method %s moves nothing", method);
    }
    if (scenario->spec->infer.quantize) {
        return rf_xstrdup("the time of infer.quantize is not modelled");
    }
    if (info->needs_folder) {
        return figures->write_gbytes_per_s > 0 && figures->read_gbytes_per_s > 0
                   ? NULL
                   : rf_xasprintf("method %s needs write_gbytes_per_s and "
                                  "read_gbytes_per_s of \"links\"",
                                  method);
    }
    if (info->may_alias && !own) {
        return rf_xasprintf("method %s may leave bytes where they are; give "
                            "figures of its own in links.methods.%s",
                            method, method);
    }
    if (strcmp(info->name, "tcp") == 0 && !own &&
        scenario->plan->totals.bytes_intra_node > 0) {
        return rf_xasprintf("method %s uses sockets inside nodes too; give "
                            "figures of its own in links.methods.%s",
                            method, method);
    }
    lacking =
        lacking_rates(scenario->schedule, links, scenario->config->node_names,
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
