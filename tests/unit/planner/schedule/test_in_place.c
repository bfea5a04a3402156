/* Pieces that can stay where they are, against looking at every op for every
 * piece. */
#include <stdio.h>

#include "common/compiler.h"
#include "planner/layout/box.h"
#include "planner/schedule/in_place.h"
#include "planner/strategy/schedule_build.h"
#include "tests/lib/planned.h"
#include "tests/unit/unit.h"

/* A planned world of one node with its schedule. */
struct lab {
    struct planned planned;
    struct rf_schedule *schedule;
};

static void make(struct lab *lab, const char *model, const char *scenario,
                 uint32_t slots)
{
    struct rf_err *err = &lab->planned.err;
    ck_assert_msg(planned_make(&lab->planned, model, scenario, &slots, 1) ==
                      RF_OK,
                  "%s", err->text);
    ck_assert_int_eq(
        rf_schedule_build(lab->planned.plan, 0, &lab->schedule, err), RF_OK);
}

static void done(struct lab *lab)
{
    rf_schedule_destroy(lab->schedule);
    planned_free(&lab->planned);
}

/* Whether an op that waits for `id` reads what it wrote. */
static bool is_read_again(const struct rf_schedule *schedule, uint32_t id)
{
    for (size_t i = 0; i < schedule->n_ops; i++) {
        if (schedule->ops[i].dep == id) {
            return true;
        }
    }
    return false;
}

/* The elements of a piece that ops bring as they lie in `src`'s training
 * memory, all of them with the piece's first element at one address. */
static bool can_stay(const struct rf_schedule *schedule, uint32_t rank,
                     const struct rf_piece *piece, uint32_t *src,
                     uint64_t *offset)
{
    uint64_t covered = 0;
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        uint64_t at = piece->offset, from = op->src_offset;
        if (op->dst != rank || op->dst_mem != RF_MEM_INFER ||
            op->family != piece->family ||
            !rf_box_contains(&piece->box, &op->box)) {
            continue;
        }
        for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
            uint64_t skip = op->box.start[d] - piece->box.start[d];
            at += skip * piece->stride[d];
            from -= skip * op->src_stride[d];
            if (d >= RF_DIM_TENSOR && piece->box.extent[d] > 1 &&
                op->src_stride[d] != piece->stride[d]) {
                return false;
            }
        }
        if (at != op->dst_offset) {
            continue;
        }
        if (covered == 0) {
            *src = op->src;
            *offset = from;
        }
        if (op->src != *src || from != *offset || op->src_mem != RF_MEM_TRAIN ||
            op->dep != RF_NO_OP || rf_op_cast(op) != RF_CAST_NONE ||
            is_read_again(schedule, op->id)) {
            return false;
        }
        covered += rf_box_elements(&op->box);
    }
    return covered == rf_box_elements(&piece->box);
}

/* Compares every piece of every rank; how many can stay. */
static size_t compare(const struct lab *lab)
{
    const struct rf_plan *plan = lab->planned.plan;
    struct rf_in_place_set in_place;
    size_t n = 0;
    rf_in_place_find(plan, lab->schedule, RF_NONE, &in_place);
    for (uint32_t rank = 0; rank < plan->world->n_ranks; rank++) {
        const struct rf_rank_layout *layout =
            rf_plan_layout(plan, RF_INFER, rank);
        for (size_t p = 0; p < layout->n_pieces; p++) {
            const struct rf_in_place *found = &in_place.ranks[rank].by_piece[p];
            uint32_t src = 0;
            uint64_t offset = 0;
            bool stays = can_stay(lab->schedule, rank, &layout->pieces[p], &src,
                                  &offset);
            ck_assert_int_eq(found->usable, stays);
            if (stays) {
                ck_assert_uint_eq(found->src, src);
                ck_assert_uint_eq(found->offset, offset);
                n++;
            }
        }
    }
    rf_in_place_free(&in_place);
    return n;
}

#define MODEL(layers)                                                          \
    "{'megatron': {'num_layers': " #layers                                     \
    ", 'hidden_size': 32, 'num_attention_heads': 8, 'num_query_groups': 4, "   \
    "'ffn_hidden_size': 48, 'vocab_size': 200, 'swiglu': true, "               \
    "'untie_embeddings_and_output_weights': true}}"

static const struct {
    const char *scenario;
    uint32_t slots;
    bool some_stay;
} worlds[] = {
    {"'train': {'tp': 2}, 'infer': {'tp': 2}", 2, true},
    {"'train': {'tp': 2, 'pp': 2}, 'infer': {'tp': 4}", 4, true},
    {"'train': {'tp': 4}, 'infer': {'tp': 2, 'layout': 'vllm'}", 4, true},
    {"'train': {'tp': 2}, 'infer': {'tp': 4}, 'strategy': 'gather_broadcast'",
     4, false},
    {"'train': {'tp': 2, 'dtype': 'float32'}, 'infer': {'tp': 2}", 2, false},
    {"'train': {'dp': 4, 'layout': 'fsdp1'}, 'infer': {'tp': 2}", 4, true},
    {"'train': {'dp': 4, 'layout': 'fsdp'}, 'infer': {'dp': 4, 'layout': "
     "'fsdp1'}",
     4, true},
};

LIMIT(60)

LOOP_TEST(test_cover_agrees_with_looking_at_every_op, RF_ARRAY_SIZE(worlds))
{
    struct lab lab;
    char scenario[512];
    snprintf(scenario, sizeof(scenario), "{'name': 'w', %s}",
             worlds[_i].scenario);
    make(&lab, MODEL(4), scenario, worlds[_i].slots);
    ck_assert_int_eq(compare(&lab) > 0, worlds[_i].some_stay);
    done(&lab);
}

TEST(test_cover_finds_an_ops_piece)
{
    struct lab lab;
    struct rf_in_place_set in_place;
    make(&lab, MODEL(2),
         "{'name': 'w', 'train': {'tp': 2}, 'infer': {'tp': 2}}", 2);
    rf_in_place_find(lab.planned.plan, lab.schedule, 1, &in_place);
    for (size_t i = 0; i < lab.schedule->n_ops; i++) {
        const struct rf_op *op = &lab.schedule->ops[i];
        const struct rf_in_place *cover = rf_in_place_of_op(&in_place, op);
        ck_assert_int_eq(cover != NULL, op->dst == 1);
        ck_assert(cover == NULL || cover->src == op->src);
    }
    rf_in_place_free(&in_place);
    done(&lab);
}
