/* Access to the arenas of this node's other ranks. See carrier.h. */
#include <stdlib.h>

#include "common/mem.h"
#include "ucx/carrier.h"

static void list_neighbours(struct rf_ucx_carrier *carrier)
{
    const struct rf_world *world = carrier->env->plan->world;
    const uint32_t self = carrier->env->rank;
    size_t n = 0, cap = 0;
    for (uint32_t rank = 0; rank < world->n_ranks; rank++) {
        if (rank != self &&
            world->ranks[rank].node == world->ranks[self].node) {
            RF_PUSH(carrier->neighbours, n, cap,
                    (struct rf_ucx_neighbour){.rank = rank});
        }
    }
    carrier->n_neighbours = (uint32_t)n;
}

/* Whether all arenas of the neighbour can be mapped here. */
static bool find_pointers(struct rf_ucx_neighbour *to)
{
    for (int mem = 0; mem < RF_MEM_COUNT; mem++) {
        if (to->end.rkey[mem] != NULL &&
            ucp_rkey_ptr(to->end.rkey[mem], to->end.base[mem], &to->at[mem]) !=
                UCS_OK) {
            return false;
        }
    }
    return true;
}

/* A rank without pointers would wait for copies that no rank makes, so all
 * ranks of a node use the same way. */
static enum rf_status agree(struct rf_ucx_carrier *carrier, bool mine,
                            struct rf_err *err)
{
    const struct rf_method_env *env = carrier->env;
    const struct rf_world *world = env->plan->world;
    const uint8_t told = mine;
    uint8_t *all = rf_xcalloc(world->n_ranks, sizeof(*all));
    enum rf_status status =
        rf_share_all(env, "answer", &told, sizeof(told), all, err);
    carrier->attached = mine;
    for (uint32_t i = 0; i < carrier->n_neighbours; i++) {
        carrier->attached &= all[carrier->neighbours[i].rank] == 1;
    }
    free(all);
    return status;
}

enum rf_status rf_ucx_meet_node(struct rf_ucx_carrier *carrier,
                                struct rf_err *err)
{
    bool all = true;
    list_neighbours(carrier);
    for (uint32_t i = 0; i < carrier->n_neighbours; i++) {
        struct rf_ucx_neighbour *to = &carrier->neighbours[i];
        RF_TRY(rf_ucx_end_open(carrier, to->rank, NULL, &to->end, err));
        all &= find_pointers(to);
    }
    return agree(carrier, all, err);
}

void rf_ucx_attach(const struct rf_engine *engine)
{
    const struct rf_ucx_carrier *carrier = engine->carrier;
    for (uint32_t i = 0; i < carrier->n_neighbours; i++) {
        const struct rf_ucx_neighbour *of = &carrier->neighbours[i];
        for (int mem = 0; mem < RF_MEM_COUNT; mem++) {
            rf_node_memory_adopt(engine->shm,
                                 rf_node_memory_slot(engine->shm, of->rank),
                                 (enum rf_mem)mem, of->at[mem]);
        }
    }
}

struct rf_ucx_neighbour *
rf_ucx_neighbour_of(const struct rf_ucx_carrier *carrier, uint32_t rank)
{
    for (uint32_t i = 0; i < carrier->n_neighbours; i++) {
        if (carrier->neighbours[i].rank == rank) {
            return &carrier->neighbours[i];
        }
    }
    return NULL;
}
