/*
 * One rank's answer to a step, checked figure by figure before it is kept: a
 * rank that sends nonsense fails the scenario, it does not spoil a result.
 */
#include <math.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "coordinator/run/run_internal.h"

#define LONGEST_NS (INT64_C(30) * 24 * 3600 * RF_NS_PER_S)
#define CLOCK_MAX_NS (INT64_MAX / 4) /* differences of two do not overflow */
#define RATE_MAX 1e6                 /* GB/s */

static enum rf_status bad(struct rf_err *err, const char *key)
{
    return rf_err_set(err, RF_ERR_PROTOCOL, "its answer has no usable \"%s\"",
                      key);
}

static bool get_number(const json_t *object, const char *key, double max,
                       double *out)
{
    const json_t *value = json_object_get(object, key);
    double number = json_number_value(value);
    if (!json_is_number(value) || !isfinite(number) || number < 0 ||
        number > max) {
        return false;
    }
    *out = number;
    return true;
}

static bool get_u64(const json_t *object, const char *key, uint64_t *out)
{
    int64_t value;
    if (!rf_run_get_integer(object, key, 0, INT64_MAX, &value)) {
        return false;
    }
    *out = (uint64_t)value;
    return true;
}

static enum rf_status same_digest(const json_t *answer, const char *key,
                                  const struct rf_hash *mine,
                                  struct rf_err *err)
{
    const char *theirs = json_string_value(json_object_get(answer, key));
    char text[RF_HASH_TEXT_SIZE];
    rf_hash_text(mine, text);
    if (theirs != NULL && strcmp(theirs, text) == 0) {
        return RF_OK;
    }
    return rf_err_set(err, RF_ERR_PROTOCOL,
                      "made another plan: %s is %.40s there, %s here; are "
                      "coordinator and worker of the same build?",
                      key, theirs != NULL ? theirs : "missing", text);
}

static enum rf_status take_prepare(struct rf_attempt *attempt, uint32_t rank,
                                   const json_t *answer, struct rf_err *err)
{
    static const char *const arenas[RF_MEM_COUNT] = {"train", "infer", "stage"};
    struct rf_rank_facts *facts = &attempt->ranks[rank];
    const json_t *bytes = json_object_get(answer, "arena_bytes");
    double plan_ms, open_ms;
    enum rf_status status = same_digest(answer, "plan_digest",
                                        &attempt->scenario->plan->digest, err);
    if (status == RF_OK) {
        status = same_digest(answer, "schedule_digest",
                             &attempt->scenario->schedule->digest, err);
    }
    if (status != RF_OK) {
        return status;
    }
    if (!get_number(answer, "plan_ms", 1e10, &plan_ms)) {
        return bad(err, "plan_ms");
    }
    if (!get_number(answer, "open_ms", 1e10, &open_ms)) {
        return bad(err, "open_ms");
    }
    facts->plan_ns = (int64_t)(plan_ms * 1e6);
    facts->open_ns = (int64_t)(open_ms * 1e6);
    for (int i = 0; i < RF_MEM_COUNT; i++) {
        if (!get_u64(bytes, arenas[i], &facts->arena_bytes[i])) {
            return bad(err, "arena_bytes");
        }
    }
    return RF_OK;
}

static struct rf_links *links_in_progress(struct rf_run *run)
{
    return run->sm.state == RUN_PROBING_AGAIN ? &run->attempt->after
                                              : &run->attempt->before;
}

static enum rf_status take_copy(struct rf_run *run, uint32_t rank,
                                const json_t *answer, struct rf_err *err)
{
    struct rf_links *links = links_in_progress(run);
    uint32_t node = run->attempt->scenario->world->ranks[rank].node;
    double together, single;
    if (!get_number(answer, "gbytes_per_s", RATE_MAX, &together)) {
        return bad(err, "gbytes_per_s");
    }
    if (!get_number(answer, "single_gbytes_per_s", RATE_MAX, &single)) {
        return bad(err, "single_gbytes_per_s");
    }
    /* Each rank tells its share of what the node copied in the same window. */
    links->copy_gbytes_per_s[node] += together;
    links->copy1_gbytes_per_s[node] =
        RF_MAX(links->copy1_gbytes_per_s[node], single);
    return RF_OK;
}

static enum rf_status take_link(struct rf_run *run, uint32_t rank,
                                const json_t *answer, struct rf_err *err)
{
    const struct probe_pair *pair = &run->pairs[run->pair_at];
    size_t at = (size_t)pair->from_node * run->config->n_nodes + pair->to_node;
    struct rf_links *links = links_in_progress(run);
    double rate, latency;
    if (rank != pair->to_rank) {
        return RF_OK;
    }
    if (!get_number(answer, "gbytes_per_s", RATE_MAX, &rate)) {
        return bad(err, "gbytes_per_s");
    }
    if (!get_number(answer, "latency_us", 1e9, &latency)) {
        return bad(err, "latency_us");
    }
    run->pair_rate[at] = rate;
    if (run->pair_sized) {
        links->pair_gbytes_per_s[at] = rate;
        links->pair_latency_us[at] = latency;
    }
    return RF_OK;
}

static enum rf_status take_run(struct rf_attempt *attempt, uint32_t rank,
                               const json_t *answer, struct rf_err *err)
{
    struct rf_sample *sample = &attempt->pending[rank];
    const struct {
        const char *key;
        int64_t max;
        int64_t *out;
    } fields[] = {{"start_ns", CLOCK_MAX_NS, &sample->start_ns},
                  {"end_ns", CLOCK_MAX_NS, &sample->end_ns},
                  {"ns", LONGEST_NS, &sample->ns},
                  {"pack_ns", LONGEST_NS, &sample->pack_ns},
                  {"wire_ns", LONGEST_NS, &sample->wire_ns},
                  {"unpack_ns", LONGEST_NS, &sample->unpack_ns},
                  {"sync_ns", LONGEST_NS, &sample->sync_ns}};
    for (size_t i = 0; i < RF_ARRAY_SIZE(fields); i++) {
        /* Another node's clock may lie before the start of ours. */
        int64_t min = i < 2 ? -CLOCK_MAX_NS : 0;
        if (!rf_run_get_integer(answer, fields[i].key, min, fields[i].max,
                                fields[i].out)) {
            return bad(err, fields[i].key);
        }
    }
    if (sample->end_ns < sample->start_ns) {
        return bad(err, "end_ns");
    }
    if (!get_u64(answer, "sent_bytes", &sample->sent_bytes)) {
        return bad(err, "sent_bytes");
    }
    if (!get_u64(answer, "received_bytes", &sample->received_bytes)) {
        return bad(err, "received_bytes");
    }
    return RF_OK;
}

static enum rf_status take_verify(struct rf_run *run, uint32_t rank,
                                  const json_t *answer, struct rf_err *err)
{
    struct rf_attempt *attempt = run->attempt;
    json_t *first = json_object_get(answer, "first");
    uint64_t checked, mismatched, quantized = 0;
    if (json_object_get(answer, "quantized_bytes") != NULL &&
        !get_u64(answer, "quantized_bytes", &quantized)) {
        return bad(err, "quantized_bytes");
    }
    if (!get_u64(answer, "checked_bytes", &checked)) {
        return bad(err, "checked_bytes");
    }
    if (!get_u64(answer, "mismatched_bytes", &mismatched)) {
        return bad(err, "mismatched_bytes");
    }
    if (mismatched > 0 && !json_is_object(first)) {
        return bad(err, "first");
    }
    run->round_checked_bytes += checked;
    if (run->round < attempt->scenario->spec->warmup) {
        attempt->warmup_checked_bytes += checked;
    } else {
        attempt->checked_bytes += checked;
        attempt->quantized_bytes += quantized;
    }
    attempt->mismatched_bytes += mismatched;
    if (mismatched > 0 && attempt->first_mismatch == NULL) {
        uint32_t node = attempt->scenario->world->ranks[rank].node;
        attempt->first_mismatch =
            json_pack("{s:i, s:s, s:i}", "rank", (int)rank, "host",
                      rf_run_host(run, node), "iteration", (int)run->round);
        json_object_update_missing(attempt->first_mismatch, first);
    }
    return RF_OK;
}

/* The figures of "device" that results name; what else is there is left. */
static json_t *device_figures(const json_t *device)
{
    static const char *const names[] = {
        "arena_bytes",          "runtime_bytes", "process_bytes",
        "device_bytes",         "foreign_bytes", "nvlink_sent_bytes",
        "nvlink_received_bytes"};
    json_t *out = json_object();
    for (size_t i = 0; i < RF_ARRAY_SIZE(names); i++) {
        uint64_t bytes = 0;
        if (get_u64(device, names[i], &bytes)) {
            json_object_set_new(out, names[i], json_integer((json_int_t)bytes));
        }
    }
    return out;
}

static enum rf_status take_close(struct rf_attempt *attempt, uint32_t rank,
                                 const json_t *answer, struct rf_err *err)
{
    struct rf_rank_facts *facts = &attempt->ranks[rank];
    if (!get_u64(answer, "host_peak_bytes", &facts->host_peak_bytes)) {
        return bad(err, "host_peak_bytes");
    }
    if (!get_u64(answer, "device_peak_bytes", &facts->device_peak_bytes)) {
        return bad(err, "device_peak_bytes");
    }
    if (json_is_object(json_object_get(answer, "device"))) {
        json_decref(facts->device);
        facts->device = device_figures(json_object_get(answer, "device"));
    }
    return RF_OK;
}

enum rf_status rf_run_take(struct rf_run *run, uint32_t rank,
                           const json_t *answer, struct rf_err *err)
{
    switch (run->step) {
    case STEP_PREPARE:
        return take_prepare(run->attempt, rank, answer, err);
    case STEP_PROBE_COPY:
        return take_copy(run, rank, answer, err);
    case STEP_PROBE_LINK:
        return take_link(run, rank, answer, err);
    case STEP_RUN:
        return take_run(run->attempt, rank, answer, err);
    case STEP_VERIFY:
        return take_verify(run, rank, answer, err);
    case STEP_CLOSE:
        return take_close(run->attempt, rank, answer, err);
    case STEP_FILL:
        break;
    }
    return RF_OK;
}
