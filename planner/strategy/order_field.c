/* Times at which links and ranks become free. See order_field.h. */
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

/* The receivers' node that does not forward: the path visits nodes in ascending
 * order, starting after the source's and wrapping around. */
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

/* Lists all resources of a job in field->uses: indices into `free_at`, possibly
 * repeated. Returns their number. */
static size_t list_uses(const struct rf_order_field *field, uint32_t job,
                        uint32_t candidate)
{
    const struct rf_order_job *of = &field->jobs[job];
    const struct rf_work *work = &field->works->works[of->work];
    const uint32_t *nodes = field->nodes + of->nodes;
    const uint32_t in = field->world->n_nodes, ranks = 2 * in;
    uint32_t rank = rf_order_source_rank(field, job, candidate);
    uint32_t from = field->world->ranks[rank].node;
    uint32_t last = last_on_path(nodes, of->n_nodes, from);
    uint32_t *uses = field->uses;
    size_t n = 0;
    for (uint32_t i = 0; i < of->n_nodes; i++) {
        if (nodes[i] != from) {
            uses[n++] = from;
            uses[n++] = in + nodes[i];
            uses[n++] = nodes[i] != last ? nodes[i] : from;
        }
    }
    if (field->serialize) {
        uses[n++] = ranks + rank;
        for (uint32_t i = 0; i < work->n_receivers; i++) {
            uses[n++] = ranks + field->works->pool[work->receivers + i].rank;
        }
    }
    return n;
}

double rf_order_start(const struct rf_order_field *field, uint32_t job,
                      uint32_t candidate)
{
    const size_t n = list_uses(field, job, candidate);
    double latest = 0;
    for (size_t i = 0; i < n; i++) {
        latest = RF_MAX(latest, field->free_at[field->uses[i]]);
    }
    return latest;
}

void rf_order_occupy(struct rf_order_field *field, uint32_t job,
                     uint32_t candidate, double finish)
{
    const size_t n = list_uses(field, job, candidate);
    for (size_t i = 0; i < n; i++) {
        field->free_at[field->uses[i]] = finish;
    }
}
