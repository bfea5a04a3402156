/*
 * `refit-coord predict`: seconds for each scenario and method before anything
 * is run. Figures come from "links" of cluster.json, or from the probes in a
 * result folder, which then also shows measured beside predicted. Nothing is
 * assumed that was not given: without figures it is an error, and a method
 * without its own figures has those of "links".
 */
#include "coordinator/predict.h"

#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "coordinator/commands.h"
#include "coordinator/report_table.h"
#include "coordinator/result_files.h"
#include "transport/method.h"

struct context {
    const struct rf_config *config;
    const struct rf_model *model;
    struct rf_link_figures links;
    bool have_links;
    struct rf_jnode methods; /* "links.methods", value NULL when absent */
    struct rf_timeline timeline;
    struct rf_result_set measured;
    struct rf_table *table;
    json_t *list;
};

enum rf_status rf_link_figures_read(const struct rf_jnode *node,
                                    struct rf_link_figures *out,
                                    struct rf_err *err)
{
    static const char *const keys[] = {"copy_gbytes_per_s",
                                       "single_copy_gbytes_per_s",
                                       "link_gbytes_per_s",
                                       "link_latency_us",
                                       "per_op_us",
                                       "setup_ms",
                                       "write_gbytes_per_s",
                                       "read_gbytes_per_s",
                                       "methods",
                                       NULL};
    double *const fields[] = {
        &out->copy_gbytes_per_s,  &out->single_copy_gbytes_per_s,
        &out->link_gbytes_per_s,  &out->link_latency_us,
        &out->per_op_us,          &out->setup_ms,
        &out->write_gbytes_per_s, &out->read_gbytes_per_s};
    enum rf_status status = rf_jnode_check_keys(node, keys, err);
    for (size_t i = 0; status == RF_OK && i < RF_ARRAY_SIZE(fields); i++) {
        status = rf_jnode_number(node, keys[i], 0, 1e9, fields[i], err);
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
            status = rf_jnode_fail(&node, err, "there is no such method");
        }
        if (status == RF_OK) {
            status = rf_link_figures_read(&node, &figures, err);
        }
    }
    return status;
}

void rf_link_figures_spread(const struct rf_link_figures *figures,
                            struct rf_links *links)
{
    size_t n = links->n_nodes;
    for (size_t i = 0; i < n; i++) {
        links->copy_gbytes_per_s[i] = figures->copy_gbytes_per_s;
        links->copy1_gbytes_per_s[i] = figures->single_copy_gbytes_per_s;
        for (size_t j = 0; j < n; j++) {
            if (i != j) {
                links->pair_gbytes_per_s[i * n + j] =
                    figures->link_gbytes_per_s;
                links->pair_latency_us[i * n + j] = figures->link_latency_us;
            }
        }
    }
}

double rf_predict_disk_ms(const struct rf_link_figures *figures,
                          uint64_t written_bytes, uint64_t read_bytes)
{
    double ms = 0;
    if (figures->write_gbytes_per_s > 0) {
        ms += (double)written_bytes / figures->write_gbytes_per_s / 1e6;
    }
    if (figures->read_gbytes_per_s > 0) {
        ms += (double)read_bytes / figures->read_gbytes_per_s / 1e6;
    }
    return ms;
}

void rf_predict_step(const struct rf_timeline *timeline,
                     struct rf_prediction *p)
{
    double refit_s = timeline->refits * p->ms / 1e3;
    p->step_s =
        timeline->rollout_s + timeline->train_s + timeline->other_s + refit_s;
    p->share = p->step_s > 0 ? refit_s / p->step_s : 0;
}

static uint32_t node_by_name(const struct rf_config *config, const char *name)
{
    for (uint32_t i = 0; name != NULL && i < config->n_nodes; i++) {
        if (strcmp(config->node_names[i], name) == 0) {
            return i;
        }
    }
    return RF_NONE;
}

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* Takes the better of what is there and what one probe of a record says. */
static void take_probe(const struct rf_config *config, const json_t *probe,
                       struct rf_links *links)
{
    const json_t *nodes = json_object_get(probe, "nodes");
    const json_t *pairs = json_object_get(probe, "pairs");
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *one = json_array_get(nodes, i);
        uint32_t n = node_by_name(
            config, json_string_value(json_object_get(one, "host")));
        if (n != RF_NONE) {
            double all = number_of(one, "copy_gbytes_per_s");
            double single = number_of(one, "single_copy_gbytes_per_s");
            links->copy_gbytes_per_s[n] =
                RF_MAX(links->copy_gbytes_per_s[n], all);
            links->copy1_gbytes_per_s[n] =
                RF_MAX(links->copy1_gbytes_per_s[n], single);
        }
    }
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        const json_t *one = json_array_get(pairs, i);
        uint32_t a = node_by_name(
            config, json_string_value(json_object_get(one, "from")));
        uint32_t b =
            node_by_name(config, json_string_value(json_object_get(one, "to")));
        if (a != RF_NONE && b != RF_NONE) {
            size_t at = (size_t)a * links->n_nodes + b;
            double rate = number_of(one, "gbytes_per_s");
            if (rate > links->pair_gbytes_per_s[at]) {
                links->pair_gbytes_per_s[at] = rate;
                links->pair_latency_us[at] = number_of(one, "latency_us");
            }
        }
    }
}

static void measured_links(const struct context *context,
                           struct rf_links *links)
{
    for (size_t i = 0; i < context->measured.n; i++) {
        const json_t *result = context->measured.files[i].result;
        const json_t *probe =
            json_object_get(json_object_get(result, "bound"), "probe");
        take_probe(context->config, json_object_get(probe, "before"), links);
        take_probe(context->config, json_object_get(probe, "after"), links);
    }
}

static double measured_ms(const struct context *context, const char *name)
{
    double ms = 0;
    for (size_t i = 0; i < context->measured.n; i++) {
        if (strcmp(context->measured.files[i].name, name) == 0) {
            (void)rf_result_number(context->measured.files[i].result, "summary",
                                   "median_ms", &ms);
        }
    }
    return ms;
}

static void add_row(struct context *context, const struct rf_case *one,
                    const char *method, const struct rf_prediction *p)
{
    bool own = strcmp(method, one->spec->method) == 0;
    double measured = own ? measured_ms(context, one->spec->name) : 0;
    struct rf_table *table = context->table;
    json_t *entry = json_pack("{s:s, s:s, s:s, s:f, s:f}", "scenario",
                              one->spec->name, "method", method, "strategy",
                              rf_strategy_name(one->spec->strategy),
                              "predicted_ms", p->ms, "bound_ms", p->bound_ms);
    rf_table_cell(table, "%s", one->spec->name);
    rf_table_cell(table, "%s", method);
    rf_table_cell(table, "%s", rf_strategy_name(one->spec->strategy));
    rf_table_cell(table, "%.4g", p->ms / 1e3);
    rf_table_cell(table, p->bound_ms > 0 ? "%.4g" : "-", p->bound_ms / 1e3);
    rf_table_cell(table, measured > 0 ? "%.4g" : "-", measured / 1e3);
    rf_table_cell(table, context->timeline.given ? "%.2f" : "-", p->step_s);
    rf_table_cell(table, context->timeline.given ? "%.3g %%" : "-",
                  p->share * 100);
    if (measured > 0) {
        json_object_set_new(entry, "measured_ms", json_real(measured));
    }
    if (context->timeline.given) {
        json_object_set_new(entry, "step_s", json_real(p->step_s));
        json_object_set_new(entry, "refit_share", json_real(p->share));
    }
    json_array_append_new(context->list, entry);
}

static enum rf_status predict_one(struct context *context,
                                  const struct rf_case *one, const char *method,
                                  struct rf_err *err)
{
    struct rf_link_figures figures = context->links;
    struct rf_links links;
    struct rf_prediction p = {0};
    struct rf_bound bound = {0};
    enum rf_status status = RF_OK;
    bool own = json_object_get(context->methods.value, method) != NULL;
    if (own) {
        struct rf_jnode node = rf_jnode_get(&context->methods, method);
        status = rf_link_figures_read(&node, &figures, err);
    }
    if (status != RF_OK) {
        return status;
    }
    rf_links_init(&links, one->world->n_nodes);
    if (context->have_links || own) {
        rf_link_figures_spread(&figures, &links);
    }
    if (!own) {
        measured_links(context, &links);
    }
    if (strcmp(method, "disk") == 0 && figures.write_gbytes_per_s > 0) {
        p.ms = rf_predict_disk_ms(&figures, context->model->bytes,
                                  one->plan->totals.bytes_total);
    } else {
        p.ms = rf_cost_predict_ms(one->plan, one->schedule, &links,
                                  figures.per_op_us);
        if (rf_cost_bound(one->plan, &links, context->config->node_names,
                          &bound, NULL) == RF_OK) {
            p.bound_ms = bound.ms;
        }
    }
    p.ms += figures.setup_ms;
    rf_predict_step(&context->timeline, &p);
    add_row(context, one, method, &p);
    rf_links_free(&links);
    return RF_OK;
}

/* The scenario's own method, then every other of "links.methods" that could
 * run it. */
static enum rf_status predict_case(struct context *context,
                                   const struct rf_case *one,
                                   struct rf_err *err)
{
    const char *method;
    json_t *value;
    enum rf_status status = predict_one(context, one, one->spec->method, err);
    json_object_foreach (context->methods.value, method, value) {
        const struct rf_method_info *info = rf_method_info_find(method);
        if (status != RF_OK) {
            break;
        }
        if (strcmp(method, one->spec->method) != 0 &&
            (info->needs_folder || /* which a prediction does not */
             rf_method_check(info, one->plan, NULL) == RF_OK)) {
            status = predict_one(context, one, method, err);
        }
    }
    return status;
}

static enum rf_status predict_all(struct context *context, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (size_t i = 0; status == RF_OK && i < context->config->n_scenarios;
         i++) {
        struct rf_case *one = NULL;
        status = rf_case_build(context->config, context->model, i, &one, err);
        if (status == RF_OK) {
            status = predict_case(context, one, err);
        }
        rf_case_destroy(one);
    }
    return status;
}

/* Whether a probe of a node of the file is among the results. */
static bool knows_a_node(const struct context *context)
{
    static const char *const moments[] = {"before", "after"};
    for (size_t i = 0; i < 2 * context->measured.n; i++) {
        const json_t *bound =
            json_object_get(context->measured.files[i / 2].result, "bound");
        const json_t *nodes = json_object_get(
            json_object_get(json_object_get(bound, "probe"), moments[i % 2]),
            "nodes");
        for (size_t n = 0; n < json_array_size(nodes); n++) {
            const json_t *host =
                json_object_get(json_array_get(nodes, n), "host");
            if (node_by_name(context->config, json_string_value(host)) !=
                RF_NONE) {
                return true;
            }
        }
    }
    return false;
}

static enum rf_status read_figures(struct context *context,
                                   const struct rf_cli *cli, struct rf_err *err)
{
    struct rf_jnode root =
        rf_jnode_root(context->config->document, context->config->file);
    struct rf_jnode links = rf_jnode_get(&root, "links");
    enum rf_status status = rf_timeline_read(&root, &context->timeline, err);
    if (status == RF_OK && links.value != NULL) {
        context->have_links = true;
        status = rf_link_figures_read(&links, &context->links, err);
        context->methods = rf_jnode_get(&links, "methods");
    }
    for (size_t i = 1; status == RF_OK && i < cli->n_operands; i++) {
        status = rf_result_set_add(&context->measured, cli->operands[i], err);
    }
    if (status != RF_OK || context->have_links) {
        return status;
    }
    if (context->measured.n == 0) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: nothing to predict from: give \"links\" in it, "
                          "or a result folder after it",
                          context->config->file);
    }
    if (!knows_a_node(context)) {
        const struct rf_config *config = context->config;
        return rf_err_set(
            err, RF_ERR_CONFIG,
            "%s: nothing to predict from: no result has a probe of its nodes "
            "(the first: %s); give \"links\" in it, or results of nodes of "
            "these names",
            config->file, config->n_nodes > 0 ? config->node_names[0] : "none");
    }
    return RF_OK;
}

static void print_out(const struct rf_cli *cli, const struct context *context)
{
    if (cli->json) {
        json_t *document = json_pack("{s:i, s:O}", "schema_version", 1,
                                     "predictions", context->list);
        json_dumpf(document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        putchar('\n');
        json_decref(document);
    } else {
        rf_table_print(context->table, stdout, RF_REPORT_TABLE, 0);
    }
}

int rf_predict_command(const struct rf_cli *cli)
{
    static const char *const heads[] = {
        "scenario",     "method",       "strategy",
        ">predicted s", ">bound s",     ">measured s",
        ">step s",      ">refit share", NULL};
    struct rf_config *config = NULL;
    struct rf_model *model = NULL;
    struct rf_err err = {0};
    struct context context = {.table = rf_table_create(heads),
                              .list = json_array()};
    enum rf_status status = rf_config_load(cli->config, false, &config, &err);
    if (status == RF_OK) {
        status = rf_config_select(config, cli->globs, cli->n_globs, &err);
    }
    if (status == RF_OK) {
        struct rf_jnode node = rf_jnode_root(config->model, config->file);
        status = rf_model_from_json(&node, &model, &err);
    }
    if (status == RF_OK) {
        context.config = config;
        context.model = model;
        status = read_figures(&context, cli, &err);
    }
    if (status == RF_OK) {
        status = predict_all(&context, &err);
    }
    if (status == RF_OK) {
        print_out(cli, &context);
    } else {
        rf_error("%s", err.text);
    }
    json_decref(context.list);
    rf_table_destroy(context.table);
    rf_result_set_free(&context.measured);
    rf_model_destroy(model);
    rf_config_destroy(config);
    return status == RF_OK ? RF_EXIT_OK : RF_EXIT_USAGE;
}
