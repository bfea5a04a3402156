/* Times of conversions. See conversion.h. */
#include "planner/predict/conversion.h"

#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/plan/quantize.h"

#define BYTES_A_MS 1e6 /* of 1 GB/s */

double rf_conversion_bytes(const struct rf_plan *plan,
                           const struct rf_unit_task *unit, uint32_t rank)
{
    const struct rf_converted *converted = rf_plan_converted(plan, rank);
    const struct rf_family *family = &plan->model->families[unit->family];
    const double bytes = 2 * (double)rf_box_elements(&unit->box);
    if (!rf_plan_is_converted(plan)) {
        return converted != NULL ? bytes * rf_family_converted(family) : 0;
    }
    return family->is_result && converted->from[unit->family].part == 0
               ? bytes * converted->format->parts[0].columns
               : 0;
}

/* Adds a unit task to the ranks that convert it. */
static void add_unit(const struct rf_plan *plan,
                     const struct rf_unit_tasks *units,
                     const struct rf_unit_task *unit, bool certain,
                     double *rank_bytes)
{
    const bool sends = rf_plan_is_converted(plan);
    const struct rf_holder *of =
        &units->holders[sends ? unit->first_src : unit->first_dst];
    const uint32_t n = sends ? unit->n_src : unit->n_dst;
    const uint32_t shared_by = sends ? n : 1;
    for (uint32_t i = 0; i < n && (shared_by == 1 || !certain); i++) {
        rank_bytes[of[i].rank] +=
            rf_conversion_bytes(plan, unit, of[i].rank) / shared_by;
    }
}

void rf_conversion_times(const struct rf_plan *plan,
                         const struct rf_unit_tasks *units,
                         const double *gbytes_per_s, bool certain,
                         struct rf_conversion_times *out)
{
    const struct rf_world *world = plan->world;
    const enum rf_side side = rf_quantize_side(plan);
    double *bytes = rf_xcalloc(world->n_ranks, sizeof(*bytes));
    uint32_t *converting = rf_xcalloc(world->n_nodes, sizeof(*converting));
    *out =
        (struct rf_conversion_times){.least_ms = INFINITY, .slowest = RF_NONE};
    for (size_t u = 0; u < units->n; u++) {
        add_unit(plan, units, &units->of[u], certain, bytes);
    }
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        converting[world->ranks[r].node] += bytes[r] > 0;
    }
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        const uint32_t node = world->ranks[r].node;
        const double rate = gbytes_per_s[node];
        const double ms =
            rate > 0 ? bytes[r] * converting[node] / rate / BYTES_A_MS : 0;
        if (world->ranks[r].index[side] != RF_NONE) {
            out->least_ms = RF_MIN(out->least_ms, ms);
        }
        if (ms > out->most_ms) {
            out->most_ms = ms;
            out->slowest = r;
        }
    }
    free(bytes);
    free(converting);
}
