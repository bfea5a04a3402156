/* Steps that take too long: who is named for it. */
#include "common/log.h"
#include "common/mem.h"
#include "tests/lib/fake_run.h"
#include "tests/unit/unit.h"

/* A step that node 1 does not answer; it says which ranks hung when it is told
 * to abort. */
static struct fake_cluster *run_hanging(const json_t *unanswered)
{
    struct fake_cluster *fake = fake_cluster_create(fake_run_one, NULL, 0);
    struct fake_fault fault = fake_fault_at(FAKE_SILENT, 1, "run", 1);
    fault.no_aborted = true;
    fake_cluster_fault(fake, fault);
    ck_assert(fake_cluster_until(fake, "running", 600 * FAKE_S));
    rf_run_log(fake->run, 1, 3, "waiting for rank 0");
    ck_assert(fake_cluster_until(fake, "aborting", 3600 * FAKE_S));
    fake_cluster_say(fake, 1, RF_MSG_ABORTED,
                     json_pack("{s:i, s:[], s:O}", "attempt", fake->attempt,
                               "unkillable", "unanswered", unanswered));
    ck_assert(fake_cluster_run(fake, 600 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 1);
    return fake;
}

FIXTURE(fake_run_quiet, NULL)

TEST(test_run_names_the_ranks_of_a_step_that_hangs)
{
    json_t *told = json_pack("[i, i, i]", 2, 3, 0); /* 0: not beta's */
    AUTO(fake_cluster) *fake = run_hanging(told);
    const struct fake_attempt *failed = &fake->attempts[0];
    const char *text = fake_fault(failed, 0)->text;
    const struct rf_fault *last = fake_fault(failed, 2);
    assert_says(text, "no answer to \"run\" for");
    assert_says(text, "; no answer from ranks 2-3 of beta");
    ck_assert_uint_eq(failed->n_faults, 3);
    ck_assert_uint_eq(last->rank, 3);
    ck_assert_uint_eq(fake_fault(failed, 2)->node, BETA);
    ck_assert_str_eq(fake_fault(failed, 2)->phase,
                     fake_fault(failed, 0)->phase);
    assert_says(fake_fault(failed, 2)->phase, "iteration 1");
    ck_assert_str_eq(last->lines.list[0], "waiting for rank 0");
    json_decref(told);
}

TEST(test_run_makes_the_one_rank_that_hangs_the_cause)
{
    json_auto_t *told = json_pack("[i]", 3);
    AUTO(fake_cluster) *fake = run_hanging(told);
    const struct fake_attempt *failed = &fake->attempts[0];
    ck_assert_uint_eq(fake_fault(failed, 0)->rank, 3);
    ck_assert_uint_eq(fake_fault(failed, 0)->node, BETA);
}

/* The time is over just when a rank has said that it lost a peer. */
TEST(test_run_names_who_hangs_also_where_a_peer_was_lost_before)
{
    AUTO(fake_cluster) *fake = fake_cluster_create(fake_run_one, NULL, 60);
    const struct fake_attempt *failed = &fake->attempts[0];
    struct fake_fault fault = fake_fault_at(FAKE_PEER_NOTICES, 1, "run", 1);
    fault.no_aborted = true;
    fake_cluster_fault(fake, fault);
    ck_assert(fake_cluster_until(fake, "settling", 60 * FAKE_S));
    fake->now_ns += 60 * FAKE_S;
    rf_run_tick(fake->run);
    ck_assert_str_eq(rf_run_state(fake->run), "aborting");
    fake_cluster_say(fake, 1, RF_MSG_ABORTED,
                     json_pack("{s:i, s:[], s:[i]}", "attempt", fake->attempt,
                               "unkillable", "unanswered", 3));
    ck_assert(fake_cluster_run(fake, 600 * FAKE_S));
    assert_says(fake_fault(failed, 0)->text, "--timeout reached (60 s)");
    assert_says(fake_fault(failed, 0)->text, "from rank 3 of beta");
}

/* One rank on each node is silent: neither of them alone is the cause. */
TEST(test_run_makes_no_rank_the_cause_when_nodes_hang)
{
    AUTO(fake_cluster) *fake = fake_cluster_create(fake_run_one, NULL, 0);
    const struct fake_attempt *failed = &fake->attempts[0];
    for (uint32_t node = 0; node < 2; node++) {
        struct fake_fault fault = fake_fault_at(FAKE_SILENT, node, "run", 1);
        fault.no_aborted = true;
        fake_cluster_fault(fake, fault);
    }
    ck_assert(fake_cluster_until(fake, "aborting", 3600 * FAKE_S));
    for (uint32_t node = 0; node < 2; node++) {
        fake_cluster_say(fake, node, RF_MSG_ABORTED,
                         json_pack("{s:i, s:[], s:[i]}", "attempt",
                                   fake->attempt, "unkillable", "unanswered",
                                   2 * node + 1));
    }
    ck_assert(fake_cluster_run(fake, 600 * FAKE_S));
    ck_assert_uint_eq(failed->n_faults, 3);
    assert_says(fake_fault(failed, 0)->text, "rank 1 of alpha; ");
    assert_says(fake_fault(failed, 0)->text, "rank 3 of beta");
    ck_assert_uint_eq(fake_fault(failed, 0)->rank, RF_NONE);
    ck_assert_uint_eq(fake_fault(failed, 0)->node, RF_NONE);
}

/* Beta has one rank and goes on saying that it is alive. */
static const char one_each[] =
    "{'name': 't', 'launch': {'method': 'local'}, 'nodes': [{'host': 'alpha', "
    "'slots': 1}, {'host': 'beta', 'slots': 1}], 'model': {'megatron': "
    "{'num_layers': 1, 'hidden_size': 64, 'num_attention_heads': 4, "
    "'vocab_size': 128}}, 'scenarios': [{'name': 's', 'mode': "
    "'disaggregated', 'warmup': 0, 'iterations': 1, 'train': {}, 'infer': "
    "{}}]}";

static const char *const hanging[] = {"prepare", "probe",  "fill",
                                      "run",     "verify", "close"};

LOOP_TEST(test_run_time_limit_names_whom_a_step_waits_for,
          RF_ARRAY_SIZE(hanging))
{
    AUTO(fake_cluster) *fake = fake_cluster_create(one_each, NULL, 50);
    const struct rf_fault *fault;
    AUTO_FREE char *start =
        rf_xasprintf("no answer to \"%s\" for ", hanging[_i]);
    fake_cluster_fault(fake, fake_fault_at(FAKE_SILENT, 1, hanging[_i], -1));
    ck_assert(fake_cluster_run(fake, 600 * FAKE_S));
    fault = fake_fault(&fake->attempts[0], 0);
    ck_assert_msg(strncmp(fault->text, start, strlen(start)) == 0, "%s",
                  fault->text);
    assert_says(fault->text, " s from beta (rank 1); --timeout reached "
                             "(50 s); raise it");
    ck_assert_uint_eq(fault->node, BETA);
    ck_assert_uint_eq(fault->rank, 1);
}
