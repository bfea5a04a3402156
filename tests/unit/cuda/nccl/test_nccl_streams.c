/* Method nccl over the fakes: which streams it works on and in which order, by
 * the fakes' trace, and that the bytes arrive. Two ranks; rank 0 sends to rank
 * 1 in rounds 0 and 1, and gets back in round 2 what it sent in round 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "cuda/device/device.h"
#include "cuda/device/device_memory.h"
#include "cuda/device/methods.h"
#include "planner/scenario/world.h"
#include "tests/lib/ops.h"
#include "tests/lib/ranks.h"
#include "tests/unit/cuda/forked.h"
#include "tests/unit/unit.h"

#define BYTES UINT64_C(65536) /* of a chunk */
#define ROUNDS 3u
#define ARENA ((uint64_t)ROUNDS * BYTES)

/* Chunk k of both arenas is what op k carries. */
static void make_ops(struct rf_op ops[ROUNDS])
{
    memset(ops, 0, (size_t)ROUNDS * sizeof(*ops));
    for (uint32_t k = 0; k < ROUNDS; k++) {
        ops[k] = (struct rf_op){.id = k,
                                .src = k == 2,
                                .dst = k != 2,
                                .dep = k == 2 ? 0 : RF_NO_OP,
                                .group = RF_NO_GROUP,
                                .round = k,
                                .src_mem = k == 2 ? RF_MEM_INFER : RF_MEM_TRAIN,
                                .dst_mem = RF_MEM_INFER,
                                .src_offset = k == 2 ? 0 : k * BYTES,
                                .dst_offset = k * BYTES};
        op_row(&ops[k], BYTES);
    }
}

static unsigned char byte_of(uint32_t chunk, uint64_t at)
{
    return (unsigned char)(((uint64_t)chunk * 37 + at * 7 + (at >> 8)) % 251 +
                           1);
}

static bool fill(void *train)
{
    AUTO_FREE unsigned char *host = rf_xmalloc(ARENA);
    bool good;
    for (uint64_t i = 0; i < ARENA; i++) {
        host[i] = byte_of((uint32_t)(i / BYTES), i % BYTES);
    }
    good =
        cudaMemcpy(train, host, ARENA, cudaMemcpyHostToDevice) == cudaSuccess;
    return good;
}

/* Whether `chunk` of an arena holds what `of` of rank 0's has. */
static bool holds(const void *infer, uint32_t chunk, uint32_t of)
{
    AUTO_FREE unsigned char *host = rf_xmalloc(BYTES);
    bool good = cudaMemcpy(host, (const unsigned char *)infer + chunk * BYTES,
                           BYTES, cudaMemcpyDeviceToHost) == cudaSuccess;
    for (uint64_t i = 0; i < BYTES; i++) {
        good = good && host[i] == byte_of(of, i);
    }
    return good;
}

static bool arrived(uint32_t rank, const void *infer)
{
    return rank == 0 ? holds(infer, 2, 0)
                     : holds(infer, 0, 0) && holds(infer, 1, 1);
}

static enum rf_status iterate(const struct rf_method_env *env,
                              struct rf_err *err)
{
    const struct rf_method_ops *method = &rf_cuda_method_nccl;
    void *state = NULL;
    bool done = false;
    enum rf_status status = method->open(env, &state, err);
    if (status == RF_OK) {
        status = method->start(state, 0, err);
    }
    while (status == RF_OK && !done) {
        status = method->progress(state, &done, err);
    }
    if (status == RF_OK) { /* both have ended before one closes */
        struct rf_blob all[2] = {{NULL, 0}};
        status = env->exchange(env->exchange_data, NULL, 0, all, err);
        rf_blobs_free(all, 2);
    }
    method->close(state);
    return status;
}

/* 0: the bytes are right. */
static int play(struct test_rank *rank)
{
    struct rf_rank ranks[2] = {{0}};
    struct rf_world world = {.ranks = ranks, .n_ranks = 2, .n_nodes = 1};
    const struct rf_spec spec = {.bucket_bytes = 1 << 20};
    const struct rf_plan plan = {.world = &world, .spec = &spec};
    struct rf_op ops[ROUNDS];
    const struct rf_schedule schedule = {.in_flight = RF_IN_FLIGHT,
                                         .ops = ops,
                                         .n_ops = ROUNDS,
                                         .n_ranks = 2,
                                         .n_rounds = ROUNDS};
    struct rf_method_env env = {.plan = &plan,
                                .schedule = &schedule,
                                .rank = rank->rank,
                                .memory = &rf_memory_cuda,
                                .deadline_ns = rf_now_ns() + 60 * RF_NS_PER_S,
                                .abort = rank->abort,
                                .exchange = test_rank_exchange,
                                .exchange_data = rank};
    struct rf_err err = {.text = ""};
    enum rf_status status = rf_device_use(rank->rank, &err);
    make_ops(ops);
    for (int m = RF_MEM_TRAIN; m <= RF_MEM_INFER && status == RF_OK; m++) {
        status = rf_memory_cuda.alloc(ARENA, &env.arena[m], &err);
    }
    if (status == RF_OK && fill(env.arena[RF_MEM_TRAIN].base)) {
        status = iterate(&env, &err);
    }
    if (status != RF_OK) {
        fprintf(stderr, "rank %u: %s\n", rank->rank, err.text);
        return 2;
    }
    return !arrived(rank->rank, env.arena[RF_MEM_INFER].base);
}

/* --- the trace --- */

#define MAX_LINES 512

struct line {
    int pid;
    char what[16];
    long a, b, c;
};

struct trace {
    struct line lines[MAX_LINES];
    size_t n;
    int pid[2];            /* of the rank that sends more, and the other */
    unsigned pack, unpack; /* streams, the same in both */
    long copies, wire;     /* their priorities */
};

static void read_lines(const char *path, struct trace *out)
{
    char text[128];
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(text, sizeof(text), file) != NULL) {
        struct line *line = &out->lines[out->n++];
        ck_assert_uint_lt(out->n, MAX_LINES);
        ck_assert_int_ge(sscanf(text, "%d %15s %ld %ld %ld", &line->pid,
                                line->what, &line->a, &line->b, &line->c),
                         3);
    }
    fclose(file);
}

/* The ranks' processes and streams. The wire's carries messages; of the two
 * others that have a priority like each other's, the first packs. */
static void find_streams(struct trace *trace)
{
    const int first = trace->lines[0].pid;
    int lead = 0; /* of the first one's messages over the other's */
    for (size_t i = 0; i < trace->n; i++) {
        const struct line *line = &trace->lines[i];
        if (strcmp(line->what, "send") == 0 && line->c > 256) {
            lead += line->pid == first ? 1 : -1;
        }
        if (line->pid != first) {
            trace->pid[0] = line->pid;
        }
    }
    if (lead > 0) {
        trace->pid[0] = first;
    }
    for (size_t i = 0; i < trace->n; i++) {
        const struct line *line = &trace->lines[i];
        if (line->pid != trace->pid[0]) {
            trace->pid[1] = line->pid;
        } else if (strcmp(line->what, "stream") == 0) {
            if (line->a == 1) {
                trace->wire = trace->copies = line->b;
            } else if (line->b != trace->wire) {
                trace->copies = line->b;
                trace->pack =
                    trace->pack == 0 ? (unsigned)line->a : trace->pack;
                trace->unpack = (unsigned)line->a;
            }
        }
    }
}

static void run(const char *direct_bytes, struct trace *out)
{
    char path[] = "/tmp/refit-trace-XXXXXX";
    const int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    memset(out, 0, sizeof(*out));
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    setenv("FAKE_CUDA_TRACE", path, 1);
    setenv("REFIT_DIRECT_BYTES", direct_bytes, 1);
    ck_assert_uint_eq(test_ranks_run(2, play, NULL, 45, NULL), 0);
    read_lines(path, out);
    unlink(path);
    find_streams(out);
}

/* The stream on which an event was last recorded before a line. */
static long recorded_on(const struct trace *trace, size_t before, long event)
{
    for (size_t i = before; i-- > 0;) {
        const struct line *line = &trace->lines[i];
        if (line->pid == trace->lines[before].pid && line->a == event &&
            strcmp(line->what, "record") == 0) {
            return line->b;
        }
    }
    return 0;
}

/* Launches of a rank's stream; *waited has bit k set if launch k came behind a
 * wait for the end of some unpacking. */
static unsigned launches(const struct trace *trace, uint32_t rank,
                         unsigned stream, unsigned *waited)
{
    unsigned n = 0;
    *waited = 0;
    for (size_t i = 0; i < trace->n; i++) {
        const struct line *line = &trace->lines[i];
        if (line->pid != trace->pid[rank] || line->a != (long)stream) {
            continue;
        }
        if (strcmp(line->what, "wait") == 0 &&
            recorded_on(trace, i, line->b) == (long)trace->unpack) {
            *waited |= 1u << n;
        }
        n += strcmp(line->what, "launch") == 0;
    }
    return n;
}

static unsigned messages(const struct trace *trace, uint32_t rank,
                         const char *what)
{
    unsigned n = 0;
    for (size_t i = 0; i < trace->n; i++) {
        const struct line *line = &trace->lines[i];
        n += line->pid == trace->pid[rank] && line->c == (long)BYTES &&
             strcmp(line->what, what) == 0;
    }
    return n;
}

NEEDS(forked_allowed())
TAG("device")
LIMIT(60)

TEST(test_nccl_packs_a_round_while_the_last_one_is_on_the_wire)
{
    struct trace trace;
    unsigned waited;
    run("0", &trace);
    ck_assert_uint_eq(launches(&trace, 0, trace.pack, &waited), 2);
    ck_assert_uint_eq(waited & 3u, 0);
    ck_assert_uint_eq(launches(&trace, 1, trace.unpack, &waited), 2);
}

TEST(test_nccl_packs_what_was_received_after_its_unpacking)
{
    struct trace trace;
    unsigned waited;
    run("0", &trace);
    ck_assert_uint_eq(launches(&trace, 1, trace.pack, &waited), 1);
    ck_assert_uint_eq(waited & 1u, 1);
}

TEST(test_nccl_sends_long_runs_from_arena_to_arena)
{
    struct trace trace;
    unsigned waited;
    run("65536", &trace);
    for (uint32_t rank = 0; rank < 2; rank++) {
        ck_assert_uint_eq(launches(&trace, rank, trace.pack, &waited), 0);
        ck_assert_uint_eq(launches(&trace, rank, trace.unpack, &waited), 0);
        ck_assert_uint_eq(messages(&trace, rank, "send"), 2 - rank);
        ck_assert_uint_eq(messages(&trace, rank, "recv"), 1 + rank);
    }
    run("65537", &trace);
    ck_assert_uint_eq(launches(&trace, 0, trace.pack, &waited), 2);
}

TEST(test_nccl_wire_has_priority_over_packing)
{
    struct trace trace;
    run("0", &trace);
    ck_assert_int_lt(trace.wire, trace.copies);
    ck_assert_uint_ne(trace.pack, trace.unpack);
    for (size_t i = 0; i < trace.n; i++) { /* the fake has 2 multiprocessors */
        const struct line *line = &trace.lines[i];
        if (strcmp(line->what, "launch") == 0 &&
            (line->a == trace.pack || line->a == trace.unpack)) {
            ck_assert_int_eq(line->b, 1);
        }
    }
}

/* Blocks of memory that NCCL gave a rank, or with 0 took back. */
static unsigned memory_of_nccl(const struct trace *trace, uint32_t rank,
                               long given)
{
    unsigned n = 0;
    for (size_t i = 0; i < trace->n; i++) {
        const struct line *line = &trace->lines[i];
        n += line->pid == trace->pid[rank] && line->a == given &&
             strcmp(line->what, "memory") == 0;
    }
    return n;
}

TEST(test_nccl_gives_the_buffers_and_takes_them_back)
{
    struct trace trace;
    run("0", &trace);
    for (uint32_t rank = 0; rank < 2; rank++) {
        ck_assert_uint_eq(memory_of_nccl(&trace, rank, 1), 2);
        ck_assert_uint_eq(memory_of_nccl(&trace, rank, 0), 2);
    }
}

TEST(test_a_buffer_that_nccl_refuses_is_another_memory)
{
    struct trace trace;
    setenv("FAKE_NCCL_FAIL", "ncclMemAlloc:2:1", 1);
    run("0", &trace);
    for (uint32_t rank = 0; rank < 2; rank++) {
        ck_assert_uint_eq(memory_of_nccl(&trace, rank, 1), 1);
        ck_assert_uint_eq(memory_of_nccl(&trace, rank, 0), 1);
    }
}
