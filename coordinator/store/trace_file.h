/* The traced iterations of a run in the Trace Event format, for Perfetto and
 * chrome://tracing; docs/MEASURING.md describes the contents. */
#ifndef RF_COORDINATOR_STORE_TRACE_FILE_H
#define RF_COORDINATOR_STORE_TRACE_FILE_H

#include <jansson.h>

#include "coordinator/scenario/attempt.h"

struct rf_trace_file;

struct rf_trace_file *rf_trace_file_create(void);

/* Adds the ranks' events in the attempt's traced iteration, if any: the refit
 * and, beside it, its yardstick. `record` is the attempt's, for the times of
 * the other iterations. */
void rf_trace_file_add(struct rf_trace_file *file,
                       const struct rf_attempt *attempt, const json_t *record);

/* Frees the file and returns its text. Caller frees; NULL: out of memory. */
char *rf_trace_file_end(struct rf_trace_file *file);

#endif
