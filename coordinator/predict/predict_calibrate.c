/*
 * Calibration. The simulation knows the work of each resource; results show the
 * fraction of its speed that a method reaches, and the overhead. So for each
 * method and path (what limits it: inside nodes, between nodes and so on), or
 * encoding, simulated times are put on a line through measured ones, which are
 * compared with simulations of the links that they ran on. Pure. See predict.h.
 */
#include <math.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/stats.h"
#include "coordinator/predict/predict.h"
#include "coordinator/records/fields.h"

/* Whether row `i` has a usable result that no earlier row has. Another system's
 * times, which may include other work, say nothing about a method here. */
static bool counts(const struct rf_predict_rows *rows, size_t i)
{
    const struct rf_predict_row *row = &rows->rows[i];
    if (row->gap != NULL || row->measured.ms <= 0 ||
        row->own.simulated_ms <= 0 ||
        rf_result_is_imported(row->measured.from->result)) {
        return false;
    }
    for (size_t j = 0; j < i; j++) {
        if (rows->rows[j].measured.from == row->measured.from) {
            return false;
        }
    }
    return true;
}

/* From the results of a method and path: measured = fixed + factor x
 * simulated. */
struct fit {
    double fixed_ms, factor; /* 0 and 1 without results */
    size_t n;
    double ratio; /* median of measured / simulated */
    bool beaten;  /* a result is below its bound: figures are too low */
};

/* An encoding costs what no path of whole weights does, whatever limits it. */
static bool are_alike(const struct rf_predict_row *a, enum rf_path a_path,
                      const struct rf_predict_row *b, enum rf_path b_path)
{
    return a->method == b->method && a->encoding == b->encoding &&
           (a_path == b_path || a->encoding != RF_ENCODING_DENSE);
}

bool rf_predict_alike(const struct rf_predict_row *a,
                      const struct rf_predict_row *b)
{
    return are_alike(a, a->p.path, b, b->p.path);
}

/* Whether simulated times differ enough to determine the fixed part. */
static bool span_a_line(const double *simulated, size_t n)
{
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < n; i++) {
        least = RF_MIN(least, simulated[i]);
        most = RF_MAX(most, simulated[i]);
    }
    return n >= RF_PREDICT_LINE_RESULTS && most >= RF_PREDICT_LINE_SPAN * least;
}

/* Fits a line if there are enough points and it makes sense: neither a negative
 * fixed time, nor less time for more work. Otherwise uses the median ratio of
 * measured to simulated time. */
static void fit_points(const double *simulated, const double *measured,
                       struct fit *fit)
{
    double *ratios = rf_xcalloc(fit->n + 1, sizeof(*ratios));
    double fixed_ms, factor;
    for (size_t i = 0; i < fit->n; i++) {
        ratios[i] = measured[i] / simulated[i];
    }
    fit->ratio = fit->n > 0 ? rf_stats_median(ratios, fit->n) : 1;
    free(ratios);
    if (span_a_line(simulated, fit->n) &&
        rf_stats_line(simulated, measured, fit->n, &fixed_ms, &factor) &&
        fixed_ms >= 0 && factor > 0) {
        fit->fixed_ms = fixed_ms;
        fit->factor = factor;
    } else {
        fit->factor = fit->ratio;
    }
}

/* For rows like `row` with that path, from all results but `except`. */
static struct fit fit_for(const struct rf_predict_rows *rows,
                          const struct rf_predict_row *row, enum rf_path path,
                          const struct rf_result_file *except)
{
    double *simulated = rf_xcalloc(rows->n, sizeof(*simulated));
    double *measured = rf_xcalloc(rows->n, sizeof(*measured));
    struct fit fit = {.n = 0};
    for (size_t i = 0; i < rows->n; i++) {
        const struct rf_predict_row *at = &rows->rows[i];
        if (counts(rows, i) && at->measured.from != except &&
            are_alike(at, at->own.path, row, path)) {
            simulated[fit.n] = at->own.simulated_ms;
            measured[fit.n++] = at->measured.ms;
            fit.beaten |= at->measured.ms < at->own.bound_ms;
        }
    }
    fit_points(simulated, measured, &fit);
    free(simulated);
    free(measured);
    return fit;
}

static double calibrated_ms(const struct rf_prediction *p,
                            const struct fit *fit)
{
    const double ms = fit->fixed_ms + fit->factor * p->simulated_ms;
    return fit->beaten ? ms : RF_MAX(ms, p->bound_ms);
}

static void calibrate_row(const struct rf_predict_rows *rows,
                          struct rf_predict_row *row)
{
    struct rf_prediction *p = &row->p;
    struct fit fit = fit_for(rows, row, p->path, NULL);
    p->fixed_ms = fit.fixed_ms;
    p->factor = fit.factor;
    p->n_results = fit.n;
    p->ratio = fit.ratio;
    p->ms = calibrated_ms(p, &fit);
    if (row->own.simulated_ms > 0) {
        fit = fit_for(rows, row, row->own.path, row->measured.from);
        p->others_ms = calibrated_ms(&row->own, &fit);
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
            double error = fabs(row->p.others_ms / row->measured.ms - 1);
            if (out->n == 0 || error > out->worst) {
                out->worst = error;
                out->worst_row = row;
            }
            errors[out->n++] = error;
        }
    }
    if (out->n > 0) {
        out->median = rf_stats_median(errors, out->n);
    }
    free(errors);
}
