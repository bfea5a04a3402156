/* Answers that a schema lets pass and that still cannot be. */
#include <string.h>

#include "common/mem.h"
#include "coordinator/run/answers.h"
#include "tests/unit/coordinator/run/attempt_lab.h"
#include "tests/unit/unit.h"

static struct attempt_lab lab;
static struct rf_err err;

static void setup(void)
{
    lab = attempt_lab_create("");
    err = (struct rf_err){0};
}

static void teardown(void)
{
    attempt_lab_free(&lab);
}

FIXTURE(setup, teardown)

TEST(test_answers_need_the_part_of_their_step)
{
    const struct rf_msg_answer empty = {.rank = 1, .ok = true};
    ck_assert_int_eq(rf_answers_prepared(lab.attempt, &empty, &err),
                     RF_ERR_PROTOCOL);
    ck_assert_int_eq(rf_answers_ran(lab.attempt, &empty, &err),
                     RF_ERR_PROTOCOL);
    ck_assert_int_eq(rf_answers_verified(lab.attempt, 0, &empty, &err),
                     RF_ERR_PROTOCOL);
    ck_assert_int_eq(rf_answers_closed(lab.attempt, &empty, &err),
                     RF_ERR_PROTOCOL);
    ck_assert_str_eq(err.text, "its answer has no \"closed\"");
}

TEST(test_answers_compare_both_digests)
{
    char plan[RF_HASH_TEXT_SIZE], schedule[RF_HASH_TEXT_SIZE];
    struct rf_msg_prepared prepared = {.plan_digest = plan,
                                       .schedule_digest = schedule,
                                       .plan_ms = 1.5,
                                       .arena_bytes = {1, 2, 3}};
    const struct rf_msg_answer answer = {.rank = 1, .prepared = &prepared};
    rf_hash_text(&lab.scenario->plan->digest, plan);
    rf_hash_text(&lab.scenario->schedule->digest, schedule);
    assert_ok(rf_answers_prepared(lab.attempt, &answer, &err), err);
    ck_assert_int_eq(lab.attempt->ranks[1].plan_ns, 1500000);
    ck_assert_uint_eq(lab.attempt->ranks[1].arena_bytes[RF_MEM_STAGE], 3);
    prepared.schedule_digest = plan;
    ck_assert_int_eq(rf_answers_prepared(lab.attempt, &answer, &err),
                     RF_ERR_PROTOCOL);
    ck_assert_msg(has(err.text, "schedule_digest is") && has(err.text, plan),
                  "%s", err.text);
    prepared.plan_digest = schedule;
    assert_fails(rf_answers_prepared(lab.attempt, &answer, &err),
                 RF_ERR_PROTOCOL, err, "plan_digest is");
}

TEST(test_answers_end_after_they_start)
{
    struct rf_msg_ran ran = {.start_ns = -5, .end_ns = -5, .sent_bytes = 9};
    const struct rf_msg_answer answer = {.rank = 2, .ran = &ran};
    assert_ok(rf_answers_ran(lab.attempt, &answer, &err), err);
    ck_assert_uint_eq(lab.attempt->pending[2].sent_bytes, 9);
    ran.end_ns = -6;
    assert_fails(rf_answers_ran(lab.attempt, &answer, &err), RF_ERR_PROTOCOL,
                 err, "end_ns (-6)");
}

TEST(test_answers_of_a_refit_under_load_say_what_the_load_read)
{
    struct rf_msg_ran ran = {.load_alone_ns = RF_ABSENT_I64,
                             .load_ns = RF_ABSENT_I64};
    const struct rf_msg_answer answer = {.rank = 1, .ran = &ran};
    AUTO(attempt_lab)
    loaded =
        attempt_lab_create(", \"load\": {\"memory_gbytes_per_s\": \"max\"}");
    assert_ok(rf_answers_ran(loaded.attempt, &answer, &err), err);
    loaded.attempt->under_load = true;
    assert_fails(rf_answers_ran(loaded.attempt, &answer, &err), RF_ERR_PROTOCOL,
                 err, "its answer has no \"load_ns\"");
    ran.load_alone_ns = ran.load_ns = 1;
    assert_ok(rf_answers_ran(loaded.attempt, &answer, &err), err);
}

TEST(test_answers_trace_what_lies_in_the_window)
{
    static const struct {
        uint64_t events[2 * RF_MSG_TRACE_NUMBERS];
        bool good;
    } cases[] = {
        {{0, 10, RF_TRACE_COPY, 1, 5, 10, 90, RF_TRACE_WAIT, 0, 0}, true},
        {{0, 10, RF_TRACE_COPY, 1, 5, 9, 5, RF_TRACE_WAIT, 0, 0}, false},
        {{0, 10, RF_TRACE_COPY, 1, 5, 10, 91, RF_TRACE_WAIT, 0, 0}, false},
        {{0, 10, RF_TRACE_COPY, 1, 5, 101, 0, RF_TRACE_WAIT, 0, 0}, false},
        {{0, 10, RF_TRACE_KINDS, 1, 5, 10, 1, RF_TRACE_WAIT, 0, 0}, false},
        {{0, 1, RF_TRACE_COPY, 1 << 30, 5, 2, 1, RF_TRACE_WAIT, 0, 0}, false},
    };
    lab.attempt->n_iterations = 3; /* all that are measured */
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        struct rf_msg_ran ran = {.start_ns = 1000, .end_ns = 1100};
        uint64_t numbers[RF_ARRAY_SIZE(cases[i].events)];
        struct rf_msg_traced traced = {
            .events = {.list = numbers, .n = RF_ARRAY_SIZE(numbers)},
            .dropped = 7};
        const struct rf_msg_answer answer = {
            .rank = 2, .ran = &ran, .traced = &traced};
        memcpy(numbers, cases[i].events, sizeof(numbers));
        ck_assert_int_eq(rf_answers_ran(lab.attempt, &answer, &err),
                         cases[i].good ? RF_OK : RF_ERR_PROTOCOL);
        if (cases[i].good) {
            const struct rf_rank_trace *trace =
                &lab.attempt->traced_refit.ranks[2];
            ck_assert_uint_eq(trace->n, 2);
            ck_assert_uint_eq(trace->dropped, 7);
            ck_assert_uint_eq(trace->events[0].op, 0);
            ck_assert_uint_eq(trace->events[1].op, RF_NO_OP);
            ck_assert_int_eq(trace->events[1].end_ns, 100);
        }
        traced.events.n--;
        ck_assert_int_eq(rf_answers_ran(lab.attempt, &answer, &err),
                         RF_ERR_PROTOCOL);
    }
    lab.attempt->n_iterations = 0;
}

static enum rf_status verify(uint32_t iteration, uint64_t checked,
                             uint64_t mismatched, struct rf_msg_mismatch *first)
{
    struct rf_msg_verified verified = {.checked_bytes = checked,
                                       .quantized_bytes = RF_ABSENT_U64,
                                       .mismatched_bytes = mismatched,
                                       .first = first};
    const struct rf_msg_answer answer = {.rank = 2, .verified = &verified};
    return rf_answers_verified(lab.attempt, iteration, &answer, &err);
}

TEST(test_answers_are_judged_by_the_bytes_compared)
{
    const uint64_t all = lab.scenario->plan->totals.bytes_total;
    struct rf_fault fault = {.text = NULL};
    ck_assert_int_eq(verify(0, all - 1, 0, NULL), RF_OK);
    ck_assert_int_eq(rf_answers_judge(lab.attempt, &fault), RF_VERDICT_ABORT);
    ck_assert_int_eq(fault.status, RF_ERR_PROTOCOL);
    assert_says(fault.text, "bytes were compared");
    rf_fault_free(&fault);
    ck_assert_int_eq(verify(0, 1, 0, NULL), RF_OK);
    ck_assert_int_eq(rf_answers_judge(lab.attempt, &fault), RF_VERDICT_NEXT);
    ck_assert_uint_eq(lab.attempt->warmup_checked_bytes, all);
    ck_assert_uint_eq(lab.attempt->checked_bytes, 0);
    ck_assert_int_eq(verify(1, all, 0, NULL), RF_OK);
    ck_assert_uint_eq(lab.attempt->checked_bytes, all);
    ck_assert_uint_eq(lab.attempt->quantized_bytes, 0);
}

TEST(test_answers_name_the_first_wrong_element)
{
    char side[] = "infer", tensor[] = "w", right[] = "00", wrong[] = "01";
    char later[] = "later";
    uint64_t index[] = {3, 4};
    struct rf_msg_mismatch first = {side, tensor, {index, 2}, right, wrong};
    AUTO(rf_fault) fault = {.text = NULL};
    ck_assert_int_eq(verify(1, 10, 2, NULL), RF_ERR_PROTOCOL);
    assert_says(err.text, "lacks \"first\"");
    ck_assert_int_eq(verify(1, 10, 2, &first), RF_OK);
    first.tensor = later;
    ck_assert_int_eq(verify(1, 10, 1, &first), RF_OK);
    ck_assert_int_eq(rf_answers_judge(lab.attempt, &fault), RF_VERDICT_ABORT);
    ck_assert_int_eq(fault.status, RF_ERR_VERIFY);
    ck_assert_uint_eq(fault.node, LAB_B);
    ck_assert_uint_eq(fault.rank, 2);
    ck_assert_str_eq(fault.text,
                     "3 of the bytes are wrong; the first on b, rank 2: w of "
                     "side infer, index [3, 4]: expected 00, found 01");
    ck_assert_uint_eq(lab.attempt->wrong->iteration, 1);
}

TEST(test_answers_keep_what_a_device_used)
{
    struct rf_msg_device_usage device = {.arena_bytes = 7};
    struct rf_msg_memory_stages stages = {.refit_bytes = 9};
    struct rf_msg_closed closed = {.host_peak_bytes = 5};
    const struct rf_msg_answer answer = {.rank = 3, .closed = &closed};
    assert_ok(rf_answers_closed(lab.attempt, &answer, &err), err);
    ck_assert(!lab.attempt->ranks[3].has_device);
    ck_assert(!lab.attempt->ranks[3].has_stages);
    closed.device = &device;
    closed.stages = &stages;
    assert_ok(rf_answers_closed(lab.attempt, &answer, &err), err);
    ck_assert_uint_eq(lab.attempt->ranks[3].device.arena_bytes, 7);
    ck_assert_uint_eq(lab.attempt->ranks[3].stages.refit_bytes, 9);
}
