/*
 * `refit-coord compare`: compares two result folders, or two scenarios by their
 * files (reports/compare.h). The exit code is 1 only for something slower,
 * broken or missing, or an unreadable file, and 2 if nothing can be compared.
 */
#include "coordinator/commands/compare_cmd.h"

#include <stdlib.h>
#include <string.h>

#include "common/json_out.h"
#include "common/log.h"
#include "common/store.h"
#include "coordinator/commands/cli.h"
#include "coordinator/reports/outliers.h"
#include "coordinator/reports/pool.h"

void rf_compare_print(const struct rf_comparisons *all, bool json)
{
    if (!json) {
        rf_comparisons_print(all, stdout);
        rf_comparisons_print_totals(all, stdout);
        return;
    }
    rf_json_out(rf_comparisons_json(all), stdout);
}

/* With --pool, at least one of the sets must be of several runs. */
static enum rf_status pool(const struct rf_cli *cli,
                           struct rf_result_set *reference,
                           struct rf_result_set *now, struct rf_err *err)
{
    struct rf_pooled counts = {0};
    if (!cli->pool) {
        return RF_OK;
    }
    rf_pool(reference, &counts);
    rf_pool(now, &counts);
    return rf_pool_check(&counts, err);
}

/* Stores the file of --outliers. */
static enum rf_status store_outliers(const struct rf_comparisons *all,
                                     const char *path, struct rf_err *err)
{
    char *text = rf_outliers_csv(all);
    enum rf_status status = rf_store(path, text, strlen(text), err);
    free(text);
    return status;
}

int rf_compare_command(struct rf_cli *cli)
{
    const char *old_folder = cli->operands[0], *new_folder = cli->operands[1];
    const bool files = rf_is_file(old_folder) && rf_is_file(new_folder);
    struct rf_result_set reference = {0}, now = {0};
    struct rf_comparisons all = {0};
    struct rf_err err = {0};
    bool other;
    int code = RF_EXIT_USAGE;
    if (rf_result_set_add(&reference, old_folder, &err) != RF_OK ||
        rf_result_set_add(&now, new_folder, &err) != RF_OK ||
        pool(cli, &reference, &now, &err) != RF_OK ||
        (!files && rf_compare_check(&reference, old_folder, &now, new_folder,
                                    &err) != RF_OK)) {
        rf_error("%s", err.text);
        goto out;
    }
    if (files) {
        rf_compare_records(reference.files[0].result, now.files[0].result,
                           &cli->thresholds, &all);
    } else {
        rf_compare(&reference, &now, &cli->thresholds, &all);
    }
    if (cli->outliers == NULL || strcmp(cli->outliers, "-") != 0) {
        rf_compare_print(&all, cli->json);
    }
    other = rf_comparisons_all_of_other_models(&all);
    if (other) {
        rf_error("nothing is comparable: %s and %s are results of different "
                 "models",
                 old_folder, new_folder);
    }
    code =
        rf_comparisons_regressions(&all) > 0 || reference.n_bad + now.n_bad > 0
            ? RF_EXIT_FAILED
        : other ? RF_EXIT_USAGE
                : RF_EXIT_OK;
    if (cli->outliers != NULL &&
        store_outliers(&all, cli->outliers, &err) != RF_OK) {
        rf_error("--outliers: %s", err.text);
        code = RF_EXIT_FAILED;
    }
out:
    rf_comparisons_free(&all);
    rf_result_set_free(&reference);
    rf_result_set_free(&now);
    return code;
}
