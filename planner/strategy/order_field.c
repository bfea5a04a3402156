/* When links and ranks are free. See order_field.h. */
#include "planner/strategy/order_field.h"

#include <assert.h>

#include "common/mem.h"

uint32_t rf_order_source_rank(const struct rf_order_field *field, uint32_t job,
                              uint32_t candidate)
{
    const struct rf_order_job *of = &field->jobs[job];
    const struct rf_work *work = &field->works->works[of->work];
    uint32_t source = field->candidates[of->candidates + candidate];
    return field->works->pool[work->sources + source].rank;
}

/* The receivers' node that forwards to nobody: the path visits nodes in
 * ascending order from the source's on, around the end. */
static uint32_t last_on_path(const uint32_t *nodes, uint32_t n, uint32_t from)
{
    uint32_t last = RF_NONE;
    assert(n > 0 && nodes != NULL); /* every work has a receiver */
    for (uint32_t i = 0; i < n; i++) {
        if (nodes[i] < from) {
            last = nodes[i];
        }
    }
    return last != RF_NONE ? last : nodes[n - 1];
}

/* Everything a job uses: reads the latest time (occupy < 0) or sets it. */
static double use(struct rf_order_field *field, uint32_t job,
                  uint32_t candidate, double occupy)
{
    const struct rf_order_job *of = &field->jobs[job];
    const struct rf_work *work = &field->works->works[of->work];
    const uint32_t *nodes = field->nodes + of->nodes;
    uint32_t rank = rf_order_source_rank(field, job, candidate);
    uint32_t from = field->world->ranks[rank].node;
    uint32_t last = last_on_path(nodes, of->n_nodes, from);
    double *out = field->free_at, *in = out + field->world->n_nodes;
    double *ranks = in + field->world->n_nodes;
    double latest = 0;
#define USE(time)                                                              \
    do {                                                                       \
        latest = RF_MAX(latest, (time));                                       \
        if (occupy >= 0) {                                                     \
            (time) = occupy;                                                   \
        }                                                                      \
    } while (0)
    for (uint32_t i = 0; i < of->n_nodes; i++) {
        if (nodes[i] == from) {
            continue;
        }
        USE(out[from]);
        USE(in[nodes[i]]);
        if (nodes[i] != last) {
            USE(out[nodes[i]]);
        }
    }
    if (field->serialize) {
        USE(ranks[rank]);
        for (uint32_t i = 0; i < work->n_receivers; i++) {
            USE(ranks[field->works->pool[work->receivers + i].rank]);
        }
    }
#undef USE
    return latest;
}

double rf_order_start(const struct rf_order_field *field, uint32_t job,
                      uint32_t candidate)
{
    /* Reads only: nothing is occupied. */
    return use((struct rf_order_field *)field, job, candidate, -1);
}

void rf_order_occupy(struct rf_order_field *field, uint32_t job,
                     uint32_t candidate, double finish)
{
    use(field, job, candidate, finish);
}
