/* Causes, consequences and last words. */
#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/mem.h"
#include "coordinator/run/faults.h"
#include "tests/unit/coordinator/run/attempt_lab.h"
#include "tests/unit/unit.h"

static struct attempt_lab lab;
static struct rf_run_faults *faults;
static char said[4][300]; /* lines at level error */
static unsigned n_said;

static void remember(enum rf_log_level level, const char *line, void *data)
{
    (void)data;
    if (level == RF_LOG_ERROR && n_said < RF_ARRAY_SIZE(said)) {
        snprintf(said[n_said++], sizeof(said[0]), "%s", line);
    }
}

static void setup(void)
{
    lab = attempt_lab_create("");
    faults = rf_run_faults_create(lab.pair.config);
    rf_run_faults_begin(faults, lab.attempt);
    n_said = 0;
    rf_log_init(RF_LOG_ERROR, NULL);
    rf_log_set_sink(remember, NULL);
}

static void teardown(void)
{
    rf_log_set_sink(NULL, NULL);
    rf_run_faults_destroy(faults);
    attempt_lab_free(&lab);
}

static struct rf_fault make(uint32_t node, uint32_t rank, const char *text)
{
    struct rf_fault fault = rf_fault_make(node, rank, RF_ERR_PEER, "%s", text);
    fault.phase = rf_xstrdup("run");
    return fault;
}

static enum rf_verdict cause(uint32_t node, const char *text)
{
    struct rf_fault fault = make(node, RF_NONE, text);
    enum rf_verdict verdict = rf_run_faults_cause(faults, &fault);
    ck_assert_ptr_null(fault.text); /* taken */
    return verdict;
}

static enum rf_verdict notice(uint32_t node, uint32_t rank, const char *text)
{
    struct rf_fault fault = make(node, rank, text);
    return rf_run_faults_notice(faults, &fault);
}

static const char *text_of(size_t i)
{
    ck_assert_uint_lt(i, lab.attempt->n_faults);
    return lab.attempt->faults[i].text;
}

FIXTURE(setup, teardown)

TEST(test_faults_the_first_is_the_cause)
{
    ck_assert_int_eq(cause(LAB_B, "died"), RF_VERDICT_ABORT);
    rf_run_faults_abort(faults);
    ck_assert_int_eq(cause(LAB_A, "followed"), RF_VERDICT_GO_ON);
    ck_assert_int_eq(notice(LAB_A, 0, "saw"), RF_VERDICT_GO_ON);
    ck_assert_str_eq(text_of(0), "died");
    ck_assert_str_eq(text_of(2), "saw");
    ck_assert_uint_eq(n_said, 1); /* consequences are not printed */
    assert_says(said[0], "scenario s failed (run): b: died");
    ck_assert_int_eq(lab.attempt->outcome, RF_OUTCOME_FAILED);
}

TEST(test_faults_a_cause_comes_before_who_noticed_it)
{
    ck_assert_int_eq(notice(LAB_A, 0, "saw"), RF_VERDICT_SETTLE);
    ck_assert_int_eq(notice(LAB_A, 1, "saw too"), RF_VERDICT_GO_ON);
    ck_assert_uint_eq(n_said, 0);
    ck_assert_int_eq(cause(LAB_B, "died"), RF_VERDICT_ABORT);
    rf_run_faults_abort(faults);
    ck_assert_str_eq(text_of(0), "died");
    ck_assert_str_eq(text_of(1), "saw");
    ck_assert_str_eq(text_of(2), "saw too");
    ck_assert_uint_eq(n_said, 2);
    assert_says(said[0], "b: died");
    assert_says(said[1], "a: rank 0: saw");
}

TEST(test_faults_who_noticed_is_the_cause_when_nobody_explains_it)
{
    ck_assert_int_eq(notice(LAB_A, 0, "saw"), RF_VERDICT_SETTLE);
    rf_run_faults_abort(faults);
    ck_assert_int_eq(cause(LAB_B, "late"), RF_VERDICT_GO_ON);
    ck_assert_str_eq(text_of(0), "saw");
    ck_assert_uint_eq(n_said, 1);
}

static enum rf_verdict gave_up(uint32_t node, uint32_t rank)
{
    struct rf_fault fault =
        rf_fault_make(node, rank, RF_ERR_ABORTED, "another gave up");
    fault.phase = rf_xstrdup("run");
    return rf_run_faults_notice(faults, &fault);
}

LOOP_TEST(test_faults_say_who_gave_up_first_not_who_followed, 2)
{
    const bool before = _i == 0;
    if (before) {
        ck_assert_int_eq(gave_up(LAB_A, 1), RF_VERDICT_SETTLE);
    }
    ck_assert_int_eq(notice(LAB_A, 0, "saw"),
                     before ? RF_VERDICT_GO_ON : RF_VERDICT_SETTLE);
    ck_assert_int_eq(notice(LAB_B, 2, "saw too"), RF_VERDICT_GO_ON);
    if (!before) {
        ck_assert_int_eq(gave_up(LAB_A, 1), RF_VERDICT_GO_ON);
    }
    rf_run_faults_abort(faults);
    ck_assert_str_eq(text_of(0), "saw");
    ck_assert_uint_eq(lab.attempt->n_faults, 3);
    ck_assert_uint_eq(n_said, before ? 1 : 2);
    assert_says(said[0], "a: rank 0: saw");
}

TEST(test_faults_say_that_a_rank_gave_up_when_no_other_does)
{
    ck_assert_int_eq(gave_up(LAB_A, 1), RF_VERDICT_SETTLE);
    rf_run_faults_abort(faults);
    ck_assert_uint_eq(n_said, 1);
    assert_says(said[0], "a: rank 1: another gave up");
}

TEST(test_faults_of_an_attempt_are_forgotten_with_it)
{
    ck_assert_int_eq(cause(LAB_B, "died"), RF_VERDICT_ABORT);
    rf_run_faults_abort(faults);
    rf_run_faults_begin(faults, lab.attempt);
    ck_assert_int_eq(cause(LAB_A, "died, too"), RF_VERDICT_ABORT);
}

TEST(test_faults_show_the_last_eight_lines)
{
    AUTO(rf_fault) of_rank = make(LAB_A, 1, "x");
    AUTO(rf_fault) of_node = make(LAB_A, RF_NONE, "x");
    char line[24];
    for (int i = 0; i < 30; i++) {
        snprintf(line, sizeof(line), "line %d", i);
        rf_run_faults_log(faults, LAB_A, i < 28 ? 0 : 1, line);
    }
    rf_run_faults_log(faults, LAB_B, 1, "elsewhere");
    rf_run_faults_add_lines(faults, &of_rank);
    ck_assert_uint_eq(of_rank.lines.n, 2);
    ck_assert_str_eq(of_rank.lines.list[0], "line 28");
    rf_run_faults_add_lines(faults, &of_node);
    ck_assert_uint_eq(of_node.lines.n, 8);
    ck_assert_str_eq(of_node.lines.list[0], "line 22");
    ck_assert_str_eq(of_node.lines.list[7], "line 29");
}

static const struct {
    struct rf_msg_rank_exit exit;
    const char *text;
} exits[] = {
    {{.rank = 2, .pid = 47, .signal = 9, .status = RF_ABSENT_U32},
     "its process 47 was killed by signal 9 (Killed); probably the kernel's "
     "OOM killer (see dmesg there)"},
    {{.rank = 2, .pid = 47, .signal = RF_ABSENT_U32, .status = 3},
     "its process 47 ended early with status 3"},
    {{.rank = 2,
      .pid = RF_ABSENT_U32,
      .signal = RF_ABSENT_U32,
      .status = RF_ABSENT_U32,
      .cause = (char[]){"could not be started"}},
     "its process could not be started"},
};

LOOP_TEST(test_faults_say_how_a_rank_ended, RF_ARRAY_SIZE(exits))
{
    AUTO(rf_fault) fault = rf_run_faults_of_exit(LAB_B, &exits[_i].exit);
    ck_assert_str_eq(fault.text, exits[_i].text);
    ck_assert_uint_eq(fault.node, LAB_B);
    ck_assert_uint_eq(fault.rank, 2);
}

/* A node's ABORTED. */
static void aborted(uint32_t node, uint64_t *unanswered, size_t n,
                    uint64_t *pids, size_t n_pids)
{
    const struct rf_msg_aborted message = {.attempt = 7,
                                           .unanswered = {unanswered, n},
                                           .unkillable = {pids, n_pids}};
    rf_run_faults_aborted(faults, node, &message);
}

static void time_out(void)
{
    struct rf_fault fault = make(LAB_A, RF_NONE, "no answer");
    fault.status = RF_ERR_TIMEOUT;
    ck_assert_int_eq(rf_run_faults_cause(faults, &fault), RF_VERDICT_ABORT);
    rf_run_faults_abort(faults);
}

TEST(test_faults_blame_the_one_rank_that_hangs)
{
    uint64_t hung[] = {3, 0}; /* 0: not its own */
    time_out();
    aborted(LAB_A, NULL, 0, NULL, 0);
    aborted(LAB_B, hung, 2, NULL, 0);
    ck_assert_uint_eq(lab.attempt->n_faults, 2);
    ck_assert_uint_eq(lab.attempt->faults[0].node, LAB_B);
    ck_assert_uint_eq(lab.attempt->faults[0].rank, 3);
    ck_assert_str_eq(text_of(0), "no answer; no answer from rank 3 of b");
    ck_assert_uint_eq(lab.attempt->faults[1].rank, 3);
}

TEST(test_faults_blame_no_rank_when_several_hang)
{
    uint64_t on_a[] = {0, 1}, on_b[] = {3};
    time_out();
    aborted(LAB_A, on_a, 2, NULL, 0);
    ck_assert_uint_eq(lab.attempt->faults[0].node, LAB_A);
    ck_assert_uint_eq(lab.attempt->faults[0].rank, RF_NONE);
    aborted(LAB_B, on_b, 1, NULL, 0);
    ck_assert_uint_eq(lab.attempt->faults[0].node, RF_NONE);
    ck_assert_uint_eq(lab.attempt->faults[0].rank, RF_NONE);
    ck_assert_str_eq(text_of(0), "no answer; no answer from ranks 0-1 of a; "
                                 "no answer from rank 3 of b");
}

TEST(test_faults_name_processes_that_cannot_be_ended)
{
    uint64_t pids[] = {4711, 4712, 5000}, hung[] = {0};
    ck_assert_int_eq(cause(LAB_B, "died"), RF_VERDICT_ABORT);
    rf_run_faults_abort(faults);
    aborted(LAB_A, hung, 1, pids, 3);
    ck_assert_uint_eq(lab.attempt->n_faults, 2); /* no time was over */
    assert_says(text_of(1), "processes 4711-4712, 5000 did not end");
}

LOOP_TEST(test_faults_count_phases_as_the_display_does, 3)
{
    static const char *const phases[] = {
        "run warm-up 1 of 1", "run iteration 1 of 2", "run iteration 2 of 2"};
    AUTO_FREE char *phase =
        rf_run_faults_phase("run", (uint32_t)_i, lab.scenario->spec);
    ck_assert_str_eq(phase, phases[_i]);
}

TEST(test_faults_have_texts_that_are_utf8)
{
    AUTO(rf_fault) fault =
        rf_fault_make(LAB_A, 0, RF_ERR_PEER, "it said: %.2s", "a\xc3\xa4");
    ck_assert_str_eq(fault.text, "it said: a?");
}
