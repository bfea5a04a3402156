/* The run's state machine on a virtual clock: order, limits, interrupts. Its
 * faults are in test_run_fault.c. */
#include <stdio.h>

#include "common/mem.h"
#include "tests/lib/fake_run.h"
#include "tests/lib/logged.h"
#include "tests/unit/unit.h"

FIXTURE(fake_run_quiet, NULL)

TEST(test_run_measures_every_scenario_and_ends_with_0)
{
    AUTO(fake_cluster) *fake = fake_run(fake_run_two);
    ck_assert_int_eq(fake->exit_code, 0);
    ck_assert_uint_eq(fake->n_attempts, 2);
    ck_assert(fake->joined_called);
    ck_assert_uint_eq(fake->shutdowns, 2);
    ck_assert_int_eq(fake->attempts[0].outcome, RF_OUTCOME_OK);
    ck_assert_uint_eq(fake->attempts[0].n_iterations, 3);
    ck_assert_uint_eq(fake->attempts[0].verified, 2);
    ck_assert_uint_eq(fake->attempts[0].checked_bytes,
                      2 * fake->attempts[0].bytes_total);
    ck_assert_uint_eq(fake->attempts[0].n_faults, 0);
    ck_assert(fake->attempts[0].probed_before);
    ck_assert(!fake->attempts[0].probed_after); /* it has yardsticks */
    ck_assert(fake->attempts[0].closed);
    ck_assert_double_eq(fake->attempts[0].copy_gbytes_per_s, 4.0);
    ck_assert_double_eq(fake->attempts[0].pair_gbytes_per_s, 2.0);
    ck_assert_str_eq(fake->attempts[1].name, "second");
    ck_assert_uint_eq(fake->attempts[1].n_iterations, 3);
    ck_assert_uint_eq(fake->source_checks, 2 * 2); /* once a scenario */
}

/* The second begins where the first ends, without a launch. */
TEST(test_run_counts_the_time_of_each_phase)
{
    AUTO(fake_cluster) *fake = fake_run(fake_run_two);
    for (size_t i = 0; i < fake->n_attempts; i++) {
        const struct fake_attempt *attempt = &fake->attempts[i];
        int64_t sum = 0;
        for (size_t p = 0; p < RF_PHASES; p++) {
            ck_assert_int_ge(attempt->phase_ns[p], 0);
            sum += attempt->phase_ns[p];
        }
        ck_assert_int_eq(sum, attempt->total_ns);
        ck_assert_int_gt(attempt->phase_ns[RF_PHASE_PREPARE], 0);
        ck_assert_int_gt(attempt->phase_ns[RF_PHASE_PROBE], 0);
        ck_assert_int_gt(attempt->phase_ns[RF_PHASE_FILL], 0);
        ck_assert_int_gt(attempt->phase_ns[RF_PHASE_REFIT], 0);
        ck_assert_int_gt(attempt->phase_ns[RF_PHASE_YARDSTICK], 0);
        ck_assert_int_gt(attempt->phase_ns[RF_PHASE_VERIFY], 0);
        ck_assert_int_gt(attempt->phase_ns[RF_PHASE_CLOSE], 0);
    }
    ck_assert_int_gt(fake->attempts[0].phase_ns[RF_PHASE_LAUNCH], 0);
    ck_assert_int_eq(fake->attempts[1].phase_ns[RF_PHASE_LAUNCH], 0);
}

TEST(test_run_shows_how_much_of_a_checkpoint_the_nodes_have_read)
{
    AUTO(fake_cluster) *fake = fake_cluster_create(fake_run_two, NULL, 0);
    struct rf_msg_lease lease = {.done_bytes = 30, .of_bytes = 100};
    ck_assert(fake_cluster_until(fake, "filling", 60 * FAKE_S));
    rf_run_reading(fake->run, 0, &lease);
    ck_assert_uint_eq(fake->view.read_bytes, 30);
    lease.done_bytes = 20;
    rf_run_reading(fake->run, 1, &lease);
    ck_assert_uint_eq(fake->view.read_bytes, 50);
    ck_assert_uint_eq(fake->view.of_bytes, 200);
    ck_assert(fake_cluster_until(fake, "running", 60 * FAKE_S));
    ck_assert_uint_eq(fake->view.of_bytes, 0);
}

TEST(test_run_start_message_has_all_that_ranks_need)
{
    AUTO(fake_cluster) *fake = fake_run(fake_run_one);
    const json_t *start = fake->seen_start;
    const json_t *nodes = json_object_get(start, "nodes");
    ck_assert(json_is_object(json_object_get(start, "model")));
    ck_assert(json_is_object(json_object_get(start, "scenario")));
    ck_assert_uint_eq(json_string_length(json_object_get(start, "data_key")),
                      64);
    ck_assert_uint_eq(json_array_size(nodes), 2);
    ck_assert_str_eq(json_text_at(nodes, "[0].address"), "10.0.0.1");
    ck_assert_ptr_null(json_object_get(start, "test"));
}

static const char four_nodes[] =
    "{'name': 't', 'launch': {'method': 'local'}, 'nodes': [{'host': 'a', "
    "'slots': 1}, {'host': 'b', 'slots': 1}, {'host': 'c', 'slots': 1}, "
    "{'host': 'd', 'slots': 1}], 'model': {'megatron': {'num_layers': 2, "
    "'hidden_size': 64, 'num_attention_heads': 4, 'vocab_size': 128}}, "
    "'scenarios': [{'name': 's', 'mode': 'disaggregated', 'train': {'dp': 2}, "
    "'infer': {'dp': 2}, 'iterations': 1}]}";

TEST(test_run_tells_a_node_only_of_its_own_links)
{
    AUTO(fake_cluster) *fake = fake_run(four_nodes);
    ck_assert_int_eq(rf_run_exit_code(fake->run), 0);
    ck_assert_uint_ge(fake->links, 4); /* both ends of two */
    ck_assert_uint_eq(fake->foreign_links, 0);
}

TEST(test_run_hands_test_hooks_to_the_ranks)
{
    struct rf_msg_hook flip;
    struct rf_msg_hooks test = {.flip = &flip};
    AUTO(fake_cluster) *fake =
        fake_cluster_with(fake_run_one, (struct rf_run_options){.test = &test});
    const json_t *seen;
    rf_schema_init(&rf_msg_hook_schema, &flip);
    flip.rank = 3;
    flip.iteration = 1;
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    seen = json_at(fake->seen_start, "test.flip");
    ck_assert_int_eq(json_integer_at(seen, "rank"), 3);
    ck_assert_ptr_null(json_object_get(seen, "phase"));
}

static double limit_of(const struct fake_cluster *fake, const char *step)
{
    const json_t *limit = json_object_get(fake->seen_limits, step);
    ck_assert_msg(json_is_number(limit), "%s", step);
    return json_number_value(limit);
}

TEST(test_run_tells_ranks_how_long_a_step_may_take)
{
    static const char *const steps[] = {"prepare", "probe",     "fill", "run",
                                        "verify",  "yardstick", "close"};
    AUTO(fake_cluster) *fake = fake_run(fake_run_one);
    for (size_t i = 0; i < RF_ARRAY_SIZE(steps); i++) {
        ck_assert_double_ge(limit_of(fake, steps[i]), 59);
    }
    ck_assert_double_ge(limit_of(fake, "prepare"), 119);
}

TEST(test_run_limits_grow_with_the_memory)
{
    AUTO(fake_cluster) *fake =
        fake_run("{'name': 't', 'launch': {'method': 'local'}, 'nodes': "
                 "[{'host': 'alpha', 'slots': 2}, {'host': 'beta', 'slots': "
                 "2}], 'model': {'megatron': {'num_layers': 32, 'hidden_size': "
                 "4096, 'num_attention_heads': 32, 'vocab_size': 128000}}, "
                 "'scenarios': [" FAKE_FIRST "]}");
    ck_assert_double_ge(limit_of(fake, "prepare"), 200);
    ck_assert_double_ge(limit_of(fake, "fill"), 200);
    ck_assert_double_ge(limit_of(fake, "close"), 200);
}

TEST(test_run_null_method_is_not_verified)
{
    AUTO(fake_cluster) *fake =
        fake_run(FAKE_CONFIG("{'name': 'n', 'method': 'null', 'train': {'tp': "
                             "4}, 'infer': {'tp': 2}, 'iterations': 2}"));
    ck_assert_int_eq(fake->exit_code, 0);
    ck_assert_uint_eq(fake->attempts[0].checked_bytes, 0);
}

TEST(test_run_ends_with_4_when_a_node_cannot_be_launched)
{
    AUTO(fake_cluster) *fake = fake_cluster_create(fake_run_two, NULL, 0);
    fake_cluster_fault(
        fake, (struct fake_fault){.kind = FAKE_LAUNCH_FAILS, .node = 0});
    fake_cluster_fault(
        fake, (struct fake_fault){.kind = FAKE_LAUNCH_FAILS, .node = 1});
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 4);
    ck_assert_uint_eq(fake->n_attempts, 0);
    ck_assert_uint_eq(fake->starts, 0);
    assert_says(rf_run_node_error(fake->run, 0), "refused");
    assert_says(rf_run_node_error(fake->run, 1), "refused");
}

TEST(test_run_waits_for_the_verdict_on_all_nodes)
{
    AUTO(fake_cluster) *fake = fake_cluster_create(fake_run_two, NULL, 0);
    fake_cluster_fault(
        fake, (struct fake_fault){.kind = FAKE_LAUNCH_FAILS, .node = 0});
    ck_assert(fake_cluster_until(fake, "stopping", FAKE_S));
    ck_assert_ptr_null(rf_run_node_error(fake->run, 1));
    ck_assert(fake_cluster_run(fake, FAKE_S));
    ck_assert_int_eq(fake->exit_code, 4);
}

TEST(test_run_gives_up_on_a_node_that_never_joins)
{
    AUTO(fake_cluster) *fake = fake_run_with(
        fake_run_two, (struct fake_fault){.kind = FAKE_NEVER_JOINS, .node = 1});
    ck_assert_int_eq(fake->exit_code, 4);
    assert_says(rf_run_node_error(fake->run, 1), "did not join");
    ck_assert_ptr_null(rf_run_node_error(fake->run, 0));
}

TEST(test_run_time_limit_while_launching_names_who_is_missing)
{
    AUTO(fake_cluster) *fake = fake_cluster_create(fake_run_two, NULL, 5);
    fake_cluster_fault(
        fake, (struct fake_fault){.kind = FAKE_NEVER_JOINS, .node = 1});
    ck_assert(fake_cluster_run(fake, 10 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 4);
    assert_says(rf_run_node_error(fake->run, 1),
                "did not join within 5 s: its shell");
    ck_assert_ptr_null(rf_run_node_error(fake->run, 0));
}

TEST(test_run_refuses_another_protocol_and_names_both)
{
    AUTO(fake_cluster) *fake = fake_run_with(
        fake_run_two,
        (struct fake_fault){.kind = FAKE_OLD_PROTOCOL, .node = 0});
    ck_assert_int_eq(fake->exit_code, 4);
    assert_says(rf_run_node_error(fake->run, 0), "0.0.1");
    assert_says(rf_run_node_error(fake->run, 0), "protocol 0 to 0");
}

TEST(test_run_that_is_strict_refuses_workers_of_another_build)
{
    AUTO(fake_cluster) *fake = fake_cluster_with(
        fake_run_two, (struct rf_run_options){.strict = true});
    ck_assert(fake_cluster_run(fake, 600 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 4);
    ck_assert_uint_eq(fake->starts, 0);
    for (uint32_t node = 0; node < 2; node++) {
        assert_says(rf_run_node_error(fake->run, node),
                    "its worker is 0.0.1 (test)");
    }
}

TEST(test_run_refuses_a_method_that_a_node_lacks)
{
    AUTO(fake_cluster) *fake = fake_run_with(
        fake_run_one, (struct fake_fault){.kind = FAKE_NO_METHOD, .node = 1});
    ck_assert_int_eq(fake->exit_code, 4);
    ck_assert_uint_eq(fake->starts, 0);
    assert_says(fake_fault(&fake->attempts[0], 0)->text, "no shared memory");
    assert_says(fake_fault(&fake->attempts[0], 0)->text, "beta");
}

TEST(test_run_refuses_what_does_not_fit_with_sizes)
{
    AUTO(fake_cluster) *fake = fake_run_with(
        fake_run_one, (struct fake_fault){.kind = FAKE_NO_MEMORY, .node = 1});
    const char *text;
    ck_assert_int_eq(fake->exit_code, 4);
    ck_assert_uint_eq(fake->starts, 0);
    text = fake_fault(&fake->attempts[0], 0)->text;
    ck_assert_msg(has(text, "beta") && has(text, "1000000 bytes"), "%s", text);
    ck_assert_str_eq(fake_fault(&fake->attempts[0], 0)->phase, "starting");
}

TEST(test_run_ends_with_1_when_only_some_are_refused)
{
    AUTO(fake_cluster) *fake =
        fake_run_with(FAKE_CONFIG(FAKE_FIRST ", " FAKE_ON_ALPHA),
                      (struct fake_fault){.kind = FAKE_NO_MEMORY, .node = 1});
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_int_eq(fake->attempts[0].outcome, RF_OUTCOME_FAILED);
    ck_assert_int_eq(fake->attempts[1].outcome, RF_OUTCOME_OK);
}

TEST(test_run_ends_with_4_when_all_are_refused)
{
    AUTO(fake_cluster) *fake = fake_run_with(
        fake_run_two, (struct fake_fault){.kind = FAKE_NO_MEMORY, .node = 1});
    ck_assert_int_eq(fake->exit_code, 4);
    ck_assert_uint_eq(fake->n_attempts, 2);
    ck_assert_uint_eq(fake->starts, 0);
}

static const char *const busy_states[] = {
    "preparing", "probing",       "filling", "running",
    "verifying", "probing again", "closing"};

/* Without yardsticks, so that it is probed again. */
LOOP_TEST(test_run_interrupt_keeps_what_was_measured_in_every_state,
          RF_ARRAY_SIZE(busy_states))
{
    static const char two[] = FAKE_CONFIG(
        "{'name': 'bare', 'train': {'tp': 4}, 'infer': {'tp': 2}, "
        "'warmup': 1, 'iterations': 2, 'yardstick': false}, " FAKE_SECOND);
    AUTO(fake_cluster) *fake = fake_cluster_create(two, NULL, 0);
    ck_assert(fake_cluster_until(fake, busy_states[_i], 60 * FAKE_S));
    rf_run_interrupt(fake->run, 130);
    ck_assert_str_eq(rf_run_state(fake->run), "aborting");
    ck_assert(fake_cluster_run(fake, 15 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 130);
    ck_assert_uint_eq(fake->n_attempts, 1);
    ck_assert_int_eq(fake->attempts[0].outcome, RF_OUTCOME_INTERRUPTED);
    /* One that is not verified yet does not count. */
    ck_assert_uint_eq(fake->attempts[0].n_iterations, _i < 5 ? 0 : 3);
}

TEST(test_run_second_interrupt_does_not_wait)
{
    struct fake_fault fault = fake_fault_at(FAKE_SILENT, 0, "run", 0);
    AUTO(fake_cluster) *fake = fake_cluster_create(fake_run_two, NULL, 0);
    fault.no_aborted = true;
    fake_cluster_fault(fake, fault);
    ck_assert(fake_cluster_until(fake, "running", 60 * FAKE_S));
    rf_run_interrupt(fake->run, 130);
    rf_run_interrupt(fake->run, 130);
    ck_assert(fake_cluster_run(fake, FAKE_S));
    ck_assert_int_eq(fake->exit_code, 130);
    ck_assert_uint_eq(fake->n_attempts, 1);
    ck_assert_uint_ge(fake->forced_stops, 1);
}

TEST(test_run_interrupt_while_launching_starts_nothing)
{
    AUTO(fake_cluster) *fake = fake_cluster_create(fake_run_two, NULL, 0);
    fake_cluster_start(fake);
    rf_run_interrupt(fake->run, 143);
    ck_assert(fake_cluster_run(fake, 15 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 143);
    ck_assert_uint_eq(fake->n_attempts, 0);
    ck_assert_uint_eq(fake->starts, 0);
}

TEST(test_run_forces_agents_that_do_not_stop)
{
    AUTO(fake_cluster) *fake = fake_cluster_create(fake_run_one, NULL, 0);
    fake->deaf = true;
    ck_assert(fake_cluster_run(fake, 600 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 0);
    ck_assert_uint_eq(fake->forced_stops, 1);
}

TEST(test_run_time_limit_fails_the_scenario_and_begins_no_other)
{
    AUTO(fake_cluster) *fake = fake_cluster_create(fake_run_two, NULL, 5);
    logged_begin();
    fake_cluster_fault(fake, fake_fault_at(FAKE_SILENT, 0, "run", 0));
    ck_assert(fake_cluster_run(fake, 30 * FAKE_S));
    logged_end();
    assert_says(logged, "error: not run: second");
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_uint_eq(fake->n_attempts, 1);
    assert_says(fake_fault(&fake->attempts[0], 0)->text,
                "--timeout reached (5 s)");
}

TEST(test_run_time_limit_after_the_last_scenario_fails_nothing)
{
    AUTO(fake_cluster) *fake = fake_cluster_create(fake_run_one, NULL, 15);
    fake->deaf = true;
    ck_assert(fake_cluster_run(fake, 600 * FAKE_S));
    ck_assert_int_gt(fake->now_ns, 15 * FAKE_S);
    ck_assert_int_eq(fake->attempts[0].outcome, RF_OUTCOME_OK);
    ck_assert_int_eq(fake->exit_code, 0);
}

/* Planning takes longer than everything below. */
static struct fake_cluster *begin_planning(uint32_t timeout_s, int64_t plan_ns)
{
    struct fake_cluster *fake =
        fake_cluster_create(fake_run_two, NULL, timeout_s);
    fake->plan_ns = plan_ns;
    ck_assert(fake_cluster_until(fake, "starting", 60 * FAKE_S));
    return fake;
}

TEST(test_run_interrupt_while_planning_ends_at_once)
{
    AUTO(fake_cluster) *fake = begin_planning(0, 100 * FAKE_S);
    struct rf_err err = {0};
    rf_run_interrupt(fake->run, 130);
    rf_run_built(fake->run, NULL, &err); /* nobody waits for it */
    ck_assert(fake_cluster_run(fake, FAKE_S));
    ck_assert_int_eq(fake->exit_code, 130);
    ck_assert_uint_eq(fake->n_attempts, 0);
}

TEST(test_run_time_limit_while_planning_begins_nothing)
{
    AUTO(fake_cluster) *fake = begin_planning(5, 100 * FAKE_S);
    ck_assert(fake_cluster_run(fake, 10 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_uint_eq(fake->n_attempts, 0);
}

TEST(test_run_gives_up_on_a_plan_that_takes_too_long)
{
    AUTO(fake_cluster) *fake = begin_planning(0, 700 * FAKE_S);
    ck_assert(fake_cluster_run(fake, 610 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 4);
    ck_assert_uint_eq(fake->n_attempts, 1);
    assert_says(fake_fault(&fake->attempts[0], 0)->text,
                "planning took longer than 600 s");
}

TEST(test_run_names_a_node_that_is_lost_while_planning)
{
    AUTO(fake_cluster) *fake = begin_planning(0, 100 * FAKE_S);
    struct rf_err why = {RF_ERR_PEER, "its agent is gone"};
    rf_run_node_lost(fake->run, 1, &why);
    ck_assert(fake_cluster_run(fake, 300 * FAKE_S));
    ck_assert_uint_eq(fake->n_attempts, 2);
    assert_says(fake_fault(&fake->attempts[0], 0)->text, "its agent is gone");
}

TEST(test_run_skips_what_is_complete)
{
    static const bool skip[] = {true, false};
    AUTO(fake_cluster) *fake = fake_cluster_create(fake_run_two, skip, 0);
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 0);
    ck_assert_uint_eq(fake->n_attempts, 1);
    ck_assert_str_eq(fake->attempts[0].name, "second");
}

/* A run of two scenarios whose first has ended and is not stored yet. */
static struct fake_cluster *run_that_stores(void)
{
    struct fake_cluster *fake = fake_cluster_create(fake_run_two, NULL, 0);
    fake->slow_store = true;
    ck_assert(fake_cluster_until(fake, "storing", 60 * FAKE_S));
    return fake;
}

/* Which scenario and repeat each attempt was of: "first 0, second 0". */
static const char *order_of(const struct fake_cluster *fake)
{
    static char out[400];
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < fake->n_attempts; i++) {
        used += (size_t)snprintf(out + used, sizeof(out) - used, "%s%s %u",
                                 i > 0 ? ", " : "", fake->attempts[i].name,
                                 fake->attempts[i].repeat);
    }
    return out;
}

static struct fake_cluster *repeated(struct rf_run_options options,
                                     struct fake_fault fault)
{
    struct fake_cluster *fake = fake_cluster_with(fake_run_two, options);
    if (fault.kind != FAKE_NO_FAULT) {
        fake_cluster_fault(fake, fault);
    }
    ck_assert(fake_cluster_run(fake, 600 * FAKE_S));
    return fake;
}

TEST(test_run_repeats_all_scenarios_in_turn_with_new_ranks)
{
    AUTO(fake_cluster) *fake = repeated((struct rf_run_options){.n_repeats = 3},
                                        (struct fake_fault){0});
    ck_assert_int_eq(fake->exit_code, 0);
    ck_assert_str_eq(order_of(fake), "first 0, second 0, first 1, second 1, "
                                     "first 2, second 2");
    ck_assert_uint_eq(fake->starts, 12); /* START, to both nodes */
    ck_assert_uint_eq(fake->attempts[5].n_repeats, 3);
    ck_assert_uint_eq(fake->attempts[5].verified, 3);
}

TEST(test_run_does_not_repeat_a_scenario_that_failed)
{
    struct fake_fault fault = fake_fault_at(FAKE_RANK_KILLED, ALPHA, "run", -1);
    AUTO(fake_cluster) *fake;
    fault.attempt = 3; /* the first scenario's second */
    fake_run_quiet();
    fake = repeated((struct rf_run_options){.n_repeats = 3}, fault);
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_str_eq(order_of(fake), "first 0, second 0, first 1, second 1, "
                                     "second 2");
    ck_assert_int_eq(fake->attempts[0].outcome, RF_OUTCOME_OK);
    ck_assert_int_eq(fake->attempts[2].outcome, RF_OUTCOME_FAILED);
    ck_assert_int_eq(fake->attempts[4].outcome, RF_OUTCOME_OK);
}

TEST(test_run_skips_repeats_that_are_complete)
{
    const bool skip[] = {true, true, false, true};
    AUTO(fake_cluster) *fake =
        repeated((struct rf_run_options){.n_repeats = 2, .skip = skip},
                 (struct fake_fault){0});
    ck_assert_str_eq(order_of(fake), "first 1");
}

TEST(test_run_stops_when_results_cannot_be_stored)
{
    AUTO(fake_cluster) *fake = run_that_stores();
    struct rf_err err = {RF_ERR_IO, "disk full"};
    rf_run_stored(fake->run, &err);
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 1);
    ck_assert_uint_eq(fake->n_attempts, 1);
}

TEST(test_run_begins_no_scenario_before_the_last_is_stored)
{
    AUTO(fake_cluster) *fake = run_that_stores();
    ck_assert(!fake_cluster_run(fake, 5000 * FAKE_S));
    ck_assert_str_eq(rf_run_state(fake->run), "storing");
    ck_assert_uint_eq(fake->starts, 2); /* of two nodes, for one scenario */
    rf_run_stored(fake->run, NULL);
    ck_assert_str_eq(rf_run_state(fake->run), "starting");
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S)); /* nothing to wait for */
    ck_assert_uint_eq(fake->n_attempts, 2);
    ck_assert_int_eq(fake->exit_code, 0);
}

TEST(test_run_that_is_done_knows_that_its_last_result_is_lost)
{
    AUTO(fake_cluster) *fake = run_that_stores();
    struct rf_err err = {RF_ERR_IO, "disk full"};
    rf_run_stored(fake->run, NULL);
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    ck_assert_int_eq(rf_run_exit_code(fake->run), 0);
    rf_run_stored(fake->run, &err);
    ck_assert_int_eq(rf_run_exit_code(fake->run), 1);
}

TEST(test_run_that_stores_can_be_stopped)
{
    AUTO(fake_cluster) *fake = run_that_stores();
    rf_run_interrupt(fake->run, 130);
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 130);
    ck_assert_uint_eq(fake->n_attempts, 1);
}

TEST(test_run_that_stores_ends_when_its_time_is_over)
{
    AUTO(fake_cluster) *fake = fake_cluster_create(fake_run_two, NULL, 100);
    fake->slow_store = true;
    ck_assert(fake_cluster_until(fake, "storing", 60 * FAKE_S));
    ck_assert(fake_cluster_run(fake, 200 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 1);
}
