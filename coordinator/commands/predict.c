/*
 * `refit-coord predict`: seconds for each scenario and method before anything
 * is run. Figures come from "links" of cluster.json, those that are not there
 * from the probes in a result folder, which then also shows beside predicted
 * what was measured of the same refit. Nothing is assumed that was not given:
 * without figures it is an error, a method without its own figures has those of
 * "links", and what the model does not cover has
 * "-" and a footnote.
 */
#include "coordinator/commands/predict.h"

#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/text.h"
#include "coordinator/commands/commands.h"
#include "coordinator/results/escape.h"
#include "coordinator/results/fields.h"
#include "coordinator/results/report_table.h"
#include "coordinator/results/result_files.h"
#include "planner/model_json.h"
#include "transport/method.h"

struct context {
    const struct rf_config *config;
    const struct rf_model *model;
    json_t *model_json;
    struct rf_link_figures links;
    bool have_links;
    struct rf_jnode methods; /* "links.methods", value NULL when absent */
    struct rf_timeline timeline;
    struct rf_result_set measured;
    struct rf_table *table;
    json_t *list;
    json_t *told;  /* object: rows that are there or will be, by note_row() */
    json_t *notes; /* array: why there are no figures, each reason once */
};

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
        const json_t *scenario = json_array_get(nodes, i);
        uint32_t n = node_by_name(
            config, json_string_value(json_object_get(scenario, "host")));
        if (n != RF_NONE) {
            double all = number_of(scenario, "copy_gbytes_per_s");
            double single = number_of(scenario, "single_copy_gbytes_per_s");
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
        const json_t *scenario = json_array_get(pairs, i);
        uint32_t a = node_by_name(
            config, json_string_value(json_object_get(scenario, "from")));
        uint32_t b = node_by_name(
            config, json_string_value(json_object_get(scenario, "to")));
        if (a != RF_NONE && b != RF_NONE) {
            size_t at = (size_t)a * links->n_nodes + b;
            double rate = number_of(scenario, "gbytes_per_s");
            if (rate > links->pair_gbytes_per_s[at]) {
                links->pair_gbytes_per_s[at] = rate;
                links->pair_latency_us[at] = number_of(scenario, "latency_us");
            }
        }
    }
}

/* Nodes are probed in the memory of the scenario's method, links always over
 * TCP: what host memory does says nothing of GPUs, nor TCP of their links. */
static void measured_links(const struct context *context,
                           enum rf_memory_kind memory, struct rf_links *links)
{
    static const char *const moments[] = {"before", "after"};
    for (size_t i = 0; i < 2 * context->measured.n; i++) {
        const json_t *result = context->measured.files[i / 2].result;
        const struct rf_method_info *info =
            rf_method_info_find(rf_result_text(result, "scenario", "method"));
        const json_t *probe = json_object_get(
            json_object_get(json_object_get(result, "bound"), "probe"),
            moments[i % 2]);
        if (info != NULL && info->memory == memory) {
            take_nodes(context->config, probe, links);
        }
        if (memory == RF_HOST_MEMORY) {
            take_pairs(context->config, probe, links);
        }
    }
}

/* The number of a footnote, from 1; names of runs may be any bytes. */
static size_t note_number(json_t *notes, const char *text)
{
    json_t *note = rf_text_json(text, strlen(text));
    size_t i = 0;
    while (i < json_array_size(notes) &&
           !json_equal(json_array_get(notes, i), note)) {
        i++;
    }
    if (i == json_array_size(notes)) {
        json_array_append(notes, note);
    }
    json_decref(note);
    return i + 1;
}

static void seconds_cell(struct rf_table *table, double ms)
{
    rf_table_cell(table, ms > 0 ? "%.4g" : "-", ms / 1e3);
}

/* Beside it, what was measured, or a footnote that says why nothing was. */
static void measured_cell(struct context *context,
                          const struct rf_scenario *scenario,
                          const char *method, json_t *entry)
{
    char *why = NULL;
    double ms = rf_predict_measured(&context->measured, scenario, method,
                                    context->model_json, &why);
    if (why != NULL) {
        rf_table_cell(context->table, "- [%zu]",
                      note_number(context->notes, why));
        json_object_set_new(entry, "measured_note",
                            rf_text_json(why, strlen(why)));
    } else {
        seconds_cell(context->table, ms);
    }
    if (ms > 0) {
        json_object_set_new(entry, "measured_ms", json_real(ms));
    }
    free(why);
}

/* `gap`: why there is no prediction, or NULL. */
static void add_row(struct context *context, const struct rf_scenario *scenario,
                    const char *method, const struct rf_prediction *p,
                    const char *gap)
{
    bool step = context->timeline.given && gap == NULL;
    struct rf_table *table = context->table;
    char text[32];
    json_t *entry = json_pack(
        "{s:s, s:s, s:s, s:o, s:o}", "scenario", scenario->spec->name, "method",
        method, "strategy", rf_strategy_name(scenario->spec->strategy),
        "predicted_ms", gap == NULL ? json_real(p->ms) : json_null(),
        "bound_ms", p->bound_ms > 0 ? json_real(p->bound_ms) : json_null());
    rf_table_cell(table, "%s", scenario->spec->name);
    rf_table_cell(table, "%s", method);
    rf_table_cell(table, "%s", rf_strategy_name(scenario->spec->strategy));
    if (gap != NULL) {
        json_object_set_new(entry, "note", json_string(gap));
        rf_table_cell(table, "- [%zu]", note_number(context->notes, gap));
    } else {
        rf_table_cell(table, "%.4g", p->ms / 1e3);
    }
    seconds_cell(table, p->bound_ms);
    measured_cell(context, scenario, method, entry);
    rf_table_cell(table, "%s", step ? rf_figure_text(p->step_s, 2, text) : "-");
    rf_table_cell(table, step ? "%.3g %%" : "-", p->share * 100);
    if (step) {
        json_object_set_new(entry, "step_s", json_real(p->step_s));
        json_object_set_new(entry, "refit_share", json_real(p->share));
    }
    json_array_append_new(context->list, entry);
}

/* Fills `p` where the model covers the scenario. The schedule counts a cast
 * once, the bound both its sides: no prediction is below the bound. */
static char *predict(const struct context *context,
                     const struct rf_scenario *scenario, const char *method,
                     const struct rf_link_figures *figures, bool own,
                     const struct rf_links *links, struct rf_prediction *p)
{
    struct rf_bound bound = {0};
    char *gap = rf_predict_gap(scenario, method, figures, own, links);
    if (gap != NULL) {
        return gap;
    }
    if (rf_method_info_find(method)->needs_folder) {
        p->ms = rf_predict_disk_ms(figures, context->model->bytes,
                                   scenario->plan->totals.bytes_total);
    } else {
        p->ms = rf_cost_predict_ms(scenario->plan, scenario->schedule, links,
                                   figures->per_op_us);
        if (rf_cost_bound(scenario->plan, links, context->config->node_names,
                          &bound, NULL) == RF_OK) {
            p->bound_ms = bound.ms;
            p->ms = RF_MAX(p->ms, bound.ms);
        }
    }
    p->ms += figures->setup_ms;
    rf_predict_step(&context->timeline, p);
    return NULL;
}

static enum rf_status predict_one(struct context *context,
                                  const struct rf_scenario *scenario,
                                  const char *method, struct rf_err *err)
{
    struct rf_link_figures figures = context->links;
    struct rf_links links;
    struct rf_prediction p = {0};
    enum rf_status status = RF_OK;
    char *gap;
    bool own = json_object_get(context->methods.value, method) != NULL;
    if (own) {
        struct rf_jnode node = rf_jnode_get(&context->methods, method);
        status = rf_link_figures_read(&node, &figures, err);
    }
    if (status != RF_OK) {
        return status;
    }
    rf_links_init(&links, scenario->world->n_nodes);
    if (!own) {
        measured_links(context, rf_method_info_find(method)->memory, &links);
    }
    rf_link_figures_spread(&figures, &links); /* what is written wins */
    gap = predict(context, scenario, method, &figures, own, &links, &p);
    add_row(context, scenario, method, &p, gap);
    free(gap);
    rf_links_free(&links);
    return RF_OK;
}

/* Scenarios that are equal but for their name, method and its folder have equal
 * predictions for other methods. `method` NULL: the scenario's own. Whether the
 * row is noted for the first time. */
static bool note_row(const struct context *context, size_t index,
                     const char *method)
{
    const struct rf_config *config = context->config;
    struct rf_jnode node = rf_config_scenario(config, index);
    struct rf_spec *spec = NULL;
    json_t *scenario;
    char *key;
    bool fresh;
    if (rf_spec_from_json(&node, config->node_names, config->n_nodes, &spec,
                          NULL) != RF_OK) {
        return true; /* not after the file has been read */
    }
    scenario = rf_spec_to_json(spec, config->node_names);
    json_object_del(scenario, "name");
    json_object_del(scenario, "disk");
    json_object_set_new(scenario, "method",
                        json_string(method != NULL ? method : spec->method));
    key = json_dumps(scenario, JSON_COMPACT | JSON_SORT_KEYS);
    fresh = key == NULL || json_object_get(context->told, key) == NULL;
    if (key != NULL) {
        json_object_set_new(context->told, key, json_true());
    }
    free(key);
    json_decref(scenario);
    rf_spec_destroy(spec);
    return fresh;
}

/* The scenario's own method, then every other of "links.methods" that could
 * run it and has no row of an equal scenario. */
static enum rf_status predict_scenario(struct context *context,
                                       const struct rf_scenario *scenario,
                                       struct rf_err *err)
{
    const char *method;
    json_t *value;
    enum rf_status status =
        predict_one(context, scenario, scenario->spec->method, err);
    json_object_foreach (context->methods.value, method, value) {
        const struct rf_method_info *info = rf_method_info_find(method);
        if (status != RF_OK) {
            break;
        }
        if (strcmp(method, scenario->spec->method) != 0 &&
            (info->needs_folder || /* which a prediction does not */
             rf_method_check(info, scenario->plan, context->config->node_names,
                             NULL) == RF_OK) &&
            note_row(context, scenario->index, method)) {
            status = predict_one(context, scenario, method, err);
        }
    }
    return status;
}

static enum rf_status predict_all(struct context *context, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (size_t i = 0; i < context->config->n_scenarios; i++) {
        (void)note_row(context, i, NULL); /* every scenario has its own */
    }
    for (size_t i = 0; status == RF_OK && i < context->config->n_scenarios;
         i++) {
        struct rf_scenario *scenario = NULL;
        status = rf_scenario_build(context->config, context->model, i,
                                   &scenario, err);
        if (status == RF_OK) {
            status = predict_scenario(context, scenario, err);
        }
        rf_scenario_destroy(scenario);
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
        for (size_t i = 0; i < json_array_size(context->notes); i++) {
            printf("[%zu] ", i + 1);
            rf_escape(stdout, RF_REPORT_TABLE,
                      json_string_value(json_array_get(context->notes, i)));
            putchar('\n');
        }
    }
}

static struct rf_table *create_table(void)
{
    static const char *const heads[] = {
        "scenario",     "method",       "strategy",
        ">predicted s", ">bound s",     ">measured s",
        ">step s",      ">refit share", NULL};
    static const char *const drops[] = {"refit share", "step s", "strategy",
                                        "bound s", NULL};
    struct rf_table *table = rf_table_create(heads);
    rf_table_set_drops(table, drops, "refit-coord predict FILE | less -S");
    return table;
}

int rf_predict_command(const struct rf_cli *cli)
{
    struct rf_config *config = NULL;
    struct rf_model *model = NULL;
    struct rf_err err = {0};
    struct context context = {.table = create_table(),
                              .list = json_array(),
                              .told = json_object(),
                              .notes = json_array()};
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
        context.model_json = rf_model_json(model);
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
    json_decref(context.model_json);
    json_decref(context.list);
    json_decref(context.told);
    json_decref(context.notes);
    rf_table_destroy(context.table);
    rf_result_set_free(&context.measured);
    rf_model_destroy(model);
    rf_config_destroy(config);
    return status == RF_OK ? RF_EXIT_OK : RF_EXIT_USAGE;
}
