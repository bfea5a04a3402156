/* The sentences under a table. */
#include <stdlib.h>

#include "coordinator/records/doubts.h"
#include "tests/unit/unit.h"

AUTO_STRUCT(rf_remarks, rf_remarks_free)

static json_t *record(const char *name, const char *over_tcp)
{
    return json_pack("{s:s, s:{s:s, s:s*}}", "name", name, "setup",
                     "registration", "UCX 1.13.1", "over_tcp", over_tcp);
}

static void add(struct rf_remarks *remarks, json_t *of)
{
    rf_remarks_add(remarks, NULL, of);
    json_decref(of);
}

static void expect(const struct rf_remarks *remarks, enum rf_remark about,
                   const char *line)
{
    AUTO_FREE char *text = rf_remarks_line(remarks, about);
    ck_assert_pstr_eq(text, line);
}

TEST(test_a_path_that_is_tcp_is_said)
{
    struct rf_remarks remarks = {.n_records = 0};
    add(&remarks, record("fast", NULL));
    expect(&remarks, RF_REMARK_OVER_TCP, NULL);
    add(&remarks,
        record("a\nb",
               "6 messages by tcp/eth0, 2 messages by tcp/lo,tcp/eth0"));
    add(&remarks, record("c", "1 messages by tcp/lo"));
    expect(&remarks, RF_REMARK_OVER_TCP,
           "UCX took TCP: a b (6 messages by tcp/eth0, 2 messages by "
           "tcp/lo,tcp/eth0); c (1 messages by tcp/lo)");
    expect(&remarks, RF_REMARK_UNSTABLE, NULL);
    rf_remarks_free(&remarks);
    expect(&remarks, RF_REMARK_OVER_TCP, NULL);
}

TEST(test_imported_times_are_named_with_their_window)
{
    AUTO(rf_remarks) remarks = {.n_records = 0};
    add(&remarks, record("own", NULL));
    expect(&remarks, RF_REMARK_IMPORTED, NULL);
    add(&remarks,
        json_pack("{s:s, s:s, s:{s:s, s:s}}", "name", "a", "status", "imported",
                  "source", "system", "SysX", "window", "with loading"));
    expect(&remarks, RF_REMARK_IMPORTED,
           "imported, measured by others: a (SysX: with loading)");
}

TEST(test_a_load_below_its_rate_is_named_with_both_rates)
{
    AUTO(rf_remarks) remarks = {.n_records = 0};
    add(&remarks,
        json_pack("{s:s, s:[s], s:{s:{s:f, s:f}}}", "name", "a", "flags",
                  "weak_load", "summary", "load", "asked_gbytes_per_s", 5.0,
                  "alone_gbytes_per_s", 3.25));
    expect(&remarks, RF_REMARK_WEAK_LOAD,
           "load of all ranks too slow even alone (lower rate, more cores): a "
           "(3.25 of 5 GB/s)");
}

TEST(test_figures_of_the_load_that_cannot_be_are_named)
{
    AUTO(rf_remarks) remarks = {.n_records = 0};
    add(&remarks,
        json_pack("{s:s, s:[s], s:{s:{s:{s:f, s:f, s:f}}}}", "name", "a",
                  "flags", "sped_up", "summary", "load", "refit_slowdown",
                  "median", 0.51, "low", 0.48, "high", 0.6));
    add(&remarks,
        json_pack("{s:s, s:[s], s:{s:{s:f, s:f, s:{s:f}}}}", "name", "b",
                  "flags", "short_refits", "summary", "load", "median_ms", 1.25,
                  "load_ms", 4.5, "load_slowdown", "median", 1.5));
    expect(&remarks, RF_REMARK_SPED_UP,
           "faster together than apart (idle cores slow or asleep? other "
           "load?): a (refit slowdown 0.51 [0.48, 0.60])");
    expect(&remarks, RF_REMARK_SHORT_REFITS,
           "load slowdown says too little, its load outlasts refits: b (1.25 "
           "of 4.5 ms)");
}

TEST(test_rates_of_converted_weights_are_named)
{
    AUTO(rf_remarks) remarks = {.n_records = 0};
    static const char *const ends[] = {"receiver", "sender"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(ends); i++) {
        add(&remarks,
            json_pack("{s:s, s:{s:{s:s}}, s:{s:{s:s}}}", "name", ends[i],
                      "scenario", "quantize", "at", ends[i], "summary",
                      "conversion", "name", "mxfp8@sender"));
    }
    expect(&remarks, RF_REMARK_CONVERTED,
           "bytes and GB/s are of converted weights (compare median ms): "
           "sender (mxfp8@sender)");
}

TEST(test_conversions_at_two_speeds_are_named_with_both)
{
    AUTO(rf_remarks) remarks = {.n_records = 0};
    add(&remarks,
        json_pack("{s:s, s:[s], s:{s:s, s:{s:{s:[{s:s, s:f}]}, s:{s:[{s:s, "
                  "s:f}]}}}}",
                  "name", "x", "flags", "probes_differ", "bound", "resource",
                  "conversion on a", "probe", "before", "nodes", "host", "a",
                  "convert_gbytes_per_s", 3.0, "after", "nodes", "host", "a",
                  "convert_gbytes_per_s", 9.5));
    expect(
        &remarks, RF_REMARK_PROBES_DIFFER,
        "bounds uncertain, nodes converted at two speeds (repeat when idle): "
        "x (a: 3 GB/s before the iterations, 9.5 after)");
}

TEST(test_slowed_yardsticks_are_named_with_what_does_more)
{
    AUTO(rf_remarks) remarks = {.n_records = 0};
    add(&remarks,
        json_pack("{s:s, s:[s]}", "name", "fine", "flags", "bound_not_valid"));
    expect(&remarks, RF_REMARK_SLOW_YARDSTICKS, NULL);
    add(&remarks, json_pack("{s:s, s:[s, s], s:{s:s}}", "name", "a", "flags",
                            "bound_not_valid", "slow_yardsticks",
                            "schedule_bound", "underestimated", "memory of n"));
    add(&remarks,
        json_pack("{s:s, s:[s]}", "name", "b", "flags", "slow_yardsticks"));
    expect(&remarks, RF_REMARK_SLOW_YARDSTICKS,
           "yardsticks were slowed more than refits; vs contiguous is too low: "
           "a (memory of n); b (unknown resource)");
}

TEST(test_weights_without_room_in_shared_memory_are_named)
{
    AUTO(rf_remarks) remarks = {.n_records = 0};
    json_t *flagged =
        json_pack("{s:s, s:{s:s}}", "name", "x", "setup", "unmapped",
                  "messages by posix/memory,cma/memory");
    add(&remarks, json_incref(flagged));
    expect(&remarks, RF_REMARK_UNMAPPED, NULL);
    json_object_set_new(flagged, "flags", json_pack("[s]", "unmapped"));
    add(&remarks, flagged);
    expect(&remarks, RF_REMARK_UNMAPPED,
           "no room in /dev/shm (or UCX_POSIX_DIR) for weights, slow in nodes: "
           "x (messages by posix/memory,cma/memory)");
}

/* Older results have the way in registration alone. */
TEST(test_weights_without_room_are_not_put_in_a_repeat_that_is_not_there)
{
    static const struct {
        const char *repeats, *line;
    } cases[] = {{"[]", "x (see setup.registration)"},
                 {"[{}]", "x (see setup.registration)"},
                 {"[{}, {}]", "x (in some repeats)"}};
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        AUTO(rf_remarks) remarks = {.n_records = 0};
        AUTO_FREE char *line;
        json_t *flagged = record("x", NULL);
        json_object_set_new(flagged, "flags", json_pack("[s]", "unmapped"));
        json_object_set_new(flagged, "repeats",
                            json_loads(cases[i].repeats, 0, NULL));
        add(&remarks, flagged);
        line = rf_remarks_line(&remarks, RF_REMARK_UNMAPPED);
        assert_says(line, cases[i].line);
    }
}

static json_t *counted(const char *name, const char *flag)
{
    return json_pack("{s:s, s:[s], s:{s:[{s:s, s:i, s:i, s:f, s:i, s:f, s:[s], "
                     "s:[s, s]}, {s:s}, "
                     "{s:s, s:f, s:[], s:[s]}]}}",
                     "name", name, "flags", flag, "summary", "network", "host",
                     "n1", "planned_sent_bytes", 10000000, "sent_bytes",
                     25000000, "ratio", 2.5, "retransmits", 20,
                     "retransmit_percent", 0.25, "nics_used", "eth0",
                     "nics_idle", "eth1", "eth2", "host", "n2", "host", "n3",
                     "ratio", 1.0, "nics_used", "nics_idle", "eth0");
}

TEST(test_what_the_network_counted_is_said_of_flagged_records)
{
    static const struct {
        const char *flag;
        enum rf_remark about;
        const char *line;
    } cases[] = {
        {"idle_nics", RF_REMARK_IDLE_NICS,
         "idle NICs (try other addresses, UCX_NET_DEVICES, NCCL_IB_HCA): x (1 "
         "of 3 used on n1 and 1 more node)"},
        {"other_traffic", RF_REMARK_OTHER_TRAFFIC,
         "other traffic on the network, times may be too long: x (2.5 times "
         "the planned bytes on n1)"},
        {"retransmits", RF_REMARK_RETRANSMITS,
         "TCP sent segments again (full queues? wrong MTU?): x (0.25 % on "
         "n1)"}};
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        AUTO(rf_remarks) remarks = {.n_records = 0};
        add(&remarks, counted("x", cases[i].flag));
        add(&remarks, counted("y", "drift"));
        expect(&remarks, cases[i].about, cases[i].line);
    }
}

TEST(test_a_missing_rate_is_explained)
{
    AUTO(rf_remarks) remarks = {.n_records = 0};
    add(&remarks,
        json_pack("{s:s, s:{s:b}}", "name", "copied", "bound", "zero_copy", 0));
    expect(&remarks, RF_REMARK_ZERO_COPY, NULL);
    add(&remarks,
        json_pack("{s:s, s:{s:b}}", "name", "x", "bound", "zero_copy", 1));
    expect(&remarks, RF_REMARK_ZERO_COPY, "no GB/s: x (weights left in place)");
}

TEST(test_scenarios_that_ran_out_of_time_are_named)
{
    AUTO(rf_remarks) remarks = {.n_records = 0};
    add(&remarks,
        json_pack("{s:s, s:s, s:{s:i}}", "name", "known", "iterations_ended_by",
                  "ci", "summary", "count", 9));
    expect(&remarks, RF_REMARK_OUT_OF_TIME, NULL);
    add(&remarks,
        json_pack("{s:s, s:s, s:{s:i}}", "name", "x", "iterations_ended_by",
                  "max_s", "summary", "count", 37));
    expect(&remarks, RF_REMARK_OUT_OF_TIME,
           "stopped at iterations.max_s: x (37 iterations)");
}

TEST(test_a_record_without_setup_says_nothing)
{
    AUTO(rf_remarks) remarks = {.n_records = 0};
    add(&remarks,
        json_pack("{s:s, s:{s:s}}", "name", "x", "scenario", "method", "ucx"));
    add(&remarks,
        json_pack("{s:s, s:{s:i}}", "name", "x", "setup", "over_tcp", 1));
    expect(&remarks, RF_REMARK_OVER_TCP, NULL);
}

TEST(test_scenarios_of_several_runs_are_named_with_them)
{
    AUTO(rf_remarks) remarks = {.n_records = 0};
    for (int run = 1; run < 3; run++) {
        json_auto_t *of = record("x", "1 messages by tcp/lo");
        char name[] = {'r', (char)('0' + run), '\0'};
        rf_remarks_add(&remarks, name, of);
    }
    expect(&remarks, RF_REMARK_OVER_TCP,
           "UCX took TCP: r1/x, r2/x (1 messages by tcp/lo)");
}

static json_t *unstable(const char *name, const char *flag)
{
    return json_pack("{s:s, s:[s, s]}", "name", name, "flags", flag,
                     "unstable");
}

TEST(test_scenarios_with_one_reason_share_it)
{
    AUTO(rf_remarks) remarks = {.n_records = 0};
    add(&remarks, unstable("a", "drift"));
    add(&remarks, unstable("b\nc", "outliers"));
    add(&remarks, unstable("d", "drift"));
    expect(&remarks, RF_REMARK_UNSTABLE,
           "unstable, see flags: a, d (drift); b c (outliers)");
}

TEST(test_all_of_many_scenarios_are_not_listed)
{
    AUTO(rf_remarks) remarks = {.n_records = 0};
    add(&remarks, unstable("a", "drift"));
    add(&remarks, unstable("b", "drift"));
    add(&remarks, unstable("c", "drift"));
    expect(&remarks, RF_REMARK_UNSTABLE,
           "unstable, see flags: a, b, c (drift)");
    add(&remarks, unstable("d", "drift"));
    expect(&remarks, RF_REMARK_UNSTABLE, "unstable, see flags: all 4 (drift)");
    add(&remarks, json_pack("{s:s}", "name", "stable"));
    expect(&remarks, RF_REMARK_UNSTABLE,
           "unstable, see flags: a, b, c, d (drift)");
}
