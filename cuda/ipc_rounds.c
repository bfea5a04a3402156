/*
 * The copies of method ipc by round. See ipc_rounds.h.
 *
 * Every rank of the node makes the same list of rounds, also those in which it
 * sends nothing, so that counting them means the same to all.
 */
#include "cuda/ipc_rounds.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define OWN_BASES ((uint32_t)RF_MEM_COUNT)

/* Index in `bases` of a memory of a rank of this node, opening it if new. */
static enum rf_status base_for(struct rf_ipc_rounds *rounds, uint32_t rank,
                               uint8_t mem, uint32_t *out, struct rf_err *err)
{
    const uint32_t slot = rf_nodeshm_slot(rounds->shm, rank);
    uint32_t *index = &rounds->base_index[slot * RF_MEM_COUNT + mem];
    enum rf_status status = RF_OK;
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
        status = rf_ipc_open_arena(&rounds->peers[slot], mem, err);
        if (status != RF_OK) {
            return status;
        }
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

static enum rf_status add_op(struct rf_ipc_rounds *rounds,
                             const struct rf_op *op, struct rf_err *err)
{
    const uint32_t rank = rounds->env->rank;
    struct rf_ipc_round *round = round_of(rounds, op->round);
    struct rf_op_place place = {0};
    enum rf_status status;
    if (rf_ipc_is_view(rounds->env->plan, op)) {
        if (op->dst == rank) {
            status =
                base_for(rounds, op->src, op->src_mem, &place.src_base, err);
            if (status != RF_OK) {
                return status;
            }
            RF_PUSH(rounds->aliases, rounds->n_aliases,
                    rounds->aliases_capacity,
                    ((struct rf_ipc_alias){
                        .op = op, .base = rounds->bases.at[place.src_base]}));
        }
        return RF_OK;
    }
    if (op->dst == rank && op->src != rank) {
        rounds->received_bytes += rf_op_bytes(op);
    }
    if (op->src != rank) {
        return RF_OK;
    }
    place.src_base = op->src_mem;
    status = base_for(rounds, op->dst, op->dst_mem, &place.dst_base, err);
    if (status != RF_OK) {
        return status;
    }
    if (!rf_device_can_cast(op->cast)) {
        return rf_device_no_cast(err);
    }
    if (op->cast != RF_CAST_NONE) {
        rounds->cast = op->cast;
    }
    if (op->dst != rank) {
        rounds->sent_bytes += rf_op_bytes(op);
    }
    rf_slices_add_op(op->cast != RF_CAST_NONE ? &round->host.cast
                                              : &round->host.plain,
                     op, &place);
    return RF_OK;
}

static int by_round(const void *a, const void *b)
{
    const uint32_t x = ((const struct rf_ipc_round *)a)->round;
    const uint32_t y = ((const struct rf_ipc_round *)b)->round;
    return (x > y) - (x < y);
}

static enum rf_status upload(struct rf_ipc_rounds *rounds, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    if (rounds->n > 1) {
        qsort(rounds->at, rounds->n, sizeof(*rounds->at), by_round);
    }
    for (size_t r = 0; r < rounds->n; r++) {
        struct rf_ipc_round *round = &rounds->at[r];
        status = rf_device_copies_upload(&round->host, rounds->cast,
                                         round->copies, err);
        rf_slices_free(&round->host.plain);
        rf_slices_free(&round->host.cast);
        if (status != RF_OK) {
            return status;
        }
        RF_CUDA_TRY(err, out, cudaEventCreate(&round->begin));
        RF_CUDA_TRY(err, out, cudaEventCreate(&round->end));
    }
out:
    return status;
}

enum rf_status rf_ipc_rounds_build(const struct rf_method_env *env,
                                   const struct rf_nodeshm *shm,
                                   struct rf_ipc_peer *peers,
                                   struct rf_ipc_rounds *out,
                                   struct rf_err *err)
{
    const struct rf_schedule *schedule = env->schedule;
    const size_t places = (size_t)shm->n_peers * RF_MEM_COUNT;
    enum rf_status status = RF_OK;
    memset(out, 0, sizeof(*out));
    out->env = env;
    out->shm = shm;
    out->peers = peers;
    out->n_bases = OWN_BASES;
    for (uint32_t m = 0; m < RF_MEM_COUNT; m++) {
        out->bases.at[m] = env->arena[m].base;
    }
    out->base_index = rf_xcalloc(places, sizeof(*out->base_index));
    memset(out->base_index, 0xFF, places * sizeof(*out->base_index));
    for (size_t i = 0; status == RF_OK && i < schedule->n_ops; i++) {
        status = add_op(out, &schedule->ops[i], err);
    }
    return status == RF_OK ? upload(out, err) : status;
}

const void *rf_ipc_rounds_base_of(const struct rf_ipc_rounds *rounds,
                                  const struct rf_piece *piece,
                                  uint64_t stride[RF_BOX_DIMS])
{
    for (size_t i = 0; i < rounds->n_aliases; i++) {
        const struct rf_op *op = rounds->aliases[i].op;
        if (op->family == piece->family && op->dst_offset == piece->offset &&
            memcmp(&op->box, &piece->box, sizeof(op->box)) == 0) {
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
        rf_slices_free(&round->host.plain);
        rf_slices_free(&round->host.cast);
        rf_device_slices_free(&round->copies[0]);
        rf_device_slices_free(&round->copies[1]);
        if (round->begin != NULL) {
            cudaEventDestroy(round->begin);
        }
        if (round->end != NULL) {
            cudaEventDestroy(round->end);
        }
    }
    free(rounds->base_index);
    free(rounds->at);
    free(rounds->aliases);
    memset(rounds, 0, sizeof(*rounds));
}
