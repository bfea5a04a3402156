/* What ranks of one node share. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/lib/ranks.h"
#include "tests/unit/unit.h"
#include "transport/method/node_memory.h"

#define ARENA_BYTES (1 << 20)

struct node {
    struct rf_rank ranks[3];
    struct rf_world world;
    struct rf_plan plan;
    struct rf_method_env env;
    struct rf_node_memory *shm;
};

/* Ranks 0 and 2 are on node 0, rank 1 on node 1. */
static bool join(struct test_rank *rank, struct node *node)
{
    struct rf_arena arena = {.bytes = ARENA_BYTES};
    struct rf_err err;
    arena.fd = memfd_create("test-arena", MFD_CLOEXEC);
    if (arena.fd < 0 || ftruncate(arena.fd, ARENA_BYTES) != 0) {
        return false;
    }
    arena.base = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                      arena.fd, 0);
    memset(arena.base, 'a' + (int)rank->rank, ARENA_BYTES);
    memset(node, 0, sizeof(*node));
    node->ranks[1].node = 1;
    node->world.n_ranks = 3;
    node->world.ranks = node->ranks;
    node->plan.world = &node->world;
    node->env.plan = &node->plan;
    node->env.rank = rank->rank;
    node->env.arena[RF_MEM_TRAIN] = arena;
    node->env.arena[RF_MEM_INFER].fd = node->env.arena[RF_MEM_STAGE].fd = -1;
    node->env.exchange = test_rank_exchange;
    node->env.exchange_data = rank;
    return rf_node_memory_open(&node->env, 4096, (uint16_t)(1000 + rank->rank),
                               &node->shm, &err) == RF_OK;
}

static int leave(struct test_rank *rank, struct node *node, bool ok)
{
    ok = test_rank_barrier(rank) && ok;
    rf_node_memory_close(node->shm);
    munmap(node->env.arena[RF_MEM_TRAIN].base, ARENA_BYTES);
    close(node->env.arena[RF_MEM_TRAIN].fd);
    return ok ? 0 : 1;
}

static int share(struct test_rank *rank)
{
    struct node node;
    bool ok = join(rank, &node);
    uint32_t other = rank->rank == 0 ? 2 : 0, slot;
    for (uint32_t r = 0; ok && r < 3; r++) {
        ok = node.shm->ports[r] == 1000 + r;
    }
    slot = ok ? rf_node_memory_slot(node.shm, other) : RF_NONE;
    if (ok && rank->rank == 1) {
        ok = slot == RF_NONE && node.shm->n_peers == 1;
    } else if (ok) {
        ok = slot == other / 2 &&
             rf_node_memory_map(node.shm, slot, RF_MEM_TRAIN, true, NULL) ==
                 RF_OK &&
             rf_node_memory_map(node.shm, slot, RF_MEM_INFER, true, NULL) ==
                 RF_OK;
    }
    if (ok && rank->rank != 1) {
        char *theirs = node.shm->peers[slot].arena[RF_MEM_TRAIN];
        char *control = node.shm->control;
        ok = theirs[ARENA_BYTES - 1] == 'a' + (int)other &&
             node.shm->peers[slot].arena[RF_MEM_INFER] == NULL;
        theirs[7] = 'x';
        control[rank->rank] = 'c';
        ok = test_rank_barrier(rank) && ok;
        ok = ok && ((char *)node.env.arena[RF_MEM_TRAIN].base)[7] == 'x' &&
             control[other] == 'c';
    } else {
        ok = test_rank_barrier(rank) && ok;
    }
    return leave(rank, &node, ok);
}

LIMIT(20)

TEST(test_ranks_of_a_node_see_each_others_memory)
{
    ck_assert_uint_eq(test_ranks_run(3, share, NULL, 10, NULL), 0);
}

/* Rank 0 sleeps until rank 2 wakes it, then until rank 2 gives up. */
static int sleep_and_wake(struct test_rank *rank)
{
    struct node node;
    bool ok = join(rank, &node);
    struct pollfd bell = {.events = POLLIN};
    if (ok && rank->rank == 0) {
        bell.fd = node.shm->bell;
        for (int i = 0; i < 2 && ok; i++) {
            rf_node_memory_doze(node.shm);
            ok = test_rank_barrier(rank) && poll(&bell, 1, 5000) == 1;
            rf_node_memory_awake(node.shm);
            ok = ok && poll(&bell, 1, 0) == 0;
        }
        ok = ok && rf_node_memory_aborted(node.shm);
    } else {
        ok = test_rank_barrier(rank) && ok;
        if (ok && rank->rank == 2) {
            rf_node_memory_wake(node.shm, 0);
        }
        ok = test_rank_barrier(rank) && ok;
        if (ok && rank->rank == 2) {
            rf_node_memory_abort(node.shm);
        }
    }
    return leave(rank, &node, ok);
}

TEST(test_a_sleeping_rank_is_woken)
{
    ck_assert_uint_eq(test_ranks_run(3, sleep_and_wake, NULL, 10, NULL), 0);
}

/* Rank 2 has failed, and let go of its memory. */
static int give_up(struct test_rank *rank)
{
    struct node node;
    struct rf_err err = {0};
    bool ok = join(rank, &node);
    if (ok && rank->rank == 2) {
        ok = close(node.env.arena[RF_MEM_TRAIN].fd) == 0;
    }
    ok = test_rank_barrier(rank) && ok;
    if (ok && rank->rank == 0) {
        ok = rf_node_memory_map(node.shm, 1, RF_MEM_TRAIN, true, &err) ==
                 RF_ERR_ABORTED &&
             strcmp(err.text, "rank 2 has ended or aborted") == 0;
    }
    return leave(rank, &node, ok);
}

TEST(test_a_rank_without_its_memory_has_given_up)
{
    ck_assert_uint_eq(test_ranks_run(3, give_up, NULL, 10, NULL), 0);
}

/* Rank 2 leaves; its end must show at rank 0. */
static int end_early(struct test_rank *rank)
{
    struct node node;
    bool ok = join(rank, &node);
    struct pollfd death = {.events = POLLIN};
    ok = test_rank_barrier(rank) && ok; /* all have found all */
    if (rank->rank == 2 || !ok) {
        return ok ? 0 : 1;
    }
    if (rank->rank == 0) {
        death.fd = node.shm->peers[1].pidfd;
        ok = poll(&death, 1, 5000) == 1;
        rf_node_memory_doze(node.shm);
        rf_node_memory_wake(node.shm, 1); /* nobody there: nothing happens */
    }
    rf_node_memory_close(node.shm);
    return ok ? 0 : 1;
}

TEST(test_the_end_of_a_rank_can_be_watched)
{
    ck_assert_uint_eq(test_ranks_run(3, end_early, NULL, 10, NULL), 0);
}

static enum rf_status nonsense(void *data, const void *mine, size_t size,
                               struct rf_blob *all, struct rf_err *err)
{
    (void)data;
    (void)mine;
    (void)err;
    all[0].data = calloc(1, size);
    all[0].size = size;
    return RF_OK;
}

TEST(test_peer_info_that_makes_no_sense_is_refused)
{
    struct rf_rank rank = {0};
    struct rf_world world = {.n_ranks = 1, .ranks = &rank};
    struct rf_plan plan = {.world = &world};
    struct rf_method_env env = {.plan = &plan, .exchange = nonsense};
    struct rf_node_memory *shm = NULL;
    struct rf_err err;
    assert_fails(rf_node_memory_open(&env, 64, 0, &shm, &err), RF_ERR_PROTOCOL,
                 err, "rank 0");
    ck_assert_ptr_null(shm);
}
