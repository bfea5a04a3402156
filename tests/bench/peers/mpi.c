/* Refits as one writes them with Open MPI. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "tests/bench/peers/peer.h"
#include "transport/codec/strided_copy.h"

#define ROOT 0

/* --- Isend and Irecv, one message an op ------------------------------------
 */

struct by_messages {
    struct peer_messages messages;
    MPI_Request *requests; /* receives, then sends */
};

static bool open_messages(const struct peer_env *env, bool pack_all,
                          void **state)
{
    struct by_messages *by = rf_xcalloc(1, sizeof(*by));
    peer_messages_make(env, pack_all, &by->messages);
    by->requests =
        rf_xcalloc(by->messages.n_sends + by->messages.n_receives + 1,
                   sizeof(MPI_Request));
    *state = by;
    return true;
}

static bool messages_open(const struct peer_env *env, void **state)
{
    return open_messages(env, false, state);
}

static bool packed_open(const struct peer_env *env, void **state)
{
    return open_messages(env, true, state);
}

static bool messages_run(void *state)
{
    struct by_messages *by = state;
    const struct peer_messages *all = &by->messages;
    MPI_Request *sends = by->requests + all->n_receives;
    for (size_t i = 0; i < all->n_receives; i++) {
        const struct peer_message *message = &all->receives[i];
        MPI_Irecv(message->at, (int)message->bytes, MPI_BYTE,
                  (int)message->op->src, (int)(message->op->id & 0x7fff),
                  MPI_COMM_WORLD, &by->requests[i]);
    }
    for (size_t i = 0; i < all->n_sends; i++) {
        const struct peer_message *message = &all->sends[i];
        peer_message_pack(all, message);
        MPI_Isend(message->at, (int)message->bytes, MPI_BYTE,
                  (int)message->op->dst, (int)(message->op->id & 0x7fff),
                  MPI_COMM_WORLD, &sends[i]);
    }
    peer_copy_local(all);
    for (size_t n = 0; n < all->n_receives; n++) {
        int i;
        MPI_Waitany((int)all->n_receives, by->requests, &i, MPI_STATUS_IGNORE);
        peer_message_unpack(all, &all->receives[i]);
    }
    MPI_Waitall((int)all->n_sends, sends, MPI_STATUSES_IGNORE);
    return true;
}

static void messages_close(void *state)
{
    struct by_messages *by = state;
    peer_messages_free(&by->messages);
    free(by->requests);
    free(by);
}

const struct peer peer_mpi_messages = {"mpi-messages", true, messages_open,
                                       messages_run, messages_close};
const struct peer peer_mpi_packed = {"mpi-packed", true, packed_open,
                                     messages_run, messages_close};

/* --- Alltoallw with derived types ------------------------------------------
 */

struct by_types {
    const struct peer_env *env;
    uint8_t *send_base, *recv_base;
    int *counts, *zeros;
    MPI_Datatype *sends, *receives; /* of each rank */
};

/* The box of an op in the memory of one side: vectors of vectors of runs. */
static MPI_Datatype box_type(const struct rf_op *op, bool source)
{
    struct rf_copy_shape shape;
    const uint64_t *stride = source ? shape.src_stride : shape.dst_stride;
    MPI_Datatype type, next;
    rf_copy_shape_of(op, &shape);
    MPI_Type_contiguous((int)shape.run_items, MPI_BYTE, &type);
    for (uint32_t d = shape.n_dims; d-- > 0;) {
        MPI_Type_create_hvector((int)shape.count[d], 1, (MPI_Aint)stride[d],
                                type, &next);
        MPI_Type_free(&type);
        type = next;
    }
    return type;
}

/* All that this rank sends to `peer`, or receives from it, as one type. */
static MPI_Datatype pair_type(const struct peer_env *env, uint32_t peer,
                              bool send)
{
    const struct rf_schedule *schedule = env->schedule;
    MPI_Datatype *types = rf_xcalloc(schedule->n_ops + 1, sizeof(*types));
    MPI_Aint *offsets = rf_xcalloc(schedule->n_ops + 1, sizeof(*offsets));
    int *ones = rf_xcalloc(schedule->n_ops + 1, sizeof(*ones));
    MPI_Datatype out = MPI_DATATYPE_NULL;
    int n = 0;
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        if (op->src == (send ? env->rank : peer) &&
            op->dst == (send ? peer : env->rank)) {
            types[n] = box_type(op, send);
            offsets[n] = (MPI_Aint)(send ? op->src_offset : op->dst_offset);
            ones[n++] = 1;
        }
    }
    if (n > 0) {
        MPI_Type_create_struct(n, ones, offsets, types, &out);
        MPI_Type_commit(&out);
    }
    for (int i = 0; i < n; i++) {
        MPI_Type_free(&types[i]);
    }
    free(types);
    free(offsets);
    free(ones);
    return out;
}

static bool types_open(const struct peer_env *env, void **state)
{
    struct by_types *by = rf_xcalloc(1, sizeof(*by));
    const size_t n = env->n_ranks;
    by->env = env;
    by->counts = rf_xcalloc(2 * n, sizeof(int));
    by->zeros = rf_xcalloc(n, sizeof(int));
    by->sends = rf_xcalloc(n, sizeof(MPI_Datatype));
    by->receives = rf_xcalloc(n, sizeof(MPI_Datatype));
    for (uint32_t r = 0; r < n; r++) {
        by->sends[r] = pair_type(env, r, true);
        by->receives[r] = pair_type(env, r, false);
        by->counts[r] = by->sends[r] != MPI_DATATYPE_NULL;
        by->counts[n + r] = by->receives[r] != MPI_DATATYPE_NULL;
        by->sends[r] = by->counts[r] ? by->sends[r] : MPI_BYTE;
        by->receives[r] = by->counts[n + r] ? by->receives[r] : MPI_BYTE;
    }
    *state = by;
    return true;
}

static bool types_run(void *state)
{
    struct by_types *by = state;
    const struct peer_env *env = by->env;
    return MPI_Alltoallw(env->arena[RF_MEM_TRAIN].base, by->counts, by->zeros,
                         by->sends, env->arena[RF_MEM_INFER].base,
                         by->counts + env->n_ranks, by->zeros, by->receives,
                         MPI_COMM_WORLD) == MPI_SUCCESS;
}

static void types_close(void *state)
{
    struct by_types *by = state;
    for (uint32_t r = 0; r < by->env->n_ranks; r++) {
        if (by->sends[r] != MPI_BYTE) {
            MPI_Type_free(&by->sends[r]);
        }
        if (by->receives[r] != MPI_BYTE) {
            MPI_Type_free(&by->receives[r]);
        }
    }
    free(by->counts);
    free(by->zeros);
    free(by->sends);
    free(by->receives);
    free(by);
}

const struct peer peer_mpi_types = {"mpi-types", true, types_open, types_run,
                                    types_close};

/* --- Gather to one rank, broadcast, slice ----------------------------------
 */

struct by_gather {
    const struct peer_env *env;
    uint64_t *shard_bytes; /* of each rank; 0: none of it is needed */
    uint8_t *shard;
};

static bool gather_open(const struct peer_env *env, void **state)
{
    struct by_gather *by = rf_xcalloc(1, sizeof(*by));
    uint64_t most = 1;
    by->env = env;
    by->shard_bytes = rf_xcalloc(env->n_ranks, sizeof(uint64_t));
    for (size_t i = 0; i < env->schedule->n_ops; i++) {
        uint32_t src = env->schedule->ops[i].src;
        by->shard_bytes[src] =
            rf_plan_layout(env->plan, RF_TRAIN, src)->arena_bytes;
    }
    MPI_Allreduce(MPI_IN_PLACE, by->shard_bytes, (int)env->n_ranks,
                  MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    for (uint32_t r = 0; r < env->n_ranks; r++) {
        most = RF_MAX(most, by->shard_bytes[r]);
    }
    by->shard = rf_xcalloc(most, 1);
    memset(by->shard, 1, most);
    *state = by;
    return true;
}

/* One shard: to the root, from there to all, and each takes its part. */
static void gather_shard(const struct by_gather *by, uint32_t owner)
{
    const struct peer_env *env = by->env;
    const int bytes = (int)by->shard_bytes[owner];
    uint8_t *shard = by->shard;
    if (owner == env->rank) {
        shard = env->arena[RF_MEM_TRAIN].base;
        if (env->rank != ROOT) {
            MPI_Send(shard, bytes, MPI_BYTE, ROOT, 0, MPI_COMM_WORLD);
        }
    } else if (env->rank == ROOT) {
        MPI_Recv(shard, bytes, MPI_BYTE, (int)owner, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }
    /* A broadcast writes to everyone but the root: the owner, which has the
     * bytes, takes them into the buffer. */
    MPI_Bcast(env->rank == ROOT ? shard : by->shard, bytes, MPI_BYTE, ROOT,
              MPI_COMM_WORLD);
    for (size_t i = 0; i < env->schedule->n_ops; i++) {
        const struct rf_op *op = &env->schedule->ops[i];
        if (op->src == owner && op->dst == env->rank) {
            peer_copy_op(env, op, shard);
        }
    }
}

static bool gather_run(void *state)
{
    const struct by_gather *by = state;
    for (uint32_t r = 0; r < by->env->n_ranks; r++) {
        if (by->shard_bytes[r] > 0) {
            gather_shard(by, r);
        }
    }
    return true;
}

static void gather_close(void *state)
{
    struct by_gather *by = state;
    free(by->shard_bytes);
    free(by->shard);
    free(by);
}

const struct peer peer_mpi_gather = {"mpi-gather", true, gather_open,
                                     gather_run, gather_close};
