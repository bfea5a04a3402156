/*
 * The copies of method ipc by round. See ipc_rounds.h.
 *
 * Every rank of the node makes the same list of rounds, including those in
 * which it sends nothing, so that all ranks count them alike.
 */
#include "cuda/ipc/ipc_rounds.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "cuda/device/events.h"
#include "planner/schedule/in_place.h"
#include "planner/schedule/peer_order.h"

#define OWN_BASES ((uint32_t)RF_MEM_COUNT)

/* Index in `bases` of a memory of a rank of this node; opens it if new. */
static enum rf_status base_for(struct rf_ipc_rounds *rounds, uint32_t rank,
                               uint8_t mem, uint32_t *out, struct rf_err *err)
{
    const uint32_t slot = rf_node_memory_slot(rounds->shm, rank);
    uint32_t *index = &rounds->base_index[slot * RF_MEM_COUNT + mem];
    if (slot == rounds->shm->self) {
        *out = mem;
        return RF_OK;
    }
    if (*index == RF_NONE) {
        if (rounds->n_bases == RF_MAX_BASES) {
            return rf_err_set(err, RF_ERR_UNSUPPORTED,
                              "rank %u sends to more than %u memories",
                              rounds->env->rank, RF_MAX_BASES - OWN_BASES);
        }
        RF_TRY(rf_ipc_open_arena(&rounds->peers[slot], mem, err));
        *index = rounds->n_bases;
        rounds->bases.at[rounds->n_bases++] = rounds->peers[slot].arena[mem];
    }
    *out = *index;
    return RF_OK;
}

static struct rf_ipc_round *round_of(struct rf_ipc_rounds *rounds,
                                     uint32_t round)
{
    for (size_t i = rounds->n; i-- > 0;) {
        if (rounds->at[i].round == round) {
            return &rounds->at[i];
        }
    }
    RF_PUSH(rounds->at, rounds->n, rounds->capacity,
            ((struct rf_ipc_round){.round = round}));
    return &rounds->at[rounds->n - 1];
}

/* An incoming op: counted, or viewed in the source's memory. */
static enum rf_status add_arrival(struct rf_ipc_rounds *rounds,
                                  const struct rf_op *op, struct rf_err *err)
{
    uint32_t base;
    enum rf_status status;
    if (!rf_in_place_in_slot(rounds->env->plan, op)) {
        rounds->received_bytes += op->src != op->dst ? rf_op_bytes(op) : 0;
        return RF_OK;
    }
    status = base_for(rounds, op->src, op->src_mem, &base, err);
    if (status == RF_OK) {
        RF_PUSH(
            rounds->aliases, rounds->n_aliases, rounds->aliases_capacity,
            ((struct rf_ipc_alias){.op = op, .base = rounds->bases.at[base]}));
    }
    return status;
}

/* Destination of the slices of one op. */
struct sorting {
    struct rf_ipc_rounds *rounds;
    struct rf_ipc_round *round;
    bool local;
};

/* Inside a device kernels are several times faster than an engine, and only
 * kernels cast. */
static void sort_slice(const struct rf_slice *slice, uint32_t cast, void *data)
{
    const struct sorting *sorting = data;
    struct rf_ipc_rounds *rounds = sorting->rounds;
    const uint64_t bytes = slice->width * slice->rows;
    struct rf_copies *copies =
        &sorting->round->host[sorting->local ? RF_IPC_LOCAL : RF_IPC_LINKS];
    if (!sorting->local && cast == RF_KERNEL_CAST_NONE &&
        rf_copy_engine_run_bytes(slice) >= rounds->choice.from_bytes) {
        rf_copy_engine_add(&sorting->round->engine, slice, &rounds->bases);
        rounds->engine_bytes += bytes;
        return;
    }
    rf_slices_add(cast != RF_KERNEL_CAST_NONE ? &copies->cast : &copies->plain,
                  *slice, cast);
    rounds->kernel_bytes += bytes;
}

/* Adds an op of ours unless it is a view. */
static enum rf_status add_copy(struct rf_ipc_rounds *rounds,
                               const struct rf_op *op, struct rf_err *err)
{
    const bool local = op->dst == op->src;
    struct sorting sorting = {
        .rounds = rounds, .round = round_of(rounds, op->round), .local = local};
    struct rf_op_place place = {.src_base = op->src_mem};
    if (rf_in_place_in_slot(rounds->env->plan, op)) {
        return RF_OK;
    }
    RF_TRY(base_for(rounds, op->dst, op->dst_mem, &place.dst_base, err));
    if (!rf_device_can_cast(rf_op_cast(op))) {
        return rf_device_no_cast(err);
    }
    if (rf_op_cast(op) != RF_CAST_NONE) {
        rounds->cast = rf_op_cast(op);
    }
    rounds->sent_bytes += local ? 0 : rf_op_bytes(op);
    rf_slices_of_op(op, &place, sort_slice, &sorting);
    return RF_OK;
}

/* Adds all rounds of the node, this rank's arrivals, then its copies in their
 * turns. */
static enum rf_status add_ops(struct rf_ipc_rounds *rounds, struct rf_err *err)
{
    const struct rf_schedule *schedule = rounds->env->schedule;
    const uint32_t rank = rounds->env->rank;
    const struct rf_op **ours;
    enum rf_status status = RF_OK;
    size_t n;
    for (size_t i = 0; status == RF_OK && i < schedule->n_ops; i++) {
        (void)round_of(rounds, schedule->ops[i].round);
        if (schedule->ops[i].dst == rank) {
            status = add_arrival(rounds, &schedule->ops[i], err);
        }
    }
    ours = rf_peer_order_of(schedule, rank, &n);
    for (size_t i = 0; status == RF_OK && i < n; i++) {
        status = add_copy(rounds, ours[i], err);
    }
    free(ours);
    return status;
}

static int by_round(const void *a, const void *b)
{
    const uint32_t x = ((const struct rf_ipc_round *)a)->round;
    const uint32_t y = ((const struct rf_ipc_round *)b)->round;
    return RF_COMPARE(x, y);
}

static enum rf_status upload(struct rf_ipc_rounds *rounds, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    if (rounds->n > 1) {
        qsort(rounds->at, rounds->n, sizeof(*rounds->at), by_round);
    }
    for (size_t r = 0; r < rounds->n; r++) {
        struct rf_ipc_round *round = &rounds->at[r];
        for (int w = 0; w < RF_IPC_WAYS && status == RF_OK; w++) {
            status = rf_device_copies_upload(&round->host[w], rounds->cast,
                                             round->copies[w], err);
            rf_slices_free(&round->host[w].plain);
            rf_slices_free(&round->host[w].cast);
        }
        if (status != RF_OK) {
            return status;
        }
        RF_CUDA_CHECK(err, cudaEventCreate(&round->begin));
        RF_CUDA_CHECK(err, cudaEventCreateWithFlags(&round->local_end,
                                                    cudaEventDisableTiming));
        RF_CUDA_CHECK(err, cudaEventCreateWithFlags(&round->engine_end,
                                                    cudaEventDisableTiming));
        RF_CUDA_CHECK(err, cudaEventCreate(&round->end));
    }
    return status;
}

enum rf_status rf_ipc_rounds_build(const struct rf_method_env *env,
                                   const struct rf_node_memory *shm,
                                   struct rf_ipc_peer *peers,
                                   const struct rf_ipc_choice *choice,
                                   struct rf_ipc_rounds *out,
                                   struct rf_err *err)
{
    const size_t places = (size_t)shm->n_peers * RF_MEM_COUNT;
    enum rf_status status;
    memset(out, 0, sizeof(*out));
    out->env = env;
    out->shm = shm;
    out->peers = peers;
    out->choice = *choice;
    out->n_bases = OWN_BASES;
    for (uint32_t m = 0; m < RF_MEM_COUNT; m++) {
        out->bases.at[m] = env->arena[m].base;
    }
    out->base_index = rf_xcalloc(places, sizeof(*out->base_index));
    memset(out->base_index, 0xFF, places * sizeof(*out->base_index));
    status = add_ops(out, err);
    return status == RF_OK ? upload(out, err) : status;
}

const void *rf_ipc_rounds_base_of(const struct rf_ipc_rounds *rounds,
                                  const struct rf_piece *piece,
                                  uint64_t stride[RF_BOX_DIMS])
{
    const struct rf_piece *pieces =
        rf_plan_layout(rounds->env->plan, RF_INFER, rounds->env->rank)->pieces;
    for (size_t i = 0; i < rounds->n_aliases; i++) {
        const struct rf_op *op = rounds->aliases[i].op;
        if (&pieces[op->dst_piece] == piece) {
            memcpy(stride, op->src_stride, sizeof(op->src_stride));
            return (const unsigned char *)rounds->aliases[i].base +
                   op->src_offset;
        }
    }
    return NULL;
}

void rf_ipc_rounds_free(struct rf_ipc_rounds *rounds)
{
    for (size_t r = 0; r < rounds->n; r++) {
        struct rf_ipc_round *round = &rounds->at[r];
        for (int w = 0; w < RF_IPC_WAYS; w++) {
            rf_slices_free(&round->host[w].plain);
            rf_slices_free(&round->host[w].cast);
            rf_device_slices_free(&round->copies[w][0]);
            rf_device_slices_free(&round->copies[w][1]);
        }
        rf_copy_engine_free(&round->engine);
        rf_event_free(round->begin);
        rf_event_free(round->local_end);
        rf_event_free(round->engine_end);
        rf_event_free(round->end);
    }
    free(rounds->base_index);
    free(rounds->at);
    free(rounds->aliases);
    memset(rounds, 0, sizeof(*rounds));
}
