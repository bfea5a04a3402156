/* Tagged messages between ranks, in host memory: those of one node over shared
 * memory, those of two over TCP on the loopback. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "tests/lib/ranks.h"
#include "tests/unit/ucx/fast_clock.h"
#include "tests/unit/unit.h"
#include "ucx/wire.h"

#define RANKS 4u
#define ITERATIONS 3u
#define FAILED(status) (100 - (status))

/* Of the messages from each rank to each other, in this order: at once, by
 * several segments, by rendezvous. */
static const uint64_t sizes[] = {1, 3 << 20, 100, 65536, 7, 300000};
#define MESSAGES RF_ARRAY_SIZE(sizes)
#define PAIR_BYTES ((uint64_t)4 << 20)

struct what {
    uint32_t nodes;
    /* Called on each rank before an iteration. */
    void (*before)(struct test_rank *rank, uint64_t iteration);
    uint64_t longer; /* by so many bytes rank 0 sends to rank 1 */
    uint32_t apart;  /* a rank that has no ops with others; RF_NONE: none */
    bool late;       /* all talk to rank 1 alone, some not at once */
};

/* One rank's. */
struct process {
    struct test_rank *rank;
    const struct what *what;
    struct rf_rank ranks[RANKS];
    struct rf_world world;
    struct rf_plan plan;
    struct rf_op ops[RANKS * RANKS];
    struct rf_schedule schedule;
    struct rf_method_env env;
    struct rf_registration registration;
    struct rf_arena memory[3]; /* what is sent, what is received, nothing */
    struct rf_ucx_wire *wire;
    uint32_t left;
};

static bool talk(const struct process *process, uint32_t a, uint32_t b)
{
    return a != b && a != process->what->apart && b != process->what->apart &&
           (!process->what->late || a == 1 || b == 1);
}

/* Ranks 2 and 3 are 20 s and 40 s late to connect once all have the peer infos
 * that are exchanged first. */
static enum rf_status exchange_and_be_late(void *data, const void *mine,
                                           size_t size, struct rf_blob *all,
                                           struct rf_err *err)
{
    static bool connecting;
    const struct test_rank *rank = data;
    fast_clock(1);
    RF_TRY(test_rank_exchange(data, mine, size, all, err));
    if (!connecting) {
        connecting = true;
        fast_clock_late(rank->rank);
    }
    return RF_OK;
}

static void set_up(struct process *process)
{
    struct rf_method_env *env = &process->env;
    size_t n = 0;
    for (uint32_t r = 0; r < RANKS; r++) {
        process->ranks[r].node = r * process->what->nodes / RANKS;
        for (uint32_t to = 0; to < RANKS; to++) {
            if (talk(process, r, to)) {
                process->ops[n++] = (struct rf_op){.src = r, .dst = to};
            }
        }
    }
    process->world = (struct rf_world){.ranks = process->ranks,
                                       .n_ranks = RANKS,
                                       .n_nodes = process->what->nodes};
    process->plan.world = &process->world;
    process->schedule =
        (struct rf_schedule){.ops = process->ops, .n_ops = n, .n_ranks = RANKS};
    *env = (struct rf_method_env){.plan = &process->plan,
                                  .schedule = &process->schedule,
                                  .rank = process->rank->rank,
                                  .deadline_ns = rf_now_ns() + 20 * RF_NS_PER_S,
                                  .abort = process->rank->abort,
                                  .exchange = test_rank_exchange,
                                  .exchange_data = process->rank,
                                  .registration = &process->registration};
    if (process->what->late) {
        env->deadline_ns += 100 * RF_NS_PER_S;
        env->exchange = exchange_and_be_late;
    }
    for (int i = 0; i < 2; i++) {
        process->memory[i] = test_arena(RANKS * PAIR_BYTES);
    }
}

static uint8_t byte_of(uint32_t from, uint32_t to, uint64_t iteration,
                       uint64_t at)
{
    return (
        uint8_t)((at * 7 + (at >> 9) + from * 31 + to * 13 + iteration * 101) %
                 251);
}

static uint8_t *part(const struct process *process, int memory, uint32_t other)
{
    return (uint8_t *)process->memory[memory].base + other * PAIR_BYTES;
}

/* All of one pair's messages one after the other. */
static void post(struct process *process, uint32_t other, bool sends)
{
    uint64_t at = 0;
    for (size_t m = 0; m < MESSAGES; m++) {
        if (sends) {
            const bool longer = process->rank->rank == 0 && other == 1;
            rf_ucx_wire_ops.send(
                process->wire, other, part(process, 0, other) + at,
                sizes[m] + (longer ? process->what->longer : 0),
                &process->left);
        } else {
            rf_ucx_wire_ops.receive(process->wire, other,
                                    part(process, 1, other) + at, sizes[m],
                                    &process->left);
        }
        at += sizes[m];
    }
}

/* Ranks ask in orders of their own. In the last iteration all has been sent,
 * and the short messages are there, before any asks for what it receives. */
static enum rf_status post_all(struct process *process, uint64_t iteration,
                               struct rf_err *err)
{
    const uint32_t self = process->rank->rank;
    bool worked = false;
    const bool late = iteration == ITERATIONS - 1;
    enum rf_status status = RF_OK;
    for (uint32_t turn = 0; turn < 2; turn++) {
        for (uint32_t i = 0; i < RANKS; i++) {
            const uint32_t other = self % 2 == 0 ? i : RANKS - 1 - i;
            if (talk(process, self, other)) {
                post(process, other, (turn + (late ? 0 : self / 2)) % 2 == 0);
            }
        }
        if (turn == 0 && late) {
            if (!test_rank_barrier(process->rank)) {
                return RF_ERR_ABORTED;
            }
            for (int i = 0; i < 1000 && status == RF_OK; i++) {
                status = rf_ucx_wire_ops.progress(process->wire, &worked, err);
            }
        }
    }
    return status;
}

static enum rf_status iterate(struct process *process, uint64_t iteration,
                              struct rf_err *err)
{
    enum rf_status status;
    bool done = false, worked = false;
    int64_t worked_ns = rf_now_ns();
    rf_ucx_wire_ops.start(process->wire);
    status = post_all(process, iteration, err);
    while (status == RF_OK && !done) {
        worked = false;
        status = rf_ucx_wire_ops.progress(process->wire, &worked, err);
        if (status == RF_OK && atomic_load(process->env.abort)) {
            status = rf_err_set(err, RF_ERR_ABORTED, "aborted");
        }
        if (status == RF_OK && process->left == 0) {
            rf_ucx_wire_ops.end(process->wire, &done);
        }
        if (worked) {
            worked_ns = rf_now_ns();
        } else {
            rf_pause_between_polls(worked_ns);
        }
    }
    return status;
}

static bool right(const struct process *process, uint64_t iteration)
{
    const uint32_t self = process->rank->rank;
    uint64_t bytes = 0;
    for (size_t m = 0; m < MESSAGES; m++) {
        bytes += sizes[m];
    }
    for (uint32_t other = 0; other < RANKS; other++) {
        const uint8_t *found = part(process, 1, other);
        for (uint64_t i = 0; talk(process, self, other) && i < bytes; i++) {
            if (found[i] != byte_of(other, self, iteration, i)) {
                fprintf(stderr, "rank %u: byte %llu from rank %u\n", self,
                        (unsigned long long)i, other);
                return false;
            }
        }
    }
    return true;
}

static int run_iterations(struct process *process, struct rf_err *err)
{
    const uint32_t self = process->rank->rank;
    for (uint64_t iteration = 0; iteration < ITERATIONS; iteration++) {
        enum rf_status status;
        for (uint32_t other = 0; other < RANKS; other++) {
            for (uint64_t i = 0; i < PAIR_BYTES; i++) {
                part(process, 0, other)[i] = byte_of(self, other, iteration, i);
            }
        }
        if (!test_rank_barrier(process->rank)) {
            return FAILED(RF_ERR_ABORTED);
        }
        if (process->what->before != NULL) {
            process->what->before(process->rank, iteration);
        }
        status = iterate(process, iteration, err);
        if (status != RF_OK) {
            return FAILED(status);
        }
        if (!right(process, iteration)) {
            return 1;
        }
    }
    return test_rank_barrier(process->rank) ? 0 : FAILED(RF_ERR_ABORTED);
}

static int one_rank(struct test_rank *rank)
{
    AUTO_FREE struct process *process = rf_xcalloc(1, sizeof(*process));
    const struct rf_ucx_wire_memory memory = {
        .kind = RF_HOST_MEMORY, .at = process->memory, .n = 3};
    struct rf_err err = {.text = ""};
    enum rf_status status;
    int outcome;
    process->rank = rank;
    process->what = rank->data;
    set_up(process);
    status = rf_ucx_wire_ops.open(&process->env, &memory, &process->wire, &err);
    if (status != RF_OK) {
        outcome = FAILED(status);
    } else if (strstr(process->registration.text, " messages by ") == NULL) {
        fprintf(stderr, "registered: %s\n", process->registration.text);
        outcome = 1;
    } else {
        outcome = run_iterations(process, &err);
        if (outcome != 0) {
            rf_ucx_wire_ops.abort(process->wire);
        }
        rf_ucx_wire_ops.close(process->wire);
    }
    if (outcome != 0) {
        fprintf(stderr, "rank %u: %s\n", rank->rank, err.text);
    }
    for (int i = 0; i < 2; i++) {
        test_arena_free(NULL, &process->memory[i]);
    }
    return outcome;
}

static uint32_t run(const struct what *what, int statuses[RANKS])
{
    return test_ranks_run(RANKS, one_rank, (void *)what, 30, statuses);
}

static void set_up_test(void)
{
    setenv("UCX_NET_DEVICES", "lo", 1);
}

static const struct what worlds[] = {
    {.nodes = 1, .apart = RF_NONE},
    {.nodes = 2, .apart = RF_NONE},
    {.nodes = 4, .apart = RF_NONE},
    {.nodes = 2, .apart = 2},
};

LIMIT(60)
FIXTURE(set_up_test, NULL)

LOOP_TEST(test_messages_match_in_the_order_of_their_pair, RF_ARRAY_SIZE(worlds))
{
    ck_assert_uint_eq(run(&worlds[_i], NULL), 0);
}

/* Rank 0 waits longer than a rank may take to answer, for rank 1, which waits
 * for the others. */
TEST(test_a_rank_is_not_blamed_for_its_own_wait)
{
    const struct what what = {.nodes = 4, .apart = RF_NONE, .late = true};
    ck_assert_uint_eq(run(&what, NULL), 0);
}

static void die(struct test_rank *rank, uint64_t iteration)
{
    if (rank->rank == 1 && iteration == 1) {
        raise(SIGKILL);
    }
}

/* How rank `rank` ended. */
static bool ended_with(const int statuses[RANKS], uint32_t rank,
                       enum rf_status status)
{
    return WIFEXITED(statuses[rank]) &&
           WEXITSTATUS(statuses[rank]) == FAILED(status);
}

TEST(test_a_killed_rank_of_another_node_is_noticed)
{
    const struct what what = {.nodes = 4, .apart = RF_NONE, .before = die};
    int statuses[RANKS];
    ck_assert_uint_eq(run(&what, statuses), RANKS);
    ck_assert(WIFSIGNALED(statuses[1]));
    for (uint32_t r = 0; r < RANKS; r++) {
        ck_assert_msg(r == 1 || ended_with(statuses, r, RF_ERR_PEER) ||
                          ended_with(statuses, r, RF_ERR_ABORTED),
                      "rank %u: status %#x", r, (unsigned)statuses[r]);
    }
    ck_assert(ended_with(statuses, 0, RF_ERR_PEER) ||
              ended_with(statuses, 2, RF_ERR_PEER) ||
              ended_with(statuses, 3, RF_ERR_PEER));
}

/* Within a node nobody tells the others but the abort flag. */
TEST(test_a_killed_rank_of_the_node_leaves_the_abort_flag)
{
    const struct what what = {.nodes = 1, .apart = RF_NONE, .before = die};
    int statuses[RANKS];
    ck_assert_uint_eq(run(&what, statuses), RANKS);
    ck_assert(WIFSIGNALED(statuses[1]));
    for (uint32_t r = 0; r < RANKS; r++) {
        ck_assert(r == 1 || ended_with(statuses, r, RF_ERR_ABORTED));
    }
}

LOOP_TEST(test_a_message_of_another_size_is_refused, 2)
{
    const struct what what = {.nodes = 1, .apart = RF_NONE, .longer = 1};
    const struct what shorter = {
        .nodes = 1, .apart = RF_NONE, .longer = (uint64_t)-1};
    int statuses[RANKS];
    ck_assert_uint_gt(run(_i == 0 ? &what : &shorter, statuses), 0);
    ck_assert(ended_with(statuses, 1, RF_ERR_PROTOCOL));
}

/* A UCX that is built with CUDA reaches its memory through transports of their
 * own, which are not asked for here. */
TEST(test_memory_that_ucx_does_not_reach_is_said)
{
    struct rf_err err;
    setenv("UCX_TLS", "tcp", 1);
    assert_ok(rf_ucx_wire_ops.probe(RF_HOST_MEMORY, &err), err);
    ck_assert_int_eq(rf_ucx_wire_ops.probe(RF_DEVICE_MEMORY, &err),
                     RF_ERR_UNSUPPORTED);
    ck_assert_int_eq(err.status, RF_ERR_UNSUPPORTED);
    assert_says(err.text, "does not support CUDA memory");
    setenv("UCX_TLS", "nosuch", 1);
    assert_fails(rf_ucx_wire_ops.probe(RF_HOST_MEMORY, &err),
                 RF_ERR_UNSUPPORTED, err, "UCX_TLS");
}
