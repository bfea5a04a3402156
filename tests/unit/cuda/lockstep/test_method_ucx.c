/* Method ucx-cuda over a wire that the test plays: what waits for what in its
 * steps. Rank 0 of two; each round is a step in which the ranks swap a chunk.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "cuda/device/device.h"
#include "cuda/device/device_memory.h"
#include "cuda/device/methods.h"
#include "cuda/lockstep/phases.h"
#include "planner/scenario/world.h"
#include "tests/lib/ops.h"
#include "tests/unit/cuda/forked.h"
#include "tests/unit/unit.h"
#include "transport/method/module.h"

extern const struct rf_module rf_cuda_module;

#define ROUNDS 5u
#define BYTES UINT64_C(65536) /* of a chunk */
#define ARENA ((uint64_t)ROUNDS * BYTES)
/* Rounds of progress, each on an idle device, that would show what must not
 * happen. */
#define SETTLING 10

static unsigned char byte_of(uint32_t rank, uint32_t chunk, uint64_t at)
{
    return (unsigned char)((rank * 101 + chunk * 37 + at * 7 + (at >> 8)) %
                               251 +
                           1);
}

/* --- the wire ------------------------------------------------------------- */

struct posted {
    void *to;
    uint32_t *left;
};

/* What the method asked for; message k is step k's. */
static struct {
    struct posted sends[ROUNDS], recvs[ROUNDS];
    uint32_t n_sends, n_recvs, ends;
    bool wrong;  /* a send of other bytes than those that are packed there */
    bool parted; /* the other rank is done, too */
    enum rf_status broken;
} wire;

static bool holds(const void *device, uint32_t rank, uint32_t chunk)
{
    AUTO_FREE unsigned char *host = rf_xmalloc(BYTES);
    bool good =
        cudaMemcpy(host, device, BYTES, cudaMemcpyDeviceToHost) == cudaSuccess;
    for (uint64_t i = 0; i < BYTES; i++) {
        good = good && host[i] == byte_of(rank, chunk, i);
    }
    return good;
}

static bool put(void *device, uint32_t rank, uint32_t chunk)
{
    AUTO_FREE unsigned char *host = rf_xmalloc(BYTES);
    bool good;
    for (uint64_t i = 0; i < BYTES; i++) {
        host[i] = byte_of(rank, chunk, i);
    }
    good =
        cudaMemcpy(device, host, BYTES, cudaMemcpyHostToDevice) == cudaSuccess;
    return good;
}

static enum rf_status wire_probe(enum rf_memory_kind kind, struct rf_err *err)
{
    return kind == RF_DEVICE_MEMORY
               ? rf_err_set(err, RF_ERR_UNSUPPORTED, "no such memory")
               : RF_OK;
}

static enum rf_status wire_open(const struct rf_method_env *env,
                                const struct rf_ucx_wire_memory *memory,
                                struct rf_ucx_wire **out, struct rf_err *err)
{
    (void)env;
    if (wire.broken != RF_OK) {
        return rf_err_set(err, wire.broken, "no connection");
    }
    /* Both arenas, two slots each way. */
    ck_assert_int_eq(memory->kind, RF_DEVICE_MEMORY);
    ck_assert_uint_eq(memory->n, RF_MEM_COUNT + 2);
    for (size_t i = RF_MEM_COUNT; i < memory->n; i++) {
        ck_assert_uint_eq(memory->at[i].bytes, 2 * BYTES);
    }
    *out = (struct rf_ucx_wire *)&wire;
    return RF_OK;
}

static void wire_start(struct rf_ucx_wire *of)
{
    (void)of;
}

static void wire_send(struct rf_ucx_wire *of, uint32_t rank, const void *from,
                      uint64_t bytes, uint32_t *left)
{
    (void)of;
    wire.wrong |= rank != 1 || bytes != BYTES || !holds(from, 0, wire.n_sends);
    wire.sends[wire.n_sends++] = (struct posted){NULL, left};
    ++*left;
}

static void wire_receive(struct rf_ucx_wire *of, uint32_t rank, void *to,
                         uint64_t bytes, uint32_t *left)
{
    (void)of;
    wire.wrong |= rank != 1 || bytes != BYTES;
    wire.recvs[wire.n_recvs++] = (struct posted){to, left};
    ++*left;
}

static enum rf_status wire_progress(struct rf_ucx_wire *of, bool *worked,
                                    struct rf_err *err)
{
    (void)of;
    (void)worked;
    return wire.broken == RF_OK ? RF_OK
                                : rf_err_set(err, wire.broken, "lost rank 1");
}

static void wire_end(struct rf_ucx_wire *of, bool *done)
{
    (void)of;
    wire.ends++;
    *done = wire.parted;
}

static void wire_abort(struct rf_ucx_wire *of)
{
    (void)of;
}

static void wire_close(struct rf_ucx_wire *of)
{
    (void)of;
}

static const struct rf_ucx_wire_ops played = {.probe = wire_probe,
                                              .open = wire_open,
                                              .start = wire_start,
                                              .send = wire_send,
                                              .receive = wire_receive,
                                              .progress = wire_progress,
                                              .end = wire_end,
                                              .abort = wire_abort,
                                              .close = wire_close};
static const struct rf_ucx_module module_of_ucx = {.abi = RF_UCX_MODULE_ABI,
                                                   .wire = &played};

static void log_nothing(int level, const char *line)
{
    (void)level;
    (void)line;
}

static const struct rf_ucx_module *lend(struct rf_err *err)
{
    (void)err;
    return &module_of_ucx;
}

static const struct rf_ucx_module *lend_none(struct rf_err *err)
{
    rf_err_set(err, RF_ERR_UNSUPPORTED, "no refit-ucx.so");
    return NULL;
}

/* --- a rank --------------------------------------------------------------- */

static atomic_bool stop;
static struct rf_rank ranks[2];
static const struct rf_world world = {
    .ranks = ranks, .n_ranks = 2, .n_nodes = 1};
static const struct rf_spec spec = {.bucket_bytes = 1 << 20};
static const struct rf_plan plan = {.world = &world, .spec = &spec};
static struct rf_op ops[2 * ROUNDS];
static const struct rf_schedule schedule = {.in_flight = RF_IN_FLIGHT,
                                            .ops = ops,
                                            .n_ops = 2 * ROUNDS,
                                            .n_ranks = 2,
                                            .n_rounds = ROUNDS};

/* The other rank has as many bytes in each round. */
static enum rf_status exchange(void *data, const void *mine, size_t size,
                               struct rf_blob *all, struct rf_err *err)
{
    (void)data;
    (void)err;
    for (int r = 0; r < 2; r++) {
        all[r].size = size;
        all[r].data = rf_xcalloc(1, size + 1);
        memcpy(all[r].data, size > 0 ? mine : "", size);
    }
    return RF_OK;
}

static struct rf_method_env env = {.plan = &plan,
                                   .schedule = &schedule,
                                   .memory = &rf_memory_cuda,
                                   .abort = &stop,
                                   .exchange = exchange};
static void *state;

static void make_ops(void)
{
    for (uint32_t i = 0; i < 2 * ROUNDS; i++) {
        const uint32_t chunk = i / 2;
        struct rf_op *op = &ops[i];
        *op = (struct rf_op){.id = i,
                             .src = i % 2,
                             .dst = 1 - i % 2,
                             .dep = RF_NO_OP,
                             .group = RF_NO_GROUP,
                             .round = chunk,
                             .src_mem = RF_MEM_TRAIN,
                             .dst_mem = RF_MEM_INFER,
                             .src_offset = chunk * BYTES,
                             .dst_offset = chunk * BYTES};
        op_row(op, BYTES);
    }
}

static void set_up(void)
{
    static const struct rf_module_host host = {log_nothing, lend};
    struct rf_err err;
    memset(&wire, 0, sizeof(wire));
    atomic_store(&stop, false);
    setenv("REFIT_DIRECT_BYTES", "0", 1);
    make_ops();
    assert_ok(rf_cuda_module.init(&host, &err), err);
    assert_ok(rf_device_use(0, &err), err);
    env.deadline_ns = rf_now_ns() + 10 * RF_NS_PER_S;
    for (int m = RF_MEM_TRAIN; m <= RF_MEM_INFER; m++) {
        assert_ok(rf_memory_cuda.alloc(ARENA, &env.arena[m], &err), err);
    }
    for (uint32_t chunk = 0; chunk < ROUNDS; chunk++) {
        ck_assert(
            put((unsigned char *)env.arena[RF_MEM_TRAIN].base + chunk * BYTES,
                0, chunk));
    }
    assert_ok(rf_cuda_method_ucx.open(&env, &state, &err), err);
    assert_ok(rf_cuda_method_ucx.start(state, 0, &err), err);
}

static void tear_down(void)
{
    rf_cuda_method_ucx.close(state);
    for (int m = RF_MEM_TRAIN; m <= RF_MEM_INFER; m++) {
        rf_memory_cuda.free(&env.arena[m]);
    }
    unsetenv("REFIT_DIRECT_BYTES");
}

/* The method's first stream, on which it packs. */
static void slow_packing(void)
{
    setenv("FAKE_CUDA_SLOW", "0:2000", 1);
}

static void quick_packing(void)
{
    unsetenv("FAKE_CUDA_SLOW");
}

static bool progress(void)
{
    struct rf_err err;
    bool done;
    assert_ok(rf_cuda_method_ucx.progress(state, &done, &err), err);
    return done;
}

/* Nothing is done, and all that could be asked for is. */
static void settle(void)
{
    for (int i = 0; i < SETTLING; i++) {
        ck_assert_int_eq(cudaDeviceSynchronize(), cudaSuccess);
        ck_assert(!progress());
    }
}

/* Until so many sends and receives were asked for, and not one more. */
static void expect_posted(uint32_t n)
{
    while (wire.n_sends < n || wire.n_recvs < n) {
        ck_assert(!progress());
    }
    settle();
    ck_assert_uint_eq(wire.n_sends, n);
    ck_assert_uint_eq(wire.n_recvs, n);
    ck_assert(!wire.wrong);
}

static void sent(uint32_t step)
{
    --*wire.sends[step].left;
}

static void arrive(uint32_t step)
{
    ck_assert(put(wire.recvs[step].to, 1, step));
    --*wire.recvs[step].left;
}

/* --- tests ---------------------------------------------------------------- */

TAG("device")
LIMIT(30)
FIXTURE(set_up, tear_down)

TEST(test_a_slot_is_used_again_when_it_is_sent_and_unpacked)
{
    expect_posted(2);
    sent(0); /* but what it received is not there */
    expect_posted(2);
    arrive(0);
    expect_posted(3);
    arrive(1); /* but it is still being sent from */
    expect_posted(3);
    sent(1);
    expect_posted(4);
}

/* UCX may still have it registered. What stays is no leak: the process ends. */
TEST(test_device_memory_stays_where_the_wire_does_not_open)
{
    struct rf_err err;
    void *other = NULL;
    wire.broken = RF_ERR_TIMEOUT;
    ck_assert(!rf_device_abandoned());
    ck_assert_int_eq(rf_cuda_method_ucx.open(&env, &other, &err),
                     RF_ERR_TIMEOUT);
    ck_assert_ptr_null(other);
    ck_assert(rf_device_abandoned());
    if (forked_allowed()) { /* else other tests follow in this process */
        _exit(EXIT_SUCCESS);
    }
}

TEST(test_it_is_done_when_all_is_there_and_the_others_are_done)
{
    for (uint32_t step = 0; step < ROUNDS; step++) {
        while (wire.n_sends <= step) {
            ck_assert(!progress());
        }
        ck_assert_uint_eq(wire.ends, 0);
        arrive(step);
        if (step + 1 < ROUNDS) {
            sent(step);
        }
    }
    settle();
    ck_assert_uint_eq(wire.ends, 0);
    sent(ROUNDS - 1);
    settle();
    ck_assert_uint_gt(wire.ends, 0);
    wire.parted = true;
    while (!progress()) {
    }
    for (uint32_t chunk = 0; chunk < ROUNDS; chunk++) {
        ck_assert(
            holds((unsigned char *)env.arena[RF_MEM_INFER].base + chunk * BYTES,
                  1, chunk));
    }
}

/* How long messages were under way: no less and no more. */
struct span {
    int64_t least_ns, most_ns;
};

/* Messages `from` up to `to` go together, and no others meanwhile. */
static void swap(uint32_t from, uint32_t to, struct span *span)
{
    int64_t before = 0, asked, there;
    while (wire.n_sends == from) {
        before = rf_now_ns();
        ck_assert(!progress());
    }
    asked = rf_now_ns();
    expect_posted(to);
    for (uint32_t step = from; step < to; step++) {
        arrive(step);
        sent(step);
    }
    there = rf_now_ns();
    ck_assert(!progress());
    ck_assert_uint_eq(wire.n_sends, to);
    span->least_ns += there - asked;
    span->most_ns += rf_now_ns() - before;
}

TEST(test_what_the_wire_lost_and_an_abort_end_it)
{
    struct rf_err err;
    bool done;
    expect_posted(2);
    wire.broken = RF_ERR_PEER;
    ck_assert_int_eq(rf_cuda_method_ucx.progress(state, &done, &err),
                     RF_ERR_PEER);
    ck_assert_str_eq(err.text, "lost rank 1");
    atomic_store(&stop, true);
    ck_assert_int_eq(rf_cuda_method_ucx.progress(state, &done, &err),
                     RF_ERR_ABORTED);
}

TEST(test_what_is_missing_is_said)
{
    static const struct rf_module_host none = {log_nothing, lend_none};
    struct rf_err err;
    ck_assert_int_eq(rf_cuda_method_ucx.probe(&err), RF_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text, "no such memory");
    assert_ok(rf_cuda_module.init(&none, &err), err);
    ck_assert_int_eq(rf_cuda_method_ucx.probe(&err), RF_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text, "no refit-ucx.so");
}

CASE("method_ucx_packs_slowly")
TAG("device")
LIMIT(30)
FIXTURE(slow_packing, quick_packing)
FIXTURE(set_up, tear_down)

TEST(test_the_wire_s_time_is_that_with_messages_under_way)
{
    struct rf_phase_times times;
    struct span span = {0, 0};
    for (uint32_t step = 0; step < ROUNDS; step += RF_BUFFER_SLOTS) {
        swap(step, RF_MIN(step + RF_BUFFER_SLOTS, ROUNDS), &span);
    }
    wire.parted = true;
    while (!progress()) {
    }
    rf_cuda_method_ucx.timing(state, &times);
    ck_assert_int_ge(times.wire_ns, span.least_ns);
    ck_assert_int_le(times.wire_ns, span.most_ns);
    ck_assert_uint_eq(times.sent_bytes, ARENA);
    ck_assert_uint_eq(times.received_bytes, ARENA);
}
