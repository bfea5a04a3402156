/*
 * `refit-coord advise`: meshes for the slots of a cluster file, without
 * reaching a node. Each scenario gives what stays fixed: mode, layouts, method,
 * strategy, nodes and the number of ranks of each side. Every slot counts as a
 * GPU, whatever memory the method uses: the meshes are those of real training.
 */
#include <stdlib.h>

#include "common/json_out.h"
#include "common/log.h"
#include "common/text.h"
#include "coordinator/advice/advise_search.h"
#include "coordinator/commands/cli.h"
#include "coordinator/commands/load.h"
#include "coordinator/predict/predict.h"
#include "coordinator/scenario/scenario_set.h"
#include "coordinator/table/table.h"

#define SHOWN 12 /* choices, in the text form */
/* Ranks planned for a scenario: 512 worlds of 16 ranks, 16 of 512. */
#define BUDGET 8192

/* `timeline`: the one of the search. `assumed`: its parts that are not from the
 * file; NULL: none. */
struct advise_report {
    const struct rf_scenario *base;
    const struct rf_timeline *timeline;
    char *assumed;
    struct rf_advised advised;
};

/* "TP2 PP2 EP8 DP4"; omits sizes of 1, except for a mesh of one rank. */
static void mesh_cell(struct rf_table *table, const struct rf_mesh *mesh,
                      bool experts)
{
    const struct {
        const char *name;
        uint32_t value;
    } sizes[] = {{"TP", mesh->tp},
                 {"CP", mesh->cp},
                 {"PP", mesh->pp},
                 {"EP", experts ? mesh->ep : 1},
                 {"ETP", experts ? mesh->etp : 1},
                 {"DP", mesh->dp}};
    char *text = NULL;
    for (size_t i = 0; i < RF_ARRAY_SIZE(sizes); i++) {
        if (sizes[i].value > 1) {
            rf_text_add(&text, " ", "%s%u", sizes[i].name, sizes[i].value);
        }
    }
    rf_table_cell(table, "%s", text != NULL ? text : "one rank");
    free(text);
}

static void broken_cell(struct rf_table *table, uint64_t broken)
{
    char *text = NULL;
    for (size_t i = 0; i < rf_mesh_advice_count(); i++) {
        if ((broken >> i & 1) && rf_mesh_advice(i)->weight > 0) {
            rf_text_add(&text, ", ", "%s", rf_mesh_advice(i)->name);
        }
    }
    rf_table_cell(table, "%s", text != NULL ? text : "-");
    free(text);
}

static void print_choices(const struct advise_report *report, size_t shown,
                          FILE *to)
{
    static const char *const heads[] = {
        "=train",    "=infer",   ">B/GPU",       ">train GB", ">infer GB",
        ">refit ms", "bound by", "rules broken", NULL};
    static const char *const drops[] = {"bound by", "infer GB", NULL};
    const bool experts = report->base->plan->model->n_experts > 0;
    struct rf_table *table = rf_table_create(heads);
    rf_table_set_drops(table, drops, "--json");
    for (size_t i = 0; i < shown; i++) {
        const struct rf_mesh_choice *choice = &report->advised.choices[i];
        mesh_cell(table, &choice->train, experts);
        mesh_cell(table, &choice->infer, experts);
        rf_table_cell(table, "%.2f", choice->parameters / 1e9);
        rf_table_cell(table, "%.1f", choice->training_gbytes);
        rf_table_cell(table, "%.1f", choice->inference_gbytes);
        rf_table_cell(table, "%.2f", choice->refit_ms);
        rf_table_cell(table, "%s", choice->busiest);
        broken_cell(table, choice->broken);
    }
    rf_table_print(table, to, RF_REPORT_TABLE, 0);
    rf_table_destroy(table);
    fputs("B/GPU: billion parameters on a training GPU; GB: memory of a GPU; "
          "refit ms: predicted\n\n",
          to);
}

/* The rule's text on why the choice breaks it. malloc'ed. */
static char *reason(const struct advise_report *report,
                    const struct rf_mesh_choice *choice, size_t rule)
{
    struct rf_mesh_advice_view view;
    struct rf_side_spec train, infer;
    rf_advise_sides(report->base, choice, &train, &infer);
    view = rf_advise_view(report->base, report->timeline, &train, &infer);
    return rf_mesh_advice_text(rule, &view);
}

/* Each rule broken by a shown choice, with the text for the best of them. One
 * without weight does not rank choices. */
static void print_rules(const struct advise_report *report, size_t shown,
                        FILE *to)
{
    for (size_t rule = 0; rule < rf_mesh_advice_count(); rule++) {
        for (size_t i = 0; i < shown; i++) {
            const struct rf_mesh_choice *choice = &report->advised.choices[i];
            if (choice->broken >> rule & 1) {
                char *text = reason(report, choice, rule);
                fprintf(to, "%s%s: %s (%s)\n",
                        rf_mesh_advice(rule)->weight > 0 ? "" : "hint ",
                        rf_mesh_advice(rule)->name, text,
                        rf_mesh_advice(rule)->source);
                free(text);
                break;
            }
        }
    }
}

/* The assumed figures by their keys of "links". A new reference. */
static json_t *assumed_json(const struct rf_assumed *assumed)
{
    const struct {
        const char *key;
        double figure;
    } figures[] = {{"copy_gbytes_per_s", assumed->copy_gbytes_per_s},
                   {"link_gbytes_per_s", assumed->link_gbytes_per_s},
                   {"link_latency_us", assumed->link_latency_us},
                   {"per_op_us", assumed->per_op_us}};
    json_t *out = json_object();
    for (size_t i = 0; i < RF_ARRAY_SIZE(figures); i++) {
        if (figures[i].figure > 0) {
            json_object_set_new(out, figures[i].key,
                                json_real(figures[i].figure));
        }
    }
    return out;
}

static void print_assumed_figures(const struct rf_assumed *assumed, FILE *to)
{
    json_t *figures = assumed_json(assumed), *figure;
    const char *key, *before = "Assumed: ";
    json_object_foreach (figures, key, figure) {
        fprintf(to, "%s%s %.4g", before, key, json_real_value(figure));
        before = ", ";
    }
    if (json_object_size(figures) > 0) {
        fputs("; give \"links\" or results for times of your "
              "cluster.\n",
              to);
    }
    json_decref(figures);
}

static void print_assumptions(const struct advise_report *report, FILE *to)
{
    const struct rf_timeline *timeline = report->timeline;
    if (report->assumed != NULL) {
        fprintf(to, "Assumed: %s.\n", report->assumed);
    }
    if (timeline->sequence_length <= 0) {
        fputs("Not counted: activations; give timeline.sequence_length, "
              "micro_batch and global_batch.\n",
              to);
    }
    print_assumed_figures(&report->advised.assumed, to);
}

static void print_scenario(const struct advise_report *report, FILE *to)
{
    json_t *scenario =
        rf_advise_scenario_json(report->base, &report->advised.choices[0]);
    fputs(
        report->advised.choices[0].weight < RF_MESH_UNFIT
            ? "First choice, to paste into the scenario:\n"
            : "None of these fits; the nearest, to paste into the scenario:\n",
        to);
    for (enum rf_side side = RF_TRAIN; side <= RF_INFER; side++) {
        const char *key = side == RF_TRAIN ? "train" : "infer";
        fprintf(to, "  \"%s\": ", key);
        json_dumpf(json_object_get(scenario, key), to, JSON_PRESERVE_ORDER);
        fputs(side == RF_TRAIN ? ",\n" : "\n", to);
    }
    json_decref(scenario);
}

/* The best choices, the rules that they break, the assumptions, and the first
 * choice as a scenario of cluster.json. */
static void print_report(const struct advise_report *report, FILE *to)
{
    const struct rf_scenario *base = report->base;
    const struct rf_advised *advised = &report->advised;
    const size_t shown = RF_MIN(advised->n, SHOWN);
    fprintf(to,
            "%s: %s, %.2f billion parameters, %u training and %u inference "
            "ranks\n",
            base->spec->name, base->plan->model->name,
            (double)base->plan->model->parameters / 1e9,
            base->world->size[RF_TRAIN], base->world->size[RF_INFER]);
    fprintf(to,
            "%zu training and %zu inference meshes%s are possible; %zu pairs "
            "predicted, %zu refused\n\n",
            advised->feasible[RF_TRAIN], advised->feasible[RF_INFER],
            base->spec->n_sides > RF_SIDES ? " (of infer[0])" : "", advised->n,
            advised->refused);
    if (shown == 0) {
        fputs("No pair of meshes works.\n", to);
        return;
    }
    print_choices(report, shown, to);
    print_rules(report, shown, to);
    print_assumptions(report, to);
    print_scenario(report, to);
}

/* --- JSON ----------------------------------------------------------------- */

static json_t *mesh_json(const struct rf_mesh *mesh)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "tp",
                     (json_int_t)mesh->tp, "cp", (json_int_t)mesh->cp, "pp",
                     (json_int_t)mesh->pp, "dp", (json_int_t)mesh->dp, "ep",
                     (json_int_t)mesh->ep, "etp", (json_int_t)mesh->etp);
}

static json_t *broken_json(const struct advise_report *report,
                           const struct rf_mesh_choice *choice)
{
    json_t *list = json_array();
    for (size_t i = 0; i < rf_mesh_advice_count(); i++) {
        if (choice->broken >> i & 1) {
            char *text = reason(report, choice, i);
            json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "rule",
                                                  rf_mesh_advice(i)->name,
                                                  "text", text, "source",
                                                  rf_mesh_advice(i)->source));
            free(text);
        }
    }
    return list;
}

static json_t *choice_json(const struct advise_report *report,
                           const struct rf_mesh_choice *choice)
{
    return json_pack(
        "{s:o, s:o, s:f, s:s, s:f, s:f, s:f, s:I, s:o, s:o}", "train",
        mesh_json(&choice->train), "infer", mesh_json(&choice->infer),
        "predicted_ms", choice->refit_ms, "busiest", choice->busiest,
        "parameters_per_gpu", choice->parameters, "training_gbytes",
        choice->training_gbytes, "inference_gbytes", choice->inference_gbytes,
        "weight", (json_int_t)choice->weight, "broken",
        broken_json(report, choice), "scenario",
        rf_advise_scenario_json(report->base, choice));
}

/* All choices. A new reference. */
static json_t *report_json(const struct advise_report *report)
{
    const struct rf_advised *advised = &report->advised;
    json_t *choices = json_array();
    for (size_t i = 0; i < advised->n; i++) {
        json_array_append_new(choices,
                              choice_json(report, &advised->choices[i]));
    }
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:b, s:o, s:f, s:b, s:o}", "scenario",
        report->base->spec->name, "training_meshes",
        (json_int_t)advised->feasible[RF_TRAIN], "inference_meshes",
        (json_int_t)advised->feasible[RF_INFER], "refused",
        (json_int_t)advised->refused, "links_assumed",
        (int)advised->links_assumed, "assumed", assumed_json(&advised->assumed),
        "memory_gbytes", report->timeline->memory_gbytes, "memory_assumed",
        report->base->config->timeline.memory_gbytes <= 0, "choices", choices);
}

/* The parts of a scenario that determine its meshes and the rules they break.
 * Scenarios that differ only in strategy or balance have the same. */
static json_t *question_of(const struct rf_scenario *base)
{
    const json_t *document = base->document;
    return json_pack("{s:s, s:O?, s:O?, s:O?}", "model",
                     base->plan->model->name, "mode",
                     json_object_get(document, "mode"), "train",
                     json_object_get(document, "train"), "infer",
                     json_object_get(document, "infer"));
}

/* If an earlier scenario has the same meshes, prints its name; otherwise notes
 * this scenario. */
static bool is_repeated(const struct rf_scenario *base, json_t *asked)
{
    json_t *question = question_of(base), *before;
    const char *name;
    json_object_foreach (asked, name, before) {
        if (json_equal(question, before)) {
            printf("%s: the meshes of %s; -s '%s' predicts this one's "
                   "refits\n",
                   base->spec->name, name, base->spec->name);
            json_decref(question);
            return true;
        }
    }
    json_object_set_new(asked, base->spec->name, question);
    return false;
}

static enum rf_status advise_one(const struct rf_scenario *base,
                                 const struct rf_predict_results *results,
                                 bool json, json_t *list, struct rf_err *err)
{
    struct rf_timeline timeline = base->config->timeline;
    struct advise_report report = {.base = base, .timeline = &timeline};
    struct rf_capacities links;
    enum rf_status status;
    if (base->spec->train.layout == RF_LAYOUT_SPEC) {
        rf_warn("%s: layout spec has a mesh of its own: no advice",
                base->spec->name);
        return RF_OK;
    }
    report.assumed = rf_mesh_advice_assume(&timeline);
    rf_predict_results_links(results, base, base->method, &links);
    status =
        rf_advise_search(base, &timeline, &links, BUDGET, &report.advised, err);
    rf_capacities_free(&links);
    if (status == RF_OK && json) {
        json_array_append_new(list, report_json(&report));
    } else if (status == RF_OK) {
        fputs(base->index > 0 ? "\n" : "", stdout);
        print_report(&report, stdout);
    }
    free(report.assumed);
    free(report.advised.choices);
    return status;
}

static enum rf_status advise_all(const struct rf_cli *cli,
                                 struct rf_config *config,
                                 const struct rf_model *model,
                                 const struct rf_predict_results *results,
                                 struct rf_err *err)
{
    json_t *list = json_array(), *asked = json_object();
    enum rf_status status = RF_OK;
    for (size_t i = 0; status == RF_OK && i < config->n_scenarios; i++) {
        struct rf_scenario *base = NULL;
        status = rf_scenario_set_try(config, model, i, &base, err);
        if (base != NULL && (cli->json || !is_repeated(base, asked))) {
            status = advise_one(base, results, cli->json, list, err);
        }
        rf_scenario_destroy(base);
    }
    if (status == RF_OK) {
        rf_scenario_set_announce(config);
    }
    if (status == RF_OK && cli->json) {
        rf_json_out(
            json_pack("{s:i, s:O}", "schema_version", 1, "scenarios", list),
            stdout);
    }
    json_decref(list);
    json_decref(asked);
    return status;
}

int rf_advise_command(struct rf_cli *cli)
{
    struct rf_config *config = NULL;
    struct rf_model *model = NULL;
    struct rf_predict_results results = {.config = NULL};
    struct rf_err err = {0};
    enum rf_status status = rf_load(cli, true, &config, &model, &err);
    if (status == RF_OK && model == NULL) { /* only nodes have it */
        status = rf_load_model(config, &model, &err);
    }
    RF_THEN(status,
            rf_predict_results_read(config, cli->operands + 1,
                                    cli->n_operands - 1, &results, &err));
    RF_THEN(status, advise_all(cli, config, model, &results, &err));
    rf_predict_results_free(&results);
    rf_model_destroy(model);
    rf_config_destroy(config);
    if (status != RF_OK) {
        rf_error("%s", err.text);
    }
    return status == RF_OK ? RF_EXIT_OK : RF_EXIT_USAGE;
}
