/* Progress on standard error. On a terminal: one line with a bar and the time
 * left, redrawn around log lines. Otherwise: plain lines. */
#ifndef RF_COORDINATOR_COMMANDS_PROGRESS_H
#define RF_COORDINATOR_COMMANDS_PROGRESS_H

#include <jansson.h>
#include <stdint.h>

#include "coordinator/commands/stderr_writer.h"
#include "coordinator/run/run.h"

struct rf_progress;

/* Borrows `output`. With `quiet`, only log lines are shown. */
struct rf_progress *rf_progress_create(struct rf_stderr_writer *output,
                                       bool quiet);
void rf_progress_destroy(struct rf_progress *progress); /* NULL is fine */

void rf_progress_update(struct rf_progress *progress,
                        const struct rf_run_view *view, int64_t now_ns);
/* Redraws; call it a few times a second. */
void rf_progress_tick(struct rf_progress *progress, int64_t now_ns);
/* Prints one line about a scenario's record. */
void rf_progress_scenario(struct rf_progress *progress, const json_t *result);

/* Formats that line. Pure, for tests. */
void rf_progress_result(const json_t *result, char *out, size_t size);

/* Share of the work done, 0 to 1. Pure, for tests. */
double rf_progress_share(const struct rf_run_view *view);

/* The bar, `text` (ASCII) and `left` in less than `width` columns; `text` is
 * cut with an ellipsis. `size` is at least 64. Pure, for tests. */
void rf_progress_line(const struct rf_run_view *view, const char *text,
                      const char *left, size_t width, char *out, size_t size);

/* ", 1.20 GB of 3.08 GB read", or "". Pure, for tests. */
void rf_progress_reading(const struct rf_run_view *view, char out[80]);

/* "1:05" or "1:02:03". Pure. */
const char *rf_progress_clock(int64_t seconds, char out[32]);

#endif
