/* What goes wrong: ranks, agents and coordinators that die, stop or hang. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "tests/unit/unit.h"
#include "tests/unit/worker/agent/agent_lab.h"
#include "tests/unit/worker/worker_lab.h"

static bool lists(const json_t *list, json_int_t number)
{
    const json_t *item;
    size_t i;
    json_array_foreach (list, i, item) {
        if (json_integer_value(item) == number) {
            return true;
        }
    }
    return false;
}

/* ABORTED with `unanswered` among those whose answer was missing; the other
 * rank may have been at work too. -1: nobody. */
static void take_aborted(json_int_t unanswered)
{
    json_auto_t *aborted = fake_expect(&fake, RF_MSG_ABORTED);
    const json_t *list = json_object_get(aborted, "unanswered");
    ck_assert_uint_eq(json_array_size(json_object_get(aborted, "unkillable")),
                      0);
    if (unanswered < 0) {
        ck_assert_uint_eq(json_array_size(list), 0);
    } else {
        ck_assert(lists(list, unanswered));
    }
}

static void send_abort(void)
{
    fake_send(&fake, RF_MSG_ABORT,
              json_pack("{s:i, s:s}", "attempt", 7, "reason", "test"));
}

static void expect_aborted(json_int_t unanswered)
{
    send_abort();
    take_aborted(unanswered);
}

FIXTURE(NULL, agent_lab_teardown)
LIMIT(60)

TEST(test_a_killed_rank_is_reported_and_the_next_scenario_runs)
{
    pid_t ranks[2];
    json_auto_t *report;
    fake_join(&fake, SHORT_LIMITS);
    begin_ranks("host", NULL, ranks);
    ck_assert_int_eq(kill(ranks[0], SIGKILL), 0);
    report = fake_expect(&fake, RF_MSG_RANK_EXIT);
    ck_assert_int_eq(json_integer_at(report, "pid"), ranks[0]);
    ck_assert_int_eq(json_integer_at(report, "signal"), SIGKILL);
    ck_assert(json_is_null(json_object_get(report, "status")));
    ck_assert(json_is_null(json_object_get(report, "cause")));
    ck_assert_str_eq(json_text_at(report, "phase"), "prepare");
    expect_aborted(-1);
    ck_assert(fake_all_gone(ranks, 2));
    run_scenario("host");
}

TEST(test_a_rank_that_exits_is_reported_with_its_last_lines)
{
    json_auto_t *report;
    const json_t *lines;
    fake_join(&fake, SHORT_LIMITS);
    begin_scenario("null",
                   "{\"exit\": {\"rank\": 1, \"phase\": \"fill\", \"status\": "
                   "9}, \"print\": {\"rank\": 1, \"phase\": \"prepare\", "
                   "\"bytes\": 60}}");
    fake_send_step(&fake, "fill", index_argument(0));
    report = fake_expect(&fake, RF_MSG_RANK_EXIT);
    ck_assert_int_eq(json_integer_at(report, "rank"), 1);
    ck_assert_int_eq(json_integer_at(report, "status"), 9);
    ck_assert_str_eq(json_text_at(report, "phase"), "fill");
    lines = json_object_get(report, "stderr_lines");
    ck_assert_uint_eq(json_array_size(lines), 2);
    ck_assert_str_eq(json_text_at(lines, "[1]"),
                     "a line that the test asks for");
    assert_says(fake.log, "a line that the test asks for\n");
    expect_aborted(1);
}

/* The first to fail may only have noticed what the other says. */
TEST(test_each_rank_that_fails_is_told_of)
{
    fake_join(&fake, SHORT_LIMITS);
    begin_scenario("host", NULL);
    fake_send_step(&fake, "dance", NULL);
    for (int i = 0; i < 2; i++) {
        json_t *done = fake_expect(&fake, RF_MSG_DONE), *answer;
        ck_assert_uint_eq(json_array_size(json_object_get(done, "ranks")), 1);
        answer = json_at(done, "ranks[0]");
        ck_assert_ptr_null(json_object_get(answer, "ok"));
        json_decref(done);
    }
    expect_aborted(-1);
}

TEST(test_a_stalled_rank_is_ended_by_abort_and_named)
{
    pid_t ranks[2];
    json_auto_t *report;
    int64_t began;
    fake_join(&fake, SHORT_LIMITS);
    begin_ranks("null", "{\"stall\": {\"rank\": 0, \"phase\": \"run\"}}",
                ranks);
    step_ok("fill", index_argument(0));
    fake_send_step(&fake, "run", index_argument(0));
    while (strstr(fake.log, "stalling") == NULL) {
        json_decref(fake_expect(&fake, RF_MSG_LEASE));
    }
    began = rf_now_ns();
    send_abort();
    /* The rank gives itself up with 70, which is told. */
    report = fake_expect(&fake, RF_MSG_RANK_EXIT);
    ck_assert_int_eq(json_integer_at(report, "status"), RF_EXIT_STUCK);
    take_aborted(0);
    ck_assert_int_lt(rf_now_ns() - began, 5 * RF_NS_PER_S);
    ck_assert(fake_all_gone(ranks, 2));
    run_scenario("null");
}

/* Without a word from the coordinator. */
TEST(test_a_rank_waits_for_others_no_longer_than_the_step_may_take)
{
    json_auto_t *done;
    const json_t *answer;
    fake_join(&fake, SHORT_LIMITS);
    start_scenario("host", "{\"stall\": {\"rank\": 1, \"phase\": "
                           "\"prepare\"}}");
    fake_send_step(&fake, "prepare", json_pack("{s:f}", "timeout_s", 0.3));
    done = fake_expect(&fake, RF_MSG_DONE);
    answer = answer_of(done, 0);
    assert_says(json_text_at(answer, "error"), "the other ranks did not join");
}

static void expect_cause(const json_t *report, const char *end)
{
    const char *cause = json_text_at(report, "cause");
    double silent_s = 0;
    ck_assert_ptr_nonnull(cause);
    ck_assert_msg(sscanf(cause, "was silent for %lf s and", &silent_s) == 1,
                  "%s", cause);
    ck_assert_double_ge(silent_s, 0.6); /* the lease of these tests */
    assert_says(cause, end);
}

TEST(test_a_stopped_rank_is_killed_when_its_lease_runs_out)
{
    pid_t ranks[2];
    json_auto_t *report;
    fake_join(&fake, "{\"lease_period_ms\": 50, \"lease_dead_ms\": 3000}");
    begin_ranks("null", NULL, ranks);
    ck_assert_int_eq(kill(ranks[1], SIGSTOP), 0);
    report = fake_expect(&fake, RF_MSG_RANK_EXIT);
    ck_assert_int_eq(json_integer_at(report, "pid"), ranks[1]);
    ck_assert_int_eq(json_integer_at(report, "signal"), SIGKILL);
    expect_cause(report, "s and was killed");
}

/* Of an attempt that the agent does not know; keeps the agent's lease. */
static void expect_aborted_of(int attempt)
{
    fake_send(&fake, RF_MSG_ABORT,
              json_pack("{s:i, s:s}", "attempt", attempt, "reason", "test"));
    json_decref(fake_expect(&fake, RF_MSG_ABORTED));
}

static unsigned count(const char *text, const char *word)
{
    unsigned n = 0;
    while ((text = strstr(text, word)) != NULL) {
        text += strlen(word);
        n++;
    }
    return n;
}

/* Stops a rank, so that it is killed, and holds the dead process: its parent
 * learns of the end when the tracer has taken note. 0: not allowed here. */
static pid_t stop_and_hold(void)
{
    pid_t ranks[2];
    siginfo_t info;
    fake_join(&fake, "{\"lease_period_ms\": 50, \"lease_dead_ms\": 3000}");
    begin_ranks("null", NULL, ranks);
    if (ptrace(PTRACE_SEIZE, ranks[1], NULL, NULL) != 0) {
        return 0;
    }
    ck_assert_int_eq(kill(ranks[1], SIGSTOP), 0);
    do {
        expect_aborted_of(3);
        memset(&info, 0, sizeof(info));
        ck_assert_int_eq(
            waitid(P_PID, (id_t)ranks[1], &info, WEXITED | WNOHANG | WNOWAIT),
            0);
    } while (info.si_code != CLD_KILLED);
    return ranks[1];
}

/* To free memory of many gigabytes takes seconds. */
TEST(test_a_silent_rank_that_ends_slowly_is_told_of_once)
{
    static char errors[1 << 16];
    pid_t held = stop_and_hold();
    int64_t died, now;
    if (held == 0) {
        return;
    }
    for (died = now = fake.heard_t; now < died + RF_NS_PER_S;) {
        expect_aborted_of(3);
        now = fake.heard_t;
    }
    ck_assert_int_eq(waitpid(held, NULL, 0), held);
    json_decref(fake_expect(&fake, RF_MSG_RANK_EXIT));
    fake_close_input(&fake);
    fake_wait(&fake);
    fake_read_errors(&fake, errors, sizeof(errors));
    ck_assert_uint_eq(count(errors, "killing process"), 1);
}

TEST(test_a_silent_rank_that_cannot_be_killed_is_told_of_once)
{
    pid_t held = stop_and_hold();
    json_auto_t *report = NULL;
    if (held == 0) {
        return;
    }
    report = fake_expect(&fake, RF_MSG_RANK_EXIT);
    ck_assert_int_eq(json_integer_at(report, "pid"), held);
    ck_assert(json_is_null(json_object_get(report, "signal")));
    ck_assert(json_is_null(json_object_get(report, "status")));
    expect_cause(report, "survived SIGKILL for 5 s");
    ck_assert_int_eq(waitpid(held, NULL, 0), held);
    for (int i = 0; i < 5; i++) {
        expect_aborted_of(3); /* and no second RANK_EXIT before it */
        json_decref(fake_expect(&fake, RF_MSG_LEASE));
    }
}

/* What only a newer coordinator knows, and nodes of which ours is none. */
static const struct {
    const char *scenario, *cause;
    unsigned nodes;
} unplaced[] = {
    {"{'name': 's', 'mode': 'sideways', 'train': {}, 'infer': {}}",
     "START: $.scenario.mode: ", 1},
    {"{'name': 's', 'mode': 'disaggregated', 'train': {'nodes': ['n1']}, "
     "'infer': {'nodes': ['n2']}}",
     "START has no rank of node 0", 3},
};

LOOP_TEST(test_an_attempt_that_cannot_be_placed_is_told_and_the_next_one_runs,
          RF_ARRAY_SIZE(unplaced))
{
    json_auto_t *report;
    const char *cause;
    fake_join(&fake, NULL);
    fake_send(&fake, RF_MSG_START,
              worker_lab_start(LAB_MODEL, unplaced[_i].scenario,
                               unplaced[_i].nodes, 1));
    report = fake_expect(&fake, RF_MSG_RANK_EXIT);
    ck_assert_int_eq(json_integer_at(report, "attempt"), 7);
    ck_assert(json_is_null(json_object_get(report, "rank")));
    cause = json_text_at(report, "cause");
    ck_assert_ptr_nonnull(cause);
    ck_assert_msg(
        strncmp(cause, unplaced[_i].cause, strlen(unplaced[_i].cause)) == 0,
        "%s", cause);
    expect_aborted(-1);
    run_scenario("null");
}

TEST(test_an_abort_without_an_attempt_is_answered)
{
    fake_join(&fake, NULL);
    expect_aborted(-1);
}

TEST(test_an_abort_while_preparing_ends_the_exchange)
{
    json_auto_t *done;
    fake_join(&fake, SHORT_LIMITS);
    start_scenario("null", NULL);
    fake_send_step(&fake, "prepare", NULL);
    /* The ranks now wait for an answer that never comes. */
    json_decref(fake_expect(&fake, RF_MSG_EXCHANGE));
    send_abort();
    done = fake_expect(&fake, RF_MSG_DONE);
    ck_assert_str_eq(json_text_at(done, "ranks[0].status"), "aborted");
    take_aborted(0);
}

static void expect_silence_after(void (*fault)(void))
{
    pid_t ranks[2];
    begin_ranks("host", NULL, ranks);
    fault();
    fake_wait(&fake);
    ck_assert(fake_all_gone(ranks, 2));
}

static void close_input(void)
{
    fake_close_input(&fake);
}

TEST(test_the_end_of_standard_input_ends_everything)
{
    fake_join(&fake, NULL);
    expect_silence_after(close_input);
}

static void kill_agent(void)
{
    kill(fake.agent, SIGKILL);
}

TEST(test_a_killed_agent_leaves_no_rank)
{
    fake_join(&fake, NULL);
    expect_silence_after(kill_agent);
}

static void terminate_agent(void)
{
    kill(fake.agent, SIGTERM);
}

TEST(test_sigterm_ends_everything)
{
    fake_join(&fake, NULL);
    expect_silence_after(terminate_agent);
}

static void fall_silent(void)
{
    fake.quiet = true;
}

TEST(test_a_silent_coordinator_ends_everything)
{
    fake_join(&fake, "{\"lease_period_ms\": 50, \"lease_dead_ms\": 600}");
    expect_silence_after(fall_silent);
}

static void stop_agent_for_good(void)
{
    kill(fake.agent, SIGSTOP);
}

TEST(test_ranks_of_a_stopped_agent_end_by_themselves)
{
    pid_t ranks[2];
    fake_join(&fake, "{\"lease_period_ms\": 50, \"lease_dead_ms\": 600}");
    begin_ranks("null", NULL, ranks);
    stop_agent_for_good();
    /* They stay zombies of the stopped agent: state Z, no memory. */
    for (int i = 0; i < 2; i++) {
        int64_t until = rf_now_ns() + 10 * RF_NS_PER_S;
        char path[64], line[512], state = ' ';
        snprintf(path, sizeof(path), "/proc/%d/stat", (int)ranks[i]);
        while (state != 'Z' && rf_now_ns() < until) {
            FILE *file = fopen(path, "re");
            ck_assert_ptr_nonnull(file);
            ck_assert_ptr_nonnull(fgets(line, sizeof(line), file));
            fclose(file);
            state = strrchr(line, ')')[2];
            poll(NULL, 0, 5);
        }
        ck_assert_int_eq(state, 'Z');
    }
    kill(fake.agent, SIGKILL);
    kill(fake.agent, SIGCONT);
}

/* 256 KiB at once and 64 KiB a second, however long the flood takes here; and
 * the lines that say how much was left out. */
TEST(test_a_flood_of_output_is_capped)
{
    int64_t began_ns = rf_now_ns();
    uint64_t seconds;
    fake_join(&fake, NULL);
    begin_scenario("null", "{\"print\": {\"rank\": 0, \"phase\": \"fill\", "
                           "\"bytes\": 30000000}}");
    step_ok("fill", index_argument(0));
    step_ok("close", NULL);
    seconds = (uint64_t)((rf_now_ns() - began_ns) / RF_NS_PER_S) + 1;
    ck_assert_uint_gt(fake.log_bytes, 100000);
    ck_assert_uint_lt(fake.log_bytes, (256 + 64 * seconds + 64) << 10);
}
