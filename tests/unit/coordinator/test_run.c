/* The run's state machine on a virtual clock, with faults in every state. */
#include <check.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "tests/lib/fake_cluster.h"

#define CLUSTER(scenarios)                                                     \
    "{\"name\": \"t\", \"launch\": {\"method\": \"local\"}, \"nodes\": ["      \
    "{\"host\": \"alpha\", \"slots\": 2}, {\"host\": \"beta\", \"slots\": 2}"  \
    "], \"model\": {\"megatron\": {\"num_layers\": 2, \"hidden_size\": 64, "   \
    "\"num_attention_heads\": 4, \"vocab_size\": 128}}, \"scenarios\": "       \
    "[" scenarios "]}"
#define FIRST                                                                  \
    "{\"name\": \"first\", \"train\": {\"tp\": 4}, \"infer\": {\"tp\": 2}, "   \
    "\"warmup\": 1, \"iterations\": 2}"
#define SECOND                                                                 \
    "{\"name\": \"second\", \"train\": {\"tp\": 2, \"pp\": 2}, \"infer\": "    \
    "{\"tp\": 4}, \"warmup\": 0, \"iterations\": 3}"
#define ON_ALPHA                                                               \
    "{\"name\": \"on-alpha\", \"mode\": \"disaggregated\", \"train\": "        \
    "{\"tp\": 1}, \"infer\": {\"tp\": 1}, \"warmup\": 0, \"iterations\": 1}"

static const char two[] = CLUSTER(FIRST ", " SECOND);
static const char one[] = CLUSTER(FIRST);

static const struct fake_fault no_fault;

/* Runs a whole run with one fault; it must end within ten minutes. */
static struct fake_cluster *run_with(const char *config,
                                     struct fake_fault fault)
{
    struct fake_cluster *fake = fake_cluster_create(config, NULL, 0);
    if (fault.kind != FAKE_NO_FAULT) {
        fake_cluster_fault(fake, fault);
    }
    fake_cluster_start(fake);
    ck_assert_msg(fake_cluster_run(fake, 600 * FAKE_S), "stuck in %s",
                  rf_run_state(fake->run));
    return fake;
}

static struct fake_fault at(enum fake_fault_kind kind, uint32_t node,
                            const char *step, int round)
{
    return (struct fake_fault){
        .kind = kind, .node = node, .step = step, .round = round};
}

static const char *error_text(const struct fake_attempt *attempt, size_t i,
                              const char *key)
{
    const char *text = json_string_value(
        json_object_get(json_array_get(attempt->errors, i), key));
    return text != NULL ? text : "";
}

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

START_TEST(test_run_measures_every_scenario_and_ends_with_0)
{
    struct fake_cluster *fake = run_with(two, no_fault);
    ck_assert_int_eq(fake->exit_code, 0);
    ck_assert_uint_eq(fake->n_attempts, 2);
    ck_assert(fake->joined_called);
    ck_assert_uint_eq(fake->shutdowns, 2);
    ck_assert_int_eq(fake->attempts[0].outcome, RF_OUTCOME_OK);
    ck_assert_uint_eq(fake->attempts[0].n_iterations, 3);
    ck_assert_uint_eq(fake->attempts[0].rounds, 2);
    ck_assert_uint_eq(fake->attempts[0].checked_bytes, 2 * 4 * 1000);
    ck_assert_uint_eq(json_array_size(fake->attempts[0].errors), 0);
    ck_assert(fake->attempts[0].probed_before);
    ck_assert(fake->attempts[0].probed_after);
    ck_assert(fake->attempts[0].closed);
    ck_assert_double_eq(fake->attempts[0].copy_gbytes_per_s, 4.0);
    ck_assert_double_eq(fake->attempts[0].pair_gbytes_per_s, 2.0);
    ck_assert_str_eq(fake->attempts[1].name, "second");
    ck_assert_uint_eq(fake->attempts[1].n_iterations, 3);
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_start_message_has_all_that_ranks_need)
{
    struct fake_cluster *fake = run_with(one, no_fault);
    const json_t *start = fake->seen_start;
    const json_t *nodes = json_object_get(start, "nodes");
    ck_assert(json_is_object(json_object_get(start, "model")));
    ck_assert(json_is_object(json_object_get(start, "scenario")));
    ck_assert_uint_eq(json_string_length(json_object_get(start, "data_key")),
                      64);
    ck_assert_uint_eq(json_array_size(nodes), 2);
    ck_assert_str_eq(
        json_string_value(json_object_get(json_array_get(nodes, 0), "address")),
        "10.0.0.1");
    ck_assert_ptr_null(json_object_get(start, "test"));
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_null_method_is_not_verified)
{
    struct fake_cluster *fake = run_with(
        CLUSTER("{\"name\": \"n\", \"method\": \"null\", \"train\": {\"tp\": "
                "4}, \"infer\": {\"tp\": 2}, \"iterations\": 2}"),
        no_fault);
    ck_assert_int_eq(fake->exit_code, 0);
    ck_assert_uint_eq(fake->attempts[0].checked_bytes, 0);
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_ends_with_4_when_a_node_cannot_be_launched)
{
    struct fake_cluster *fake = fake_cluster_create(two, NULL, 0);
    fake_cluster_fault(
        fake, (struct fake_fault){.kind = FAKE_LAUNCH_FAILS, .node = 0});
    fake_cluster_fault(
        fake, (struct fake_fault){.kind = FAKE_LAUNCH_FAILS, .node = 1});
    fake_cluster_start(fake);
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 4);
    ck_assert_uint_eq(fake->n_attempts, 0);
    ck_assert_uint_eq(fake->starts, 0);
    ck_assert(has(rf_run_node_error(fake->run, 0), "refused"));
    ck_assert(has(rf_run_node_error(fake->run, 1), "refused"));
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_waits_for_the_verdict_on_all_nodes)
{
    struct fake_cluster *fake = fake_cluster_create(two, NULL, 0);
    fake_cluster_fault(
        fake, (struct fake_fault){.kind = FAKE_LAUNCH_FAILS, .node = 0});
    fake_cluster_start(fake);
    ck_assert(fake_cluster_until(fake, "stopping", FAKE_S));
    ck_assert_ptr_nonnull(rf_run_node_hello(fake->run, 1));
    ck_assert(fake_cluster_run(fake, FAKE_S));
    ck_assert_int_eq(fake->exit_code, 4);
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_gives_up_on_a_node_that_never_joins)
{
    struct fake_cluster *fake =
        run_with(two, (struct fake_fault){.kind = FAKE_NEVER_JOINS, .node = 1});
    ck_assert_int_eq(fake->exit_code, 4);
    ck_assert(has(rf_run_node_error(fake->run, 1), "did not join"));
    ck_assert_ptr_null(rf_run_node_error(fake->run, 0));
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_refuses_another_protocol_and_names_both)
{
    struct fake_cluster *fake = run_with(
        two, (struct fake_fault){.kind = FAKE_OLD_PROTOCOL, .node = 0});
    ck_assert_int_eq(fake->exit_code, 4);
    ck_assert(has(rf_run_node_error(fake->run, 0), "0.0.1"));
    ck_assert(has(rf_run_node_error(fake->run, 0), "protocol 0 to 0"));
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_refuses_a_method_that_a_node_lacks)
{
    struct fake_cluster *fake =
        run_with(one, (struct fake_fault){.kind = FAKE_NO_METHOD, .node = 1});
    ck_assert_int_eq(fake->exit_code, 4);
    ck_assert_uint_eq(fake->starts, 0);
    ck_assert(
        has(error_text(&fake->attempts[0], 0, "text"), "no shared memory"));
    ck_assert(has(error_text(&fake->attempts[0], 0, "text"), "beta"));
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_refuses_what_does_not_fit_with_sizes)
{
    struct fake_cluster *fake =
        run_with(one, (struct fake_fault){.kind = FAKE_NO_MEMORY, .node = 1});
    const char *text;
    ck_assert_int_eq(fake->exit_code, 4);
    ck_assert_uint_eq(fake->starts, 0);
    text = error_text(&fake->attempts[0], 0, "text");
    ck_assert_msg(has(text, "beta") && has(text, "1000000 bytes"), "%s", text);
    ck_assert_str_eq(error_text(&fake->attempts[0], 0, "phase"), "starting");
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_ends_with_1_when_only_some_are_refused)
{
    struct fake_cluster *fake =
        run_with(CLUSTER(FIRST ", " ON_ALPHA),
                 (struct fake_fault){.kind = FAKE_NO_MEMORY, .node = 1});
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_int_eq(fake->attempts[0].outcome, RF_OUTCOME_FAILED);
    ck_assert_int_eq(fake->attempts[1].outcome, RF_OUTCOME_OK);
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_ends_with_4_when_all_are_refused)
{
    struct fake_cluster *fake =
        run_with(two, (struct fake_fault){.kind = FAKE_NO_MEMORY, .node = 1});
    ck_assert_int_eq(fake->exit_code, 4);
    ck_assert_uint_eq(fake->n_attempts, 2);
    ck_assert_uint_eq(fake->starts, 0);
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_names_a_killed_rank_and_goes_on)
{
    struct fake_fault fault = at(FAKE_RANK_KILLED, 1, "run", 2);
    struct fake_cluster *fake;
    const struct fake_attempt *failed;
    fault.attempt = 1;
    fake = run_with(two, fault);
    failed = &fake->attempts[0];
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_int_eq(failed->outcome, RF_OUTCOME_FAILED);
    ck_assert_uint_eq(failed->n_iterations, 2); /* what was measured stays */
    ck_assert_str_eq(error_text(failed, 0, "host"), "beta");
    ck_assert_int_eq(json_integer_value(json_object_get(
                         json_array_get(failed->errors, 0), "rank")),
                     2);
    ck_assert(has(error_text(failed, 0, "text"), "signal 9"));
    ck_assert(has(error_text(failed, 0, "phase"), "iteration 2"));
    ck_assert_str_eq(
        json_string_value(json_array_get(
            json_object_get(json_array_get(failed->errors, 0), "stderr"), 0)),
        "the rank's last words");
    ck_assert_uint_eq(fake->aborts, 2);
    ck_assert_int_eq(fake->attempts[1].outcome, RF_OUTCOME_OK);
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_names_the_dead_rank_not_the_one_that_noticed)
{
    struct fake_cluster *fake =
        run_with(one, at(FAKE_PEER_NOTICES, 1, "run", 1));
    const struct fake_attempt *failed = &fake->attempts[0];
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_uint_eq(json_array_size(failed->errors), 2);
    ck_assert_str_eq(error_text(failed, 0, "host"), "beta");
    ck_assert(has(error_text(failed, 0, "text"), "signal 9"));
    ck_assert(json_is_false(
        json_object_get(json_array_get(failed->errors, 0), "consequence")));
    ck_assert_str_eq(error_text(failed, 1, "host"), "alpha");
    ck_assert(json_is_true(
        json_object_get(json_array_get(failed->errors, 1), "consequence")));
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_reports_what_a_rank_says_of_itself)
{
    struct fake_cluster *fake =
        run_with(one, at(FAKE_RANK_ERROR, 0, "prepare", -1));
    const struct fake_attempt *failed = &fake->attempts[0];
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_str_eq(error_text(failed, 0, "host"), "alpha");
    ck_assert_str_eq(error_text(failed, 0, "phase"), "allocating");
    ck_assert_str_eq(error_text(failed, 0, "status"), "out of memory");
    ck_assert_str_eq(error_text(failed, 0, "text"), "wanted 5 GB, 1 GB free");
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_goes_on_without_a_lost_node_where_it_can)
{
    struct fake_fault fault = at(FAKE_NODE_LOST, 1, "run", 0);
    struct fake_cluster *fake =
        run_with(CLUSTER(FIRST ", " SECOND ", " ON_ALPHA), fault);
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_uint_eq(fake->n_attempts, 3);
    ck_assert_str_eq(error_text(&fake->attempts[0], 0, "host"), "beta");
    ck_assert(has(error_text(&fake->attempts[1], 0, "text"),
                  "node beta was lost earlier"));
    ck_assert_int_eq(fake->attempts[2].outcome, RF_OUTCOME_OK);
    fake_cluster_destroy(fake);
}
END_TEST

static const char *const steps[] = {"prepare", "probe",  "fill",
                                    "run",     "verify", "close"};

START_TEST(test_run_survives_node_loss_in_every_step)
{
    struct fake_cluster *fake =
        run_with(two, at(FAKE_NODE_LOST, 0, steps[_i], -1));
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_uint_eq(fake->n_attempts, 2);
    ck_assert_int_eq(fake->attempts[0].outcome, RF_OUTCOME_FAILED);
    ck_assert_int_eq(fake->attempts[1].outcome, RF_OUTCOME_FAILED);
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_ends_a_silent_step_at_its_deadline)
{
    struct fake_cluster *fake =
        run_with(one, at(FAKE_SILENT, 1, steps[_i], -1));
    const char *text = error_text(&fake->attempts[0], 0, "text");
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_str_eq(error_text(&fake->attempts[0], 0, "host"), "beta");
    ck_assert_msg(has(text, "no answer to"), "%s", text);
    ck_assert_int_eq(fake->attempts[0].outcome, RF_OUTCOME_FAILED);
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_is_killed_rank_safe_in_every_step)
{
    struct fake_cluster *fake =
        run_with(two, at(FAKE_RANK_KILLED, 0, steps[_i], -1));
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_uint_eq(fake->n_attempts, 2);
    ck_assert(has(error_text(&fake->attempts[0], 0, "text"), "signal 9"));
    ck_assert(has(error_text(&fake->attempts[1], 0, "text"), "signal 9"));
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_ignores_second_and_late_answers)
{
    struct fake_cluster *fake =
        run_with(two, at(FAKE_TWICE, _i % 2 ? 1 : 0, steps[_i], -1));
    ck_assert_int_eq(fake->exit_code, 0);
    ck_assert_int_eq(fake->attempts[0].outcome, RF_OUTCOME_OK);
    ck_assert_uint_eq(fake->attempts[0].checked_bytes, 2 * 4 * 1000);
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_fails_before_the_first_byte_when_plans_differ)
{
    struct fake_cluster *fake =
        run_with(one, at(FAKE_WRONG_DIGEST, 1, "prepare", -1));
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_uint_eq(fake->attempts[0].n_iterations, 0);
    ck_assert(has(error_text(&fake->attempts[0], 0, "text"), "plan_digest"));
    ck_assert_str_eq(error_text(&fake->attempts[0], 0, "host"), "beta");
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_ends_with_3_on_a_mismatch_and_says_where)
{
    struct fake_fault fault = at(FAKE_MISMATCH, 1, "verify", 1);
    struct fake_cluster *fake;
    const struct fake_attempt *wrong;
    fault.attempt = 1;
    fake = run_with(two, fault);
    wrong = &fake->attempts[0];
    ck_assert_int_eq(fake->exit_code, 3);
    ck_assert_int_eq(wrong->outcome, RF_OUTCOME_MISMATCH);
    ck_assert_uint_eq(wrong->mismatched_bytes, 1);
    ck_assert(has(error_text(wrong, 0, "text"), "model.norm.weight"));
    ck_assert_str_eq(error_text(wrong, 0, "host"), "beta");
    ck_assert(wrong->closed); /* it ended in order */
    ck_assert_int_eq(fake->attempts[1].outcome, RF_OUTCOME_OK);
    fake_cluster_destroy(fake);
}
END_TEST

static const struct {
    enum fake_fault_kind kind;
    const char *step, *text;
} lies[] = {
    {FAKE_WRONG_RANK, "fill", "not its own"},
    {FAKE_RANK_MISSING, "fill", "leaves out"},
    {FAKE_NOT_ASKED, "fill", "not asked for"},
    {FAKE_BAD_NUMBER, "prepare", "plan_ms"},
    {FAKE_BAD_NUMBER, "probe", "gbytes_per_s"},
    {FAKE_BAD_NUMBER, "run", "ns"},
    {FAKE_BAD_NUMBER, "verify", "checked_bytes"},
    {FAKE_BAD_NUMBER, "close", "host_peak_bytes"},
    {FAKE_ERROR_MESSAGE, "fill", "cannot go on"},
};

START_TEST(test_run_fails_on_answers_that_make_no_sense)
{
    struct fake_cluster *fake =
        run_with(one, at(lies[_i].kind, 1, lies[_i].step, -1));
    const char *text = error_text(&fake->attempts[0], 0, "text");
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_msg(has(text, lies[_i].text), "%s", text);
    ck_assert_str_eq(error_text(&fake->attempts[0], 0, "host"), "beta");
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_cuts_off_a_node_that_does_not_abort)
{
    struct fake_fault fault = at(FAKE_RANK_KILLED, 1, "run", 0);
    struct fake_cluster *fake;
    fault.no_aborted = true;
    fake = run_with(CLUSTER(FIRST ", " ON_ALPHA), fault);
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_uint_eq(fake->drops, 1);
    ck_assert_int_eq(fake->attempts[1].outcome, RF_OUTCOME_OK);
    fake_cluster_destroy(fake);
}
END_TEST

static const char *const busy_states[] = {
    "preparing", "probing",       "filling", "running",
    "verifying", "probing again", "closing"};

START_TEST(test_run_interrupt_keeps_what_was_measured_in_every_state)
{
    struct fake_cluster *fake = fake_cluster_create(two, NULL, 0);
    fake_cluster_start(fake);
    ck_assert(fake_cluster_until(fake, busy_states[_i], 60 * FAKE_S));
    rf_run_interrupt(fake->run, 130);
    ck_assert_str_eq(rf_run_state(fake->run), "aborting");
    ck_assert(fake_cluster_run(fake, 15 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 130);
    ck_assert_uint_eq(fake->n_attempts, 1);
    ck_assert_int_eq(fake->attempts[0].outcome, RF_OUTCOME_INTERRUPTED);
    /* One that is not verified yet does not count. */
    ck_assert_uint_eq(fake->attempts[0].n_iterations, _i < 5 ? 0 : 3);
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_failure_while_verifying_keeps_only_the_verified)
{
    struct fake_cluster *fake =
        run_with(one, at(FAKE_RANK_KILLED, 1, "verify", 2));
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_uint_eq(fake->attempts[0].n_iterations, 2);
    ck_assert_uint_eq(fake->attempts[0].rounds, 1);
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_second_interrupt_does_not_wait)
{
    struct fake_fault fault = at(FAKE_SILENT, 0, "run", 0);
    struct fake_cluster *fake = fake_cluster_create(two, NULL, 0);
    fault.no_aborted = true;
    fake_cluster_fault(fake, fault);
    fake_cluster_start(fake);
    ck_assert(fake_cluster_until(fake, "running", 60 * FAKE_S));
    rf_run_interrupt(fake->run, 130);
    rf_run_interrupt(fake->run, 130);
    ck_assert(fake_cluster_run(fake, FAKE_S));
    ck_assert_int_eq(fake->exit_code, 130);
    ck_assert_uint_eq(fake->n_attempts, 1);
    ck_assert_uint_ge(fake->forced_stops, 1);
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_interrupt_while_launching_starts_nothing)
{
    struct fake_cluster *fake = fake_cluster_create(two, NULL, 0);
    fake_cluster_start(fake);
    rf_run_interrupt(fake->run, 143);
    ck_assert(fake_cluster_run(fake, 15 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 143);
    ck_assert_uint_eq(fake->n_attempts, 0);
    ck_assert_uint_eq(fake->starts, 0);
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_forces_agents_that_do_not_stop)
{
    struct fake_cluster *fake = fake_cluster_create(one, NULL, 0);
    fake->deaf = true;
    fake_cluster_start(fake);
    ck_assert(fake_cluster_run(fake, 600 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 0);
    ck_assert_uint_eq(fake->forced_stops, 1);
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_time_limit_fails_the_scenario_and_begins_no_other)
{
    struct fake_cluster *fake = fake_cluster_create(two, NULL, 5);
    fake_cluster_fault(fake, at(FAKE_SILENT, 0, "run", 0));
    fake_cluster_start(fake);
    ck_assert(fake_cluster_run(fake, 30 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_uint_eq(fake->n_attempts, 1);
    ck_assert(has(error_text(&fake->attempts[0], 0, "text"), "--timeout"));
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_time_limit_after_the_last_scenario_fails_nothing)
{
    struct fake_cluster *fake = fake_cluster_create(one, NULL, 15);
    fake->deaf = true;
    fake_cluster_start(fake);
    ck_assert(fake_cluster_run(fake, 600 * FAKE_S));
    ck_assert_int_gt(fake->now_ns, 15 * FAKE_S);
    ck_assert_int_eq(fake->attempts[0].outcome, RF_OUTCOME_OK);
    ck_assert_int_eq(fake->exit_code, 0);
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_skips_what_is_complete)
{
    static const bool skip[] = {true, false};
    struct fake_cluster *fake = fake_cluster_create(two, skip, 0);
    fake_cluster_start(fake);
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 0);
    ck_assert_uint_eq(fake->n_attempts, 1);
    ck_assert_str_eq(fake->attempts[0].name, "second");
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_stops_when_results_cannot_be_stored)
{
    struct fake_cluster *fake = fake_cluster_create(two, NULL, 0);
    struct rf_err err = {RF_ERR_IO, "disk full"};
    fake_cluster_start(fake);
    ck_assert(fake_cluster_until(fake, "closing", 60 * FAKE_S));
    rf_run_cannot_store(fake->run, &err);
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_uint_eq(fake->n_attempts, 1);
    fake_cluster_destroy(fake);
}
END_TEST

static json_t *parts(int attempt, int seq, int rank, const char *data,
                     int rank2, const char *data2)
{
    return json_pack("{s:i, s:i, s:[{s:i, s:s}, {s:i, s:s}]}", "attempt",
                     attempt, "seq", seq, "parts", "rank", rank, "data", data,
                     "rank", rank2, "data", data2);
}

START_TEST(test_run_exchange_gives_everybody_all_parts)
{
    struct fake_cluster *fake = fake_cluster_create(one, NULL, 0);
    const json_t *data;
    fake_cluster_start(fake);
    ck_assert(fake_cluster_until(fake, "preparing", FAKE_S));
    fake_cluster_say(fake, 1, RF_MSG_EXCHANGE, parts(1, 5, 2, "cc", 3, ""));
    fake_cluster_say(fake, 0, RF_MSG_EXCHANGE, parts(1, 6, 0, "11", 1, "22"));
    ck_assert_uint_eq(fake->exchanged, 0);
    fake_cluster_say(fake, 0, RF_MSG_EXCHANGE, parts(1, 5, 0, "aa", 1, "bb"));
    ck_assert_uint_eq(fake->exchanged, 2);
    data = json_object_get(fake->last_exchanged, "data");
    ck_assert_uint_eq(json_array_size(data), 4);
    ck_assert_str_eq(json_string_value(json_array_get(data, 2)), "cc");
    ck_assert_str_eq(json_string_value(json_array_get(data, 3)), "");
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 0);
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_exchange_refuses_foreign_and_repeated_parts)
{
    struct fake_cluster *fake = fake_cluster_create(one, NULL, 0);
    fake_cluster_start(fake);
    ck_assert(fake_cluster_until(fake, "preparing", FAKE_S));
    if (_i == 0) {
        fake_cluster_say(fake, 1, RF_MSG_EXCHANGE,
                         parts(1, 5, 0, "aa", 1, "bb"));
    } else if (_i == 1) {
        fake_cluster_say(fake, 0, RF_MSG_EXCHANGE,
                         parts(1, 5, 0, "aa", 0, "aa"));
    } else {
        fake_cluster_say(fake, 0, RF_MSG_EXCHANGE,
                         parts(1, 5, 0, "xyz", 1, "bb"));
    }
    ck_assert_str_eq(rf_run_state(fake->run), "aborting");
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 1);
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_ignores_messages_of_another_attempt)
{
    struct fake_cluster *fake = fake_cluster_create(one, NULL, 0);
    fake_cluster_start(fake);
    ck_assert(fake_cluster_until(fake, "preparing", FAKE_S));
    fake_cluster_say(fake, 1, RF_MSG_EXCHANGE, parts(9, 5, 0, "aa", 1, "bb"));
    fake_cluster_say(fake, 1, RF_MSG_RANK_EXIT,
                     json_pack("{s:i, s:i}", "attempt", 7, "rank", 2));
    fake_cluster_say(fake, 1, RF_MSG_DONE, json_object());
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 0);
    fake_cluster_destroy(fake);
}
END_TEST

START_TEST(test_run_adds_the_last_lines_of_the_node)
{
    struct fake_cluster *fake = fake_cluster_create(one, NULL, 0);
    const json_t *lines;
    fake_cluster_fault(fake, at(FAKE_NODE_LOST, 1, "run", 0));
    fake_cluster_start(fake);
    ck_assert(fake_cluster_until(fake, "filling", 60 * FAKE_S));
    rf_run_log(fake->run, 1, 2, "out of cheese");
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    lines =
        json_object_get(json_array_get(fake->attempts[0].errors, 0), "stderr");
    ck_assert_str_eq(json_string_value(json_array_get(lines, 0)),
                     "out of cheese");
    fake_cluster_destroy(fake);
}
END_TEST

static void quiet(void)
{
    rf_log_init(RF_LOG_ERROR, NULL);
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
}

static TCase *step_tests(void)
{
    TCase *tests = tcase_create("steps");
    int n = (int)RF_ARRAY_SIZE(steps);
    tcase_add_checked_fixture(tests, quiet, NULL);
    tcase_add_loop_test(tests, test_run_survives_node_loss_in_every_step, 0, n);
    tcase_add_loop_test(tests, test_run_ends_a_silent_step_at_its_deadline, 0,
                        n);
    tcase_add_loop_test(tests, test_run_is_killed_rank_safe_in_every_step, 0,
                        n);
    tcase_add_loop_test(tests, test_run_ignores_second_and_late_answers, 0, n);
    tcase_add_loop_test(tests, test_run_fails_on_answers_that_make_no_sense, 0,
                        (int)RF_ARRAY_SIZE(lies));
    tcase_add_loop_test(
        tests, test_run_interrupt_keeps_what_was_measured_in_every_state, 0,
        (int)RF_ARRAY_SIZE(busy_states));
    tcase_add_loop_test(
        tests, test_run_exchange_refuses_foreign_and_repeated_parts, 0, 3);
    return tests;
}

Suite *test_run_suite(void);
Suite *test_run_suite(void)
{
    Suite *suite = suite_create("run");
    TCase *tests = tcase_create("run");
    tcase_add_checked_fixture(tests, quiet, NULL);
    tcase_add_test(tests, test_run_measures_every_scenario_and_ends_with_0);
    tcase_add_test(tests, test_run_start_message_has_all_that_ranks_need);
    tcase_add_test(tests, test_run_null_method_is_not_verified);
    tcase_add_test(tests, test_run_ends_with_4_when_a_node_cannot_be_launched);
    tcase_add_test(tests, test_run_waits_for_the_verdict_on_all_nodes);
    tcase_add_test(tests, test_run_gives_up_on_a_node_that_never_joins);
    tcase_add_test(tests, test_run_refuses_another_protocol_and_names_both);
    tcase_add_test(tests, test_run_refuses_a_method_that_a_node_lacks);
    tcase_add_test(tests, test_run_refuses_what_does_not_fit_with_sizes);
    tcase_add_test(tests, test_run_ends_with_1_when_only_some_are_refused);
    tcase_add_test(tests, test_run_ends_with_4_when_all_are_refused);
    tcase_add_test(tests, test_run_names_a_killed_rank_and_goes_on);
    tcase_add_test(tests,
                   test_run_names_the_dead_rank_not_the_one_that_noticed);
    tcase_add_test(tests, test_run_reports_what_a_rank_says_of_itself);
    tcase_add_test(tests, test_run_goes_on_without_a_lost_node_where_it_can);
    tcase_add_test(tests,
                   test_run_fails_before_the_first_byte_when_plans_differ);
    tcase_add_test(tests, test_run_ends_with_3_on_a_mismatch_and_says_where);
    tcase_add_test(tests, test_run_cuts_off_a_node_that_does_not_abort);
    tcase_add_test(tests,
                   test_run_failure_while_verifying_keeps_only_the_verified);
    tcase_add_test(tests, test_run_second_interrupt_does_not_wait);
    tcase_add_test(tests, test_run_interrupt_while_launching_starts_nothing);
    tcase_add_test(tests, test_run_forces_agents_that_do_not_stop);
    tcase_add_test(tests,
                   test_run_time_limit_fails_the_scenario_and_begins_no_other);
    tcase_add_test(tests,
                   test_run_time_limit_after_the_last_scenario_fails_nothing);
    tcase_add_test(tests, test_run_skips_what_is_complete);
    tcase_add_test(tests, test_run_stops_when_results_cannot_be_stored);
    tcase_add_test(tests, test_run_exchange_gives_everybody_all_parts);
    tcase_add_test(tests, test_run_ignores_messages_of_another_attempt);
    tcase_add_test(tests, test_run_adds_the_last_lines_of_the_node);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, step_tests());
    return suite;
}
