/* Building schedules: numbering, parts of a node, totals, digest, rounds; and
 * that the proof finds every kind of damage. */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "planner/plan/plan_walk.h"
#include "tests/unit/planner/schedule/schedule_lab.h"
#include "tests/unit/planner/schedule/schedule_parts.h"
#include "tests/unit/unit.h"

#define MODEL                                                                  \
    "{'megatron': {'num_layers': 4, 'hidden_size': 32, "                       \
    "'num_attention_heads': 8, 'vocab_size': 128}}"

static const uint32_t slots[] = {2, 3, 3};

static void make(struct planned *lab, const char *strategy, const char *more)
{
    char scenario[512];
    snprintf(scenario, sizeof(scenario),
             "{'mode': 'disaggregated', 'strategy': '%s', 'bucket_bytes': "
             "8192, 'chunk_bytes': 4096, 'train': {'tp': 2, 'nodes': ['n0']}, "
             "'infer': {'nodes': ['n1', 'n2']}%s}",
             strategy, more);
    enum rf_status status = lab_make(lab, MODEL, scenario, slots, 3);
    ck_assert_msg(status == RF_OK, "%s: %s", scenario, lab->err.text);
}

LIMIT(60)

LOOP_TEST(test_schedule_of_a_node_is_its_part_of_the_world, RF_STRATEGIES)
{
    AUTO(planned) lab;
    make(&lab, rf_strategy_name((enum rf_strategy)_i), "");
    schedule_parts_check(lab.plan, rf_strategy_name((enum rf_strategy)_i));
}

LOOP_TEST(test_schedule_totals_are_the_sums_of_ops, RF_STRATEGIES)
{
    AUTO(planned) lab;
    uint64_t wire = 0, inter = 0, copy[3] = {0}, peer[3] = {0};
    uint64_t send[8] = {0}, ops[8] = {0};
    make(&lab, rf_strategy_name((enum rf_strategy)_i), "");
    const struct rf_schedule *schedule = lab.schedule;
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        uint32_t from = lab.world->ranks[op->src].node;
        uint32_t to = lab.world->ranks[op->dst].node;
        ops[op->src]++;
        if (op->src != op->dst) {
            ops[op->dst]++;
            wire += rf_op_bytes(op);
            send[op->src] += rf_op_bytes(op);
        }
        if (from == to) {
            copy[to] += rf_op_bytes(op);
            peer[to] += op->src != op->dst ? rf_op_bytes(op) : 0;
        } else {
            inter += rf_op_bytes(op);
        }
    }
    ck_assert_uint_eq(wire, schedule->wire_bytes);
    ck_assert_uint_eq(inter, schedule->inter_node_bytes);
    ck_assert_mem_eq(copy, schedule->node_copy, sizeof(copy));
    ck_assert_mem_eq(peer, schedule->node_peer, sizeof(peer));
    if (_i != RF_GATHER_BROADCAST) { /* predict knows sockets by that */
        ck_assert_uint_eq(lab.plan->totals.bytes_local, 0);
        ck_assert_mem_eq(peer, copy, sizeof(copy));
    }
    ck_assert_mem_eq(send, schedule->rank_send, sizeof(send));
    ck_assert_mem_eq(ops, schedule->rank_ops, sizeof(ops));
}

TEST(test_schedule_direct_ops_are_the_transfers)
{
    AUTO(planned) lab;
    AUTO(rf_plan_walk) walk;
    make(&lab, "send_recv", "");
    ck_assert_uint_eq(lab.schedule->n_ops, lab.plan->n_transfers);
    ck_assert_uint_eq(lab.schedule->n_rounds, 1);
    rf_plan_walk_start(&walk, lab.plan);
    for (size_t i = 0; i < lab.plan->n_transfers; i++) {
        const struct rf_op *op = &lab.schedule->ops[i];
        ck_assert(rf_plan_walk_step(&walk));
        const struct rf_transfer *transfer = rf_plan_walk_transfer(&walk);
        ck_assert_uint_eq(op->src, transfer->src);
        ck_assert_uint_eq(op->dst, transfer->dst);
        ck_assert_uint_eq(op->src_offset, transfer->src_offset);
        ck_assert_uint_eq(op->dst_offset, transfer->dst_offset);
        ck_assert_uint_eq(op->dst_piece, transfer->dst_piece);
        ck_assert_mem_eq(&op->box, &transfer->box, sizeof(op->box));
    }
}

/* In lockstep and serialised, a rank does one direct op per round. */
LOOP_TEST(test_schedule_serialized_rounds_use_a_rank_once, 2)
{
    AUTO(planned) lab;
    make(&lab, "send_recv",
         _i == 0 ? ", 'serialize': true, 'balance': 'order'"
                 : ", 'serialize': true, 'balance': 'size'");
    for (uint32_t round = 0; round < lab.schedule->n_rounds; round++) {
        unsigned used[8] = {0};
        for (size_t i = 0; i < lab.schedule->n_ops; i++) {
            const struct rf_op *op = &lab.schedule->ops[i];
            if (op->round == round) {
                ck_assert_uint_eq(used[op->src]++, 0);
                ck_assert_uint_eq(used[op->dst]++, 0);
            }
        }
    }
}

LOOP_TEST(test_schedule_digest_depends_on_the_scenario, RF_STRATEGIES)
{
    struct planned lab, other;
    make(&lab, rf_strategy_name((enum rf_strategy)_i), "");
    make(&other, rf_strategy_name((enum rf_strategy)_i), "");
    ck_assert_mem_eq(&lab.schedule->digest, &other.schedule->digest,
                     sizeof(struct rf_hash));
    planned_free(&other);
    make(&other, rf_strategy_name((enum rf_strategy)((_i + 1) % RF_STRATEGIES)),
         "");
    ck_assert_mem_ne(&lab.schedule->digest, &other.schedule->digest,
                     sizeof(struct rf_hash));
    planned_free(&lab);
    planned_free(&other);
}

/* A plan's digest is of what moves, a schedule's also of the order. */
LOOP_TEST(test_schedule_digest_covers_groups, RF_STRATEGIES)
{
    static const char *const more[] = {
        "", ", 'group': {'by': 'layer', 'in_flight': 1}",
        ", 'group': {'by': 'layer', 'in_flight': 2}",
        ", 'group': {'by': 'layers:2', 'in_flight': 2}"};
    struct planned lab[RF_ARRAY_SIZE(more)];
    for (size_t i = 0; i < RF_ARRAY_SIZE(more); i++) {
        make(&lab[i], rf_strategy_name((enum rf_strategy)_i), more[i]);
        ck_assert_mem_eq(&lab[i].plan->digest, &lab[0].plan->digest,
                         sizeof(struct rf_hash));
        for (size_t j = 0; j < i; j++) {
            ck_assert_mem_ne(&lab[i].schedule->digest, &lab[j].schedule->digest,
                             sizeof(struct rf_hash));
        }
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(more); i++) {
        planned_free(&lab[i]);
    }
}

TEST(test_schedule_refuses_unknown_casts)
{
    AUTO(planned) lab;
    enum rf_status status = lab_make(
        &lab, MODEL,
        "{'train': {'dtype': 'float64'}, 'infer': {'dtype': 'bfloat16'}}",
        slots, 1);
    ck_assert_int_eq(status, RF_ERR_CONFIG);
    assert_says(lab.err.text, "float64");
}

TEST(test_schedule_has_no_cast_to_scaled_blocks)
{
    AUTO(planned) lab;
    enum rf_status status = lab_make(&lab, MODEL,
                                     "{'mode': 'disaggregated', 'train': {}, "
                                     "'infer': {'dtype': 'float8_e4m3fn'}}",
                                     slots, 1);
    ck_assert_int_eq(status, RF_ERR_CONFIG);
    assert_says(lab.err.text, "float8_e4m3fn");
}

static bool proved(const struct planned *lab)
{
    return rf_schedule_prove(lab->plan, lab->schedule, NULL) == RF_OK;
}

/* One field of one op changed; found, and fine again when put back. */
#define DAMAGE(lab, op, change)                                                \
    do {                                                                       \
        struct rf_op saved = *(op);                                            \
        change;                                                                \
        ck_assert_msg(!proved(lab), "%s: op %u: %s",                           \
                      rf_strategy_name((enum rf_strategy)_i), saved.id,        \
                      #change);                                                \
        *(op) = saved;                                                         \
    } while (0)

LOOP_TEST(test_schedule_proof_finds_damage, RF_STRATEGIES)
{
    AUTO(planned) lab;
    make(&lab, rf_strategy_name((enum rf_strategy)_i), ", 'serialize': true");
    for (size_t i = 0; i < lab.schedule->n_ops; i += 7) {
        struct rf_op *op = &lab.schedule->ops[i];
        DAMAGE(&lab, op, op->src_offset += 2);
        DAMAGE(&lab, op, op->dst_offset += 2);
        DAMAGE(&lab, op, op->dst = (op->dst + 1) % lab.world->n_ranks);
        DAMAGE(&lab, op, op->dst_mem = RF_MEM_TRAIN);
        DAMAGE(&lab, op, op->id++);
        DAMAGE(&lab, op, op->round = lab.schedule->n_rounds);
        DAMAGE(&lab, op, op->from.dtype++);
        DAMAGE(&lab, op, op->wire.dtype++);
        DAMAGE(&lab, op, op->to.dtype++);
        DAMAGE(&lab, op, op->family = lab.model->n_families);
        if (op->dst_mem == RF_MEM_INFER) {
            DAMAGE(&lab, op, op->box.extent[RF_DIM_TENSOR]++);
            DAMAGE(&lab, op, op->box.start[RF_DIM_TENSOR] += 1000);
            DAMAGE(&lab, op, op->dst_piece++);
            DAMAGE(&lab, op, op->dst_piece = RF_NONE);
        }
        if (op->dep != RF_NO_OP) {
            DAMAGE(&lab, op, op->dep = RF_NO_OP);
            DAMAGE(&lab, op, op->dep = op->id);
            DAMAGE(&lab, op, op->round = lab.schedule->ops[op->dep].round);
        }
        if (op->dst_mem == RF_MEM_STAGE) {
            DAMAGE(&lab, op, op->group++);
            DAMAGE(&lab, op, op->group = RF_NO_GROUP);
        }
    }
    ck_assert(proved(&lab));
}

LOOP_TEST(test_schedule_proof_finds_missing_and_doubled_writes, RF_STRATEGIES)
{
    AUTO(planned) lab;
    make(&lab, rf_strategy_name((enum rf_strategy)_i), "");
    struct rf_op *last = &lab.schedule->ops[lab.schedule->n_ops - 1];
    lab.schedule->n_ops--;
    lab.schedule->n_world_ops--;
    ck_assert(!proved(&lab));
    lab.schedule->n_ops++;
    lab.schedule->n_world_ops++;
    ck_assert(proved(&lab));
    /* the last op does what the one before it did */
    uint32_t id = last->id;
    *last = last[-1];
    last->id = id;
    ck_assert(!proved(&lab));
}

/* The op at `from` comes before the one that is at `to`, an earlier one. */
static void move_op(struct rf_schedule *schedule, uint32_t from, uint32_t to)
{
    const struct rf_op moved = schedule->ops[from];
    memmove(schedule->ops + to + 1, schedule->ops + to,
            (from - to) * sizeof(moved));
    schedule->ops[to] = moved;
    for (uint32_t i = 0; i < schedule->n_ops; i++) {
        struct rf_op *op = &schedule->ops[i];
        op->id = i;
        if (op->dep == from) {
            op->dep = to;
        } else if (op->dep >= to && op->dep < from) {
            op->dep++;
        }
    }
}

/* The first op of group 1. */
static uint32_t first_of_next_group(const struct rf_schedule *schedule)
{
    uint32_t i = 0;
    while (schedule->ops[i].group == 0) {
        i++;
    }
    return i;
}

TEST(test_schedule_proof_finds_groups_out_of_order)
{
    AUTO(planned) lab;
    make(&lab, "gather_broadcast", "");
    const uint32_t i = first_of_next_group(lab.schedule);
    move_op(lab.schedule, i, i - 1);
    assert_fails(rf_schedule_prove(lab.plan, lab.schedule, &lab.err),
                 RF_ERR_INTERNAL, lab.err, "a later group");
}

/* The last op of group 0, which takes something out of staging, says it is of
 * group 1: group 2 may then overwrite what it reads. */
TEST(test_schedule_proof_finds_reads_of_another_group)
{
    AUTO(planned) lab;
    make(&lab, "gather_broadcast", "");
    const uint32_t i = first_of_next_group(lab.schedule);
    ck_assert_uint_eq(lab.schedule->ops[i - 1].src_mem, RF_MEM_STAGE);
    lab.schedule->ops[i - 1].group = 1;
    assert_fails(rf_schedule_prove(lab.plan, lab.schedule, &lab.err),
                 RF_ERR_INTERNAL, lab.err, "a group that is not there");
}

/* An op of each group that begins a round before it may. */
LOOP_TEST(test_schedule_proof_finds_groups_that_do_not_wait, RF_STRATEGIES)
{
    AUTO(planned) lab;
    uint32_t found = 0;
    make(&lab, rf_strategy_name((enum rf_strategy)_i),
         ", 'group': {'by': 'layer', 'in_flight': 2}");
    ck_assert_uint_eq(lab.schedule->in_flight, 2);
    for (size_t i = 0; i < lab.schedule->n_ops; i++) {
        struct rf_op *op = &lab.schedule->ops[i];
        const uint32_t round = op->round;
        uint32_t ended = 0;
        for (size_t k = 0; k < i; k++) {
            const struct rf_op *other = &lab.schedule->ops[k];
            if (other->group + 2 == op->group) {
                ended = RF_MAX(ended, other->round + 1);
            }
        }
        if (ended > 0 && op->dep == RF_NO_OP) {
            op->round = ended - 1;
            assert_fails(rf_schedule_prove(lab.plan, lab.schedule, &lab.err),
                         RF_ERR_INTERNAL, lab.err, "does not wait");
            op->round = round;
            found++;
        }
    }
    ck_assert_uint_gt(found, 0);
    ck_assert(proved(&lab));
}

TEST(test_schedule_proof_finds_staging_that_is_too_small)
{
    AUTO(planned) lab;
    make(&lab, "gather_broadcast", "");
    lab.schedule->stage_bytes[0]--;
    /* the last bytes of the last slot are in use: slots end aligned */
    lab.schedule->stage_bytes[0] -= 64;
    ck_assert(!proved(&lab));
}

/* A group written while the one before it in its slot is still to be read. */
TEST(test_schedule_proof_finds_overwritten_staging)
{
    AUTO(planned) lab;
    make(&lab, "gather_broadcast", "");
    for (size_t i = 0; i < lab.schedule->n_ops; i++) {
        struct rf_op *op = &lab.schedule->ops[i];
        if (op->dst_mem == RF_MEM_STAGE && op->group == RF_IN_FLIGHT &&
            op->dep == RF_NO_OP) {
            op->round = 0;
            ck_assert(!proved(&lab));
            break;
        }
    }
}
