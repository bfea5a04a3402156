/* In which order the carrier over TCP visits a rank's connections. */
#include <string.h>

#include "tests/lib/ops.h"
#include "tests/unit/unit.h"
#include "transport/tcp/tcp_carrier.h"

/* Ranks 0 and 1 on the first node, 2 to 4 on the second. Both of the first
 * serve all of the second, and each other; 3 sends something back. */
static const struct {
    uint32_t src, dst;
} pairs[] = {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {1, 0}, {1, 2},
             {1, 3}, {1, 4}, {3, 0}, {0, 3}, {1, 2}};

#define N_OPS RF_ARRAY_SIZE(pairs)
#define N_RANKS 5u

struct visited {
    uint32_t peer;
    bool sends;
};

struct lab {
    struct rf_op ops[N_OPS];
    enum rf_route routes[N_OPS];
    struct rf_rank ranks[N_RANKS];
    uint64_t rank_send[N_RANKS];
    struct rf_schedule schedule;
    struct rf_world world;
};

static void init(struct lab *lab)
{
    memset(lab, 0, sizeof(*lab));
    for (uint32_t r = 0; r < N_RANKS; r++) {
        lab->ranks[r].node = r >= 2;
    }
    for (uint32_t i = 0; i < N_OPS; i++) {
        struct rf_op *op = &lab->ops[i];
        *op = (struct rf_op){.id = i,
                             .src = pairs[i].src,
                             .dst = pairs[i].dst,
                             .dep = RF_NO_OP,
                             .group = RF_NO_GROUP,
                             .task = i,
                             .dst_mem = RF_MEM_INFER};
        op_row(op, 1);
        lab->routes[i] = lab->ranks[op->src].node == lab->ranks[op->dst].node
                             ? RF_ROUTE_SHARED
                             : RF_ROUTE_LINK;
        lab->rank_send[op->src]++;
    }
    lab->schedule = (struct rf_schedule){.ops = lab->ops,
                                         .in_flight = RF_IN_FLIGHT,
                                         .n_ops = N_OPS,
                                         .rank_send = lab->rank_send,
                                         .n_ranks = N_RANKS};
    lab->world = (struct rf_world){
        .ranks = lab->ranks, .n_ranks = N_RANKS, .n_nodes = 2};
}

/* Each action is found again in its link. */
static void check_places(const struct rf_tcp_carrier *links,
                         const struct rf_flow *flow, uint32_t rank)
{
    for (uint32_t i = 0; i < flow->n_actions; i++) {
        const struct rf_action *action = &flow->actions[i];
        const bool sends = action->kind == RF_ACTION_SEND;
        const struct rf_link *link;
        if (action->owner != flow->slots[rank] ||
            (!sends && action->kind != RF_ACTION_RECV)) {
            continue;
        }
        link = &links->links[links->link_of[i]];
        ck_assert_uint_eq(link->ops[links->place_of[i]].action, i);
        ck_assert_uint_eq(link->sends, sends);
        ck_assert_uint_eq(link->peer, sends ? pairs[action->op].dst
                                            : pairs[action->op].src);
    }
}

/* `carrier`: the policy's, or NULL. The port that the links listen on; 0:
 * none. */
static uint16_t check_links(uint32_t rank, const struct visited *expected,
                            size_t n, void *carrier)
{
    static const char *const addresses[] = {"127.0.0.1", "127.0.0.1"};
    struct lab lab;
    const struct rf_plan plan = {.world = &lab.world};
    const struct rf_method_env env = {.plan = &plan,
                                      .schedule = &lab.schedule,
                                      .rank = rank,
                                      .node_addresses = addresses};
    struct rf_engine engine = {.env = &env};
    const struct rf_flow_how how = {
        .schedule = &lab.schedule, .world = &lab.world, .routes = lab.routes};
    const struct rf_tcp_carrier *links;
    uint16_t port = 0;
    struct rf_err err;
    init(&lab);
    assert_ok(rf_flow_build(&how, &engine.flow, &err), err);
    ck_assert_msg(rf_carrier_links.prepare(&engine, &carrier, &port, &err) ==
                      RF_OK,
                  "%s", err.text);
    links = carrier;
    ck_assert_uint_eq(links->n_links, n);
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(links->links[i].peer == expected[i].peer &&
                          links->links[i].sends == expected[i].sends,
                      "link %zu is with rank %u", i, links->links[i].peer);
    }
    check_places(links, engine.flow, rank);
    rf_carrier_links.close(carrier);
    rf_flow_destroy(engine.flow);
    return port;
}

TEST(test_sources_of_a_node_begin_with_different_ranks)
{
    const struct visited first[] = {
        {2, true}, {3, false}, {3, true}, {4, true}};
    const struct visited second[] = {{3, true}, {4, true}, {2, true}};
    check_links(0, first, RF_ARRAY_SIZE(first), NULL);
    check_links(1, second, RF_ARRAY_SIZE(second), NULL);
}

static enum rf_status listen_elsewhere(const struct rf_datalink_how *how,
                                       const char *address, int *fd,
                                       uint16_t *port, struct rf_err *err)
{
    (void)how;
    (void)address;
    (void)err;
    *fd = socket(AF_UNIX, SOCK_STREAM, 0);
    *port = 7;
    return RF_OK;
}

TEST(test_links_are_over_the_sockets_of_their_method)
{
    static const struct rf_datalink_sockets sockets = {.listen =
                                                           listen_elsewhere};
    const struct visited links[] = {
        {2, true}, {3, false}, {3, true}, {4, true}};
    ck_assert_uint_eq(check_links(0, links, RF_ARRAY_SIZE(links),
                                  rf_tcp_carrier_over(&sockets)),
                      7);
}
