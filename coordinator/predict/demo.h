/*
 * `predict --demo SIZE`: the time of a weight update of that size over common
 * hardware, from nominal figures alone (docs/FABRICS.md). MEASURING.md,
 * "Published times", describes the demo that this follows. Pure except for
 * printing.
 */
#ifndef RF_COORDINATOR_PREDICT_DEMO_H
#define RF_COORDINATOR_PREDICT_DEMO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "coordinator/config/links/timeline.h"

#define RF_DEMO_SIZE "140GB" /* default size */

/* "140GB", "500 mb", "1.2TB", decimal; "140" is GB; "70B" and "600M" are
 * parameters in bfloat16. RF_ERR_USAGE. */
enum rf_status rf_demo_size(const char *text, uint64_t *bytes,
                            struct rf_err *err) RF_MUST_CHECK;

/* Milliseconds of a weight update over the named fabric: one transfer at its
 * rate, or a write and a read. The fabric must be one of the demo's. */
double rf_demo_ms(const char *fabric, uint64_t bytes);

/* Likewise, with one pass for a disk, as in the demo. */
double rf_demo_one_pass_ms(const char *fabric, uint64_t bytes);

/* The demo's rating of such a time. */
const char *rf_demo_verdict(const char *fabric, double ms);

/* The largest update within `ms`, in bytes; 0: none, INFINITY: any. */
double rf_demo_bytes_within(const char *fabric, double ms);

/* Input for printing. A training step has one update to the engine and one
 * back. */
struct rf_demo {
    uint64_t bytes;
    const struct rf_timeline *step;
    bool explain; /* adds two explanations to the text */
};

void rf_demo_print(const struct rf_demo *demo, bool json, FILE *to);

#endif
