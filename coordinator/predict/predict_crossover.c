/* Where an encoding stops being faster than dense. Pure. See predict.h. */
#include "common/mem.h"
#include "coordinator/predict/predict.h"
#include "planner/predict/encoded.h"

static void take_slower(double *slowest, double gbytes_per_s)
{
    if (*slowest == 0 || gbytes_per_s < *slowest) {
        *slowest = gbytes_per_s;
    }
}

/* The figures that it depends on: of the slowest link in use, and of the node
 * that compares longest. Auto compares no copies, but what passes sockets. */
static void crossover_figures(const struct rf_predict_input *input,
                              enum rf_encoding encoding,
                              struct rf_crossover *out)
{
    const struct rf_schedule *schedule = input->scenario->schedule;
    const struct rf_capacities *links = &input->links;
    const struct rf_method_info *info = rf_method_info_find(input->method);
    double longest = 0;
    for (uint32_t n = 0; n < links->n_nodes; n++) {
        const double scan = links->scan_gbytes_per_s[n];
        const double bytes =
            (double)(schedule->node_send[n] +
                     rf_predict_compared(schedule, info, encoding, n));
        if (schedule->node_send[n] > 0) {
            take_slower(&out->link_gbytes_per_s,
                        rf_capacities_capacity(links, n, true));
        }
        if (schedule->node_peer[n] > 0 && links->sends_inside) {
            take_slower(&out->socket_gbytes_per_s, links->copy_gbytes_per_s[n]);
        }
        if (scan > 0 && bytes / scan > longest) {
            longest = bytes / scan;
            out->scan_gbytes_per_s = scan;
            out->n_ranks = rf_scenario_node_ranks(input->scenario, n);
        }
    }
}

/* What whole weights are predicted to take: as rows of that method and path. */
static double dense_ms(const struct rf_predict_rows *rows,
                       const struct rf_predict_row *row,
                       const struct rf_simulated *dense)
{
    const struct rf_predict_row like = {.method = row->method,
                                        .encoding = RF_ENCODING_DENSE,
                                        .p = {.path = dense->path}};
    for (size_t i = 0; i < rows->n; i++) {
        const struct rf_predict_row *at = &rows->rows[i];
        if (at->gap == NULL && rf_predict_alike(at, &like)) {
            return at->p.fixed_ms + at->p.factor * dense->ms;
        }
    }
    return dense->ms;
}

enum rf_status rf_predict_crossover(const struct rf_predict_rows *rows,
                                    const struct rf_predict_input *input,
                                    struct rf_predict_row *row,
                                    struct rf_err *err)
{
    const struct rf_simulate_env env = rf_predict_env(input);
    struct rf_simulated dense;
    double ms;
    RF_TRY(rf_simulate(&env, &dense, err));
    ms = (dense_ms(rows, row, &dense) - row->p.fixed_ms) / row->p.factor;
    RF_TRY(rf_encoded_crossover(&env, row->encoding, ms, &row->crossover.share,
                                err));
    crossover_figures(input, row->encoding, &row->crossover);
    return RF_OK;
}
