/* A run whose checkpoint only the nodes have: what it asks them for, and what
 * their answers make of it. */

#include "tests/lib/fake_run.h"

#include "tests/unit/unit.h"

#define CONFIG(model, sides)                                                   \
    "{'name': 't', 'launch': {'method': 'local'}, 'nodes': [{'host': "         \
    "'alpha', 'slots': 2}, {'host': 'beta', 'slots': 2}, {'host': 'gamma', "   \
    "'slots': 2}], 'model': {'checkpoint': '/absent/model'" model              \
    "}, 'scenarios': [{'name': 's', 'warmup': 0, 'iterations': 1, " sides      \
    "}]}"
/* Gamma has no ranks. */
#define TWO_NODES                                                              \
    "'mode': 'disaggregated', 'train': {'layout': 'fsdp', 'nodes': "           \
    "['alpha']}, 'infer': {'layout': 'fsdp', 'nodes': ['beta']}"

static const char config[] = CONFIG("", TWO_NODES);

TEST(test_run_plans_from_the_headers_that_a_node_sends)
{
    AUTO(fake_cluster) *fake = fake_run(config);
    const json_t *model = json_object_get(fake->seen_start, "model");
    ck_assert_int_eq(fake->exit_code, 0);
    ck_assert_uint_eq(fake->n_attempts, 1);
    ck_assert_int_eq(fake->attempts[0].outcome, RF_OUTCOME_OK);
    ck_assert_uint_eq(fake->inspects, 2);
    ck_assert_uint_eq(fake->wholes, 1);
    ck_assert_uint_eq(json_object_size(json_object_get(model, "manifest")), 2);
    ck_assert_str_eq(json_text_at(model, "folder"), "/absent/model");
}

static const struct {
    enum fake_fault_kind kind;
    uint32_t node;
    const char *words;
} faults[] = {
    {FAKE_NO_FOLDER, ALPHA, "/absent/model: No such file or directory"},
    {FAKE_NO_FOLDER, BETA, "/absent/model: No such file or directory"},
    {FAKE_OTHER_SHARD, BETA,
     "/absent/model/b.safetensors: differs from that on alpha: "},
    {FAKE_NO_SHARD, BETA,
     "/absent/model/b.safetensors: is missing, but exists on alpha: "},
    {FAKE_BAD_HEADERS, BETA, "HEADERS: $.digests: must be an object"},
    {FAKE_NODE_LOST, ALPHA, "connection lost"},
    {FAKE_NODE_LOST, BETA, "connection lost"},
    {FAKE_SILENT, BETA,
     "did not send the headers in /absent/model within 180 s"},
};

/* Nothing is planned then, and only the node at fault is named. */
LOOP_TEST(test_run_ends_with_4_when_a_node_has_not_the_checkpoint,
          RF_ARRAY_SIZE(faults))
{
    const uint32_t node = faults[_i].node;
    AUTO(fake_cluster) *fake;
    fake_run_quiet();
    fake = fake_run_with(config,
                         fake_fault_at(faults[_i].kind, node, "inspect", -1));
    ck_assert_int_eq(fake->exit_code, 4);
    ck_assert_uint_eq(fake->n_attempts, 0);
    ck_assert_uint_eq(fake->starts, 0);
    ck_assert_uint_eq(fake->stops, 1);
    ck_assert_ptr_nonnull(rf_run_node_error(fake->run, node));
    assert_says(rf_run_node_error(fake->run, node), faults[_i].words);
    ck_assert_ptr_null(rf_run_node_error(fake->run, 1 - node));
}

/* A model with the headers in the file, as a result has it. */
#define UPDATE                                                                 \
    "{'name': 't', 'launch': {'method': 'local'}, 'nodes': [{'host': "         \
    "'alpha', 'slots': 2}, {'host': 'beta', 'slots': 2}], 'model': {'folder'"  \
    ": '/absent/model', 'manifest': {'a.weight': {'shape': [64, 64], "         \
    "'dtype': 'F32', 'file': 'a.safetensors', 'offset': 64}}}, 'scenarios': "  \
    "[{'name': 's', 'warmup': 0, 'iterations': 1, 'update': {'from': "         \
    "'/absent/before', 'to': '/absent/after'}, " TWO_NODES "}]}"

TEST(test_run_asks_for_the_checkpoints_of_an_update)
{
    AUTO(fake_cluster) *fake = fake_run(UPDATE);
    ck_assert_int_eq(fake->exit_code, 0);
    ck_assert_int_eq(fake->attempts[0].outcome, RF_OUTCOME_OK);
    ck_assert_uint_eq(fake->inspects, 4);
    ck_assert_uint_eq(fake->wholes, 0);
}

TEST(test_run_ends_with_4_without_a_checkpoint_of_an_update)
{
    AUTO(fake_cluster) *fake;
    fake_run_quiet();
    fake = fake_run_with(UPDATE,
                         fake_fault_at(FAKE_NO_FOLDER, BETA, "inspect", -1));
    ck_assert_int_eq(fake->exit_code, 4);
    ck_assert_uint_eq(fake->starts, 0);
    ck_assert_uint_eq(fake->inspects, 2);
    assert_says(rf_run_node_error(fake->run, BETA),
                "$.scenarios[0].update.from, which ranks read on their nodes: "
                "/absent/before: No such file or directory");
    ck_assert_ptr_null(rf_run_node_error(fake->run, ALPHA));
}

TEST(test_run_time_limit_names_who_has_not_sent_headers)
{
    AUTO(fake_cluster) *fake;
    fake_run_quiet();
    fake = fake_cluster_create(config, NULL, 60);
    fake_cluster_fault(fake, fake_fault_at(FAKE_SILENT, BETA, "inspect", -1));
    ck_assert(fake_cluster_run(fake, 100 * FAKE_S));
    ck_assert_ptr_nonnull(rf_run_node_error(fake->run, BETA));
    ck_assert_ptr_null(rf_run_node_error(fake->run, ALPHA));
}

/* The first one's files are those that others are compared with. */
TEST(test_run_names_a_file_that_only_another_node_has)
{
    AUTO(fake_cluster) *fake;
    fake_run_quiet();
    fake = fake_run_with(config,
                         fake_fault_at(FAKE_NO_SHARD, ALPHA, "inspect", -1));
    ck_assert_int_eq(fake->exit_code, 4);
    assert_says(rf_run_node_error(fake->run, BETA),
                "/absent/model/b.safetensors: does not exist on alpha");
}

TEST(test_run_ends_with_2_when_the_headers_make_no_model)
{
    AUTO(fake_cluster) *fake;
    fake_run_quiet();
    fake = fake_run(CONFIG(", 'rules': 7", TWO_NODES));
    ck_assert_int_eq(fake->exit_code, 2);
    ck_assert_uint_eq(fake->n_attempts, 0);
    ck_assert_uint_eq(fake->starts, 0);
    ck_assert_uint_eq(fake->shutdowns, 3);
}

LOOP_TEST(test_run_stops_while_it_waits_for_headers_or_the_plan, 2)
{
    static const char *const states[] = {"inspecting", "planning"};
    AUTO(fake_cluster) *fake = fake_cluster_create(config, NULL, 0);
    fake_run_quiet();
    fake->plan_ns = 5 * FAKE_S;
    ck_assert(fake_cluster_until(fake, states[_i], 60 * FAKE_S));
    rf_run_interrupt(fake->run, 130);
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 130);
    ck_assert_uint_eq(fake->starts, 0);
}

TEST(test_run_gives_a_plan_up_that_takes_too_long)
{
    AUTO(fake_cluster) *fake = fake_cluster_create(config, NULL, 0);
    fake_run_quiet();
    fake->plan_ns = 3600 * FAKE_S;
    ck_assert(fake_cluster_run(fake, 660 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 2);
}
