/*
 * The conformance suite: every method of host memory on a set of mesh pairs in
 * one-node and three-node worlds, with every strategy on two of them and with
 * one on each of the others; and what is refused before anything is launched.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "planner/strategy/schedule_build.h"
#include "tests/lib/planned_case.h"
#include "tests/lib/xor_codec.h"
#include "tests/unit/unit.h"
#include "transport/method/method.h"

static const char dense[] =
    "{'megatron': {'num_layers': 4, 'hidden_size': 64, 'num_attention_heads': "
    "8, 'num_query_groups': 4, 'ffn_hidden_size': 96, 'vocab_size': 500, "
    "'swiglu': true, 'untie_embeddings_and_output_weights': true}}";
static const char experts[] =
    "{'megatron': {'num_layers': 2, 'hidden_size': 64, 'num_attention_heads': "
    "8, 'num_query_groups': 4, 'ffn_hidden_size': 96, 'vocab_size': 256, "
    "'swiglu': true, 'num_experts': 8, 'moe_ffn_hidden_size': 32}}";

struct mesh {
    const char *name, *model, *sides;
    uint32_t slots[3], n_nodes;
};

static const struct mesh meshes[] = {
    {"colocated",
     dense,
     "'train': {'tp': 2, 'pp': 2}, 'infer': {'tp': 4}",
     {4},
     1},
    {"replicas",
     dense,
     "'train': {'tp': 4}, 'infer': {'tp': 2, 'layout': 'vllm'}",
     {4},
     1},
    {"apart",
     dense,
     "'mode': 'disaggregated', 'train': {'tp': 2, 'pp': 2}, 'infer': {'tp': 1, "
     "'layout': 'hf'}",
     {5},
     1},
    {"experts",
     experts,
     "'train': {'tp': 2, 'ep': 2, 'etp': 1}, 'infer': {'tp': 4, 'ep': 4, "
     "'etp': 1}",
     {4},
     1},
    {"casts",
     dense,
     "'train': {'tp': 2, 'dtype': 'float32'}, 'infer': {'tp': 4, 'dtype': "
     "'bfloat16'}, 'cast': 'source'",
     {4},
     1},
    {"colocated-3",
     dense,
     "'train': {'tp': 2, 'pp': 2}, 'infer': {'tp': 4}",
     {1, 2, 1},
     3},
    {"apart-3",
     dense,
     "'mode': 'disaggregated', 'train': {'tp': 2, 'nodes': ['n0']}, 'infer': "
     "{'tp': 2, 'nodes': ['n1', 'n2'], 'layout': 'vllm'}",
     {2, 2, 2},
     3},
    {"casts-3",
     dense,
     "'mode': 'disaggregated', 'train': {'tp': 2, 'nodes': ['n0'], 'dtype': "
     "'bfloat16'}, 'infer': {'tp': 1, 'nodes': ['n1', 'n2'], 'dtype': "
     "'float32'}",
     {2, 1, 1},
     3},
};

static void make(struct planned *planned, const struct mesh *mesh,
                 const char *method, const char *strategy, const char *more)
{
    char scenario[768];
    snprintf(scenario, sizeof(scenario),
             "{'name': '%s', %s, 'method': '%s', 'strategy': '%s', "
             "'bucket_bytes': 65536, 'chunk_bytes': 16384%s}",
             mesh->name, mesh->sides, method, strategy, more);
    assert_ok(planned_make(planned, mesh->model, scenario, mesh->slots,
                           mesh->n_nodes),
              planned->err);
}

/* What crossed nodes, other than in files, is what the schedule says. */
static void expect_on_links(const struct planned_case *what,
                            struct planned *planned)
{
    assert_ok(
        rf_schedule_build(planned->plan, 0, &planned->schedule, &planned->err),
        planned->err);
    ck_assert_uint_eq(what->link_sent,
                      what->method->info->needs_folder
                          ? 0
                          : planned->schedule->inter_node_bytes);
}

/* One mesh with one method and some strategies, each mesh and each method from
 * another on, so that each mesh is tried with most of them. */
static void run_some(const char *method, const struct mesh *mesh, size_t n,
                     const char *more, const struct rf_codec *codec)
{
    const size_t first =
        (size_t)(mesh - meshes) +
        (size_t)(rf_method_info_find(method) - rf_method_infos);
    for (size_t i = 0; i < n; i++) {
        const size_t strategy = (first + i) % RF_STRATEGIES;
        const char *name = rf_strategy_name((enum rf_strategy)strategy);
        AUTO(planned) planned;
        struct planned_case what = {
            .planned = &planned, .codec = codec, .rounds = 2};
        make(&planned, mesh, method, name, more);
        what.method = rf_method_find(method, &planned.err);
        ck_assert_ptr_nonnull(what.method);
        if (rf_method_check(what.method->info, planned.plan, planned_nodes,
                            &planned.err) == RF_OK) {
            ck_assert_msg(planned_case_run(&what) == 0, "%s %s %s", method,
                          mesh->name, name);
            ck_assert_uint_eq(what.sent, what.received);
            ck_assert_uint_eq(what.link_sent, what.link_received);
            if (codec == NULL) {
                expect_on_links(&what, &planned);
            }
        } else {
            ck_assert_uint_gt(mesh->n_nodes, 1);
            ck_assert(!what.method->info->crosses_nodes);
        }
    }
}

/* Every strategy within a node, "apart", and between nodes, "colocated-3". */
static void run_all(const char *method, const struct mesh *mesh,
                    const char *more, const struct rf_codec *codec)
{
    const bool whole = mesh == &meshes[2] || mesh == &meshes[5];
    run_some(method, mesh, whole ? RF_STRATEGIES : 1, more, codec);
}

/* A folder of its own that must be empty again in the end. */
static void run_on_disk(const struct mesh *mesh, const char *options,
                        const struct rf_codec *codec)
{
    char folder[] = "/tmp/refit-test-XXXXXX", more[128];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(more, sizeof(more), ", 'disk': {'folder': '%s'%s}", folder,
             options);
    run_all("disk", mesh, more, codec);
    ck_assert_msg(rmdir(folder) == 0, "files left behind in %s", folder);
}

/* Whether `info` keeps weights in host memory and is part of this build. */
static bool can_run(const struct rf_method_info *info)
{
    struct rf_err err;
    if (info->memory != RF_HOST_MEMORY || !info->moves_bytes) {
        return false;
    }
    if (rf_method_find(info->name, &err) == NULL) {
        fprintf(stderr, "not tested: %s\n", err.text);
        return false;
    }
    ck_assert_int_eq(setenv("UCX_NET_DEVICES", "lo", 1), 0);
    return true;
}

LIMIT(120)

/* Number `n` of all methods on all meshes. */
static void run_number(int n, const struct rf_codec *codec)
{
    const struct rf_method_info *info = &rf_method_infos[n % RF_METHOD_COUNT];
    const struct mesh *mesh = &meshes[n / RF_METHOD_COUNT];
    if (!can_run(info)) {
        return;
    }
    if (info->needs_folder) {
        run_on_disk(mesh, "", codec);
    } else {
        run_all(info->name, mesh, "", codec);
    }
}

LOOP_TEST(test_methods_conform, RF_ARRAY_SIZE(meshes) * RF_METHOD_COUNT)
{
    run_number(_i, NULL);
}

/* A codec that no carrier knows, with chunks of any size. */
LOOP_TEST(test_methods_carry_any_codec, RF_ARRAY_SIZE(meshes) * RF_METHOD_COUNT)
{
    run_number(_i, &xor_codec);
}

static void copy_nothing(const struct rf_coder *coder, uint64_t first,
                         uint64_t n, void *dst, const void *src, bool streaming)
{
    (void)coder;
    (void)first;
    (void)n;
    (void)dst;
    (void)src;
    (void)streaming;
}

/* Neither portions nor a rank's own copies use it. */
LOOP_TEST(test_copies_do_without_a_codec_for_links, 2)
{
    static const char *const methods[] = {"shm", "host"};
    struct rf_codec for_links = xor_codec;
    for_links.copy = copy_nothing;
    for_links.for_links = true;
    run_all(methods[_i], &meshes[2], "", &for_links);
}

static const char *refuse_chunk(const struct rf_coder *coder,
                                const struct rf_chunk *chunk, const void *in,
                                void *dst)
{
    (void)coder;
    (void)chunk;
    (void)in;
    (void)dst;
    return RF_CHUNK_MALFORMED;
}

/* No rank waits for ever for one that refuses a chunk and says why. */
static void refused(const char *method, const char *more,
                    struct planned_case *what, const char *why)
{
    char folder[] = "/tmp/refit-test-XXXXXX", all[160];
    AUTO(planned) planned;
    if (!can_run(rf_method_info_find(method))) {
        return;
    }
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(all, sizeof(all), "%s, 'disk': {'folder': '%s'}", more, folder);
    make(&planned, &meshes[6], method, "send_recv", all);
    what->planned = &planned;
    what->method = rf_method_find(method, &planned.err);
    ck_assert_uint_gt(planned_case_run(what), 0);
    assert_says(what->why, " a chunk of op ");
    assert_says(what->why, why);
    ck_assert_int_eq(rmdir(folder), 0);
}

static const char *const carriers[] = {"tcp", "disk", "ucx"};

LOOP_TEST(test_a_malformed_chunk_ends_the_refit, 3)
{
    struct rf_codec malformed = xor_codec;
    malformed.decode = refuse_chunk;
    refused(carriers[_i], "",
            &(struct planned_case){.codec = &malformed, .rounds = 1},
            "that is malformed");
}

/* As would be one that has missed an iteration. */
LOOP_TEST(test_a_rank_with_other_weights_ends_the_refit, 3)
{
    refused(carriers[_i],
            ", 'update': {'density': 0.1}, 'encoding': 'auto+diff'",
            &(struct planned_case){.stale = true, .rounds = 1},
            "which this rank does not hold");
}

/* In the second of three rounds, the last rank has restarted: it gets whole
 * weights, from whoever sends to it, and changes again in the third. */
LOOP_TEST(test_a_rank_that_restarted_gets_whole_weights, 3 * (int)RF_STRATEGIES)
{
    static const char changes[] =
        ", 'update': {'density': 0.1}, 'encoding': 'auto+diff', 'disk': "
        "{'folder': '%s'}";
    const char *method = carriers[_i % 3];
    char folder[] = "/tmp/refit-test-XXXXXX", more[160];
    AUTO(planned) planned;
    struct planned_case what = {
        .planned = &planned, .restarts = true, .rounds = 2};
    uint64_t sent;
    if (!can_run(rf_method_info_find(method))) {
        return;
    }
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(more, sizeof(more), changes, folder);
    make(&planned, &meshes[6], method,
         rf_strategy_name((enum rf_strategy)(_i / 3)), more);
    what.method = rf_method_find(method, &planned.err);
    ck_assert_uint_eq(planned_case_run(&what), 0);
    ck_assert_uint_eq(what.sent, what.received);
    sent = what.sent;
    what.rounds = 3;
    ck_assert_uint_eq(planned_case_run(&what), 0);
    if (planned.plan->spec->strategy != RF_GATHER_BROADCAST) { /* dense */
        ck_assert_uint_lt(2 * what.sent, sent);
    }
    ck_assert_int_eq(rmdir(folder), 0);
}

LOOP_TEST(test_host_conforms_taking_turns, RF_ARRAY_SIZE(meshes))
{
    run_all("host", &meshes[_i], ", 'balance': 'order', 'serialize': true",
            NULL);
}

/* With puts and gets also where UCX emulates them. */
LOOP_TEST(test_ucx_conforms_with_puts_and_gets, RF_ARRAY_SIZE(meshes))
{
    if (!can_run(&rf_method_infos[RF_METHOD_UCX])) {
        return;
    }
    run_some("ucx", &meshes[_i], 1, ", 'balance': 'order', 'serialize': true",
             NULL);
    ck_assert_int_eq(setenv("REFIT_UCX_RMA", "always", 1), 0);
    run_all("ucx", &meshes[_i], "", NULL);
    run_some("ucx", &meshes[_i], 1, ", 'ucx': {'direction': 'get'}", NULL);
    run_some("ucx", &meshes[_i], 1, ", 'balance': 'order', 'serialize': true",
             NULL);
}

LOOP_TEST(test_disk_conforms_with_fsync_and_without_cache,
          RF_ARRAY_SIZE(meshes))
{
    run_on_disk(&meshes[_i], ", 'fsync': true, 'drop_cache': true", NULL);
}

TEST(test_disk_without_a_folder_is_refused)
{
    AUTO(planned) planned;
    struct rf_err err;
    make(&planned, &meshes[0], "host", "send_recv", "");
    assert_fails(rf_method_check(&rf_method_infos[RF_METHOD_DISK], planned.plan,
                                 planned_nodes, &err),
                 RF_ERR_CONFIG, err, "folder");
}

TEST(test_shm_moves_only_handles_where_layouts_agree)
{
    static const struct mesh same = {
        "same",
        dense,
        "'mode': 'disaggregated', 'train': {'tp': 2}, 'infer': {'tp': 2}",
        {4},
        1};
    AUTO(planned) planned;
    struct planned_case what = {
        .planned = &planned, .method = &rf_method_shm, .rounds = 2};
    make(&planned, &same, "shm", "send_recv", "");
    ck_assert_uint_eq(planned_case_run(&what), 0);
    ck_assert_uint_gt(what.received, 0);
    ck_assert_uint_le(what.received, 4 * 24);
}

TEST(test_shm_across_nodes_is_refused_with_the_ranks)
{
    AUTO(planned) planned;
    struct rf_err err;
    make(&planned, &meshes[5], "shm", "send_recv", "");
    assert_fails(rf_method_check(rf_method_info_find("shm"), planned.plan,
                                 planned_nodes, &err),
                 RF_ERR_CONFIG, err, "rank");
    assert_says(err.text, " on n2");
}

TEST(test_checkpoints_may_go_to_devices)
{
    AUTO(planned) planned;
    struct rf_err err;
    make(&planned, &meshes[0], "nccl", "send_recv", "");
    planned.model->files = json_object();
    assert_ok(rf_method_check(&rf_method_infos[RF_METHOD_NCCL], planned.plan,
                              planned_nodes, &err),
              err);
}

TEST(test_unknown_methods_list_the_known)
{
    AUTO(planned) planned;
    struct rf_err err;
    make(&planned, &meshes[0], "host", "send_recv", "");
    assert_fails(rf_method_check(NULL, planned.plan, planned_nodes, &err),
                 RF_ERR_CONFIG, err, "nvshmem");
    ck_assert_ptr_null(rf_method_find("carrier-pigeon", &err));
    assert_says(err.text, "carrier-pigeon");
    assert_says(err.text, "disk");
}

TEST(test_names_find_methods)
{
    ck_assert_ptr_eq(rf_method_find("host", NULL), &rf_method_host);
    ck_assert_ptr_null(rf_method_info_find(""));
    for (int i = 0; i < RF_METHOD_COUNT; i++) {
        ck_assert_ptr_eq(rf_method_info_find(rf_method_infos[i].name),
                         &rf_method_infos[i]);
    }
}

TEST(test_null_moves_nothing)
{
    AUTO(planned) planned;
    struct rf_method_env env = {0};
    atomic_bool abort = false;
    struct rf_phase_times times;
    void *state;
    bool done = false;
    make(&planned, &meshes[0], "null", "send_recv", "");
    env.plan = planned.plan;
    env.abort = &abort;
    ck_assert_int_eq(rf_method_null.open(&env, &state, NULL), RF_OK);
    ck_assert_int_eq(rf_method_null.start(state, 0, NULL), RF_OK);
    ck_assert_int_eq(rf_method_null.progress(state, &done, NULL), RF_OK);
    ck_assert(done);
    rf_method_null.timing(state, &times);
    ck_assert_uint_eq(times.sent_bytes + times.received_bytes, 0);
    atomic_store(&abort, true);
    ck_assert_int_eq(rf_method_null.progress(state, &done, NULL),
                     RF_ERR_ABORTED);
    rf_method_null.close(state);
}
