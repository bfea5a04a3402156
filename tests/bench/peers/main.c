/*
 * Times the same refit in several ways, one after the other in every round, in
 * the same processes and on the same arenas. Run by mpirun; rank 0 prints a
 * line a sample: ROW, round, peer, milliseconds of the slowest rank, separated
 * by tabs.
 *
 *     mpirun -np N bench-peers ROW FOLDER ROUNDS MODEL.json SCENARIO-JSON
 *         SLOTS[,SLOTS...] PEER...
 *
 * FOLDER is empty and shared by all ranks, which are on this machine. What a
 * peer leaves in the inference arenas must equal what the first method left.
 */
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/mem.h"
#include "planner/strategy/schedule_build.h"
#include "tests/bench/peers/peer.h"
#include "tests/lib/planned.h"
#include "tests/lib/ranks.h"

#define MAX_PEERS 8
#define FIXED_ARGS 7

static const struct peer *const known[] = {
    &peer_copy,       &peer_host,      &peer_tcp,        &peer_mpi_messages,
    &peer_mpi_packed, &peer_mpi_types, &peer_mpi_gather, &peer_gloo_messages};

struct bench {
    const char *row;
    struct planned planned;
    struct rf_schedule *schedule;
    struct peer_env env;
    /* Ranks sleep here between peers: a barrier of MPI's spins, and would take
     * the processor from who is still at work. */
    pthread_barrier_t *gate;
    const struct peer *peers[MAX_PEERS];
    void *states[MAX_PEERS];
    uint32_t n_peers, n_rounds;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench-peers: %s: %s\n", what, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void make_gate(struct bench *bench)
{
    char path[4096];
    pthread_barrierattr_t shared;
    int fd;
    snprintf(path, sizeof(path), "%s/gate", bench->env.folder);
    fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(*bench->gate)) != 0) {
        die(path, "cannot be made");
    }
    bench->gate = mmap(NULL, sizeof(*bench->gate), PROT_READ | PROT_WRITE,
                       MAP_SHARED, fd, 0);
    close(fd);
    if (bench->env.rank == 0) {
        pthread_barrierattr_init(&shared);
        pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
        pthread_barrier_init(bench->gate, &shared, bench->env.n_ranks);
        pthread_barrierattr_destroy(&shared);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void pass_gate(struct bench *bench)
{
    /* Lets messages of MPI that are still under way arrive. */
    MPI_Barrier(MPI_COMM_WORLD);
    pthread_barrier_wait(bench->gate);
}

static struct rf_arena make_arena(uint64_t bytes, uint32_t seed)
{
    struct rf_arena arena = test_arena(bytes);
    uint64_t x = seed + 1;
    for (uint64_t i = 0; i + 8 <= bytes; i += 8) {
        x = x * 6364136223846793005U + 1442695040888963407U;
        memcpy((uint8_t *)arena.base + i, &x, sizeof(x));
    }
    return arena;
}

static void make_arenas(struct bench *bench)
{
    struct peer_env *env = &bench->env;
    const struct rf_plan *plan = env->plan;
    env->arena[RF_MEM_TRAIN] = make_arena(
        rf_plan_layout(plan, RF_TRAIN, env->rank)->arena_bytes, env->rank);
    env->arena[RF_MEM_INFER] =
        make_arena(rf_plan_layout(plan, RF_INFER, env->rank)->arena_bytes, 0);
    env->arena[RF_MEM_STAGE].fd = -1;
}

static void make_plan(struct bench *bench, char **argv)
{
    struct rf_err err = {.text = ""};
    if (planned_of_arguments(&bench->planned, argv[4], argv[5], argv[6]) !=
        RF_OK) {
        die("plan", bench->planned.err.text);
    }
    bench->env.plan = bench->planned.plan;
    if (bench->planned.world->n_ranks != bench->env.n_ranks) {
        die("mpirun", "its -np is not the number of ranks");
    }
    if (rf_schedule_build(bench->env.plan,
                          bench->planned.world->ranks[bench->env.rank].node,
                          &bench->schedule, &err) != RF_OK) {
        die("schedule", err.text);
    }
    bench->env.schedule = bench->schedule;
}

static void choose_peers(struct bench *bench, char **names)
{
    for (; *names != NULL && bench->n_peers < MAX_PEERS; names++) {
        const struct peer *found = NULL;
        for (size_t i = 0; i < RF_ARRAY_SIZE(known); i++) {
            found = strcmp(known[i]->name, *names) == 0 ? known[i] : found;
        }
        if (found == NULL) {
            die(*names, "there is no such peer");
        }
        bench->peers[bench->n_peers++] = found;
    }
}

/* The same contents of the inference arena as `expected`, once there is one. */
static void check(struct bench *bench, const struct peer *peer,
                  struct rf_hash *expected, bool *have)
{
    const struct rf_arena *arena = &bench->env.arena[RF_MEM_INFER];
    struct rf_hash found;
    if (peer == &peer_copy) {
        return;
    }
    rf_hash_init(&found);
    rf_hash_bytes(&found, arena->base, arena->bytes);
    if (*have && (found.a != expected->a || found.b != expected->b)) {
        die(peer->name, "moved other bytes than the first");
    }
    *expected = found;
    *have = true;
}

/* One refit by one peer: milliseconds of the slowest rank, at rank 0. */
static double time_one(struct bench *bench, uint32_t p)
{
    double mine, slowest = 0;
    int64_t start_ns;
    pass_gate(bench);
    start_ns = rf_now_ns();
    if (!bench->peers[p]->run(bench->states[p])) {
        die(bench->peers[p]->name, "failed");
    }
    mine = (double)(rf_now_ns() - start_ns) / 1e6;
    if (bench->peers[p]->by_mpi) {
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        pthread_barrier_wait(bench->gate);
    }
    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return slowest;
}

static void warm_up(struct bench *bench)
{
    struct rf_hash expected = {0};
    bool have = false;
    for (uint32_t p = 0; p < bench->n_peers; p++) {
        const struct rf_arena *arena = &bench->env.arena[RF_MEM_INFER];
        memset(arena->base, 0xa5, arena->bytes);
        time_one(bench, p);
        check(bench, bench->peers[p], &expected, &have);
    }
}

int main(int argc, char **argv)
{
    struct bench bench = {0};
    int rank, n_ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    if (argc <= FIXED_ARGS) {
        die("usage", "ROW FOLDER ROUNDS MODEL.json SCENARIO SLOTS PEER...");
    }
    bench.row = argv[1];
    bench.n_rounds = (uint32_t)strtoul(argv[3], NULL, 10);
    bench.env = (struct peer_env){.rank = (uint32_t)rank,
                                  .n_ranks = (uint32_t)n_ranks,
                                  .folder = argv[2]};
    make_plan(&bench, argv);
    make_arenas(&bench);
    make_gate(&bench);
    choose_peers(&bench, argv + FIXED_ARGS);
    for (uint32_t p = 0; p < bench.n_peers; p++) {
        if (!bench.peers[p]->open(&bench.env, &bench.states[p])) {
            die(bench.peers[p]->name, "cannot start");
        }
    }
    warm_up(&bench);
    for (uint32_t i = 0; i < bench.n_rounds; i++) {
        for (uint32_t k = 0; k < bench.n_peers; k++) {
            uint32_t p = (i + k) % bench.n_peers;
            double ms = time_one(&bench, p);
            if (rank == 0) {
                printf("%s\t%u\t%s\t%.3f\n", bench.row, i, bench.peers[p]->name,
                       ms);
            }
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (uint32_t p = 0; p < bench.n_peers; p++) {
        bench.peers[p]->close(bench.states[p]);
    }
    rf_schedule_destroy(bench.schedule);
    planned_free(&bench.planned);
    MPI_Finalize();
    return 0;
}
