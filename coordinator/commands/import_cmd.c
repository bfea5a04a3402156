/*
 * `refit-coord import`: refits that another system measured, as one result
 * folder, which report, compare and predict read like any other. Nothing is
 * stored unless all cases of all files are right.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "common/log.h"
#include "common/random.h"
#include "coordinator/commands/cli.h"
#include "coordinator/commands/load.h"
#include "coordinator/import/import_case.h"
#include "coordinator/import/import_record.h"
#include "coordinator/import/import_store.h"
#include "coordinator/records/fields.h"

/* The source's bytes and the plan's may differ by this share before the case
 * seems to be another refit. */
#define BYTES_WITHIN 0.01

/* The scenario that a case describes; the config and the model are needed as
 * long as it is. */
struct import_plan {
    struct rf_config *config;
    struct rf_model *model;
    struct rf_scenario *scenario;
};

static void free_planned(struct import_plan *planned)
{
    rf_scenario_destroy(planned->scenario);
    rf_model_destroy(planned->model);
    rf_config_destroy(planned->config);
}

/* An error of the cluster file is wrapped in the case's place. */
static enum rf_status plan(const char *path, const char *place, json_t *cluster,
                           struct import_plan *out, struct rf_err *err)
{
    enum rf_status status =
        rf_config_from_json(cluster, path, true, &out->config, err);
    if (status == RF_OK && out->config->n_scenarios != 1) {
        status = rf_err_set(err, RF_ERR_CONFIG,
                            "%s: lists make %zu scenarios of it, but its times "
                            "are of one: give each a case",
                            path, out->config->n_scenarios);
    }
    RF_THEN(status, rf_load_model(out->config, &out->model, err));
    RF_THEN(status,
            rf_scenario_build(out->config, out->model, 0, &out->scenario, err));
    return rf_err_within(status, err, "%s, as a cluster file", place);
}

static void warn_of_bytes(const json_t *record, const char *place)
{
    double stated, planned;
    if (rf_result_number(record, "source", "bytes", &stated) &&
        rf_result_number(record, "plan", "bytes_total", &planned) &&
        fabs(planned / stated - 1) > BYTES_WITHIN) {
        rf_warn("%s: the source moves %.0f bytes, the plan of this case %.0f: "
                "check its model, dtype and meshes",
                place, stated, planned);
    }
}

static json_t *environment_of(const struct rf_config *config)
{
    json_t *out = json_array();
    for (uint32_t n = 0; n < config->n_nodes; n++) {
        json_array_append_new(
            out, json_pack("{s:s}", "host", config->node_names[n]));
    }
    return out;
}

/* A new reference. */
static enum rf_status import_case(const struct rf_import_file *file,
                                  const struct rf_import_case *one,
                                  const char *place,
                                  const struct rf_result_run *run, json_t **out,
                                  struct rf_err *err)
{
    struct import_plan planned = {.config = NULL};
    struct rf_result_run own = *run;
    json_t *cluster = NULL, *iterations = NULL, *source = NULL;
    enum rf_status status = rf_import_case_source(one, &source, err);
    RF_THEN(status, rf_import_case_iterations(one, &iterations, err));
    RF_THEN(status, rf_import_case_cluster(file, one, &cluster, err));
    RF_THEN(status, plan(file->path, place, cluster, &planned, err));
    if (status == RF_OK) {
        own.config = planned.config;
        own.model = planned.model;
        own.environment = environment_of(planned.config);
        *out = rf_import_record(&own, planned.scenario, json_incref(iterations),
                                json_incref(source));
        planned.scenario = NULL;
        json_decref(own.environment);
    }
    free_planned(&planned);
    json_decref(iterations);
    json_decref(source);
    return status;
}

/* Appends a record, which it takes. */
static enum rf_status add_record(json_t *records, json_t *record,
                                 const char *place, struct rf_err *err)
{
    const char *name = rf_result_text(record, NULL, "name");
    const json_t *other;
    size_t i;
    json_array_append_new(records, record);
    json_array_foreach (records, i, other) {
        if (other != record &&
            strcasecmp(rf_result_text(other, NULL, "name"), name) == 0) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "%s: the name \"%.80s\" is that of another case; "
                              "names must be unique, they name result files",
                              place, name);
        }
    }
    return RF_OK;
}

static enum rf_status import_cases(const struct rf_import_file *file,
                                   const struct rf_result_run *run,
                                   json_t *records, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (size_t i = 0; i < file->n && status == RF_OK; i++) {
        char *place = rf_import_case_place(&file->cases[i]);
        json_t *record = NULL;
        status = import_case(file, &file->cases[i], place, run, &record, err);
        RF_THEN(status, add_record(records, record, place, err));
        if (status == RF_OK) {
            warn_of_bytes(record, place);
        }
        free(place);
    }
    return status;
}

static enum rf_status import_files(const struct rf_cli *cli,
                                   const struct rf_result_run *run,
                                   json_t *records, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (size_t i = 0; i < cli->n_operands && status == RF_OK; i++) {
        struct rf_import_file file;
        status = rf_import_file_read(cli->operands[i], &file, err);
        RF_THEN(status, import_cases(&file, run, records, err));
        rf_import_file_free(&file);
    }
    return status;
}

int rf_import_command(struct rf_cli *cli)
{
    struct rf_err err = {0};
    char run_id[17], *folder = NULL;
    json_t *libraries = rf_library_versions(), *records = json_array();
    const struct rf_result_run run = {
        .maker = {cli->argc, cli->argv, libraries}, .run_id = run_id};
    int code = RF_EXIT_USAGE;
    rf_random_hex(run_id, 8);
    if (import_files(cli, &run, records, &err) == RF_OK) {
        const enum rf_status status =
            rf_import_store(cli->out, rf_import_file_name(cli->operands[0]),
                            &run, records, &folder, &err);
        code = status == RF_OK ? RF_EXIT_OK : RF_EXIT_FAILED;
    }
    if (code == RF_EXIT_OK) {
        puts(folder);
    } else {
        rf_error("%s", err.text);
    }
    free(folder);
    json_decref(libraries);
    json_decref(records);
    return code;
}
