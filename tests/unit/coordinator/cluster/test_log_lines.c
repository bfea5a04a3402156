/* What agents and ranks write, as lines. */
#include <string.h>

#include "coordinator/cluster/log_lines.h"
#include "planner/scenario/world.h"
#include "tests/unit/unit.h"
#include "transport/control/message_types.h"

static char taken[8192];

static void take(uint32_t rank, const char *line, void *data)
{
    size_t used = strlen(taken);
    ck_assert_ptr_eq(data, taken);
    snprintf(taken + used, sizeof(taken) - used, "%d:%s|",
             rank == RF_NONE ? -1 : (int)rank, line);
}

static const char *lines_of(uint32_t rank, const char *text)
{
    struct rf_frame frame = {.type = RF_MSG_LOG,
                             .rank = rank,
                             .payload = (const uint8_t *)text,
                             .length = (uint32_t)strlen(text)};
    taken[0] = '\0';
    rf_log_lines_of(&frame, take, taken);
    return taken;
}

TEST(test_log_lines_are_split_and_empty_ones_left_out)
{
    ck_assert_str_eq(lines_of(3, "one\n\ntwo\nthree"), "3:one|3:two|3:three|");
    ck_assert_str_eq(lines_of(3, "\n\n"), "");
    ck_assert_str_eq(lines_of(3, ""), "");
}

TEST(test_log_lines_of_no_rank_are_the_agents)
{
    ck_assert_str_eq(lines_of(RF_FRAME_NO_RANK, "x\n"), "-1:x|");
    taken[0] = '\0';
    rf_log_lines_one("y", take, taken);
    ck_assert_str_eq(taken, "-1:y|");
}

TEST(test_log_lines_are_clean_and_cut)
{
    static char longest[3000];
    ck_assert_str_eq(lines_of(0, "\x1b[31mred\x07\n"), "0:?[31mred?|");
    memset(longest, 'x', sizeof(longest) - 1);
    ck_assert_uint_eq(strlen(lines_of(0, longest)), 2 + 1023 + 1);
}
