/* Messages of one pair. See pair.h. */
#include "cuda/lockstep/pair.h"

#include <errno.h>
#include <stdlib.h>

#include "common/mem.h"
#include "transport/codec/strided_copy.h"

#define DIRECT_ALIGN 16
/* Packing and unpacking 4 MiB move it through the device's memory four times,
 * about 4 us on an H200; a message costs NCCL a few microseconds on each
 * channel, and NVSHMEM a call of the driver or of its proxy. Shorter runs are
 * cheaper in one message. */
#define DIRECT_BYTES (UINT64_C(4) << 20)

enum rf_status rf_direct_bytes(const char *wish, uint64_t *out,
                               struct rf_err *err)
{
    uint64_t bytes = DIRECT_BYTES;
    if (wish != NULL) {
        char *end;
        errno = 0;
        bytes = strtoull(wish, &end, 10);
        if (end == wish || *end != '\0' || *wish == '-' || errno != 0) {
            return rf_err_set(
                err, RF_ERR_CONFIG,
                RF_DIRECT_VARIABLE
                " is \"%.40s\", must be a number of bytes (0: pack all)",
                wish);
        }
    }
    *out = bytes;
    return RF_OK;
}

void rf_pair_split(const struct rf_op *op, uint64_t max_bytes,
                   void (*emit)(const struct rf_op *part, void *data),
                   void *data)
{
    uint64_t inner = rf_op_bytes(op), index[RF_BOX_DIMS] = {0};
    uint32_t cut = 0;
    uint64_t chunk;
    /* Cuts the first dimension whose single index fits into chunks; walks the
     * ones before it one by one. */
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

#define NO_MESSAGE SIZE_MAX

static void open_wave(struct rf_pair *pair)
{
    rf_step_at(pair->steps, pair->first_step + pair->wave, pair->round);
    pair->wave++;
    pair->used = 0;
    pair->packed = NO_MESSAGE;
    pair->last_direct.bytes = 0;
}

/* The step of the pair's wave; adds the op's dependency to it. */
static struct rf_step *current_step(const struct rf_pair *pair)
{
    struct rf_step *step = &pair->steps->at[pair->first_step + pair->wave - 1];
    step->after = RF_MAX(step->after, pair->after);
    return step;
}

static void count_bytes(struct rf_pair *pair, uint64_t bytes)
{
    pair->used = rf_align_up(pair->used + bytes, RF_SEGMENT_ALIGN);
    if (pair->sending) {
        pair->steps->sent_bytes += bytes;
    } else {
        pair->steps->received_bytes += bytes;
    }
}

static size_t add_message(const struct rf_pair *pair, struct rf_step *step,
                          const struct rf_message *message)
{
    if (pair->sending) {
        RF_PUSH(step->sends, step->n_sends, step->sends_capacity, *message);
        return step->n_sends - 1;
    }
    RF_PUSH(step->recvs, step->n_recvs, step->recvs_capacity, *message);
    return step->n_recvs - 1;
}

/* The wave's packed message; starts one at the end of its slot if needed. */
static struct rf_message *packed_message(struct rf_pair *pair,
                                         struct rf_step *step)
{
    if (pair->packed == NO_MESSAGE) {
        const struct rf_message fresh = {
            .peer = pair->peer,
            .base = pair->sending ? RF_BASE_SEND : RF_BASE_RECV,
            .offset = pair->sending ? rf_slot_end(step->sends, step->n_sends)
                                    : rf_slot_end(step->recvs, step->n_recvs)};
        pair->packed = add_message(pair, step, &fresh);
        pair->last_direct.bytes = 0;
    }
    return pair->sending ? &step->sends[pair->packed]
                         : &step->recvs[pair->packed];
}

static void add_copy(struct rf_copies *copies, const struct rf_op *op,
                     const struct rf_op_place *place, bool casts)
{
    rf_slices_add_op(casts ? &copies->cast : &copies->plain, op, place);
}

static void add_part(const struct rf_op *part, void *data)
{
    struct rf_pair *pair = data;
    const uint64_t bytes = rf_op_bytes(part);
    const bool casts = pair->sending ? rf_op_casts_at_source(part)
                                     : rf_op_casts_at_destination(part);
    struct rf_op_place place = {.src_base = part->src_mem,
                                .dst_base = part->dst_mem};
    struct rf_step *step;
    struct rf_message *message;
    uint64_t at;
    if (pair->wave == 0 || pair->used + bytes > pair->message_bytes) {
        open_wave(pair);
    }
    step = current_step(pair);
    message = packed_message(pair, step);
    at = rf_align_up(message->bytes, RF_SEGMENT_ALIGN);
    if (pair->sending) {
        place.dst_base = RF_BASE_SEND;
        place.packed_dst = true;
        place.dst_offset = message->offset + at;
        add_copy(&step->pack, part, &place, casts);
    } else {
        place.src_base = RF_BASE_RECV;
        place.packed_src = true;
        place.src_offset = message->offset + at;
        add_copy(&step->unpack, part, &place, casts);
    }
    message->bytes = at + bytes;
    count_bytes(pair, bytes);
}

/* Whether a run follows the last one at both ends, so that one message has
 * both. */
static bool continues(const struct rf_byte_run *last,
                      const struct rf_byte_run *run)
{
    return last->bytes > 0 && last->src_mem == run->src_mem &&
           last->dst_mem == run->dst_mem &&
           last->src + last->bytes == run->src &&
           last->dst + last->bytes == run->dst;
}

/* An empty message for a run, at the run's own memory or at the end of the
 * receive slot. */
static struct rf_message first_of_run(const struct rf_pair *pair,
                                      const struct rf_step *step,
                                      const struct rf_byte_run *run)
{
    struct rf_message message = {.peer = pair->peer};
    if (pair->sending) {
        message.base = run->src_mem;
        message.offset = run->src;
    } else if (pair->staged) {
        message.base = RF_BASE_RECV;
        message.offset = rf_slot_end(step->recvs, step->n_recvs);
    } else {
        message.base = run->dst_mem;
        message.offset = run->dst;
    }
    return message;
}

/* Adds the copy of a message's last run from the slot to its memory. */
static void unpack_run(struct rf_step *step, const struct rf_message *message,
                       const struct rf_byte_run *run)
{
    rf_slices_add(&step->unpack.plain,
                  (struct rf_slice){.src_base = RF_BASE_RECV,
                                    .dst_base = run->dst_mem,
                                    .src_offset = message->offset +
                                                  message->bytes - run->bytes,
                                    .dst_offset = run->dst,
                                    .src_pitch = run->bytes,
                                    .dst_pitch = run->bytes,
                                    .width = run->bytes,
                                    .rows = 1},
                  RF_CAST_NONE);
}

/* Adds a direct message to the current wave, or extends the last one. Bytes
 * packed after a staged message start a new message, since slots are filled in
 * order. */
static void add_direct(struct rf_pair *pair, const struct rf_byte_run *run)
{
    struct rf_step *step = current_step(pair);
    struct rf_message *message;
    if (continues(&pair->last_direct, run)) {
        pair->last_direct.bytes += run->bytes;
    } else {
        const struct rf_message first = first_of_run(pair, step, run);
        add_message(pair, step, &first);
        pair->last_direct = *run;
    }
    message = pair->sending ? &step->sends[step->n_sends - 1]
                            : &step->recvs[step->n_recvs - 1];
    message->bytes += run->bytes;
    if (pair->staged) {
        pair->packed = NO_MESSAGE;
        if (!pair->sending) {
            unpack_run(step, message, run);
        }
    }
    count_bytes(pair, run->bytes);
}

/* Cuts a run at the ends of waves. Less than an eighth of a wave stays empty if
 * the rest of the run does not fit in. */
static void add_run(struct rf_pair *pair, struct rf_byte_run run)
{
    while (run.bytes > 0) {
        const uint64_t rest = run.bytes;
        uint64_t room = pair->wave == 0 ? 0 : pair->message_bytes - pair->used;
        if (room < rest && room < pair->message_bytes / RF_PAIR_PARTS) {
            open_wave(pair);
            room = pair->message_bytes;
        }
        run.bytes = RF_MIN(rest, room);
        add_direct(pair, &run);
        run.src += run.bytes;
        run.dst += run.bytes;
        run.bytes = rest - run.bytes;
    }
}

bool rf_pair_is_direct(const struct rf_op *op, uint64_t least,
                       struct rf_copy_shape *shape)
{
    uint64_t addresses = op->src_offset | op->dst_offset;
    if (least == 0 || !rf_form_equal(op->from, op->to)) {
        return false;
    }
    rf_copy_shape_of(op, shape);
    for (uint32_t d = 0; d < shape->n_dims; d++) {
        addresses |= shape->src_stride[d] | shape->dst_stride[d];
    }
    return shape->run_items >= least && addresses % DIRECT_ALIGN == 0;
}

void rf_pair_add(struct rf_pair *pair, const struct rf_op *op)
{
    struct rf_copy_shape shape;
    if (!rf_pair_is_direct(op, pair->direct_bytes, &shape)) {
        rf_pair_split(op,
                      RF_MAX(pair->message_bytes / RF_PAIR_PARTS,
                             (uint64_t)RF_SEGMENT_ALIGN),
                      add_part, pair);
        return;
    }
    for (uint64_t i = 0; i < rf_copy_shape_runs(&shape); i++) {
        struct rf_byte_run run = {.src_mem = op->src_mem,
                                  .dst_mem = op->dst_mem,
                                  .bytes = shape.run_items};
        rf_copy_run_at(&shape, i, &run.src, &run.dst);
        run.src += op->src_offset;
        run.dst += op->dst_offset;
        add_run(pair, run);
    }
}
