/* A fluid model of links. See fluid.h. */
#include "tests/lib/fluid.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/mem.h"

struct flow {
    const struct fluid_source *source;
    size_t at;   /* the current item */
    double left; /* of it */
    double rate;
    bool fixed; /* the rate is final */
};

static bool running(const struct flow *flow)
{
    return flow->at < flow->source->n;
}

static uint32_t target(const struct flow *flow)
{
    return flow->source->items[flow->at].to;
}

/* Skips to the next item that is not empty. */
static void settle(struct flow *flow)
{
    while (running(flow) && flow->left <= 0) {
        flow->at++;
        flow->left = running(flow) ? flow->source->items[flow->at].bytes : 0;
    }
}

/* The rate left for each flow into `to` that is not fixed yet; 0: no such
 * flow. */
static double share_of(const struct flow *flows, uint32_t n, uint32_t to,
                       double in)
{
    uint32_t open = 0;
    for (uint32_t r = 0; r < n; r++) {
        if (running(&flows[r]) && r != to && target(&flows[r]) == to) {
            in -= flows[r].fixed ? flows[r].rate : 0;
            open += !flows[r].fixed;
        }
    }
    return open > 0 ? in / open : 0;
}

/* Max-min fairness by progressive filling: the tightest link first. */
static void set_rates(struct flow *flows, uint32_t n,
                      const struct fluid_rates *rates)
{
    for (uint32_t r = 0; r < n; r++) {
        const bool local = running(&flows[r]) && target(&flows[r]) == r;
        flows[r].fixed = !running(&flows[r]) || local;
        flows[r].rate = !running(&flows[r]) ? 0
                        : local             ? rates->local
                                            : rates->out;
    }
    for (;;) {
        double least = rates->out;
        uint32_t tightest = n;
        for (uint32_t to = 0; to < n; to++) {
            const double share = share_of(flows, n, to, rates->in);
            if (share > 0 && share < least) {
                least = share;
                tightest = to;
            }
        }
        if (tightest == n) {
            return; /* the rest send as fast as they can */
        }
        for (uint32_t r = 0; r < n; r++) {
            if (!flows[r].fixed && target(&flows[r]) == tightest) {
                flows[r].rate = least;
                flows[r].fixed = true;
            }
        }
    }
}

double fluid_run(const struct fluid_source *sources, uint32_t n,
                 const struct fluid_rates *rates)
{
    struct flow *flows = rf_xcalloc(n, sizeof(*flows));
    double now = 0;
    for (uint32_t r = 0; r < n; r++) {
        flows[r] = (struct flow){
            .source = &sources[r],
            .left = sources[r].n > 0 ? sources[r].items[0].bytes : 0};
        settle(&flows[r]);
    }
    for (;;) {
        double step = -1;
        set_rates(flows, n, rates);
        for (uint32_t r = 0; r < n; r++) {
            const double end =
                running(&flows[r]) ? flows[r].left / flows[r].rate : -1;
            if (end >= 0 && (step < 0 || end < step)) {
                step = end;
            }
        }
        if (step < 0) {
            break;
        }
        now += step;
        for (uint32_t r = 0; r < n; r++) {
            if (running(&flows[r])) {
                const double moved = flows[r].rate * step;
                flows[r].left =
                    flows[r].left - moved > 1e-6 ? flows[r].left - moved : 0;
                settle(&flows[r]);
            }
        }
    }
    free(flows);
    return now;
}
