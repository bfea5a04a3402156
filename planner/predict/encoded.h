/*
 * Predicted times of refits with an encoding: the simulation of simulate.h with
 * fewer bytes on links, beside comparing, encoding and writing. An estimate;
 * docs/MEASURING.md, "Predictions of encodings", has the formulas.
 */
#ifndef RF_PLANNER_PREDICT_ENCODED_H
#define RF_PLANNER_PREDICT_ENCODED_H

#include "planner/predict/simulate.h"

/* The bytes sent of a tensor with elements of `width` bytes, of which a share
 * changes each by itself, as a share of all. */
double rf_encoded_bytes(enum rf_encoding encoding,
                        const struct rf_update_spec *update, double share,
                        uint32_t width);

/* The share of cache lines with a change. */
double rf_encoded_lines(double share, uint32_t width);

/* NULL: the model covers the plan with that encoding; otherwise why not. */
const char *rf_encoded_gap(const struct rf_plan *plan,
                           enum rf_encoding encoding);

#define RF_ITS_SHARES (-1.)

/* As rf_simulate(), with an encoding, which the model covers, or dense. `share`
 * of each family's elements changes; RF_ITS_SHARES: what the scenario says.
 * Nodes without a figure of scans compare in no time. */
enum rf_status rf_simulate_encoded(const struct rf_simulate_env *env,
                                   enum rf_encoding encoding, double share,
                                   struct rf_simulated *out,
                                   struct rf_err *err) RF_MUST_CHECK;

/* The share of changes below which a simulation with the encoding takes less
 * than `ms`: 0: none, 1: any. */
enum rf_status rf_encoded_crossover(const struct rf_simulate_env *env,
                                    enum rf_encoding encoding, double ms,
                                    double *share,
                                    struct rf_err *err) RF_MUST_CHECK;

#endif
