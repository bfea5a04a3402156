/*
 * Ops that repeat over ranks: kept once, listed and summed up like all others,
 * and proved no less strictly than when they are listed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "planner/schedule/bcast.h"
#include "planner/strategy/schedule_build.h"
#include "tests/unit/planner/schedule/schedule_lab.h"
#include "tests/unit/unit.h"

#define MODEL                                                                  \
    "{'megatron': {'num_layers': 4, 'hidden_size': 32, "                       \
    "'num_attention_heads': 8, 'vocab_size': 128}}"

static const uint32_t slots[] = {4, 4, 4, 4, 4, 4};

/* Chains of several nodes; also a rank that gathers and receives. */
static const char *const worlds[] = {
    "'mode': 'disaggregated', 'train': {'tp': 2, 'nodes': ['n0']}, "
    "'infer': {'tp': 2, 'nodes': ['n1', 'n2', 'n3']}",
    "'mode': 'disaggregated', 'serialize': true, 'train': {'tp': 2, "
    "'nodes': ['n0']}, 'infer': {'tp': 2, 'nodes': ['n1', 'n2', 'n3']}",
    "'mode': 'colocated', 'train': {'tp': 2, 'pp': 2}, 'infer': {'tp': 4}",
    "'mode': 'colocated', 'serialize': true, 'train': {'tp': 2, 'pp': 2}, "
    "'infer': {'tp': 4}",
    "'mode': 'colocated', 'serialize': true, 'train': {'dtype': 'float32'}, "
    "'infer': {'tp': 4}",
};
#define N_WORLDS ((int)RF_ARRAY_SIZE(worlds))

/* The lab, and its schedule as it was built. */
static struct rf_schedule *make(struct planned *lab, const char *world,
                                uint32_t n_nodes)
{
    char scenario[512];
    struct rf_schedule *schedule;
    snprintf(scenario, sizeof(scenario),
             "{'strategy': 'gather_broadcast', 'bucket_bytes': 8192, "
             "'chunk_bytes': 4096, %s}",
             world);
    ck_assert_msg(lab_make(lab, MODEL, scenario, slots, n_nodes) == RF_OK,
                  "%s: %s", scenario, lab->err.text);
    ck_assert_int_eq(rf_schedule_build(lab->plan, RF_NONE, &schedule, NULL),
                     RF_OK);
    ck_assert_ptr_nonnull(schedule->tmpl);
    return schedule;
}

LIMIT(60)

LOOP_TEST(test_bcast_lists_and_finds_all_ops_in_order, N_WORLDS)
{
    AUTO(planned) lab;
    AUTO(rf_schedule) *schedule = make(&lab, worlds[_i], 6);
    struct rf_schedule_walk walk;
    const struct rf_op *op;
    uint64_t n = 0;
    rf_schedule_walk_start(&walk, schedule);
    while ((op = rf_schedule_walk_next(&walk)) != NULL) {
        struct rf_op found = {0};
        ck_assert_uint_eq(op->id, n++);
        ck_assert(rf_schedule_find(schedule, op->id, &found));
        ck_assert_uint_eq(found.id, op->id);
        ck_assert_uint_eq(found.src, op->src);
        ck_assert_uint_eq(found.dst, op->dst);
        ck_assert_uint_eq(found.round, op->round);
        ck_assert_uint_eq(found.dst_offset, op->dst_offset);
    }
    ck_assert_uint_eq(n, schedule->n_world_ops);
    ck_assert(!rf_schedule_find(schedule, (uint32_t)n, &(struct rf_op){0}));
    ck_assert_uint_lt(schedule->n_ops + schedule->tmpl->n_bcasts, n);
}

static const char *const grown[] = {
    "'mode': 'disaggregated', 'train': {'tp': 2, 'nodes': ['n0']}, "
    "'infer': {'tp': 2, 'nodes': ['n1']}",
    "'mode': 'disaggregated', 'train': {'tp': 2, 'nodes': ['n0']}, "
    "'infer': {'tp': 2, 'nodes': ['n1', 'n2', 'n3', 'n4', 'n5']}",
};

TEST(test_bcast_does_not_grow_with_the_receivers)
{
    AUTO(planned) few, many;
    AUTO(rf_schedule) *small = make(&few, grown[0], 6);
    AUTO(rf_schedule) *large = make(&many, grown[1], 6);
    ck_assert_uint_gt(large->n_world_ops, 3 * small->n_world_ops);
    ck_assert_uint_eq(large->n_ops, small->n_ops);
    ck_assert_uint_eq(large->tmpl->n_bcasts, small->tmpl->n_bcasts);
}

/* By pair of ranks: ops and bytes. */
struct sums {
    uint64_t n[24][24], bytes[24][24];
};

static void add_pair(uint32_t src, uint32_t dst, uint64_t n_ops, uint64_t bytes,
                     void *data)
{
    struct sums *sums = data;
    sums->n[src][dst] += n_ops;
    sums->bytes[src][dst] += bytes;
}

static void add_size(uint64_t bytes, uint64_t n_ops, void *data)
{
    struct sums *sums = data;
    sums->n[0][0] += n_ops;
    sums->bytes[0][0] += n_ops * bytes;
}

LOOP_TEST(test_bcast_sums_are_those_of_its_ops, N_WORLDS)
{
    AUTO(planned) lab;
    AUTO(rf_schedule) *schedule = make(&lab, worlds[_i], 6);
    struct sums listed = {.n = {{0}}}, pairs = listed, sizes = listed;
    uint64_t between = 0;
    for (size_t i = 0; i < lab.schedule->n_ops; i++) {
        const struct rf_op *op = &lab.schedule->ops[i];
        if (op->src != op->dst) {
            add_pair(op->src, op->dst, 1, rf_op_bytes(op), &listed);
            between++;
        }
    }
    rf_schedule_pairs(schedule, add_pair, &pairs);
    ck_assert_mem_eq(&pairs, &listed, sizeof(pairs));
    rf_schedule_sizes(schedule, add_size, &sizes);
    ck_assert_uint_eq(sizes.n[0][0], between);
    ck_assert_uint_eq(sizes.bytes[0][0], schedule->wire_bytes);
}

/* Changes one number a little; the name of what it belongs to. */
static const char *damage(struct rf_schedule *schedule, uint64_t random)
{
    struct rf_bcast_template *tmpl = schedule->tmpl;
    size_t any = random >> 16 & 0xffff;
    struct rf_bcast *bcast = &tmpl->bcasts[any % tmpl->n_bcasts];
    struct rf_op *kept = &schedule->ops[any % schedule->n_ops];
    struct rf_hop *hop = &tmpl->hops[any % tmpl->n_hops];
    uint64_t *stage = &schedule->stage_bytes[hop->rank];
    const struct {
        const char *name;
        uint32_t *narrow;
        uint64_t *wide;
    } fields[] = {
        {"id", &bcast->id, NULL},
        {"what gathered it", &bcast->gathered, NULL},
        {"round", &bcast->round, NULL},
        {"task", &bcast->task, NULL},
        {"unit task", &bcast->unit, NULL},
        {"round of takes", &bcast->take_round, NULL},
        {"element taken", &bcast->take_item, NULL},
        {"round of gathering", &kept->round, NULL},
        {"bucket of gathering", &kept->bucket, NULL},
        {"task of gathering", &kept->task, NULL},
        {"address of gathering", NULL, &kept->dst_offset},
        {"element of gathering", &kept->dst_item, NULL},
        {"stride of gathering", NULL, &kept->dst_stride[RF_DIM_TENSOR]},
        {"start of gathering", NULL, &kept->box.start[RF_DIM_TENSOR]},
        {"extent of gathering", NULL, &kept->box.extent[RF_DIM_TENSOR]},
        {"parent", &hop->parent, NULL},
        {"depth", &hop->depth, NULL},
        {"rank", &hop->rank, NULL},
        {"receivers", &tmpl->units.of[any % tmpl->units.n].n_dst, NULL},
        {"staging memory", NULL, stage},
    };
    size_t which = random % RF_ARRAY_SIZE(fields);
    uint32_t change = (uint32_t)(random >> 40) % 4 + 1;
    change = (random >> 50) % 2 ? change : 0 - change;
    if (fields[which].narrow != NULL) {
        *fields[which].narrow += change;
    } else if (fields[which].wide != NULL) {
        *fields[which].wide += (uint64_t)(int32_t)change * 32;
    }
    return fields[which].name;
}

/* What the proof of a template lets pass, the proof of its ops does, too. */
LOOP_TEST(test_bcast_proof_is_as_strict_as_that_of_the_ops, N_WORLDS)
{
    AUTO(planned) lab;
    AUTO(rf_schedule) *schedule = make(&lab, worlds[_i], 6);
    unsigned found = 0;
    for (uint64_t seed = 0; seed < 600; seed++) {
        AUTO(rf_schedule) *worse;
        const char *what;
        ck_assert_int_eq(rf_schedule_build(lab.plan, RF_NONE, &worse, NULL),
                         RF_OK);
        what = damage(worse, rf_mix64(seed));
        if (rf_schedule_prove(lab.plan, worse, &lab.err) == RF_OK) {
            lab_list_bcasts(worse);
            ck_assert_msg(rf_schedule_prove(lab.plan, worse, &lab.err) == RF_OK,
                          "%s: %s", what, lab.err.text);
        } else {
            found++;
        }
    }
    ck_assert_uint_gt(found, 300);
}

/* Whatever it is that is lost, the proof misses it. */
LOOP_TEST(test_bcast_proof_finds_lost_and_doubled_bcasts, N_WORLDS)
{
    AUTO(planned) lab;
    AUTO(rf_schedule) *schedule = make(&lab, worlds[_i], 6);
    struct rf_bcast_template *tmpl = schedule->tmpl;
    struct rf_bcast *last = &tmpl->bcasts[tmpl->n_bcasts - 1];
    uint64_t ops = rf_bcast_template_ops(tmpl, last);
    ck_assert_int_eq(rf_schedule_prove(lab.plan, schedule, NULL), RF_OK);
    tmpl->n_bcasts--;
    ck_assert_int_ne(rf_schedule_prove(lab.plan, schedule, NULL), RF_OK);
    schedule->n_world_ops -= ops;
    ck_assert_int_ne(rf_schedule_prove(lab.plan, schedule, &lab.err), RF_OK);
    ck_assert_ptr_nonnull(strstr(lab.err.text, "exactly once"));
    schedule->n_world_ops += ops;
    tmpl->n_bcasts++;
    last->gathered = last[-1].gathered;
    ck_assert_int_ne(rf_schedule_prove(lab.plan, schedule, NULL), RF_OK);
}

/* Elements of another size, or cast otherwise, though nothing else shows it. */
LOOP_TEST(test_bcast_proof_finds_wrong_elements, N_WORLDS)
{
    AUTO(planned) lab;
    AUTO(rf_schedule) *schedule = make(&lab, worlds[_i], 6);
    struct rf_bcast *bcast = &schedule->tmpl->bcasts[0];
    struct rf_op *gathered = &schedule->ops[bcast->gathered];
    gathered->dst_item--;
    ck_assert_int_ne(rf_schedule_prove(lab.plan, schedule, NULL), RF_OK);
    gathered->dst_item++;
    bcast->take_cast ^= 1;
    ck_assert_int_ne(rf_schedule_prove(lab.plan, schedule, NULL), RF_OK);
    bcast->take_cast ^= 1;
    ck_assert_int_eq(rf_schedule_prove(lab.plan, schedule, NULL), RF_OK);
}
