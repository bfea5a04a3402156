/*
 * `predict --demo SIZE`: what a weight update of so many bytes takes over usual
 * hardware, from nominal figures alone (docs/FABRICS.md). The demo that it
 * follows is in MEASURING.md, "Published times". Pure but for the printing.
 */
#ifndef RF_COORDINATOR_PREDICT_DEMO_H
#define RF_COORDINATOR_PREDICT_DEMO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "coordinator/config/links/timeline.h"

#define RF_DEMO_SIZE "140GB" /* where none is given */

/* "140GB", "500 mb", "1.2TB", decimal; "140" is GB; "70B" and "600M" are
 * parameters in bfloat16. RF_ERR_USAGE. */
enum rf_status rf_demo_size(const char *text, uint64_t *bytes,
                            struct rf_err *err) RF_MUST_CHECK;

/* Milliseconds of a weight update over the fabric of that name: one transfer at
 * its rate, or a write and a read. The fabric must be one of the demo. */
double rf_demo_ms(const char *fabric, uint64_t bytes);

/* The same where a disk counts as one pass, as the demo has it. */
double rf_demo_one_pass_ms(const char *fabric, uint64_t bytes);

/* The demo's word for such a time. */
const char *rf_demo_verdict(const char *fabric, double ms);

/* The largest update that takes at most `ms`, in bytes; 0: none does, INFINITY:
 * every one does. */
double rf_demo_bytes_within(const char *fabric, double ms);

/* What is printed of it. The step of training has one update to the engine and
 * one back. */
struct rf_demo {
    uint64_t bytes;
    const struct rf_timeline *step;
    bool explain; /* the text has two explanations, too */
};

void rf_demo_print(const struct rf_demo *demo, bool json, FILE *to);

#endif
