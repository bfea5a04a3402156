/* Makes what a node wrote fit for a terminal and a result file. */
#ifndef RF_COORDINATOR_REDACT_H
#define RF_COORDINATOR_REDACT_H

#include <stddef.h>

/*
 * Copies `size` bytes of a line to `out` (at most out_size with the NUL):
 * control characters become '?', and the numbers that NCCL prints of its secret
 * unique ID ("magic 0x…", "expected 0x…") are replaced by "[redacted]".
 */
void rf_redact_line(const char *line, size_t size, char *out, size_t out_size);

#endif
