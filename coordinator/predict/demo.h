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

/* "140GB", "16.4 GB", "500MB", "1.2TB", decimal. RF_ERR_USAGE. */
enum rf_status rf_demo_size(const char *text, uint64_t *bytes,
                            struct rf_err *err) RF_MUST_CHECK;

/* Milliseconds of a weight update over the fabric of that name: one transfer at
 * its rate, or a write and a read. The fabric must be one of the demo. */
double rf_demo_ms(const char *fabric, uint64_t bytes);

/* The largest update that takes at most `ms`, in bytes; 0: none does, INFINITY:
 * every one does. */
double rf_demo_bytes_within(const char *fabric, double ms);

void rf_demo_print(uint64_t bytes, bool json, FILE *to);

#endif
