/*
 * A load that sends over TCP: rf_world_load_peers() says to whom. Each of a
 * rank's `cores` has a connection of its own to its peer, and a thread that
 * sends; as many threads take what arrives, each of the connections with its
 * number. Connections stay open from refit to refit, and what is in them when
 * the load stops stays there until it goes on.
 */
#include "worker/rank/load_network.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/fd.h"
#include "common/fd_limit.h"
#include "common/mem.h"

#define POLL_MS 10 /* until a thread looks at `stop` */

/* A connection's end, or errno `why` (0: end of stream). */
static void lose(struct rf_load_thread *thread,
                 const struct rf_datalink_end *end, int why)
{
    thread->status = rf_err_errno(
        &thread->err, rf_datalink_lost_status(why), why != 0 ? why : ECONNRESET,
        "load: connection from rank %" PRIu32 " to rank %" PRIu32, end->from,
        end->to);
}

/* The rest of the block, which counts once all of it is with the kernel. */
static uint64_t send_block(struct rf_load_thread *thread)
{
    const struct rf_datalink_end *end = thread->ends;
    while (!atomic_load_explicit(&thread->load->stop, memory_order_relaxed)) {
        const ssize_t n = send(end->fd, thread->buffer + thread->at,
                               RF_LOAD_BLOCK_BYTES - thread->at, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            lose(thread, end, errno);
            return 0;
        }
        if (n < 0) {
            (void)poll(thread->polled, 1, POLL_MS);
            continue;
        }
        thread->at += (uint64_t)n;
        if (thread->at == RF_LOAD_BLOCK_BYTES) {
            thread->at = 0;
            return RF_LOAD_BLOCK_BYTES;
        }
    }
    return 0;
}

/* Drops what arrives. */
static uint64_t drop(struct rf_load_thread *thread)
{
    (void)poll(thread->polled, thread->n_ends, POLL_MS);
    for (uint32_t i = 0; i < thread->n_ends && thread->status == RF_OK; i++) {
        const struct pollfd *polled = &thread->polled[i];
        ssize_t n;
        if (polled->revents == 0) {
            continue;
        }
        n = recv(polled->fd, thread->buffer, RF_LOAD_BLOCK_BYTES, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            lose(thread, &thread->ends[i], n == 0 ? 0 : errno);
        }
    }
    return 0;
}

/* A rank's links: to its peer, if it has one, and from the ranks whose peer it
 * is; each of its cores has these. Returns their number. */
static uint32_t find_links(const struct rf_method_env *env,
                           const struct rf_load_spec *spec,
                           struct rf_datalink_end *ends, bool *sends)
{
    const struct rf_world *world = env->plan->world;
    uint32_t *peers = rf_world_load_peers(world, spec);
    uint32_t n = 0;
    *sends = peers[env->rank] != RF_NONE;
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        if (peers[r] == env->rank || (r == env->rank && *sends)) {
            const uint32_t node = world->ranks[peers[r]].node;
            ends[n++] =
                (struct rf_datalink_end){.from = r,
                                         .to = peers[r],
                                         .address = env->node_addresses[node],
                                         .fd = -1};
        }
    }
    free(peers);
    return n;
}

/* Gives the connections of number `core` to the threads that work on them. */
static void give_links(struct rf_rank_load *load, size_t core,
                       const struct rf_datalink_end *ends, uint32_t n_ends,
                       uint32_t rank)
{
    struct rf_load_thread *sender = &load->threads[2 * core];
    struct rf_load_thread *receiver = sender + 1;
    for (uint32_t i = 0; i < n_ends; i++) {
        struct rf_load_thread *thread =
            ends[i].from == rank ? sender : receiver;
        thread->ends = rf_xrealloc(thread->ends, thread->n_ends + 1,
                                   sizeof(*thread->ends));
        thread->ends[thread->n_ends++] = ends[i];
    }
}

/* Listens for each core if ranks send to this one, and shares the ports:
 * ports[rank · cores + core]. */
static enum rf_status share_ports(const struct rf_method_env *env,
                                  const struct rf_datalink_how *how,
                                  uint32_t cores, bool receives, int *listeners,
                                  uint16_t *ports, struct rf_err *err)
{
    const struct rf_world *world = env->plan->world;
    uint16_t *mine = rf_xcalloc(cores, sizeof(*mine));
    enum rf_status status = RF_OK;
    for (uint32_t i = 0; i < cores && receives && status == RF_OK; i++) {
        status = rf_datalink_listen(
            how, env->node_addresses[world->ranks[env->rank].node],
            &listeners[i], &mine[i], err);
    }
    RF_THEN(status, rf_share_all(env, "ports of \"load\"", mine,
                                 cores * sizeof(*mine), ports, err));
    free(mine);
    return status;
}

static enum rf_status connect_all(struct rf_rank_load *load,
                                  const struct rf_method_env *env,
                                  const struct rf_load_spec *spec,
                                  struct rf_err *err)
{
    const struct rf_datalink_how how = {.key = env->data_key,
                                        .rank = env->rank,
                                        .purpose = RF_DATALINK_LOAD,
                                        .deadline_ns = env->deadline_ns,
                                        .abort = env->abort};
    const uint32_t n_ranks = env->plan->world->n_ranks, cores = spec->cores;
    struct rf_datalink_end *ends = rf_xcalloc(n_ranks, sizeof(*ends));
    uint16_t *ports = rf_xcalloc((size_t)n_ranks * cores, sizeof(*ports));
    int *listeners = rf_xcalloc(cores, sizeof(*listeners));
    bool sends;
    const uint32_t n_ends = find_links(env, spec, ends, &sends);
    enum rf_status status =
        rf_fd_limit_need(cores * (n_ends + (n_ends > sends)), 0, err);
    memset(listeners, 0xff, cores * sizeof(*listeners)); /* -1 */
    RF_THEN(status, share_ports(env, &how, cores, n_ends > sends, listeners,
                                ports, err));
    for (uint32_t core = 0; core < cores && status == RF_OK; core++) {
        for (uint32_t i = 0; i < n_ends; i++) {
            ends[i].port = ports[(size_t)ends[i].to * cores + core];
            ends[i].fd = -1;
        }
        status = rf_datalink_join(&how, listeners[core], ends, n_ends, err);
        if (status == RF_OK) {
            give_links(load, core, ends, n_ends, env->rank);
        }
        rf_fd_close(&listeners[core]);
    }
    for (uint32_t i = 0; i < cores; i++) {
        rf_fd_close(&listeners[i]); /* after a failure */
    }
    free(listeners);
    free(ports);
    free(ends);
    return status;
}

enum rf_status rf_rank_load_sends(const struct rf_load_spec *spec,
                                  const struct rf_method_env *env,
                                  struct rf_rank_load **out, struct rf_err *err)
{
    struct rf_rank_load *load;
    enum rf_status status;
    RF_TRY(rf_rank_load_new(spec, 2 * spec->cores, RF_LOAD_BLOCK_BYTES,
                            RF_LOAD_BLOCK_BYTES, &load, err));
    status = connect_all(load, env, spec, err);
    if (status != RF_OK) {
        rf_err_wrap(err, "connections of \"load\"");
        rf_rank_load_destroy(load);
        return status;
    }
    for (uint32_t i = 0; i < load->n_threads; i++) {
        struct rf_load_thread *thread = &load->threads[i];
        const bool sends = i % 2 == 0;
        if (thread->n_ends > 0) {
            thread->step = sends ? send_block : drop;
            thread->unpaced = !sends;
            thread->polled =
                rf_xcalloc(thread->n_ends, sizeof(*thread->polled));
        }
        for (uint32_t e = 0; e < thread->n_ends; e++) {
            thread->polled[e] = (struct pollfd){
                .fd = thread->ends[e].fd, .events = sends ? POLLOUT : POLLIN};
        }
    }
    if (!rf_world_loads(env->plan->world, spec, env->rank)) {
        rf_rank_load_destroy(load);
        load = NULL;
    }
    *out = load;
    return RF_OK;
}
