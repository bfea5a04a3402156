/* What makes a scenario's figures doubtful. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/records/doubts.h"
#include "tests/unit/unit.h"

/* Ten iterations with these times and one start skew; two ranks on node a. */
static json_t *record_of(const double times[10], double skew_us, int cpus)
{
    json_t *list = json_array();
    for (size_t i = 0; i < 10; i++) {
        json_array_append_new(list, json_pack("{s:f, s:f, s:n}", "refit_ms",
                                              times[i], "start_skew_us",
                                              skew_us, "yardstick_ratio"));
    }
    return json_pack("{s:s, s:o, s:[{s:s, s:i}], s:[{s:s}, {s:s}], "
                     "s:{s:{s:i, s:f}}}",
                     "name", "x", "iterations", list, "environment", "host",
                     "a", "cpus", cpus, "memory", "host", "a", "host", "a",
                     "scenario", "iterations", "max", 10, "ci_percent", 2.0);
}

static const double calm[10] = {100, 101, 99, 100, 101, 99, 100, 101, 99, 100};

/* The flags, each with a space behind it. */
static const char *flags_of(json_t *record)
{
    static char out[200];
    json_auto_t *flags = rf_doubts_json(record);
    out[0] = '\0';
    for (size_t i = 0; i < json_array_size(flags); i++) {
        strcat(out, json_string_value(json_array_get(flags, i)));
        strcat(out, " ");
    }
    json_decref(record);
    return out;
}

TEST(test_flags_name_what_is_unstable)
{
    const double outlier[10] = {100, 101, 99, 100, 101, 99, 100, 101, 250, 100};
    const double drift[10] = {100, 101, 102, 103, 104, 105, 106, 107, 108, 109};
    const double modes[10] = {100, 150, 150, 100, 101, 151, 151, 101, 100, 150};
    ck_assert_str_eq(flags_of(record_of(calm, 0, 2)), "");
    ck_assert_str_eq(flags_of(record_of(outlier, 0, 2)), "outliers unstable ");
    ck_assert_str_eq(flags_of(record_of(drift, 0, 2)),
                     "wide_interval drift unstable ");
    ck_assert_str_eq(flags_of(record_of(modes, 0, 2)),
                     "wide_interval bimodal unstable ");
}

/* Half of the interval is below 5 %, above it and, of four iterations, unknown.
 */
TEST(test_flags_find_wide_intervals_without_ci_percent)
{
    const double narrow[10] = {100, 97, 103, 98, 102, 99, 101, 97, 103, 100};
    const double wide[10] = {100, 88, 112, 92, 108, 96, 104, 90, 110, 100};
    const struct {
        const double *times;
        size_t count;
        const char *flags;
    } cases[] = {
        {narrow, 10, ""}, {wide, 10, "wide_interval unstable "}, {wide, 4, ""}};
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        json_t *record = record_of(cases[i].times, 0, 2);
        json_t *list = json_object_get(record, "iterations");
        json_object_set_new(record, "scenario",
                            json_pack("{s:i}", "iterations", 10));
        while (json_array_size(list) > cases[i].count) {
            json_array_remove(list, 0);
        }
        ck_assert_str_eq(flags_of(record), cases[i].flags);
    }
}

LOOP_TEST(test_flags_find_slowdowns_that_are_not_known, 2)
{
    static const char *const keys[] = {"refit_slowdown", "load_slowdown"};
    json_t *record = record_of(calm, 0, 2), *one;
    size_t i;
    json_array_foreach (json_object_get(record, "iterations"), i, one) {
        json_object_set_new(one, keys[_i], json_real(i % 2 == 0 ? 1.1 : 1.5));
    }
    ck_assert_str_eq(flags_of(record), "wide_interval unstable ");
}

/* Of the record itself, or of one of its repeats, though all together hold. */
TEST(test_flags_have_a_bound_that_was_beaten)
{
    static const char *const bounds[] = {"bound", "schedule_bound"};
    json_t *record;
    for (size_t i = 0; i < RF_ARRAY_SIZE(bounds); i++) {
        record = record_of(calm, 0, 2);
        json_object_set_new(record, bounds[i], json_pack("{s:b}", "valid", 1));
        ck_assert_str_eq(flags_of(json_incref(record)), "");
        json_object_set_new(record, bounds[i], json_pack("{s:b}", "valid", 0));
        ck_assert_str_eq(flags_of(record), "bound_not_valid ");
    }
    record = record_of(calm, 0, 2);
    json_object_set_new(record, "bound", json_pack("{s:b}", "valid", 1));
    json_object_set_new(
        record, "repeats",
        json_pack("[{s:[]}, {s:[s]}]", "flags", "flags", "bound_not_valid"));
    assert_says(flags_of(record), "bound_not_valid ");
}

static json_t *with_ratio(double ratio, bool valid)
{
    json_t *record = record_of(calm, 0, 2);
    json_object_set_new(record, "bound", json_pack("{s:b}", "valid", valid));
    json_object_set_new(
        record, "summary",
        json_pack("{s:{s:f}}", "yardstick_ratio", "median", ratio));
    return record;
}

TEST(test_flags_say_that_it_was_the_yardsticks_that_were_slowed)
{
    json_t *record = with_ratio(1.01, true);
    ck_assert_str_eq(flags_of(with_ratio(0.78, false)),
                     "bound_not_valid slow_yardsticks ");
    ck_assert_str_eq(flags_of(with_ratio(1.02, false)), "bound_not_valid ");
    ck_assert_str_eq(flags_of(with_ratio(0.78, true)), "");
    json_object_set_new(
        record, "repeats",
        json_pack("[{s:[]}, {s:[s]}]", "flags", "flags", "slow_yardsticks"));
    assert_says(flags_of(record), "slow_yardsticks ");
}

static json_t *with_sent(int sent, int whole)
{
    json_t *record = with_ratio(0.78, false);
    json_object_set_new(json_object_get(record, "summary"), "sent_bytes",
                        json_integer(sent));
    json_object_set_new(record, "schedule",
                        json_pack("{s:i}", "wire_bytes", whole));
    return record;
}

/* A yardstick moves whole weights: it is slower than changes alone. */
TEST(test_flags_expect_changes_to_beat_their_yardsticks)
{
    ck_assert_str_eq(flags_of(with_sent(3, 100)), "bound_not_valid ");
    ck_assert_str_eq(flags_of(with_sent(100, 100)),
                     "bound_not_valid slow_yardsticks ");
}

TEST(test_flags_have_weights_that_ranks_could_have_mapped)
{
    json_t *record = record_of(calm, 0, 2);
    json_object_set_new(record, "setup",
                        json_pack("{s:s}", "over_tcp", "1 messages by tcp/lo"));
    ck_assert_str_eq(flags_of(record), "");
    record = record_of(calm, 0, 2);
    json_object_set_new(
        record, "setup",
        json_pack("{s:s}", "unmapped", "messages by posix/memory,cma/memory"));
    ck_assert_str_eq(flags_of(record), "unmapped ");
}

/* What one node counted, in a record's summary. */
static json_t *with_network(int seen, const char *idle, int repeated,
                            double percent)
{
    json_t *record = record_of(calm, 0, 2);
    json_object_set_new(
        record, "summary",
        json_pack(
            "{s:[{s:s, s:i, s:i, s:i, s:i, s:f, s:i, s:f, s:[s], s:[s*]}]}",
            "network", "host", "a", "planned_sent_bytes", 50000000,
            "planned_received_bytes", 50000000, "sent_bytes", seen / 2,
            "received_bytes", seen / 2, "ratio", seen / 1e8, "retransmits",
            repeated, "retransmit_percent", percent, "nics_used", "eth0",
            "nics_idle", idle));
    return record;
}

TEST(test_flags_have_a_load_below_its_rate)
{
    static const struct {
        double asked, alone;
        const char *flags;
    } cases[] = {{10, 9.55, ""}, {10, 9.45, "weak_load "}, {1, 2, ""}};
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        json_t *record = record_of(calm, 0, 2);
        json_object_set_new(record, "summary",
                            json_pack("{s:{s:f, s:f}}", "load",
                                      "asked_gbytes_per_s", cases[i].asked,
                                      "alone_gbytes_per_s", cases[i].alone));
        ck_assert_str_eq(flags_of(record), cases[i].flags);
    }
}

/* A record of refits under load: `of_load` are members of summary.load. */
static json_t *with_load(const char *of_load)
{
    json_t *record = record_of(calm, 0, 2);
    json_object_set_new(
        record, "summary",
        json_pack("{s:o}", "load", json_loads(of_load, 0, NULL)));
    return record;
}

#define SLOWDOWN(of, low, high)                                                \
    "{\"" of "_slowdown\": {\"median\": " low ", \"low\": " low                \
    ", \"high\": " high "}}"

TEST(test_flags_have_slowdowns_below_1_by_more_than_noise)
{
    static const char *const slow[] = {SLOWDOWN("refit", "0.7", "0.96"),
                                       SLOWDOWN("load", "0.7", "0.96"),
                                       "{\"load_slowdown\": {\"median\": 0.5, "
                                       "\"low\": null, \"high\": null}}"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(slow); i++) {
        ck_assert_str_eq(flags_of(with_load(slow[i])), "");
    }
    ck_assert_str_eq(flags_of(with_load(SLOWDOWN("refit", "0.7", "0.94"))),
                     "sped_up ");
    ck_assert_str_eq(flags_of(with_load(SLOWDOWN("load", "0.7", "0.94"))),
                     "sped_up ");
}

/* The load's 4 or 6 ms without the refit hide 5 % of a slowdown of 2.2 or 2. */
TEST(test_flags_have_refits_too_short_beside_the_load)
{
    static const struct {
        double ms, load_ms, slowdown;
        const char *flags;
    } cases[] = {{100, 104, 2.2, ""},
                 {100, 106, 2.0, "short_refits "},
                 {100, 199, 1.0, ""},
                 {100, 201, 1.0, "short_refits "},
                 {100, 99, 9.0, ""}};
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        json_t *record = record_of(calm, 0, 2);
        json_object_set_new(record, "summary",
                            json_pack("{s:{s:f, s:f, s:{s:f}}}", "load",
                                      "median_ms", cases[i].ms, "load_ms",
                                      cases[i].load_ms, "load_slowdown",
                                      "median", cases[i].slowdown));
        ck_assert_str_eq(flags_of(record), cases[i].flags);
    }
}

/* Of bounds by conversions, which no yardstick measures again. */
TEST(test_flags_find_conversions_at_two_speeds)
{
    static const struct {
        const char *resource;
        double before, after;
        const char *flags;
    } cases[] = {
        {"conversion on a", 9, 11, ""},
        {"conversion on a", 3, 9, "probes_differ "},
        {"link a in and conversion", 9, 3, "probes_differ "},
        {"link a in", 3, 9, ""},
        {"memory of conversion-1", 3, 9, ""},
    };
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        json_t *record = record_of(calm, 0, 2);
        json_object_set_new(
            record, "bound",
            json_pack("{s:s, s:{s:{s:[{s:s, s:f}]}, s:{s:[{s:s, s:f}]}}}",
                      "resource", cases[i].resource, "probe", "before", "nodes",
                      "host", "a", "convert_gbytes_per_s", cases[i].before,
                      "after", "nodes", "host", "a", "convert_gbytes_per_s",
                      cases[i].after));
        ck_assert_str_eq(flags_of(record), cases[i].flags);
    }
}

TEST(test_flags_have_what_the_network_counted)
{
    ck_assert_str_eq(flags_of(with_network(100000000, NULL, 0, 0)), "");
    ck_assert_str_eq(flags_of(with_network(115900000, NULL, 50, 0.0099)), "");
    ck_assert_str_eq(flags_of(with_network(116100000, NULL, 9, 0.01)),
                     "other_traffic ");
    ck_assert_str_eq(flags_of(with_network(100000000, NULL, 10, 0.01)),
                     "retransmits ");
    ck_assert_str_eq(flags_of(with_network(100000000, "eth1", 0, 0)),
                     "idle_nics ");
    /* By other ways than NICs. */
    ck_assert_str_eq(flags_of(with_network(49000000, "eth1", 0, 0)), "");
}

/* Of 100 ms, 4 %, 6 % and 26 %. */
TEST(test_flags_allow_more_start_skew_where_ranks_share_cores)
{
    ck_assert_str_eq(flags_of(record_of(calm, 4000, 2)), "");
    ck_assert_str_eq(flags_of(record_of(calm, 6000, 2)),
                     "start_skew unstable ");
    ck_assert_str_eq(flags_of(record_of(calm, 6000, 1)), "");
    ck_assert_str_eq(flags_of(record_of(calm, 26000, 1)),
                     "start_skew unstable ");
}

TEST(test_flags_give_reasons)
{
    AUTO_FREE char *text;
    json_auto_t *valid =
        json_pack("{s:s, s:[s]}", "name", "fine", "flags", "bound_not_valid");
    json_auto_t *one = json_pack("{s:s, s:[s, s, s]}", "name", "b", "flags",
                                 "drift", "bimodal", "unstable");
    json_auto_t *two =
        json_pack("{s:s, s:[s, i]}", "name", "c", "flags", "unstable", 5);
    ck_assert_ptr_null(rf_doubts_reasons(valid));
    text = rf_doubts_reasons(one);
    ck_assert_str_eq(text, "drift, bimodal");
    free(rf_doubts_reasons(two));
}
