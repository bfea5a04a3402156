/*
 * The receiving end of a data connection. See tcp_carrier.h.
 *
 * Long runs are read straight into the arena; the same call reads the following
 * bytes into the `ahead` buffer, which supplies the next headers and small ops
 * without a call each. Ops with short rows or a cast are read into `ahead` and
 * scattered from it.
 *
 * Every header is checked: the op must go from this peer to us, be new in this
 * iteration, and have exactly the schedule's bytes.
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
    const struct rf_tcp_op *op = &link->ops[link->current];
    return op->shape.cast != RF_CAST_NONE ||
           op->shape.run_items < RF_TCP_SCATTER_BELOW;
}

static enum rf_status take_header(struct rf_link *link, struct rf_err *err)
{
    const uint8_t *in = link->ahead + link->ahead_at;
    uint32_t generation = link->links->engine->flow->generation;
    uint32_t index = rf_tcp_find(link, rf_get_u32(in));
    struct rf_tcp_op *op = index == RF_NONE ? NULL : &link->ops[index];
    if (op == NULL || rf_get_u32(in + 4) != generation ||
        op->received == generation ||
        rf_get_u64(in + 8) != op->shape.total_items * op->wire_item) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "rank %" PRIu32 " sent op %" PRIu32 " out of turn",
                          link->peer, rf_get_u32(in));
    }
    op->received = generation;
    link->ahead_at += RF_TCP_HEADER_BYTES;
    link->current = index;
    link->current_at = 0;
    return RF_OK;
}

static void end_if_whole(struct rf_link *link)
{
    const struct rf_tcp_op *op = &link->ops[link->current];
    struct rf_engine *engine = link->links->engine;
    uint32_t position = link->current;
    if (link->current_at < op->shape.total_items) {
        return;
    }
    link->current = RF_NONE;
    engine->times.received_bytes += op->shape.total_items * op->wire_item;
    if (engine->flow->serialize) {
        rf_tcp_note(link, RF_TCP_TAKEN, position);
    }
    rf_engine_complete(engine, op->action);
}

/* Consumes whole headers and items from the ahead buffer. */
static enum rf_status take_ahead(struct rf_link *link, struct rf_err *err)
{
    struct rf_engine *engine = link->links->engine;
    for (;;) {
        uint64_t held = link->ahead_end - link->ahead_at;
        if (link->current == RF_NONE) {
            if (held < RF_TCP_HEADER_BYTES) {
                return RF_OK;
            }
            RF_TRY(take_header(link, err));
        } else {
            const struct rf_tcp_op *op = &link->ops[link->current];
            uint64_t n = RF_MIN(held / op->wire_item,
                                op->shape.total_items - link->current_at);
            int64_t before = rf_now_ns();
            if (n == 0) {
                return RF_OK;
            }
            rf_copy_unpack(&op->shape, link->current_at, n, destination(link),
                           link->ahead + link->ahead_at,
                           rf_op_casts_at_destination(op_of(link)));
            rf_engine_spent(engine, RF_TRACE_UNPACK, before, op->op,
                            n * op->wire_item);
            link->ahead_at += n * op->wire_item;
            link->current_at += n;
            end_if_whole(link);
        }
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

/* Reads into place, and bytes past the op into the (empty) ahead buffer. Items
 * are bytes here: ops with a cast are scattered. */
static ssize_t read_direct(struct rf_link *link)
{
    const struct rf_tcp_op *op = &link->ops[link->current];
    uint64_t left = op->shape.total_items - link->current_at, items;
    const struct rf_copy_span span = {RF_COPY_DST, destination(link),
                                      link->current_at,
                                      RF_MIN(left, RF_TCP_WRITE_BYTES)};
    struct iovec iov[RF_TCP_IOV + 1];
    size_t n_iov = rf_copy_iov(&op->shape, &span, iov, RF_TCP_IOV, &items);
    ssize_t n;
    link->ahead_at = link->ahead_end = 0;
    if (items == left) {
        iov[n_iov++] = (struct iovec){link->ahead, HEADER_READ_BYTES};
    }
    n = readv(link->fd, iov, (int)n_iov);
    if (n > 0) {
        uint64_t placed = RF_MIN((uint64_t)n, items);
        link->current_at += placed;
        link->ahead_end = (uint64_t)n - placed;
        end_if_whole(link);
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
    if (link->current == RF_NONE) {
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
