/* The limit of the memory, and this project's methods as peers. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "tests/bench/peers/peer.h"
#include "transport/codec/strided_copy.h"
#include "transport/method/method.h"

/* --- The limit: as many contiguous bytes as the plan has -------------------
 */

static bool copy_open(const struct peer_env *env, void **state)
{
    struct peer_env *kept = rf_xcalloc(1, sizeof(*kept));
    *kept = *env;
    *state = kept;
    return true;
}

static bool copy_run(void *state)
{
    const struct peer_env *env = state;
    const struct rf_arena *src = &env->arena[RF_MEM_TRAIN];
    const struct rf_arena *dst = &env->arena[RF_MEM_INFER];
    const uint64_t share = env->plan->totals.bytes_total / env->n_ranks;
    const uint64_t piece = 1 << 20;
    src = src->bytes > 0 ? src : dst;
    dst = dst->bytes > 0 ? dst : src;
    for (uint64_t done = 0; done < share && src->bytes > piece; done += piece) {
        rf_copy_streaming(
            (uint8_t *)dst->base + done % (dst->bytes - piece) / 64 * 64,
            (const uint8_t *)src->base + done % (src->bytes - piece) / 64 * 64,
            RF_MIN(piece, share - done));
    }
    rf_copy_fence();
    return true;
}

const struct peer peer_copy = {"copy", false, copy_open, copy_run, free};

/* --- Methods ---------------------------------------------------------------
 */

struct ours {
    const struct rf_method_ops *method;
    struct rf_method_env env;
    void *state;
    uint64_t iteration;
    atomic_bool abort;
};

static bool fail(const char *where, const struct rf_err *err)
{
    fprintf(stderr, "%s: %s\n", where, err->text);
    return false;
}

static enum rf_status exchange(void *data, const void *mine, size_t size,
                               struct rf_blob *all, struct rf_err *err)
{
    const struct peer_env *env = data;
    (void)err;
    for (uint32_t r = 0; r < env->n_ranks; r++) {
        uint64_t bytes = size;
        MPI_Bcast(&bytes, 1, MPI_UINT64_T, (int)r, MPI_COMM_WORLD);
        all[r].size = bytes;
        all[r].data = bytes > 0 ? rf_xcalloc(bytes, 1) : NULL;
        if (r == env->rank && bytes > 0) {
            memcpy(all[r].data, mine, size);
        }
        MPI_Bcast(all[r].data, (int)bytes, MPI_BYTE, (int)r, MPI_COMM_WORLD);
    }
    return RF_OK;
}

static bool ours_open(const struct peer_env *env, const char *name,
                      void **state)
{
    static const char *const addresses[] = {
        "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1",
        "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1"};
    struct ours *ours = rf_xcalloc(1, sizeof(*ours));
    struct rf_err err = {.text = ""};
    ours->env =
        (struct rf_method_env){.plan = env->plan,
                               .schedule = env->schedule,
                               .rank = env->rank,
                               .node_addresses = addresses,
                               .data_key = {1},
                               .deadline_ns = rf_now_ns() + 60 * RF_NS_PER_S,
                               .abort = &ours->abort,
                               .exchange = exchange,
                               .exchange_data = (void *)(uintptr_t)env};
    memcpy(ours->env.arena, env->arena, sizeof(env->arena));
    *state = ours;
    ours->method = rf_method_find(name, &err);
    if (ours->method == NULL ||
        ours->method->open(&ours->env, &ours->state, &err) != RF_OK) {
        return fail(name, &err);
    }
    return true;
}

static bool host_open(const struct peer_env *env, void **state)
{
    return ours_open(env, "host", state);
}

static bool tcp_open(const struct peer_env *env, void **state)
{
    return ours_open(env, "tcp", state);
}

static bool ours_run(void *state)
{
    struct ours *ours = state;
    struct rf_err err = {.text = ""};
    bool done = false;
    if (ours->method->start(ours->state, ours->iteration++, &err) != RF_OK) {
        return fail("start", &err);
    }
    while (!done) {
        if (ours->method->progress(ours->state, &done, &err) != RF_OK) {
            return fail("progress", &err);
        }
    }
    return true;
}

static void ours_close(void *state)
{
    struct ours *ours = state;
    ours->method->close(ours->state);
    free(ours);
}

const struct peer peer_host = {"host", false, host_open, ours_run, ours_close};
const struct peer peer_tcp = {"tcp", false, tcp_open, ours_run, ours_close};
