/* See reach_pairs.h. */
#include "coordinator/advice/reach_pairs.h"

#include <stdlib.h>

#include "common/mem.h"
#include "coordinator/preflight/addresses.h"

#define NEIGHBOURS 2

/* A connection that `from` opens. */
struct reach_link {
    uint32_t from, to;
    bool needed;
    char *why; /* it failed; NULL: it did not, or nobody knows */
};

struct rf_reach_pairs {
    const struct rf_config *config;
    const struct rf_msg_hello *const *hellos;
    struct reach_link *links; /* those of a node side by side */
    size_t n_links, capacity;
    bool *awaited;
    uint32_t n_awaited;
};

static bool listens(const struct rf_reach_pairs *pairs, uint32_t node)
{
    const struct rf_msg_hello *hello = pairs->hellos[node];
    return hello != NULL && hello->reach_port != RF_ABSENT_U32 &&
           rf_addresses_of(pairs->config, hello, node) != NULL;
}

static void add_link(struct rf_reach_pairs *pairs, uint32_t from, uint32_t to)
{
    struct rf_err known;
    if (from != to && rf_addresses_reach(pairs->config, pairs->hellos, from, to,
                                         &known) == RF_OK) {
        RF_PUSH(pairs->links, pairs->n_links, pairs->capacity,
                ((struct reach_link){.from = from, .to = to}));
    }
}

struct rf_reach_pairs *
rf_reach_pairs_create(const struct rf_config *config,
                      const struct rf_msg_hello *const *hellos)
{
    struct rf_reach_pairs *pairs = rf_xcalloc(1, sizeof(*pairs));
    uint32_t *members = rf_xcalloc(config->n_nodes, sizeof(*members)), n = 0;
    pairs->config = config;
    pairs->hellos = hellos;
    pairs->awaited = rf_xcalloc(config->n_nodes, sizeof(*pairs->awaited));
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        if (listens(pairs, i)) {
            members[n++] = i;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        add_link(pairs, members[i], members[(i + 1) % n]);
        if (n > NEIGHBOURS) {
            add_link(pairs, members[i], members[(i + n - 1) % n]);
        }
    }
    free(members);
    return pairs;
}

void rf_reach_pairs_destroy(struct rf_reach_pairs *pairs)
{
    if (pairs == NULL) {
        return;
    }
    for (size_t i = 0; i < pairs->n_links; i++) {
        free(pairs->links[i].why);
    }
    free(pairs->links);
    free(pairs->awaited);
    free(pairs);
}

bool rf_reach_pairs_ask(struct rf_reach_pairs *pairs, uint32_t node,
                        struct rf_msg *out)
{
    struct rf_msg_reach *reach = &out->reach;
    rf_msg_init(out, RF_MSG_REACH);
    reach->peers = rf_xcalloc(NEIGHBOURS, sizeof(*reach->peers));
    for (size_t i = 0; i < pairs->n_links; i++) {
        const uint32_t to = pairs->links[i].to;
        const struct rf_msg_hello *hello = pairs->hellos[to];
        if (pairs->links[i].from == node) {
            reach->peers[reach->n_peers++] = (struct rf_msg_reach_peer){
                to, rf_xstrdup(rf_addresses_of(pairs->config, hello, to)),
                hello->reach_port};
        }
    }
    if (reach->n_peers == 0) {
        rf_msg_free(out);
        return false;
    }
    pairs->awaited[node] = true;
    pairs->n_awaited++;
    return true;
}

static void note(struct rf_reach_pairs *pairs, uint32_t from,
                 const struct rf_msg_reached_peer *peer)
{
    for (size_t i = 0; i < pairs->n_links && peer->error != NULL; i++) {
        struct reach_link *link = &pairs->links[i];
        if (link->from == from && link->to == peer->node && link->why == NULL) {
            link->why = rf_xstrdup(peer->error);
        }
    }
}

void rf_reach_pairs_take(struct rf_reach_pairs *pairs, uint32_t node,
                         const struct rf_msg_reached *reached)
{
    if (!pairs->awaited[node]) {
        return;
    }
    pairs->awaited[node] = false;
    pairs->n_awaited--;
    for (size_t i = 0; reached != NULL && i < reached->n_peers; i++) {
        note(pairs, node, &reached->peers[i]);
    }
}

bool rf_reach_pairs_is_awaited(const struct rf_reach_pairs *pairs)
{
    return pairs->n_awaited > 0;
}

void rf_reach_pairs_need(struct rf_reach_pairs *pairs,
                         const struct rf_scenario *scenario)
{
    for (size_t i = 0; i < pairs->n_links; i++) {
        struct reach_link *link = &pairs->links[i];
        link->needed |= rf_addresses_needed(scenario, link->from, link->to);
    }
}

void rf_reach_pairs_advise(const struct rf_reach_pairs *pairs,
                           struct rf_findings *out)
{
    for (size_t i = 0; i < pairs->n_links; i++) {
        const struct reach_link *link = &pairs->links[i];
        if (link->why != NULL) {
            rf_findings_add(
                out, link->needed ? RF_ADVICE_ERROR : RF_ADVICE_WARNING,
                pairs->config->node_names[link->from],
                "no data connection to %s: %s; nodes[%u].address may name an "
                "address with a better way",
                pairs->config->node_names[link->to], link->why, link->to);
        }
    }
}
