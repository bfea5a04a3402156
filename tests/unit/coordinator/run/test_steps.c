/* Who was asked for a step, who has answered. */

#include "common/log.h"
#include "common/mem.h"
#include "coordinator/run/steps.h"
#include "tests/unit/coordinator/run/attempt_lab.h"
#include "tests/unit/unit.h"

static struct attempt_lab lab;
static struct rf_run_steps *steps;
static unsigned taken;

static void setup(void)
{
    lab = attempt_lab_create("");
    steps = rf_run_steps_create(lab.scenario);
    taken = 0;
}

static void teardown(void)
{
    rf_run_steps_destroy(steps);
    attempt_lab_free(&lab);
}

static enum rf_status count(const struct rf_msg_answer *answer, void *data,
                            struct rf_err *err)
{
    ck_assert_ptr_eq(data, &taken);
    taken++;
    return answer->error != NULL ? rf_err_set(err, RF_ERR_PROTOCOL, "no figure")
                                 : RF_OK;
}

/* A node's DONE with the answers of two ranks. */
static enum rf_verdict say(uint32_t node, uint64_t seq,
                           struct rf_msg_answer first,
                           struct rf_msg_answer second, struct rf_fault *fault)
{
    struct rf_msg_answer ranks[] = {first, second};
    const struct rf_msg_done done = {
        .attempt = 7, .seq = seq, .ranks = ranks, .n_ranks = 2};
    const struct rf_run_taker taker = {count, &taken, NULL};
    return rf_run_steps_done(steps, node, &done, taker, fault);
}

static struct rf_msg_answer ok(uint32_t rank)
{
    return (struct rf_msg_answer){.rank = rank, .ok = true};
}

FIXTURE(setup, teardown)

TEST(test_steps_are_complete_when_every_node_has_answered)
{
    struct rf_fault fault;
    for (uint64_t number = 1; number <= 2; number++) {
        const uint64_t seq = rf_run_steps_ask(steps);
        ck_assert_uint_eq(seq, number);
        ck_assert(rf_run_steps_wait_for(steps, LAB_A));
        ck_assert_int_eq(say(LAB_A, seq, ok(0), ok(1), &fault),
                         RF_VERDICT_GO_ON);
        ck_assert(!rf_run_steps_wait_for(steps, LAB_A));
        ck_assert(rf_run_steps_wait_for(steps, LAB_B));
        ck_assert_int_eq(say(LAB_B, seq, ok(2), ok(3), &fault),
                         RF_VERDICT_NEXT);
    }
    ck_assert_uint_eq(taken, 8);
}

/* A node's DONE that says of all ranks but the listed one that they are
 * through. */
static enum rf_verdict say_rest(uint32_t node, struct rf_msg_answer *listed,
                                struct rf_fault *fault)
{
    const struct rf_msg_done done = {.attempt = 7,
                                     .seq = 1,
                                     .ok = true,
                                     .ranks = listed,
                                     .n_ranks = listed != NULL};
    const struct rf_run_taker taker = {count, &taken, NULL};
    return rf_run_steps_done(steps, node, &done, taker, fault);
}

TEST(test_steps_take_ranks_that_are_not_listed)
{
    struct rf_msg_answer listed = ok(3);
    struct rf_fault fault;
    (void)rf_run_steps_ask(steps);
    ck_assert_int_eq(say_rest(LAB_A, NULL, &fault), RF_VERDICT_GO_ON);
    ck_assert_uint_eq(taken, 2);
    ck_assert(!rf_run_steps_wait_for(steps, LAB_A));
    ck_assert_int_eq(say_rest(LAB_B, &listed, &fault), RF_VERDICT_NEXT);
    ck_assert_uint_eq(taken, 4); /* each rank once */
}

static void note_bytes(uint32_t node, const struct rf_msg_network *network,
                       void *data)
{
    ck_assert_ptr_eq(data, &taken);
    ck_assert_uint_eq(taken, 2); /* after the ranks' answers */
    ck_assert_uint_eq(node, LAB_B);
    taken += (unsigned)network->loopback_bytes;
}

TEST(test_steps_take_what_a_node_counted)
{
    struct rf_msg_network network = {.loopback_bytes = 40};
    struct rf_msg_done done = {
        .attempt = 7, .seq = 1, .ok = true, .network = &network};
    const struct rf_run_taker taker = {count, &taken, note_bytes};
    struct rf_fault fault;
    (void)rf_run_steps_ask(steps);
    ck_assert_int_eq(rf_run_steps_done(steps, LAB_B, &done, taker, &fault),
                     RF_VERDICT_GO_ON);
    ck_assert_uint_eq(taken, 42);
}

TEST(test_steps_refuse_a_listed_rank_of_another_node)
{
    struct rf_msg_answer listed = ok(0);
    AUTO(rf_fault) fault;
    (void)rf_run_steps_ask(steps);
    ck_assert_int_eq(say_rest(LAB_B, &listed, &fault), RF_VERDICT_ABORT);
    assert_says(fault.text, "rank that is not its own");
}

TEST(test_steps_take_no_answer_twice)
{
    struct rf_fault fault;
    (void)rf_run_steps_ask(steps);
    const uint64_t seq = rf_run_steps_ask(steps);
    ck_assert_int_eq(say(LAB_A, seq - 1, ok(0), ok(1), &fault),
                     RF_VERDICT_GO_ON);
    ck_assert_uint_eq(taken, 0);
    ck_assert_int_eq(say(LAB_A, seq, ok(0), ok(1), &fault), RF_VERDICT_GO_ON);
    ck_assert_int_eq(say(LAB_A, seq, ok(0), ok(1), &fault), RF_VERDICT_GO_ON);
    ck_assert_uint_eq(taken, 2);
}

#define OK(r)                                                                  \
    {                                                                          \
        .rank = (r), .ok = true                                                \
    }

static const struct {
    uint64_t later;
    struct rf_msg_answer ranks[2];
    enum rf_status status;
    uint32_t rank;
    const char *text, *phase;
} faults[] = {
    {1, {OK(0), OK(1)}, RF_ERR_PROTOCOL, RF_NONE, "not requested", NULL},
    {0, {OK(0), OK(2)}, RF_ERR_PROTOCOL, RF_NONE, "that is not its own", NULL},
    {0, {OK(0), OK(99)}, RF_ERR_PROTOCOL, RF_NONE, "that is not its own", NULL},
    {0, {OK(1), OK(1)}, RF_ERR_PROTOCOL, RF_NONE, "answered twice", NULL},
    {0,
     {OK(0), {.rank = 1}},
     RF_ERR_INTERNAL,
     1,
     "failed, no reason given",
     NULL},
    {0,
     {{.rank = 0, .error = (char[]){""}}, OK(1)},
     RF_ERR_INTERNAL,
     0,
     "failed, no reason given",
     NULL},
    {0,
     {{.rank = 0,
       .status = (char[]){"peer lost"},
       .error = (char[]){"rank 3 is gone"},
       .phase = (char[]){"run"}},
      OK(1)},
     RF_ERR_PEER,
     0,
     "rank 3 is gone",
     "run"},
    {0,
     {{.rank = 0, .ok = true, .error = (char[]){"bad"}}, OK(1)},
     RF_ERR_PROTOCOL,
     0,
     "no figure",
     NULL},
};

LOOP_TEST(test_steps_refuse_answers, RF_ARRAY_SIZE(faults))
{
    AUTO(rf_fault) fault;
    const uint64_t seq = rf_run_steps_ask(steps) + faults[_i].later;
    ck_assert_int_eq(
        say(LAB_A, seq, faults[_i].ranks[0], faults[_i].ranks[1], &fault),
        RF_VERDICT_ABORT);
    ck_assert_uint_eq(fault.node, LAB_A);
    ck_assert_uint_eq(fault.rank, faults[_i].rank);
    ck_assert_int_eq(fault.status, faults[_i].status);
    assert_says(fault.text, faults[_i].text);
    ck_assert_pstr_eq(fault.phase, faults[_i].phase);
}

TEST(test_steps_miss_a_rank_that_is_left_out)
{
    const struct rf_run_taker taker = {count, &taken, NULL};
    struct rf_msg_answer one = ok(2);
    AUTO(rf_fault) fault;
    const struct rf_msg_done done = {
        .seq = rf_run_steps_ask(steps), .ranks = &one, .n_ranks = 1};
    ck_assert_int_eq(rf_run_steps_done(steps, LAB_B, &done, taker, &fault),
                     RF_VERDICT_ABORT);
    assert_says(fault.text, "leaves out ranks");
}

TEST(test_steps_name_the_silent)
{
    struct rf_fault fault;
    const uint64_t seq = rf_run_steps_ask(steps);
    fault = rf_run_steps_silence(steps, "run", 61.5, "");
    ck_assert_str_eq(fault.text, "no answer to \"run\" for 61.5 s from a, b");
    ck_assert_uint_eq(fault.node, RF_NONE);
    ck_assert_int_eq(fault.status, RF_ERR_TIMEOUT);
    rf_fault_free(&fault);
    (void)say(LAB_A, seq, ok(0), ok(1), &fault);
    fault = rf_run_steps_silence(steps, "run", 7, "; it is over");
    ck_assert_str_eq(fault.text,
                     "no answer to \"run\" for 7.0 s from b; it is over");
    ck_assert_uint_eq(fault.node, LAB_B);
    ck_assert_uint_eq(fault.rank, RF_NONE); /* it has two */
    rf_fault_free(&fault);
}

TEST(test_steps_end_when_every_node_has_aborted)
{
    (void)rf_run_steps_ask(steps);
    rf_run_steps_abort(steps);
    ck_assert_int_eq(rf_run_steps_aborted(steps, LAB_B), RF_VERDICT_GO_ON);
    ck_assert_int_eq(rf_run_steps_aborted(steps, LAB_B), RF_VERDICT_GO_ON);
    ck_assert(rf_run_steps_wait_for(steps, LAB_A));
    ck_assert_int_eq(rf_run_steps_aborted(steps, LAB_A), RF_VERDICT_NEXT);
}
