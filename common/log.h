/*
 * Log lines on stderr. Never on stdout, which holds requested output only.
 *
 * Levels: ERROR: it ended something; WARN: the user should know; INFO: progress
 * (default); DEBUG: details for a bug report (-v); TRACE: every message (-vv).
 * Lower case, values after a word ("rank 3"), one line a call. Safe from any
 * thread; the level and prefix are set once at start.
 */
#ifndef RF_COMMON_LOG_H
#define RF_COMMON_LOG_H

#include "common/compiler.h"

enum rf_log_level {
    RF_LOG_ERROR,
    RF_LOG_WARN,
    RF_LOG_INFO,
    RF_LOG_DEBUG,
    RF_LOG_TRACE,
};

/* `prefix` (copied, at most 63 bytes; may be NULL) starts each line. */
void rf_log_init(enum rf_log_level level, const char *prefix);
enum rf_log_level rf_log_level(void);

/* Replaces the writer of finished lines (without newline), so that a progress
 * bar can redraw itself around them; NULL restores stderr. */
void rf_log_set_sink(void (*sink)(enum rf_log_level level, const char *line,
                                  void *data),
                     void *data);

void rf_log(enum rf_log_level level, const char *fmt, ...) RF_PRINTF(2, 3);

#define rf_error(...) rf_log(RF_LOG_ERROR, __VA_ARGS__)
#define rf_warn(...) rf_log(RF_LOG_WARN, __VA_ARGS__)
#define rf_info(...) rf_log(RF_LOG_INFO, __VA_ARGS__)
#define rf_debug(...) rf_log(RF_LOG_DEBUG, __VA_ARGS__)
#define rf_trace(...) rf_log(RF_LOG_TRACE, __VA_ARGS__)

#endif
