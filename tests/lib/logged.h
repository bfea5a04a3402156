/* Lines of the log, kept in place of printing them. */
#ifndef RF_TESTS_LIB_LOGGED_H
#define RF_TESTS_LIB_LOGGED_H

#include <stddef.h>

#include "common/log.h"

extern char logged[16384]; /* since the last beginning, a newline after each */

void logged_begin(void);
void logged_end(void);
/* Ends it, and fails the test unless there were `n` lines, all at `level`. */
void logged_expect(enum rf_log_level level, size_t n);

#endif
