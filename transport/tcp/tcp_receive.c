/*
 * The receiving end of a data connection. See tcp_carrier.h.
 *
 * Long runs are read straight into the arena; the same call reads the following
 * bytes into the `ahead` buffer, which supplies the next headers and small ops
 * without a call each. Ops with short rows or a cast are read into `ahead` and
 * scattered from it.
 *
 * Every header is checked: the op must go from this peer to us, and the chunk
 * be the first of an op that is new in this iteration or the next of the
 * current one, and have a size that its items can have.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "transport/tcp/tcp_carrier.h"

/* More bytes would be copied twice if a large op follows. */
#define HEADER_READ_BYTES (UINT64_C(64) << 10)

/* --- notes to the sender -------------------------------------------------- */

void rf_tcp_note(struct rf_link *link, enum rf_tcp_note kind, uint32_t position)
{
    const struct rf_op *ops = link->links->engine->env->schedule->ops;
    uint8_t *at;
    if (link->notes_at == link->notes_end) {
        link->notes_at = link->notes_end = 0;
    }
    at = link->notes + link->notes_end;
    rf_put_u32(at, (uint32_t)kind);
    rf_put_u32(at + 4, ops[link->ops[position].op].id);
    link->notes_end += RF_TCP_NOTE_BYTES;
}

static enum rf_status write_notes(struct rf_link *link, struct rf_err *err)
{
    while (link->writable && link->notes_at < link->notes_end) {
        ssize_t n =
            send(link->fd, link->notes + link->notes_at,
                 link->notes_end - link->notes_at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            link->notes_at += (uint64_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            link->writable = false;
        } else if (n < 0 && errno != EINTR) {
            return rf_tcp_lost(link, errno, err);
        }
    }
    return RF_OK;
}

/* --- consuming the buffer ------------------------------------------------- */

static const struct rf_op *op_of(const struct rf_link *link)
{
    return &link->links->engine->env->schedule
                ->ops[link->ops[link->current].op];
}

static uint8_t *destination(const struct rf_link *link)
{
    return rf_engine_place_of(link->links->engine, op_of(link), RF_COPY_DST);
}

static bool is_scattered(const struct rf_link *link)
{
    const struct rf_coder *coder = &link->ops[link->current].coder;
    /* A read in place may end inside an item of several bytes. */
    return !coder->codec->destination_view || coder->wire_item != 1 ||
           coder->shape.run_items < RF_TCP_SCATTER_BELOW;
}

/* Whether a chunk is the next of a new op or of the current one. */
static bool is_due(const struct rf_link *link, uint32_t index,
                   const struct rf_chunk *chunk)
{
    const struct rf_tcp_op *op = &link->ops[index];
    const bool new = link->current == RF_NONE;
    const uint64_t first = new ? 0 : link->current_at;
    return (new ? op->received != link->links->engine->flow->generation
                : index == link->current) &&
           chunk->first == first && rf_coder_takes(&op->coder, chunk) &&
           (op->coder.wire_item == 0 ||
            chunk->items == op->coder.shape.total_items);
}

static enum rf_status take_header(struct rf_link *link, struct rf_err *err)
{
    const uint8_t *in = link->ahead + link->ahead_at;
    const uint32_t generation = link->links->engine->flow->generation;
    const uint32_t index = rf_tcp_find(link, rf_get_u32(in));
    const struct rf_chunk chunk = {.first = rf_get_u64(in + 8),
                                   .items = rf_get_u64(in + 16),
                                   .bytes = rf_get_u64(in + 24)};
    if (index == RF_NONE || rf_get_u32(in + 4) != generation ||
        rf_get_u32(in + 32) != link->ops[index].coder.codec->number ||
        !is_due(link, index, &chunk)) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "rank %" PRIu32 " sent op %" PRIu32 " (codec %" PRIu32
                          ") out of turn",
                          link->peer, rf_get_u32(in), rf_get_u32(in + 32));
    }
    link->ops[index].received = generation;
    link->ahead_at += RF_TCP_HEADER_BYTES;
    link->chunk = chunk;
    link->current = index;
    link->current_at = chunk.first;
    return RF_OK;
}

/* Counts what arrived of the current chunk; ends the op after its last item. */
static void count_arrived(struct rf_link *link, const struct rf_chunk *arrived)
{
    const struct rf_tcp_op *op = &link->ops[link->current];
    struct rf_engine *engine = link->links->engine;
    const uint32_t position = link->current;
    link->current_at += arrived->items;
    link->chunk.items -= arrived->items;
    rf_engine_received(engine, link->peer, arrived->bytes);
    if (link->current_at < op->coder.shape.total_items) {
        return;
    }
    link->current = RF_NONE;
    if (engine->flow->noted) {
        rf_tcp_note(link, RF_TCP_TAKEN, position);
    }
    rf_engine_complete(engine, op->action);
}

/* What the ahead buffer has of the current chunk and can be decoded: whole
 * items, or all of it. */
static struct rf_chunk held_of_chunk(const struct rf_link *link)
{
    const uint32_t item = link->ops[link->current].coder.wire_item;
    const uint64_t held = link->ahead_end - link->ahead_at;
    struct rf_chunk chunk = link->chunk;
    chunk.first = link->current_at;
    if (item > 0) {
        chunk.items = RF_MIN(held / item, chunk.items);
        chunk.bytes = chunk.items * item;
    } else if (held < chunk.bytes) {
        chunk.items = 0;
    }
    return chunk;
}

static enum rf_status decode(struct rf_link *link, const struct rf_chunk *chunk,
                             struct rf_err *err)
{
    const struct rf_tcp_op *op = &link->ops[link->current];
    const int64_t before = rf_now_ns();
    const char *wrong = op->coder.codec->decode(
        &op->coder, chunk, link->ahead + link->ahead_at, destination(link));
    if (wrong != NULL) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "rank %" PRIu32 " sent a chunk of op %" PRIu32 " %s",
                          link->peer, op_of(link)->id, wrong);
    }
    rf_engine_spent(link->links->engine, RF_TRACE_UNPACK, before, op->op,
                    chunk->bytes);
    link->ahead_at += chunk->bytes;
    count_arrived(link, chunk);
    return RF_OK;
}

/* Consumes headers, and items as far as they can be decoded, from the ahead
 * buffer. */
static enum rf_status take_ahead(struct rf_link *link, struct rf_err *err)
{
    for (;;) {
        struct rf_chunk chunk;
        if (link->chunk.items == 0) {
            if (link->ahead_end - link->ahead_at < RF_TCP_HEADER_BYTES) {
                return RF_OK;
            }
            RF_TRY(take_header(link, err));
        }
        chunk = held_of_chunk(link);
        if (chunk.items == 0) {
            return RF_OK;
        }
        RF_TRY(decode(link, &chunk, err));
    }
}

/* --- reading -------------------------------------------------------------- */

static ssize_t read_ahead(struct rf_link *link, uint64_t limit)
{
    uint64_t held = link->ahead_end - link->ahead_at;
    ssize_t n;
    memmove(link->ahead, link->ahead + link->ahead_at, held);
    link->ahead_at = 0;
    link->ahead_end = held;
    n = recv(link->fd, link->ahead + held, limit - held, MSG_DONTWAIT);
    link->ahead_end += n > 0 ? (uint64_t)n : 0;
    return n;
}

/* Reads into place, and bytes past the op into the (empty) ahead buffer. */
static ssize_t read_direct(struct rf_link *link)
{
    const struct rf_coder *coder = &link->ops[link->current].coder;
    const struct rf_copy_span span = {
        RF_COPY_DST, destination(link), link->current_at,
        RF_MIN(link->chunk.items, RF_TCP_WRITE_BYTES)};
    struct iovec iov[RF_TCP_IOV + 1];
    uint64_t items;
    size_t n_iov = rf_copy_iov(&coder->shape, &span, iov, RF_TCP_IOV, &items);
    ssize_t n;
    link->ahead_at = link->ahead_end = 0;
    if (items == link->chunk.items) {
        iov[n_iov++] = (struct iovec){link->ahead, HEADER_READ_BYTES};
    }
    n = readv(link->fd, iov, (int)n_iov);
    if (n > 0) {
        const uint64_t placed = RF_MIN((uint64_t)n, items);
        link->ahead_end = (uint64_t)n - placed;
        count_arrived(link,
                      &(struct rf_chunk){.items = placed, .bytes = placed});
    }
    return n;
}

static ssize_t read_some(struct rf_link *link)
{
    struct rf_engine *engine = link->links->engine;
    const uint32_t op =
        link->current != RF_NONE ? link->ops[link->current].op : RF_NONE;
    int64_t before = rf_now_ns();
    ssize_t n;
    if (link->chunk.items == 0) {
        n = read_ahead(link, HEADER_READ_BYTES);
    } else if (is_scattered(link)) {
        n = read_ahead(link, RF_TCP_AHEAD_BYTES);
    } else {
        n = read_direct(link);
    }
    rf_engine_spent(engine, RF_TRACE_RECEIVE, before, op,
                    n > 0 ? (uint64_t)n : 0);
    return n;
}

enum rf_status rf_tcp_receive(struct rf_link *link, bool *worked,
                              struct rf_err *err)
{
    uint64_t moved = 0;
    enum rf_status status = RF_OK;
    while (status == RF_OK && link->readable && moved < RF_TCP_TURN_BYTES) {
        ssize_t n = read_some(link);
        if (n < 0 && errno == EAGAIN) {
            link->readable = false;
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n <= 0) {
            return rf_tcp_lost(link, n == 0 ? 0 : errno, err);
        } else {
            moved += (uint64_t)n;
            *worked = true;
            status = take_ahead(link, err);
        }
    }
    return status == RF_OK ? write_notes(link, err) : status;
}
