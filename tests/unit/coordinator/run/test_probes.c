/* Which links are probed, with how many bytes, and what becomes of it. */
#include <check.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/run/probes.h"
#include "tests/unit/coordinator/run/attempt_lab.h"

static struct attempt_lab lab;
static struct rf_run_probes *probes;
static struct rf_msg step;

static void setup(void)
{
    lab = attempt_lab_create("");
    probes = rf_run_probes_create(2);
    rf_run_probes_plan(probes, lab.scenario);
    rf_run_probes_begin(probes, &lab.attempt->before);
    rf_msg_init(&step, RF_MSG_STEP);
}

static void teardown(void)
{
    rf_msg_free(&step);
    rf_run_probes_destroy(probes);
    attempt_lab_free(&lab);
}

static const struct rf_msg_step *ask(void)
{
    rf_msg_free(&step);
    rf_run_probes_ask(probes, &step.step);
    return &step.step;
}

static enum rf_status say(uint32_t rank, struct rf_msg_probed figures,
                          struct rf_err *err)
{
    const struct rf_msg_answer answer = {.rank = rank, .probed = &figures};
    return rf_run_probes_take(probes, &answer, err);
}

static enum rf_verdict answered(void)
{
    struct rf_fault fault = {.text = NULL};
    enum rf_verdict verdict = rf_run_probes_answered(probes, &fault);
    rf_fault_free(&fault);
    return verdict;
}

/* All ranks answer with a rate. */
static enum rf_verdict answer_all(double gbytes_per_s)
{
    const struct rf_msg_probed figures = {.gbytes_per_s = gbytes_per_s,
                                          .single_gbytes_per_s =
                                              2 * gbytes_per_s,
                                          .latency_us = 20};
    for (uint32_t r = 0; r < LAB_RANKS; r++) {
        ck_assert_int_eq(say(r, figures, NULL), RF_OK);
    }
    return answered();
}

START_TEST(test_probes_begin_with_copies_on_each_node)
{
    ck_assert_str_eq(ask()->kind, "copy");
    ck_assert_uint_eq(ask()->bytes, 1 << 20);
    ck_assert_uint_eq(ask()->from, RF_ABSENT_U32);
    ck_assert_int_eq(answer_all(3), RF_VERDICT_GO_ON);
    ck_assert_double_eq(lab.attempt->before.copy_gbytes_per_s[0], 6);
    ck_assert_double_eq(lab.attempt->before.copy_gbytes_per_s[1], 6);
    ck_assert_double_eq(lab.attempt->before.copy1_gbytes_per_s[1], 6);
    ck_assert_str_eq(ask()->kind, "link");
}
END_TEST

START_TEST(test_probes_measure_a_link_roughly_first)
{
    (void)answer_all(3);
    ck_assert_uint_eq(ask()->bytes, 1 << 20);
    ck_assert_int_eq(answer_all(0.05), RF_VERDICT_GO_ON);
    ck_assert_double_eq(lab.attempt->before.pair_gbytes_per_s[1], 0);
    ck_assert_double_eq(lab.attempt->before.pair_gbytes_per_s[2], 0);
    ck_assert_uint_eq(ask()->bytes, 8 << 20);
    (void)answer_all(0.06);
    ck_assert_double_eq(lab.attempt->before.pair_gbytes_per_s[1] +
                            lab.attempt->before.pair_gbytes_per_s[2],
                        0.06);
}
END_TEST

/* Whatever links there are, each comes to an end. */
static unsigned count_links(double gbytes_per_s)
{
    unsigned n = 0;
    enum rf_verdict verdict = answer_all(3);
    while (verdict == RF_VERDICT_GO_ON) {
        ck_assert_str_eq(ask()->kind, "link");
        verdict = answer_all(gbytes_per_s);
        ck_assert_uint_le(++n, 4);
    }
    ck_assert_int_eq(verdict, RF_VERDICT_NEXT);
    return n;
}

START_TEST(test_probes_remember_rates_for_the_next_time)
{
    const unsigned first = count_links(1);
    ck_assert_uint_ge(first, 2);
    rf_run_probes_begin(probes, &lab.attempt->after);
    ck_assert_uint_eq(count_links(2), first / 2);
    ck_assert_uint_eq(ask()->bytes, 64 << 20);
    ck_assert_double_eq(RF_MAX(lab.attempt->before.pair_gbytes_per_s[1],
                               lab.attempt->before.pair_gbytes_per_s[2]),
                        1);
    ck_assert_double_eq(RF_MAX(lab.attempt->after.pair_gbytes_per_s[1],
                               lab.attempt->after.pair_gbytes_per_s[2]),
                        2);
}
END_TEST

START_TEST(test_probes_fail_on_a_link_without_a_figure)
{
    struct rf_fault fault;
    (void)answer_all(3);
    ck_assert_int_eq(rf_run_probes_answered(probes, &fault), RF_VERDICT_ABORT);
    ck_assert_uint_eq(fault.rank, ask()->to);
    ck_assert(has(fault.text, "gave no figure"));
    rf_fault_free(&fault);
}
END_TEST

START_TEST(test_probes_need_every_figure)
{
    static const struct rf_msg_probed none = {RF_ABSENT_REAL, RF_ABSENT_REAL,
                                              RF_ABSENT_REAL};
    struct rf_msg_probed figures = none;
    const struct rf_msg_answer nothing = {.rank = 0};
    struct rf_err err = {0};
    ck_assert_int_eq(rf_run_probes_take(probes, &nothing, &err),
                     RF_ERR_PROTOCOL);
    ck_assert(has(err.text, "probed"));
    ck_assert_int_eq(say(0, figures, &err), RF_ERR_PROTOCOL);
    ck_assert(has(err.text, "gbytes_per_s"));
    figures.gbytes_per_s = 1;
    ck_assert_int_eq(say(0, figures, &err), RF_ERR_PROTOCOL);
    ck_assert(has(err.text, "single_gbytes_per_s"));
    (void)answer_all(3);
    ck_assert_int_eq(say(ask()->to, figures, &err), RF_ERR_PROTOCOL);
    ck_assert(has(err.text, "latency_us"));
    ck_assert_int_eq(say(ask()->from, none, &err), RF_OK); /* it only sends */
}
END_TEST

Suite *test_probes_suite(void);
Suite *test_probes_suite(void)
{
    Suite *suite = suite_create("probes");
    TCase *tests = tcase_create("probes");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, test_probes_begin_with_copies_on_each_node);
    tcase_add_test(tests, test_probes_measure_a_link_roughly_first);
    tcase_add_test(tests, test_probes_remember_rates_for_the_next_time);
    tcase_add_test(tests, test_probes_fail_on_a_link_without_a_figure);
    tcase_add_test(tests, test_probes_need_every_figure);
    suite_add_tcase(suite, tests);
    return suite;
}
