/*
 * What NCCL costs a rank, on one device: a communicator of one rank that sends
 * to itself.
 *     bench-gpu-wire group [TIMES]
 *         host's time of a group until NCCL is done with the call
 *     bench-gpu-wire priority [MEBIBYTES]
 *         a message's time alone, beside copies that fill the device, the same
 *         on a stream of high priority, and beside copies on the
 *         multiprocessors that a refit packs with
 *     bench-gpu-wire steps [MB,...]
 *         pack, wire and unpack of one step, by its size, as the device runs
 *         them: it copies something else until the host has launched all
 *         three, and a round in which it ended sooner is not counted
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "cuda/nccl/nccl_api.h"
#include "tests/gpu/bench_lib.h"

#define ROUNDS 15
#define BUSY_BYTES ((uint64_t)64 << 20)
#define BUSY_MOST 4096       /* times */
#define ROW ((uint64_t)4096) /* of what is packed */
#define LIMIT_NS (60 * RF_NS_PER_S)
#define EXIT_SKIPPED 77

struct wire {
    const struct rf_nccl *nccl;
    ncclComm_t comm;
};

static void nccl_must(const struct wire *wire, const char *call,
                      ncclResult_t code)
{
    struct rf_err err;
    if (code != ncclSuccess && code != ncclInProgress) {
        rf_bench_must(rf_nccl_error(&err, wire->nccl, call, code, wire->comm),
                      &err);
    }
}

/* Until NCCL is done with what it was asked. */
static void settle(const struct wire *wire, const char *call)
{
    const int64_t deadline = rf_now_ns() + LIMIT_NS;
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
        nccl_must(wire, call,
                  wire->nccl->CommGetAsyncError(wire->comm, &state));
        nccl_must(wire, call, state);
        if (rf_now_ns() > deadline) {
            fprintf(stderr, "bench: %s: still in progress after a minute\n",
                    call);
            exit(1);
        }
    }
}

static struct wire open_wire(bool blocking)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    struct wire wire = {.comm = NULL};
    struct rf_err err;
    ncclUniqueId id;
    wire.nccl = rf_nccl_load(&err);
    if (wire.nccl == NULL) {
        printf("skipped: %s\n", err.text);
        exit(EXIT_SKIPPED);
    }
    config.blocking = blocking;
    nccl_must(&wire, "ncclGetUniqueId", wire.nccl->GetUniqueId(&id));
    nccl_must(&wire, "ncclCommInitRankConfig",
              wire.nccl->CommInitRankConfig(&wire.comm, 1, id, 0, &config));
    settle(&wire, "ncclCommInitRankConfig");
    return wire;
}

static void send_to_self(const struct wire *wire, void *to, const void *from,
                         uint64_t bytes, cudaStream_t stream)
{
    const struct rf_nccl *nccl = wire->nccl;
    nccl_must(wire, "ncclGroupStart", nccl->GroupStart());
    nccl_must(wire, "ncclSend",
              nccl->Send(from, bytes, ncclUint8, 0, wire->comm, stream));
    nccl_must(wire, "ncclRecv",
              nccl->Recv(to, bytes, ncclUint8, 0, wire->comm, stream));
    nccl_must(wire, "ncclGroupEnd", nccl->GroupEnd());
    settle(wire, "ncclGroupEnd");
}

static cudaStream_t new_stream(bool high)
{
    cudaStream_t stream;
    int least = 0, greatest = 0;
    rf_bench_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                  "cudaDeviceGetStreamPriorityRange");
    rf_bench_cuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                               high ? greatest : least),
                  "cudaStreamCreateWithPriority");
    return stream;
}

static void finish(cudaStream_t stream)
{
    rf_bench_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

/* --- group --- */

static void measure_groups(bool blocking, unsigned times)
{
    const struct wire wire = open_wire(blocking);
    const uint64_t bytes = 65536;
    void *from = rf_bench_memory(bytes), *to = rf_bench_memory(bytes);
    const cudaStream_t stream = new_stream(false);
    struct rf_samples samples = {.n = 0};
    send_to_self(&wire, to, from, bytes, stream); /* makes connections */
    finish(stream);
    for (unsigned i = 0; i < times; i++) {
        const int64_t begin = rf_now_ns();
        send_to_self(&wire, to, from, bytes, stream);
        rf_sample(&samples, (double)(rf_now_ns() - begin) / 1e3);
        finish(stream);
    }
    rf_figure(blocking ? "host's time of a group, blocking"
                       : "host's time of a group, non-blocking",
              "us", 0, 0, &samples);
    nccl_must(&wire, "ncclCommAbort", wire.nccl->CommAbort(wire.comm));
}

static int do_group(const char *argument)
{
    const unsigned long times = strtoul(argument, NULL, 10);
    if (times < 1 || times > RF_BENCH_MAX_SAMPLES) {
        fprintf(stderr, "bench-gpu-wire: 1 to %d groups\n",
                RF_BENCH_MAX_SAMPLES);
        return 2;
    }
    measure_groups(false, (unsigned)times);
    measure_groups(true, (unsigned)times);
    return 0;
}

/* --- copies --- */

/* Rows of ROW bytes, apart in one memory and dense in another, as packing and
 * unpacking see them. */
struct copies {
    struct rf_device_slices slices;
    struct rf_bases bases;
    uint64_t bytes;
};

static struct copies new_copies(void *from, uint64_t from_pitch, void *to,
                                uint64_t to_pitch, uint64_t bytes)
{
    struct copies copies = {.bases.at = {from, to}};
    struct rf_slices host = {0};
    struct rf_err err;
    copies.bytes = bytes / ROW * ROW;
    rf_slices_add(&host,
                  (struct rf_slice){.dst_base = 1,
                                    .src_pitch = from_pitch,
                                    .dst_pitch = to_pitch,
                                    .width = ROW,
                                    .rows = bytes / ROW},
                  RF_KERNEL_CAST_NONE);
    rf_bench_must(rf_device_slices_upload(&host, RF_KERNEL_CAST_NONE,
                                          &copies.slices, &err),
                  &err);
    rf_slices_free(&host);
    return copies;
}

static void run_copies(const struct copies *copies, cudaStream_t stream)
{
    struct rf_err err;
    rf_bench_must(rf_device_copy(&copies->slices, &copies->bases, stream, &err),
                  &err);
}

/* --- priority --- */

/* A message's time from when its stream could start it; `beside` runs first, on
 * a stream of its own, several times. */
static void measure_message(const struct wire *wire, const char *name,
                            bool high, const struct copies *beside)
{
    const uint64_t bytes = (uint64_t)16 << 20;
    void *from = rf_bench_memory(bytes), *to = rf_bench_memory(bytes);
    const cudaStream_t stream = new_stream(high), other = new_stream(false);
    const struct rf_stopwatch watch = rf_stopwatch_new();
    struct rf_samples samples = {.n = 0};
    send_to_self(wire, to, from, bytes, stream);
    finish(stream);
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (unsigned k = 0; beside != NULL && k < 4; k++) {
            run_copies(beside, other);
        }
        rf_stopwatch_begin(&watch, stream);
        send_to_self(wire, to, from, bytes, stream);
        rf_stopwatch_end(&watch, stream);
        rf_sample(&samples, rf_stopwatch_ms(&watch));
        finish(other);
    }
    rf_figure(name, "ms", 2 * bytes, 0, &samples);
    rf_bench_cuda(cudaFree(from), "cudaFree");
    rf_bench_cuda(cudaFree(to), "cudaFree");
}

static int do_priority(const char *argument)
{
    const uint64_t bytes = strtoull(argument, NULL, 10) << 20;
    struct copies copies;
    struct wire wire;
    struct rf_err err;
    struct rf_samples samples = {.n = 0};
    const struct rf_stopwatch watch = rf_stopwatch_new();
    const cudaStream_t stream = new_stream(false);
    if (bytes == 0 || bytes > (uint64_t)16384 << 20) {
        fputs("bench-gpu-wire: 1 to 16384 MiB to copy beside\n", stderr);
        return 2;
    }
    copies = new_copies(rf_bench_memory(2 * bytes), 2 * ROW,
                        rf_bench_memory(bytes), ROW, bytes);
    for (unsigned i = 0; i < ROUNDS; i++) {
        rf_stopwatch_begin(&watch, stream);
        run_copies(&copies, stream);
        rf_stopwatch_end(&watch, stream);
        rf_sample(&samples, rf_stopwatch_ms(&watch));
    }
    rf_figure("the copies alone", "ms", 2 * copies.bytes, 0, &samples);
    wire = open_wire(false);
    measure_message(&wire, "16 MiB message alone", false, NULL);
    measure_message(&wire, "16 MiB message beside copies", false, &copies);
    measure_message(&wire, "16 MiB message beside copies, high priority", true,
                    &copies);
    rf_bench_must(
        rf_device_pack_blocks(false, &copies.slices.most_blocks, &err), &err);
    measure_message(&wire, "16 MiB message beside a refit's copies", true,
                    &copies);
    nccl_must(&wire, "ncclCommAbort", wire.nccl->CommAbort(wire.comm));
    return 0;
}

/* --- steps --- */

enum { PACK, WIRE, UNPACK, STAGES };

static void report_step(uint64_t megabytes, uint64_t bytes, double memcpy_ms,
                        const struct rf_samples samples[STAGES + 1])
{
    static const char *const names[STAGES + 1] = {"pack", "wire", "unpack",
                                                  "all three"};
    for (int s = 0; s <= STAGES; s++) {
        char name[64];
        snprintf(name, sizeof(name), "%llu MB: %s",
                 (unsigned long long)megabytes, names[s]);
        rf_figure(name, "ms", s < STAGES ? 2 * bytes : 6 * bytes,
                  memcpy_ms * (s < STAGES ? 1 : 3) /
                      rf_samples_median(&samples[s]),
                  &samples[s]);
    }
}

/* What the device copies, so many times, while the host launches a step. */
struct busy {
    void *from, *to;
    unsigned times;
};

static void keep_busy(const struct busy *busy, cudaStream_t stream)
{
    for (unsigned i = 0; i < busy->times; i++) {
        rf_bench_cuda(cudaMemcpyAsync(busy->to, busy->from, BUSY_BYTES,
                                      cudaMemcpyDeviceToDevice, stream),
                      "cudaMemcpyAsync");
    }
}

/* Whether the device is still at that, and not at `after`, which follows it. If
 * not, it is to take longer next time. */
static bool is_busy(struct busy *busy, cudaEvent_t after)
{
    const cudaError_t code = cudaEventQuery(after);
    if (code == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return true;
    }
    rf_bench_cuda(code, "cudaEventQuery");
    busy->times *= 2;
    if (busy->times > BUSY_MOST) {
        fputs("bench-gpu-wire: the host launches too slowly to time steps\n",
              stderr);
        exit(1);
    }
    return false;
}

static void measure_step(const struct wire *wire, struct busy *busy,
                         uint64_t megabytes)
{
    const uint64_t bytes = megabytes * 1000000 / ROW * ROW;
    void *source = rf_bench_memory(2 * bytes), *out = rf_bench_memory(bytes);
    void *in = rf_bench_memory(bytes), *arena = rf_bench_memory(2 * bytes);
    const struct copies pack = new_copies(source, 2 * ROW, out, ROW, bytes);
    const struct copies unpack = new_copies(in, ROW, arena, 2 * ROW, bytes);
    const cudaStream_t stream = new_stream(false);
    struct rf_samples samples[STAGES + 1] = {{.n = 0}}, copied;
    struct rf_stopwatch watch[STAGES + 1];
    char figure[64];
    for (int s = 0; s <= STAGES; s++) {
        watch[s] = rf_stopwatch_new();
    }
    send_to_self(wire, in, out, bytes, stream);
    rf_bench_memcpy(in, out, bytes, stream, ROUNDS, &copied);
    snprintf(figure, sizeof(figure), "%llu MB: cudaMemcpyAsync",
             (unsigned long long)megabytes);
    rf_figure(figure, "ms", 2 * bytes, 1, &copied);
    while (samples[STAGES].n < ROUNDS) {
        keep_busy(busy, stream);
        rf_stopwatch_begin(&watch[STAGES], stream);
        rf_stopwatch_begin(&watch[PACK], stream);
        run_copies(&pack, stream);
        rf_stopwatch_end(&watch[PACK], stream);
        rf_stopwatch_begin(&watch[WIRE], stream);
        send_to_self(wire, in, out, bytes, stream);
        rf_stopwatch_end(&watch[WIRE], stream);
        rf_stopwatch_begin(&watch[UNPACK], stream);
        run_copies(&unpack, stream);
        rf_stopwatch_end(&watch[UNPACK], stream);
        rf_stopwatch_end(&watch[STAGES], stream);
        if (!is_busy(busy, watch[STAGES].begin)) {
            continue;
        }
        for (int s = 0; s <= STAGES; s++) {
            rf_sample(&samples[s], rf_stopwatch_ms(&watch[s]));
        }
    }
    report_step(megabytes, bytes, rf_samples_median(&copied), samples);
    rf_bench_cuda(cudaFree(source), "cudaFree");
    rf_bench_cuda(cudaFree(out), "cudaFree");
    rf_bench_cuda(cudaFree(in), "cudaFree");
    rf_bench_cuda(cudaFree(arena), "cudaFree");
}

static int do_steps(const char *argument)
{
    const struct wire wire = open_wire(false);
    struct busy busy = {rf_bench_memory(BUSY_BYTES),
                        rf_bench_memory(BUSY_BYTES), 1};
    while (*argument != '\0') {
        char *end;
        const unsigned long long megabytes = strtoull(argument, &end, 10);
        if (megabytes == 0 || megabytes > 16384 ||
            (*end != ',' && *end != '\0')) {
            fputs("bench-gpu-wire: sizes are 1 to 16384 MB\n", stderr);
            return 2;
        }
        measure_step(&wire, &busy, megabytes);
        argument = end + (*end == ',');
    }
    nccl_must(&wire, "ncclCommAbort", wire.nccl->CommAbort(wire.comm));
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name, *usual;
        int (*run)(const char *argument);
    } measurements[] = {{"group", "200", do_group},
                        {"priority", "1024", do_priority},
                        {"steps", "1,10,64,256", do_steps}};
    for (size_t i = 0; argc > 1 && argc < 4 && i < RF_ARRAY_SIZE(measurements);
         i++) {
        if (strcmp(measurements[i].name, argv[1]) == 0) {
            rf_bench_open_device();
            return measurements[i].run(argc > 2 ? argv[2]
                                                : measurements[i].usual);
        }
    }
    fputs("usage: bench-gpu-wire group [TIMES] | priority [MEBIBYTES] | "
          "steps [MB,...]\n",
          stderr);
    return 2;
}
