/* What START tells ranks. */
#include <string.h>

#include "coordinator/run/start.h"
#include "tests/unit/coordinator/run/attempt_lab.h"
#include "tests/unit/unit.h"

static bool is_needed(const struct rf_msg_start *start, const char *path)
{
    for (size_t i = 0; i < start->needs.n; i++) {
        if (strcmp(start->needs.list[i], path) == 0) {
            return true;
        }
    }
    return false;
}

TEST(test_start_needs_what_changes_the_refit)
{
    static const char *const needed[] = {
        "$.scenario.mode", "$.scenario.cast", "$.scenario.train",
        "$.scenario.train.tp", "$.scenario.infer.layout"};
    static const char *const harmless[] = {"$.scenario.name",
                                           "$.scenario.iterations",
                                           "$.scenario.iterations.max"};
    const uint8_t key[32] = {0};
    AUTO(attempt_lab) lab =
        attempt_lab_create_until("{\"max\": 9, \"ci_percent\": 5}", "");
    struct rf_preflight_join *join = rf_preflight_join_create(lab.pair.config);
    struct rf_msg message;
    rf_run_start_fill(lab.attempt, join, key, &message);
    for (size_t i = 0; i < RF_ARRAY_SIZE(needed); i++) {
        ck_assert_msg(is_needed(&message.start, needed[i]), "%s", needed[i]);
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(harmless); i++) {
        ck_assert_msg(!is_needed(&message.start, harmless[i]), "%s",
                      harmless[i]);
    }
    rf_msg_free(&message);
    rf_preflight_join_destroy(join);
}
