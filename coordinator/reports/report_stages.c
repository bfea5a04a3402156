/*
 * Results as records "refit-stage-v2". See report_stages.h. There, a rank that
 * receives reads from senders, so its waiting for bytes is part of the wire.
 * `accounted_s` is the sum of the stages, of all fields that end in `_s`.
 */
#include "coordinator/reports/report_stages.h"

#include "common/log.h"
#include "common/mem.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/iteration_ranks.h"

static const struct stage_parts {
    const char *key, *parts[2]; /* of the rank's window */
} stages[] = {{"pack_s", {"pack_ms", NULL}},
              {"wire_fused_s", {"wire_ms", "sync_ms"}},
              {"install_s", {"unpack_ms", NULL}}};

static double seconds_of(const json_t *ranks, size_t rank,
                         const struct stage_parts *stage)
{
    double sum = 0, ms;
    for (size_t i = 0; i < RF_ARRAY_SIZE(stage->parts); i++) {
        if (stage->parts[i] != NULL &&
            rf_iteration_ranks_value(ranks, rank, stage->parts[i], &ms)) {
            sum += ms / 1e3;
        }
    }
    return sum;
}

/* NULL if the rank received nothing; `title` is borrowed. */
static json_t *record_json(json_t *title, size_t step, const json_t *ranks,
                           size_t rank)
{
    double bytes, sum = 0;
    json_t *out;
    if (!rf_iteration_ranks_value(ranks, rank, "received_bytes", &bytes) ||
        bytes <= 0) {
        return NULL;
    }
    out = json_pack("{s:s, s:O, s:I, s:I, s:I, s:b}", "schema",
                    "refit-stage-v2", "name", title, "rank", (json_int_t)rank,
                    "step", (json_int_t)step, "bytes", (json_int_t)bytes,
                    "fused_wire", 1);
    for (size_t i = 0; i < RF_ARRAY_SIZE(stages); i++) {
        const double seconds = seconds_of(ranks, rank, &stages[i]);
        json_object_set_new(out, stages[i].key, json_real(seconds));
        sum += seconds;
    }
    json_object_set_new(out, "accounted_s", json_real(sum));
    return out;
}

static void add_records(json_t *out, const json_t *result, json_t *title)
{
    const json_t *iterations = json_object_get(result, "iterations"), *one;
    size_t step;
    json_array_foreach (iterations, step, one) {
        const json_t *ranks = json_object_get(one, "ranks");
        double ms;
        for (size_t r = 0; rf_iteration_ranks_value(ranks, r, "ms", &ms); r++) {
            json_t *record = record_json(title, step, ranks, r);
            if (record != NULL) {
                json_array_append_new(out, record);
            }
        }
    }
}

json_t *rf_report_stages(const struct rf_result_set *set)
{
    json_t *out = json_array();
    for (size_t i = 0; i < set->n; i++) {
        const struct rf_result_file *file = &set->files[i];
        const size_t before = json_array_size(out);
        json_t *title = rf_result_set_title(set, i);
        if (rf_result_is_ok(file->result)) {
            add_records(out, file->result, title);
        }
        if (json_array_size(out) == before) {
            rf_warn("%s is left out: no rank received bytes in an iteration "
                    "(its status is %s)",
                    file->name, rf_result_text(file->result, NULL, "status"));
        }
        json_decref(title);
    }
    return out;
}
