/* Records as text: byte for byte what Jansson makes of the same objects. */
#include <string.h>

#include "common/json.h"
#include "common/mem.h"
#include "coordinator/records/iteration_ranks.h"
#include "coordinator/records/record_text.h"
#include "tests/unit/unit.h"

/* Ends of what is exact, zeros behind the point and before it, exponents. */
static const int64_t edges[] = {
    0,         1,         9,          10,         99,           100,
    101,       999,       1000,       1001,       99999,        100000,
    1000000,   1234567,   5000000,    9999999,    10000000,     57178123,
    123456789, 999999999, 1000000000, 1000000001, 1234567885,   1234567895,
    -1,        -99,       -1234567,   INT64_MAX,  INT64_MIN + 1};

#define N_RANDOM 20000
#define N (RF_ARRAY_SIZE(edges) + N_RANDOM)

/* Of every length. */
static int64_t number(size_t i)
{
    static uint64_t state = 1;
    if (i < RF_ARRAY_SIZE(edges)) {
        return edges[i];
    }
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 1) >> (state % 63));
}

static void fill(struct rf_iteration_rank *rank)
{
    static size_t at;
    for (size_t f = 0; f < RF_ITERATION_RANK_FIELDS; f++) {
        const int64_t value = number((at + f * 7) % N);
        memcpy((char *)rank + rf_iteration_rank_fields[f].offset, &value,
               sizeof(value));
    }
    if (++at % 2 == 0) {
        rank->device_ns = RF_ITERATION_RANK_ABSENT;
    }
}

/* The objects that numbers stand for, made of Jansson's values. */
static json_t *objects(const struct rf_iteration_rank *ranks, size_t n)
{
    json_t *list = json_array();
    for (size_t r = 0; r < n; r++) {
        const struct rf_iteration_rank *k = &ranks[r];
        json_t *out = json_pack(
            "{s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "rank", (json_int_t)r, "ms",
            (double)k->ns / 1e6, "pack_ms", (double)k->pack_ns / 1e6, "wire_ms",
            (double)k->wire_ns / 1e6, "unpack_ms", (double)k->unpack_ns / 1e6,
            "sync_ms", (double)k->sync_ns / 1e6, "unattributed_ms",
            (double)k->unattributed_ns / 1e6);
        if (k->device_ns != RF_ITERATION_RANK_ABSENT) {
            json_object_set_new(out, "device_ms",
                                json_real((double)k->device_ns / 1e6));
        }
        if (k->quantize_ns != RF_ITERATION_RANK_ABSENT) {
            json_object_set_new(out, "quantize_ms",
                                json_real((double)k->quantize_ns / 1e6));
            json_object_set_new(out, "amax_ms",
                                json_real((double)k->amax_ns / 1e6));
        }
        json_object_set_new(out, "start_us",
                            json_real((double)k->start_ns / 1e3));
        json_object_set_new(out, "sent_bytes", json_integer(k->sent_bytes));
        json_object_set_new(out, "received_bytes",
                            json_integer(k->received_bytes));
        if (k->load_alone_ns != RF_ITERATION_RANK_ABSENT) {
            json_object_set_new(out, "load_alone_ms",
                                json_real((double)k->load_alone_ns / 1e6));
            json_object_set_new(out, "load_alone_bytes",
                                json_integer(k->load_alone_bytes));
            json_object_set_new(out, "load_ms",
                                json_real((double)k->load_ns / 1e6));
            json_object_set_new(out, "load_bytes", json_integer(k->load_bytes));
        }
        json_array_append_new(list, out);
    }
    return list;
}

/* Takes both; they are of one record. */
static void check_same(json_t *made, json_t *plain)
{
    AUTO_FREE char *a = rf_record_text(made), *b = rf_json_text(plain);
    size_t same = 0;
    while (a[same] == b[same] && a[same] != '\0') {
        same++;
    }
    ck_assert_msg(a[same] == b[same], "at %zu: \"%.80s\", not \"%.80s\"", same,
                  a + same - RF_MIN(same, 40), b + same - RF_MIN(same, 40));
    json_decref(made);
    json_decref(plain);
}

TEST(test_record_text_is_that_of_objects)
{
    AUTO_FREE struct rf_iteration_rank *ranks = rf_xcalloc(N, sizeof(*ranks));
    for (size_t i = 0; i < N; i++) {
        fill(&ranks[i]);
    }
    check_same(json_pack("{s:[{s:i, s:o}]}", "iterations", "index", 3, "ranks",
                         rf_iteration_ranks_json(ranks, N)),
               json_pack("{s:[{s:i, s:o}]}", "iterations", "index", 3, "ranks",
                         objects(ranks, N)));
    check_same(json_pack("{s:o}", "ranks", rf_iteration_ranks_json(ranks, 0)),
               json_pack("{s:[]}", "ranks"));
}

TEST(test_record_text_of_other_values_is_that_of_jansson)
{
    const char *const text =
        "{\"a\": [], \"b\": {}, \"c\": [[1, -2], [], [{\"d\": null}]], "
        "\"\\\"\\u0001\\\\\": \"\\u00e9\\n\\t/\\u007f\", \"e\": 1e300, "
        "\"f\": 0.1, \"g\": 5.0, \"h\": [true, false, 12345678901234], "
        "\"ranks\": \"none\", \"i\": \"\"}";
    json_t *value = NULL;
    ck_assert_int_eq(rf_json_parse(text, strlen(text), "t", &value, NULL),
                     RF_OK);
    check_same(json_incref(value), value);
}

/* Numbers and objects alike. */
TEST(test_iteration_ranks_have_the_figures_of_their_fields)
{
    const struct rf_iteration_rank ranks[2] = {
        {90, 10, 20, 30, 5, 25, 80, 15, 2, 7, 1000, 2000, 60, 3000, 70, 4000},
        {91, 11, 21, 31, 6, 22, RF_ITERATION_RANK_ABSENT,
         RF_ITERATION_RANK_ABSENT, RF_ITERATION_RANK_ABSENT, 8, 1001, 2001,
         RF_ITERATION_RANK_ABSENT, RF_ITERATION_RANK_ABSENT,
         RF_ITERATION_RANK_ABSENT, RF_ITERATION_RANK_ABSENT}};
    json_auto_t *made, *read;
    size_t n = 0;
    made = rf_iteration_ranks_json(ranks, 2);
    read = objects(ranks, 2);
    ck_assert_mem_eq(rf_iteration_ranks_numbers(made, &n), ranks,
                     sizeof(ranks));
    ck_assert_uint_eq(n, 2);
    ck_assert_ptr_null(rf_iteration_ranks_numbers(read, &n));
    for (size_t f = 0; f < RF_ITERATION_RANK_FIELDS; f++) {
        const char *key = rf_iteration_rank_fields[f].key;
        for (size_t r = 0; r < 3; r++) {
            double a = -1, b = -1;
            ck_assert_int_eq(rf_iteration_ranks_value(made, r, key, &a),
                             rf_iteration_ranks_value(read, r, key, &b));
            ck_assert_msg(a == b, "%s of rank %zu", key, r);
        }
    }
}
