/* A robust line through points. See stats.h. */
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/stats.h"

/* The slope through two points. */
struct slope {
    double slope, weight;
};

static int by_slope(const void *a, const void *b)
{
    const struct slope *x = a, *y = b;
    return RF_COMPARE(x->slope, y->slope);
}

/* The slopes of all `n` pairs with different x; freed with free(). */
static struct slope *list_pairs(const double *x, const double *y, size_t count,
                                size_t *n)
{
    struct slope *pairs = rf_xcalloc(count * count / 2 + 1, sizeof(*pairs));
    *n = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            const double dx = x[i] - x[j];
            if (fabs(dx) > 0) {
                pairs[(*n)++] = (struct slope){(y[i] - y[j]) / dx, fabs(dx)};
            }
        }
    }
    return pairs;
}

/* The first slope with at least half of all weight at or below it; if that is
 * exactly half, the midpoint to the next one. */
static double weighted_median(struct slope *pairs, size_t n)
{
    double half = 0, below = 0;
    size_t at = 0;
    qsort(pairs, n, sizeof(*pairs), by_slope);
    for (size_t i = 0; i < n; i++) {
        half += pairs[i].weight / 2;
    }
    while (at + 1 < n && below + pairs[at].weight < half) {
        below += pairs[at++].weight;
    }
    return at + 1 < n && below + pairs[at].weight <= half
               ? (pairs[at].slope + pairs[at + 1].slope) / 2
               : pairs[at].slope;
}

bool rf_stats_line(const double *x, const double *y, size_t count,
                   double *fixed, double *slope)
{
    size_t n;
    struct slope *pairs = list_pairs(x, y, count, &n);
    double *rests;
    if (n == 0) {
        free(pairs);
        return false;
    }
    *slope = weighted_median(pairs, n);
    rests = rf_xcalloc(count, sizeof(*rests));
    for (size_t i = 0; i < count; i++) {
        rests[i] = y[i] - *slope * x[i];
    }
    qsort(rests, count, sizeof(*rests), rf_stats_by_value);
    *fixed = rf_percentile(rests, count, 50);
    free(rests);
    free(pairs);
    return true;
}
