/*
 * `refit-coord delta`: what a training step changed between two checkpoints, by
 * kind of tensor, and the bytes that it takes at least to move that.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "checkpoint/compare.h"
#include "common/bytes.h"
#include "common/json_out.h"
#include "common/log.h"
#include "common/text.h"
#include "coordinator/commands/cli.h"
#include "coordinator/table/table.h"

#define TEXT(most, text) text,
static const char *const distances[] = {RF_CHANGES_DISTANCES(TEXT)};
#undef TEXT

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static double run_length(const struct rf_changes *changes)
{
    return (double)changes->changed / (double)changes->runs;
}

static json_t *changes_json(const char *kind, const struct rf_changes *changes)
{
    json_t *at = json_object();
    double raw, diff;
    for (size_t i = 0; i < RF_CHANGES_CLASSES; i++) {
        json_object_set_new(at, distances[i],
                            json_integer((json_int_t)changes->at_distance[i]));
    }
    rf_changes_bounds(changes, &raw, &diff);
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:f, s:o, s:o, s:f, s:f}", "kind", kind,
        "tensors", (json_int_t)changes->tensors, "elements",
        (json_int_t)changes->elements, "bytes", (json_int_t)changes->bytes,
        "changed", (json_int_t)changes->changed, "density",
        share((double)changes->changed, (double)changes->elements),
        "mean_run_length",
        changes->runs > 0 ? json_real(run_length(changes)) : json_null(),
        "ulps", at, "raw_bound_bytes", raw, "diff_bound_bytes", diff);
}

static void print_json(const struct rf_checkpoint_changes *all,
                       const struct rf_changes *total)
{
    json_t *kinds = json_array();
    for (size_t i = 0; i < all->n; i++) {
        json_array_append_new(
            kinds, changes_json(all->kinds[i].kind, &all->kinds[i].changes));
    }
    rf_json_out(json_pack("{s:o, s:o}", "kinds", kinds, "total",
                          changes_json("all", total)),
                stdout);
}

static void print_row(struct rf_table *table, const char *kind,
                      const struct rf_changes *changes)
{
    const double changed = (double)changes->changed;
    char bytes[32];
    double raw, diff;
    rf_changes_bounds(changes, &raw, &diff);
    rf_table_cell(table, "%s", kind);
    rf_table_cell(table, "%s",
                  rf_format_bytes(changes->bytes, bytes, sizeof(bytes)));
    rf_table_cell(table, "%.3g %%",
                  100 * share(changed, (double)changes->elements));
    for (size_t i = 0; i < RF_CHANGES_CLASSES; i++) {
        rf_table_cell(table, "%.3g %%",
                      100 * share((double)changes->at_distance[i], changed));
    }
    if (changes->runs > 0) {
        rf_table_cell(table, "%.2f", run_length(changes));
    } else {
        rf_table_cell(table, "-");
    }
    rf_table_cell(table, "%.3g %%", 100 * share(raw, (double)changes->bytes));
    rf_table_cell(table, "%.3g %%", 100 * share(diff, (double)changes->bytes));
}

static void print_table(const struct rf_checkpoint_changes *all,
                        const struct rf_changes *total)
{
#define HEAD(most, text) ">" text " ulp",
    static const char *const heads[] = {
        "=tensors",   ">bytes",
        ">changed",   RF_CHANGES_DISTANCES(HEAD) ">run",
        ">raw bound", ">diff bound",
        NULL};
#undef HEAD
    struct rf_table *table = rf_table_create(heads);
    for (size_t i = 0; i < all->n; i++) {
        print_row(table, all->kinds[i].kind, &all->kinds[i].changes);
    }
    print_row(table, "all", total);
    rf_table_print(table, stdout, RF_REPORT_TABLE, 0);
    rf_table_destroy(table);
}

int rf_delta_command(struct rf_cli *cli)
{
    struct rf_checkpoint_changes all = {0};
    struct rf_changes total = {0};
    struct rf_err err = {.text = ""};
    enum rf_status status =
        rf_checkpoint_compare(cli->operands[0], cli->operands[1], &all, &err);
    if (status != RF_OK) {
        rf_error("%s", err.text);
    } else {
        for (size_t i = 0; i < all.n; i++) {
            rf_changes_sum(&total, &all.kinds[i].changes);
        }
        (cli->json ? print_json : print_table)(&all, &total);
    }
    rf_changes_free(&total);
    rf_checkpoint_changes_free(&all);
    return status == RF_OK           ? RF_EXIT_OK
           : status == RF_ERR_CONFIG ? RF_EXIT_USAGE
                                     : RF_EXIT_FAILED;
}
