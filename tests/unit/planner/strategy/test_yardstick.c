/*
 * Yardsticks against a count of their own: bytes between each two ranks, room
 * and overlap in each memory, for all strategies on several pairs of meshes.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/strategy/schedule_build.h"
#include "planner/strategy/yardstick.h"
#include "tests/unit/planner/schedule/schedule_lab.h"
#include "tests/unit/unit.h"

#define MODEL                                                                  \
    "{'megatron': {'num_layers': 4, 'hidden_size': 32, "                       \
    "'num_attention_heads': 8, 'num_query_groups': 4, 'vocab_size': 131, "     \
    "'swiglu': true}}"

static const struct world_case {
    const char *members;
    uint32_t slots[4], n_nodes;
} worlds[] = {
    {"'mode': 'colocated', 'train': {'tp': 2, 'pp': 2}, 'infer': {'tp': 4}",
     {4},
     1},
    {"'mode': 'colocated', 'train': {'tp': 1, 'dp': 4}, 'infer': {'tp': 4}",
     {3, 1},
     2},
    {"'mode': 'colocated', 'train': {'layout': 'fsdp1'}, 'infer': {'tp': 2}",
     {2, 2},
     2},
    {"'mode': 'disaggregated', "
     "'train': {'tp': 2, 'pp': 2, 'nodes': ['n0', 'n1']}, "
     "'infer': {'tp': 2, 'dp': 3, 'nodes': ['n2', 'n3']}",
     {2, 2, 2, 4},
     4},
    {"'mode': 'disaggregated', "
     "'train': {'tp': 2, 'nodes': ['n0'], 'dtype': 'float32'}, "
     "'infer': {'tp': 2, 'nodes': ['n1', 'n2']}",
     {2, 2, 2},
     3},
};

static void make(struct planned *lab, size_t strategy, size_t at,
                 const char *rest)
{
    char scenario[512];
    snprintf(scenario, sizeof(scenario),
             "{%s, 'strategy': '%s', 'bucket_bytes': 65536%s}",
             worlds[at].members, rf_strategy_name((enum rf_strategy)strategy),
             rest);
    ck_assert_msg(lab_make(lab, MODEL, scenario, worlds[at].slots,
                           worlds[at].n_nodes) == RF_OK,
                  "%s: %s", scenario, lab->err.text);
}

static uint64_t memory_bytes(const struct planned *lab, uint32_t rank,
                             uint8_t mem)
{
    if (mem == RF_MEM_STAGE) {
        return lab->schedule->stage_bytes != NULL
                   ? lab->schedule->stage_bytes[rank]
                   : 0;
    }
    return rf_plan_layout(lab->plan, mem == RF_MEM_TRAIN ? RF_TRAIN : RF_INFER,
                          rank)
        ->arena_bytes;
}

/* What flows from rank to rank: read, on the wire and written. */
struct flow {
    uint64_t read, wire, written;
};

static struct flow *flows_of(const struct planned *lab,
                             const struct rf_schedule *schedule,
                             const bool *left)
{
    const uint32_t n = lab->world->n_ranks;
    struct flow *flows = rf_xcalloc((size_t)n * n, sizeof(*flows));
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        struct flow *flow = &flows[(size_t)op->src * n + op->dst];
        uint64_t elements = 1;
        for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
            elements *= op->box.extent[d];
        }
        if (left != NULL && left[i]) {
            continue;
        }
        flow->read += elements * rf_form_item(op->from);
        flow->wire += elements * rf_form_item(op->wire);
        flow->written += elements * rf_form_item(op->to);
    }
    return flows;
}

static void check_flows(const struct planned *lab,
                        const struct rf_schedule *yardstick, const bool *left)
{
    const size_t n = lab->world->n_ranks;
    AUTO_FREE struct flow *wanted = flows_of(lab, lab->schedule, left);
    AUTO_FREE struct flow *found = flows_of(lab, yardstick, NULL);
    for (size_t p = 0; p < n * n; p++) {
        ck_assert_uint_eq(found[p].read, wanted[p].read);
        ck_assert_uint_eq(found[p].wire, wanted[p].wire);
        ck_assert_uint_eq(found[p].written, wanted[p].written);
    }
}

/* Every run is contiguous, waits for nothing and lies inside its memories. */
static void check_runs(const struct planned *lab,
                       const struct rf_schedule *yardstick)
{
    for (size_t i = 0; i < yardstick->n_ops; i++) {
        const struct rf_op *op = &yardstick->ops[i];
        const uint64_t items = op->box.extent[RF_BOX_DIMS - 1];
        ck_assert(i == 0 || op->id > yardstick->ops[i - 1].id);
        ck_assert_uint_lt(op->id, yardstick->n_world_ops);
        ck_assert_uint_lt(op->round, yardstick->n_rounds);
        ck_assert_uint_eq(op->dep, RF_NO_OP);
        ck_assert_uint_eq(op->group, RF_NO_GROUP);
        ck_assert_uint_eq(rf_box_elements(&op->box), items);
        ck_assert_uint_eq(op->src_stride[RF_BOX_DIMS - 1],
                          rf_form_item(op->from));
        ck_assert_uint_eq(op->dst_stride[RF_BOX_DIMS - 1],
                          rf_form_item(op->to));
        ck_assert_uint_le(op->src_offset + items * rf_form_item(op->from),
                          memory_bytes(lab, op->src, op->src_mem));
        ck_assert_uint_le(op->dst_offset + items * rf_form_item(op->to),
                          memory_bytes(lab, op->dst, op->dst_mem));
        ck_assert_uint_eq(op->src_offset % rf_form_item(op->from), 0);
        ck_assert_uint_eq(op->dst_offset % rf_form_item(op->to), 0);
    }
}

/* Marks each destination byte in inference memory; none twice. */
static void check_disjoint(const struct planned *lab,
                           const struct rf_schedule *yardstick)
{
    for (uint32_t r = 0; r < lab->world->n_ranks; r++) {
        AUTO_FREE uint8_t *seen =
            rf_xcalloc(memory_bytes(lab, r, RF_MEM_INFER) + 1, 1);
        for (size_t i = 0; i < yardstick->n_ops; i++) {
            const struct rf_op *op = &yardstick->ops[i];
            uint64_t bytes = rf_form_bytes(op->to, &op->box);
            if (op->dst != r || op->dst_mem != RF_MEM_INFER) {
                continue;
            }
            ck_assert_ptr_null(memchr(seen + op->dst_offset, 1, bytes));
            memset(seen + op->dst_offset, 1, bytes);
        }
    }
}

LIMIT(120)

LOOP_TEST(test_yardstick_moves_what_the_schedule_moves,
          RF_STRATEGIES *RF_ARRAY_SIZE(worlds))
{
    const size_t strategy = (size_t)_i % RF_STRATEGIES;
    const size_t world = (size_t)_i / RF_STRATEGIES;
    static const char *const rest[] = {"", ", 'serialize': true"};
    for (size_t s = 0; s < RF_ARRAY_SIZE(rest); s++) {
        AUTO(planned) lab;
        AUTO(rf_schedule) *yardstick;
        make(&lab, strategy, world, rest[s]);
        yardstick = rf_yardstick_build(lab.plan, lab.schedule, NULL);
        check_flows(&lab, yardstick, NULL);
        check_runs(&lab, yardstick);
        check_disjoint(&lab, yardstick);
        ck_assert_uint_eq(yardstick->wire_bytes, lab.schedule->wire_bytes);
    }
}

/* The two ends of a run know it by the same id, size and round, and a node
 * places what its own ranks receive as somebody would who sees all. */
LOOP_TEST(test_yardstick_of_each_node_agrees_with_the_worlds,
          RF_STRATEGIES *RF_ARRAY_SIZE(worlds))
{
    const size_t strategy = (size_t)_i % RF_STRATEGIES;
    const size_t world = (size_t)_i / RF_STRATEGIES;
    AUTO(planned) lab;
    AUTO(rf_schedule) *all;
    make(&lab, strategy, world, ", 'serialize': true");
    all = rf_yardstick_build(lab.plan, lab.schedule, NULL);
    for (uint32_t node = 0; node < lab.world->n_nodes; node++) {
        AUTO(rf_schedule) *part, *mine;
        size_t at = 0;
        ck_assert_int_eq(rf_schedule_build(lab.plan, node, &part, &lab.err),
                         RF_OK);
        mine = rf_yardstick_build(lab.plan, part, NULL);
        ck_assert_uint_eq(mine->n_rounds, all->n_rounds);
        check_runs(&lab, mine);
        for (size_t i = 0; i < all->n_ops; i++) {
            const struct rf_op *whole = &all->ops[i], *own = &mine->ops[at];
            bool receives = lab.world->ranks[whole->dst].node == node;
            if (!receives && lab.world->ranks[whole->src].node != node) {
                continue;
            }
            ck_assert_uint_lt(at++, mine->n_ops);
            ck_assert_uint_eq(own->id, whole->id);
            ck_assert_uint_eq(own->src, whole->src);
            ck_assert_uint_eq(own->dst, whole->dst);
            ck_assert_uint_eq(own->task, whole->task);
            ck_assert_uint_eq(own->round, whole->round);
            ck_assert_uint_eq(rf_op_bytes(own), rf_op_bytes(whole));
            if (receives) {
                ck_assert_uint_eq(own->dst_offset, whole->dst_offset);
            }
        }
        ck_assert_uint_eq(at, mine->n_ops);
    }
}

TEST(test_yardstick_has_one_run_between_two_ranks)
{
    AUTO(planned) lab;
    AUTO(rf_schedule) *yardstick;
    make(&lab, 0, 0, "");
    yardstick = rf_yardstick_build(lab.plan, lab.schedule, NULL);
    ck_assert_uint_gt(lab.schedule->n_ops, 16);
    ck_assert_uint_le(yardstick->n_ops, 16); /* 4 ranks */
    ck_assert_uint_eq(yardstick->n_rounds, 1);
    for (size_t i = 1; i < yardstick->n_ops; i++) {
        ck_assert(yardstick->ops[i].src != yardstick->ops[i - 1].src ||
                  yardstick->ops[i].dst != yardstick->ops[i - 1].dst);
    }
}

TEST(test_yardstick_leaves_out_what_moves_no_bytes)
{
    struct rf_schedule *yardstick;
    AUTO(planned) lab;
    AUTO_FREE bool *left;
    make(&lab, 0, 0, "");
    left = rf_xcalloc(lab.schedule->n_ops, sizeof(*left));
    for (size_t i = 0; i < lab.schedule->n_ops; i++) {
        left[i] = i % 3 != 0;
    }
    yardstick = rf_yardstick_build(lab.plan, lab.schedule, left);
    check_flows(&lab, yardstick, left);
    rf_schedule_destroy(yardstick);
    memset(left, true, lab.schedule->n_ops);
    yardstick = rf_yardstick_build(lab.plan, lab.schedule, left);
    ck_assert_uint_eq(yardstick->n_ops, 0);
    rf_schedule_destroy(yardstick);
}

TEST(test_yardstick_traffic_adds_up_over_the_ranks)
{
    struct rf_yardstick_traffic sum = {0}, one;
    uint64_t copied = 0, received = 0, peers = 0;
    AUTO(planned) lab;
    AUTO(rf_schedule) *yardstick;
    make(&lab, 1, 2, "");
    yardstick = rf_yardstick_build(lab.plan, lab.schedule, NULL);
    for (uint32_t r = 0; r < lab.world->n_ranks; r++) {
        rf_yardstick_traffic(lab.plan, yardstick, r, &one);
        sum.copied_bytes += one.copied_bytes;
        sum.peer_bytes += one.peer_bytes;
        sum.sent_bytes += one.sent_bytes;
        sum.received_bytes += one.received_bytes;
    }
    for (size_t i = 0; i < lab.schedule->n_ops; i++) {
        const struct rf_op *op = &lab.schedule->ops[i];
        bool near =
            lab.world->ranks[op->src].node == lab.world->ranks[op->dst].node;
        *(near ? &copied : &received) += rf_op_bytes(op);
        peers += op->src != op->dst ? rf_op_bytes(op) : 0;
    }
    ck_assert_uint_gt(received, 0);
    ck_assert_uint_eq(sum.copied_bytes, copied);
    ck_assert_uint_eq(sum.peer_bytes, peers);
    ck_assert_uint_eq(sum.sent_bytes, received);
    ck_assert_uint_eq(sum.received_bytes, received);
}
