/* Allgathers on their own. */

#include "coordinator/run/exchange.h"
#include "tests/unit/coordinator/run/attempt_lab.h"
#include "tests/unit/unit.h"

static struct attempt_lab lab;
static struct rf_run_exchange *exchange;

static void setup(void)
{
    lab = attempt_lab_create("");
    exchange = rf_run_exchange_create(lab.scenario);
}

static void teardown(void)
{
    rf_run_exchange_destroy(exchange);
    attempt_lab_free(&lab);
}

/* A node's EXCHANGE with the parts of two ranks. */
static enum rf_verdict say(uint32_t node, uint64_t seq, uint32_t first,
                           const char *data, struct rf_msg *all)
{
    char mine[16], other[] = "dd";
    struct rf_msg_share parts[] = {{first, mine}, {first + 1, other}};
    const struct rf_msg_exchange message = {
        .attempt = 7, .seq = seq, .parts = parts, .n_parts = 2};
    struct rf_err err = {0};
    enum rf_verdict verdict;
    snprintf(mine, sizeof(mine), "%s", data);
    verdict = rf_run_exchange_take(exchange, node, &message, all, &err);
    ck_assert_int_eq(verdict == RF_VERDICT_ABORT, err.text[0] != '\0');
    return verdict;
}

FIXTURE(setup, teardown)

TEST(test_exchange_hands_out_the_parts_by_rank)
{
    struct rf_msg all;
    ck_assert_int_eq(say(LAB_B, 5, 2, "", &all), RF_VERDICT_GO_ON);
    ck_assert_int_eq(say(LAB_A, 6, 0, "aa", &all), RF_VERDICT_GO_ON);
    ck_assert_int_eq(say(LAB_A, 5, 0, "bb", &all), RF_VERDICT_NEXT);
    ck_assert_int_eq(all.type, RF_MSG_EXCHANGED);
    ck_assert_uint_eq(all.exchanged.attempt, 7);
    ck_assert_uint_eq(all.exchanged.seq, 5);
    ck_assert_uint_eq(all.exchanged.data.n, LAB_RANKS);
    ck_assert_str_eq(all.exchanged.data.list[0], "bb");
    ck_assert_str_eq(all.exchanged.data.list[2], "");
    ck_assert_str_eq(all.exchanged.data.list[3], "dd");
    rf_msg_free(&all);
    ck_assert_int_eq(say(LAB_B, 6, 2, "cc", &all), RF_VERDICT_NEXT);
    rf_msg_free(&all);
}

TEST(test_exchange_hands_out_equal_parts_once)
{
    struct rf_msg all;
    ck_assert_int_eq(say(LAB_B, 5, 2, "dd", &all), RF_VERDICT_GO_ON);
    ck_assert_int_eq(say(LAB_A, 5, 0, "dd", &all), RF_VERDICT_NEXT);
    ck_assert_uint_eq(all.exchanged.data.n, 1);
    ck_assert_str_eq(all.exchanged.data.list[0], "dd");
    rf_msg_free(&all);
}

TEST(test_exchange_begins_anew_with_a_number_that_is_complete)
{
    struct rf_msg all;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(say(LAB_A, 1, 0, "aa", &all), RF_VERDICT_GO_ON);
        ck_assert_int_eq(say(LAB_B, 1, 2, "bb", &all), RF_VERDICT_NEXT);
        rf_msg_free(&all);
    }
}

TEST(test_exchange_refuses_what_is_foreign_repeated_or_no_hexadecimal)
{
    struct rf_msg all;
    ck_assert_int_eq(say(LAB_A, 1, 0, "aa", &all), RF_VERDICT_GO_ON);
    ck_assert_int_eq(say(LAB_A, 1, 0, "aa", &all), RF_VERDICT_ABORT);
    ck_assert_int_eq(say(LAB_A, 2, 1, "aa", &all), RF_VERDICT_ABORT);
    ck_assert_int_eq(say(LAB_B, 3, 98, "aa", &all), RF_VERDICT_ABORT);
    ck_assert_int_eq(say(LAB_A, 4, 0, "abc", &all), RF_VERDICT_ABORT);
    ck_assert_int_eq(say(LAB_A, 5, 0, "xy", &all), RF_VERDICT_ABORT);
}

TEST(test_exchange_keeps_no_more_than_eight_open)
{
    struct rf_msg all;
    for (uint64_t seq = 0; seq < 8; seq++) {
        ck_assert_int_eq(say(LAB_A, seq, 0, "aa", &all), RF_VERDICT_GO_ON);
    }
    ck_assert_int_eq(say(LAB_A, 8, 0, "aa", &all), RF_VERDICT_ABORT);
    ck_assert_int_eq(say(LAB_B, 3, 2, "bb", &all), RF_VERDICT_NEXT);
    rf_msg_free(&all);
    ck_assert_int_eq(say(LAB_A, 8, 0, "aa", &all), RF_VERDICT_GO_ON);
}
