/* Method ucx on random schedules, and when something goes wrong. Ranks of one
 * node meet by shared memory, those of two by TCP on the loopback. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "common/mem.h"
#include "tests/unit/transport/method_case.h"
#include "tests/unit/ucx/fast_clock.h"
#include "tests/unit/unit.h"
#include "transport/method/module.h"
#include "ucx/carrier.h"

extern const struct rf_ucx_module rf_ucx_module;

static const struct random_ops_options worlds[] = {
    {.n_ranks = 1, .n_nodes = 1, .n_steps = 30},
    {.n_ranks = 4, .n_nodes = 1, .n_steps = 30, .casts = true},
    {.n_ranks = 4,
     .n_nodes = 1,
     .n_steps = 30,
     .relays = true,
     .staging = true},
    {.n_ranks = 2, .n_nodes = 2, .n_steps = 20},
    {.n_ranks = 5,
     .n_nodes = 2,
     .n_steps = 30,
     .relays = true,
     .staging = true,
     .casts = true,
     .serialize = true},
};

static const struct way {
    const char *rma;
    bool gets;
    const char *registered;
} ways[] = {{"always", false, "puts by"},
            {"always", true, "gets by"},
            {"never", false, "messages by"}};

static void set_up(void)
{
    setenv("UCX_NET_DEVICES", "lo", 1);
    unsetenv("REFIT_UCX_RMA");
}

LIMIT(60)
FIXTURE(set_up, NULL)

LOOP_TEST(test_ucx_moves_every_byte, RF_ARRAY_SIZE(worlds))
{
    for (size_t way = 0; way < RF_ARRAY_SIZE(ways); way++) {
        struct method_case what = {.method = rf_ucx_module.method,
                                   .options = worlds[_i],
                                   .iterations = 3,
                                   .plain_arenas = true,
                                   .ucx_gets = ways[way].gets};
        what.options.large_bytes = 3 << 20;
        what.registered = worlds[_i].n_ranks > 1 ? ways[way].registered : NULL;
        setenv("REFIT_UCX_RMA", ways[way].rma, 1);
        ck_assert_uint_eq(method_case_run(&what, NULL), 0);
    }
}

/* In each of the worlds. */
static const char *const mapped[RF_ARRAY_SIZE(worlds)] = {
    NULL, "; 12 mapped by posix/memory", "; 12 mapped by posix/memory", NULL,
    "; 8 mapped by posix/memory"};

/* Copies of a node are made through pointers, nothing is sent there. */
LOOP_TEST(test_a_node_maps_arenas_that_ucx_has_allocated, RF_ARRAY_SIZE(worlds))
{
    struct method_case what = {
        .method = rf_ucx_module.method, .options = worlds[_i], .iterations = 3};
    what.options.large_bytes = 3 << 20;
    what.registered = mapped[_i];
    ck_assert_uint_eq(method_case_run(&what, NULL), 0);
}

/* Shared memory that UCX has not made is nothing it can map. */
TEST(test_other_arenas_are_reached_by_messages)
{
    struct method_case what = {.method = rf_ucx_module.method,
                               .options = worlds[1],
                               .iterations = 1,
                               .plain_arenas = true,
                               .registered = "messages by posix/memory,cma"};
    what.options.large_bytes = 3 << 20;
    ck_assert_uint_eq(method_case_run(&what, NULL), 0);
}

static const struct random_ops_options two_nodes = {
    .n_ranks = 4,
    .n_nodes = 2,
    .n_steps = 40,
    .relays = true,
    .large_bytes = 8 << 20,
};

static void die(struct test_rank *rank, uint64_t iteration)
{
    if (rank->rank == 1 && iteration == 1) {
        raise(SIGKILL);
    }
}

static void give_up(struct test_rank *rank, uint64_t iteration)
{
    if (rank->rank == 2 && iteration == 1) {
        atomic_store(rank->abort, true);
    }
}

/* How the four ranks ended. */
static void run(void (*before)(struct test_rank *, uint64_t), int way,
                int *statuses)
{
    struct method_case what = {.method = rf_ucx_module.method,
                               .options = two_nodes,
                               .iterations = 3,
                               .before = before,
                               .ucx_gets = ways[way].gets};
    setenv("REFIT_UCX_RMA", ways[way].rma, 1);
    ck_assert_uint_gt(method_case_run(&what, statuses), 0);
}

static bool ended_by_itself(int status)
{
    return WIFEXITED(status) &&
           (WEXITSTATUS(status) == METHOD_CASE_STATUS(RF_ERR_PEER) ||
            WEXITSTATUS(status) == METHOD_CASE_STATUS(RF_ERR_ABORTED));
}

LOOP_TEST(test_a_killed_rank_is_noticed_by_all, RF_ARRAY_SIZE(ways))
{
    int statuses[4];
    run(die, _i, statuses);
    ck_assert(WIFSIGNALED(statuses[1]));
    /* Its neighbour on the node sees it end. */
    ck_assert(WIFEXITED(statuses[0]));
    ck_assert_int_eq(WEXITSTATUS(statuses[0]), METHOD_CASE_STATUS(RF_ERR_PEER));
    ck_assert(ended_by_itself(statuses[2]));
    ck_assert(ended_by_itself(statuses[3]));
}

LOOP_TEST(test_an_abort_ends_an_iteration, RF_ARRAY_SIZE(ways))
{
    int statuses[4];
    run(give_up, _i, statuses);
    for (int i = 0; i < 4; i++) {
        ck_assert(ended_by_itself(statuses[i]));
    }
}

/* Of this process, when its method is open. */
static struct rf_engine *engine;

static enum rf_status open_and_keep(const struct rf_method_env *env,
                                    void **state, struct rf_err *err)
{
    const enum rf_status status = rf_ucx_module.method->open(env, state, err);
    engine = status == RF_OK ? *state : NULL;
    return status;
}

/* Messages that nobody may send: notes that were sent before or are not yet
 * due, of a refit whose ops take no turns. A peer that has begun the iteration
 * may take its BYE, so one of the next is sent. */
static const struct {
    enum rf_ucx_kind kind;
    bool of_op;
    uint32_t ahead; /* iterations */
} wrong[] = {{RF_UCX_HELLO, false, 1},   {RF_UCX_READY, false, 1},
             {RF_UCX_BYE, false, 0},     {RF_UCX_BYE, false, 2},
             {RF_UCX_ADMITTED, true, 1}, {RF_UCX_TAKEN, true, 1},
             {RF_UCX_HELLO, true, 1}};
static int wrong_one;

/* An op that `peer` sends to this rank. */
static uint32_t op_from(const struct rf_ucx_peer *peer)
{
    const struct rf_schedule *schedule = engine->env->schedule;
    uint32_t op = 0;
    while (op < schedule->n_ops &&
           (schedule->ops[op].src != peer->rank ||
            schedule->ops[op].dst != peer->carrier->env->rank)) {
        op++;
    }
    return op < schedule->n_ops ? op : RF_NONE;
}

/* To each peer, as of the iteration that is about to begin. */
static void say_what_is_wrong(struct test_rank *rank, uint64_t iteration)
{
    struct rf_ucx_carrier *carrier = engine->carrier;
    if (rank->rank != 1 || iteration != 1) {
        return;
    }
    engine->flow->generation += wrong[wrong_one].ahead;
    for (uint32_t i = 0; i < carrier->n_peers; i++) {
        struct rf_ucx_peer *peer = &carrier->peers[i];
        const uint32_t op = wrong[wrong_one].of_op ? op_from(peer) : RF_NONE;
        if (op != RF_NONE || !wrong[wrong_one].of_op) {
            rf_ucx_note(peer, wrong[wrong_one].kind, op);
        }
    }
    engine->flow->generation -= wrong[wrong_one].ahead;
}

LOOP_TEST(test_a_message_that_is_not_due_is_an_error, RF_ARRAY_SIZE(wrong))
{
    struct rf_method_ops method = *rf_ucx_module.method;
    struct method_case what = {.method = &method,
                               .options = two_nodes,
                               .iterations = 3,
                               .plain_arenas = true,
                               .before = say_what_is_wrong};
    int statuses[4], n = 0;
    method.open = open_and_keep;
    wrong_one = _i;
    ck_assert_uint_gt(method_case_run(&what, statuses), 0);
    for (int i = 0; i < 4; i++) {
        n += WIFEXITED(statuses[i]) &&
             WEXITSTATUS(statuses[i]) == METHOD_CASE_STATUS(RF_ERR_PROTOCOL);
    }
    ck_assert_int_gt(n, 0);
}

/* Ranks 2 and 3 are 20 s and 40 s late to connect. */
static enum rf_status connect_late(void *carrier, struct rf_err *err)
{
    const struct rf_ucx_carrier *of = carrier;
    enum rf_status status;
    fast_clock_late(of->env->rank);
    status = rf_carrier_ucx.open(carrier, err);
    fast_clock(1);
    return status;
}

/* With the ops alone that rank 1 has a part in. Nobody leaves before all have
 * connected. */
static enum rf_status open_late(const struct rf_method_env *env, void **state,
                                struct rf_err *err)
{
    static struct rf_method_env mine;
    static struct rf_schedule of_one;
    static struct rf_carrier_ops carrier;
    struct rf_copy_engine_policy policy = {.inside = RF_ROUTE_OWN,
                                           .near = RF_ROUTE_LINK,
                                           .far = RF_ROUTE_LINK,
                                           .carrier = &carrier};
    struct rf_ucx_carrier *made;
    size_t cap = 0;
    for (size_t i = 0; i < env->schedule->n_ops; i++) {
        const struct rf_op *op = &env->schedule->ops[i];
        if (op->src == 1 || op->dst == 1) {
            RF_PUSH(of_one.ops, of_one.n_ops, cap, *op);
        }
    }
    of_one.n_world_ops = env->schedule->n_world_ops;
    mine = *env;
    mine.schedule = &of_one;
    mine.registration = NULL; /* would be exchanged by a fast clock */
    mine.deadline_ns += 100 * RF_NS_PER_S;
    carrier = rf_carrier_ucx;
    carrier.open = connect_late;
    RF_TRY(rf_ucx_join(&mine, &made, err));
    policy.made = made;
    RF_TRY(rf_engine_open(&mine, &policy, state, err));
    return test_rank_barrier(env->exchange_data)
               ? RF_OK
               : rf_err_set(err, RF_ERR_ABORTED, "aborted");
}

/* Rank 0 waits longer than a rank may take to answer, for rank 1, which waits
 * for the others. */
TEST(test_a_rank_is_not_blamed_for_its_own_wait)
{
    struct rf_method_ops method = *rf_ucx_module.method;
    const struct method_case what = {.method = &method,
                                     .options = {.n_ranks = 4,
                                                 .n_nodes = 4,
                                                 .n_steps = 40,
                                                 .large_bytes = 4096},
                                     .plain_arenas = true};
    method.open = open_late;
    ck_assert_uint_eq(method_case_run(&what, NULL), 0);
}

TEST(test_a_device_that_is_not_there_is_an_error)
{
    struct method_case what = {.method = rf_ucx_module.method,
                               .options = two_nodes,
                               .iterations = 1,
                               .plain_arenas = true};
    int statuses[4];
    setenv("UCX_TLS", "rc", 1);
    ck_assert_uint_gt(method_case_run(&what, statuses), 0);
    for (int i = 0; i < 4; i++) {
        ck_assert(WIFEXITED(statuses[i]));
        ck_assert_int_ne(WEXITSTATUS(statuses[i]), 0);
    }
    unsetenv("UCX_TLS");
}
