/*
 * A record of several repeats has three kinds of fields. Shared ones come from
 * the latest repeat that was ok. Samples are in `iterations`, each marked with
 * its repeat. Everything else of a repeat is in `repeats`. Adding a repeat
 * recomputes all figures from these, so the number of runs that measured them
 * does not matter.
 */
#include "coordinator/records/repeats.h"

#include <string.h>

#include "common/mem.h"
#include "common/json_schema.h"
#include "coordinator/records/doubts.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/summary.h"

/* Fields of an attempt's record that go into its entry of `repeats`. */
static const char *const own[] = {
    "started_at", "finished_at",  "status", "iterations_ended_by",
    "setup",      "summary",      "bound",  "schedule_bound",
    "memory",     "verification", "flags",  "logs"};
/* Lists whose entries are marked with their repeat. */
static const char *const lists[] = {"errors", "warmup_iterations",
                                    "iterations"};

static void put(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value != NULL ? value : json_null());
}

static json_t *marked(const json_t *entry, uint32_t repeat)
{
    json_t *out = json_pack("{s:n}", "repeat");
    json_object_update(out, (json_t *)entry);
    put(out, "repeat", json_integer(repeat));
    return out;
}

/* One attempt's record in the form of a record of several. */
static json_t *alone(const json_t *record, uint32_t repeat)
{
    json_t *out = json_copy((json_t *)record), *entry = json_object();
    for (size_t i = 0; i < RF_ARRAY_SIZE(own); i++) {
        put(entry, own[i], json_incref(json_object_get(record, own[i])));
    }
    put(out, "repeats", json_pack("[o]", marked(entry, repeat)));
    json_decref(entry);
    for (size_t i = 0; i < RF_ARRAY_SIZE(lists); i++) {
        const json_t *list = json_object_get(record, lists[i]), *one;
        json_t *copy = json_array();
        size_t at;
        json_array_foreach (list, at, one) {
            json_array_append_new(copy, marked(one, repeat));
        }
        put(out, lists[i], copy);
    }
    return out;
}

static bool has_repeats(const json_t *record)
{
    return json_is_array(json_object_get(record, "repeats"));
}

static json_int_t repeat_of(const json_t *entry)
{
    return json_integer_value(json_object_get(entry, "repeat"));
}

/* Appends the list's entries of repeats `first` to `last`. */
static void append(json_t *out, const json_t *list, json_int_t first,
                   json_int_t last)
{
    json_t *one;
    size_t i;
    json_array_foreach (list, i, one) {
        if (repeat_of(one) >= first && repeat_of(one) <= last) {
            json_array_append(out, one);
        }
    }
}

/* Replaces the repeats `first` to `last` by those of `now`. */
static void merge(json_t *out, const char *key, const json_t *before,
                  const json_t *now, json_int_t first, json_int_t last)
{
    json_t *list = json_array();
    append(list, json_object_get(before, key), 0, first - 1);
    append(list, json_object_get(now, key), first, last);
    append(list, json_object_get(before, key), last + 1, UINT32_MAX);
    put(out, key, list);
}

/* The record with the shared fields: the new one, unless its status is not
 * "ok" and the older one has a plan. */
static const json_t *base_of(const json_t *before, const json_t *now)
{
    const bool older_is_better =
        before != NULL && !rf_result_is_ok(now) &&
        json_is_object(json_object_get(before, "plan"));
    return older_is_better ? before : now;
}

/* --- Figures of all repeats ----------------------------------------------- */

static void pool_outcome(json_t *out, const json_t *repeats)
{
    static const char *const grave[] = {"interrupted", "failed", "mismatch"};
    const char *status = "ok", *first = NULL, *last = NULL;
    const json_t *one;
    size_t i;
    json_array_foreach (repeats, i, one) {
        const char *began = rf_result_text(one, NULL, "started_at");
        const char *ended = rf_result_text(one, NULL, "finished_at");
        first = first == NULL || strcmp(began, first) < 0 ? began : first;
        last = last == NULL || strcmp(ended, last) > 0 ? ended : last;
        if (json_is_null(json_object_get(one, "iterations_ended_by"))) {
            put(out, "iterations_ended_by", NULL);
        }
    }
    for (size_t g = 0; g < RF_ARRAY_SIZE(grave); g++) {
        json_array_foreach (repeats, i, one) {
            if (strcmp(rf_result_text(one, NULL, "status"), grave[g]) == 0) {
                status = grave[g];
            }
        }
    }
    put(out, "status", json_string(status));
    put(out, "started_at", json_string(first));
    put(out, "finished_at", json_string(last));
}

/* Sums the phases; takes the maximum of the "rank_" ones, which are the slowest
 * rank's. */
static void pool_setup(json_t *out, const json_t *repeats)
{
    json_t *setup = json_copy(json_object_get(out, "setup")), *old;
    const json_t *one;
    const char *key;
    void *next;
    size_t i;
    json_object_foreach_safe(setup, next, key, old)
    {
        const bool longest = strncmp(key, "rank_", strlen("rank_")) == 0;
        double ms, all = 0;
        json_array_foreach (repeats, i, one) {
            if (rf_result_number(one, "setup", key, &ms)) {
                all = longest ? RF_MAX(all, ms) : all + ms;
            }
        }
        if (json_is_number(old)) {
            put(setup, key, json_real(all));
        }
    }
    put(out, "setup", setup);
}

static void pool_verification(json_t *out, const json_t *repeats)
{
    static const char *const counts[] = {"checked_bytes", "mismatched_bytes",
                                         "rounds", "warmup_checked_bytes",
                                         "quantized_bytes"};
    json_t *sums = json_object();
    const json_t *one;
    size_t i;
    put(sums, "first_mismatch", NULL);
    json_array_foreach (repeats, i, one) {
        const json_t *its = json_object_get(one, "verification");
        json_t *first = json_object_get(its, "first_mismatch");
        if (json_is_object(first) &&
            json_is_null(json_object_get(sums, "first_mismatch"))) {
            put(sums, "first_mismatch",
                marked(first, (uint32_t)repeat_of(one)));
        }
        for (size_t c = 0; c < RF_ARRAY_SIZE(counts); c++) {
            const json_t *count = json_object_get(its, counts[c]);
            const json_int_t sum =
                json_integer_value(json_object_get(sums, counts[c]));
            if (json_is_integer(count) && json_integer_value(count) >= 0) {
                put(sums, counts[c],
                    json_integer(sum + RF_MIN(json_integer_value(count),
                                              INT64_MAX - sum)));
            }
        }
    }
    put(out, "verification", sums);
}

/* Whether every repeat with measured iterations has a figure; false if there is
 * no such repeat. */
static bool all_have(const json_t *repeats, const char *object, const char *key)
{
    const json_t *one;
    bool any = false;
    double value;
    size_t i;
    json_array_foreach (repeats, i, one) {
        if (rf_result_figure(one, "summary", "count") > 0) {
            any = true;
            if (!rf_result_number(one, object, key, &value)) {
                return false;
            }
        }
    }
    return any;
}

/* The smallest bound: it must hold for the fastest state of the machine. */
static void pool_bound(json_t *out, const json_t *repeats, const char *key)
{
    const json_t *one, *least = NULL;
    json_t *bound;
    double ms, least_ms = 0, median_ms = 0;
    bool zero_copy = false;
    size_t i;
    json_array_foreach (repeats, i, one) {
        zero_copy |= json_is_true(rf_result_value(one, key, "zero_copy"));
        if (rf_result_number(one, key, "ms", &ms) &&
            (least == NULL || ms < least_ms)) {
            least = one;
            least_ms = ms;
        }
    }
    if (least == NULL) {
        return;
    }
    bound = json_copy(json_object_get(least, key));
    if (json_object_get(bound, "zero_copy") != NULL) {
        put(bound, "zero_copy", json_boolean(zero_copy));
    }
    if (all_have(repeats, key, "efficiency")) {
        median_ms = rf_result_figure(out, "summary", "median_ms");
    }
    rf_summary_judge_bound(bound, median_ms);
    put(out, key, bound);
}

static void pool(json_t *out)
{
    const json_t *repeats = json_object_get(out, "repeats");
    pool_outcome(out, repeats);
    pool_setup(out, repeats);
    put(out, "summary",
        rf_summary_json(out,
                        all_have(repeats, "summary", "algbw_gbytes_per_s")));
    pool_bound(out, repeats, "bound");
    pool_bound(out, repeats, "schedule_bound");
    pool_verification(out, repeats);
    put(out, "flags", rf_doubts_json(out));
}

/* Both have the form of a record of several; `before` may be NULL. */
static json_t *combine(const json_t *before, const json_t *now,
                       json_int_t first, json_int_t last)
{
    json_t *out = json_copy((json_t *)base_of(before, now));
    merge(out, "repeats", before, now, first, last);
    for (size_t i = 0; i < RF_ARRAY_SIZE(lists); i++) {
        merge(out, lists[i], before, now, first, last);
    }
    pool(out);
    return out;
}

json_t *rf_repeats_add(const json_t *before, const json_t *record,
                       uint32_t repeat)
{
    json_t *now = alone(record, repeat), *old = NULL, *out;
    if (before != NULL) {
        old = has_repeats(before) ? json_copy((json_t *)before)
                                  : alone(before, 0);
    }
    out = combine(old, now, repeat, repeat);
    json_decref(old);
    json_decref(now);
    return out;
}

/* The index of a repeat in `repeats`; their number if it is absent. */
static size_t place_of(const json_t *repeats, json_int_t repeat)
{
    size_t i = 0;
    while (i < json_array_size(repeats) &&
           repeat_of(json_array_get(repeats, i)) != repeat) {
        i++;
    }
    return i;
}

/* A record of several, renumbered from `first`; drops entries that belong to no
 * repeat. */
static json_t *numbered(const json_t *record, uint32_t first)
{
    const json_t *repeats = json_object_get(record, "repeats"), *one;
    json_t *out = json_copy((json_t *)record), *list = json_array();
    size_t i;
    json_array_foreach (repeats, i, one) {
        json_array_append_new(list, marked(one, first + (uint32_t)i));
    }
    put(out, "repeats", list);
    for (size_t l = 0; l < RF_ARRAY_SIZE(lists); l++) {
        list = json_array();
        json_array_foreach (json_object_get(record, lists[l]), i, one) {
            const size_t place = place_of(repeats, repeat_of(one));
            if (place < json_array_size(repeats)) {
                json_array_append_new(list,
                                      marked(one, first + (uint32_t)place));
            }
        }
        put(out, lists[l], list);
    }
    return out;
}

static json_t *several(const json_t *record, uint32_t first)
{
    return has_repeats(record) ? numbered(record, first) : alone(record, first);
}

json_t *rf_repeats_join(const json_t *before, const json_t *record)
{
    json_t *old = several(before, 0);
    const size_t n = json_array_size(json_object_get(old, "repeats"));
    json_t *now = several(record, (uint32_t)n);
    json_t *out = combine(old, now, (json_int_t)n, UINT32_MAX);
    json_decref(old);
    json_decref(now);
    return out;
}

bool rf_repeats_has(const json_t *record, uint32_t repeat)
{
    const json_t *repeats = json_object_get(record, "repeats"), *one;
    size_t i;
    if (!has_repeats(record)) {
        return repeat == 0 && rf_result_is_ok(record);
    }
    json_array_foreach (repeats, i, one) {
        if (repeat_of(one) == repeat) {
            return rf_result_is_ok(one);
        }
    }
    return false;
}

void rf_repeats_schema(json_t *record)
{
    json_t *entry = rf_json_schema_record("repeat:count");
    for (size_t i = 0; i < RF_ARRAY_SIZE(own); i++) {
        rf_json_schema_need(entry, own[i], rf_json_schema_as(own[i]));
    }
    rf_json_schema_add(entry, "summary", rf_json_schema_as("summary/anyOf/0"));
    rf_json_schema_add(record, "repeats",
                       rf_json_schema_list(entry, 1, UINT32_MAX));
}
