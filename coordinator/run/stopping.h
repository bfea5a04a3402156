/*
 * When a scenario has been measured enough ("iterations" as an object). Both
 * functions look at the measured iterations that are kept and at `pending`,
 * which is iteration `at` and not kept yet.
 */
#ifndef RF_COORDINATOR_RUN_STOPPING_H
#define RF_COORDINATOR_RUN_STOPPING_H

#include "coordinator/scenario/attempt.h"

/* Whether there are `min` of them and half the 95 % interval of the median is
 * less than ci_percent of it: of the times, and with yardsticks of the ratios,
 * too. The yardstick of `at` must have come before. */
bool rf_stopping_samples(const struct rf_attempt *attempt, uint32_t at);

/* Whether there are `min` of them and max_s have passed between the start of
 * the first refit and the end of the last. */
bool rf_stopping_time(const struct rf_attempt *attempt, uint32_t at);

#endif
