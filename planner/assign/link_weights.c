/* Weights of ranks and nodes. See link_weights.h. */
#include "planner/assign/link_weights.h"

#include <stdlib.h>

#include "common/mem.h"
#include "planner/assign/fair_shares.h"

/* Parts of a NIC: whole ones for up to 8 ranks, 10, 12, 14, 15 and more. */
#define NIC_PARTS 840

_Static_assert(RF_LINK_WEIGHT_MAX *NIC_PARTS <= RF_FAIR_SHARES_WEIGHT_MAX,
               "a rank's weight is too large");
_Static_assert(RF_LINK_WEIGHT_MAX *RF_NODE_NICS_MAX <=
                   RF_FAIR_SHARES_WEIGHT_MAX,
               "a node's weight is too large");

void rf_link_weights_free(struct rf_link_weights *weights)
{
    free(weights->rank);
    free(weights->node);
    free(weights->nic);
    free(weights->nic_of);
    *weights = (struct rf_link_weights){.rank = NULL};
}

static void allocate(const struct rf_world *world, const struct rf_spec *spec,
                     struct rf_link_weights *out)
{
    for (uint32_t n = 0; n < world->n_nodes; n++) {
        out->n_nics += spec->balance_links[n].nics;
    }
    out->rank = rf_xcalloc(world->n_ranks, sizeof(*out->rank));
    out->node = rf_xcalloc(world->n_nodes, sizeof(*out->node));
    out->nic = rf_xcalloc(out->n_nics, sizeof(*out->nic));
    out->nic_of = rf_xcalloc(world->n_ranks, sizeof(*out->nic_of));
}

/* `first` has room for all nodes, `users` for all NICs; `users` is 0. */
static void weigh(const struct rf_world *world, const struct rf_spec *spec,
                  uint32_t *first, uint32_t *users, struct rf_link_weights *out)
{
    for (uint32_t n = 0, nic = 0; n < world->n_nodes; n++) {
        first[n] = nic;
        for (uint32_t i = 0; i < spec->balance_links[n].nics; i++) {
            out->nic[nic++] = spec->balance_links[n].weight;
        }
    }
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        const struct rf_rank *rank = &world->ranks[r];
        uint32_t node = rank->node;
        uint32_t nic =
            first[node] + rank->slot % spec->balance_links[node].nics;
        out->nic_of[r] = nic;
        if (rank->index[RF_TRAIN] != RF_NONE && users[nic]++ == 0) {
            out->node[node] += out->nic[nic];
        }
    }
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        uint32_t nic = out->nic_of[r];
        out->rank[r] = out->nic[nic] * NIC_PARTS / RF_MAX(users[nic], 1);
        out->rank[r] = RF_MAX(out->rank[r], 1);
    }
    for (uint32_t n = 0; n < world->n_nodes; n++) {
        out->node[n] = RF_MAX(out->node[n], 1); /* one without training ranks */
    }
}

enum rf_status rf_link_weights_build(const struct rf_world *world,
                                     const struct rf_spec *spec,
                                     struct rf_link_weights *out,
                                     struct rf_err *err)
{
    uint32_t *room;
    *out = (struct rf_link_weights){.rank = NULL};
    if (spec->balance != RF_BALANCE_TIME) {
        return RF_OK;
    }
    if (spec->n_balance_links != world->n_nodes) {
        return rf_err_set(
            err, RF_ERR_CONFIG,
            "balance time needs link weights of %u nodes, has those of %u",
            world->n_nodes, spec->n_balance_links);
    }
    allocate(world, spec, out);
    room = rf_xcalloc((size_t)world->n_nodes + out->n_nics, sizeof(*room));
    weigh(world, spec, room, room + world->n_nodes, out);
    free(room);
    return RF_OK;
}

bool rf_link_weights_less(const uint32_t *of, uint32_t a, uint64_t load_a,
                          uint32_t b, uint64_t load_b)
{
    return of == NULL ? load_a < load_b
                      : rf_fair_shares_scale(load_a, of[a], of[b]) < load_b;
}
