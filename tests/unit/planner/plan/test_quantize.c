/* Which parts of a shard are quantised, where they go, and which cuts are
 * refused. */
#include "planner/plan/quantize.h"

#include <check.h>
#include <string.h>

#include "tests/lib/planned.h"

#define MODEL                                                                  \
    "{'megatron': {'num_layers': 2, 'hidden_size': 256, "                      \
    "'num_attention_heads': 4, 'num_query_groups': 4, 'ffn_hidden_size': "     \
    "320, 'vocab_size': 512, 'swiglu': true}}"
#define SCENARIO(infer)                                                        \
    "{'name': 's', 'train': {'tp': 2}, 'infer': {'layout': 'hf', " infer "}}"

static const uint32_t slots[] = {4};

static void make(struct planned *planned, const char *model,
                 const char *scenario)
{
    ck_assert_msg(planned_make(planned, model, scenario, slots, 1) == RF_OK,
                  "%s", planned->err.text);
}

/* Shards of tp 1: every linear matrix whole, all else left out. */
START_TEST(test_quantize_takes_the_matrices_of_linear_layers)
{
    struct planned planned;
    struct rf_quantize all;
    uint64_t values = 0, scales = 0, end = 0;
    make(&planned, MODEL, SCENARIO("'quantize': 'amax_448'"));
    ck_assert_int_eq(rf_quantize_plan(planned.plan, 0, &all, &planned.err),
                     RF_OK);
    ck_assert_uint_eq(all.n, 2 * 7); /* q k v o, gate up down; two layers */
    for (size_t i = 0; i < all.n; i++) {
        const struct rf_quantize_part *part = &all.parts[i];
        const struct rf_piece *piece =
            &rf_plan_layout(planned.plan, RF_INFER, 0)->pieces[part->piece];
        const struct rf_family *family =
            &planned.model->families[piece->family];
        ck_assert_uint_eq(family->ndim, 2);
        ck_assert_ptr_null(strstr(family->name, "embed"));
        ck_assert_uint_eq(part->rows, family->shape[0]);
        ck_assert_uint_eq(part->columns, family->shape[1]);
        ck_assert_uint_ge(part->values, end); /* one after the other */
        ck_assert_uint_eq(part->values % 256, 0);
        ck_assert_uint_ge(part->scales,
                          part->values + part->rows * part->columns);
        end = part->scales + 4 * rf_quantize_blocks(part->rows) *
                                 rf_quantize_blocks(part->columns);
        values += part->rows * part->columns;
        scales += end - part->scales;
    }
    ck_assert_uint_ge(all.bytes, end);
    ck_assert_uint_eq(all.value_bytes, values + scales);
    ck_assert_uint_eq(values, 2 * (4 * 256 * 256 + 3 * 256 * 320));
    /* 2 × 2 blocks each for q k v o, 3 × 2 for the others */
    ck_assert_uint_eq(scales, UINT64_C(4) * 2 * (4 * 4 + 3 * 6));
    rf_quantize_free(&all);
    planned_free(&planned);
}
END_TEST

START_TEST(test_quantize_is_nothing_unless_asked_for)
{
    struct planned planned;
    struct rf_quantize all;
    make(&planned, MODEL, SCENARIO("'tp': 4"));
    ck_assert_int_eq(rf_quantize_plan(planned.plan, 0, &all, &planned.err),
                     RF_OK);
    ck_assert_uint_eq(all.n, 0);
    ck_assert_uint_eq(all.bytes, 0);
    ck_assert_int_eq(rf_quantize_check(planned.plan, &planned.err), RF_OK);
    planned_free(&planned);
}
END_TEST

#define TENSOR(shape)                                                          \
    "{'tensor': {'name': 'w', 'shape': " shape ", 'dtype': 'bfloat16'}}"
#define SPEC(words)                                                            \
    "{'name': 's', 'train': {'layout': 'spec', 'mesh': [1, 4], 'spec': ['R', " \
    "'R']}, 'infer': {'layout': 'spec', 'mesh': [1, 4], 'spec': " words        \
    ", 'quantize': 'amax_448'}}"

/* Cuts are at multiples of a quarter of a dimension. */
static const struct {
    const char *model, *scenario, *refusal;
} cuts[] = {
    {TENSOR("[512, 100]"), SPEC("['S1', 'R']"), NULL},
    {TENSOR("[100, 512]"), SPEC("['R', 'S1']"), NULL},
    {TENSOR("[1024, 7]"), SPEC("['S1', 'R']"), NULL},
    {TENSOR("[100, 100]"), SPEC("['R', 'R']"), NULL},
    {TENSOR("[256, 128]"), SPEC("['S1', 'R']"), "rows 0 to 64"},
    {TENSOR("[128, 768]"), SPEC("['R', 'S1']"), "columns 0 to 192"},
};

START_TEST(test_quantize_refuses_cuts_inside_blocks)
{
    struct planned planned;
    struct rf_err err;
    enum rf_status status;
    make(&planned, cuts[_i].model, cuts[_i].scenario);
    status = rf_quantize_check(planned.plan, &err);
    if (cuts[_i].refusal == NULL) {
        ck_assert_msg(status == RF_OK, "%s", err.text);
    } else {
        ck_assert_int_eq(status, RF_ERR_CONFIG);
        ck_assert_ptr_nonnull(strstr(err.text, cuts[_i].refusal));
        ck_assert_ptr_nonnull(strstr(err.text, "multiples of 128"));
    }
    planned_free(&planned);
}
END_TEST

START_TEST(test_quantize_needs_bfloat16)
{
    struct planned planned;
    struct rf_err err;
    make(&planned, MODEL,
         SCENARIO("'dtype': 'float32', 'quantize': 'amax_448'"));
    ck_assert_int_eq(rf_quantize_check(planned.plan, &err), RF_ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "arrives as float32"));
    planned_free(&planned);
}
END_TEST

START_TEST(test_quantize_belongs_to_inference)
{
    struct planned planned;
    ck_assert_int_eq(
        planned_make(
            &planned, MODEL,
            "{'name': 's', 'train': {'quantize': 'amax_448'}, 'infer': {}}",
            slots, 1),
        RF_ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(planned.err.text, "belongs to \"infer\""));
}
END_TEST

Suite *test_quantize_suite(void);
Suite *test_quantize_suite(void)
{
    Suite *suite = suite_create("quantize");
    TCase *tests = tcase_create("quantize");
    tcase_add_test(tests, test_quantize_takes_the_matrices_of_linear_layers);
    tcase_add_test(tests, test_quantize_is_nothing_unless_asked_for);
    tcase_add_loop_test(tests, test_quantize_refuses_cuts_inside_blocks, 0,
                        (int)(sizeof(cuts) / sizeof(cuts[0])));
    tcase_add_test(tests, test_quantize_needs_bfloat16);
    tcase_add_test(tests, test_quantize_belongs_to_inference);
    suite_add_tcase(suite, tests);
    return suite;
}
