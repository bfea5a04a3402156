/* The command that runs a scenario again. */
#include "common/compiler.h"
#include "coordinator/records/replay.h"
#include "tests/lib/quotes.h"
#include "tests/unit/unit.h"

TEST(test_replay_quotes_what_a_shell_would_take_apart)
{
    static const struct {
        const char *program, *path;
        uint32_t n_repeats;
        const char *command;
    } cases[] = {
        {"refit-coord", "results/t/one.json", 1,
         "refit-coord rerun results/t/one.json"},
        {"refit-coord", "r/one.json", 3,
         "refit-coord rerun r/one.json "
         "--repeat 3"},
        {"/a b/refit-coord", "/r/s-method=host.json", 1,
         "'/a b/refit-coord' rerun '/r/s-method=host.json'"},
        {"refit-coord", "it's $HOME `x`.json", 0,
         "refit-coord rerun 'it'\\''s $HOME `x`.json'"},
        {"refit-coord", "-o/one.json", 1, "refit-coord rerun ./-o/one.json"},
        {"refit-coord", "~/a\n.json", 1, "refit-coord rerun '~/a\n.json'"},
        {"", "x", 1, "'' rerun x"},
    };
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        AUTO_FREE char *command = rf_replay_command(
            cases[i].program, cases[i].path, cases[i].n_repeats);
        ck_assert_str_eq(command, cases[i].command);
    }
}

TEST(test_replay_needs_a_plan_and_keeps_the_repeats)
{
    static const struct {
        const char *record, *command;
    } cases[] = {
        {"{'plan': {'digest': 'd'}}", "c rerun f"},
        {"{'plan': {'digest': 'd'}, 'repeats': [{}, {}]}",
         "c rerun f --repeat 2"},
        {"{'plan': null}", NULL},
        {"{}", NULL},
    };
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        json_auto_t *record = json_loads(Q(cases[i].record), 0, NULL);
        AUTO_FREE char *command = rf_replay_of_record("c", "f", record);
        ck_assert_pstr_eq(command, cases[i].command);
    }
}
