/*
 * The carrier of ops over TCP: opening and dispatch. tcp_send.c and
 * tcp_receive.c move the bytes. See tcp_carrier.h.
 *
 * All buffers are allocated in open. Sockets are watched edge-triggered;
 * `readable` and `writable` stay set until a call returns EAGAIN, so that a
 * wake-up costs one system call and a busy link none.
 *
 * Failures: a broken connection is RF_ERR_PEER with the rank, one closed by the
 * peer RF_ERR_ABORTED, a breach of the protocol RF_ERR_PROTOCOL. The engine's
 * owner then aborts; close() closes every connection, which the peers notice.
 */
#include "transport/tcp/tcp_carrier.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/bytes.h"
#include "common/fd.h"
#include "common/mem.h"
#include "planner/schedule/peer_order.h"

/* --- opening -------------------------------------------------------------- */

static void add_op(struct rf_tcp_carrier *links, struct rf_link *link,
                   uint32_t action)
{
    const struct rf_flow *flow = links->engine->flow;
    uint32_t index = flow->actions[action].op;
    const struct rf_op *op = &flow->schedule->ops[index];
    struct rf_tcp_op entry = {.op = index, .action = action};
    rf_coder_of(op, links->engine->env->codec, &entry.coder);
    links->link_of[action] = (uint32_t)(link - links->links);
    links->place_of[action] = link->n_ops;
    RF_PUSH(link->ops, link->n_ops, link->ops_cap, entry);
}

/* Fills in, for each direction, the turn of each peer's link, or RF_NONE. Ranks
 * of a node send at the same time, so they start with different peers. The
 * order of receiving does not matter. */
static void number_turns(struct rf_tcp_carrier *links, uint32_t *turn[2],
                         uint32_t n[2])
{
    const struct rf_flow *flow = links->engine->flow;
    const struct rf_method_env *env = links->engine->env;
    const uint32_t n_ranks = env->plan->world->n_ranks;
    const uint32_t source = rf_peer_order_source(flow->schedule, env->rank);
    for (uint32_t i = 0; i < flow->n_actions; i++) {
        uint32_t peer;
        bool sends;
        if (rf_carried_here(links->engine, i, &peer, &sends)) {
            turn[sends][peer] = 0;
        }
    }
    n[false] = rf_peer_order_number(turn[false], n_ranks, 0);
    n[true] = rf_peer_order_number(turn[true], n_ranks, source);
}

/* Makes the links in the order of visits: sending and receiving alternately,
 * then the rest. `at` holds their turns and receives their indices. */
static void make_links(struct rf_tcp_carrier *links, uint32_t *at[2],
                       const uint32_t n[2])
{
    const uint32_t n_ranks = links->engine->env->plan->world->n_ranks;
    links->n_links = n[false] + n[true];
    links->links = rf_xcalloc(links->n_links, sizeof(*links->links));
    for (int sends = 0; sends < 2; sends++) {
        for (uint32_t peer = 0; peer < n_ranks; peer++) {
            uint32_t *index = &at[sends][peer];
            if (*index == RF_NONE) {
                continue;
            }
            *index += RF_MIN(*index + !sends, n[!sends]);
            links->links[*index] = (struct rf_link){.links = links,
                                                    .peer = peer,
                                                    .fd = -1,
                                                    .sends = sends != 0,
                                                    .current = RF_NONE};
        }
    }
}

static void find_links(struct rf_tcp_carrier *links)
{
    const struct rf_flow *flow = links->engine->flow;
    const uint32_t n_ranks = links->engine->env->plan->world->n_ranks;
    uint32_t *both = rf_xcalloc(n_ranks, 2 * sizeof(*both));
    uint32_t *at[2] = {both, both + n_ranks}, n[2];
    memset(both, 0xFF, 2 * sizeof(*both) * n_ranks);
    number_turns(links, at, n);
    make_links(links, at, n);
    links->link_of = rf_xcalloc(flow->n_actions, sizeof(*links->link_of));
    links->place_of = rf_xcalloc(flow->n_actions, sizeof(*links->place_of));
    for (uint32_t i = 0; i < flow->n_actions; i++) {
        uint32_t peer;
        bool sends;
        if (rf_carried_here(links->engine, i, &peer, &sends)) {
            add_op(links, &links->links[at[sends][peer]], i);
        }
    }
    free(both);
}

static bool needs_listener(const struct rf_tcp_carrier *links)
{
    for (uint32_t i = 0; i < links->n_links; i++) {
        if (!links->links[i].sends) {
            return true;
        }
    }
    return false;
}

static struct rf_datalink_how how_to_join(const struct rf_tcp_carrier *links)
{
    const struct rf_method_env *env = links->engine->env;
    return (struct rf_datalink_how){.sockets = links->sockets,
                                    .key = env->data_key,
                                    .rank = env->rank,
                                    .purpose = RF_DATALINK_OPS,
                                    .deadline_ns = env->deadline_ns,
                                    .abort = env->abort};
}

void *rf_tcp_carrier_over(const struct rf_datalink_sockets *sockets)
{
    struct rf_tcp_carrier *links = rf_xcalloc(1, sizeof(*links));
    links->sockets = sockets;
    links->listener = -1;
    return links;
}

static enum rf_status prepare(struct rf_engine *engine, void **carrier,
                              uint16_t *port, struct rf_err *err)
{
    struct rf_tcp_carrier *links =
        *carrier != NULL ? *carrier : rf_tcp_carrier_over(NULL);
    const struct rf_method_env *env = engine->env;
    const uint32_t node = env->plan->world->ranks[env->rank].node;
    struct rf_datalink_how how;
    links->engine = engine;
    *carrier = links;
    /* Needs only the flow's slots, which exist before the ranks have met. */
    find_links(links);
    if (!needs_listener(links)) {
        return RF_OK;
    }
    how = how_to_join(links);
    return rf_datalink_listen(&how, env->node_addresses[node], &links->listener,
                              port, err);
}

static void on_event(struct rf_watch *watch, uint32_t events)
{
    struct rf_link *link = rf_container_of(watch, struct rf_link, watch);
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
        link->readable = true;
    }
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) {
        link->writable = true;
    }
}

static enum rf_status allocate(struct rf_link *link, struct rf_err *err)
{
    bool ok;
    if (link->sends) {
        struct rf_tcp_batch *batch = rf_xcalloc(1, sizeof(*batch));
        link->batch = batch;
        link->ready.at = rf_calloc(link->n_ops, sizeof(*link->ready.at));
        batch->stage = rf_calloc(1, RF_TCP_STAGE_BYTES);
        batch->ends = rf_calloc(RF_TCP_STAGE_BYTES / RF_TCP_HEADER_BYTES,
                                sizeof(*batch->ends));
        ok = link->ready.at != NULL && batch->stage != NULL &&
             batch->ends != NULL;
        if (ok) {
            memset(batch->stage, 0, RF_TCP_STAGE_BYTES); /* touch the pages
                                                            now */
        }
    } else {
        link->notes_size = (uint64_t)link->n_ops * 2 * RF_TCP_NOTE_BYTES;
        link->notes = rf_calloc(1, link->notes_size);
        link->ahead = rf_calloc(1, RF_TCP_AHEAD_BYTES);
        ok = link->ahead != NULL && link->notes != NULL;
    }
    return ok ? RF_OK
              : rf_err_set(err, RF_ERR_NOMEM,
                           "buffers of the connection with rank %" PRIu32,
                           link->peer);
}

static enum rf_status open_links(void *carrier, struct rf_err *err)
{
    struct rf_tcp_carrier *links = carrier;
    const struct rf_method_env *env = links->engine->env;
    const struct rf_rank *ranks = env->plan->world->ranks;
    const struct rf_datalink_how how = how_to_join(links);
    enum rf_status status;
    links->ends = rf_xcalloc(links->n_links, sizeof(*links->ends));
    for (uint32_t i = 0; i < links->n_links; i++) {
        const struct rf_link *link = &links->links[i];
        links->ends[i] = (struct rf_datalink_end){
            .from = link->sends ? env->rank : link->peer,
            .to = link->sends ? link->peer : env->rank,
            .address = env->node_addresses[ranks[link->peer].node],
            .port = links->engine->shm->ports[link->peer],
            .fd = -1,
        };
    }
    status = rf_datalink_join(&how, links->listener, links->ends,
                              links->n_links, err);
    rf_fd_close(&links->listener);
    for (uint32_t i = 0; i < links->n_links && status == RF_OK; i++) {
        struct rf_link *link = &links->links[i];
        link->fd = links->ends[i].fd;
        link->watch.on_event = on_event;
        status = allocate(link, err);
        RF_THEN(status,
                rf_engine_watch(links->engine, link->fd, &link->watch, err));
    }
    return status;
}

static void close_links(void *carrier)
{
    struct rf_tcp_carrier *links = carrier;
    if (links == NULL) {
        return;
    }
    for (uint32_t i = 0; i < links->n_links; i++) {
        struct rf_link *link = &links->links[i];
        if (links->ends != NULL) {
            rf_fd_close(&links->ends[i].fd);
        }
        if (link->batch != NULL) {
            free(link->batch->stage);
            free(link->batch->ends);
        }
        free(link->batch);
        free(link->ready.at);
        free(link->ahead);
        free(link->notes);
        free(link->ops);
    }
    rf_fd_close(&links->listener);
    free(links->links);
    free(links->ends);
    free(links->link_of);
    free(links->place_of);
    free(links);
}

/* --- an iteration --------------------------------------------------------- */

static void send_action(void *carrier, uint32_t action)
{
    struct rf_tcp_carrier *links = carrier;
    rf_carried_push(&links->links[links->link_of[action]].ready,
                    links->place_of[action]);
}

static void admit_action(void *carrier, uint32_t action)
{
    struct rf_tcp_carrier *links = carrier;
    const struct rf_flow *flow = links->engine->flow;
    uint32_t recv = flow->of_op[flow->actions[action].op].recv;
    rf_tcp_note(&links->links[links->link_of[recv]], RF_TCP_ADMITTED,
                links->place_of[recv]);
}

static enum rf_status work(void *carrier, bool *worked, struct rf_err *err)
{
    struct rf_tcp_carrier *links = carrier;
    enum rf_status status = RF_OK;
    for (uint32_t i = 0; i < links->n_links && status == RF_OK; i++) {
        struct rf_link *link = &links->links[i];
        status = link->sends ? rf_tcp_send(link, worked, err)
                             : rf_tcp_receive(link, worked, err);
    }
    return status;
}

static bool idle(void *carrier)
{
    const struct rf_tcp_carrier *links = carrier;
    for (uint32_t i = 0; i < links->n_links; i++) {
        if (links->links[i].notes_at < links->links[i].notes_end) {
            return false; /* the sender may wait for a note */
        }
    }
    return true;
}

uint32_t rf_tcp_find(const struct rf_link *link, uint32_t id)
{
    const struct rf_flow *flow = link->links->engine->flow;
    const size_t op = rf_schedule_index(flow->schedule, id);
    uint32_t action, place;
    if (op == flow->schedule->n_ops) {
        return RF_NONE;
    }
    action = link->sends ? flow->of_op[op].send : flow->of_op[op].recv;
    place = action != RF_NONE ? link->links->place_of[action] : RF_NONE;
    return place < link->n_ops && link->ops[place].op == op ? place : RF_NONE;
}

enum rf_status rf_tcp_lost(const struct rf_link *link, int why,
                           struct rf_err *err)
{
    const enum rf_status status = rf_datalink_lost_status(why);
    return why == 0
               ? rf_err_set(err, status,
                            "rank %" PRIu32 " closed its data connection",
                            link->peer)
               : rf_err_errno(err, status, why,
                              "data connection with rank %" PRIu32, link->peer);
}

const struct rf_carrier_ops rf_carrier_links = {
    .prepare = prepare,
    .open = open_links,
    .send = send_action,
    .admit = admit_action,
    .work = work,
    .idle = idle,
    .close = close_links,
};
