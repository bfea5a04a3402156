/*
 * `plan --json --full` read back by a checker that knows only docs/RESULTS.md:
 * it places every piece, follows every hop and counts.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/mesh_rules.h"
#include "planner/schedule/plan_json.h"
#include "planner/strategy/schedule_build.h"
#include "tests/lib/quoted.h"
#include "tests/unit/unit.h"

static const char *const hosts[] = {"a", "b", "c", "d"};

struct printed {
    struct rf_model *model;
    struct rf_spec *spec;
    struct rf_world *world;
    struct rf_plan *plan;
    struct rf_schedule *schedule;
    json_t *json;
};

static struct printed print(const char *model, const char *scenario)
{
    const uint32_t slots[] = {2, 2};
    struct printed p = {.model = quoted_model("%s", model)};
    struct rf_err err = {0};
    p.spec = quoted_spec("%s", scenario);
    ck_assert_msg(
        rf_mesh_rules_place(p.spec, p.model, slots, 2, &p.world, &err) == RF_OK,
        "%s", err.text);
    ck_assert_msg(rf_plan_build(p.model, p.world, p.spec, &p.plan, &err) ==
                      RF_OK,
                  "%s", err.text);
    ck_assert_msg(rf_schedule_build(p.plan, RF_NONE, &p.schedule, &err) ==
                      RF_OK,
                  "%s", err.text);
    p.json = rf_plan_json(p.plan, p.schedule, hosts, true);
    return p;
}

static void dispose(struct printed *p)
{
    json_decref(p->json);
    rf_schedule_destroy(p->schedule);
    rf_plan_destroy(p->plan);
    rf_world_destroy(p->world);
    rf_spec_destroy(p->spec);
    rf_model_destroy(p->model);
}
AUTO_STRUCT(printed, dispose)

static uint64_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_integer(value), "%s is no integer", key);
    return (uint64_t)json_integer_value(value);
}

static uint64_t at(const json_t *object, const char *key, size_t i)
{
    return (uint64_t)json_integer_value(
        json_array_get(json_object_get(object, key), i));
}

static size_t dims(const json_t *object)
{
    size_t n = json_array_size(json_object_get(object, "start"));
    ck_assert_uint_eq(json_array_size(json_object_get(object, "shape")), n);
    return n;
}

static uint64_t elements(const json_t *object)
{
    uint64_t n = 1;
    for (size_t d = 0; d < dims(object); d++) {
        n *= at(object, "shape", d);
    }
    return n;
}

/* Elements that two boxes share. */
static uint64_t shared(const json_t *a, const json_t *b)
{
    uint64_t n = 1;
    if (strcmp(json_string_value(json_object_get(a, "tensor")),
               json_string_value(json_object_get(b, "tensor"))) != 0) {
        return 0;
    }
    for (size_t d = 0; d < dims(a); d++) {
        uint64_t from = RF_MAX(at(a, "start", d), at(b, "start", d));
        uint64_t to = RF_MIN(at(a, "start", d) + at(a, "shape", d),
                             at(b, "start", d) + at(b, "shape", d));
        n *= to > from ? to - from : 0;
    }
    return n;
}

/* Elements of `box` that a rank's pieces of one side hold. */
static uint64_t held(const json_t *json, uint64_t rank, const char *side,
                     const json_t *box)
{
    const json_t *entry = json_array_get(json_object_get(json, "ranks"), rank);
    const json_t *params = json_object_get(entry, side);
    uint64_t n = 0;
    for (size_t i = 0; i < json_array_size(params); i++) {
        const json_t *pieces =
            json_object_get(json_array_get(params, i), "pieces");
        for (size_t k = 0; k < json_array_size(pieces); k++) {
            n += shared(json_array_get(pieces, k), box);
        }
    }
    return n;
}

/* Elements of `box` that earlier hops brought to `rank`. */
static uint64_t relayed(const json_t *hops, size_t before, uint64_t rank,
                        const json_t *box)
{
    uint64_t n = 0;
    for (size_t i = 0; i < before; i++) {
        const json_t *hop = json_array_get(hops, i);
        n += number(hop, "dst") == rank ? shared(hop, box) : 0;
    }
    return n;
}

static bool to_stage(const json_t *json, size_t transfer)
{
    const json_t *steps = json_object_get(json, "steps");
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        if (number(step, "transfer") == transfer) {
            return strcmp(json_string_value(json_object_get(step, "to")),
                          "stage") == 0;
        }
    }
    return false;
}

static void check_hops(const json_t *json)
{
    const json_t *hops = json_object_get(json, "transfers");
    uint64_t wanted = 0, brought = 0;
    const json_t *ranks = json_object_get(json, "ranks");
    for (size_t i = 0; i < json_array_size(hops); i++) {
        const json_t *hop = json_array_get(hops, i);
        uint64_t src = number(hop, "src");
        ck_assert_msg(held(json, src, "train", hop) == elements(hop) ||
                          relayed(hops, i, src, hop) >= elements(hop),
                      "hop %zu: rank %d does not have it", i, (int)src);
        if (to_stage(json, i)) {
            continue;
        }
        ck_assert_uint_eq(held(json, number(hop, "dst"), "infer", hop),
                          elements(hop));
        brought += elements(hop);
        for (size_t k = 0; k < i; k++) {
            const json_t *other = json_array_get(hops, k);
            if (number(other, "dst") == number(hop, "dst") &&
                !to_stage(json, k)) {
                ck_assert_uint_eq(shared(hop, other), 0);
            }
        }
    }
    for (size_t r = 0; r < json_array_size(ranks); r++) {
        const json_t *params =
            json_object_get(json_array_get(ranks, r), "infer");
        for (size_t i = 0; i < json_array_size(params); i++) {
            const json_t *pieces =
                json_object_get(json_array_get(params, i), "pieces");
            for (size_t k = 0; k < json_array_size(pieces); k++) {
                wanted += elements(json_array_get(pieces, k));
            }
        }
    }
    ck_assert_uint_eq(brought, wanted);
}

/* Every piece lies inside one contiguous parameter, and no two share a byte. */
static void check_places(const struct printed *p, const char *side,
                         const char *bytes_key)
{
    const json_t *ranks = json_object_get(p->json, "ranks");
    for (size_t r = 0; r < json_array_size(ranks); r++) {
        const json_t *memory =
            json_array_get(json_object_get(p->json, "memory"), r);
        const json_t *params = json_object_get(json_array_get(ranks, r), side);
        uint64_t arena = number(memory, bytes_key), used = 0;
        AUTO_FREE char *taken = rf_xcalloc(arena + 1, 1);
        for (size_t i = 0; i < json_array_size(params); i++) {
            const json_t *param = json_array_get(params, i);
            const json_t *pieces = json_object_get(param, "pieces");
            uint64_t first = UINT64_MAX, last = 0;
            ck_assert(json_is_string(json_object_get(param, "param")));
            ck_assert(strchr(json_string_value(json_object_get(param, "param")),
                             '{') == NULL);
            for (size_t k = 0; k < json_array_size(pieces); k++) {
                const json_t *piece = json_array_get(pieces, k);
                for (uint64_t e = 0; e < elements(piece); e++) {
                    uint64_t offset = number(piece, "offset"), rest = e;
                    for (size_t d = dims(piece); d-- > 0;) {
                        offset += rest % at(piece, "shape", d) *
                                  at(piece, "strides", d);
                        rest /= at(piece, "shape", d);
                    }
                    if (offset + 2 > arena || taken[offset] != 0) {
                        ck_abort_msg("rank %zu %s: byte %d", r, side,
                                     (int)offset);
                    }
                    taken[offset] = taken[offset + 1] = 1;
                    first = RF_MIN(first, offset);
                    last = RF_MAX(last, offset + 2);
                }
            }
            if (json_array_size(pieces) > 0) {
                ck_assert_uint_le(last - first, number(param, "bytes"));
            }
            used += number(param, "bytes");
        }
        ck_assert_uint_le(used, arena);
    }
}

#define EXPERTS                                                                \
    "{'megatron': {'num_layers': 2, 'hidden_size': 8, "                        \
    "'num_attention_heads': 4, 'num_query_groups': 2, 'vocab_size': 100, "     \
    "'ffn_hidden_size': 16, 'num_experts': 4, 'moe_ffn_hidden_size': 8, "      \
    "'swiglu': true}}"

static const char *const scenarios[] = {
    "'train': {'tp': 2, 'ep': 2, 'etp': 1}, 'infer': {'tp': 4, 'layout': "
    "'vllm'}",
    "'mode': 'disaggregated', 'train': {'nodes': ['a'], 'pp': 2}, 'infer': "
    "{'nodes': ['b'], 'tp': 2}",
    "'train': {'tp': 2}, 'infer': {'tp': 1}, 'strategy': 'broadcast'",
    "'train': {'tp': 2}, 'infer': {'tp': 4, 'layout': 'hf'}, 'strategy': "
    "'allgather'",
    "'mode': 'disaggregated', 'train': {'nodes': ['a'], 'tp': 2}, 'infer': "
    "{'nodes': ['b'], 'tp': 1}, 'strategy': 'gather_broadcast', "
    "'bucket_bytes': 4096",
};

LIMIT(60)

LOOP_TEST(test_plan_json_can_be_checked_from_outside, RF_ARRAY_SIZE(scenarios))
{
    AUTO(printed) p = print(EXPERTS, scenarios[_i]);
    check_places(&p, "train", "train_bytes");
    check_places(&p, "infer", "infer_bytes");
    check_hops(p.json);
}

/* Experts in one tensor are apart in its first dimension. */
TEST(test_plan_json_of_stacked_experts_can_be_checked_from_outside)
{
    AUTO(printed) p = print(
        "{'config': {'model_type': 'gpt_oss', 'num_hidden_layers': 1, "
        "'hidden_size': 8, 'num_attention_heads': 4, 'num_key_value_heads': "
        "2, 'head_dim': 4, 'intermediate_size': 8, 'vocab_size': 16, "
        "'num_local_experts': 4}}",
        scenarios[0]);
    check_places(&p, "train", "train_bytes");
    check_places(&p, "infer", "infer_bytes");
    check_hops(p.json);
}

TEST(test_plan_json_summary_is_the_totals)
{
    AUTO(printed) p = print(EXPERTS, scenarios[0]);
    const json_t *plan = json_object_get(p.json, "plan");
    char digest[RF_HASH_TEXT_SIZE];
    rf_hash_text(&p.plan->digest, digest);
    ck_assert_str_eq(json_string_value(json_object_get(plan, "digest")),
                     digest);
    ck_assert_uint_eq(number(plan, "bytes_total"),
                      number(plan, "bytes_local") +
                          number(plan, "bytes_intra_node") +
                          number(plan, "bytes_inter_node"));
    ck_assert_uint_eq(number(plan, "transfers"),
                      json_array_size(json_object_get(p.json, "transfers")));
    ck_assert_uint_le(number(plan, "bound_send_bytes"),
                      number(plan, "max_send_bytes"));
    ck_assert_uint_eq(json_array_size(json_object_get(p.json, "steps")), 0);
}

TEST(test_plan_json_without_full_has_no_lists)
{
    AUTO(printed) p = print(EXPERTS, scenarios[0]);
    json_auto_t *brief = rf_plan_json(p.plan, p.schedule, hosts, false);
    ck_assert_ptr_null(json_object_get(brief, "ranks"));
    ck_assert_ptr_null(json_object_get(brief, "transfers"));
    ck_assert_uint_eq(json_array_size(json_object_get(brief, "memory")), 4);
}

TEST(test_plan_json_shows_padding_without_pieces)
{
    /* 100 rows padded to 512: two of four ranks have none of them. */
    struct printed p = print("{'megatron': {'num_layers': 2, 'hidden_size': 8, "
                             "'num_attention_heads': 4, 'vocab_size': 100}}",
                             "'train': {'tp': 4}, 'infer': {'tp': 4}");
    const json_t *rank = json_array_get(json_object_get(p.json, "ranks"), 3);
    const json_t *param = json_array_get(json_object_get(rank, "train"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(param, "param")),
                     "model.embed_tokens.weight");
    ck_assert_uint_eq(number(param, "bytes"), 128 * 8 * 2);
    ck_assert_uint_eq(json_array_size(json_object_get(param, "pieces")), 0);
    dispose(&p);
}

/* What all hops from one rank to another carry, at two bytes an element. */
static uint64_t carried(const json_t *json, uint64_t src, uint64_t dst)
{
    const json_t *hops = json_object_get(json, "transfers");
    uint64_t sum = 0;
    for (size_t i = 0; i < json_array_size(hops); i++) {
        const json_t *hop = json_array_get(hops, i);
        if (number(hop, "src") == src && number(hop, "dst") == dst) {
            sum += elements(hop) * 2;
        }
    }
    return sum;
}

LOOP_TEST(test_plan_json_traffic_is_what_the_hops_carry,
          RF_ARRAY_SIZE(scenarios))
{
    AUTO(printed) p = print(EXPERTS, scenarios[_i]);
    const json_t *traffic = json_object_get(p.json, "traffic");
    uint64_t sum = 0, all = 0;
    ck_assert_uint_gt(json_array_size(traffic), 0);
    for (size_t i = 0; i < json_array_size(traffic); i++) {
        const json_t *entry = json_array_get(traffic, i);
        const uint64_t src =
            (uint64_t)json_integer_value(json_array_get(entry, 0));
        const uint64_t dst =
            (uint64_t)json_integer_value(json_array_get(entry, 1));
        const uint64_t bytes =
            (uint64_t)json_integer_value(json_array_get(entry, 2));
        ck_assert_uint_eq(bytes, carried(p.json, src, dst));
        sum += bytes;
    }
    for (uint32_t src = 0; src < 4; src++) {
        for (uint32_t dst = 0; dst < 4; dst++) {
            all += src != dst ? carried(p.json, src, dst) : 0;
        }
    }
    ck_assert_uint_eq(sum, all);
}
