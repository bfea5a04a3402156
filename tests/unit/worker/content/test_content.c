/* Content of weights: slices, casts, experts of one tensor. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "tests/unit/unit.h"
#include "tests/unit/worker/worker_lab.h"
#include "worker/content/content.h"

TEST(test_slices_of_a_cast_tensor_equal_the_whole)
{
    AUTO(worker_lab) lab;
    struct rf_content *content;
    struct rf_err err;
    struct rf_content_span span = {.count = 96};
    uint16_t whole[96], part[96];
    worker_lab_make(
        &lab, "{'tensor': {'name': 'w', 'shape': [8, 12], 'dtype': 'F32'}}",
        "{'name': 's', 'train': {'layout': 'hf'}, 'infer': {'layout': 'hf', "
        "'dtype': 'BF16'}}",
        1, 1);
    ck_assert_int_eq(rf_plan_form(lab.plan, RF_TRAIN, 0).dtype, RF_F32);
    ck_assert_int_eq(rf_plan_form(lab.plan, RF_INFER, 0).dtype, RF_BF16);
    assert_ok(rf_content_create(&(struct rf_content_job){.plan = lab.plan,
                                                         .side = RF_INFER,
                                                         .iteration = 5},
                                NULL, &content, &err),
              err);
    assert_ok(rf_content_read(content, &span, whole, &err), err);
    for (; span.first < 96; span.first += 7) {
        span.count = RF_MIN((uint64_t)11, 96 - span.first);
        assert_ok(rf_content_read(content, &span, part, &err), err);
        ck_assert_mem_eq(part, whole + span.first, span.count * sizeof(*part));
    }
    /* By the formula: the float32 pattern, rounded. */
    for (uint64_t i = 0; i < 96; i++) {
        uint32_t wide = 0;
        for (uint64_t b = 0; b < 4; b++) {
            wide |= (uint32_t)rf_pattern_byte(rf_pattern_seed(0, 0, 0), 5,
                                              4 * i + b)
                    << (8 * b);
        }
        ck_assert_uint_eq(whole[i], rf_f32_to_bf16(wide));
    }
    rf_content_destroy(content);
}

/* Experts that lie in one tensor: each is a stretch of it. */
TEST(test_an_expert_of_a_stacked_tensor_is_its_stretch)
{
    char folder[] = "/tmp/rf-content-XXXXXX";
    AUTO_FREE char *path, *model;
    uint8_t bytes[64], part[8];
    struct worker_lab lab;
    struct rf_content *content;
    struct rf_err err;
    FILE *file;
    for (uint8_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(3 * i + 1);
    }
    ck_assert_ptr_nonnull(mkdtemp(folder));
    path = rf_xasprintf("%s/f", folder);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, sizeof(bytes), file), sizeof(bytes));
    ck_assert_int_eq(fclose(file), 0);
    model = rf_xasprintf(
        "{'folder': '%s', 'manifest': {'e': {'shape': [3, 2, 4], 'dtype': "
        "'U8', 'file': 'f', 'offset': 5}}, 'rules': {'tensors': [{'name': 'e', "
        "'role': 'expert column', 'stacked': true}]}}",
        folder);
    worker_lab_make(&lab, model, "{'name': 's', 'train': {}, 'infer': {}}", 1,
                    1);
    assert_ok(rf_content_create(
                  &(struct rf_content_job){.plan = lab.plan, .side = RF_TRAIN},
                  NULL, &content, &err),
              err);
    for (uint32_t expert = 0; expert < 3; expert++) {
        struct rf_content_span span = {.expert = expert, .count = 8};
        assert_ok(rf_content_read(content, &span, part, &err), err);
        ck_assert_mem_eq(part, bytes + 5 + (size_t)8 * expert, 8);
        span.first = 3;
        span.count = 2;
        assert_ok(rf_content_read(content, &span, part, &err), err);
        ck_assert_mem_eq(part, bytes + 8 + (size_t)8 * expert, 2);
    }
    rf_content_destroy(content);
    worker_lab_free(&lab);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

TEST(test_a_cast_without_an_exact_rule_is_refused)
{
    AUTO(worker_lab) lab;
    struct rf_content *content = NULL;
    struct rf_err err = {.text = ""};
    struct rf_spec changed;
    worker_lab_make(
        &lab, "{'tensor': {'name': 'w', 'shape': [8, 12], 'dtype': 'F32'}}",
        "{'name': 's', 'train': {'layout': 'hf'}, 'infer': {'layout': 'hf'}}",
        1, 1);
    changed = *lab.task->spec;
    changed.infer.dtype = RF_F8_E4M3;
    changed.infer.dtype_given = true;
    lab.plan->spec = &changed;
    ck_assert_int_eq(
        rf_content_create(
            &(struct rf_content_job){.plan = lab.plan, .side = RF_INFER}, NULL,
            &content, &err),
        RF_ERR_UNSUPPORTED);
    ck_assert_ptr_null(content);
    assert_says(err.text, "float8_e4m3fn");
}
