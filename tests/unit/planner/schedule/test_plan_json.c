/*
 * `plan --json --full` read back by a checker that knows only docs/RESULTS.md:
 * it places every piece, follows every hop and counts.
 */
#include <string.h>

#include "common/mem.h"
#include "planner/schedule/plan_json.h"
#include "planner/strategy/schedule_build.h"
#include "tests/lib/planned.h"
#include "tests/unit/unit.h"

static struct planned planned;
static json_t *json;

static void print(const char *model, const char *scenario)
{
    const uint32_t slots[] = {2, 2};
    AUTO_FREE char *text = rf_xasprintf("{%s}", scenario);
    ck_assert_msg(planned_make(&planned, model, text, slots, 2) == RF_OK &&
                      rf_schedule_build(planned.plan, RF_NONE,
                                        &planned.schedule,
                                        &planned.err) == RF_OK,
                  "%s", planned.err.text);
    json = rf_plan_json(planned.plan, planned.schedule, planned_nodes, true);
    ck_assert_uint_eq(json_array_size(json_object_get(json, "ranks")),
                      planned.world->n_ranks);
    ck_assert_uint_eq(json_array_size(json_object_get(json, "memory")),
                      planned.world->n_ranks);
}

static void tear_down(void)
{
    json_decref(json);
    planned_free(&planned);
}

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
    if (strcmp(json_text_at(a, "tensor"), json_text_at(b, "tensor")) != 0) {
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

static const json_t *params_of(uint64_t rank, const char *side)
{
    return json_object_get(json_array_get(json_object_get(json, "ranks"), rank),
                           side);
}

/* Elements of `box`, or all for NULL, that a rank's pieces of a side hold. */
static uint64_t held(uint64_t rank, const char *side, const json_t *box)
{
    const json_t *param, *piece;
    size_t i, k;
    uint64_t n = 0;
    json_array_foreach (params_of(rank, side), i, param) {
        json_array_foreach (json_object_get(param, "pieces"), k, piece) {
            n += box != NULL ? shared(piece, box) : elements(piece);
        }
    }
    return n;
}

/* Elements of `box` that earlier hops brought to `rank`. */
static uint64_t relayed(size_t before, uint64_t rank, const json_t *box)
{
    const json_t *hop;
    uint64_t n = 0;
    size_t i;
    json_array_foreach (json_object_get(json, "transfers"), i, hop) {
        n += i < before && number(hop, "dst") == rank ? shared(hop, box) : 0;
    }
    return n;
}

static bool to_stage(size_t transfer)
{
    const json_t *step;
    size_t i;
    json_array_foreach (json_object_get(json, "steps"), i, step) {
        if (number(step, "transfer") == transfer) {
            return strcmp(json_text_at(step, "to"), "stage") == 0;
        }
    }
    return false;
}

static void check_hops(void)
{
    const json_t *hops = json_object_get(json, "transfers"), *hop;
    uint64_t wanted = 0, brought = 0;
    size_t i;
    json_array_foreach (hops, i, hop) {
        uint64_t src = number(hop, "src");
        ck_assert_msg(held(src, "train", hop) == elements(hop) ||
                          relayed(i, src, hop) >= elements(hop),
                      "hop %zu: rank %d does not have it", i, (int)src);
        if (to_stage(i)) {
            continue;
        }
        ck_assert_uint_eq(held(number(hop, "dst"), "infer", hop),
                          elements(hop));
        brought += elements(hop);
        for (size_t k = 0; k < i; k++) {
            const json_t *other = json_array_get(hops, k);
            if (number(other, "dst") == number(hop, "dst") && !to_stage(k)) {
                ck_assert_uint_eq(shared(hop, other), 0);
            }
        }
    }
    for (size_t r = 0; r < json_array_size(json_object_get(json, "ranks"));
         r++) {
        wanted += held(r, "infer", NULL);
    }
    ck_assert_uint_eq(brought, wanted);
}

/* Notes the bytes of a piece in its arena; those of others must not be there.
 * `first` and `last` are moved to where its parameter's bytes begin and end. */
static void take_piece(const json_t *piece, char *taken, uint64_t arena,
                       uint64_t *first, uint64_t *last)
{
    for (uint64_t e = 0; e < elements(piece); e++) {
        uint64_t offset = number(piece, "offset"), rest = e;
        for (size_t d = dims(piece); d-- > 0;) {
            offset += rest % at(piece, "shape", d) * at(piece, "strides", d);
            rest /= at(piece, "shape", d);
        }
        ck_assert_msg(offset + 2 <= arena && taken[offset] == 0, "byte %d",
                      (int)offset);
        taken[offset] = taken[offset + 1] = 1;
        *first = RF_MIN(*first, offset);
        *last = RF_MAX(*last, offset + 2);
    }
}

/* Every piece lies inside one contiguous parameter, and no two share a byte. */
static void check_places(const char *side, const char *bytes_key)
{
    const json_t *memory, *param, *piece;
    size_t rank, i, k;
    json_array_foreach (json_object_get(json, "memory"), rank, memory) {
        uint64_t arena = number(memory, bytes_key), used = 0;
        AUTO_FREE char *taken = rf_xcalloc(arena + 1, 1);
        json_array_foreach (params_of(rank, side), i, param) {
            uint64_t first = UINT64_MAX, last = 0;
            const char *name = json_text_at(param, "param");
            ck_assert(name != NULL && strchr(name, '{') == NULL);
            json_array_foreach (json_object_get(param, "pieces"), k, piece) {
                take_piece(piece, taken, arena, &first, &last);
            }
            ck_assert(k == 0 || last - first <= number(param, "bytes"));
            used += number(param, "bytes");
        }
        ck_assert_uint_le(used, arena);
    }
}

static void check_places_and_hops(void)
{
    check_places("train", "train_bytes");
    check_places("infer", "infer_bytes");
    check_hops();
}

#define EXPERTS                                                                \
    "{'megatron': {'num_layers': 2, 'hidden_size': 8, "                        \
    "'num_attention_heads': 4, 'num_query_groups': 2, 'vocab_size': 100, "     \
    "'ffn_hidden_size': 16, 'num_experts': 4, 'moe_ffn_hidden_size': 8, "      \
    "'swiglu': true}}"

static const char *const scenarios[] = {
    "'train': {'tp': 2, 'ep': 2, 'etp': 1}, 'infer': {'tp': 4, 'layout': "
    "'vllm'}",
    "'mode': 'disaggregated', 'train': {'nodes': ['n0'], 'pp': 2}, 'infer': "
    "{'nodes': ['n1'], 'tp': 2}",
    "'train': {'tp': 2}, 'infer': {'tp': 1}, 'strategy': 'broadcast'",
    "'train': {'tp': 2}, 'infer': {'tp': 4, 'layout': 'hf'}, 'strategy': "
    "'allgather'",
    "'mode': 'disaggregated', 'train': {'nodes': ['n0'], 'tp': 2}, 'infer': "
    "{'nodes': ['n1'], 'tp': 1}, 'strategy': 'gather_broadcast', "
    "'bucket_bytes': 4096",
};

LIMIT(60)
FIXTURE(NULL, tear_down)

LOOP_TEST(test_plan_json_can_be_checked_from_outside, RF_ARRAY_SIZE(scenarios))
{
    print(EXPERTS, scenarios[_i]);
    check_places_and_hops();
}

/* Experts in one tensor are apart in its first dimension. */
TEST(test_plan_json_of_stacked_experts_can_be_checked_from_outside)
{
    print("{'config': {'model_type': 'gpt_oss', 'num_hidden_layers': 1, "
          "'hidden_size': 8, 'num_attention_heads': 4, 'num_key_value_heads': "
          "2, 'head_dim': 4, 'intermediate_size': 8, 'vocab_size': 16, "
          "'num_local_experts': 4}}",
          scenarios[0]);
    check_places_and_hops();
}

TEST(test_plan_json_summary_is_the_totals)
{
    print(EXPERTS, scenarios[0]);
    const json_t *plan = json_object_get(json, "plan");
    char digest[RF_HASH_TEXT_SIZE];
    rf_hash_text(&planned.plan->digest, digest);
    ck_assert_str_eq(json_text_at(plan, "digest"), digest);
    ck_assert_uint_eq(number(plan, "bytes_total"),
                      number(plan, "bytes_local") +
                          number(plan, "bytes_intra_node") +
                          number(plan, "bytes_inter_node"));
    ck_assert_uint_eq(number(plan, "transfers"),
                      json_array_size(json_object_get(json, "transfers")));
    ck_assert_uint_le(number(plan, "bound_send_bytes"),
                      number(plan, "max_send_bytes"));
    ck_assert_uint_eq(json_array_size(json_object_get(json, "steps")), 0);
}

TEST(test_plan_json_without_full_has_no_lists)
{
    print(EXPERTS, scenarios[0]);
    json_auto_t *brief =
        rf_plan_json(planned.plan, planned.schedule, planned_nodes, false);
    ck_assert_ptr_null(json_object_get(brief, "ranks"));
    ck_assert_ptr_null(json_object_get(brief, "transfers"));
    ck_assert_uint_eq(json_array_size(json_object_get(brief, "memory")), 4);
}

TEST(test_plan_json_shows_padding_without_pieces)
{
    /* 100 rows padded to 512: two of four ranks have none of them. */
    print("{'megatron': {'num_layers': 2, 'hidden_size': 8, "
          "'num_attention_heads': 4, 'vocab_size': 100}}",
          "'train': {'tp': 4}, 'infer': {'tp': 4}");
    const json_t *rank = json_at(json, "ranks[3]");
    const json_t *param = json_at(rank, "train[0]");
    ck_assert_str_eq(json_text_at(param, "param"), "model.embed_tokens.weight");
    ck_assert_uint_eq(number(param, "bytes"), 128 * 8 * 2);
    ck_assert_uint_eq(json_array_size(json_object_get(param, "pieces")), 0);
}

/* What all hops from one rank to another carry, at two bytes an element. */
static uint64_t carried(uint64_t src, uint64_t dst)
{
    const json_t *hop;
    uint64_t sum = 0;
    size_t i;
    json_array_foreach (json_object_get(json, "transfers"), i, hop) {
        if (number(hop, "src") == src && number(hop, "dst") == dst) {
            sum += elements(hop) * 2;
        }
    }
    return sum;
}

LOOP_TEST(test_plan_json_traffic_is_what_the_hops_carry,
          RF_ARRAY_SIZE(scenarios))
{
    print(EXPERTS, scenarios[_i]);
    json_t *traffic = json_object_get(json, "traffic"), *entry;
    uint64_t sum = 0, all = 0;
    size_t i;
    ck_assert_uint_gt(json_array_size(traffic), 0);
    json_array_foreach (traffic, i, entry) {
        json_int_t src, dst, bytes;
        ck_assert_int_eq(json_unpack(entry, "[I, I, I]", &src, &dst, &bytes),
                         0);
        ck_assert_uint_eq((uint64_t)bytes,
                          carried((uint64_t)src, (uint64_t)dst));
        sum += (uint64_t)bytes;
    }
    for (uint32_t src = 0; src < 4; src++) {
        for (uint32_t dst = 0; dst < 4; dst++) {
            all += src != dst ? carried(src, dst) : 0;
        }
    }
    ck_assert_uint_eq(sum, all);
}
