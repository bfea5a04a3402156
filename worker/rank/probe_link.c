/*
 * Link probe: TCP goodput and small-message latency between pairs of ranks of
 * two nodes. See probe.h. No rank is in two pairs of a step, so each has at
 * most one link.
 *
 * Two connections with a thread each at both ends, 1 MiB writes from memory
 * that is in no cache unless all of it fits: as a good sender of weights would.
 * The receiver counts from its first bytes to its last, so that neither
 * clocks nor start-up matter. All ranks take part in the exchange; those in no
 * pair do nothing else.
 */
#include "worker/rank/probe.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/spawn.h"
#include "transport/tcp/datalink.h"

#define STREAMS ((size_t)2)
#define WRITE_BYTES ((size_t)1 << 20)
#define BUFFER_BYTES ((size_t)32 << 20) /* at most */
/* A receiver's first bytes, which do not count; always less than the total. */
#define FIRST_BYTES ((size_t)4 << 10)
#define PINGS 21
#define PING_BYTES 64
#define POLL_MS 100

struct stream {
    const struct rf_probe *probe;
    uint8_t *buffer;
    size_t buffer_bytes;
    uint64_t bytes;
    /* Receiver: size and time of the first bytes, time of the last. */
    uint64_t first_bytes;
    int64_t first_ns, last_ns;
    pthread_t thread;
    int fd;
    enum rf_status status;
    struct rf_err err;
    bool sends, started;
};

/* Waits for the socket; an abort or the deadline ends the wait. */
static enum rf_status wait_for(const struct stream *stream, short events,
                               struct rf_err *err)
{
    struct pollfd fd = {.fd = stream->fd, .events = events};
    for (;;) {
        if (atomic_load(stream->probe->env->abort)) {
            return rf_err_set(err, RF_ERR_ABORTED, "aborted");
        }
        if (rf_now_ns() > stream->probe->deadline_ns) {
            return rf_err_set(err, RF_ERR_TIMEOUT,
                              "the link probe took too long");
        }
        if (poll(&fd, 1, POLL_MS) > 0) {
            return RF_OK;
        }
    }
}

/* One send or receive of at most `size` bytes; waits until it moves some. */
static enum rf_status move_some(const struct stream *stream, bool sends,
                                void *data, size_t size, size_t *moved,
                                struct rf_err *err)
{
    for (;;) {
        ssize_t n = sends ? send(stream->fd, data, size, MSG_NOSIGNAL)
                          : recv(stream->fd, data, size, 0);
        if (n > 0) {
            *moved = (size_t)n;
            return RF_OK;
        }
        if (n == 0) {
            return rf_err_set(err, RF_ERR_PEER,
                              "the other rank closed the probe's connection");
        }
        if (errno != EAGAIN && errno != EINTR) {
            return rf_err_errno(err, RF_ERR_PEER, errno, "link probe");
        }
        RF_TRY(wait_for(stream, sends ? POLLOUT : POLLIN, err));
    }
}

static enum rf_status move_all(const struct stream *stream, bool sends,
                               void *data, size_t size, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (size_t at = 0, moved = 0; status == RF_OK && at < size; at += moved) {
        status = move_some(stream, sends, (uint8_t *)data + at, size - at,
                           &moved, err);
    }
    return status;
}

static void *run_stream(void *data)
{
    struct stream *stream = data;
    size_t at = 0, moved = 0;
    for (uint64_t done = 0; done < stream->bytes; done += moved) {
        size_t size = RF_MIN(WRITE_BYTES, stream->buffer_bytes - at);
        size = (size_t)RF_MIN((uint64_t)size, stream->bytes - done);
        if (done == 0 && !stream->sends) {
            size = RF_MIN(size, FIRST_BYTES);
        }
        stream->status = move_some(stream, stream->sends, stream->buffer + at,
                                   size, &moved, &stream->err);
        if (stream->status != RF_OK) {
            break;
        }
        stream->last_ns = rf_now_ns();
        if (done == 0) {
            stream->first_ns = stream->last_ns;
            stream->first_bytes = moved;
        }
        at = (at + moved) % stream->buffer_bytes;
    }
    return NULL;
}

static int compare_times(const void *a, const void *b)
{
    const int64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* Half the median round trip, measured by the receiver of the payload. */
static enum rf_status measure_latency(const struct stream *stream,
                                      double *latency_us, struct rf_err *err)
{
    uint8_t message[PING_BYTES] = {0};
    int64_t times[PINGS];
    enum rf_status status = RF_OK;
    for (int i = 0; status == RF_OK && i < PINGS; i++) {
        int64_t start_ns = rf_now_ns();
        status =
            move_all(stream, !stream->sends, message, sizeof(message), err);
        RF_THEN(status,
                move_all(stream, stream->sends, message, sizeof(message), err));
        times[i] = rf_now_ns() - start_ns;
    }
    if (status == RF_OK) {
        int64_t median_ns;
        qsort(times, PINGS, sizeof(times[0]), compare_times);
        median_ns = times[PINGS / 2];
        *latency_us = (double)median_ns / 2e3;
    }
    return status;
}

/* Measures both streams at once. */
static enum rf_status measure_goodput(struct stream streams[STREAMS],
                                      double *gbytes_per_s, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    int64_t first_ns = INT64_MAX, last_ns = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; status == RF_OK && i < STREAMS; i++) {
        int failed =
            pthread_create(&streams[i].thread, NULL, run_stream, &streams[i]);
        streams[i].started = failed == 0;
        if (failed != 0) {
            status =
                rf_err_errno(err, RF_ERR_IO, failed, "cannot start a thread%s",
                             rf_spawn_limits(failed));
        }
    }
    for (size_t i = 0; i < STREAMS; i++) {
        if (!streams[i].started) {
            continue;
        }
        pthread_join(streams[i].thread, NULL);
        if (status == RF_OK && streams[i].status != RF_OK) {
            status = streams[i].status;
            *err = streams[i].err;
        }
        first_ns = RF_MIN(first_ns, streams[i].first_ns);
        last_ns = RF_MAX(last_ns, streams[i].last_ns);
        bytes += streams[i].bytes - streams[i].first_bytes;
    }
    if (status == RF_OK) {
        int64_t took_ns = RF_MAX(last_ns - first_ns, (int64_t)1);
        *gbytes_per_s = (double)bytes / (double)took_ns;
    }
    return status;
}

/* The receiver's listeners: one per stream, because the connections of a pair
 * of ranks look alike. */
struct doors {
    int listeners[STREAMS]; /* -1 on other ranks */
    uint16_t ports[STREAMS];
};

static void close_doors(struct doors *doors)
{
    for (size_t i = 0; i < STREAMS; i++) {
        rf_fd_close(&doors->listeners[i]);
    }
}

static struct rf_datalink_how how_to_join(const struct rf_probe *probe)
{
    return (struct rf_datalink_how){.key = probe->env->data_key,
                                    .rank = probe->env->rank,
                                    .purpose = RF_DATALINK_PROBE,
                                    .deadline_ns = probe->deadline_ns,
                                    .abort = probe->env->abort};
}

/* Opens the listeners if this rank receives, then shares the ports. */
static enum rf_status share_doors(const struct rf_probe *probe,
                                  const struct rf_msg_link *mine,
                                  struct doors *doors, struct rf_err *err)
{
    const struct rf_datalink_how how = how_to_join(probe);
    const bool receives = mine != NULL && probe->env->rank == mine->to;
    uint16_t(*all)[STREAMS] = rf_xcalloc(probe->world->n_ranks, sizeof(*all));
    enum rf_status status = RF_OK;
    for (size_t i = 0; i < STREAMS; i++) {
        doors->listeners[i] = -1;
        doors->ports[i] = 0;
    }
    for (size_t i = 0; i < STREAMS && receives && status == RF_OK; i++) {
        status = rf_datalink_listen(
            &how,
            probe->env->node_addresses[probe->world->ranks[mine->to].node],
            &doors->listeners[i], &doors->ports[i], err);
    }
    RF_THEN(status, rf_share_all(probe->env, "ports", doors->ports,
                                 sizeof(doors->ports), all, err));
    if (status == RF_OK && mine != NULL) {
        memcpy(doors->ports, all[mine->to], sizeof(doors->ports));
    }
    free(all);
    return status;
}

static enum rf_status connect_streams(const struct rf_probe *probe,
                                      const struct rf_msg_link *mine,
                                      const struct doors *doors,
                                      struct stream streams[STREAMS],
                                      struct rf_err *err)
{
    const struct rf_datalink_how how = how_to_join(probe);
    const uint32_t node = probe->world->ranks[mine->to].node;
    for (size_t i = 0; i < STREAMS; i++) {
        struct rf_datalink_end end = {.from = mine->from,
                                      .to = mine->to,
                                      .address =
                                          probe->env->node_addresses[node],
                                      .port = doors->ports[i],
                                      .fd = -1};
        RF_TRY(rf_datalink_join(&how, doors->listeners[i], &end, 1, err));
        streams[i].fd = end.fd;
    }
    return RF_OK;
}

/* Bytes that each stream moves. Buffers are no larger, so that short probes
 * need little memory. */
static uint64_t stream_bytes(const struct rf_msg_link *mine)
{
    return RF_MAX(mine->bytes / STREAMS, (uint64_t)2 * FIRST_BYTES);
}

/* Measures at this end of the link; only the receiver's figures count. */
static enum rf_status probe_pair(const struct rf_probe *probe,
                                 const struct rf_msg_link *mine,
                                 const struct doors *doors,
                                 struct rf_msg_probed *seen, struct rf_err *err)
{
    struct stream streams[STREAMS];
    enum rf_status status;
    const uint64_t bytes = stream_bytes(mine);
    const size_t each = (size_t)RF_MIN(bytes, (uint64_t)BUFFER_BYTES);
    uint8_t *memory = mmap(NULL, STREAMS * each, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
        return rf_err_errno(err, RF_ERR_NOMEM, errno,
                            "buffers of the link probe");
    }
    memset(memory, 1, STREAMS * each);
    memset(streams, 0, sizeof(streams));
    for (size_t i = 0; i < STREAMS; i++) {
        streams[i].probe = probe;
        streams[i].fd = -1;
        streams[i].buffer = memory + i * each;
        streams[i].buffer_bytes = each;
        streams[i].bytes = bytes;
        streams[i].sends = probe->env->rank == mine->from;
    }
    status = connect_streams(probe, mine, doors, streams, err);
    RF_THEN(status, measure_latency(&streams[0], &seen->latency_us, err));
    RF_THEN(status, measure_goodput(streams, &seen->gbytes_per_s, err));
    for (size_t i = 0; i < STREAMS; i++) {
        rf_fd_close(&streams[i].fd);
    }
    munmap(memory, STREAMS * each);
    return status;
}

/* This rank's link; NULL: none. */
static enum rf_status find_mine(const struct rf_probe *probe,
                                const struct rf_msg_step *step,
                                const struct rf_msg_link **out,
                                struct rf_err *err)
{
    const uint32_t n_ranks = probe->world->n_ranks;
    const struct rf_msg_link *mine = NULL;
    bool twice = false;
    for (size_t i = 0; i < step->n_links; i++) {
        const struct rf_msg_link *link = &step->links[i];
        if (link->from >= n_ranks || link->to >= n_ranks ||
            link->from == link->to) {
            return rf_err_set(err, RF_ERR_PROTOCOL,
                              "link probe without two ranks");
        }
        if (link->from == probe->env->rank || link->to == probe->env->rank) {
            twice = mine != NULL;
            mine = link;
        }
        if (twice) {
            return rf_err_set(err, RF_ERR_PROTOCOL,
                              "link probe with rank %" PRIu32
                              " in two links at once",
                              probe->env->rank);
        }
    }
    *out = mine;
    return RF_OK;
}

enum rf_status rf_probe_link(const struct rf_probe *probe,
                             const struct rf_msg_step *step,
                             struct rf_msg_probed *out, struct rf_err *err)
{
    const struct rf_msg_link *mine = NULL;
    struct rf_msg_probed seen = *out;
    struct doors doors;
    enum rf_status status;
    RF_TRY(find_mine(probe, step, &mine, err));
    status = share_doors(probe, mine, &doors, err);
    if (status == RF_OK && mine != NULL) {
        status = probe_pair(probe, mine, &doors, &seen, err);
    }
    close_doors(&doors);
    if (status == RF_OK && mine != NULL && probe->env->rank == mine->to) {
        *out = seen;
    }
    if (status != RF_OK && mine != NULL) {
        rf_err_wrap(err, "link from rank %" PRIu32 " to rank %" PRIu32,
                    mine->from, mine->to);
    }
    return status;
}
