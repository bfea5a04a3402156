/* Cuts a plan into steps. See steps_build.h. */
#include "cuda/lockstep/steps_build.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "cuda/lockstep/pair.h"
#include "planner/schedule/peer_order.h"

/* The last group of a slot with ops here: its last step, and that of the slot's
 * groups before it, both counted from 1. */
struct group_steps {
    uint32_t group;
    size_t last, before;
};

struct sort_key {
    uint32_t round, peer, turn, id;
    bool sending;
    const struct rf_op *op;
};

static int by_round_turn_id(const void *a, const void *b)
{
    const struct sort_key *x = a, *y = b;
    int order = RF_COMPARE(x->round, y->round);
    order = RF_THEN_BY(order, RF_COMPARE(y->sending, x->sending));
    order = RF_THEN_BY(order, RF_COMPARE(x->turn, y->turn));
    return RF_THEN_BY(order, RF_COMPARE(x->id, y->id));
}

/* The ops of a rank by round, direction and peer; sends by the peer's turn
 * (peer_order.h). The caller frees it. */
static struct sort_key *collect(const struct rf_schedule *schedule,
                                uint32_t rank, size_t *n_out)
{
    struct sort_key *keys = NULL;
    uint32_t *turn_to = rf_peer_order_make(schedule, rank);
    size_t n = 0, capacity = 0;
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        if (op->src == rank || op->dst == rank) {
            const bool sending = op->src == rank;
            RF_PUSH(
                keys, n, capacity,
                ((struct sort_key){.round = op->round,
                                   .peer = sending ? op->dst : op->src,
                                   .turn = sending ? turn_to[op->dst] : op->src,
                                   .id = op->id,
                                   .sending = sending,
                                   .op = op}));
        }
    }
    free(turn_to);
    if (n > 1) {
        qsort(keys, n, sizeof(*keys), by_round_turn_id);
    }
    *n_out = n;
    return keys;
}

/* Of 16 parts of a bucket, 13 are for payload. Parts of ops have at most an
 * eighth of their message, so up to an eighth of a message stays empty. One
 * part is for pairs that exchange so little that their messages are not cut
 * into all waves. */
#define BUCKET_PARTS 16
#define FILLED_PARTS 13

static uint64_t aligned_bytes(const struct rf_op *op)
{
    return rf_align_up(rf_op_bytes(op), RF_SEGMENT_ALIGN);
}

/* The first step's packing and the last one's unpacking overlap with no wire,
 * so a rank has so many steps at least, if they can be so large. Smaller ones
 * cost more than they save: these bytes take 37 us on an H100's NVLink (450
 * GB/s, nominal), and a group costs the host 40 us. */
#define LEAST_STEPS 4
#define LEAST_STEP_BYTES (UINT64_C(16) << 20)

/* Bytes of an op that a rank packs or unpacks for the wire. */
static uint64_t packed_bytes(const struct rf_steps_of *of,
                             const struct sort_key *key)
{
    struct rf_copy_shape shape;
    const bool direct = rf_pair_is_direct(key->op, of->direct_bytes, &shape);
    return direct && (key->sending || !of->staged) ? 0 : aligned_bytes(key->op);
}

/* The most bytes of a step that a rank packs, or unpacks. */
static uint64_t most_packed(const struct rf_steps_of *of,
                            const struct sort_key *keys, size_t n)
{
    uint64_t bytes[2] = {0, 0};
    for (size_t i = 0; i < n; i++) {
        if (keys[i].peer != of->rank) {
            bytes[keys[i].sending] += packed_bytes(of, &keys[i]);
        }
    }
    return RF_MAX(rf_div_up(RF_MAX(bytes[0], bytes[1]), LEAST_STEPS),
                  LEAST_STEP_BYTES);
}

void rf_waves_count(const struct rf_steps_of *of, struct rf_waves *out)
{
    const uint64_t wave_bytes = of->bucket_bytes / BUCKET_PARTS * FILLED_PARTS;
    /* received, sent */
    uint64_t bytes[2] = {0, 0}, packed[2] = {0, 0}, limit;
    size_t n;
    struct sort_key *keys = collect(of->schedule, of->rank, &n);
    limit = most_packed(of, keys, n);
    *out = (struct rf_waves){NULL, 0, 0};
    for (size_t i = 0; i < n; i++) {
        const uint32_t round = keys[i].round;
        if (keys[i].peer != of->rank) {
            bytes[keys[i].sending] += aligned_bytes(keys[i].op);
            packed[keys[i].sending] += packed_bytes(of, &keys[i]);
        }
        if (i + 1 == n || keys[i + 1].round != round) {
            const uint64_t waves =
                RF_MAX(rf_div_up(RF_MAX(bytes[0], bytes[1]), wave_bytes),
                       rf_div_up(RF_MAX(packed[0], packed[1]), limit));
            if (waves > 1) {
                RF_PUSH(out->list, out->n, out->capacity,
                        ((struct rf_wave_count){round, (uint32_t)waves}));
            }
            bytes[0] = bytes[1] = packed[0] = packed[1] = 0;
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

/* The size of a message for the ops from keys[first] on with the same round,
 * direction and peer. */
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
    share =
        waves > 1 ? bytes / (RF_PAIR_PARTS - 1) * RF_PAIR_PARTS / waves : bytes;
    share = RF_MAX(share,
                   RF_MIN(of->bucket_bytes / BUCKET_PARTS, LEAST_STEP_BYTES) /
                       of->schedule->n_ranks);
    return RF_MAX(share / RF_SEGMENT_ALIGN * RF_SEGMENT_ALIGN,
                  (uint64_t)RF_SEGMENT_ALIGN);
}

static enum rf_status check_casts(const struct sort_key *keys, size_t n,
                                  struct rf_steps *out, struct rf_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const enum rf_cast cast = rf_op_cast(keys[i].op);
        if (!rf_device_can_cast(cast)) {
            return rf_device_no_cast(err);
        }
        out->cast = cast != RF_CAST_NONE ? cast : out->cast;
    }
    return RF_OK;
}

/* Actions of the steps so far that later ones wait for. */
struct history {
    const struct rf_steps_of *of;
    size_t *landed; /* by op of the schedule: the last step, from 1, in which
                       some of it arrives here; 0: not yet, or a local op; one
                       more for no op */
    struct group_steps groups[RF_IN_FLIGHT_MAX]; /* by slot */
};

/* The slot of a group, which becomes its last. */
static struct group_steps *enter_group(struct history *history, uint32_t group)
{
    struct group_steps *slot =
        &history->groups[group % history->of->schedule->in_flight];
    if (slot->group != group) {
        slot->group = group;
        slot->before = slot->last;
    }
    return slot;
}

/* The number of steps that an op waits for here. Its source was written by its
 * `dep`: in a step that must be unpacked, or by a copy on the packing stream,
 * which keeps its order. */
static size_t steps_before(struct history *history, const struct rf_op *op)
{
    const struct rf_schedule *schedule = history->of->schedule;
    size_t after = 0;
    if (op->src == history->of->rank && op->dep != RF_NO_OP) {
        after = history->landed[rf_schedule_index(schedule, op->dep)];
    }
    if (op->group != RF_NO_GROUP) {
        after = RF_MAX(after, enter_group(history, op->group)->before);
    }
    return after;
}

/* Notes that an op takes part in the first `steps` steps. */
static void note_steps(struct history *history, const struct rf_op *op,
                       size_t steps)
{
    if (op->dst == history->of->rank && op->src != op->dst) {
        history->landed[op - history->of->schedule->ops] = steps;
    }
    if (op->group != RF_NO_GROUP) {
        struct group_steps *slot = enter_group(history, op->group);
        slot->last = RF_MAX(slot->last, steps);
    }
}

/* Opens a round's first step; with `serialize` it waits for all before it. */
static void open_round(struct rf_pair *pair, const struct rf_steps_of *of,
                       uint32_t round)
{
    struct rf_steps *steps = pair->steps;
    pair->first_step = steps->n;
    pair->round = round;
    rf_step_at(steps, pair->first_step, round)->after =
        of->serialize ? pair->first_step : 0;
}

static void open_pair(struct rf_pair *pair, const struct rf_steps_of *of,
                      const struct sort_key *keys, size_t first, size_t n)
{
    pair->peer = keys[first].peer;
    pair->sending = keys[first].sending;
    pair->message_bytes = message_bytes(of, keys, first, n);
    pair->direct_bytes =
        pair->message_bytes >= of->direct_bytes ? of->direct_bytes : 0;
    pair->wave = 0;
}

/* Copies a round's local ops straight into place: evenly in the packing of all
 * its steps, so that the first step's wire need not wait for them all. */
static void add_local(const struct rf_pair *pair, struct history *history,
                      const struct sort_key *keys, size_t first, size_t end)
{
    const uint32_t rank = history->of->rank;
    const uint64_t waves = pair->steps->n - pair->first_step;
    uint64_t bytes = 0, done = 0;
    for (size_t i = first; i < end; i++) {
        bytes += keys[i].peer == rank ? rf_op_bytes(keys[i].op) : 0;
    }
    for (size_t i = first; i < end; i++) {
        const struct rf_op *op = keys[i].op;
        const struct rf_op_place place = {.src_base = op->src_mem,
                                          .dst_base = op->dst_mem};
        size_t at;
        struct rf_step *step;
        if (keys[i].peer != rank) {
            continue;
        }
        at = pair->first_step + done * waves / bytes;
        step = &pair->steps->at[at];
        step->after = RF_MAX(step->after, steps_before(history, op));
        note_steps(history, op, at + 1);
        rf_slices_add_op(rf_op_cast(op) != RF_CAST_NONE ? &step->pack.cast
                                                        : &step->pack.plain,
                         op, &place);
        done += rf_op_bytes(op);
    }
}

static void build(const struct rf_steps_of *of, const struct sort_key *keys,
                  size_t n, struct history *history, struct rf_steps *out)
{
    struct rf_pair pair = {.steps = out, .staged = of->staged};
    size_t first = 0; /* key of the round */
    for (size_t i = 0; i < n; i++) {
        const struct sort_key *key = &keys[i], *last = i > 0 ? key - 1 : NULL;
        const bool new_round = last == NULL || key->round != last->round;
        if (new_round) {
            add_local(&pair, history, keys, first, i);
            open_round(&pair, of, key->round);
            first = i;
        }
        if (key->peer == of->rank) {
            continue;
        }
        pair.after = steps_before(history, key->op);
        if (new_round || key->peer != last->peer ||
            key->sending != last->sending) {
            open_pair(&pair, of, keys, i, n);
        }
        rf_pair_add(&pair, key->op);
        note_steps(history, key->op, pair.first_step + pair.wave);
    }
    add_local(&pair, history, keys, first, n);
}

enum rf_status rf_steps_build(const struct rf_steps_of *of,
                              struct rf_steps *out, struct rf_err *err)
{
    struct history history = {.of = of};
    size_t n;
    struct sort_key *keys = collect(of->schedule, of->rank, &n);
    enum rf_status status;
    memset(out, 0, sizeof(*out));
    status = check_casts(keys, n, out, err);
    if (status != RF_OK) {
        free(keys);
        return status;
    }
    history.landed =
        rf_xcalloc(of->schedule->n_ops + 1, sizeof(*history.landed));
    for (size_t s = 0; s < RF_IN_FLIGHT_MAX; s++) {
        history.groups[s].group = RF_NO_GROUP;
    }
    build(of, keys, n, &history, out);
    free(history.landed);
    free(keys);
    for (size_t i = 0; i < out->n; i++) {
        const struct rf_step *step = &out->at[i];
        out->send_slot_bytes = RF_MAX(out->send_slot_bytes,
                                      rf_slot_end(step->sends, step->n_sends));
        out->recv_slot_bytes = RF_MAX(out->recv_slot_bytes,
                                      rf_slot_end(step->recvs, step->n_recvs));
    }
    return RF_OK;
}

/* Parses and checks a peer's list, in ascending rounds. */
static enum rf_status take_waves(const struct rf_blob *blob, uint32_t rank,
                                 struct rf_waves *out, struct rf_err *err)
{
    if (blob->size % sizeof(*out->list) != 0) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "rank %u: list of waves of %zu bytes", rank,
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
            return rf_err_set(
                err, RF_ERR_PROTOCOL,
                "rank %u: list of waves out of order, or round %u has %u", rank,
                out->list[i].round, out->list[i].waves);
        }
    }
    return RF_OK;
}

static enum rf_status exchange_waves(const struct rf_method_env *env,
                                     const struct rf_steps_of *of,
                                     struct rf_waves *waves, struct rf_err *err)
{
    const uint32_t n = env->plan->world->n_ranks;
    struct rf_blob *all = NULL;
    struct rf_waves mine;
    enum rf_status status;
    rf_waves_count(of, &mine);
    status = rf_share(env, mine.list, mine.n * sizeof(*mine.list), &all, err);
    for (uint32_t r = 0; status == RF_OK && r < n; r++) {
        status = take_waves(&all[r], r, &waves[r], err);
    }
    rf_waves_free(&mine);
    rf_shared_free(env, &all);
    return status;
}

enum rf_status rf_steps_open(const struct rf_method_env *env,
                             uint64_t direct_bytes, bool staged,
                             struct rf_steps *out, struct rf_err *err)
{
    const uint32_t n = env->plan->world->n_ranks;
    struct rf_waves *waves = rf_xcalloc(n, sizeof(*waves));
    const struct rf_steps_of of = {.schedule = env->schedule,
                                   .rank = env->rank,
                                   .bucket_bytes =
                                       env->plan->spec->bucket_bytes,
                                   .direct_bytes = direct_bytes,
                                   .staged = staged,
                                   .waves = waves,
                                   .serialize = env->plan->spec->serialize};
    enum rf_status status = exchange_waves(env, &of, waves, err);
    RF_THEN(status, rf_steps_build(&of, out, err));
    for (uint32_t r = 0; r < n; r++) {
        rf_waves_free(&waves[r]);
    }
    free(waves);
    return status;
}
