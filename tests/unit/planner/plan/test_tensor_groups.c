/* Groups of tensors against a list of all tensors, one by one: each is in one
 * group, and each group is what "group" asks for. */
#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/plan/plan_internal.h"
#include "planner/plan/tensor_groups.h"
#include "tests/lib/planned.h"
#include "tests/unit/planner/schedule/schedule_lab.h"
#include "tests/unit/unit.h"

#define DENSE                                                                  \
    "{'megatron': {'num_layers': 8, 'hidden_size': 32, "                       \
    "'num_attention_heads': 8, 'vocab_size': 128, 'swiglu': true}}"
#define MOE                                                                    \
    "{'megatron': {'num_layers': 6, 'hidden_size': 16, "                       \
    "'num_attention_heads': 4, 'vocab_size': 64, 'num_experts': 8, 'swiglu': " \
    "true}}"

static const struct of {
    const char *model, *train, *group;
    uint64_t size;
    bool layers, serial;
} worlds[] = {
    {DENSE, "'tp': 4", "{'by': 'layer'}", 1, true, false},
    {DENSE, "'pp': 4", "{'by': 'layer'}", 1, true, false},
    {DENSE, "'pp': 4", "{'by': 'layer', 'serial_pp': true}", 1, true, true},
    {DENSE, "'pp': 2, 'vpp': 2, 'tp': 2", "{'by': 'layers:3'}", 3, true, false},
    {DENSE, "'pp': 2, 'tp': 2", "{'by': 'layers:3', 'serial_pp': true}", 3,
     true, true},
    {DENSE, "'layout': 'fsdp'", "{'by': 'bytes:20000'}", 20000, false, false},
    {DENSE, "'pp': 2, 'tp': 2", "{'by': 'bytes:4KiB', 'serial_pp': true}", 4096,
     false, true},
    {MOE, "'ep': 4", "{'by': 'layers:2'}", 2, true, false},
    {MOE, "'pp': 2, 'ep': 2", "{'by': 'bytes:5kB'}", 5000, false, false},
    {MOE, "'pp': 2, 'ep': 2", "{'by': 'bytes:1MB', 'serial_pp': true}", 1000000,
     false, true},
};

/* A tensor, and the group that has it. */
struct tensor {
    uint32_t family, layer, expert, stage, place, group;
    uint64_t bytes;
};

struct tensors {
    struct tensor *of;
    size_t n, capacity;
};

static struct rf_box box_of(const struct planned *lab,
                            const struct tensor *tensor)
{
    struct rf_box box = rf_box_whole(&lab->model->families[tensor->family]);
    box.start[RF_DIM_LAYER] = tensor->layer;
    box.start[RF_DIM_EXPERT] = tensor->expert;
    box.extent[RF_DIM_LAYER] = box.extent[RF_DIM_EXPERT] = 1;
    return box;
}

/* The first stage in which a rank holds some of the layer. */
static uint32_t stage_of(const struct planned *lab, uint32_t family,
                         uint32_t layer)
{
    uint32_t stage = UINT32_MAX;
    for (uint32_t r = 0; r < lab->world->n_ranks; r++) {
        const struct rf_rank_layout *layout =
            rf_plan_layout(lab->plan, RF_TRAIN, r);
        for (size_t p = 0; p < layout->n_pieces; p++) {
            const struct rf_piece *piece = &layout->pieces[p];
            if (piece->family == family &&
                piece->box.start[RF_DIM_LAYER] <= layer &&
                layer < piece->box.start[RF_DIM_LAYER] +
                            piece->box.extent[RF_DIM_LAYER]) {
                const uint32_t pp =
                    rf_coord_of(&lab->spec->train, lab->world->size[RF_TRAIN],
                                lab->world->ranks[r].index[RF_TRAIN])
                        .pp;
                stage = RF_MIN(stage, pp);
            }
        }
    }
    return stage;
}

/* The group of a tensor, which is whole in exactly one. */
static uint32_t group_of(const struct planned *lab,
                         const struct rf_tensor_groups *groups,
                         const struct tensor *tensor)
{
    const struct rf_box box = box_of(lab, tensor);
    uint32_t found = UINT32_MAX;
    for (uint32_t g = 0; g < groups->n; g++) {
        struct rf_box part;
        size_t at = 0;
        while (rf_tensor_groups_part(groups, g, tensor->family, &box, &at,
                                     &part)) {
            ck_assert_uint_eq(found, UINT32_MAX);
            ck_assert_int_eq(rf_box_compare(&part, &box), 0);
            found = g;
        }
    }
    ck_assert_uint_ne(found, UINT32_MAX);
    return found;
}

/* By stage, place in the model, family, layer and expert. */
static int by_order(const void *a, const void *b)
{
    const struct tensor *x = a, *y = b;
    int order = RF_COMPARE(x->stage, y->stage);
    order = RF_THEN_BY(order, RF_COMPARE(x->place, y->place));
    order = RF_THEN_BY(order, RF_COMPARE(x->family, y->family));
    order = RF_THEN_BY(order, RF_COMPARE(x->layer, y->layer));
    return RF_THEN_BY(order, RF_COMPARE(x->expert, y->expert));
}

static void list_tensors(const struct planned *lab,
                         const struct rf_tensor_groups *groups,
                         struct tensors *out)
{
    for (uint32_t f = 0; f < lab->model->n_families; f++) {
        const struct rf_family *family = &lab->model->families[f];
        for (uint32_t l = 0; l < family->n_layers; l++) {
            for (uint32_t e = 0; e < family->n_experts; e++) {
                struct tensor tensor = {.family = f, .layer = l, .expert = e};
                const struct rf_box box = box_of(lab, &tensor);
                tensor.stage = stage_of(lab, f, l);
                tensor.place = family->layers != NULL ? family->layers[l] + 1
                               : family->stage == RF_STAGE_LAST ? UINT32_MAX
                                                                : 0;
                tensor.bytes = 2 * rf_box_elements(&box);
                tensor.group = group_of(lab, groups, &tensor);
                RF_PUSH(out->of, out->n, out->capacity, tensor);
            }
        }
    }
    qsort(out->of, out->n, sizeof(*out->of), by_order);
}

/* Whether `b` must begin a group, if `used` of the last one's size is taken. */
static bool must_begin(size_t world, const struct tensor *a,
                       const struct tensor *b, uint64_t used)
{
    if (!worlds[world].layers) {
        return used + b->bytes > worlds[world].size;
    }
    return a->place != b->place && (a->place == 0 || b->place == UINT32_MAX ||
                                    used == worlds[world].size);
}

static uint64_t largest_of(const struct tensors *all, uint32_t n_groups)
{
    uint64_t largest = 0;
    for (uint32_t g = 0; g < n_groups; g++) {
        uint64_t bytes = 0;
        for (size_t i = 0; i < all->n; i++) {
            bytes += all->of[i].group == g ? all->of[i].bytes : 0;
        }
        largest = RF_MAX(largest, bytes);
    }
    return largest;
}

LOOP_TEST(test_tensor_groups_are_as_asked, RF_ARRAY_SIZE(worlds))
{
    const uint32_t slots[] = {4, 4};
    AUTO_FREE char *scenario = rf_xasprintf(
        "{'mode': 'disaggregated', 'train': {%s}, 'infer': {'tp': 1}, 'group': "
        "%s}",
        worlds[_i].train, worlds[_i].group);
    AUTO(planned) lab;
    struct rf_tensor_groups groups;
    struct tensors all = {NULL, 0, 0};
    uint64_t used = 0;
    uint32_t most = 0;
    ck_assert_msg(lab_make(&lab, worlds[_i].model, scenario, slots, 2) == RF_OK,
                  "%s: %s", scenario, lab.err.text);
    rf_tensor_groups_make(lab.plan, &groups);
    list_tensors(&lab, &groups, &all);
    for (size_t i = 0; i < all.n; i++) {
        const struct tensor *b = &all.of[i], *a = i > 0 ? b - 1 : b;
        uint32_t group = a->group;
        if (i == 0 || a->stage != b->stage) {
            group = i > 0 && worlds[_i].serial ? a->group + 1 : 0;
            used = 0;
        } else if (must_begin((size_t)_i, a, b, used)) {
            group++;
            used = 0;
        }
        ck_assert_uint_eq(b->group, group);
        used += !worlds[_i].layers                  ? b->bytes
                : used == 0 || a->place != b->place ? 1
                                                    : 0;
        most = RF_MAX(most, group);
    }
    ck_assert_uint_eq(groups.n, most + 1);
    ck_assert_uint_gt(groups.n, 1);
    ck_assert_uint_eq(rf_tensor_groups_largest(lab.plan, &groups),
                      largest_of(&all, groups.n));
    free(all.of);
    rf_tensor_groups_free(&groups);
}

/* A part of a tensor stays with it, also beside parts of others. */
TEST(test_parts_of_boxes_follow_their_tensors)
{
    const uint32_t slots[] = {1, 1};
    AUTO(planned) lab;
    struct rf_tensor_groups groups;
    ck_assert_int_eq(lab_make(&lab, DENSE,
                              "{'mode': 'disaggregated', 'train': {}, 'infer': "
                              "{}, 'group': {'by': 'layers:3'}}",
                              slots, 2),
                     RF_OK);
    rf_tensor_groups_make(lab.plan, &groups);
    for (uint32_t f = 0; f < lab.model->n_families; f++) {
        struct rf_box whole = rf_box_whole(&lab.model->families[f]), part;
        uint64_t left;
        whole.start[RF_DIM_TENSOR] = 1;
        whole.extent[RF_DIM_TENSOR] -= 1;
        left = rf_box_elements(&whole);
        for (uint32_t g = 0; g < groups.n; g++) {
            size_t at = 0;
            while (rf_tensor_groups_part(&groups, g, f, &whole, &at, &part)) {
                ck_assert(rf_box_contains(&whole, &part));
                ck_assert_uint_le(part.extent[RF_DIM_LAYER], 3);
                left -= rf_box_elements(&part);
            }
        }
        ck_assert_uint_eq(left, 0);
    }
    rf_tensor_groups_free(&groups);
}
