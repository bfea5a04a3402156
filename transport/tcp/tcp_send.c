/*
 * The sending end of a data connection. See tcp_carrier.h.
 *
 * Ready ops leave in ascending op id. Bytes are gathered into *batches* of
 * about 1 MiB: long runs point straight into the arena, headers and short or
 * cast rows are packed into a stage that stays in the cache. A batch is written
 * in full, by as many calls as needed, before the next is filled. Batches of
 * encoded chunks are shorter: the link carries one while the next is encoded.
 * An op is complete when the kernel has taken its last byte; with turns, when
 * the receiver's note arrives.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "transport/tcp/tcp_carrier.h"

/* --- batches -------------------------------------------------------------- */

/* Adds `bytes` at the end of the stage to the batch. */
static void add_staged(struct rf_tcp_batch *batch, uint64_t bytes)
{
    uint8_t *at = batch->stage + batch->staged;
    struct iovec *last =
        batch->n_iov > 0 ? &batch->iov[batch->n_iov - 1] : NULL;
    if (last != NULL && (uint8_t *)last->iov_base + last->iov_len == at) {
        last->iov_len += bytes;
    } else {
        batch->iov[batch->n_iov].iov_base = at;
        batch->iov[batch->n_iov++].iov_len = bytes;
    }
    batch->staged += bytes;
    batch->bytes += bytes;
}

/* Writes the header of a chunk of the current op. */
static void put_header(const struct rf_link *link, const struct rf_chunk *chunk,
                       uint8_t *out)
{
    const struct rf_engine *engine = link->links->engine;
    const struct rf_tcp_op *op = &link->ops[link->current];
    memset(out, 0, RF_TCP_HEADER_BYTES);
    rf_put_u32(out, engine->env->schedule->ops[op->op].id);
    rf_put_u32(out + 4, engine->flow->generation);
    rf_put_u64(out + 8, chunk->first);
    rf_put_u64(out + 16, chunk->items);
    rf_put_u64(out + 24, chunk->bytes);
    rf_put_u32(out + 32, op->coder.codec->number);
}

/* Adds the header of the current op if it is one chunk. */
static void add_header(struct rf_link *link)
{
    const struct rf_coder *coder = &link->ops[link->current].coder;
    const uint64_t items = coder->shape.total_items;
    const struct rf_chunk chunk = {.items = items,
                                   .bytes = items * coder->wire_item};
    if (coder->wire_item > 0) {
        put_header(link, &chunk, link->batch->stage + link->batch->staged);
        add_staged(link->batch, RF_TCP_HEADER_BYTES);
    }
}

static bool is_packed(const struct rf_coder *coder)
{
    const struct rf_copy_shape *shape = &coder->shape;
    return !coder->codec->source_view ||
           (shape->run_items * coder->wire_item < RF_TCP_PACK_BELOW &&
            shape->total_items > shape->run_items);
}

/* Bytes written that the receiver's kernel has not confirmed. */
static uint64_t queued_bytes(const struct rf_link *link)
{
    int bytes = 0;
    return ioctl(link->fd, SIOCOUTQ, &bytes) == 0 ? (uint64_t)bytes : 0;
}

/* Encodes as much of the current op as fits, at most up to the end of a chunk.
 */
static void add_encoded(struct rf_link *link, struct rf_chunk *chunk,
                        const void *src)
{
    const struct rf_tcp_op *of = &link->ops[link->current];
    struct rf_tcp_batch *batch = link->batch;
    const uint64_t head = of->coder.wire_item == 0 ? RF_TCP_HEADER_BYTES : 0;
    uint8_t *out = batch->stage + batch->staged;
    const int64_t before = rf_now_ns();
    chunk->bytes = RF_MIN(RF_TCP_WRITE_BYTES - batch->bytes,
                          RF_TCP_STAGE_BYTES - batch->staged);
    if (head > 0) {
        chunk->bytes = RF_CHUNK_BYTES;
        chunk->queued = queued_bytes(link);
    }
    of->coder.codec->encode(&of->coder, src, chunk, out + head);
    if (head > 0) {
        put_header(link, chunk, out);
    }
    add_staged(batch, head + chunk->bytes);
    rf_engine_spent(link->links->engine, RF_TRACE_PACK, before, of->op,
                    chunk->bytes);
}

/* Adds as much of the current op as fits. */
static void add_payload(struct rf_link *link)
{
    struct rf_engine *engine = link->links->engine;
    struct rf_tcp_batch *batch = link->batch;
    const struct rf_tcp_op *of = &link->ops[link->current];
    const struct rf_copy_shape *shape = &of->coder.shape;
    uint8_t *src = rf_engine_place_of(
        engine, &engine->env->schedule->ops[of->op], RF_COPY_SRC);
    struct rf_chunk chunk = {.first = link->current_at,
                             .items = shape->total_items - link->current_at};
    if (is_packed(&of->coder)) {
        add_encoded(link, &chunk, src);
    } else {
        const uint64_t room =
            (RF_TCP_WRITE_BYTES - batch->bytes) / of->coder.wire_item;
        const struct rf_copy_span span = {RF_COPY_SRC, src, chunk.first,
                                          RF_MIN(chunk.items, room)};
        batch->n_iov += rf_copy_iov(shape, &span, &batch->iov[batch->n_iov],
                                    RF_TCP_IOV - batch->n_iov, &chunk.items);
        chunk.bytes = chunk.items * of->coder.wire_item;
        batch->bytes += chunk.bytes;
    }
    link->current_at += chunk.items;
    rf_engine_sent(engine, link->peer, chunk.bytes);
}

/* Whether there is room for more of the current or of any op. */
static bool has_room(const struct rf_link *link)
{
    const struct rf_tcp_batch *batch = link->batch;
    const bool in_chunks = link->current != RF_NONE &&
                           link->ops[link->current].coder.wire_item == 0;
    /* 8: the widest item; anything less would add no payload. */
    const uint64_t least =
        RF_TCP_HEADER_BYTES + (in_chunks ? RF_CHUNK_BYTES : 8);
    const uint64_t most = in_chunks ? 2 * least : RF_TCP_WRITE_BYTES;
    return batch->bytes + least <= most &&
           batch->staged + least <= RF_TCP_STAGE_BYTES &&
           batch->n_iov + 2 <= RF_TCP_IOV;
}

/* Fills an empty batch; it stays empty if nothing is ready. */
static void fill_batch(struct rf_link *link)
{
    struct rf_tcp_batch *batch = link->batch;
    batch->n_iov = batch->iov_at = 0;
    batch->n_ends = batch->end_at = 0;
    batch->bytes = batch->sent = batch->staged = 0;
    while (has_room(link)) {
        if (link->current == RF_NONE) {
            if (link->ready.n == 0) {
                return;
            }
            link->current = rf_carried_pop(&link->ready);
            link->current_at = 0;
            add_header(link);
            continue;
        }
        add_payload(link);
        if (link->current_at ==
            link->ops[link->current].coder.shape.total_items) {
            batch->ends[batch->n_ends++] =
                (struct rf_tcp_end_mark){batch->bytes, link->current};
            link->current = RF_NONE;
        }
    }
}

/* The kernel has taken `n` more bytes. */
static void advance(struct rf_link *link, uint64_t n)
{
    struct rf_tcp_batch *batch = link->batch;
    struct rf_engine *engine = link->links->engine;
    batch->sent += n;
    while (n > 0) {
        struct iovec *iov = &batch->iov[batch->iov_at];
        uint64_t part = RF_MIN(n, iov->iov_len);
        iov->iov_base = (uint8_t *)iov->iov_base + part;
        iov->iov_len -= part;
        batch->iov_at += iov->iov_len == 0;
        n -= part;
    }
    while (batch->end_at < batch->n_ends &&
           batch->ends[batch->end_at].at <= batch->sent) {
        struct rf_tcp_op *op = &link->ops[batch->ends[batch->end_at++].index];
        op->sent = engine->flow->generation;
        if (!engine->flow->noted) {
            rf_engine_complete(engine, op->action);
        }
    }
}

/* --- notes from the receiver ---------------------------------------------- */

/* Completes an op on the receiver's note. False: the note is not due, which it
 * is, if sends have notes, once an iteration, after all of the op has been sent.
 */
static bool take_end(struct rf_engine *engine, struct rf_tcp_op *op)
{
    const uint32_t generation = engine->flow->generation;
    if (!engine->flow->noted || op->sent != generation ||
        op->taken == generation) {
        return false;
    }
    op->taken = generation;
    rf_engine_complete(engine, op->action);
    return true;
}

static enum rf_status take_note(struct rf_link *link, struct rf_err *err)
{
    struct rf_engine *engine = link->links->engine;
    const uint32_t kind = rf_get_u32(link->note_in);
    const uint32_t id = rf_get_u32(link->note_in + 4);
    const uint32_t index = rf_tcp_find(link, id);
    struct rf_tcp_op *op = index != RF_NONE ? &link->ops[index] : NULL;
    bool due = false;
    link->note_used = 0;
    if (op != NULL && kind == RF_TCP_ADMITTED) {
        due = rf_carried_admit(engine->flow, op->action, &op->admitted);
    } else if (op != NULL && kind == RF_TCP_TAKEN) {
        due = take_end(engine, op);
    }
    if (due) {
        return RF_OK;
    }
    return rf_err_set(err, RF_ERR_PROTOCOL,
                      "rank %" PRIu32 " sent a note about op %" PRIu32
                      " out of turn",
                      link->peer, id);
}

static enum rf_status read_notes(struct rf_link *link, bool *worked,
                                 struct rf_err *err)
{
    while (link->readable) {
        ssize_t n = recv(link->fd, link->note_in + link->note_used,
                         RF_TCP_NOTE_BYTES - link->note_used, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) {
            link->readable = false;
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n <= 0) {
            return rf_tcp_lost(link, n == 0 ? 0 : errno, err);
        } else {
            link->note_used += (size_t)n;
            *worked = true;
            if (link->note_used == RF_TCP_NOTE_BYTES) {
                RF_TRY(take_note(link, err));
            }
        }
    }
    return RF_OK;
}

/* --- writing -------------------------------------------------------------- */

/* The op of the next bytes to write. */
static uint32_t op_at_front(const struct rf_link *link)
{
    const struct rf_tcp_batch *batch = link->batch;
    uint32_t at = batch->end_at < batch->n_ends
                      ? batch->ends[batch->end_at].index
                      : link->current;
    return at != RF_NONE ? link->ops[at].op : RF_NONE;
}

enum rf_status rf_tcp_send(struct rf_link *link, bool *worked,
                           struct rf_err *err)
{
    struct rf_tcp_batch *batch = link->batch;
    struct rf_engine *engine = link->links->engine;
    enum rf_status status = read_notes(link, worked, err);
    uint64_t moved = 0;
    while (status == RF_OK && link->writable && moved < RF_TCP_TURN_BYTES) {
        struct msghdr message = {0};
        int64_t before;
        ssize_t n;
        if (batch->sent == batch->bytes) {
            fill_batch(link);
            if (batch->bytes == 0) {
                break;
            }
        }
        message.msg_iov = &batch->iov[batch->iov_at];
        message.msg_iovlen = batch->n_iov - batch->iov_at;
        before = rf_now_ns();
        n = sendmsg(link->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        rf_engine_spent(engine, RF_TRACE_SEND, before, op_at_front(link),
                        n > 0 ? (uint64_t)n : 0);
        if (n < 0 && errno == EAGAIN) {
            link->writable = false;
        } else if (n < 0 && errno != EINTR) {
            status = rf_tcp_lost(link, errno, err);
        } else if (n > 0) {
            advance(link, (uint64_t)n);
            moved += (uint64_t)n;
            *worked = true;
        }
    }
    return status;
}
