/*
 * Deliveries: kept once, listed and summed up like single ops, proved no less
 * strictly than those, and rings predicted to take as long.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "planner/schedule/delivery.h"
#include "planner/schedule/schedule_proof.h"
#include "planner/strategy/schedule_build.h"
#include "tests/unit/planner/schedule/schedule_lab.h"
#include "tests/unit/unit.h"

static const uint32_t slots[] = {4, 4, 4, 4, 4, 4};

#define BCASTS                                                                 \
    "'strategy': 'gather_broadcast', 'bucket_bytes': 8192, 'chunk_bytes': "    \
    "4096"
#define RINGS "'strategy': 'allgather_global', 'chunk_bytes': 5000"
#define CHAINS "'strategy': 'broadcast', 'chunk_bytes': 5000"
#define PARTS "'strategy': 'allgather', 'chunk_bytes': 5000"

static const struct world {
    const char *strategy, *members;
} worlds[] = {
    /* Parts of one and of two sizes, of equally many chunks and not. */
    {RINGS, "'mode': 'disaggregated', 'train': {'tp': 2, 'nodes': ['n0']}, "
            "'infer': {'tp': 2, 'nodes': ['n1', 'n2', 'n3']}"},
    {RINGS,
     "'mode': 'disaggregated', 'serialize': true, 'train': {'tp': 2, "
     "'nodes': ['n0']}, 'infer': {'tp': 1, 'nodes': ['n1', 'n2', 'n3']}"},
    {RINGS, "'mode': 'disaggregated', 'cast': 'source', 'train': {'tp': 1, "
            "'dtype': 'float32', 'nodes': ['n0']}, 'infer': {'tp': 4, 'nodes': "
            "['n1', 'n2', 'n3', 'n4', 'n5']}"},
    {RINGS,
     "'mode': 'colocated', 'train': {'tp': 4, 'pp': 2}, 'infer': {'tp': 4}"},
    {RINGS,
     "'mode': 'disaggregated', 'serialize': true, 'train': {'tp': 4, "
     "'dp': 2, 'nodes': ['n0', 'n1']}, 'infer': {'tp': 4, 'nodes': ['n2', "
     "'n3', 'n4']}"},
#define N_RINGS 5
    /* Chains of several nodes; also a rank that gathers and receives. */
    {BCASTS, "'mode': 'disaggregated', 'train': {'tp': 2, 'nodes': ['n0']}, "
             "'infer': {'tp': 2, 'nodes': ['n1', 'n2', 'n3']}"},
    {BCASTS,
     "'mode': 'disaggregated', 'serialize': true, 'train': {'tp': 2, "
     "'nodes': ['n0']}, 'infer': {'tp': 2, 'nodes': ['n1', 'n2', 'n3']}"},
    {BCASTS,
     "'mode': 'colocated', 'train': {'tp': 2, 'pp': 2}, 'infer': {'tp': 4}"},
    {BCASTS,
     "'mode': 'colocated', 'serialize': true, 'train': {'tp': 2, 'pp': 2}, "
     "'infer': {'tp': 4}"},
    {BCASTS,
     "'mode': 'colocated', 'serialize': true, 'train': {'dtype': 'float32'}, "
     "'infer': {'tp': 4}"},
    /* Trees to pieces, and what is forwarded in a second delivery. */
    {CHAINS, "'mode': 'disaggregated', 'train': {'tp': 2, 'nodes': ['n0']}, "
             "'infer': {'tp': 2, 'dp': 6, 'nodes': ['n1', 'n2', 'n3']}"},
    {CHAINS, "'mode': 'disaggregated', 'serialize': true, 'train': {'tp': 4, "
             "'dp': 2, 'nodes': ['n0', 'n1']}, 'infer': {'tp': 4, 'nodes': "
             "['n2', 'n3', 'n4']}"},
    {PARTS, "'mode': 'disaggregated', 'train': {'tp': 2, 'nodes': ['n0']}, "
            "'infer': {'tp': 2, 'dp': 6, 'nodes': ['n1', 'n2', 'n3']}"},
    {PARTS, "'mode': 'disaggregated', 'serialize': true, 'cast': 'source', "
            "'train': {'tp': 1, 'dtype': 'float32', 'nodes': ['n0']}, 'infer': "
            "{'tp': 4, 'dp': 2, 'nodes': ['n1', 'n2']}"},
};
#define N_WORLDS RF_ARRAY_SIZE(worlds)

/* The lab, with single ops, and its schedule as it was built. */
static struct rf_schedule *make(struct planned *lab, const struct world *world)
{
    const bool rings = strcmp(world->strategy, RINGS) == 0;
    const char *model =
        rings ? "{'megatron': {'num_layers': 6, 'hidden_size': 96, "
                "'num_attention_heads': 12, 'vocab_size': 384}}"
              : "{'megatron': {'num_layers': 4, 'hidden_size': 32, "
                "'num_attention_heads': 8, 'vocab_size': 128}}";
    AUTO_FREE char *scenario =
        rf_xasprintf("{%s, %s}", world->strategy, world->members);
    struct rf_schedule *schedule;
    ck_assert_msg(lab_make(lab, model, scenario, slots, 6) == RF_OK, "%s: %s",
                  scenario, lab->err.text);
    ck_assert_int_eq(rf_schedule_build(lab->plan, RF_NONE, &schedule, NULL),
                     RF_OK);
    ck_assert_uint_eq(schedule->n_ops, 0);
    return schedule;
}

LIMIT(60)

LOOP_TEST(test_deliveries_are_listed_and_found_in_order, N_WORLDS)
{
    AUTO(planned) lab;
    AUTO(rf_schedule) *schedule = make(&lab, &worlds[_i]);
    struct rf_schedule_walk walk;
    const struct rf_op *op;
    uint64_t n = 0;
    rf_schedule_walk_start(&walk, schedule);
    while ((op = rf_schedule_walk_next(&walk)) != NULL) {
        struct rf_op found = {0};
        ck_assert_uint_eq(op->id, n++);
        ck_assert(rf_schedule_find(schedule, op->id, &found));
        ck_assert_mem_eq(&found, op, sizeof(found));
    }
    ck_assert_uint_eq(n, schedule->n_world_ops);
    ck_assert_uint_lt(schedule->deliveries->n, n);
    ck_assert(!rf_schedule_find(schedule, (uint32_t)n, &(struct rf_op){0}));
}

/* A ring's size depends on neither parts nor chunks. */
TEST(test_ring_keeps_few_of_many_ops)
{
    AUTO(planned) lab;
    AUTO(rf_schedule) *schedule = make(&lab, &worlds[0]);
    ck_assert_uint_lt(4 * schedule->deliveries->n_stops, schedule->n_world_ops);
}

TEST(test_staged_deliveries_do_not_grow_with_the_receivers)
{
    static const struct world few_nodes = {
        BCASTS, "'mode': 'disaggregated', 'train': {'tp': 2, 'nodes': ['n0']}, "
                "'infer': {'tp': 2, 'nodes': ['n1']}"};
    static const struct world many_nodes = {
        BCASTS, "'mode': 'disaggregated', 'train': {'tp': 2, 'nodes': ['n0']}, "
                "'infer': {'tp': 2, 'nodes': ['n1', 'n2', 'n3', 'n4', 'n5']}"};
    AUTO(planned) few, many;
    AUTO(rf_schedule) *small = make(&few, &few_nodes);
    AUTO(rf_schedule) *large = make(&many, &many_nodes);
    ck_assert_uint_gt(large->n_world_ops, 3 * small->n_world_ops);
    ck_assert_uint_eq(large->deliveries->n, small->deliveries->n);
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

LOOP_TEST(test_deliveries_have_the_sums_of_their_ops, N_WORLDS)
{
    AUTO(planned) lab;
    AUTO(rf_schedule) *schedule = make(&lab, &worlds[_i]);
    struct sums listed = {.n = {{0}}}, pairs = listed, sizes = listed;
    uint64_t between = 0, sent = 0;
    uint32_t last_round = 0;
    for (size_t i = 0; i < lab.schedule->n_ops; i++) {
        const struct rf_op *op = &lab.schedule->ops[i];
        last_round = RF_MAX(last_round, op->round);
        if (op->src != op->dst) {
            add_pair(op->src, op->dst, 1, rf_op_bytes(op), &listed);
            sent += rf_op_bytes(op);
            between++;
        }
    }
    rf_schedule_pairs(schedule, add_pair, &pairs);
    ck_assert_mem_eq(&pairs, &listed, sizeof(pairs));
    rf_schedule_sizes(schedule, add_size, &sizes);
    ck_assert_uint_eq(sizes.n[0][0], between);
    ck_assert_uint_eq(sizes.bytes[0][0], schedule->wire_bytes);
    ck_assert_uint_eq(sent, schedule->wire_bytes);
    ck_assert_uint_eq(last_round + 1, schedule->n_rounds);
}

/* What a node keeps is what of the world's ops touches it, with one digest. */
LOOP_TEST(test_deliveries_give_nodes_their_ops, N_WORLDS)
{
    AUTO(planned) lab;
    AUTO(rf_schedule) *schedule = make(&lab, &worlds[_i]);
    for (uint32_t node = 0; node < lab.world->n_nodes; node++) {
        AUTO(rf_schedule) *part;
        size_t n = 0;
        ck_assert_int_eq(rf_schedule_build(lab.plan, node, &part, NULL), RF_OK);
        ck_assert_uint_eq(part->digest.a, schedule->digest.a);
        ck_assert_uint_eq(part->digest.b, schedule->digest.b);
        ck_assert_uint_eq(part->n_world_ops, schedule->n_world_ops);
        for (size_t i = 0; i < lab.schedule->n_ops; i++) {
            const struct rf_op *op = &lab.schedule->ops[i];
            if (lab.world->ranks[op->src].node == node ||
                lab.world->ranks[op->dst].node == node) {
                ck_assert_uint_lt(n, part->n_ops);
                ck_assert_mem_eq(&part->ops[n++], op, sizeof(*op));
            }
        }
        ck_assert_uint_eq(part->n_ops, n);
        ck_assert_mem_eq(part->rank_ops, schedule->rank_ops,
                         lab.world->n_ranks * sizeof(*part->rank_ops));
    }
}

struct number {
    const char *name; /* what it belongs to */
    uint32_t *narrow;
    uint64_t *wide;
    uint32_t unit;        /* of changes */
    struct rf_form *form; /* NULL: one of the others */
    uint8_t *memory;
};

/* Changes one a little; its name. */
static const char *change_one(const struct number *numbers, size_t n,
                              uint64_t random)
{
    const struct number *number = &numbers[random % n];
    uint32_t change = ((uint32_t)(random >> 40) % 4 + 1) * number->unit;
    change = (random >> 50) % 2 ? change : 0 - change;
    if (number->form != NULL) {
        number->form->dtype =
            (uint8_t)((number->form->dtype + 1 + random % 7) % RF_DTYPE_COUNT);
    } else if (number->memory != NULL) {
        *number->memory =
            (uint8_t)((*number->memory + 1 + random % 2) % RF_MEM_COUNT);
    } else if (number->narrow != NULL) {
        *number->narrow += change;
    } else {
        ck_assert_ptr_nonnull(number->wide);
        *number->wide += (uint64_t)(int32_t)change;
    }
    return number->name;
}

static const char *damage(struct rf_schedule *schedule, uint64_t random)
{
    struct rf_deliveries *all = schedule->deliveries;
    size_t any = random >> 16 & 0xffff;
    struct rf_delivery *delivery = &all->of[any % all->n];
    struct rf_chunking *chunking = &delivery->chunking[random >> 32 & 1];
    struct rf_op *op = &delivery->op;
    struct rf_delivery_route *route = &all->routes[any % all->n_routes];
    struct rf_stop *stop = &all->stops[any % all->n_stops];
    uint64_t *stage = schedule->stage_bytes != NULL
                          ? &schedule->stage_bytes[stop->at.rank]
                          : &op->src_offset;
    const struct number numbers[] = {
        {"id", .narrow = &op->id, .unit = 1},
        {"dep", .narrow = &op->dep, .unit = 1},
        {"round", .narrow = &op->round, .unit = 1},
        {"task", .narrow = &op->task, .unit = 1},
        {"group", .narrow = &op->group, .unit = 1},
        {"source", .narrow = &op->src, .unit = 1},
        {"source's form", .form = &op->from},
        {"form", .form = &op->to},
        {"form on the wire", .form = &op->wire},
        {"form taken", .form = &delivery->take},
        {"address", .wide = &op->src_offset, .unit = 1},
        {"stride", .wide = &op->src_stride[RF_DIM_TENSOR], .unit = 1},
        {"staging address", .wide = &op->dst_offset, .unit = 32},
        {"staging stride", .wide = &op->dst_stride[RF_DIM_TENSOR], .unit = 32},
        {"start", .wide = &op->box.start[RF_DIM_TENSOR], .unit = 1},
        {"extent", .wide = &op->box.extent[RF_DIM_TENSOR], .unit = 1},
        {"layers", .wide = &op->box.extent[RF_DIM_LAYER], .unit = 1},
        {"piece written", .narrow = &op->dst_piece, .unit = 1},
        {"memory read", .memory = &op->src_mem},
        {"memory written", .memory = &op->dst_mem},
        {"route", .narrow = &delivery->route, .unit = 1},
        {"takes", .narrow = &delivery->takes, .unit = 1},
        {"turn", .narrow = &delivery->turn, .unit = 1},
        {"pace", .narrow = &delivery->pace, .unit = 1},
        {"tasks", .narrow = &delivery->tasks, .unit = 1},
        {"larger parts", .narrow = &delivery->larger, .unit = 1},
        {"dimension of parts", .narrow = &delivery->split.dim, .unit = 1},
        {"parts", .narrow = &delivery->split.parts, .unit = 1},
        {"dimension of chunks", .narrow = &chunking->dim, .unit = 1},
        {"length of chunks", .wide = &chunking->step, .unit = 1},
        {"chunks", .wide = &chunking->count, .unit = 1},
        {"source of a route", .narrow = &route->from, .unit = 1},
        {"first stop", .wide = &route->first, .unit = 1},
        {"stops", .narrow = &route->n, .unit = 1},
        {"height", .narrow = &route->height, .unit = 1},
        {"family of a route", .narrow = &route->family, .unit = 1},
        {"start of a route's box", .wide = &route->box.start[RF_DIM_TENSOR],
         .unit = 1},
        {"rank of a stop", .narrow = &stop->at.rank, .unit = 1},
        {"piece of a stop", .narrow = &stop->at.number, .unit = 1},
        {"parent", .narrow = &stop->parent, .unit = 1},
        {"depth", .narrow = &stop->depth, .unit = 1},
        {"rounds", .narrow = &schedule->n_rounds, .unit = 1},
        {"staging memory", .wide = stage, .unit = 32},
    };
    return change_one(numbers, RF_ARRAY_SIZE(numbers), random);
}

/* What the proof of deliveries lets pass, that of their ops does, too. */
LOOP_TEST(test_deliveries_are_proved_as_strictly_as_ops, N_WORLDS)
{
    AUTO(planned) lab;
    AUTO(rf_schedule) *schedule = make(&lab, &worlds[_i]);
    unsigned found = 0;
    for (uint64_t seed = 0; seed < 600; seed++) {
        AUTO(rf_schedule) *worse;
        const char *what;
        ck_assert_int_eq(rf_schedule_build(lab.plan, RF_NONE, &worse, NULL),
                         RF_OK);
        what = damage(worse, rf_mix64(seed));
        if (seed % 3 == 0) {
            damage(worse, rf_mix64(~seed));
        }
        if (rf_schedule_prove(lab.plan, worse, &lab.err) == RF_OK) {
            lab_list_ops(worse);
            ck_assert_msg(rf_schedule_prove(lab.plan, worse, &lab.err) == RF_OK,
                          "%s: %s", what, lab.err.text);
        } else {
            found++;
        }
    }
    ck_assert_uint_gt(found, 300);
}

LOOP_TEST(test_deliveries_that_are_lost_or_doubled_are_found, N_WORLDS)
{
    AUTO(planned) lab;
    AUTO(rf_schedule) *schedule = make(&lab, &worlds[_i]);
    struct rf_deliveries *all = schedule->deliveries;
    struct rf_delivery *last = &all->of[all->n - 1];
    const uint64_t ops = rf_delivery_ops(all, last);
    ck_assert_int_eq(rf_schedule_prove(lab.plan, schedule, NULL), RF_OK);
    all->n--;
    ck_assert_int_ne(rf_schedule_prove(lab.plan, schedule, NULL), RF_OK);
    schedule->n_world_ops -= ops;
    ck_assert_int_ne(rf_schedule_prove(lab.plan, schedule, &lab.err), RF_OK);
    assert_says(lab.err.text, "exactly once");
    schedule->n_world_ops += ops;
    all->n++;
    schedule->n_world_ops++;
    ck_assert_int_ne(rf_schedule_prove(lab.plan, schedule, &lab.err), RF_OK);
    assert_says(lab.err.text, "lost or gained");
    schedule->n_world_ops--;
    ck_assert_int_eq(rf_schedule_prove(lab.plan, schedule, NULL), RF_OK);
    last->op.box.start[RF_DIM_TENSOR]++;
    ck_assert_int_ne(rf_schedule_prove(lab.plan, schedule, NULL), RF_OK);
}

/* What the source holds beside the box. */
LOOP_TEST(test_delivery_of_a_box_that_its_route_does_not_bring_is_found,
          N_WORLDS)
{
    AUTO(planned) lab;
    AUTO(rf_schedule) *schedule = make(&lab, &worlds[_i]);
    for (size_t i = 0; i < schedule->deliveries->n; i++) {
        struct rf_op *op = &schedule->deliveries->of[i].op;
        const struct rf_op before = *op;
        const uint64_t extent = op->box.extent[RF_DIM_TENSOR];
        op->box.start[RF_DIM_TENSOR] += extent;
        op->src_offset += extent * op->src_stride[RF_DIM_TENSOR];
        if (op->src_mem == RF_MEM_TRAIN &&
            rf_schedule_proof_held(rf_plan_layout(lab.plan, RF_TRAIN, op->src),
                                   op)) {
            ck_assert_int_ne(rf_schedule_prove(lab.plan, schedule, NULL),
                             RF_OK);
        }
        *op = before;
    }
}

LOOP_TEST(test_staging_memory_overwritten_too_early_is_found, N_WORLDS)
{
    AUTO(planned) lab;
    AUTO(rf_schedule) *schedule = make(&lab, &worlds[_i]);
    for (size_t i = 0; i < schedule->deliveries->n; i++) {
        struct rf_op *op = &schedule->deliveries->of[i].op;
        const uint32_t round = op->round;
        if (op->dst_mem != RF_MEM_STAGE || op->group < RF_IN_FLIGHT) {
            continue;
        }
        for (uint32_t by = 1; by <= round; by *= 2) {
            AUTO(rf_schedule) *worse = NULL;
            op->round = round - by;
            if (rf_schedule_prove(lab.plan, schedule, NULL) != RF_OK) {
                continue;
            }
            ck_assert_int_eq(rf_schedule_build(lab.plan, RF_NONE, &worse, NULL),
                             RF_OK);
            worse->deliveries->of[i].op.round = op->round;
            lab_list_ops(worse);
            ck_assert_msg(rf_schedule_prove(lab.plan, worse, &lab.err) == RF_OK,
                          "delivery %zu, %u rounds earlier: %s", i, by,
                          lab.err.text);
        }
        op->round = round;
    }
}

LOOP_TEST(test_routes_that_share_staging_memory_are_found, N_WORLDS)
{
    AUTO(planned) lab;
    AUTO(rf_schedule) *schedule = make(&lab, &worlds[_i]);
    struct rf_deliveries *all = schedule->deliveries;
    size_t staged = 0;
    while (staged < all->n_routes &&
           (all->routes[staged].kind != RF_ROUTE_TREE ||
            all->routes[staged].n < 2 ||
            rf_route_stops(all, &all->routes[staged])->at.piece != NULL)) {
        staged++;
    }
    if (staged < all->n_routes) {
        const struct rf_delivery_route again = all->routes[staged];
        RF_PUSH(all->routes, all->n_routes, all->routes_capacity, again);
        ck_assert_int_ne(rf_schedule_prove(lab.plan, schedule, &lab.err),
                         RF_OK);
        assert_says(lab.err.text, "share staging memory");
    }
}

/* Elements of another type, though nothing else shows it. */
LOOP_TEST(test_delivery_proof_finds_wrong_elements, N_WORLDS)
{
    AUTO(planned) lab;
    AUTO(rf_schedule) *schedule = make(&lab, &worlds[_i]);
    struct rf_deliveries *all = schedule->deliveries;
    struct rf_delivery *last = &all->of[all->n - 1];
    last->op.to.dtype--;
    ck_assert_int_ne(rf_schedule_prove(lab.plan, schedule, NULL), RF_OK);
    last->op.to.dtype++;
    last->take.dtype++;
    ck_assert_int_eq(rf_schedule_prove(lab.plan, schedule, NULL) == RF_OK,
                     last->takes == RF_NONE);
}

struct size {
    uint64_t kept, ops;
};

static struct size size_of(unsigned dp)
{
    char scenario[256];
    uint32_t slots_of[160];
    AUTO(planned) lab;
    AUTO(rf_schedule) *schedule;
    struct size size;
    for (unsigned i = 0; i <= dp; i++) {
        slots_of[i] = 4;
    }
    snprintf(scenario, sizeof(scenario),
             "{'strategy': 'allgather_global', 'mode': 'disaggregated', "
             "'train': {'tp': 4, 'nodes': ['n0']}, 'infer': {'tp': 4, 'dp': "
             "%u}}",
             dp);
    ck_assert_msg(lab_make(&lab,
                           "{'megatron': {'num_layers': 2, 'hidden_size': "
                           "2048, 'num_attention_heads': 16, 'vocab_size': "
                           "8192}}",
                           scenario, slots_of, dp + 1) == RF_OK,
                  "%s: %s", scenario, lab.err.text);
    ck_assert_int_eq(rf_schedule_build(lab.plan, RF_NONE, &schedule, NULL),
                     RF_OK);
    size.ops = schedule->n_world_ops;
    size.kept = rf_schedule_memory(schedule);
    return size;
}

/* Ops are as many as receivers, times parts, which are as many: what is kept of
 * them grows with the receivers alone. */
TEST(test_ring_memory_grows_with_the_receivers_alone)
{
    const struct size few = size_of(16);
    const struct size many = size_of(128);
    ck_assert_uint_gt(many.ops, 12 * few.ops);
    ck_assert_uint_lt(many.kept, 9 * few.kept);
}

/* Beside single ops and their flows, on links of 1 GB/s; the last world is so
 * large that hops are put together. */
LOOP_TEST(test_ring_takes_as_long_as_its_ops, 5)
{
    static const struct {
        uint32_t from, to, slots;
        bool serialize;
        double latency_us;
    } cases[] = {{1, 5, 2, false, 0},
                 {3, 4, 2, false, 20},
                 {2, 4, 2, true, 20},
                 {4, 6, 4, true, 0},
                 {1, 60, 8, false, 0}};
    char scenario[512];
    uint32_t slots_of[64];
    AUTO(planned) lab;
    AUTO(rf_schedule) *schedule;
    double single, rings, exact;
    for (uint32_t i = 0; i < 64; i++) {
        slots_of[i] = cases[_i].slots;
    }
    snprintf(scenario, sizeof(scenario),
             "{'mode': 'disaggregated', 'strategy': 'allgather_global', "
             "'serialize': %s, 'train': {'layout': 'spec', 'mesh': [%u, %u], "
             "'spec': 'S01R'}, 'infer': {'layout': 'spec', 'mesh': [%u, %u], "
             "'spec': 'RR'}}",
             cases[_i].serialize ? "true" : "false", cases[_i].from,
             cases[_i].slots, cases[_i].to, cases[_i].slots);
    assert_ok(lab_make(&lab,
                       "{'tensor': {'name': 'w', 'shape': [8192, 1024], "
                       "'dtype': 'float32'}}",
                       scenario, slots_of, cases[_i].from + cases[_i].to),
              lab.err);
    ck_assert_int_eq(rf_schedule_build(lab.plan, RF_NONE, &schedule, NULL),
                     RF_OK);
    single = lab_ms(&lab, lab.schedule, cases[_i].latency_us);
    rings = lab_ms(&lab, schedule, cases[_i].latency_us);
    exact = cases[_i].to > 16 ? single : lab_time(&lab, 1e6);
    ck_assert_msg(rings >= 0.95 * RF_MIN(exact, single) &&
                      rings <= 1.06 * RF_MAX(exact, single),
                  "%.4f ms instead of %.4f or %.4f", rings, exact, single);
}
