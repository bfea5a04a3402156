/* What is kept of what a rank writes. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/scenario/rank_log.h"
#include "tests/unit/unit.h"

/* What is printed of the log, which is freed. */
static char *printed(struct rf_rank_log *log)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    rf_rank_log_print(log, file);
    fclose(file);
    rf_rank_log_free(log);
    return text;
}

TEST(test_rank_log_names_each_phase_once)
{
    struct rf_rank_log log = {0};
    AUTO_FREE char *text;
    rf_rank_log_add(&log, "filling", "a");
    rf_rank_log_add(&log, "filling", "b");
    rf_rank_log_add(&log, "closing", "c");
    text = printed(&log);
    ck_assert_str_eq(text, "filling:\n  a\n  b\nclosing:\n  c\n");
}

LOOP_TEST(test_rank_log_keeps_the_first_and_the_last_lines, 4)
{
    const int n = 2 * RF_RANK_LOG_LINES + _i;
    struct rf_rank_log log = {0};
    char line[24], *text;
    unsigned lines = 0;
    for (int i = 0; i < n; i++) {
        snprintf(line, sizeof(line), "line %d.", i);
        rf_rank_log_add(&log, "p", line);
    }
    text = printed(&log);
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) {
        lines++;
    }
    ck_assert_uint_eq(lines, 2 * RF_RANK_LOG_LINES + 1 + (_i > 0));
    assert_says(text, "  line 0.\n");
    assert_says(text, "  line 199.\n");
    assert_says(text, line);
    snprintf(line, sizeof(line), "(%d lines left out)\n", _i);
    ck_assert_int_eq(strstr(text, line) != NULL, _i > 0);
    ck_assert_int_eq(strstr(text, "line 200.\n") != NULL, _i == 0);
    free(text);
}
