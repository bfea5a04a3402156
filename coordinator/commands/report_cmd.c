/*
 * `refit-coord report`: result folders in one of the forms of results/report.h,
 * on standard output or in the file of --html.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/store.h"
#include "coordinator/commands/commands.h"
#include "coordinator/commands/json_out.h"
#include "coordinator/results/report.h"
#include "coordinator/results/report_json.h"

static enum rf_status store_report(const char *path,
                                   const struct rf_result_set *set,
                                   enum rf_report_form form, struct rf_err *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    enum rf_status status;
    if (file == NULL) {
        return rf_err_errno(err, RF_ERR_NOMEM, errno, "%s", path);
    }
    rf_report_print(set, form, file);
    fclose(file);
    status = rf_store(path, text, size, err);
    free(text);
    return status;
}

int rf_report_command(const struct rf_cli *cli)
{
    struct rf_result_set set = {0};
    struct rf_err err = {0};
    int code = RF_EXIT_USAGE;
    for (size_t i = 0; i < cli->n_operands; i++) {
        if (rf_result_set_add(&set, cli->operands[i], &err) != RF_OK) {
            goto out;
        }
    }
    code = set.n_bad > 0 ? RF_EXIT_FAILED : RF_EXIT_OK;
    if (cli->json) {
        rf_json_out(rf_report_json(&set));
    } else if (cli->html == NULL) {
        rf_report_print(&set, cli->form, stdout);
    } else if (store_report(cli->html, &set, cli->form, &err) != RF_OK) {
        code = RF_EXIT_FAILED;
    }
out:
    if (err.status != RF_OK) {
        rf_error("%s", err.text);
    }
    rf_result_set_free(&set);
    return code;
}
