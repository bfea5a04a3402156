/*
 * Standard error, written by its own thread: a stopped terminal, or a pipe that
 * nobody reads, must not block the event loop for longer than agents wait for a
 * sign of life.
 *
 * Lines queue up to RF_OUTPUT_QUEUE_BYTES. Further lines are dropped; once
 * there is room, one line says how many. Of the status, a line that is redrawn
 * below all others, only the last is kept.
 */
#ifndef RF_COORDINATOR_COMMANDS_OUTPUT_H
#define RF_COORDINATOR_COMMANDS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What launcher manual prints for a thousand nodes, several times over. */
#define RF_OUTPUT_QUEUE_BYTES ((size_t)2 << 20)

struct rf_output;

/* Writes to `fd`, which is borrowed. */
struct rf_output *rf_output_create(int fd);
/* After rf_output_end(), and when the log is not its any more: a program whose
 * log stays with it until it exits leaves it be. */
void rf_output_destroy(struct rf_output *output);

/* Whether it is a terminal that can redraw a line. */
bool rf_output_is_terminal(const struct rf_output *output);

/* Becomes the log's sink; errors and warnings are coloured on a terminal. */
void rf_output_take_log(struct rf_output *output);

/* One line, without its end. From any thread; never waits for the reader. */
void rf_output_line(struct rf_output *output, const char *text);

/* Replaces the status; "" takes it away. As above. */
void rf_output_status(struct rf_output *output, const char *text);

/* Waits until all is written, `wait_ms` at most; false when it is not. */
bool rf_output_flush(struct rf_output *output, uint32_t wait_ms);

/* Flushes, without the status, and ends the thread. Lines that come later are
 * written at once, or are lost if `wait_ms` was not enough. */
void rf_output_end(struct rf_output *output, uint32_t wait_ms);

#endif
