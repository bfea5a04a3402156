/* Faults of nodes, ranks and answers in every state of a run. */
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "tests/lib/fake_run.h"
#include "tests/unit/unit.h"

FIXTURE(fake_run_quiet, NULL)

TEST(test_run_names_a_killed_rank_and_goes_on)
{
    struct fake_fault fault = fake_fault_at(FAKE_RANK_KILLED, 1, "run", 2);
    AUTO(fake_cluster) *fake;
    const struct fake_attempt *failed;
    fault.attempt = 1;
    fake = fake_run_with(fake_run_two, fault);
    failed = &fake->attempts[0];
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_int_eq(failed->outcome, RF_OUTCOME_FAILED);
    ck_assert_uint_eq(failed->n_iterations, 2); /* what was measured stays */
    ck_assert_uint_eq(fake_fault(failed, 0)->node, BETA);
    ck_assert_uint_eq(fake_fault(failed, 0)->rank, 2);
    assert_says(fake_fault(failed, 0)->text, "signal 9");
    assert_says(fake_fault(failed, 0)->phase, "iteration 2");
    ck_assert_str_eq(fake_fault(failed, 0)->lines.list[0],
                     "the rank's last words");
    ck_assert_uint_eq(fake->aborts, 2);
    ck_assert_int_eq(fake->attempts[1].outcome, RF_OUTCOME_OK);
}

/* What a single fault leads to, and what was measured and verified before. */
static const struct {
    enum fake_fault_kind kind;
    uint32_t node, blamed;
    const char *step;
    int iteration;
    size_t n_faults, measured;
    uint32_t verified;
    const char *phase, *text;
} causes[] = {
    {FAKE_RANK_ERROR, ALPHA, ALPHA, "prepare", -1, 1, 0, 0, "allocating",
     "wanted 5 GB, 1 GB free"},
    {FAKE_WRONG_DIGEST, BETA, BETA, "prepare", -1, 1, 0, 0, "preparing",
     "plan_digest"},
    /* The one that died, not the one that noticed. */
    {FAKE_PEER_NOTICES, BETA, BETA, "run", 1, 2, 1, 0, "run iteration 1 of 2",
     "signal 9"},
    {FAKE_RANK_KILLED, BETA, BETA, "verify", 2, 1, 2, 1, "run iteration 2 of 2",
     "signal 9"},
    {FAKE_LESS_CHECKED, BETA, RF_NONE, "verify", 2, 1, 2, 1,
     "verifying iteration 2 of 2", "bytes were compared"},
};

LOOP_TEST(test_run_names_the_cause_and_keeps_what_was_measured,
          RF_ARRAY_SIZE(causes))
{
    AUTO(fake_cluster) *fake = fake_run_with(
        fake_run_one, fake_fault_at(causes[_i].kind, causes[_i].node,
                                    causes[_i].step, causes[_i].iteration));
    const struct fake_attempt *failed = &fake->attempts[0];
    const struct rf_fault *cause = fake_fault(failed, 0);
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_uint_eq(cause->node, causes[_i].blamed);
    ck_assert_str_eq(cause->phase, causes[_i].phase);
    assert_says(cause->text, causes[_i].text);
    ck_assert_uint_eq(failed->n_faults, causes[_i].n_faults);
    if (failed->n_faults > 1) {
        ck_assert_uint_eq(fake_fault(failed, 1)->node, ALPHA);
    }
    ck_assert_uint_eq(failed->n_iterations, causes[_i].measured);
    ck_assert_uint_eq(failed->verified, causes[_i].verified);
}

TEST(test_run_names_the_rank_that_says_why_not_the_one_that_noticed)
{
    AUTO(fake_cluster) *fake = fake_cluster_create(fake_run_one, NULL, 0);
    const struct fake_attempt *failed = &fake->attempts[0];
    fake_cluster_fault(fake, fake_fault_at(FAKE_LOST_PEER, 0, "prepare", -1));
    fake_cluster_fault(fake, fake_fault_at(FAKE_RANK_ERROR, 1, "prepare", -1));
    ck_assert(fake_cluster_run(fake, 600 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_uint_eq(failed->n_faults, 2);
    ck_assert_uint_eq(fake_fault(failed, 0)->node, BETA);
    ck_assert_int_eq(fake_fault(failed, 0)->status, RF_ERR_NOMEM);
    ck_assert_str_eq(fake_fault(failed, 0)->text, "wanted 5 GB, 1 GB free");
    ck_assert_uint_eq(fake_fault(failed, 1)->node, ALPHA);
}

struct seen {
    char errors[8][600];
    unsigned n;
};

static void remember(enum rf_log_level level, const char *line, void *data)
{
    struct seen *seen = data;
    if (level == RF_LOG_ERROR && seen->n < 8 && !has(line, "  | ")) {
        snprintf(seen->errors[seen->n++], sizeof(seen->errors[0]), "%s", line);
    }
}

TEST(test_run_prints_the_cause_before_what_followed)
{
    struct seen seen = {.n = 0};
    AUTO(fake_cluster) *fake;
    rf_log_init(RF_LOG_ERROR, NULL);
    rf_log_set_sink(remember, &seen);
    fake = fake_run_with(fake_run_one,
                         fake_fault_at(FAKE_PEER_NOTICES, 1, "run", 1));
    rf_log_set_sink(NULL, NULL);
    ck_assert_uint_ge(seen.n, 2);
    ck_assert_msg(has(seen.errors[0], "beta") &&
                      has(seen.errors[0], "signal 9"),
                  "%s", seen.errors[0]);
    assert_says(seen.errors[1], "alpha");
}

LOOP_TEST(test_run_counts_from_1_and_names_the_limit_that_was_set, 3)
{
    static const char config[] =
        FAKE_CONFIG("{'name': 's', 'train': {'tp': 4}, 'infer': {'tp': 2}, "
                    "'warmup': 1, 'iterations': 2, 'timeout_s': 7}");
    static const char *const phases[] = {"running warm-up 1 of 1",
                                         "running iteration 1 of 2",
                                         "running iteration 2 of 2"};
    AUTO(fake_cluster) *fake =
        fake_run_with(config, fake_fault_at(FAKE_SILENT, 1, "run", _i));
    const struct fake_attempt *failed = &fake->attempts[0];
    ck_assert_str_eq(fake_fault(failed, 0)->phase, phases[_i]);
    assert_says(fake_fault(failed, 0)->text, "timeout_s (7) if");
}

TEST(test_run_goes_on_without_a_lost_node_where_it_can)
{
    struct fake_fault fault = fake_fault_at(FAKE_NODE_LOST, 1, "run", 0);
    AUTO(fake_cluster) *fake = fake_run_with(
        FAKE_CONFIG(FAKE_FIRST ", " FAKE_SECOND ", " FAKE_ON_ALPHA), fault);
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_uint_eq(fake->n_attempts, 3);
    ck_assert_uint_eq(fake_fault(&fake->attempts[0], 0)->node, BETA);
    assert_says(fake_fault(&fake->attempts[1], 0)->text,
                "node beta was lost earlier");
    ck_assert_int_eq(fake->attempts[2].outcome, RF_OUTCOME_OK);
    ck_assert_uint_eq(fake->shutdowns, 1);
    ck_assert_uint_eq(fake->gone, 1); /* whose files alpha removes */
}

static const char *const steps[] = {"prepare", "probe",  "fill",
                                    "run",     "verify", "close"};

LOOP_TEST(test_run_survives_node_loss_in_every_step, RF_ARRAY_SIZE(steps))
{
    AUTO(fake_cluster) *fake = fake_run_with(
        fake_run_two, fake_fault_at(FAKE_NODE_LOST, 0, steps[_i], -1));
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_uint_eq(fake->n_attempts, 2);
    ck_assert_int_eq(fake->attempts[0].outcome, RF_OUTCOME_FAILED);
    ck_assert_int_eq(fake->attempts[1].outcome, RF_OUTCOME_FAILED);
}

LOOP_TEST(test_run_ends_a_silent_step_at_its_deadline, RF_ARRAY_SIZE(steps))
{
    AUTO(fake_cluster) *fake = fake_run_with(
        fake_run_one, fake_fault_at(FAKE_SILENT, 1, steps[_i], -1));
    const char *text = fake_fault(&fake->attempts[0], 0)->text;
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_uint_eq(fake_fault(&fake->attempts[0], 0)->node, BETA);
    assert_says(text, "no answer to");
    ck_assert_int_eq(fake->attempts[0].outcome, RF_OUTCOME_FAILED);
}

/* How long a rank that hangs in its first iteration is waited for, in s. */
static int64_t patience_s(const char *config)
{
    AUTO(fake_cluster) *fake = fake_cluster_create(config, NULL, 0);
    int64_t began;
    fake_cluster_fault(fake, fake_fault_at(FAKE_SILENT, 1, "run", 0));
    ck_assert(fake_cluster_until(fake, "running", 600 * FAKE_S));
    began = fake->now_ns;
    ck_assert(fake_cluster_until(fake, "aborting", 24 * 3600 * FAKE_S));
    began = (fake->now_ns - began) / FAKE_S;
    ck_assert(fake_cluster_run(fake, 600 * FAKE_S));
    return began;
}

#define LARGE(members)                                                         \
    "{'name': 't', 'launch': {'method': 'local'}, 'nodes': [{'host': "         \
    "'alpha', 'slots': 2}, {'host': 'beta', 'slots': 2}], 'model': "           \
    "{'megatron': {'num_layers': 32, 'hidden_size': 4096, "                    \
    "'num_attention_heads': 32, 'vocab_size': 32000}}, 'scenarios': "          \
    "[{'name': 's', 'train': {'tp': 4}, 'infer': {'tp': 4}, 'warmup': 0, "     \
    "'iterations': 1" members "}]}"

TEST(test_run_waits_as_long_as_slow_memory_or_disks_may_take)
{
    const int64_t gbytes = 13; /* 6.7e9 parameters of 2 bytes */
    int64_t small = patience_s(fake_run_one);
    int64_t memory = patience_s(LARGE(""));
    int64_t disk =
        patience_s(LARGE(", 'method': 'disk', 'disk': {'folder': '/x'}"));
    ck_assert_int_le(small, 61);
    ck_assert_int_ge(memory, 60 + gbytes * 1000 / 50);
    ck_assert_int_ge(disk, 60 + 2 * gbytes * 1000 / 10); /* there and back */
    ck_assert_int_eq(patience_s(LARGE(", 'timeout_s': 5")), 5);
}

LOOP_TEST(test_run_is_killed_rank_safe_in_every_step, RF_ARRAY_SIZE(steps))
{
    AUTO(fake_cluster) *fake = fake_run_with(
        fake_run_two, fake_fault_at(FAKE_RANK_KILLED, 0, steps[_i], -1));
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_uint_eq(fake->n_attempts, 2);
    assert_says(fake_fault(&fake->attempts[0], 0)->text, "signal 9");
    assert_says(fake_fault(&fake->attempts[1], 0)->text, "signal 9");
}

LOOP_TEST(test_run_ignores_second_and_late_answers, RF_ARRAY_SIZE(steps))
{
    AUTO(fake_cluster) *fake = fake_run_with(
        fake_run_two, fake_fault_at(FAKE_TWICE, _i % 2 ? 1 : 0, steps[_i], -1));
    ck_assert_int_eq(fake->exit_code, 0);
    ck_assert_int_eq(fake->attempts[0].outcome, RF_OUTCOME_OK);
    ck_assert_uint_eq(fake->attempts[0].checked_bytes,
                      2 * fake->attempts[0].bytes_total);
}

TEST(test_run_ends_with_3_on_a_mismatch_and_says_where)
{
    struct fake_fault fault = fake_fault_at(FAKE_MISMATCH, 1, "verify", 1);
    AUTO(fake_cluster) *fake;
    const struct fake_attempt *wrong;
    fault.attempt = 1;
    fake = fake_run_with(fake_run_two, fault);
    wrong = &fake->attempts[0];
    ck_assert_int_eq(fake->exit_code, 3);
    ck_assert_int_eq(wrong->outcome, RF_OUTCOME_MISMATCH);
    ck_assert_uint_eq(wrong->mismatched_bytes, 1);
    assert_says(fake_fault(wrong, 0)->text, "model.norm.weight");
    ck_assert_uint_eq(fake_fault(wrong, 0)->node, BETA);
    ck_assert(wrong->closed); /* it ended in order */
    ck_assert_int_eq(fake->attempts[1].outcome, RF_OUTCOME_OK);
}

static const struct {
    enum fake_fault_kind kind;
    const char *step, *text;
} lies[] = {
    {FAKE_WRONG_RANK, "fill", "rank that is not its own"},
    {FAKE_RANK_MISSING, "fill", "leaves out"},
    {FAKE_PART_MISSING, "prepare", "no \"prepared\""},
    {FAKE_PART_MISSING, "probe", "no \"probed\""},
    {FAKE_PART_MISSING, "run", "no \"ran\""},
    {FAKE_PART_MISSING, "verify", "no \"verified\""},
    {FAKE_PART_MISSING, "close", "no \"closed\""},
    {FAKE_NOT_ASKED, "fill", "not requested"},
    {FAKE_BAD_NUMBER, "prepare", "plan_ms"},
    {FAKE_BAD_NUMBER, "probe", "gbytes_per_s"},
    {FAKE_BAD_NUMBER, "run", "ns"},
    {FAKE_BAD_CLOCK, "run", "start_ns"},
    {FAKE_BAD_NUMBER, "verify", "checked_bytes"},
    {FAKE_BAD_NUMBER, "close", "host_peak_bytes"},
    {FAKE_ERROR_MESSAGE, "fill", "cannot go on"},
};

LOOP_TEST(test_run_fails_on_answers_that_make_no_sense, RF_ARRAY_SIZE(lies))
{
    AUTO(fake_cluster) *fake = fake_run_with(
        fake_run_one, fake_fault_at(lies[_i].kind, 1, lies[_i].step, -1));
    const char *text = fake_fault(&fake->attempts[0], 0)->text;
    ck_assert_int_eq(fake->exit_code, 1);
    assert_says(text, lies[_i].text);
    ck_assert_uint_eq(fake_fault(&fake->attempts[0], 0)->node, BETA);
}

TEST(test_run_cuts_off_a_node_that_does_not_abort)
{
    struct fake_fault fault = fake_fault_at(FAKE_RANK_KILLED, 1, "run", 0);
    AUTO(fake_cluster) *fake;
    fault.no_aborted = true;
    fake = fake_run_with(FAKE_CONFIG(FAKE_FIRST ", " FAKE_ON_ALPHA), fault);
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_uint_eq(fake->drops, 1);
    ck_assert_int_eq(fake->attempts[1].outcome, RF_OUTCOME_OK);
}

TEST(test_run_fails_an_attempt_that_a_node_cannot_place_and_goes_on)
{
    AUTO(fake_cluster) *fake =
        fake_cluster_create(FAKE_CONFIG(FAKE_FIRST ", " FAKE_SECOND), NULL, 0);
    const struct rf_fault *cause;
    ck_assert(fake_cluster_until(fake, "preparing", FAKE_S));
    fake_cluster_say(fake, 1, RF_MSG_RANK_EXIT,
                     json_pack("{s:i, s:n, s:s, s:s, s:[]}", "attempt", 1,
                               "rank", "cause",
                               "START: $.scenario.mode: unknown", "phase",
                               "start", "stderr_lines"));
    ck_assert_str_eq(rf_run_state(fake->run), "aborting");
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    cause = fake_fault(&fake->attempts[0], 0);
    ck_assert_uint_eq(cause->node, BETA);
    ck_assert_uint_eq(cause->rank, RF_NONE);
    ck_assert_str_eq(cause->phase, "start");
    ck_assert_str_eq(cause->text, "cannot start its ranks: START: "
                                  "$.scenario.mode: unknown");
    ck_assert_int_eq(fake->attempts[1].outcome, RF_OUTCOME_OK);
    ck_assert_uint_eq(fake->drops, 0); /* it is not lost */
}

TEST(test_run_ignores_messages_of_another_attempt)
{
    AUTO(fake_cluster) *fake = fake_cluster_create(fake_run_one, NULL, 0);
    ck_assert(fake_cluster_until(fake, "preparing", FAKE_S));
    fake_cluster_say(
        fake, 1, RF_MSG_EXCHANGE,
        json_pack("{s:i, s:i, s:[]}", "attempt", 9, "seq", 5, "parts"));
    fake_cluster_say(
        fake, 1, RF_MSG_RANK_EXIT,
        json_pack("{s:i, s:i, s:[]}", "attempt", 7, "rank", 2, "stderr_lines"));
    fake_cluster_say(
        fake, 1, RF_MSG_DONE,
        json_pack("{s:i, s:i, s:[]}", "attempt", 2, "seq", 1, "ranks"));
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 0);
}

TEST(test_run_takes_a_message_it_cannot_read_for_a_fault_of_the_node)
{
    AUTO(fake_cluster) *fake =
        fake_cluster_create(FAKE_CONFIG(FAKE_FIRST ", " FAKE_SECOND), NULL, 0);
    const struct rf_fault *cause;
    ck_assert(fake_cluster_until(fake, "filling", 60 * FAKE_S));
    fake_cluster_say(fake, 1, RF_MSG_DONE, json_object());
    ck_assert_str_eq(rf_run_state(fake->run), "aborting");
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    ck_assert_uint_eq(fake->n_attempts, 2);
    cause = fake_fault(&fake->attempts[0], 0);
    ck_assert_uint_eq(cause->node, BETA);
    ck_assert_int_eq(cause->status, RF_ERR_PROTOCOL);
    assert_says(cause->text, "DONE: $.attempt: is missing");
    ck_assert_int_eq(fake->attempts[1].outcome, RF_OUTCOME_OK);
    ck_assert_uint_eq(fake->drops, 0); /* it is not lost */
}

TEST(test_run_ignores_a_message_it_cannot_read_between_attempts)
{
    AUTO(fake_cluster) *fake = fake_cluster_create(fake_run_one, NULL, 0);
    fake->plan_ns = 10 * FAKE_S;
    ck_assert(fake_cluster_until(fake, "starting", 60 * FAKE_S));
    fake_cluster_say(fake, 1, RF_MSG_DONE, json_object());
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 0);
}

static unsigned n_warnings;

static void count_warning(enum rf_log_level level, const char *line, void *data)
{
    (void)data;
    n_warnings += level == RF_LOG_WARN && has(line, "ignored a message");
}

TEST(test_run_ignores_what_it_cannot_read_of_another_attempt)
{
    AUTO(fake_cluster) *fake = fake_cluster_create(fake_run_one, NULL, 0);
    ck_assert(fake_cluster_until(fake, "filling", 60 * FAKE_S));
    n_warnings = 0;
    rf_log_init(RF_LOG_WARN, NULL);
    rf_log_set_sink(count_warning, NULL);
    fake_cluster_say(fake, 1, RF_MSG_DONE, json_pack("{s:i}", "attempt", 7));
    fake_cluster_say(fake, 1, RF_MSG_ABORTED, json_pack("{s:i}", "attempt", 7));
    fake_cluster_say(fake, 1, RF_MSG_LEASE, json_pack("{s:s}", "t", "now"));
    rf_log_set_sink(NULL, NULL);
    ck_assert_str_eq(rf_run_state(fake->run), "filling");
    ck_assert_uint_eq(n_warnings, 1);
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 0);
}

LOOP_TEST(test_run_cuts_off_a_node_whose_end_it_cannot_read, 2)
{
    struct fake_fault fault = fake_fault_at(FAKE_RANK_KILLED, 1, "run", 0);
    AUTO(fake_cluster) *fake;
    int64_t before_ns;
    fault.no_aborted = true;
    fake = fake_cluster_create(FAKE_CONFIG(FAKE_FIRST ", " FAKE_ON_ALPHA), NULL,
                               0);
    fake_cluster_fault(fake, fault);
    ck_assert(fake_cluster_until(fake, "aborting", 60 * FAKE_S));
    before_ns = fake->now_ns;
    fake_cluster_say(fake, 1, _i == 0 ? RF_MSG_ABORTED : RF_MSG_ERROR,
                     json_object());
    ck_assert_uint_eq(fake->drops, 1);
    ck_assert(fake_cluster_until(fake, "preparing", 60 * FAKE_S));
    ck_assert_int_lt(fake->now_ns - before_ns, 5 * FAKE_S);
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    ck_assert_int_eq(fake->attempts[1].outcome, RF_OUTCOME_OK);
}

TEST(test_run_adds_the_last_lines_of_the_node)
{
    AUTO(fake_cluster) *fake = fake_cluster_create(fake_run_one, NULL, 0);
    const struct rf_texts *lines;
    AUTO_FREE char *word = rf_xasprintf("%299s", ""), *long_line;
    fake_cluster_fault(fake, fake_fault_at(FAKE_NODE_LOST, 1, "run", 0));
    ck_assert(fake_cluster_until(fake, "filling", 60 * FAKE_S));
    rf_run_log(fake->run, 1, 2, "out of cheese");
    long_line = rf_xasprintf("%s\xe2\x82\xac", word); /* cut inside it */
    rf_run_log(fake->run, 1, 2, long_line);
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    lines = &fake_fault(&fake->attempts[0], 0)->lines;
    ck_assert_uint_eq(lines->n, 2);
    ck_assert_str_eq(lines->list[0], "out of cheese");
    memcpy(strchr(long_line, '\xe2'), "+", 2);
    ck_assert_str_eq(lines->list[1], long_line);
}
