/*
 * Which of a rank's conversions ("quantize") the window has: those of what its
 * ops read or write. Other replicas may send the rest. Pure.
 */
#ifndef RF_PLANNER_SCHEDULE_CONVERSIONS_H
#define RF_PLANNER_SCHEDULE_CONVERSIONS_H

#include "planner/plan/quantize.h"
#include "planner/schedule/schedule.h"

/* Whole blocks of every format. */
#define RF_CONVERSION_ROWS UINT64_C(128)

/* Rows [row, row + rows) of one of a rank's matrices. */
struct rf_conversion {
    uint32_t group; /* with "overlap", the first that needs them, else 0;
                       RF_NO_GROUP: no op reads them */
    uint32_t matrix;
    uint64_t row, rows;
};

/* The rank that converts what an op reads, at its sender, or writes, at its
 * receiver; RF_NONE: none does. */
uint32_t rf_conversion_rank(const struct rf_plan *plan, const struct rf_op *op);

/*
 * Lists all rows of what->matrices once, ascending by group and matrix; *n gets
 * the length. Freed with free(). `schedule` has the rank's ops. Of a sender's
 * matrix, the rows between the first and the last that an op reads, scales
 * included, are in one entry, rounded to RF_CONVERSION_ROWS.
 */
struct rf_conversion *rf_conversions_make(const struct rf_plan *plan,
                                          const struct rf_schedule *schedule,
                                          uint32_t rank,
                                          const struct rf_quantize *what,
                                          size_t *n);

#endif
