/* Log lines: levels, prefix, sink, length limit, one line a call on stderr. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "tests/unit/unit.h"

struct seen {
    int lines;
    enum rf_log_level level;
    char last[4096];
};

static void remember(enum rf_log_level level, const char *line, void *data)
{
    struct seen *seen = data;
    seen->lines++;
    seen->level = level;
    snprintf(seen->last, sizeof(seen->last), "%s", line);
}

TEST(test_log_drops_lines_above_the_level)
{
    struct seen seen = {0};
    rf_log_init(RF_LOG_INFO, NULL);
    rf_log_set_sink(remember, &seen);
    rf_debug("not shown");
    ck_assert_int_eq(seen.lines, 0);
    rf_info("rank %d ready", 3);
    ck_assert_int_eq(seen.lines, 1);
    ck_assert_str_eq(seen.last, "rank 3 ready");
    rf_log_init(RF_LOG_TRACE, NULL);
    ck_assert_int_eq(rf_log_level(), RF_LOG_TRACE);
    rf_trace("shown");
    ck_assert_int_eq(seen.level, RF_LOG_TRACE);
    ck_assert_str_eq(seen.last, "trace: shown");
}

TEST(test_log_prefix_comes_before_the_level)
{
    struct seen seen = {0};
    rf_log_init(RF_LOG_INFO, "gpu-a:2: ");
    rf_log_set_sink(remember, &seen);
    rf_error("lost");
    ck_assert_str_eq(seen.last, "gpu-a:2: error: lost");
    rf_warn("slow");
    ck_assert_str_eq(seen.last, "gpu-a:2: warning: slow");
}

TEST(test_log_cuts_long_lines)
{
    struct seen seen = {0};
    char word[4000];
    memset(word, 'a', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    rf_log_init(RF_LOG_INFO, NULL);
    rf_log_set_sink(remember, &seen);
    rf_info("%s", word);
    ck_assert_uint_ge(strlen(seen.last), 2000);
    ck_assert_uint_lt(strlen(seen.last), 2048);
}

TEST(test_log_writes_one_line_to_stderr)
{
    char text[256];
    int ends[2];
    ssize_t got;
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_ge(dup2(ends[1], STDERR_FILENO), 0);
    rf_log_init(RF_LOG_INFO, "a: ");
    rf_log_set_sink(NULL, NULL);
    rf_info("hello");
    got = read(ends[0], text, sizeof(text));
    ck_assert_int_eq(got, 9);
    ck_assert_int_eq(memcmp(text, "a: hello\n", 9), 0);
}
