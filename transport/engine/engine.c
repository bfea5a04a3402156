/*
 * Running a node's flow on one rank. See engine.h.
 *
 * progress() loops over actions handed out by other ranks, the carrier, our own
 * copies and one shared portion. When nothing moves, it sleeps in epoll until
 * the doorbell, a socket or the death of a peer wakes it, at most SLICE_NS in
 * one call. A rank is done when its own actions are complete and the node has
 * no unfinished shared portion: all its ranks work on those.
 *
 * Failures: an error of the carrier, the death of a process of the node
 * (RF_ERR_PEER with the rank), or an abort by the caller or a rank of the node.
 * None of them closes anything; the caller calls abort and close.
 */
#include "transport/engine/engine.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/mem.h"

#define SLICE_NS (5 * RF_NS_PER_MS)
#define YIELDS 16
#define EVENTS 64

/* Watches one peer process for its death. */
struct rf_engine_death {
    struct rf_watch watch;
    struct rf_engine *engine;
    uint32_t rank;
};

/* --- opening -------------------------------------------------------------- */

static void on_bell(struct rf_watch *watch, uint32_t events)
{
    (void)watch; /* rf_node_memory_awake() empties it */
    (void)events;
}

static void on_death(struct rf_watch *watch, uint32_t events)
{
    struct rf_engine_death *death =
        rf_container_of(watch, struct rf_engine_death, watch);
    (void)events;
    death->engine->dead_rank = death->rank;
}

static enum rf_status add_watch(struct rf_engine *engine, int fd,
                                uint32_t events, struct rf_watch *watch,
                                struct rf_err *err)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    if (epoll_ctl(engine->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        return rf_err_errno(err, RF_ERR_IO, errno, "watch a descriptor");
    }
    return RF_OK;
}

enum rf_status rf_engine_watch(struct rf_engine *engine, int fd,
                               struct rf_watch *watch, struct rf_err *err)
{
    engine->watches_sockets = true;
    return add_watch(engine, fd,
                     EPOLLIN | EPOLLOUT | EPOLLRDHUP | (uint32_t)EPOLLET, watch,
                     err);
}

static enum rf_status watch_node(struct rf_engine *engine, struct rf_err *err)
{
    struct rf_node_memory *shm = engine->shm;
    enum rf_status status;
    engine->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (engine->epoll < 0) {
        return rf_err_errno(err, RF_ERR_IO, errno, "create an epoll instance");
    }
    engine->bell.on_event = on_bell;
    status = add_watch(engine, shm->bell, EPOLLIN, &engine->bell, err);
    engine->deaths = rf_xcalloc(shm->n_peers, sizeof(*engine->deaths));
    for (uint32_t slot = 0; slot < shm->n_peers && status == RF_OK; slot++) {
        struct rf_engine_death *death = &engine->deaths[slot];
        *death =
            (struct rf_engine_death){{on_death}, engine, shm->peers[slot].rank};
        if (shm->peers[slot].pidfd >= 0) {
            status = add_watch(engine, shm->peers[slot].pidfd, EPOLLIN,
                               &death->watch, err);
        }
    }
    return status;
}

/* Maps the arenas that this rank's copies may touch. */
static enum rf_status map_memories(struct rf_engine *engine, struct rf_err *err)
{
    const struct rf_schedule *schedule = engine->env->schedule;
    struct rf_node_memory *shm = engine->shm;
    enum rf_status status = RF_OK;
    for (size_t i = 0; i < schedule->n_ops && status == RF_OK; i++) {
        const struct rf_op *op = &schedule->ops[i];
        bool shared = engine->routes[i] == RF_ROUTE_SHARED;
        if (shared || (engine->routes[i] == RF_ROUTE_OWN &&
                       op->dst == engine->env->rank)) {
            status = rf_node_memory_map(shm, rf_node_memory_slot(shm, op->src),
                                        (enum rf_mem)op->src_mem, false, err);
        }
        if (shared && status == RF_OK) {
            status = rf_node_memory_map(shm, rf_node_memory_slot(shm, op->dst),
                                        (enum rf_mem)op->dst_mem, true, err);
        }
    }
    return status;
}

static void count_copied(struct rf_engine *engine, const struct rf_action *of)
{
    const struct rf_op *op = &engine->env->schedule->ops[of->op];
    const uint64_t bytes = rf_op_bytes(op);
    if (op->src == op->dst ||
        (engine->nothing != NULL && engine->nothing[of->op])) {
        return;
    }
    engine->copied_sent += op->src == engine->env->rank ? bytes : 0;
    engine->copied_received += op->dst == engine->env->rank ? bytes : 0;
}

/* The codec of copies inside a node. */
static const struct rf_codec *codec_of_copies(const struct rf_engine *engine)
{
    const struct rf_codec *codec = engine->env->codec;
    return codec != NULL && codec->for_links ? NULL : codec;
}

/* Finds this rank's actions and those among them without needs. */
static void list_own(struct rf_engine *engine)
{
    const struct rf_flow *flow = engine->flow;
    size_t n = 0, cap = 0;
    engine->coders = rf_xcalloc(flow->n_actions, sizeof(*engine->coders));
    for (uint32_t i = 0; i < flow->n_actions; i++) {
        const struct rf_action *action = &flow->actions[i];
        if (action->kind == RF_ACTION_COPY) {
            count_copied(engine, action);
        }
        if (action->owner != flow->self || action->kind == RF_ACTION_GATE) {
            continue;
        }
        if (action->kind == RF_ACTION_COPY) {
            rf_coder_of(&flow->schedule->ops[action->op],
                        codec_of_copies(engine), &engine->coders[i]);
        }
        engine->n_own += action->kind != RF_ACTION_ADMIT;
        if (action->n_needs == 0 && action->kind != RF_ACTION_RECV) {
            RF_PUSH(engine->first, n, cap, i);
        }
    }
    engine->n_first = (uint32_t)n;
    engine->copies = rf_xcalloc(engine->n_own, sizeof(*engine->copies));
    engine->conversions =
        rf_xcalloc(engine->n_own, sizeof(*engine->conversions));
}

static enum rf_route route_of(const struct rf_copy_engine_policy *policy,
                              const struct rf_world *world,
                              const struct rf_op *op)
{
    return op->src == op->dst ? policy->inside
           : world->ranks[op->src].node == world->ranks[op->dst].node
               ? policy->near
               : policy->far;
}

static enum rf_status build(struct rf_engine *engine,
                            const struct rf_copy_engine_policy *policy,
                            struct rf_err *err)
{
    const struct rf_method_env *env = engine->env;
    const struct rf_world *world = env->plan->world;
    struct rf_flow_how how = {
        .schedule = env->schedule,
        .world = world,
        .node = world->ranks[env->rank].node,
        .serialize = env->plan->spec->serialize,
        .groups = env->plan->spec->group.by != RF_GROUP_NOTHING,
        .plan = rf_converts_meanwhile(env->plan) ? env->plan : NULL};
    engine->routes = rf_xcalloc(env->schedule->n_ops, sizeof(*engine->routes));
    for (size_t i = 0; i < env->schedule->n_ops; i++) {
        engine->routes[i] = route_of(policy, world, &env->schedule->ops[i]);
    }
    how.routes = engine->routes;
    RF_TRY(rf_flow_build(&how, &engine->flow, err));
    rf_portions_build(engine->flow, codec_of_copies(engine), &engine->portions);
    if (policy->mark_nothing != NULL) {
        engine->nothing =
            rf_xcalloc(env->schedule->n_ops, sizeof(*engine->nothing));
        policy->mark_nothing(engine, engine->nothing);
    }
    return RF_OK;
}

enum rf_status rf_engine_open(const struct rf_method_env *env,
                              const struct rf_copy_engine_policy *policy,
                              void **state, struct rf_err *err)
{
    struct rf_engine *engine = rf_xcalloc(1, sizeof(*engine));
    uint16_t port = 0;
    const struct rf_carrier_ops *carrier = policy->carrier;
    enum rf_status status;
    engine->env = env;
    engine->carrier_ops = carrier;
    engine->carrier = policy->made;
    engine->epoll = -1;
    engine->dead_rank = RF_NONE;
    status = build(engine, policy, err);
    if (carrier != NULL) {
        RF_THEN(status, carrier->prepare(engine, &engine->carrier, &port, err));
    }
    RF_THEN(status, rf_node_memory_open(env, rf_flow_shared_bytes(engine->flow),
                                        port, &engine->shm, err));
    if (status == RF_OK) {
        rf_flow_attach(engine->flow, engine->shm);
        list_own(engine);
        status = watch_node(engine, err);
    }
    if (status == RF_OK && policy->attach != NULL) {
        policy->attach(engine);
    }
    RF_THEN(status, map_memories(engine, err));
    if (carrier != NULL) {
        RF_THEN(status, carrier->open(engine->carrier, err));
    }
    if (status != RF_OK) {
        rf_engine_close(engine);
        return status;
    }
    *state = engine;
    return RF_OK;
}

void rf_engine_close(void *state)
{
    struct rf_engine *engine = state;
    if (engine == NULL) {
        return;
    }
    if (engine->carrier_ops != NULL) {
        engine->carrier_ops->close(engine->carrier);
    }
    rf_fd_close(&engine->epoll);
    rf_node_memory_close(engine->shm);
    rf_portions_destroy(engine->portions);
    rf_flow_destroy(engine->flow);
    free(engine->deaths);
    free(engine->copies);
    free(engine->conversions);
    free(engine->coders);
    free(engine->first);
    free(engine->nothing);
    free(engine->places);
    free(engine->routes);
    free(engine);
}

void rf_engine_abort(void *state)
{
    struct rf_engine *engine = state;
    if (engine != NULL) {
        rf_node_memory_abort(engine->shm);
    }
}

/* --- an iteration --------------------------------------------------------- */

uint8_t *rf_engine_place_of(const struct rf_engine *engine,
                            const struct rf_op *op, enum rf_copy_side side)
{
    const struct rf_arena *arena = engine->env->arena;
    return side == RF_COPY_SRC
               ? (uint8_t *)arena[op->src_mem].base + op->src_offset
               : (uint8_t *)arena[op->dst_mem].base + op->dst_offset;
}

static int64_t *phase_of(struct rf_engine *engine, enum rf_trace_kind kind)
{
    struct rf_phase_times *times = &engine->times;
    switch (kind) {
    case RF_TRACE_PACK:
    case RF_TRACE_WRITE:
        return &times->pack_ns;
    case RF_TRACE_UNPACK:
    case RF_TRACE_READ:
        return &times->unpack_ns;
    case RF_TRACE_QUANTIZE:
        return rf_plan_is_converted(engine->env->plan) ? &times->pack_ns
                                                       : &times->unpack_ns;
    case RF_TRACE_WAIT:
        return &times->sync_ns;
    default:
        return &times->wire_ns;
    }
}

void rf_engine_spent(struct rf_engine *engine, enum rf_trace_kind kind,
                     int64_t since_ns, uint32_t op, uint64_t bytes)
{
    const int64_t now_ns = rf_now_ns();
    *phase_of(engine, kind) += now_ns - since_ns;
    if (engine->env->trace != NULL) {
        const struct rf_trace_event event = {
            since_ns, now_ns, bytes,
            op != RF_NONE ? engine->env->schedule->ops[op].id : RF_NO_OP, kind};
        rf_trace_add(engine->env->trace, &event);
    }
}

static bool is_on_another_node(const struct rf_engine *engine, uint32_t rank)
{
    return engine->flow->slots[rank] == RF_NONE;
}

void rf_engine_sent(struct rf_engine *engine, uint32_t rank, uint64_t bytes)
{
    engine->times.sent_bytes += bytes;
    if (is_on_another_node(engine, rank)) {
        engine->times.link_sent_bytes += bytes;
    }
}

void rf_engine_received(struct rf_engine *engine, uint32_t rank, uint64_t bytes)
{
    engine->times.received_bytes += bytes;
    if (is_on_another_node(engine, rank)) {
        engine->times.link_received_bytes += bytes;
    }
}

void rf_engine_complete(struct rf_engine *engine, uint32_t action)
{
    engine->own_left--;
    rf_flow_complete(engine->flow, action);
}

static void dispatch(struct rf_engine *engine, uint32_t action)
{
    switch (engine->flow->actions[action].kind) {
    case RF_ACTION_COPY:
        engine->copies[engine->copies_in++ % engine->n_own] = action;
        break;
    case RF_ACTION_SEND:
        assert(engine->carrier_ops != NULL); /* else all ops are copies */
        engine->carrier_ops->send(engine->carrier, action);
        break;
    case RF_ACTION_ADMIT:
        assert(engine->carrier_ops != NULL);
        engine->carrier_ops->admit(engine->carrier, action);
        break;
    case RF_ACTION_CONVERT:
        engine->conversions[engine->conversions_in++ % engine->n_own] = action;
        break;
    case RF_ACTION_RECV:
    case RF_ACTION_GATE:
        break;
    }
}

enum rf_status rf_engine_start(void *state, uint64_t iteration,
                               struct rf_err *err)
{
    struct rf_engine *engine = state;
    const struct rf_carrier_ops *carrier = engine->carrier_ops;
    (void)iteration;
    memset(&engine->times, 0, sizeof(engine->times));
    engine->times.sent_bytes = engine->copied_sent;
    engine->times.received_bytes = engine->copied_received;
    engine->own_left = engine->n_own;
    rf_flow_start(engine->flow);
    if (carrier != NULL && carrier->start != NULL) {
        RF_TRY(carrier->start(engine->carrier, err));
    }
    for (uint32_t i = 0; i < engine->n_first; i++) {
        dispatch(engine, engine->first[i]);
    }
    return RF_OK;
}

static bool copy_own(struct rf_engine *engine)
{
    uint32_t index;
    const struct rf_op *op;
    const struct rf_coder *coder;
    const struct rf_copy_shape *shape;
    struct rf_node_memory *shm = engine->shm;
    int64_t before;
    uint64_t n, bytes = 0;
    if (engine->copies_in == engine->copies_out) {
        return false;
    }
    before = rf_now_ns();
    index = engine->copies[engine->copies_out % engine->n_own];
    coder = &engine->coders[index];
    shape = &coder->shape;
    op = &engine->env->schedule->ops[engine->flow->actions[index].op];
    n = RF_MIN(shape->total_items - engine->copy_at,
               RF_PORTION_BYTES / shape->dst_item);
    if (engine->nothing != NULL &&
        engine->nothing[engine->flow->actions[index].op]) {
        n = shape->total_items;
    } else {
        const struct rf_node_memory_peer *from =
            &shm->peers[rf_node_memory_slot(shm, op->src)];
        rf_coder_copy(coder, engine->copy_at, n,
                      rf_engine_place_of(engine, op, RF_COPY_DST),
                      (const uint8_t *)from->arena[op->src_mem] +
                          op->src_offset,
                      !engine->env->plain_stores);
        bytes = n * shape->dst_item;
    }
    engine->copy_at += n;
    if (engine->copy_at == shape->total_items) {
        engine->copy_at = 0;
        engine->copies_out++;
        rf_copy_fence();
        rf_engine_complete(engine, index);
    }
    rf_engine_spent(engine, RF_TRACE_COPY, before,
                    engine->flow->actions[index].op, bytes);
    return true;
}

static bool run_portion(struct rf_engine *engine)
{
    struct rf_portion_about about = {RF_NONE, 0};
    uint32_t index;
    int64_t before;
    if (!rf_flow_claim_portion(engine->flow, &index)) {
        return false;
    }
    before = rf_now_ns();
    rf_portions_run(engine->portions, index, engine->flow, engine->shm,
                    !engine->env->plain_stores);
    if (engine->env->trace != NULL) {
        about = rf_portions_about(engine->portions, index);
    }
    rf_engine_spent(engine, RF_TRACE_COPY, before, about.op, about.bytes);
    return true;
}

static void look_at_events(struct rf_engine *engine, int timeout_ms)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(engine->epoll, events, EVENTS, timeout_ms);
    for (int i = 0; i < n; i++) {
        struct rf_watch *watch = events[i].data.ptr;
        watch->on_event(watch, events[i].events);
    }
}

static bool finished(const struct rf_engine *engine)
{
    return engine->own_left == 0 && rf_flow_portions_finished(engine->flow) &&
           (engine->carrier_ops == NULL ||
            engine->carrier_ops->idle(engine->carrier));
}

static enum rf_status check_node(struct rf_engine *engine, struct rf_err *err)
{
    if (atomic_load_explicit(engine->env->abort, memory_order_relaxed)) {
        return rf_err_set(err, RF_ERR_ABORTED, "aborted");
    }
    if (engine->dead_rank != RF_NONE) {
        return rf_err_set(err, RF_ERR_PEER, "rank %" PRIu32 " has ended",
                          engine->dead_rank);
    }
    if (rf_node_memory_aborted(engine->shm)) {
        return rf_err_set(err, RF_ERR_ABORTED,
                          "another rank of this node aborted");
    }
    return RF_OK;
}

/* Runs a part of the conversion that is first in line. */
static enum rf_status convert(struct rf_engine *engine, bool *worked,
                              struct rf_err *err)
{
    const struct rf_method_env *env = engine->env;
    int64_t before;
    uint32_t action;
    bool done = true;
    if (engine->conversions_in == engine->conversions_out) {
        return RF_OK;
    }
    before = rf_now_ns();
    action = engine->conversions[engine->conversions_out % engine->n_own];
    if (env->convert != NULL) {
        RF_TRY(env->convert(env->convert_data, engine->flow->actions[action].op,
                            &done, err));
        rf_engine_spent(engine, RF_TRACE_QUANTIZE, before, RF_NONE, 0);
    }
    if (done) {
        engine->conversions_out++;
        rf_engine_complete(engine, action);
    }
    *worked = true;
    return RF_OK;
}

/* One pass over all work that does not wait. */
static enum rf_status work(struct rf_engine *engine, bool *worked,
                           struct rf_err *err)
{
    uint32_t index;
    *worked = false;
    if (engine->watches_sockets) {
        look_at_events(engine, 0);
    }
    while (rf_flow_take(engine->flow, &index)) {
        dispatch(engine, index);
        *worked = true;
    }
    if (engine->carrier_ops != NULL) {
        RF_TRY(engine->carrier_ops->work(engine->carrier, worked, err));
    }
    RF_TRY(convert(engine, worked, err));
    *worked |= copy_own(engine);
    *worked |= run_portion(engine);
    return RF_OK;
}

static int nap_ms(const struct rf_engine *engine)
{
    const struct rf_carrier_ops *carrier = engine->carrier_ops;
    return carrier != NULL && carrier->nap_ms != NULL
               ? carrier->nap_ms(engine->carrier)
               : RF_ENGINE_NAP_MS;
}

/* Sleeps until there may be work. */
static void wait_for_work(struct rf_engine *engine, uint32_t *idle)
{
    int64_t before = rf_now_ns();
    if ((*idle)++ < YIELDS) {
        sched_yield();
    } else {
        rf_node_memory_doze(engine->shm);
        if (!rf_flow_has_work(engine->flow) && !finished(engine) &&
            !rf_node_memory_aborted(engine->shm)) {
            look_at_events(engine, nap_ms(engine));
        }
        rf_node_memory_awake(engine->shm);
    }
    rf_engine_spent(engine, RF_TRACE_WAIT, before, RF_NONE, 0);
}

enum rf_status rf_engine_progress(void *state, bool *done, struct rf_err *err)
{
    struct rf_engine *engine = state;
    int64_t until = rf_now_ns() + SLICE_NS;
    uint32_t idle = 0;
    *done = false;
    /* On a busy processor the yields alone may use up the slice. */
    look_at_events(engine, 0);
    do {
        bool worked;
        enum rf_status status = check_node(engine, err);
        RF_THEN(status, work(engine, &worked, err));
        if (status != RF_OK) {
            return status;
        }
        if (finished(engine)) {
            *done = true;
            return RF_OK;
        }
        if (worked) {
            idle = 0;
        } else {
            wait_for_work(engine, &idle);
        }
    } while (rf_now_ns() < until);
    return RF_OK;
}

void rf_engine_timing(void *state, struct rf_phase_times *out)
{
    *out = ((struct rf_engine *)state)->times;
}

bool rf_engine_leaves(size_t op, const void *state)
{
    const struct rf_engine *engine = state;
    return engine->nothing != NULL && engine->nothing[op];
}
