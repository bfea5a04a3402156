/* See reach_pairs.h. */
#include "coordinator/advice/reach_pairs.h"

#include <stdlib.h>

#include "common/mem.h"
#include "coordinator/preflight/addresses.h"

#define NEIGHBOURS 2

/* A connection opened by a node. */
struct reach_link {
    uint32_t to;
    char *why; /* failure; NULL: none, or unknown */
};

struct reach_node {
    struct reach_link links[NEIGHBOURS + RF_REACH_DESTINATIONS];
    uint32_t n_links;
    uint32_t n_destinations; /* in all scenarios */
    bool awaited, lost;
};

struct rf_reach_pairs {
    const struct rf_config *config;
    const struct rf_msg_hello *const *hellos; /* NULL until the choice */
    struct reach_node *nodes;
    bool *sends; /* from each node to each: sends data, in any scenario */
    uint32_t n_awaited;
};

struct rf_reach_pairs *rf_reach_pairs_create(const struct rf_config *config)
{
    struct rf_reach_pairs *pairs = rf_xcalloc(1, sizeof(*pairs));
    pairs->config = config;
    pairs->nodes = rf_xcalloc(config->n_nodes, sizeof(*pairs->nodes));
    pairs->sends = rf_xcalloc((size_t)config->n_nodes * config->n_nodes,
                              sizeof(*pairs->sends));
    return pairs;
}

void rf_reach_pairs_destroy(struct rf_reach_pairs *pairs)
{
    if (pairs == NULL) {
        return;
    }
    for (uint32_t i = 0; i < pairs->config->n_nodes; i++) {
        for (uint32_t k = 0; k < pairs->nodes[i].n_links; k++) {
            free(pairs->nodes[i].links[k].why);
        }
    }
    free(pairs->nodes);
    free(pairs->sends);
    free(pairs);
}

static bool *sends(const struct rf_reach_pairs *pairs, uint32_t from,
                   uint32_t to)
{
    return &pairs->sends[(size_t)from * pairs->config->n_nodes + to];
}

static void crossing_cb(uint32_t from, uint32_t to, void *data)
{
    struct rf_reach_pairs *pairs = data;
    bool *known = sends(pairs, from, to);
    pairs->nodes[from].n_destinations += !*known;
    *known = true;
}

void rf_reach_pairs_need(struct rf_reach_pairs *pairs,
                         const struct rf_scenario *scenario)
{
    rf_addresses_crossings(scenario, crossing_cb, pairs);
}

/* --- The choice ----------------------------------------------------------- */

static bool listens(const struct rf_reach_pairs *pairs, uint32_t node)
{
    const struct rf_msg_hello *hello = pairs->hellos[node];
    return !pairs->nodes[node].lost && hello != NULL &&
           hello->reach_port != RF_ABSENT_U32 &&
           rf_addresses_of(pairs->config, hello, node) != NULL;
}

static struct reach_link *find_link(struct reach_node *node, uint32_t to)
{
    for (uint32_t i = 0; i < node->n_links; i++) {
        if (node->links[i].to == to) {
            return &node->links[i];
        }
    }
    return NULL;
}

/* Adds a link; false if it is there already or can be of no use. */
static bool add_link(struct rf_reach_pairs *pairs, uint32_t from, uint32_t to)
{
    struct reach_node *node = &pairs->nodes[from];
    struct rf_err known;
    if (from == to || !listens(pairs, from) || !listens(pairs, to) ||
        find_link(node, to) != NULL ||
        rf_addresses_reach(pairs->config, pairs->hellos, from, to, &known) !=
            RF_OK) {
        return false;
    }
    node->links[node->n_links++] = (struct reach_link){.to = to};
    return true;
}

static void add_ring(struct rf_reach_pairs *pairs)
{
    const uint32_t n_nodes = pairs->config->n_nodes;
    uint32_t *members = rf_xcalloc(n_nodes, sizeof(*members)), n = 0;
    for (uint32_t i = 0; i < n_nodes; i++) {
        if (listens(pairs, i)) {
            members[n++] = i;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        add_link(pairs, members[i], members[(i + 1) % n]);
        add_link(pairs, members[i], members[(i + n - 1) % n]);
    }
    free(members);
}

static uint32_t find_destination(const struct rf_reach_pairs *pairs,
                                 uint32_t from, uint32_t index)
{
    uint32_t to = 0;
    while (!*sends(pairs, from, to) || index-- > 0) {
        to++;
    }
    return to;
}

/* Adds one per node and round, so that no node takes the places of others.
 * Nodes start at different destinations and continue in even steps. */
static void add_destinations(struct rf_reach_pairs *pairs)
{
    const uint32_t n_nodes = pairs->config->n_nodes;
    uint32_t *n_sources = rf_xcalloc(n_nodes, sizeof(*n_sources));
    for (uint32_t round = 0; round < RF_REACH_DESTINATIONS; round++) {
        for (uint32_t from = 0; from < n_nodes; from++) {
            const uint32_t n = pairs->nodes[from].n_destinations;
            const uint32_t step = round * RF_MAX(n, RF_REACH_DESTINATIONS) /
                                  RF_REACH_DESTINATIONS;
            uint32_t to;
            if (round >= n) {
                continue;
            }
            to = find_destination(pairs, from, (from + step) % n);
            if (n_sources[to] < RF_REACH_SOURCES && add_link(pairs, from, to)) {
                n_sources[to]++;
            }
        }
    }
    free(n_sources);
}

void rf_reach_pairs_choose(struct rf_reach_pairs *pairs,
                           const struct rf_msg_hello *const *hellos)
{
    pairs->hellos = hellos;
    add_ring(pairs);
    add_destinations(pairs);
}

/* --- Questions and answers ------------------------------------------------ */

bool rf_reach_pairs_ask(struct rf_reach_pairs *pairs, uint32_t node,
                        struct rf_msg *out)
{
    struct rf_msg_reach *reach = &out->reach;
    struct reach_node *from = &pairs->nodes[node];
    if (from->n_links == 0) {
        return false;
    }
    rf_msg_init(out, RF_MSG_REACH);
    reach->peers = rf_xcalloc(from->n_links, sizeof(*reach->peers));
    for (; reach->n_peers < from->n_links; reach->n_peers++) {
        const uint32_t to = from->links[reach->n_peers].to;
        const struct rf_msg_hello *hello = pairs->hellos[to];
        reach->peers[reach->n_peers] = (struct rf_msg_reach_peer){
            to, rf_xstrdup(rf_addresses_of(pairs->config, hello, to)),
            hello->reach_port};
    }
    from->awaited = true;
    pairs->n_awaited++;
    return true;
}

static void await_no_more(struct rf_reach_pairs *pairs, uint32_t node)
{
    pairs->n_awaited -= pairs->nodes[node].awaited;
    pairs->nodes[node].awaited = false;
}

void rf_reach_pairs_take(struct rf_reach_pairs *pairs, uint32_t node,
                         const struct rf_msg_reached *reached)
{
    if (!pairs->nodes[node].awaited) {
        return;
    }
    await_no_more(pairs, node);
    for (size_t i = 0; i < reached->n_peers; i++) {
        const struct rf_msg_reached_peer *peer = &reached->peers[i];
        struct reach_link *link = find_link(&pairs->nodes[node], peer->node);
        if (link != NULL && link->why == NULL && peer->error != NULL) {
            link->why = rf_xstrdup(peer->error);
        }
    }
}

void rf_reach_pairs_lose(struct rf_reach_pairs *pairs, uint32_t node)
{
    pairs->nodes[node].lost = true;
    await_no_more(pairs, node);
}

bool rf_reach_pairs_is_awaited(const struct rf_reach_pairs *pairs)
{
    return pairs->n_awaited > 0;
}

static void advise_link(const struct rf_reach_pairs *pairs, uint32_t from,
                        const struct reach_link *link, struct rf_findings *out)
{
    const struct reach_node *to = &pairs->nodes[link->to];
    if (link->why != NULL && !to->lost && !to->awaited) {
        rf_findings_add(
            out,
            *sends(pairs, from, link->to) ? RF_ADVICE_ERROR : RF_ADVICE_WARNING,
            pairs->config->node_names[from],
            "no data connection to %s: %s; try another address in "
            "nodes[%u].address",
            pairs->config->node_names[link->to], link->why, link->to);
    }
}

void rf_reach_pairs_advise(const struct rf_reach_pairs *pairs,
                           uint32_t waited_s, struct rf_findings *out)
{
    for (uint32_t i = 0; i < pairs->config->n_nodes; i++) {
        const struct reach_node *node = &pairs->nodes[i];
        if (node->awaited) {
            rf_findings_add(out, RF_ADVICE_ERROR, pairs->config->node_names[i],
                            "no answer within %u s about the nodes it reaches: "
                            "its worker hangs or gets little processor time",
                            waited_s);
        }
        for (uint32_t k = 0; k < node->n_links; k++) {
            advise_link(pairs, i, &node->links[k], out);
        }
    }
}
