/* Which state follows which while a scenario is measured. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "coordinator/run/measure.h"
#include "tests/unit/coordinator/run/attempt_lab.h"
#include "tests/unit/unit.h"

static struct attempt_lab lab;
static struct rf_run_probes *probes;
static struct rf_run_measure *measure;

static void create_until(const char *iterations, const char *more)
{
    lab = attempt_lab_create_until(iterations, more);
    probes = rf_run_probes_create(2);
    measure = rf_run_measure_create(lab.attempt, probes);
}

static void create(const char *more)
{
    create_until("2", more);
}

static void teardown(void)
{
    rf_run_measure_destroy(measure);
    rf_run_probes_destroy(probes);
    attempt_lab_free(&lab);
}

/* Every rank answers a probe with this rate. */
static double probed_gbytes_per_s = 1;

static void answer_probe(enum rf_state state)
{
    struct rf_msg_probed figures = {.gbytes_per_s = probed_gbytes_per_s,
                                    .single_gbytes_per_s = probed_gbytes_per_s,
                                    .scan_gbytes_per_s = probed_gbytes_per_s,
                                    .convert_gbytes_per_s = probed_gbytes_per_s,
                                    .latency_us = 1};
    for (uint32_t r = 0; r < LAB_RANKS; r++) {
        const struct rf_msg_answer answer = {.rank = r, .probed = &figures};
        ck_assert_int_eq(rf_run_measure_take(measure, state, &answer, NULL),
                         RF_OK);
    }
}

/* Two ranks have a yardstick that moves bytes, the others have none. */
static void answer_prepare(void)
{
    char plan[RF_HASH_TEXT_SIZE], schedule[RF_HASH_TEXT_SIZE];
    struct rf_msg_yardstick part = {.copied_bytes = 3000000,
                                    .sent_bytes = 600000};
    struct rf_msg_prepared prepared = {
        .plan_digest = plan, .schedule_digest = schedule, .yardstick = &part};
    rf_hash_text(&lab.scenario->plan->digest, plan);
    rf_hash_text(&lab.scenario->schedule->digest, schedule);
    for (uint32_t r = 0; r < LAB_RANKS; r++) {
        const struct rf_msg_answer answer = {.rank = r, .prepared = &prepared};
        prepared.yardstick = r < 2 ? &part : NULL;
        ck_assert_int_eq(
            rf_run_measure_take(measure, RUN_PREPARING, &answer, NULL), RF_OK);
    }
}

/* Rank r takes r + 1 ms, in each measurement 1 ms more. */
static void answer_yardstick(void)
{
    static int64_t round;
    for (uint32_t r = 0; r < LAB_RANKS; r++) {
        struct rf_msg_ran ran = {.ns = (int64_t)(r + 1) * 1000000 + round};
        const struct rf_msg_answer answer = {.rank = r, .ran = &ran};
        ck_assert_int_eq(
            rf_run_measure_take(measure, RUN_YARDSTICK, &answer, NULL), RF_OK);
    }
    round += 1000000;
}

/* Every rank takes that long, from the iteration's number in seconds on. */
static int64_t refit_ns;
/* The rates of loads beside refits, in turn: the whole, half of it, … */
static uint32_t load_steps = 1;

static void answer_run(void)
{
    const uint32_t iteration = rf_run_measure_iteration(measure);
    int64_t start = iteration * RF_NS_PER_S;
    for (uint32_t r = 0; r < LAB_RANKS; r++) {
        struct rf_msg_ran ran = {
            .ns = refit_ns, .start_ns = start, .end_ns = start + refit_ns};
        if (lab.attempt->under_load) {
            ran.load_alone_ns = ran.load_ns = refit_ns;
            ran.load_alone_bytes = UINT64_C(1) << 30;
            ran.load_bytes =
                ran.load_alone_bytes / (1 + iteration % load_steps);
        }
        const struct rf_msg_answer answer = {.rank = r, .ran = &ran};
        ck_assert_int_eq(
            rf_run_measure_take(measure, RUN_RUNNING, &answer, NULL), RF_OK);
    }
}

/* One rank compares everything. */
static void answer_verify(struct rf_msg_mismatch *first)
{
    struct rf_msg_verified verified = {
        .checked_bytes = lab.scenario->plan->totals.bytes_total,
        .mismatched_bytes = first != NULL,
        .first = first};
    const struct rf_msg_answer answer = {.rank = 0, .verified = &verified};
    ck_assert_int_eq(rf_run_measure_take(measure, RUN_VERIFYING, &answer, NULL),
                     RF_OK);
}

/* Goes through one state; returns the next. */
static enum rf_state pass(enum rf_state state, struct rf_msg_mismatch *first)
{
    enum rf_state next = RUN_IDLE;
    enum rf_verdict verdict = RF_VERDICT_GO_ON;
    struct rf_fault fault;
    (void)rf_run_measure_enter(measure, state);
    while (verdict == RF_VERDICT_GO_ON) {
        if (strcmp(rf_state_step(state), "probe") == 0) {
            answer_probe(state);
        } else if (state == RUN_VERIFYING) {
            answer_verify(first);
        } else if (state == RUN_YARDSTICK) {
            answer_yardstick();
        } else if (state == RUN_RUNNING) {
            answer_run();
        }
        verdict = rf_run_measure_answered(measure, state, &next, &fault);
    }
    ck_assert_int_eq(verdict, RF_VERDICT_NEXT);
    return next;
}

/* The states' steps from the beginning to the end. */
static const char *way(struct rf_msg_mismatch *first)
{
    static char steps[400];
    size_t used = 0;
    for (enum rf_state state = RUN_PREPARING; state != RUN_STARTING;
         state = pass(state, first)) {
        used += (size_t)snprintf(steps + used, sizeof(steps) - used, "%s ",
                                 rf_state_step(state));
        ck_assert_uint_lt(used, sizeof(steps));
    }
    return steps;
}

FIXTURE(fake_run_quiet, NULL)

TEST(test_measure_verifies_each_iteration)
{
    create("");
    ck_assert_str_eq(way(NULL), "prepare probe fill run verify fill run verify "
                                "fill run verify probe close ");
    ck_assert_uint_eq(lab.attempt->n_iterations, 3);
    ck_assert_uint_eq(lab.attempt->verified, 2);
    ck_assert(lab.attempt->probed_before && lab.attempt->probed_after);
    ck_assert(lab.attempt->closed);
    teardown();
}

/* What STEP asks for in the iteration in progress. */
static uint32_t trace_asked(enum rf_state state)
{
    struct rf_msg_step step;
    uint32_t asked;
    rf_schema_init(&rf_msg_step_schema, &step);
    rf_run_measure_ask(measure, state, &step);
    asked = step.trace;
    rf_schema_free(&rf_msg_step_schema, &step);
    return asked;
}

TEST(test_measure_keeps_a_traced_iteration_out_of_the_figures)
{
    create("");
    rf_run_measure_trace(measure);
    ck_assert_uint_eq(trace_asked(RUN_RUNNING), RF_ABSENT_U32);
    ck_assert_str_eq(way(NULL), "prepare probe fill run verify fill run verify "
                                "fill run verify fill run verify probe close ");
    ck_assert_uint_eq(lab.attempt->n_iterations, 3);
    ck_assert_uint_eq(lab.attempt->verified, 2);
    ck_assert_uint_eq(lab.attempt->checked_bytes,
                      2 * lab.scenario->plan->totals.bytes_total);
    ck_assert_ptr_nonnull(lab.attempt->traced_refit.samples);
    ck_assert_ptr_null(lab.attempt->traced_yardstick.samples);
    teardown();
}

TEST(test_measure_asks_for_a_trace_in_the_last_iteration_only)
{
    uint32_t asked = 0;
    create("");
    answer_prepare();
    rf_run_measure_trace(measure);
    for (enum rf_state state = RUN_PREPARING; state != RUN_CLOSING;
         state = pass(state, NULL)) {
        const bool last = rf_run_measure_iteration(measure) == 3;
        const bool timed = state == RUN_RUNNING || state == RUN_YARDSTICK;
        ck_assert_int_eq(trace_asked(state) != RF_ABSENT_U32, last && timed);
        asked += last && timed;
    }
    ck_assert_uint_eq(asked, 2);
    teardown();
}

/* It comes after the refit, though it would be its turn to come before. */
TEST(test_measure_traces_the_yardstick_for_the_trace_alone)
{
    double rate;
    create("");
    answer_prepare();
    rf_run_measure_trace(measure);
    ck_assert_str_eq(way(NULL),
                     "prepare probe fill run verify yardstick yardstick fill "
                     "run verify fill run verify yardstick fill run verify "
                     "yardstick close ");
    ck_assert_uint_eq(lab.attempt->n_iterations, 3);
    /* 1 ms more than the one before, of which the last rank's is kept */
    ck_assert_int_eq(lab.attempt->traced_yardstick.samples[0].ns,
                     lab.attempt->iterations[2].yardstick_ns -
                         (int64_t)(LAB_RANKS - 2) * 1000000);
    rate = lab.attempt->yardstick.copy_gbytes_per_s[0];
    free(lab.attempt->traced_yardstick.samples); /* and a much faster one */
    for (uint32_t r = 0; r < LAB_RANKS; r++) {
        lab.attempt->pending_yardstick[r].ns = 100000;
    }
    rf_attempt_keep_yardstick(lab.attempt, 3);
    ck_assert_double_eq(lab.attempt->yardstick.copy_gbytes_per_s[0], rate);
    teardown();
}

/* They convert nothing. */
TEST(test_measure_probes_conversions_again_beside_yardsticks)
{
    create(", \"quantize\": \"fp8_tensor\"");
    answer_prepare();
    ck_assert_str_eq(way(NULL),
                     "prepare probe fill run verify yardstick yardstick fill "
                     "run verify fill run verify yardstick probe close ");
    ck_assert(lab.attempt->probed_before && lab.attempt->probed_after);
    ck_assert_double_gt(lab.attempt->after.convert_gbytes_per_s[0], 0);
    teardown();
}

/* Before each iteration and after it in turn, and never between a refit and its
 * verification. */
TEST(test_measure_has_a_yardstick_beside_each_iteration)
{
    const struct rf_iteration *kept;
    create("");
    answer_prepare();
    ck_assert_str_eq(way(NULL),
                     "prepare probe fill run verify yardstick yardstick fill "
                     "run verify fill run verify yardstick close ");
    ck_assert_uint_eq(lab.attempt->n_iterations, 3);
    ck_assert(lab.attempt->probed_before && !lab.attempt->probed_after);
    kept = lab.attempt->iterations;
    for (uint32_t i = 0; i < 3; i++) { /* of the slowest rank */
        ck_assert_int_eq(kept[i].yardstick_ns,
                         (int64_t)(LAB_RANKS + i) * 1000000);
    }
    /* 6 MB by two ranks in at least 2 ms; their link is free with the last */
    ck_assert_double_eq_tol(lab.attempt->yardstick.copy_gbytes_per_s[0], 3,
                            1e-9);
    ck_assert_double_eq_tol(lab.attempt->yardstick.out_gbytes_per_s[0],
                            1.2 / LAB_RANKS, 1e-9);
    teardown();
}

#define LOAD ", \"load\": {\"memory_gbytes_per_s\": \"max\"}"

/* The refits of all iterations, "-" without the load and "L" under it, and the
 * yardsticks, "y". */
static const char *parts_of(bool yardsticks, const char *more)
{
    static char parts[64];
    size_t n = 0;
    create(more);
    if (yardsticks) {
        answer_prepare();
    }
    refit_ns = 21 * RF_NS_PER_MS;
    for (enum rf_state state = RUN_PREPARING; state != RUN_CLOSING;
         state = pass(state, NULL)) {
        struct rf_msg_step step;
        rf_schema_init(&rf_msg_step_schema, &step);
        rf_run_measure_ask(measure, state, &step);
        if (state == RUN_RUNNING) {
            parts[n++] = step.load_ns == RF_ABSENT_I64 ? '-' : 'L';
            /* alone for as long as the last refit without it took */
            ck_assert(step.load_ns == RF_ABSENT_I64 ||
                      step.load_ns == refit_ns);
        } else if (state == RUN_YARDSTICK) {
            ck_assert_int_eq(step.load_ns, RF_ABSENT_I64);
            parts[n++] = 'y';
        }
        ck_assert_uint_lt(n, sizeof(parts));
        rf_schema_free(&rf_msg_step_schema, &step);
    }
    parts[n] = '\0';
    return parts;
}

TEST(test_measure_has_each_refit_without_and_under_load_in_turn)
{
    ck_assert_str_eq(parts_of(false, LOAD), "-LL--L");
    ck_assert_uint_eq(lab.attempt->n_iterations, 3);
    ck_assert_uint_eq(lab.attempt->verified, 2);
    ck_assert_uint_eq(lab.attempt->checked_bytes,
                      2 * lab.scenario->plan->totals.bytes_total);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_ptr_nonnull(lab.attempt->iterations[i].loaded);
    }
    teardown();
    ck_assert_str_eq(parts_of(true, LOAD), "-yLLy--yL");
    teardown();
    ck_assert_str_eq(parts_of(false, LOAD ", \"method\": \"null\""), "-LL--L");
    teardown();
}

TEST(test_measure_traces_no_refit_under_load)
{
    create(LOAD);
    refit_ns = RF_NS_PER_MS;
    rf_run_measure_trace(measure);
    ck_assert_str_eq(way(NULL), "prepare probe fill run verify fill run verify "
                                "fill run verify fill run verify fill run "
                                "verify fill run verify fill run verify probe "
                                "close ");
    ck_assert_uint_eq(lab.attempt->n_iterations, 3);
    ck_assert_ptr_nonnull(lab.attempt->traced_refit.samples);
    teardown();
}

TEST(test_measure_gives_a_refit_under_load_the_time_that_the_load_is_alone)
{
    create(LOAD ", \"timeout_s\": 5");
    refit_ns = 7 * RF_NS_PER_S;
    for (enum rf_state state = RUN_PREPARING;
         state != RUN_RUNNING || !lab.attempt->under_load;
         state = pass(state, NULL)) {
    }
    ck_assert_int_eq(rf_run_measure_enter(measure, RUN_RUNNING), 5 + 7 + 1);
    teardown();
}

/* The first judgement is of six iterations: the load is slowed twice as much in
 * half of them. */
LOOP_TEST(test_measure_goes_on_while_a_slowdown_is_not_known, 2)
{
    const bool steady = _i == 0;
    create_until("{\"min\": 5, \"max\": 8, \"ci_percent\": 2}", LOAD);
    refit_ns = RF_NS_PER_MS;
    load_steps = steady ? 1 : 2;
    (void)way(NULL);
    ck_assert_str_eq(lab.attempt->ended_by, steady ? "ci" : "max");
    ck_assert_uint_eq(lab.attempt->n_iterations, steady ? 6 : 9);
    teardown();
}

/* All take the same time, so that the interval is narrow after the least. */
TEST(test_measure_ends_when_the_interval_is_narrow)
{
    create_until("{\"min\": 5, \"max\": 9, "
                 "\"ci_percent\": 2}",
                 "");
    refit_ns = RF_NS_PER_MS;
    rf_run_measure_trace(measure); /* is none of them */
    (void)way(NULL);
    ck_assert_uint_eq(lab.attempt->n_iterations, 6);
    ck_assert_str_eq(lab.attempt->ended_by, "ci");
    ck_assert_ptr_nonnull(lab.attempt->traced_refit.samples);
    teardown();
}

/* One iteration begins in each second. */
LOOP_TEST(test_measure_ends_when_the_time_is_up_but_not_before_the_least, 2)
{
    static const unsigned least[] = {5, 7};
    char *more = rf_xasprintf("{\"min\": %u, \"max\": 9, "
                              "\"ci_percent\": 2, \"max_s\": 4}",
                              least[_i]);
    create_until(more, "");
    free(more);
    refit_ns = 0; /* no interval is less than 2 % of nothing */
    (void)way(NULL);
    ck_assert_uint_eq(lab.attempt->n_iterations, 1 + least[_i]);
    ck_assert_str_eq(lab.attempt->ended_by, "max_s");
    lab.attempt->n_wanted = 10;
    ck_assert_uint_eq(rf_run_measure_expected(measure), 1 + least[_i]);
    teardown();
}

/* The yardsticks become slower: the ratio is not known although the time is. */
TEST(test_measure_goes_on_while_the_ratio_is_not_known)
{
    create_until("{\"min\": 5, \"max\": 6, "
                 "\"ci_percent\": 1}",
                 "");
    refit_ns = RF_NS_PER_MS;
    answer_prepare();
    (void)way(NULL);
    ck_assert_uint_eq(lab.attempt->n_iterations, 7);
    ck_assert_str_eq(lab.attempt->ended_by, "max");
    teardown();
}

TEST(test_measure_does_not_verify_what_moves_nothing)
{
    create(", \"method\": \"null\"");
    ck_assert_str_eq(way(NULL),
                     "prepare probe fill run fill run fill run close ");
    ck_assert_uint_eq(lab.attempt->n_iterations, 3);
    ck_assert_uint_eq(lab.attempt->verified, 0);
    teardown();
}

TEST(test_measure_ends_in_order_after_wrong_bytes)
{
    char text[] = "x";
    uint64_t index = 0;
    struct rf_msg_mismatch first = {text, text, {&index, 1}, text, text};
    create("");
    ck_assert_str_eq(way(&first), "prepare probe fill run verify probe close ");
    ck_assert_int_eq(lab.attempt->outcome, RF_OUTCOME_MISMATCH);
    ck_assert_uint_eq(lab.attempt->n_iterations, 1);
    ck_assert_str_eq(lab.attempt->faults[0].phase, "verifying");
    teardown();
}

TEST(test_measure_stops_where_bytes_were_not_compared)
{
    enum rf_state next;
    AUTO(rf_fault) fault;
    create("");
    (void)rf_run_measure_enter(measure, RUN_VERIFYING);
    ck_assert_int_eq(
        rf_run_measure_answered(measure, RUN_VERIFYING, &next, &fault),
        RF_VERDICT_ABORT);
    ck_assert_uint_eq(lab.attempt->n_iterations, 0);
    teardown();
}

TEST(test_measure_checks_sources_with_the_last_iteration)
{
    struct rf_msg step;
    create("");
    for (uint32_t i = 0; i < 3; i++) {
        rf_msg_init(&step, RF_MSG_STEP);
        rf_run_measure_ask(measure, RUN_VERIFYING, &step.step);
        ck_assert_uint_eq(step.step.index, i);
        ck_assert_int_eq(step.step.sources, i == 2);
        rf_msg_free(&step);
        (void)pass(RUN_VERIFYING, NULL);
    }
    teardown();
}

/* The seconds for a yardstick after probes of slow memory and links. */
static int64_t yardstick_s(const char *more)
{
    int64_t seconds;
    create(more);
    probed_gbytes_per_s = 1e-6;
    (void)pass(RUN_PROBING, NULL);
    seconds = rf_run_measure_enter(measure, RUN_YARDSTICK);
    probed_gbytes_per_s = 1;
    teardown();
    return seconds;
}

/* A yardstick moves whole weights, whatever the refit sends of them. */
TEST(test_measure_gives_a_yardstick_the_time_of_whole_weights)
{
    const int64_t whole = yardstick_s("");
    ck_assert_int_gt(whole, 600);
    ck_assert_int_eq(yardstick_s(", \"update\": {\"density\": 0.01}, "
                                 "\"encoding\": \"auto\""),
                     whole);
}

TEST(test_measure_gives_a_run_the_time_that_its_scenario_sets)
{
    create(", \"timeout_s\": 5");
    ck_assert_int_eq(rf_run_measure_enter(measure, RUN_RUNNING), 5);
    teardown();
    create("");
    ck_assert_int_ge(rf_run_measure_enter(measure, RUN_RUNNING), 60);
    teardown();
}
