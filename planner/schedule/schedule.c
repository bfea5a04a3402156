/* The totals of a schedule. */
#include "planner/schedule/schedule.h"

#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/schedule/delivery.h"

void rf_schedule_count(struct rf_schedule *schedule,
                       const struct rf_world *world, uint32_t src, uint32_t dst,
                       uint64_t n, uint64_t bytes, uint64_t written)
{
    uint32_t from = world->ranks[src].node;
    uint32_t to = world->ranks[dst].node;
    schedule->rank_ops[src] += n;
    if (from == to) {
        schedule->node_write[to] += written;
    }
    if (src == dst) {
        schedule->node_copy[to] += bytes;
        return;
    }
    schedule->rank_ops[dst] += n;
    schedule->wire_bytes += bytes;
    schedule->rank_send[src] += bytes;
    schedule->rank_recv[dst] += bytes;
    if (from == to) {
        schedule->node_copy[to] += bytes;
        schedule->node_peer[to] += bytes;
        return;
    }
    schedule->inter_node_bytes += bytes;
    schedule->node_send[from] += bytes;
    schedule->node_recv[to] += bytes;
}

struct rf_schedule *rf_schedule_create(const struct rf_world *world)
{
    struct rf_schedule *schedule = rf_xcalloc(1, sizeof(*schedule));
    uint32_t ranks = RF_MAX(world->n_ranks, 1);
    uint32_t nodes = RF_MAX(world->n_nodes, 1);
    schedule->in_flight = RF_IN_FLIGHT;
    schedule->n_ranks = world->n_ranks;
    schedule->n_nodes = nodes;
    schedule->rank_send = rf_xcalloc(ranks, sizeof(uint64_t));
    schedule->rank_recv = rf_xcalloc(ranks, sizeof(uint64_t));
    schedule->rank_ops = rf_xcalloc(ranks, sizeof(uint64_t));
    schedule->node_send = rf_xcalloc(nodes, sizeof(uint64_t));
    schedule->node_recv = rf_xcalloc(nodes, sizeof(uint64_t));
    schedule->node_copy = rf_xcalloc(nodes, sizeof(uint64_t));
    schedule->node_peer = rf_xcalloc(nodes, sizeof(uint64_t));
    schedule->node_write = rf_xcalloc(nodes, sizeof(uint64_t));
    rf_hash_init(&schedule->digest);
    return schedule;
}

uint64_t rf_schedule_arena_bytes(const struct rf_plan *plan,
                                 const struct rf_schedule *schedule,
                                 uint32_t rank, enum rf_mem mem)
{
    switch (mem) {
    case RF_MEM_TRAIN:
        return rf_plan_layout(plan, RF_TRAIN, rank)->arena_bytes;
    case RF_MEM_INFER:
        return rf_plan_layout(plan, RF_INFER, rank)->arena_bytes;
    default:
        return schedule->stage_bytes != NULL ? schedule->stage_bytes[rank] : 0;
    }
}

void rf_schedule_destroy(struct rf_schedule *schedule)
{
    if (schedule == NULL) {
        return;
    }
    free(schedule->ops);
    rf_deliveries_destroy(schedule->deliveries);
    free(schedule->stage_bytes);
    free(schedule->rank_send);
    free(schedule->rank_recv);
    free(schedule->rank_ops);
    free(schedule->node_send);
    free(schedule->node_recv);
    free(schedule->node_copy);
    free(schedule->node_peer);
    free(schedule->node_write);
    free(schedule);
}
