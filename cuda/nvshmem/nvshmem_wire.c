/* Puts and signals. See nvshmem_wire.h. */
#include "cuda/nvshmem/nvshmem_wire.h"

enum word { ARRIVED, ROOM, WORDS };

bool rf_nvshmem_wire_open(struct rf_nvshmem_wire *wire,
                          const struct rf_nvshmem *api,
                          const struct rf_nvshmem_table *table,
                          const struct rf_phases *phases)
{
    const size_t ranks = phases->env->plan->world->n_ranks;
    *wire = (struct rf_nvshmem_wire){
        .api = api,
        .table = table,
        .phases = phases,
        .words = api->nvshmem_calloc((size_t)WORDS * RF_BUFFER_SLOTS * ranks,
                                     sizeof(*wire->words))};
    return wire->words != NULL;
}

void rf_nvshmem_wire_close(struct rf_nvshmem_wire *wire)
{
    wire->api->nvshmem_free(wire->words);
    wire->words = NULL;
}

/* This rank's copy of the word for the pair with `rank`. The address is
 * symmetric: for a peer's copy, pass this rank instead. */
static uint64_t *word_of(const struct rf_nvshmem_wire *wire, enum word word,
                         uint64_t index, uint32_t rank)
{
    const uint32_t ranks = wire->phases->env->plan->world->n_ranks;
    return &wire->words[((uint64_t)word * RF_BUFFER_SLOTS +
                         index % RF_BUFFER_SLOTS) *
                            ranks +
                        rank];
}

/* The value of a word from the receiver's step `index` of this iteration on. */
static uint64_t value_of(const struct rf_nvshmem_wire *wire, uint64_t index)
{
    return wire->iteration * (wire->table->most_steps + 1) + index;
}

static bool first_of_peer(const struct rf_message *messages, size_t index)
{
    return index == 0 || messages[index - 1].peer != messages[index].peer;
}

static bool last_of_peer(const struct rf_message *messages, size_t n,
                         size_t index)
{
    return index + 1 == n || messages[index + 1].peer != messages[index].peer;
}

/* One put: its source and destination. */
struct put {
    const struct rf_message *message;
    const struct rf_nvshmem_place *place;
    const unsigned char *from;
    unsigned char *to;
};

static struct put put_of(const struct rf_nvshmem_wire *wire,
                         const struct rf_nvshmem_turn *turn, size_t index,
                         const struct rf_bases *bases)
{
    const struct rf_message *message =
        &wire->phases->steps->at[turn->local].sends[index];
    const struct rf_nvshmem_place *place = &turn->places[index];
    return (struct put){
        .message = message,
        .place = place,
        .from =
            (const unsigned char *)bases->at[message->base] + message->offset,
        .to = wire->phases->recv +
              place->index % RF_BUFFER_SLOTS * wire->phases->recv_slot_bytes +
              place->offset};
}

static void put_without_signal(const struct rf_nvshmem_wire *wire,
                               const struct put *put)
{
    wire->api->nvshmemx_putmem_nbi_on_stream(
        put->to, put->from, (size_t)put->message->bytes,
        (int)put->message->peer, wire->phases->stream[RF_NVSHMEM_PUT]);
}

static void put_with_signal(const struct rf_nvshmem_wire *wire,
                            const struct put *put)
{
    const uint32_t index = put->place->index;
    wire->api->nvshmemx_putmem_signal_on_stream(
        put->to, put->from, (size_t)put->message->bytes,
        word_of(wire, ARRIVED, index, wire->phases->env->rank),
        value_of(wire, index), RF_NVSHMEM_SIGNAL_SET, (int)put->message->peer,
        wire->phases->stream[RF_NVSHMEM_PUT]);
}

/* The first message to a peer waits until its slot is free. */
static void await_room(const struct rf_nvshmem_wire *wire,
                       const struct put *put)
{
    const uint32_t index = put->place->index;
    if (index >= RF_BUFFER_SLOTS) {
        wire->api->nvshmemx_signal_wait_until_on_stream(
            word_of(wire, ROOM, index, put->message->peer), RF_NVSHMEM_CMP_GE,
            value_of(wire, index), wire->phases->stream[RF_NVSHMEM_PUT]);
    }
}

/* A signal follows the bytes of its own put only, so all messages but the last
 * to each peer go first, and complete before any put with a signal. */
static void put_by_signals(const struct rf_nvshmem_wire *wire,
                           const struct rf_nvshmem_turn *turn,
                           const struct rf_bases *bases)
{
    const struct rf_step *step = &wire->phases->steps->at[turn->local];
    bool any = false;
    for (int signals = 0; signals < 2; signals++) {
        for (size_t m = 0; m < step->n_sends; m++) {
            const struct put put = put_of(wire, turn, m, bases);
            if (last_of_peer(step->sends, step->n_sends, m) != (signals == 1)) {
                continue;
            }
            if (first_of_peer(step->sends, m)) {
                await_room(wire, &put);
            }
            (signals == 1 ? put_with_signal : put_without_signal)(wire, &put);
            any = true;
        }
        if (signals == 0 && any) {
            wire->api->nvshmemx_quiet_on_stream(
                wire->phases->stream[RF_NVSHMEM_PUT]);
        }
    }
}

static void barrier(const struct rf_nvshmem_wire *wire)
{
    wire->api->nvshmemx_quiet_on_stream(wire->phases->stream[RF_NVSHMEM_PUT]);
    wire->api->nvshmemx_barrier_all_on_stream(
        wire->phases->stream[RF_NVSHMEM_PUT]);
}

enum rf_status rf_nvshmem_wire_put(const struct rf_nvshmem_wire *wire,
                                   const struct rf_nvshmem_turn *turn,
                                   struct rf_err *err)
{
    const struct rf_phases *phases = wire->phases;
    const size_t index = turn->local;
    const bool barriers = wire->table->share_device;
    struct rf_bases bases;
    enum rf_status status = rf_phases_follow(phases, RF_NVSHMEM_PUT, index,
                                             RF_DEVICE_PHASE_PACK, err);
    if (status == RF_OK && barriers && index > 0) {
        status = rf_phases_follow(phases, RF_NVSHMEM_PUT, index - 1,
                                  RF_DEVICE_PHASE_UNPACK, err);
    }
    RF_THEN(status, rf_phases_begin(phases, RF_NVSHMEM_PUT, index, err));
    if (status != RF_OK) {
        return status;
    }
    rf_phases_bases(phases, index, &bases);
    if (barriers) {
        for (size_t m = 0; m < wire->phases->steps->at[index].n_sends; m++) {
            const struct put put = put_of(wire, turn, m, &bases);
            put_without_signal(wire, &put);
        }
        barrier(wire);
    } else {
        put_by_signals(wire, turn, &bases);
    }
    return rf_phases_end(phases, RF_NVSHMEM_PUT, index, err);
}

/* Unpacking waits for all arrivals of its step, and for our own packing, which
 * may read bytes that it overwrites. */
enum rf_status rf_nvshmem_wire_await(const struct rf_nvshmem_wire *wire,
                                     size_t index, struct rf_err *err)
{
    const struct rf_phases *phases = wire->phases;
    const struct rf_step *step = &wire->phases->steps->at[index];
    const bool barriers = wire->table->share_device;
    enum rf_status status =
        rf_phases_follow(phases, RF_NVSHMEM_ARRIVE, index,
                         barriers ? RF_NVSHMEM_PUT : RF_DEVICE_PHASE_PACK, err);
    RF_THEN(status, rf_phases_begin(phases, RF_NVSHMEM_ARRIVE, index, err));
    for (size_t m = 0; m < step->n_recvs && status == RF_OK && !barriers; m++) {
        if (last_of_peer(step->recvs, step->n_recvs, m)) {
            wire->api->nvshmemx_signal_wait_until_on_stream(
                word_of(wire, ARRIVED, index, step->recvs[m].peer),
                RF_NVSHMEM_CMP_GE, value_of(wire, index),
                phases->stream[RF_NVSHMEM_ARRIVE]);
        }
    }
    return status == RF_OK
               ? rf_phases_end(phases, RF_NVSHMEM_ARRIVE, index, err)
               : status;
}

/* Tells the next senders into this step's slot that it is free. */
void rf_nvshmem_wire_make_room(const struct rf_nvshmem_wire *wire, size_t index)
{
    const size_t next = index + RF_BUFFER_SLOTS;
    const struct rf_step *step;
    if (next >= wire->phases->steps->n || wire->table->share_device) {
        return;
    }
    step = &wire->phases->steps->at[next];
    for (size_t m = 0; m < step->n_recvs; m++) {
        if (last_of_peer(step->recvs, step->n_recvs, m)) {
            wire->api->nvshmemx_signal_op_on_stream(
                word_of(wire, ROOM, next, wire->phases->env->rank),
                value_of(wire, next), RF_NVSHMEM_SIGNAL_SET,
                (int)step->recvs[m].peer,
                wire->phases->stream[RF_DEVICE_PHASE_UNPACK]);
        }
    }
}

void rf_nvshmem_wire_pass(const struct rf_nvshmem_wire *wire)
{
    if (wire->table->share_device) {
        barrier(wire);
    }
}
