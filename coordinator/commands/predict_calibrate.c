/*
 * Calibration: the simulation knows how much each resource has to do, results
 * know what of the resource's speed a method gets. So for each method, apart
 * for refits that are held up inside nodes and between them, simulated times
 * are multiplied with what results took of them. Pure. See predict.h.
 */
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/stats.h"
#include "coordinator/commands/predict.h"

static double median_of(const double *samples, size_t n)
{
    struct rf_stats stats;
    rf_stats_compute(samples, n, &stats);
    return stats.median;
}

/* Whether row `i` says something that none before it does. */
static bool counts(const struct rf_predict_rows *rows, size_t i)
{
    const struct rf_predict_row *row = &rows->rows[i];
    if (row->gap != NULL || row->measured_ms <= 0 || row->p.simulated_ms <= 0) {
        return false;
    }
    for (size_t j = 0; j < i; j++) {
        if (rows->rows[j].result == row->result) {
            return false;
        }
    }
    return true;
}

struct factor {
    double value; /* 1 where there are no results */
    size_t n;
    bool beaten; /* a result is below its bound: figures are too low */
};

/* From the results with the method and path of `row`: all, or those that are
 * not its own. */
static struct factor factor_for(const struct rf_predict_rows *rows,
                                const struct rf_predict_row *row, bool others)
{
    double *ratios = rf_xcalloc(rows->n, sizeof(*ratios));
    struct factor factor = {.value = 1};
    for (size_t i = 0; i < rows->n; i++) {
        const struct rf_predict_row *at = &rows->rows[i];
        if (at->method == row->method && at->p.path == row->p.path &&
            counts(rows, i) && !(others && at->result == row->result)) {
            ratios[factor.n++] = at->measured_ms / at->p.simulated_ms;
            factor.beaten |= at->measured_ms < at->p.bound_ms;
        }
    }
    if (factor.n > 0) {
        factor.value = median_of(ratios, factor.n);
    }
    free(ratios);
    return factor;
}

static double calibrated_ms(const struct rf_prediction *p,
                            const struct factor *factor)
{
    const double ms = p->simulated_ms * factor->value;
    return factor->beaten ? ms : RF_MAX(ms, p->bound_ms);
}

static void calibrate_row(const struct rf_predict_rows *rows,
                          struct rf_predict_row *row)
{
    struct rf_prediction *p = &row->p;
    struct factor factor = factor_for(rows, row, false);
    p->factor = factor.value;
    p->n_results = factor.n;
    p->ms = calibrated_ms(p, &factor);
    if (row->result != NULL) {
        factor = factor_for(rows, row, true);
        p->others_ms = calibrated_ms(p, &factor);
    }
}

void rf_predict_calibrate(struct rf_predict_rows *rows,
                          struct rf_leave_one_out *out)
{
    double *errors = rf_xcalloc(rows->n, sizeof(*errors));
    *out = (struct rf_leave_one_out){.n = 0};
    for (size_t i = 0; i < rows->n; i++) {
        struct rf_predict_row *row = &rows->rows[i];
        if (row->gap == NULL) {
            calibrate_row(rows, row);
        }
        if (counts(rows, i)) {
            double error = fabs(row->p.others_ms / row->measured_ms - 1);
            if (out->n == 0 || error > out->worst) {
                out->worst = error;
                out->worst_row = row;
            }
            errors[out->n++] = error;
        }
    }
    if (out->n > 0) {
        out->median = median_of(errors, out->n);
    }
    free(errors);
}
