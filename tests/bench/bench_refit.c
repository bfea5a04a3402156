/*
 * Times a refit with one method in forked processes against the memory's own
 * limit: in every round the same processes first copy as many bytes from their
 * training to their inference arenas, contiguously, with streaming stores, then
 * do the refit. Prints the median of each and the median of the ratios.
 *
 *     bench-refit MODEL.json SCENARIO-JSON SLOTS[,SLOTS…] [ROUNDS]
 *
 * All nodes are this machine, at 127.0.0.1.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/stats.h"
#include "planner/strategy/schedule_build.h"
#include "tests/lib/planned.h"
#include "tests/lib/ranks.h"
#include "transport/codec/strided_copy.h"

#define MAX_RANKS 32
#define MAX_ROUNDS 64

/* Nanoseconds of every rank, in memory all of them share. */
struct times {
    int64_t copy[MAX_ROUNDS][MAX_RANKS];
    int64_t refit[MAX_ROUNDS][MAX_RANKS];
    int64_t copy_cpu[MAX_ROUNDS][MAX_RANKS];
    int64_t refit_cpu[MAX_ROUNDS][MAX_RANKS];
    struct rf_phase_times phases[MAX_RANKS]; /* of the last round */
};

struct bench {
    struct planned planned;
    const struct rf_method_ops *method;
    uint32_t n_rounds;
    struct times *times;
};

static struct rf_arena make_arena(uint64_t bytes)
{
    struct rf_arena arena = test_arena(bytes);
    if (bytes > 0) {
        memset(arena.base, 1, bytes); /* outside of what is timed */
    }
    return arena;
}

/* Processor time of this process: steadier than time on a shared machine. */
static int64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * RF_NS_PER_S + now.tv_nsec;
}

/* `bytes` from anywhere in `src` to anywhere in `dst`, in 1 MiB pieces. */
static void copy_round(const struct rf_arena *dst, const struct rf_arena *src,
                       uint64_t bytes)
{
    const uint64_t piece = 1 << 20;
    if (src->bytes < piece || dst->bytes < piece) {
        return;
    }
    for (uint64_t at = 0; at < bytes; at += piece) {
        rf_copy_streaming((uint8_t *)dst->base +
                              at % (dst->bytes - piece + 1) / 64 * 64,
                          (const uint8_t *)src->base +
                              at % (src->bytes - piece + 1) / 64 * 64,
                          RF_MIN(piece, bytes - at));
    }
    rf_copy_fence();
}

static int fail(uint32_t rank, const struct rf_err *err)
{
    fprintf(stderr, "rank %u: %s\n", rank, err->text);
    return 1;
}

static int run_rounds(const struct bench *bench, struct test_rank *rank,
                      const struct rf_method_env *env, void *state)
{
    const struct rf_arena *src = &env->arena[RF_MEM_TRAIN];
    const struct rf_arena *dst = &env->arena[RF_MEM_INFER];
    uint64_t share = bench->planned.plan->totals.bytes_total / rank->n_ranks;
    struct rf_err err;
    for (uint32_t round = 0; round < bench->n_rounds; round++) {
        bool done = false;
        int64_t start, cpu;
        if (!test_rank_barrier(rank)) {
            return 1;
        }
        start = rf_now_ns();
        cpu = cpu_ns();
        copy_round(dst->bytes > 0 ? dst : src, src->bytes > 0 ? src : dst,
                   share);
        bench->times->copy[round][rank->rank] = rf_now_ns() - start;
        bench->times->copy_cpu[round][rank->rank] = cpu_ns() - cpu;
        if (!test_rank_barrier(rank)) {
            return 1;
        }
        start = rf_now_ns();
        cpu = cpu_ns();
        if (bench->method->start(state, round, &err) != RF_OK) {
            return fail(rank->rank, &err);
        }
        while (!done) {
            if (bench->method->progress(state, &done, &err) != RF_OK) {
                return fail(rank->rank, &err);
            }
        }
        bench->times->refit[round][rank->rank] = rf_now_ns() - start;
        bench->times->refit_cpu[round][rank->rank] = cpu_ns() - cpu;
        bench->method->timing(state, &bench->times->phases[rank->rank]);
    }
    return 0;
}

static int one_rank(struct test_rank *rank)
{
    static const char *const addresses[] = {
        "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1",
        "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1"};
    const struct bench *bench = rank->data;
    const struct rf_plan *plan = bench->planned.plan;
    struct rf_schedule *schedule;
    struct rf_method_env env = {.plan = plan,
                                .rank = rank->rank,
                                .node_addresses = addresses,
                                .deadline_ns = rf_now_ns() + 60 * RF_NS_PER_S,
                                .abort = rank->abort,
                                .exchange = test_rank_exchange,
                                .exchange_data = rank};
    struct rf_err err;
    void *state;
    int outcome;
    if (rf_schedule_build(plan, plan->world->ranks[rank->rank].node, &schedule,
                          &err) != RF_OK) {
        return fail(rank->rank, &err);
    }
    env.schedule = schedule;
    for (uint32_t side = 0; side < RF_SIDES; side++) {
        env.arena[side] = make_arena(
            rf_plan_layout(plan, (enum rf_side)side, rank->rank)->arena_bytes);
    }
    if (schedule->stage_bytes != NULL) {
        env.arena[RF_MEM_STAGE] = make_arena(schedule->stage_bytes[rank->rank]);
    }
    if (bench->method->open(&env, &state, &err) != RF_OK) {
        return fail(rank->rank, &err);
    }
    outcome = run_rounds(bench, rank, &env, state);
    if (!test_rank_barrier(rank)) {
        outcome = 1;
    }
    bench->method->close(state);
    rf_schedule_destroy(schedule);
    return outcome;
}

static double slowest_ms(const int64_t *of_rank, uint32_t n)
{
    int64_t most = 0;
    for (uint32_t r = 0; r < n; r++) {
        most = RF_MAX(most, of_rank[r]);
    }
    return (double)most / 1e6;
}

static double sum_s(const int64_t *of_rank, uint32_t n)
{
    int64_t sum = 0;
    for (uint32_t r = 0; r < n; r++) {
        sum += of_rank[r];
    }
    return (double)sum / 1e9;
}

static void report_cpu(const struct bench *bench, double gbytes)
{
    double copy[MAX_ROUNDS], refit[MAX_ROUNDS];
    uint32_t n = bench->n_rounds, n_ranks = bench->planned.world->n_ranks;
    for (uint32_t i = 0; i < n; i++) {
        copy[i] = sum_s(bench->times->copy_cpu[i], n_ranks) / gbytes;
        refit[i] = sum_s(bench->times->refit_cpu[i], n_ranks) / gbytes;
    }
    qsort(copy, n, sizeof(*copy), rf_stats_by_value);
    qsort(refit, n, sizeof(*refit), rf_stats_by_value);
    printf("  CPU s/GB: copy %.3f [%.3f-%.3f], refit %.3f [%.3f-%.3f]\n",
           rf_percentile(copy, n, 50), copy[0], copy[n - 1],
           rf_percentile(refit, n, 50), refit[0], refit[n - 1]);
}

static void report(const struct bench *bench)
{
    double copy[MAX_ROUNDS], refit[MAX_ROUNDS], ratio[MAX_ROUNDS];
    uint32_t n = bench->n_rounds, n_ranks = bench->planned.world->n_ranks;
    double bytes = (double)bench->planned.plan->totals.bytes_total;
    for (uint32_t i = 0; i < n; i++) {
        copy[i] = slowest_ms(bench->times->copy[i], n_ranks);
        refit[i] = slowest_ms(bench->times->refit[i], n_ranks);
        ratio[i] = refit[i] / copy[i];
    }
    qsort(copy, n, sizeof(*copy), rf_stats_by_value);
    qsort(refit, n, sizeof(*refit), rf_stats_by_value);
    qsort(ratio, n, sizeof(*ratio), rf_stats_by_value);
    printf("%s: %.3f GB, copy %.1f ms [%.1f-%.1f] (%.1f GB/s), refit %.1f ms "
           "[%.1f-%.1f] "
           "(%.1f GB/s), refit/copy %.3f [%.3f-%.3f]\n",
           bench->method->info->name, bytes / 1e9, rf_percentile(copy, n, 50),
           copy[0], copy[n - 1], bytes / 1e6 / rf_percentile(copy, n, 50),
           rf_percentile(refit, n, 50), refit[0], refit[n - 1],
           bytes / 1e6 / rf_percentile(refit, n, 50),
           rf_percentile(ratio, n, 50), ratio[0], ratio[n - 1]);
    report_cpu(bench, bytes / 1e9);
    for (uint32_t r = 0; r < n_ranks; r++) {
        const struct rf_phase_times *phases = &bench->times->phases[r];
        printf("  rank %u last round: %.1f ms; pack %.1f, wire %.1f, unpack "
               "%.1f, sync %.1f ms\n",
               r, (double)bench->times->refit[n - 1][r] / 1e6,
               (double)phases->pack_ns / 1e6, (double)phases->wire_ns / 1e6,
               (double)phases->unpack_ns / 1e6, (double)phases->sync_ns / 1e6);
    }
}

int main(int argc, char **argv)
{
    struct bench bench = {.n_rounds = 9};
    if (argc < 4) {
        fputs("usage: bench-refit MODEL.json SCENARIO SLOTS[,SLOTS] "
              "[ROUNDS]\n",
              stderr);
        return 2;
    }
    if (argc > 4) {
        bench.n_rounds =
            RF_MIN((uint32_t)strtoul(argv[4], NULL, 10), MAX_ROUNDS);
    }
    if (planned_of_arguments(&bench.planned, argv[1], argv[2], argv[3]) !=
        RF_OK) {
        fprintf(stderr, "%s\n", bench.planned.err.text);
        return 2;
    }
    bench.method =
        rf_method_find(bench.planned.spec->method, &bench.planned.err);
    bench.times = mmap(NULL, sizeof(*bench.times), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (bench.method == NULL || bench.times == MAP_FAILED) {
        fprintf(stderr, "%s\n", bench.planned.err.text);
        return 1;
    }
    if (test_ranks_run(bench.planned.world->n_ranks, one_rank, &bench, 120,
                       NULL) != 0) {
        return 1;
    }
    report(&bench);
    planned_free(&bench.planned);
    return 0;
}
