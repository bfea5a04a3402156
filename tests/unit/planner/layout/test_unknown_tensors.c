/* Tensors that no rule knows: refused where they would have to be split. */
#include <stdio.h>
#include <string.h>

#include "planner/layout/unknown_tensors.h"
#include "tests/lib/quoted.h"
#include "tests/unit/unit.h"

#define MATRIX "{'shape': [16, 8], 'dtype': 'BF16'}"
#define VECTOR "{'shape': [8], 'dtype': 'BF16'}"

/* Known: a projection, norms, a router; unknown: the rest. */
#define TENSORS                                                                \
    "'manifest': {"                                                            \
    "'model.layers.0.mlp.up_proj.weight': " MATRIX ", "                        \
    "'model.layers.0.any_layernorm.weight': " VECTOR ", "                      \
    "'model.layers.0.any_norm.bias': " VECTOR ", "                             \
    "'model.layers.0.mlp.router.weight': " MATRIX ", "                         \
    "'model.layers.0.mlp.gate.weight': " MATRIX ", "                           \
    "'model.layers.0.strange': " MATRIX ", "                                   \
    "'model.layers.1.strange': " MATRIX ", "                                   \
    "'model.layers.0.strange_bias': " VECTOR ", "                              \
    "'model.layers.0.mlp.experts.0.strange': " MATRIX ", "                     \
    "'model.layers.0.mlp.experts.1.strange': " MATRIX "}"

#define STRANGE "model.layers.{L}.strange [16, 8]"
#define STRANGE_BIAS "model.layers.{L}.strange_bias [8]"
#define STRANGE_EXPERT "model.layers.{L}.mlp.experts.{E}.strange [16, 8]"

static const struct {
    const char *train, *infer;
    unsigned families, tensors;
    const char *says[3];
} sides[] = {
    {"'tp': 2", "'tp': 1", 3, 5, {STRANGE, STRANGE_BIAS, STRANGE_EXPERT}},
    {"'tp': 1", "'tp': 2, 'layout': 'vllm'", 3, 5, {STRANGE, STRANGE_EXPERT}},
    {"'tp': 1", "'tp': 2, 'layout': 'hf'", 3, 5, {STRANGE, STRANGE_EXPERT}},
    /* experts of their own numbers spread, whatever they are */
    {"'tp': 1, 'ep': 2", "'tp': 1", 2, 3, {STRANGE, STRANGE_BIAS}},
    {"'tp': 1", "'tp': 2, 'ep': 2, 'layout': 'hf'", 2, 3, {STRANGE}},
    {"'tp': 1, 'etp': 2", "'tp': 1", 3, 5, {STRANGE_EXPERT}},
    /* nothing that would have to be known */
    {"'tp': 1", "'tp': 1, 'layout': 'vllm'", 0, 0, {NULL}},
    {"'pp': 2", "'tp': 1", 0, 0, {NULL}},
    {"'layout': 'fsdp', 'dp': 2", "'dp': 2", 0, 0, {NULL}},
    {"'layout': 'fsdp1'", "'layout': 'fsdp'", 0, 0, {NULL}},
};

static struct rf_unknown check(const char *model_text, const char *train,
                               const char *infer, struct rf_err *err)
{
    AUTO(rf_model) *model = quoted_model("%s", model_text);
    AUTO(rf_spec) *spec =
        quoted_spec("'train': {%s}, 'infer': {%s}", train, infer);
    struct rf_unknown count = rf_unknown_tensors_count(model, spec);
    enum rf_status status = rf_unknown_tensors_check(model, spec, err);
    ck_assert_int_eq(status, err->status);
    return count;
}

LOOP_TEST(test_unknown_tensors_are_refused_where_a_side_splits,
          RF_ARRAY_SIZE(sides))
{
    struct rf_err err = {0};
    struct rf_unknown count =
        check("{" TENSORS "}", sides[_i].train, sides[_i].infer, &err);
    ck_assert_uint_eq(count.families, sides[_i].families);
    ck_assert_uint_eq(count.tensors, sides[_i].tensors);
    ck_assert_int_eq(err.status, count.families > 0 ? RF_ERR_CONFIG : RF_OK);
    for (unsigned i = 0; i < 3 && sides[_i].says[i] != NULL; i++) {
        assert_says(err.text, sides[_i].says[i]);
    }
    ck_assert_ptr_null(strstr(err.text, "norm"));
    ck_assert_ptr_null(strstr(err.text, "router"));
    ck_assert_ptr_null(strstr(err.text, "up_proj"));
}

TEST(test_unknown_tensors_may_be_replicated)
{
    struct rf_err err = {0};
    struct rf_unknown count =
        check("{" TENSORS ", 'unknown_tensors': 'replicate'}", "'tp': 2",
              "'tp': 1", &err);
    ck_assert_int_eq(err.status, RF_OK);
    ck_assert_uint_eq(count.tensors, 5);
    ck_assert_uint_eq(count.bytes, UINT64_C(2) * (4 * 16 * 8 + 8));
    check("{" TENSORS ", 'unknown_tensors': 'error'}", "'tp': 2", "'tp': 1",
          &err);
    ck_assert_int_eq(err.status, RF_ERR_CONFIG);
    assert_says(model_error("{" TENSORS ", 'unknown_tensors': 'guess'}"),
                "$.unknown_tensors");
}

/* Outside the layers nothing says which stage has a tensor. */
TEST(test_unknown_tensors_outside_layers_have_no_stage)
{
    const char *model = "{'manifest': {'model.layers.0.a': " MATRIX
                        ", 'model.layers.1.a': " MATRIX ", 'b': " MATRIX "}}";
    struct rf_err err = {0};
    struct rf_unknown count = check(model, "'pp': 2", "'tp': 1", &err);
    ck_assert_uint_eq(count.families, 1);
    assert_says(err.text, "1 unknown tensor");
    assert_says(err.text, ": b [16, 8].");
}

TEST(test_unknown_tensors_are_listed_up_to_a_limit)
{
    char text[16384] = "{'manifest': {";
    struct rf_err err = {0};
    for (int i = 0; i < 100; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used,
                 "'model.layers.0.some.strange.module%d': " MATRIX "%s", i,
                 i < 99 ? ", " : "}}");
    }
    check(text, "'tp': 2", "'tp': 1", &err);
    assert_says(err.text, "100 unknown tensors");
    assert_says(err.text, "strange.module0 [16, 8], ");
    assert_says(err.text, " more. Add \"rules\"");
    ck_assert_uint_lt(strlen(err.text), 960);
}
