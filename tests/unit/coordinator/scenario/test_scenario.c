/* Scenarios worked out before anything is launched: what cannot work is refused
 * there, with the place in the file and the reason. */
#include <stdio.h>
#include <string.h>

#include "coordinator/scenario/scenario.h"
#include "planner/families/model_read.h"
#include "tests/lib/configured.h"
#include "tests/unit/unit.h"

/* Three nodes of two slots each. */
#define CLUSTER                                                                \
    "{'nodes': [{'host': 'a', 'slots': 2}, {'host': 'b', 'slots': 2}, "        \
    "{'host': 'c', 'slots': 2}], 'launch': {'method': 'local'}, 'model': "     \
    "{'megatron': {'num_layers': 2, 'hidden_size': 48, "                       \
    "'num_attention_heads': 12, 'vocab_size': 700}}, 'scenarios': [{'name': "  \
    "'it', %s}], 'links': {%s}}"

struct lab {
    struct rf_config *config;
    struct rf_model *model;
    struct rf_scenario *scenario;
    struct rf_err err;
};

static enum rf_status work_out_with(struct lab *lab, const char *members,
                                    const char *links)
{
    char text[2048];
    struct rf_jnode node;
    enum rf_status status;
    memset(lab, 0, sizeof(*lab));
    snprintf(text, sizeof(text), CLUSTER, members, links);
    status = configured_read(text, "c.json", true, &lab->config, &lab->err);
    if (status != RF_OK) {
        return status;
    }
    node = rf_jnode_root(lab->config->model, "c.json");
    assert_ok(rf_model_from_json(&node, &lab->model, &lab->err), lab->err);
    return rf_scenario_build(lab->config, lab->model, 0, &lab->scenario,
                             &lab->err);
}

static enum rf_status work_out(struct lab *lab, const char *members)
{
    return work_out_with(lab, members, "");
}

static void done(struct lab *lab)
{
    rf_scenario_destroy(lab->scenario);
    rf_model_destroy(lab->model);
    rf_config_destroy(lab->config);
}

#define SIDES "'train': {'tp': 6}, 'infer': {'tp': 3}, "
#define APART "'mode': 'disaggregated', 'train': {'tp': 2, 'nodes': ['a']}, "
#define FAN_OUT APART "'infer': {'tp': 1, 'dp': 4, 'nodes': ['b', 'c']}"
#define CASTS(from, to)                                                        \
    "'train': {'tp': 6, 'dtype': '" from                                       \
    "'}, 'infer': {'tp': 3, 'dtype': '" to "'}, "

static const struct {
    const char *members, *says[3];
} refusals[] = {
    {SIDES "'method': 'shm'",
     {"$.scenarios[0]", "shm works inside a node only", "rank"}},
    {SIDES "'method': 'ipc'", {"ipc works inside a node only", "on b"}},
    {APART "'infer': {'tp': 1, 'nodes': ['b']}, 'method': 'shm'",
     {"a node only", "rank 0 on a", "to rank 2 on b"}},
    {SIDES "'strategy': 'gather_broadcast', 'method': 'shm'",
     {"shm works inside a node only"}},
    {SIDES "'method': 'disk'", {"$.scenarios[0]", "needs", "folder"}},
    {SIDES "'method': 'tcp', 'memory': 'cuda'",
     {"$.scenarios[0].memory (it): method tcp keeps weights in host memory",
      "a method for GPU memory: nccl, "}},
    {SIDES "'memory': 'cuda'", {"method host keeps weights in host memory"}},
    {SIDES "'method': 'nccl', 'memory': 'host'",
     {"method nccl keeps weights in GPU memory",
      "a method for host memory: host, tcp, "}},
    {SIDES "'method': 'ucx-cuda', 'memory': 'host'",
     {"method ucx-cuda keeps weights in GPU memory"}},
    {CASTS("float32", "float16") "'method': 'ucx', 'memory': 'cuda'",
     {"ucx-cuda", "float16", "device kernels"}},
    {SIDES "'method': 'carrier_pigeon'", {"carrier_pigeon", "nvshmem"}},
    {SIDES "'method': 'UCX'",
     {"unknown method \"UCX\" (did you mean \"ucx\"?)"}},
    {SIDES "'method': 'Host', 'strategy': 'Broadcast'",
     {"$.scenarios[0].strategy", "(did you mean \"broadcast\"?)"}},
    {SIDES "'strategy': 'scatter'", {"$.scenarios[0].strategy", "send_recv"}},
    {SIDES "'strategy': 'gather_broadcast', 'bucket_bytes': 32",
     {"$.scenarios[0].bucket_bytes", "4096"}},
    {CASTS("bfloat16", "float16") "'method': 'host'",
     {"infer", "from bfloat16 to float16"}},
    {CASTS("bfloat16", "float8_e4m3fn") "'method': 'host'",
     {"infer", "to float8_e4m3fn", "infer.quantize"}},
    {CASTS("bfloat16", "float8_e4m3fn") "'method': 'nccl'",
     {"infer", "to float8_e4m3fn", "infer.quantize"}},
    {CASTS("float32", "float16") "'method': 'nccl'",
     {"nccl", "float16", "device kernels"}},
    /* meshes */
    {"'train': {'tp': 4}, 'infer': {'tp': 2}", {"6", "4"}},
    {APART "'infer': {'tp': 6, 'nodes': ['b', 'c']}", {"6", "4"}},
};

LOOP_TEST(test_case_that_cannot_work_is_refused_with_the_reason,
          RF_ARRAY_SIZE(refusals))
{
    struct lab lab;
    ck_assert_int_eq(work_out(&lab, refusals[_i].members), RF_ERR_CONFIG);
    for (int i = 0; i < 3 && refusals[_i].says[i] != NULL; i++) {
        assert_says(lab.err.text, refusals[_i].says[i]);
    }
    done(&lab);
}

static const char *const legal[] = {
    /* no receiver in the trainers' node, one in b, two in c */
    APART
    "'infer': {'tp': 1, 'dp': 3, 'nodes': ['b', 'c']}, 'strategy': 'allgather'",
    APART "'infer': {'tp': 1, 'dp': 3, 'nodes': ['b', 'c']}, 'strategy': "
          "'hierarchical'",
    /* no op leaves its node */
    "'mode': 'disaggregated', 'train': {'tp': 1}, 'infer': {'tp': 1}, "
    "'method': 'shm'",
    SIDES "'method': 'disk', 'disk': {'folder': '/tmp'}",
    SIDES "'method': 'nvshmem'",
    SIDES "'method': 'nvshmem', 'memory': 'cuda'",
    SIDES "'method': 'ucx', 'memory': 'cuda'",
    SIDES "'method': 'host', 'memory': 'host'",
    CASTS("float32", "bfloat16") "'method': 'nccl'",
};

LOOP_TEST(test_case_that_can_work_is_worked_out, RF_ARRAY_SIZE(legal))
{
    struct lab lab;
    assert_ok(work_out(&lab, legal[_i]), lab.err);
    ck_assert_uint_gt(lab.scenario->schedule->n_world_ops, 0);
    done(&lab);
}

static json_t *choice_of(const struct lab *lab)
{
    json_t *choice = rf_scenario_choice_json(lab->scenario);
    ck_assert_ptr_nonnull(choice);
    ck_assert_str_eq(json_text_at(choice, "asked"), "auto");
    ck_assert_uint_eq(json_array_size(json_object_get(choice, "candidates")),
                      RF_STRATEGIES);
    return choice;
}

/* What is sent to the ranks, digested and stored names a strategy: the same as
 * if the file had. */
TEST(test_case_strategy_auto_is_resolved_before_anything_is_sent)
{
    const char *strategy;
    char members[256];
    struct lab lab, given;
    json_auto_t *choice;
    assert_ok(work_out_with(&lab, FAN_OUT ", 'strategy': 'auto'",
                            "'link_gbytes_per_s': 0.01"),
              lab.err);
    choice = choice_of(&lab);
    ck_assert(json_is_true(json_object_get(choice, "links_assumed")));
    strategy = json_text_at(lab.scenario->document, "strategy");
    ck_assert_str_eq(strategy, json_text_at(choice, "taken"));
    ck_assert_str_ne(strategy, "send_recv");
    ck_assert_int_eq(lab.scenario->spec->strategy, lab.scenario->choice->taken);
    snprintf(members, sizeof(members), FAN_OUT ", 'strategy': '%s'", strategy);
    ck_assert_int_eq(work_out(&given, members), RF_OK);
    ck_assert_ptr_null(rf_scenario_choice_json(given.scenario));
    ck_assert(json_equal(given.scenario->document, lab.scenario->document));
    ck_assert_uint_eq(given.scenario->schedule->digest.a,
                      lab.scenario->schedule->digest.a);
    done(&given);
    done(&lab);
}

/* The figures of its method decide: where memory is slower than the link,
 * passing on inside a node costs more than it saves. */
TEST(test_case_strategy_auto_takes_figures_of_the_method)
{
    static const char *const links[] = {
        "'link_gbytes_per_s': 0.01, 'copy_gbytes_per_s': 1",
        "'link_gbytes_per_s': 0.01, 'copy_gbytes_per_s': 1, 'methods': "
        "{'host': "
        "{'link_gbytes_per_s': 1, 'copy_gbytes_per_s': 0.01}}"};
    for (unsigned i = 0; i < 2; i++) {
        struct lab lab;
        json_auto_t *choice;
        assert_ok(work_out_with(&lab, FAN_OUT ", 'strategy': 'auto'", links[i]),
                  lab.err);
        choice = choice_of(&lab);
        ck_assert(json_is_false(json_object_get(choice, "links_assumed")));
        ck_assert_int_eq(lab.scenario->spec->strategy == RF_SEND_RECV, i == 1);
        done(&lab);
    }
}

TEST(test_case_memory_is_arenas_staging_and_process)
{
    AUTO(configured_pair) pair = configured_pair(
        "{'name': 's', 'train': {'tp': 2}, 'infer': {'tp': 4}}");
    uint64_t sum = 0;
    for (uint32_t r = 0; r < 4; r++) {
        uint64_t arenas =
            rf_plan_layout(pair.scenario->plan, RF_TRAIN, r)->arena_bytes +
            rf_plan_layout(pair.scenario->plan, RF_INFER, r)->arena_bytes;
        ck_assert_uint_ge(rf_scenario_rank_bytes(pair.scenario, r),
                          arenas + RF_PLAN_PROCESS_BYTES);
        sum += rf_scenario_rank_bytes(pair.scenario, r);
    }
    ck_assert_uint_eq(rf_scenario_node_bytes(pair.scenario, 0) +
                          rf_scenario_node_bytes(pair.scenario, 1),
                      sum);
    ck_assert_uint_eq(rf_scenario_node_ranks(pair.scenario, 0), 2);
    for (uint32_t n = 0; n < 2; n++) {
        const uint32_t *ranks = rf_scenario_ranks_of(pair.scenario, n);
        ck_assert_uint_lt(ranks[0], ranks[1]);
        ck_assert(rf_scenario_rank_on(pair.scenario, ranks[0], n));
        ck_assert(rf_scenario_rank_on(pair.scenario, ranks[1], n));
    }
}
