/*
 * A rank's log has its facts, its errors and its output, in this order. Length
 * is limited: only the first and the last of many iterations and lines. See
 * rank_logs.h.
 */
#include "coordinator/store/rank_logs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/iteration_ranks.h"
#include "coordinator/records/report_table.h"

#define MOST_SHOWN 100 /* iterations at each end */

static bool has_fault(const struct rf_attempt *attempt, uint32_t rank)
{
    for (size_t i = 0; i < attempt->n_faults; i++) {
        if (attempt->faults[i].rank == rank) {
            return true;
        }
    }
    return false;
}

char *rf_rank_logs_file(const struct rf_attempt *attempt, const char *scenario,
                        uint32_t rank, bool all)
{
    char repeat[24] = "";
    if (rank >= rf_attempt_ranks(attempt) ||
        !(all || attempt->logs[rank].n_first > 0 || has_fault(attempt, rank))) {
        return NULL;
    }
    if (attempt->n_repeats > 1) {
        snprintf(repeat, sizeof(repeat), "repeat-%u.", attempt->repeat);
    }
    return rf_xasprintf("logs/%s/%srank-%u.log", scenario, repeat, rank);
}

json_t *rf_rank_logs_json(const struct rf_attempt *attempt,
                          const char *scenario, bool all)
{
    json_t *list = json_array();
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        char *file = rf_rank_logs_file(attempt, scenario, r, all);
        if (file != NULL) {
            json_array_append_new(list, json_string(file));
        }
        free(file);
    }
    return list;
}

/* --- Text ----------------------------------------------------------------- */

static void print_head(const struct rf_attempt *attempt, const json_t *record,
                       uint32_t rank, FILE *to)
{
    const struct rf_scenario *scenario = attempt->scenario;
    const uint32_t node = scenario->world->ranks[rank].node;
    fprintf(to, "scenario %s", rf_result_text(record, NULL, "name"));
    if (attempt->n_repeats > 1) {
        fprintf(to, ", repeat %u of %u", attempt->repeat + 1,
                attempt->n_repeats);
    }
    fprintf(to, ", rank %u on %s, %s, run %s, %s\n", rank,
            scenario->config->node_names[node], attempt->started_at,
            rf_result_text(record, NULL, "run_id"),
            rf_result_text(record, NULL, "status"));
}

static void print_ms(const char *name, int64_t ns, FILE *to)
{
    char text[32];
    fprintf(to, "%s %s ms", name, rf_amount_text((double)ns / 1e6, text));
}

/* "iteration 0: ms 31.2, pack_ms 0.1, ...", with the record's field names. */
static void print_iteration(const char *what, const json_t *iteration,
                            uint32_t rank, FILE *to)
{
    const json_t *ranks = json_object_get(iteration, "ranks");
    const char *between = "";
    char text[32];
    double value;
    fprintf(to, "%s %lld: ", what,
            (long long)json_integer_value(json_object_get(iteration, "index")));
    for (size_t i = 0; i < RF_ITERATION_RANK_FIELDS; i++) {
        const struct rf_iteration_rank_field *f = &rf_iteration_rank_fields[i];
        if (!rf_iteration_ranks_value(ranks, rank, f->key, &value)) {
            continue;
        }
        if (f->decimals > 0) {
            fprintf(to, "%s%s %s", between, f->key,
                    rf_amount_text(value, text));
        } else {
            fprintf(to, "%s%s %.0f", between, f->key, value);
        }
        between = ", ";
    }
    fputc('\n', to);
}

static void print_iterations(const char *what, const json_t *list,
                             uint32_t rank, FILE *to)
{
    const size_t n = json_array_size(list);
    for (size_t i = 0; i < n; i++) {
        if (i == MOST_SHOWN && n > 2 * (size_t)MOST_SHOWN) {
            fprintf(to, "(%zu left out)\n", n - 2 * (size_t)MOST_SHOWN);
            i = n - MOST_SHOWN;
        }
        print_iteration(what, json_array_get(list, i), rank, to);
    }
}

static void print_phases(const struct rf_attempt *attempt, const json_t *record,
                         uint32_t rank, FILE *to)
{
    const struct rf_rank_facts *facts = &attempt->ranks[rank];
    fputs("\nphases:\n", to);
    print_ms("plan", facts->plan_ns, to);
    print_ms(", open", facts->open_ns, to);
    print_ms(", connect", facts->connect_ns, to);
    fputc('\n', to);
    print_iterations("warm-up", json_object_get(record, "warmup_iterations"),
                     rank, to);
    print_iterations("iteration", json_object_get(record, "iterations"), rank,
                     to);
}

static void print_faults(const struct rf_attempt *attempt, uint32_t rank,
                         FILE *to)
{
    const char *head = "\nwhat went wrong:\n";
    for (size_t i = 0; i < attempt->n_faults; i++) {
        const struct rf_fault *fault = &attempt->faults[i];
        if (fault->rank == rank) {
            fprintf(to, "%s%s: %s\n", head,
                    fault->phase != NULL ? fault->phase : "?", fault->text);
            head = "";
        }
    }
}

char *rf_rank_logs_text(const struct rf_attempt *attempt, const json_t *record,
                        uint32_t rank)
{
    const struct rf_rank_log *log = &attempt->logs[rank];
    char *text;
    size_t size;
    FILE *file = rf_xmemstream(&text, &size);
    print_head(attempt, record, rank, file);
    print_phases(attempt, record, rank, file);
    print_faults(attempt, rank, file);
    if (log->n_first > 0) {
        fputs("\nwhat it wrote:\n", file);
        rf_rank_log_print(log, file);
    }
    rf_xmemstream_close(file);
    return text;
}
