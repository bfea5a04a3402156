/* See logged.h. */
#include "tests/lib/logged.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

char logged[16384];
static size_t n_lines, n_at[RF_LOG_TRACE + 1];

static void take_line(enum rf_log_level level, const char *line, void *data)
{
    size_t used = strlen(logged);
    (void)data;
    snprintf(logged + used, sizeof(logged) - used, "%s\n", line);
    n_lines++;
    n_at[level]++;
}

void logged_begin(void)
{
    logged[0] = '\0';
    n_lines = 0;
    memset(n_at, 0, sizeof(n_at));
    rf_log_set_sink(take_line, NULL);
}

void logged_end(void)
{
    rf_log_set_sink(NULL, NULL);
}

void logged_expect(enum rf_log_level level, size_t n)
{
    logged_end();
    ck_assert_msg(n_lines == n && n_at[level] == n, "%s", logged);
}
