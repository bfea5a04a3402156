/*
 * `refit-coord report`: result folders in one of the forms of reports/report.h,
 * on standard output or in the file of --html, as figures (figures_script.h),
 * or packed as an artifact (artifact/artifact.h).
 */
#include <stdlib.h>
#include <string.h>

#include "common/json_out.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/store.h"
#include "coordinator/artifact/artifact.h"
#include "coordinator/commands/cli.h"
#include "coordinator/commands/figures_script.h"
#include "coordinator/commands/schema_cmd.h"
#include "coordinator/reports/pool.h"
#include "coordinator/reports/report.h"
#include "coordinator/reports/report_alpa.h"
#include "coordinator/reports/report_html.h"
#include "coordinator/reports/report_json.h"
#include "coordinator/reports/report_nccl_tests.h"
#include "coordinator/reports/report_stages.h"

/* The page with its figures, or with the reason that it has none. */
static enum rf_status store_page(const char *path,
                                 const struct rf_result_set *set,
                                 const json_t *figures, struct rf_err *err)
{
    char *text;
    size_t size;
    FILE *file = rf_xmemstream(&text, &size);
    enum rf_status status;
    rf_report_html_print(set, figures, file);
    rf_xmemstream_close(file);
    status = rf_store(path, text, size, err);
    free(text);
    return status;
}

/* Comparison of --reference DIR, shown with the results. */
struct beside {
    struct rf_result_set reference;
    struct rf_comparisons list;
    const struct rf_comparisons *all; /* NULL: no reference */
};

static enum rf_status read_reference(const struct rf_cli *cli,
                                     const struct rf_result_set *set,
                                     struct beside *beside, struct rf_err *err)
{
    enum rf_status status;
    if (cli->reference == NULL) {
        return RF_OK;
    }
    status = rf_result_set_add(&beside->reference, cli->reference, err);
    RF_THEN(status, rf_compare_check(&beside->reference, cli->reference, set,
                                     cli->operands[0], err));
    if (status == RF_OK) {
        rf_compare(&beside->reference, set, &cli->thresholds, &beside->list);
        beside->all = &beside->list;
    }
    return status;
}

/* Prints the files, one per line, and the notes on missing figures. */
static void print_figures(const json_t *drawn)
{
    const json_t *figures = json_object_get(drawn, "figures"), *one, *path;
    const json_t *notes = json_object_get(drawn, "notes");
    size_t i, k;
    json_array_foreach (figures, i, one) {
        json_array_foreach (json_object_get(one, "files"), k, path) {
            puts(json_string_value(path));
        }
    }
    (void)fflush(stdout); /* main() reports its errors */
    json_array_foreach (notes, i, one) {
        rf_info("%s", json_string_value(one));
    }
}

/* If figures cannot be drawn, the page says why. */
static enum rf_status write_page(const struct rf_cli *cli,
                                 const struct rf_result_set *set,
                                 const struct rf_comparisons *beside,
                                 struct rf_err *err)
{
    struct rf_err why = {0};
    json_t *drawn = NULL;
    enum rf_status status;
    if (rf_figures_script_draw(set, beside, NULL, &drawn, &why) != RF_OK) {
        drawn = json_pack("{s:s}", "error", why.text);
    }
    status = store_page(cli->html, set, drawn, err);
    json_decref(drawn);
    return status;
}

static enum rf_status write_figures(const struct rf_cli *cli,
                                    const struct rf_result_set *set,
                                    const struct rf_comparisons *beside,
                                    struct rf_err *err)
{
    json_t *drawn = NULL;
    enum rf_status status =
        rf_figures_script_draw(set, beside, cli->figures, &drawn, err);
    if (status == RF_OK) {
        print_figures(drawn);
    }
    json_decref(drawn);
    return status;
}

/* The forms that can also show a reference. */
static enum rf_status draw(const struct rf_cli *cli,
                           const struct rf_result_set *set, struct rf_err *err)
{
    struct beside beside = {.all = NULL};
    enum rf_status status = read_reference(cli, set, &beside, err);
    if (status == RF_OK) {
        status = cli->html != NULL ? write_page(cli, set, beside.all, err)
                                   : write_figures(cli, set, beside.all, err);
    }
    rf_comparisons_free(&beside.list);
    rf_result_set_free(&beside.reference);
    return status;
}

/* Writes the file in the form of Alpa's suite. Unlike a report, it may not be
 * empty, since another program reads it. */
static enum rf_status write_alpa(const char *path,
                                 const struct rf_result_set *set,
                                 struct rf_err *err)
{
    json_t *list = rf_report_alpa(set);
    if (json_array_size(list) == 0) {
        json_decref(list);
        return rf_err_set(
            err, RF_ERR_CONFIG,
            "--alpa: no result is comparable with Alpa, which moves one tensor "
            "between two layouts \"spec\" (examples/1-to-m.json)");
    }
    if (path[0] != '\0') {
        char *text = json_dumps(list, JSON_INDENT(4) | JSON_REAL_PRECISION(9) |
                                          JSON_ENSURE_ASCII);
        enum rf_status status = rf_store(path, text, strlen(text), err);
        free(text);
        json_decref(list);
        return status;
    }
    rf_json_out(list, stdout);
    return RF_OK;
}

static enum rf_status write_artifact(const char *path,
                                     const struct rf_result_set *set,
                                     struct rf_err *err)
{
    json_t *schemas = rf_schemas();
    enum rf_status status = rf_artifact_write(set, schemas, path, err);
    json_decref(schemas);
    return rf_err_within(status, err, "--artifact");
}

/* The others for programs, likewise. */
static enum rf_status print_nccl_tests(const struct rf_result_set *set,
                                       struct rf_err *err)
{
    json_t *document = rf_report_nccl_tests(set);
    if (json_array_size(json_object_get(document, "results")) == 0) {
        json_decref(document);
        return rf_err_set(err, RF_ERR_CONFIG,
                          "--nccl-tests: no result is ok and has times");
    }
    rf_json_out(document, stdout);
    return RF_OK;
}

static enum rf_status print_stages(const struct rf_result_set *set,
                                   struct rf_err *err)
{
    json_t *list = rf_report_stages(set);
    const json_t *record;
    size_t i;
    if (json_array_size(list) == 0) {
        json_decref(list);
        return rf_err_set(err, RF_ERR_CONFIG,
                          "--stage-v2: no result has times of ranks that "
                          "received bytes");
    }
    json_array_foreach (list, i, record) {
        (void)json_dumpf(record, stdout,
                         JSON_COMPACT | JSON_REAL_PRECISION(9) |
                             JSON_ENSURE_ASCII);
        putchar('\n'); /* main() reports errors of the stream */
    }
    json_decref(list);
    return RF_OK;
}

static enum rf_status print_report(const struct rf_cli *cli,
                                   const struct rf_result_set *set,
                                   struct rf_err *err)
{
    if (cli->json) {
        rf_json_out(rf_report_json(set), stdout);
    } else if (cli->alpa != NULL) {
        return write_alpa(cli->alpa, set, err);
    } else if (cli->artifact != NULL) {
        return write_artifact(cli->artifact, set, err);
    } else if (cli->nccl_tests) {
        return print_nccl_tests(set, err);
    } else if (cli->stage_v2) {
        return print_stages(set, err);
    } else if (cli->figures != NULL || cli->html != NULL) {
        return draw(cli, set, err);
    } else {
        const struct rf_report_options options = {
            .form = cli->form,
            .program = cli->level > RF_LOG_INFO ? cli->argv[0] : NULL,
            .drop_constant = cli->drop_constant};
        rf_report_print(set, &options, stdout);
    }
    return RF_OK;
}

static enum rf_status read_set(const struct rf_cli *cli,
                               struct rf_result_set *set,
                               struct rf_pooled *pooled, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (size_t i = 0; i < cli->n_operands && status == RF_OK; i++) {
        status = rf_result_set_add(set, cli->operands[i], err);
    }
    if (status == RF_OK && cli->pool) {
        rf_pool(set, pooled);
        status = rf_pool_check(pooled, err);
    }
    return status;
}

int rf_report_command(struct rf_cli *cli)
{
    struct rf_result_set set = {0};
    struct rf_pooled pooled = {0};
    struct rf_err err = {0};
    int code = RF_EXIT_USAGE;
    if (read_set(cli, &set, &pooled, &err) != RF_OK) {
        goto out;
    }
    code = set.n_bad + pooled.apart > 0 ? RF_EXIT_FAILED : RF_EXIT_OK;
    switch (print_report(cli, &set, &err)) {
    case RF_OK:
        break;
    case RF_ERR_CONFIG:
        code = RF_EXIT_USAGE;
        break;
    default:
        code = RF_EXIT_FAILED;
    }
out:
    if (err.status != RF_OK) {
        rf_error("%s", err.text);
    }
    rf_result_set_free(&set);
    return code;
}
