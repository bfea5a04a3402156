/* Which rows a rank converts in the window, and for which group, against the
 * addresses that ops read. */
#include "planner/schedule/conversions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/strategy/schedule_build.h"
#include "tests/lib/planned.h"
#include "tests/unit/unit.h"

/* Two replicas, which halve rows and columns for eight receivers. */
#define MODEL                                                                  \
    "{'config': {'model_type': 'qwen3_moe', 'hidden_size': 1024, "             \
    "'intermediate_size': 1024, 'moe_intermediate_size': 1024, "               \
    "'num_experts': 4, 'num_experts_per_tok': 2, 'num_attention_heads': 8, "   \
    "'num_key_value_heads': 8, 'head_dim': 128, 'num_hidden_layers': 2, "      \
    "'vocab_size': 512, 'torch_dtype': 'bfloat16'}}"

static const struct {
    const char *at, *overlap, *strategy;
} cases[] = {
    {"sender", "", "send_recv"},
    {"sender", ", 'overlap': true", "send_recv"},
    {"sender", ", 'overlap': true", "allgather"},
    {"receiver", ", 'overlap': true", "send_recv"},
};

static const uint32_t slots[] = {4, 8};

static void make(struct planned *planned, const char *format, int i)
{
    char scenario[600];
    snprintf(scenario, sizeof(scenario),
             "{'name': 's', 'mode': 'disaggregated', 'train': {'tp': 2, 'dp': "
             "2, 'ep': 2, 'etp': 1}, 'infer': {'layout': 'vllm', 'tp': 8}, "
             "'strategy': '%s', 'group': {'by': 'bytes:64KiB'}, 'quantize': "
             "{'format': '%s', 'at': '%s'%s}}",
             cases[i].strategy, format, cases[i].at, cases[i].overlap);
    assert_ok(planned_make(planned, MODEL, scenario, slots, 2), planned->err);
}

struct rank {
    const struct rf_plan *plan;
    const struct rf_quant_format *format;
    struct rf_schedule *schedule;
    struct rf_quantize what;
    struct rf_conversion *list;
    size_t n;
    uint32_t *needed;   /* group by matrix and row; RF_NO_GROUP: none */
    uint32_t *first_of; /* group by matrix, also of a tensor's scale */
    uint64_t most_rows;
};

static void open_rank(struct rank *rank, struct planned *planned, uint32_t r)
{
    const struct rf_plan *plan = planned->plan;
    *rank = (struct rank){.plan = plan,
                          .format = rf_spec_quantize(plan->spec)->format};
    assert_ok(rf_quantize_plan(plan, rf_quantize_side(plan), r, &rank->what,
                               &planned->err),
              planned->err);
    assert_ok(rf_schedule_build(plan, plan->world->ranks[r].node,
                                &rank->schedule, &planned->err),
              planned->err);
    rank->list =
        rf_conversions_make(plan, rank->schedule, r, &rank->what, &rank->n);
    for (size_t m = 0; m < rank->what.n; m++) {
        rank->most_rows = RF_MAX(
            rank->most_rows, rank->what.matrices[m].box.extent[RF_DIM_TENSOR]);
    }
    rank->needed =
        rf_xcalloc(rank->what.n * rank->most_rows, sizeof(*rank->needed));
    rank->first_of = rf_xcalloc(rank->what.n, sizeof(*rank->first_of));
    memset(rank->needed, 0xff,
           rank->what.n * rank->most_rows * sizeof(*rank->needed));
    memset(rank->first_of, 0xff, rank->what.n * sizeof(*rank->first_of));
}

static void close_rank(struct rank *rank)
{
    free(rank->needed);
    free(rank->first_of);
    free(rank->list);
    rf_quantize_free(&rank->what);
    rf_schedule_destroy(rank->schedule);
}

/* Marks the rows behind the byte at `offset` of what the rank sends. */
static void need(struct rank *rank, uint64_t offset, uint32_t group)
{
    const struct rf_quant_format *format = rank->format;
    for (size_t i = 0; i < rank->what.result.n_pieces; i++) {
        const struct rf_piece *piece = &rank->what.result.pieces[i];
        const struct rf_quant_part *part = &format->parts[i % format->n_parts];
        const uint64_t pitch = piece->stride[RF_DIM_TENSOR];
        const uint64_t rows = piece->box.extent[RF_DIM_TENSOR];
        const size_t m = i / format->n_parts;
        if (offset < piece->offset || offset >= piece->offset + rows * pitch) {
            continue;
        }
        rank->first_of[m] = RF_MIN(rank->first_of[m], group);
        const uint64_t top = (offset - piece->offset) / pitch * part->rows;
        for (uint64_t r = top;
             r < RF_MIN(top + part->rows,
                        rank->what.matrices[m].box.extent[RF_DIM_TENSOR]);
             r++) {
            uint32_t *needed = &rank->needed[m * rank->most_rows + r];
            *needed = RF_MIN(*needed, group);
        }
        return;
    }
    ck_abort_msg("an op reads a result at %lu, where none is",
                 (unsigned long)offset);
}

static void need_op(struct rank *rank, const struct rf_op *op, uint32_t group)
{
    const uint64_t *extent = op->box.extent, *stride = op->src_stride;
    for (uint64_t l = 0; l < extent[0]; l++) {
        for (uint64_t e = 0; e < extent[1]; e++) {
            for (uint64_t r = 0; r < extent[2]; r++) {
                need(rank,
                     op->src_offset + l * stride[0] + e * stride[1] +
                         r * stride[2],
                     group);
            }
        }
    }
}

/* Every row is in one conversion. */
static void check_cover(const struct rank *rank)
{
    uint32_t *seen = rf_xcalloc(rank->what.n * rank->most_rows, sizeof(*seen));
    for (size_t i = 0; i < rank->n; i++) {
        const struct rf_conversion *c = &rank->list[i];
        ck_assert(i == 0 || rank->list[i - 1].group <= c->group);
        ck_assert_uint_eq(c->row % RF_CONVERSION_ROWS, 0);
        for (uint64_t r = c->row; r < c->row + c->rows; r++) {
            seen[c->matrix * rank->most_rows + r]++;
        }
    }
    for (size_t m = 0; m < rank->what.n; m++) {
        for (uint64_t r = 0; r < rank->most_rows; r++) {
            ck_assert_uint_eq(
                seen[m * rank->most_rows + r],
                r < rank->what.matrices[m].box.extent[RF_DIM_TENSOR]);
        }
    }
    free(seen);
}

/* Whether a row of [from, to) is needed. */
static bool some_needed(const struct rank *rank, uint32_t matrix, uint64_t from,
                        uint64_t to)
{
    bool needed = false;
    for (uint64_t r = from; r < to; r++) {
        needed |= rank->needed[matrix * rank->most_rows + r] != RF_NO_GROUP;
    }
    return needed;
}

static void check_sender(const struct rank *rank)
{
    for (size_t i = 0; i < rank->n; i++) {
        const struct rf_conversion *c = &rank->list[i];
        const uint64_t end = c->row + c->rows;
        const uint64_t last =
            (end - 1) / RF_CONVERSION_ROWS * RF_CONVERSION_ROWS;
        if (c->group == RF_NO_GROUP) {
            ck_assert(!some_needed(rank, c->matrix, c->row, end));
            continue;
        }
        ck_assert_uint_eq(c->group, rank->first_of[c->matrix]);
        if (some_needed(rank, c->matrix, 0, rank->most_rows)) {
            ck_assert(some_needed(rank, c->matrix, c->row,
                                  RF_MIN(c->row + RF_CONVERSION_ROWS, end)));
            ck_assert(some_needed(rank, c->matrix, last, end));
        } else { /* the scale of a tensor alone */
            ck_assert_uint_eq(c->row, 0);
            ck_assert_uint_le(end, RF_CONVERSION_ROWS);
        }
    }
}

LOOP_TEST(test_senders_convert_for_a_group_what_ops_read, 3 * RF_QUANTS)
{
    AUTO(planned) planned;
    const bool overlaps = cases[_i % 3].overlap[0] != '\0';
    uint64_t held = 0, sent = 0;
    make(&planned, rf_quant_names[_i / 3], _i % 3);
    for (uint32_t r = 0; r < slots[0]; r++) {
        struct rank rank;
        open_rank(&rank, &planned, r);
        ck_assert_uint_gt(rank.what.n, 0);
        for (size_t i = 0; i < rank.schedule->n_ops; i++) {
            const struct rf_op *op = &rank.schedule->ops[i];
            if (op->src == r && op->src_mem == RF_MEM_TRAIN &&
                planned.plan->model->families[op->family].is_result) {
                need_op(&rank, op, overlaps ? op->group : 0);
            }
        }
        check_cover(&rank);
        check_sender(&rank);
        for (size_t i = 0; i < rank.n; i++) {
            held += rank.list[i].rows;
            sent += rank.list[i].group != RF_NO_GROUP ? rank.list[i].rows : 0;
        }
        close_rank(&rank);
    }
    ck_assert_uint_ge(2 * sent, held);
    ck_assert_uint_lt(sent, held);
}

/* Receivers convert all that arrives, in the group of its tensor. */
LOOP_TEST(test_receivers_convert_all_of_a_group, 3)
{
    static const enum rf_quant formats[] = {RF_FP8_BLOCK128,
                                            RF_FP8_BLOCK128_UE8M0, RF_MXFP8};
    AUTO(planned) planned;
    make(&planned, rf_quant_names[formats[_i]], 3);
    for (uint32_t r = slots[0]; r < slots[0] + slots[1]; r++) {
        struct rank rank;
        open_rank(&rank, &planned, r);
        check_cover(&rank);
        ck_assert_uint_eq(rank.n, rank.what.n);
        for (size_t i = 0; i < rank.n; i++) {
            const struct rf_quantize_matrix *matrix =
                &rank.what.matrices[rank.list[i].matrix];
            const struct rf_rank_layout *layout =
                rf_plan_layout(planned.plan, RF_INFER, r);
            size_t n = 0;
            for (size_t o = 0; o < rank.schedule->n_ops; o++) {
                const struct rf_op *op = &rank.schedule->ops[o];
                if (op->dst == r &&
                    op->family == layout->pieces[matrix->source].family &&
                    matrix->box.start[0] - op->box.start[0] <
                        op->box.extent[0] &&
                    matrix->box.start[1] - op->box.start[1] <
                        op->box.extent[1]) {
                    ck_assert_uint_eq(rank.list[i].group, op->group);
                    n++;
                }
            }
            ck_assert_uint_gt(n, 0);
        }
        close_rank(&rank);
    }
}
