/* What waits for what, on schedules made by hand. One rank, so that everything
 * that may run is handed to us in order. */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/ranks.h"
#include "tests/unit/unit.h"
#include "transport/engine/flow.h"

#define N_OPS 8

struct lab {
    struct rf_world world;
    struct rf_rank ranks[3];
    struct rf_op ops[N_OPS];
    struct rf_schedule schedule;
    enum rf_route routes[N_OPS];
    struct rf_flow *flow;
    struct rf_node_memory *shm;
};

static uint32_t add(struct lab *lab, uint32_t src, uint32_t dst, uint32_t dep)
{
    uint32_t id = (uint32_t)lab->schedule.n_ops++;
    lab->ops[id] = (struct rf_op){.id = id,
                                  .src = src,
                                  .dst = dst,
                                  .dep = dep,
                                  .group = RF_NO_GROUP,
                                  .task = id,
                                  .src_mem = RF_MEM_TRAIN,
                                  .dst_mem = RF_MEM_INFER};
    lab->routes[id] = RF_ROUTE_OWN;
    return id;
}

static void init(struct lab *lab, uint32_t n_ranks)
{
    memset(lab, 0, sizeof(*lab));
    lab->world.n_ranks = n_ranks;
    lab->world.ranks = lab->ranks;
    lab->schedule.ops = lab->ops;
    lab->schedule.in_flight = RF_IN_FLIGHT;
}

static void build(struct lab *lab, bool serialize)
{
    const struct rf_flow_how how = {.schedule = &lab->schedule,
                                    .world = &lab->world,
                                    .routes = lab->routes,
                                    .serialize = serialize};
    struct rf_err err;
    assert_ok(rf_flow_build(&how, &lab->flow, &err), err);
}

static enum rf_status alone(void *data, const void *mine, size_t size,
                            struct rf_blob *all, struct rf_err *err)
{
    (void)data;
    (void)err;
    all[0].data = malloc(size);
    all[0].size = size;
    memcpy(all[0].data, mine, size);
    return RF_OK;
}

static void attach(struct lab *lab)
{
    struct rf_plan plan = {.world = &lab->world};
    struct rf_method_env env = {.plan = &plan, .exchange = alone};
    struct rf_err err;
    assert_ok(rf_node_memory_open(&env, rf_flow_shared_bytes(lab->flow), 0,
                                  &lab->shm, &err),
              err);
    rf_flow_attach(lab->flow, lab->shm);
    rf_flow_start(lab->flow);
}

static void end(struct lab *lab)
{
    rf_flow_destroy(lab->flow);
    rf_node_memory_close(lab->shm);
}

static uint32_t copy_of(const struct lab *lab, uint32_t op)
{
    return lab->flow->of_op[op].copy;
}

static uint32_t needs(const struct lab *lab, uint32_t action)
{
    return lab->flow->actions[action].n_needs;
}

/* The op that was handed out, or N_OPS. */
static uint32_t taken(struct lab *lab)
{
    uint32_t action;
    return rf_flow_take(lab->flow, &action) ? lab->flow->actions[action].op
                                            : N_OPS;
}

TEST(test_ops_wait_for_what_wrote_their_source)
{
    struct lab lab;
    init(&lab, 1);
    add(&lab, 0, 0, RF_NO_OP);
    add(&lab, 0, 0, 0);
    add(&lab, 0, 0, 1);
    build(&lab, false);
    attach(&lab);
    for (int iteration = 0; iteration < 3; iteration++) {
        ck_assert_uint_eq(needs(&lab, copy_of(&lab, 0)), 0);
        ck_assert_uint_eq(taken(&lab), N_OPS);
        rf_flow_complete(lab.flow, copy_of(&lab, 0));
        ck_assert(rf_flow_has_work(lab.flow));
        ck_assert_uint_eq(taken(&lab), 1);
        ck_assert_uint_eq(taken(&lab), N_OPS);
        rf_flow_complete(lab.flow, copy_of(&lab, 1));
        ck_assert_uint_eq(taken(&lab), 2);
        rf_flow_complete(lab.flow, copy_of(&lab, 2));
        ck_assert_uint_eq(taken(&lab), N_OPS);
        rf_flow_start(lab.flow);
    }
    end(&lab);
}

/* Groups 0, 1 and 2; group 0 has two readers; 0 and 2 share a slot. */
TEST(test_staging_waits_for_all_readers_of_its_slot)
{
    struct lab lab;
    uint32_t writers[3], readers[4];
    init(&lab, 1);
    for (uint32_t b = 0; b < 3; b++) {
        writers[b] = add(&lab, 0, 0, RF_NO_OP);
        lab.ops[writers[b]].dst_mem = RF_MEM_STAGE;
        lab.ops[writers[b]].group = b;
        readers[b] = add(&lab, 0, 0, writers[b]);
        lab.ops[readers[b]].src_mem = RF_MEM_STAGE;
        lab.ops[readers[b]].group = b;
    }
    readers[3] = add(&lab, 0, 0, writers[0]);
    lab.ops[readers[3]].src_mem = RF_MEM_STAGE;
    lab.ops[readers[3]].group = 0;
    build(&lab, false);
    attach(&lab);
    ck_assert_uint_eq(needs(&lab, copy_of(&lab, writers[1])), 0);
    ck_assert_uint_eq(needs(&lab, copy_of(&lab, writers[2])), 1);
    rf_flow_complete(lab.flow, copy_of(&lab, writers[0]));
    ck_assert_uint_eq(taken(&lab), readers[0]);
    ck_assert_uint_eq(taken(&lab), readers[3]);
    rf_flow_complete(lab.flow, copy_of(&lab, readers[0]));
    ck_assert_uint_eq(taken(&lab), N_OPS);
    rf_flow_complete(lab.flow, copy_of(&lab, readers[3]));
    ck_assert_uint_eq(taken(&lab), writers[2]);
    end(&lab);
}

/* A copy waits for the group before in its slot, whatever it touches. */
LOOP_TEST(test_as_many_groups_as_slots_are_under_way, 4)
{
    static const uint32_t slots[] = {1, 2, 3, RF_IN_FLIGHT_MAX};
    struct lab lab;
    init(&lab, 1);
    lab.schedule.in_flight = slots[_i];
    for (uint32_t g = 0; g < N_OPS; g++) {
        lab.ops[add(&lab, 0, 0, RF_NO_OP)].group = g;
    }
    build(&lab, false);
    for (uint32_t g = 0; g < N_OPS; g++) {
        ck_assert_uint_eq(needs(&lab, copy_of(&lab, g)), g >= slots[_i]);
    }
    attach(&lab);
    rf_flow_complete(lab.flow, copy_of(&lab, 0));
    ck_assert_uint_eq(taken(&lab), RF_MIN(slots[_i], N_OPS));
    end(&lab);
}

TEST(test_turns_follow_tasks_at_both_ranks)
{
    struct lab lab;
    init(&lab, 3);
    add(&lab, 0, 1, RF_NO_OP);
    add(&lab, 2, 2, RF_NO_OP); /* local: takes no turn */
    add(&lab, 1, 2, RF_NO_OP); /* after op 0 at rank 1 */
    add(&lab, 0, 2, RF_NO_OP); /* after op 0 at rank 0, op 2 at rank 2 */
    build(&lab, true);
    ck_assert_uint_eq(needs(&lab, copy_of(&lab, 0)), 0);
    ck_assert_uint_eq(needs(&lab, copy_of(&lab, 1)), 0);
    ck_assert_uint_eq(needs(&lab, copy_of(&lab, 2)), 1);
    ck_assert_uint_eq(needs(&lab, copy_of(&lab, 3)), 2);
    rf_flow_destroy(lab.flow);
    build(&lab, false);
    ck_assert_uint_eq(needs(&lab, copy_of(&lab, 3)), 0);
    rf_flow_destroy(lab.flow);
}

TEST(test_ops_of_one_task_do_not_wait_for_each_other)
{
    struct lab lab;
    init(&lab, 2);
    add(&lab, 0, 1, RF_NO_OP);
    add(&lab, 0, 1, RF_NO_OP);
    add(&lab, 1, 0, RF_NO_OP);
    lab.ops[1].task = 0;
    build(&lab, true);
    ck_assert_uint_eq(needs(&lab, copy_of(&lab, 1)), 0);
    ck_assert_uint_eq(needs(&lab, copy_of(&lab, 2)), 2);
    rf_flow_destroy(lab.flow);
}

TEST(test_sends_wait_for_admission_to_staging)
{
    struct lab lab;
    init(&lab, 2);
    lab.ranks[1].node = 1;
    add(&lab, 0, 1, RF_NO_OP);
    add(&lab, 0, 1, RF_NO_OP);
    add(&lab, 1, 0, RF_NO_OP);
    for (uint32_t i = 0; i < 3; i++) {
        lab.routes[i] = RF_ROUTE_LINK;
    }
    lab.ops[1].dst_mem = RF_MEM_STAGE;
    lab.ops[1].group = 0;
    build(&lab, false);
    ck_assert_uint_eq(needs(&lab, lab.flow->of_op[0].send), 0);
    ck_assert_uint_eq(needs(&lab, lab.flow->of_op[1].send), 1);
    ck_assert_uint_eq(lab.flow->of_op[1].recv, RF_NONE);
    ck_assert_uint_eq(lab.flow->of_op[1].admit, RF_NONE);
    ck_assert_uint_ne(lab.flow->of_op[2].recv, RF_NONE);
    ck_assert_uint_eq(lab.flow->of_op[2].send, RF_NONE);
    rf_flow_destroy(lab.flow);
}

/* --- Conversions --- */

/* Ops of groups 0, 0 and 1 in a family that "quantize" converts, and one of
 * group 1 in another. */
static void build_conversion(struct lab *lab, bool at_sender, bool overlaps)
{
    struct rf_family families[2] = {{.n_layers = 1, .n_experts = 1, .ndim = 2},
                                    {.n_layers = 1,
                                     .n_experts = 1,
                                     .ndim = 2,
                                     .quantized = !at_sender,
                                     .is_result = at_sender}};
    struct rf_model model = {.families = families, .n_families = 2};
    const struct rf_spec spec = {.infer.quantize.overlaps = overlaps};
    const struct rf_plan weights = {.model = &model};
    struct rf_converted results = {.format = NULL}; /* nobody reads them */
    const struct rf_plan plan = {.converted = {[RF_INFER] = &results},
                                 .model = &model,
                                 .world = &lab->world,
                                 .spec = &spec,
                                 .weights = at_sender ? &weights : &plan};
    const struct rf_flow_how how = {.schedule = &lab->schedule,
                                    .world = &lab->world,
                                    .routes = lab->routes,
                                    .groups = true,
                                    .plan = &plan};
    struct rf_err err;
    init(lab, 1);
    for (uint32_t i = 0; i < 4; i++) {
        lab->ops[add(lab, 0, 0, RF_NO_OP)].group = i / 2;
        lab->ops[i].family = i != 3;
    }
    assert_ok(rf_flow_build(&how, &lab->flow, &err), err);
    attach(lab);
}

/* The conversion of a group. */
static uint32_t conversion_of(const struct lab *lab, uint32_t group)
{
    uint32_t i = 0;
    while (i < lab->flow->n_actions &&
           (lab->flow->actions[i].kind != RF_ACTION_CONVERT ||
            lab->flow->actions[i].op != group)) {
        i++;
    }
    ck_assert_uint_lt(i, lab->flow->n_actions);
    return i;
}

TEST(test_what_a_sender_converts_waits_for_that)
{
    struct lab lab;
    build_conversion(&lab, true, false);
    ck_assert_uint_eq(needs(&lab, conversion_of(&lab, RF_NO_GROUP)), 0);
    ck_assert_uint_eq(needs(&lab, copy_of(&lab, 3)), 0);
    rf_flow_complete(lab.flow, conversion_of(&lab, RF_NO_GROUP));
    for (uint32_t op = 0; op < 3; op++) {
        ck_assert_uint_eq(taken(&lab), op);
    }
    end(&lab);
}

TEST(test_what_a_sender_converts_waits_for_its_group_alone)
{
    struct lab lab;
    build_conversion(&lab, true, true);
    rf_flow_complete(lab.flow, conversion_of(&lab, 0));
    ck_assert_uint_eq(taken(&lab), 0);
    ck_assert_uint_eq(taken(&lab), 1);
    ck_assert_uint_eq(taken(&lab), N_OPS);
    rf_flow_complete(lab.flow, conversion_of(&lab, 1));
    ck_assert_uint_eq(taken(&lab), 2);
    end(&lab);
}

TEST(test_a_group_is_converted_when_all_of_it_has_arrived)
{
    struct lab lab;
    uint32_t action;
    build_conversion(&lab, false, true);
    rf_flow_complete(lab.flow, copy_of(&lab, 2));
    ck_assert(rf_flow_take(lab.flow, &action));
    ck_assert_uint_eq(action, conversion_of(&lab, 1));
    rf_flow_complete(lab.flow, copy_of(&lab, 1));
    ck_assert(!rf_flow_take(lab.flow, &action));
    rf_flow_complete(lab.flow, copy_of(&lab, 0));
    ck_assert(rf_flow_take(lab.flow, &action));
    ck_assert_uint_eq(action, conversion_of(&lab, 0));
    end(&lab);
}

TEST(test_a_dependency_that_does_not_write_here_is_a_bug)
{
    struct lab lab;
    const struct rf_flow_how how = {
        .schedule = &lab.schedule, .world = &lab.world, .routes = lab.routes};
    struct rf_err err;
    init(&lab, 1);
    add(&lab, 0, 0, 77);
    assert_fails(rf_flow_build(&how, &lab.flow, &err), RF_ERR_INTERNAL, err,
                 "op 77");
}
