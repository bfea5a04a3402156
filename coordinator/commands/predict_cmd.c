/*
 * `refit-coord predict`: seconds for each scenario and method before anything
 * runs. Figures come from "links" in cluster.json, missing ones from the probes
 * in result folders. Results that measured the same refit are shown beside the
 * prediction and calibrate it and similar ones. Nothing is assumed: missing
 * figures are an error, a method without its own figures takes those of
 * "links", and cases outside the model get "-" and a footnote.
 */
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "coordinator/commands/cli.h"
#include "coordinator/commands/load.h"
#include "coordinator/predict/demo.h"
#include "coordinator/predict/predict.h"
#include "coordinator/records/fields.h"
#include "coordinator/scenario/scenario.h"
#include "coordinator/scenario/scenario_set.h"
#include "planner/model/model_json.h"
#include "planner/predict/encoded.h"
#include "transport/info/method_info.h"

struct predict_context {
    struct rf_config *config;
    struct rf_model *model;
    struct rf_predict_results measured;
    char **reasons; /* per measured result, see rf_predict_measured() */
    struct rf_predict_rows rows;
    struct rf_leave_one_out error;
    json_t *noted; /* object: present and planned rows, by note_row() */
};

/* Fills `p`. No prediction is below the bound, which counts both sides of a
 * cast. */
static enum rf_status predict(const struct predict_context *context,
                              const struct rf_predict_input *input,
                              struct rf_prediction *p, struct rf_err *err)
{
    const struct rf_plan *plan = input->scenario->plan;
    struct rf_bound bound = {0};
    if (rf_method_info_find(input->method)->needs_folder) {
        struct rf_file_loads loads;
        rf_predict_file_loads(input->scenario->world, input->scenario->schedule,
                              &loads);
        p->simulated_ms = rf_predict_disk_ms(&input->figures, &loads);
    } else {
        const struct rf_simulate_env env = rf_predict_env(input);
        struct rf_simulated simulated = {.ms = 0};
        const enum rf_encoding encoding = rf_scenario_encoding(
            input->scenario, rf_method_info_find(input->method));
        RF_TRY(rf_simulate_encoded(&env, encoding, RF_ITS_SHARES, &simulated,
                                   err));
        p->simulated_ms = simulated.ms;
        p->path = simulated.path;
        if (env.inside.left == RF_LEFT_NOTHING &&
            rf_bounds_any(plan, encoding, &input->links,
                          context->config->node_names, &bound, NULL) == RF_OK) {
            p->bound_ms = bound.ms;
            p->simulated_ms = RF_MAX(p->simulated_ms, bound.ms);
        }
    }
    p->simulated_ms += input->figures.setup_ms;
    return RF_OK;
}

/* Notes a row; true if it is new. Scenarios that differ only in name, method
 * and its options have equal predictions for other methods. `method` NULL: the
 * scenario's own. With `crossover`, notes that of the scenario's encoding, to
 * which the density is nothing. */
static bool note_row(const struct predict_context *context, size_t index,
                     const char *method, bool crossover)
{
    const struct rf_config *config = context->config;
    struct rf_jnode node = rf_config_scenario(config, index);
    struct rf_spec *spec = NULL;
    json_t *scenario;
    char *key;
    bool fresh;
    if (rf_spec_from_json(&node, config->node_names, config->n_nodes, &spec,
                          NULL) != RF_OK) {
        return true; /* impossible once the file was read */
    }
    scenario = rf_spec_to_json(spec, config->node_names);
    json_object_del(scenario, "name");
    json_object_del(scenario, "disk");
    if (method != NULL) {
        json_object_del(scenario, "ucx");
    }
    if (crossover) {
        json_object_del(json_object_get(scenario, "update"), "density");
        json_object_set_new(scenario, "crossover", json_true());
    }
    json_object_set(scenario, "model", rf_config_model(config, index));
    json_object_set_new(scenario, "method",
                        json_string(method != NULL ? method : spec->method));
    key = json_dumps(scenario, JSON_COMPACT | JSON_SORT_KEYS);
    fresh = key == NULL || json_object_get(context->noted, key) == NULL;
    if (key != NULL) {
        json_object_set_new(context->noted, key, json_true());
    }
    free(key);
    json_decref(scenario);
    rf_spec_destroy(spec);
    return fresh;
}

/* Simulates what a result measured with the figures that it ran on, or says
 * that they are not `known`. Imported results, whose links nobody knows,
 * calibrate nothing. */
static enum rf_status predict_own(const struct predict_context *context,
                                  const struct rf_predict_input *input,
                                  const struct rf_result_file *file,
                                  struct rf_predict_row *row, bool *known,
                                  struct rf_err *err)
{
    struct rf_predict_input own;
    enum rf_status status = RF_OK;
    *known = true;
    row->own = (struct rf_prediction){.ms = 0};
    if (file == NULL || row->gap != NULL) {
        return RF_OK;
    }
    if (rf_result_is_imported(file->result)) {
        row->own = row->p;
        return RF_OK;
    }
    *known = rf_predict_own(&context->measured, file, input, &own);
    if (*known) {
        status = predict(context, &own, &row->own, err);
    }
    rf_capacities_free(&own.links);
    return status;
}

/* Finds the measured time. Nodes at unusual speeds matter unless links took the
 * time, on those that the result ran on if any is known. */
static enum rf_status measure(const struct predict_context *context,
                              const struct rf_predict_input *input,
                              struct rf_predict_row *row, struct rf_err *err)
{
    const struct rf_predict_speeds *speeds =
        &context->measured.speeds[row->method->memory];
    const struct rf_result_set *set = &context->measured.set;
    struct rf_measured any, *found = &row->measured;
    json_t *model = rf_model_json(input->scenario->plan->model);
    enum rf_status status;
    bool known;
    rf_predict_measured(set, NULL, input->scenario, input->method, model, NULL,
                        &any);
    status = predict_own(context, input, any.from, row, &known, err);
    rf_predict_measured(
        set,
        (row->own.simulated_ms > 0 ? row->own : row->p).path == RF_PATH_BETWEEN
            ? NULL
            : speeds,
        input->scenario, input->method, model, context->reasons, found);
    json_decref(model);
    free(any.why);
    if (status == RF_OK && found->from != any.from) {
        status = predict_own(context, input, found->from, row, &known, err);
    }
    if (!known) {
        found->why = rf_xasprintf(
            "calibrates nothing: scenario %s of run %s does not say the rate "
            "of its links; run it again with yardsticks",
            found->from->name, found->from->run);
    }
    return status;
}

static enum rf_status add_row(struct predict_context *context,
                              const struct rf_predict_input *input,
                              struct rf_err *err)
{
    const struct rf_spec *spec = input->scenario->spec;
    struct rf_predict_row row = {
        .method = rf_method_info_find(input->method),
        .strategy = rf_strategy_name(spec->strategy),
        .encoding = rf_scenario_encoding(input->scenario,
                                         rf_method_info_find(input->method)),
        .index = input->scenario->index,
        .gap = rf_predict_gap(input),
        .note = rf_predict_note(input)};
    if (row.gap == NULL) {
        RF_TRY(predict(context, input, &row.p, err));
    }
    row.crossover.wanted = row.gap == NULL &&
                           row.encoding != RF_ENCODING_DENSE &&
                           note_row(context, row.index, input->method, true);
    row.scenario = rf_xstrdup(spec->name);
    RF_TRY(measure(context, input, &row, err));
    RF_PUSH(context->rows.rows, context->rows.n, context->rows.capacity, row);
    return RF_OK;
}

/* Free with rf_capacities_free(&links). */
static struct rf_predict_input input_of(const struct predict_context *context,
                                        const struct rf_scenario *scenario,
                                        const char *method)
{
    const struct rf_method_info *info = rf_method_info_find(method);
    struct rf_predict_input input = {
        .scenario = scenario,
        .method = method,
        .figures = *rf_links_of(&context->config->links, info),
        .own = rf_predict_has_own(context->config, info),
        .named = context->measured.set.n > 0};
    rf_predict_results_links(&context->measured, scenario, info, &input.links);
    return input;
}

static enum rf_status predict_one(struct predict_context *context,
                                  const struct rf_scenario *scenario,
                                  const char *method, struct rf_err *err)
{
    struct rf_predict_input input = input_of(context, scenario, method);
    const enum rf_status status = add_row(context, &input, err);
    rf_capacities_free(&input.links);
    return status;
}

/* Predicts the scenario's own method, then every other of "links.methods" that
 * could run it and has no row from an equal scenario. */
static enum rf_status predict_scenario(struct predict_context *context,
                                       const struct rf_scenario *scenario,
                                       struct rf_err *err)
{
    const struct rf_jnode methods = rf_predict_methods(context->config);
    const char *method;
    json_t *value;
    enum rf_status status =
        predict_one(context, scenario, scenario->spec->method, err);
    json_object_foreach (methods.value, method, value) {
        const struct rf_method_info *info = rf_method_info_find(method);
        if (status != RF_OK) {
            break;
        }
        if (strcmp(method, scenario->spec->method) != 0 &&
            (info->needs_folder || /* a prediction needs none */
             rf_method_check(info, scenario->plan, context->config->node_names,
                             NULL) == RF_OK) &&
            note_row(context, scenario->index, method, false)) {
            status = predict_one(context, scenario, method, err);
        }
    }
    return status;
}

static enum rf_status predict_all(struct predict_context *context,
                                  struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (size_t i = 0; i < context->config->n_scenarios; i++) {
        (void)note_row(context, i, NULL, false); /* its own method's row */
    }
    for (size_t i = 0; status == RF_OK && i < context->config->n_scenarios;
         i++) {
        struct rf_scenario *scenario = NULL;
        status = rf_scenario_set_try(context->config, context->model, i,
                                     &scenario, err);
        if (scenario != NULL) {
            status = predict_scenario(context, scenario, err);
        }
        rf_scenario_destroy(scenario);
    }
    if (status == RF_OK) {
        rf_scenario_set_announce(context->config);
    }
    return status;
}

/* Once all rows are calibrated. */
static enum rf_status find_crossovers(struct predict_context *context,
                                      struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (size_t i = 0; status == RF_OK && i < context->rows.n; i++) {
        struct rf_predict_row *row = &context->rows.rows[i];
        struct rf_scenario *scenario = NULL;
        struct rf_predict_input input;
        if (!row->crossover.wanted) {
            continue;
        }
        status = rf_scenario_build(context->config, context->model, row->index,
                                   &scenario, err);
        if (status == RF_OK) {
            input = input_of(context, scenario, row->method->name);
            status = rf_predict_crossover(&context->rows, &input, row, err);
            rf_capacities_free(&input.links);
        }
        rf_scenario_destroy(scenario);
    }
    return status;
}

static enum rf_status read_figures(struct predict_context *context,
                                   const struct rf_cli *cli, struct rf_err *err)
{
    const struct rf_config *config = context->config;
    RF_TRY(rf_predict_results_read(config, cli->operands + 1,
                                   cli->n_operands - 1, &context->measured,
                                   err));
    context->reasons =
        rf_xcalloc(context->measured.set.n + 1, sizeof(*context->reasons));
    if (context->measured.set.n == 0 &&
        json_object_get(config->document, "links") == NULL) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: no figures to predict from: add \"links\" to "
                          "it, or name a result folder after it",
                          config->file);
    }
    return RF_OK;
}

static enum rf_status load(struct predict_context *context,
                           const struct rf_cli *cli, struct rf_err *err)
{
    RF_TRY(rf_load(cli, false, &context->config, &context->model, err));
    return read_figures(context, cli, err);
}

static void free_context(struct predict_context *context)
{
    json_decref(context->noted);
    rf_predict_rows_free(&context->rows);
    for (size_t i = 0; context->reasons != NULL && i < context->measured.set.n;
         i++) {
        free(context->reasons[i]);
    }
    free(context->reasons);
    rf_predict_results_free(&context->measured);
    rf_model_destroy(context->model);
    rf_config_destroy(context->config);
}

static void print_out(const struct rf_cli *cli, struct predict_context *context)
{
    const struct rf_timeline *timeline = &context->config->timeline;
    context->rows.n_results = context->measured.set.n;
    context->rows.not_used = rf_predict_not_used(
        &context->measured.set, context->reasons, &context->rows);
    for (int k = 0; k < RF_MEMORY_KINDS; k++) {
        context->rows.n_unsettled += context->measured.speeds[k].n_unsettled;
    }
    rf_predict_warn(&context->rows);
    for (size_t i = 0; i < context->rows.n; i++) {
        rf_predict_step(timeline, &context->rows.rows[i].p);
    }
    (cli->json ? rf_predict_print_json : rf_predict_print_table)(
        &context->rows, &context->error, timeline->given, stdout);
}

/* The demo's training step, as changed by --set. */
static enum rf_status read_step(const struct rf_cli *cli,
                                struct rf_timeline *out, struct rf_err *err)
{
    static const char *const top[] = {"timeline", NULL};
    static const char *const keys[] = {"rollout_s", "train_s", "other_s", NULL};
    json_t *document =
        json_pack("{s:{s:i, s:i}}", top[0], keys[0], 30, keys[1], 20);
    const struct rf_jnode root = rf_jnode_root(document, "--demo");
    struct rf_jnode timeline;
    enum rf_status status =
        rf_overrides_set(&cli->overrides, document, "--demo", err);
    RF_THEN(status, rf_jnode_check_keys(&root, top, err));
    timeline = rf_jnode_get(&root, top[0]);
    RF_THEN(status, rf_timeline_read(&root, out, err));
    RF_THEN(status, rf_jnode_check_keys(&timeline, keys, err));
    json_decref(document);
    return status;
}

static int demo(const struct rf_cli *cli)
{
    struct rf_err err = {0};
    struct rf_timeline step;
    struct rf_demo demo = {.step = &step, .explain = cli->explain};
    if (rf_demo_size(cli->demo, &demo.bytes, &err) != RF_OK ||
        read_step(cli, &step, &err) != RF_OK) {
        rf_error("%s", err.text);
        return RF_EXIT_USAGE;
    }
    rf_demo_print(&demo, cli->json, stdout);
    return RF_EXIT_OK;
}

int rf_predict_command(struct rf_cli *cli)
{
    struct rf_err err = {0};
    struct predict_context context = {.noted = NULL};
    int code = RF_EXIT_USAGE;
    if (cli->demo != NULL) {
        return demo(cli);
    }
    context.noted = json_object();
    if (load(&context, cli, &err) != RF_OK ||
        predict_all(&context, &err) != RF_OK) {
        rf_error("%s", err.text);
        goto free_context;
    }
    rf_predict_calibrate(&context.rows, &context.error);
    if (find_crossovers(&context, &err) != RF_OK) {
        rf_error("%s", err.text);
        goto free_context;
    }
    print_out(cli, &context);
    code = RF_EXIT_OK;
free_context:
    free_context(&context);
    return code;
}
