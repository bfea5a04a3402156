/*
 * Standard error, written by its own thread. A stopped terminal or an unread
 * pipe must not block the event loop for longer than agents wait for a sign of
 * life.
 *
 * Lines queue up to RF_STDERR_WRITER_QUEUE_BYTES. Further lines are dropped;
 * once there is room, one line says how many. The status is a line redrawn
 * below all others; only the last one is kept.
 */
#ifndef RF_COORDINATOR_COMMANDS_STDERR_WRITER_H
#define RF_COORDINATOR_COMMANDS_STDERR_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Several times the output of launcher manual for a thousand nodes. */
#define RF_STDERR_WRITER_QUEUE_BYTES ((size_t)2 << 20)

struct rf_stderr_writer;

/* Writes to `fd`, which is borrowed. */
struct rf_stderr_writer *rf_stderr_writer_create(int fd);
/* Call it after rf_stderr_writer_end(), and only if the writer is no longer the
 * log's sink. A program that keeps it as the sink until exit does not destroy
 * it. */
void rf_stderr_writer_destroy(struct rf_stderr_writer *output);

/* Whether it is a terminal that can redraw a line. */
bool rf_stderr_writer_is_terminal(const struct rf_stderr_writer *output);

/* Becomes the log's sink; errors and warnings are coloured on a terminal. */
void rf_stderr_writer_take_log(struct rf_stderr_writer *output);

/* One line, without its end. From any thread; never waits for the reader. */
void rf_stderr_writer_line(struct rf_stderr_writer *output, const char *text);

/* Replaces the status; "" removes it. As above. */
void rf_stderr_writer_status(struct rf_stderr_writer *output, const char *text);

/* Waits until all is written, at most `wait_ms`; false on timeout. */
bool rf_stderr_writer_flush(struct rf_stderr_writer *output, uint32_t wait_ms);

/* Flushes, without the status, and ends the thread. Later lines are written
 * directly, or are lost if `wait_ms` was too short. */
void rf_stderr_writer_end(struct rf_stderr_writer *output, uint32_t wait_ms);

#endif
