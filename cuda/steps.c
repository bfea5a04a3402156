/* Steps of a lockstep method. See steps.h. */
#include "cuda/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "cuda/turns.h"

void rf_op_split(const struct rf_op *op, uint64_t max_bytes,
                 void (*emit)(const struct rf_op *part, void *data), void *data)
{
    uint64_t inner = rf_op_bytes(op), index[RF_BOX_DIMS] = {0};
    uint32_t cut = 0;
    uint64_t chunk;
    /* The first dimension whose single index fits is cut into chunks, the ones
     * before it are walked one by one. */
    for (;; cut++) {
        inner /= op->box.extent[cut];
        if (inner <= max_bytes || cut + 1 == RF_BOX_DIMS) {
            break;
        }
    }
    chunk = RF_MAX(max_bytes / RF_MAX(inner, (uint64_t)1), (uint64_t)1);
    for (;;) {
        struct rf_op part = *op;
        uint32_t d = cut + 1;
        for (uint32_t k = 0; k <= cut; k++) {
            part.box.start[k] += index[k];
            part.src_offset += index[k] * op->src_stride[k];
            part.dst_offset += index[k] * op->dst_stride[k];
            part.box.extent[k] = 1;
        }
        part.box.extent[cut] = RF_MIN(chunk, op->box.extent[cut] - index[cut]);
        emit(&part, data);
        index[cut] += chunk - 1;
        while (d-- > 0) {
            if (++index[d] < op->box.extent[d]) {
                break;
            }
            index[d] = 0;
        }
        if (d == UINT32_MAX) {
            return;
        }
    }
}

/* One direction of one pair in one round, while it is cut into messages. */
struct pair {
    struct rf_steps *steps;
    size_t first_step; /* of the round */
    uint32_t round, peer;
    bool sending;
    uint64_t message_bytes;
    uint32_t wave;
    uint64_t used; /* of the current message */
};

static struct rf_step *step_at(struct rf_steps *steps, size_t index,
                               uint32_t round)
{
    while (steps->n <= index) {
        RF_PUSH(steps->at, steps->n, steps->capacity,
                ((struct rf_step){.round = round}));
    }
    return &steps->at[index];
}

static uint64_t slot_end(const struct rf_message *messages, size_t n)
{
    return n == 0 ? 0
                  : rf_align_up(messages[n - 1].offset + messages[n - 1].bytes,
                                RF_SEGMENT_ALIGN);
}

/* Opens the pair's next message at the end of the step's slot. */
static void open_message(struct pair *pair)
{
    struct rf_step *step =
        step_at(pair->steps, pair->first_step + pair->wave, pair->round);
    const struct rf_message fresh = {
        .peer = pair->peer,
        .offset = pair->sending ? slot_end(step->sends, step->n_sends)
                                : slot_end(step->recvs, step->n_recvs)};
    if (pair->sending) {
        RF_PUSH(step->sends, step->n_sends, step->sends_capacity, fresh);
    } else {
        RF_PUSH(step->recvs, step->n_recvs, step->recvs_capacity, fresh);
    }
    pair->wave++;
    pair->used = 0;
}

static void add_copy(struct rf_copies *copies, const struct rf_op *op,
                     const struct rf_op_place *place, bool casts)
{
    rf_slices_add_op(casts ? &copies->cast : &copies->plain, op, place);
}

static void add_part(const struct rf_op *part, void *data)
{
    struct pair *pair = data;
    const uint64_t bytes = rf_op_bytes(part);
    const bool casts = part->cast != RF_CAST_NONE &&
                       (part->cast_at_source != 0) == pair->sending;
    struct rf_op_place place = {.src_base = part->src_mem,
                                .dst_base = part->dst_mem};
    struct rf_step *step;
    struct rf_message *message;
    if (pair->wave == 0 || pair->used + bytes > pair->message_bytes) {
        open_message(pair);
    }
    step = &pair->steps->at[pair->first_step + pair->wave - 1];
    message = pair->sending ? &step->sends[step->n_sends - 1]
                            : &step->recvs[step->n_recvs - 1];
    if (pair->sending) {
        place.dst_base = RF_BASE_SEND;
        place.packed_dst = true;
        place.dst_offset = message->offset + pair->used;
        add_copy(&step->pack, part, &place, casts);
        pair->steps->sent_bytes += bytes;
    } else {
        place.src_base = RF_BASE_RECV;
        place.packed_src = true;
        place.src_offset = message->offset + pair->used;
        add_copy(&step->unpack, part, &place, casts);
        pair->steps->received_bytes += bytes;
    }
    message->bytes = pair->used + bytes;
    pair->used = rf_align_up(pair->used + bytes, RF_SEGMENT_ALIGN);
}

struct sort_key {
    uint32_t round, peer, turn, id;
    bool sending;
    const struct rf_op *op;
};

static int by_round_turn_id(const void *a, const void *b)
{
    const struct sort_key *x = a, *y = b;
    if (x->round != y->round) {
        return x->round < y->round ? -1 : 1;
    }
    if (x->sending != y->sending) {
        return x->sending ? -1 : 1;
    }
    if (x->turn != y->turn) {
        return x->turn < y->turn ? -1 : 1;
    }
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Ops that rank takes part in, by round, direction and turn (turns.h), so by
 * peer; to be freed. */
static struct sort_key *collect(const struct rf_schedule *schedule,
                                uint32_t rank, size_t *n_out)
{
    struct sort_key *keys = NULL;
    size_t n = 0, capacity = 0;
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        if (op->src == rank || op->dst == rank) {
            const bool sending = op->src == rank;
            RF_PUSH(keys, n, capacity,
                    ((struct sort_key){
                        .round = op->round,
                        .peer = sending ? op->dst : op->src,
                        .turn = rf_turn(op->src, op->dst, schedule->n_ranks),
                        .id = op->id,
                        .sending = sending,
                        .op = op}));
        }
    }
    if (n > 1) {
        qsort(keys, n, sizeof(*keys), by_round_turn_id);
    }
    *n_out = n;
    return keys;
}

/* Of 16 parts of a bucket, 13 are for the bytes themselves. Parts of ops have
 * at most an eighth of their message, so that up to that much of one stays
 * empty; and one part is for pairs that exchange so little that their messages
 * are not cut into all waves. */
#define BUCKET_PARTS 16
#define FILLED_PARTS 13
#define OPS_OF_MESSAGE 8

static uint64_t aligned_bytes(const struct rf_op *op)
{
    return rf_align_up(rf_op_bytes(op), RF_SEGMENT_ALIGN);
}

void rf_waves_count(const struct rf_schedule *schedule, uint32_t rank,
                    uint64_t bucket_bytes, struct rf_waves *out)
{
    const uint64_t wave_bytes = bucket_bytes / BUCKET_PARTS * FILLED_PARTS;
    uint64_t bytes[2] = {0, 0}; /* received, sent */
    size_t n;
    struct sort_key *keys = collect(schedule, rank, &n);
    *out = (struct rf_waves){NULL, 0, 0};
    for (size_t i = 0; i < n; i++) {
        const uint32_t round = keys[i].round;
        if (keys[i].peer != rank) {
            bytes[keys[i].sending] += aligned_bytes(keys[i].op);
        }
        if (i + 1 == n || keys[i + 1].round != round) {
            const uint64_t most = RF_MAX(bytes[0], bytes[1]);
            if (most > wave_bytes) {
                const uint64_t waves = (most + wave_bytes - 1) / wave_bytes;
                RF_PUSH(out->list, out->n, out->capacity,
                        ((struct rf_wave_count){round, (uint32_t)waves}));
            }
            bytes[0] = bytes[1] = 0;
        }
    }
    free(keys);
}

void rf_waves_free(struct rf_waves *waves)
{
    free(waves->list);
    *waves = (struct rf_waves){NULL, 0, 0};
}

static uint32_t waves_in(const struct rf_waves *waves, uint32_t round)
{
    size_t low = 0, high = waves->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (waves->list[middle].round < round) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < waves->n && waves->list[low].round == round
               ? waves->list[low].waves
               : 1;
}

/* How long a message may be of those that keys[first] begins: all of one
 * round, direction and peer. */
static uint64_t message_bytes(const struct rf_steps_of *of,
                              const struct sort_key *keys, size_t first,
                              size_t n)
{
    const struct sort_key *key = &keys[first];
    const uint32_t waves = RF_MAX(waves_in(&of->waves[of->rank], key->round),
                                  waves_in(&of->waves[key->peer], key->round));
    uint64_t bytes = 0, share;
    for (size_t i = first;
         i < n && keys[i].round == key->round && keys[i].peer == key->peer &&
         keys[i].sending == key->sending;
         i++) {
        bytes += aligned_bytes(keys[i].op);
    }
    share = waves > 1 ? bytes / (OPS_OF_MESSAGE - 1) * OPS_OF_MESSAGE / waves
                      : bytes;
    share =
        RF_MAX(share, of->bucket_bytes / BUCKET_PARTS / of->schedule->n_ranks);
    return RF_MAX(share / RF_SEGMENT_ALIGN * RF_SEGMENT_ALIGN,
                  (uint64_t)RF_SEGMENT_ALIGN);
}

static enum rf_status check_casts(const struct sort_key *keys, size_t n,
                                  struct rf_steps *out, struct rf_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t cast = keys[i].op->cast;
        if (!rf_device_can_cast(cast)) {
            return rf_device_no_cast(err);
        }
        out->cast = cast != RF_CAST_NONE ? cast : out->cast;
    }
    return RF_OK;
}

enum rf_status rf_steps_build(const struct rf_steps_of *of,
                              struct rf_steps *out, struct rf_err *err)
{
    const uint32_t rank = of->rank;
    struct pair pair = {.steps = out};
    size_t n;
    struct sort_key *keys = collect(of->schedule, rank, &n);
    enum rf_status status;
    memset(out, 0, sizeof(*out));
    status = check_casts(keys, n, out, err);
    if (status != RF_OK) {
        free(keys);
        return status;
    }
    for (size_t i = 0; i < n; i++) {
        const struct sort_key *key = &keys[i];
        if (i == 0 || key->round != keys[i - 1].round) {
            pair.first_step = out->n;
            pair.round = key->round;
            step_at(out, pair.first_step, key->round);
        }
        if (key->peer == rank) { /* stays here: straight into place */
            const struct rf_op_place place = {.src_base = key->op->src_mem,
                                              .dst_base = key->op->dst_mem};
            add_copy(&out->at[pair.first_step].pack, key->op, &place,
                     key->op->cast != RF_CAST_NONE);
            continue;
        }
        if (i == 0 || key->round != keys[i - 1].round ||
            key->peer != keys[i - 1].peer ||
            key->sending != keys[i - 1].sending) {
            pair.peer = key->peer;
            pair.sending = key->sending;
            pair.message_bytes = message_bytes(of, keys, i, n);
            pair.wave = 0;
        }
        rf_op_split(key->op,
                    RF_MAX(pair.message_bytes / OPS_OF_MESSAGE,
                           (uint64_t)RF_SEGMENT_ALIGN),
                    add_part, &pair);
    }
    free(keys);
    for (size_t i = 0; i < out->n; i++) {
        const struct rf_step *step = &out->at[i];
        out->send_slot_bytes =
            RF_MAX(out->send_slot_bytes, slot_end(step->sends, step->n_sends));
        out->recv_slot_bytes =
            RF_MAX(out->recv_slot_bytes, slot_end(step->recvs, step->n_recvs));
    }
    return RF_OK;
}

/* A peer's list, in ascending rounds as it was made. */
static enum rf_status take_waves(const struct rf_blob *blob, uint32_t rank,
                                 struct rf_waves *out, struct rf_err *err)
{
    if (blob->size % sizeof(*out->list) != 0) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "rank %u: its list of waves has %zu bytes", rank,
                          blob->size);
    }
    out->n = blob->size / sizeof(*out->list);
    out->list = rf_xcalloc(out->n + 1, sizeof(*out->list));
    if (out->n > 0) {
        memcpy(out->list, blob->data, blob->size);
    }
    for (size_t i = 0; i < out->n; i++) {
        if (out->list[i].waves < 2 ||
            (i > 0 && out->list[i].round <= out->list[i - 1].round)) {
            return rf_err_set(err, RF_ERR_PROTOCOL,
                              "rank %u: its list of waves is not in order, or "
                              "round %u has %u",
                              rank, out->list[i].round, out->list[i].waves);
        }
    }
    return RF_OK;
}

static enum rf_status exchange_waves(const struct rf_method_env *env,
                                     struct rf_waves *waves, struct rf_err *err)
{
    const uint32_t n = env->plan->world->n_ranks;
    struct rf_blob *all = rf_xcalloc(n, sizeof(*all));
    struct rf_waves mine;
    enum rf_status status;
    rf_waves_count(env->schedule, env->rank, env->plan->spec->bucket_bytes,
                   &mine);
    status = env->exchange(env->exchange_data, mine.list,
                           mine.n * sizeof(*mine.list), all, err);
    for (uint32_t r = 0; status == RF_OK && r < n; r++) {
        status = take_waves(&all[r], r, &waves[r], err);
    }
    rf_waves_free(&mine);
    rf_blobs_free(all, n);
    free(all);
    return status;
}

enum rf_status rf_steps_open(const struct rf_method_env *env,
                             struct rf_steps *out, struct rf_err *err)
{
    const uint32_t n = env->plan->world->n_ranks;
    struct rf_waves *waves = rf_xcalloc(n, sizeof(*waves));
    const struct rf_steps_of of = {.schedule = env->schedule,
                                   .rank = env->rank,
                                   .bucket_bytes =
                                       env->plan->spec->bucket_bytes,
                                   .waves = waves};
    enum rf_status status = exchange_waves(env, waves, err);
    if (status == RF_OK) {
        status = rf_steps_build(&of, out, err);
    }
    for (uint32_t r = 0; r < n; r++) {
        rf_waves_free(&waves[r]);
    }
    free(waves);
    return status;
}

void rf_steps_free(struct rf_steps *steps)
{
    for (size_t i = 0; i < steps->n; i++) {
        struct rf_step *step = &steps->at[i];
        rf_slices_free(&step->pack.plain);
        rf_slices_free(&step->pack.cast);
        rf_slices_free(&step->unpack.plain);
        rf_slices_free(&step->unpack.cast);
        free(step->sends);
        free(step->recvs);
    }
    free(steps->at);
    *steps = (struct rf_steps){0};
}

static bool has_peer(const struct rf_message *messages, size_t n, uint32_t peer)
{
    for (size_t i = 0; i < n; i++) {
        if (messages[i].peer == peer) {
            return true;
        }
    }
    return false;
}

void rf_step_peers(const struct rf_step *step, char *out, size_t size)
{
    uint32_t last = 0;
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < step->n_sends; i++) {
        last = RF_MAX(last, step->sends[i].peer);
    }
    for (size_t i = 0; i < step->n_recvs; i++) {
        last = RF_MAX(last, step->recvs[i].peer);
    }
    for (uint32_t r = 0; r <= last && used < size; r++) {
        if (has_peer(step->sends, step->n_sends, r) ||
            has_peer(step->recvs, step->n_recvs, r)) {
            used += (size_t)snprintf(out + used, size - used, "%s%u",
                                     used > 0 ? ", " : "", r);
        }
    }
}
