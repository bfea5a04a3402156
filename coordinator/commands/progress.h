/* Progress on standard error: on a terminal one line with a bar and the time
 * left, redrawn around log lines; plain lines otherwise. */
#ifndef RF_COORDINATOR_COMMANDS_PROGRESS_H
#define RF_COORDINATOR_COMMANDS_PROGRESS_H

#include <jansson.h>
#include <stdint.h>

#include "coordinator/commands/stderr_writer.h"
#include "coordinator/run/run.h"

struct rf_progress;

/* On `output`, which is borrowed. With `quiet` nothing but log lines is shown.
 */
struct rf_progress *rf_progress_create(struct rf_stderr_writer *output,
                                       bool quiet);
void rf_progress_destroy(struct rf_progress *progress); /* NULL is fine */

void rf_progress_update(struct rf_progress *progress,
                        const struct rf_run_view *view, int64_t now_ns);
/* Redraws; to be called a few times a second. */
void rf_progress_tick(struct rf_progress *progress, int64_t now_ns);
/* A scenario's record: one line about it. */
void rf_progress_scenario(struct rf_progress *progress, const json_t *result);

/* That line. Pure, for tests. */
void rf_progress_result(const json_t *result, char *out, size_t size);

/* Share of the work that is done, 0 to 1. Pure, for tests. */
double rf_progress_share(const struct rf_run_view *view);

/* The bar, `text` (ASCII) and `left` in less than `width` columns: `text` gives
 * way with an ellipsis. `size` is 64 at least. Pure, for tests. */
void rf_progress_line(const struct rf_run_view *view, const char *text,
                      const char *left, size_t width, char *out, size_t size);

/* ", 1.20 GB of 3.08 GB read", or nothing. Pure, for tests. */
void rf_progress_reading(const struct rf_run_view *view, char out[80]);

/* "1:05" or "1:02:03". Pure. */
const char *rf_progress_clock(int64_t seconds, char out[32]);

#endif
