/* The advice of `check`: a case for each rule of the table, where it holds and
 * where it does not. */
#include <string.h>

#include "common/mem.h"
#include "common/version.h"
#include "coordinator/advice/advice.h"
#include "tests/lib/configured.h"
#include "tests/lib/quotes.h"
#include "tests/unit/unit.h"

AUTO_STRUCT(rf_findings, rf_findings_free)

#define COLOCATED "{'name': 's', 'train': {'tp': 4}, 'infer': {'tp': 4}}"
#define LOADED(load)                                                           \
    "{'name': 's', 'train': {'tp': 4}, 'infer': {'tp': 4}, 'load': " load "}"

static bool says(const struct rf_findings *findings, enum rf_advice_level level,
                 const char *part)
{
    for (size_t i = 0; i < findings->n; i++) {
        if (findings->list[i].level == level &&
            strstr(findings->list[i].text, part) != NULL) {
            return true;
        }
    }
    return false;
}

static json_t *parse(const char *text)
{
    json_error_t why;
    json_t *object = json_loads(Q(text), 0, &why);
    ck_assert_msg(object != NULL, "%s: %s", text, why.text);
    return object;
}

/* What a node of our build says, but for `changes`. */
static struct rf_msg_hello hello(const char *changes)
{
    struct rf_msg_hello decoded;
    struct rf_err err = {.text = ""};
    json_auto_t *object =
        parse("{ 'protocol': [2, 2], 'node': 0, 'control': 'tcp', 'kernel': "
              "'Linux 6', 'cpu': 'x', 'congestion_control': 'cubic', 'cpus': "
              "2, 'memory_bytes': 1099511627776, 'memory_available_bytes': "
              "1099511627776, 'nics': [{'name': 'eth0', 'speed_mbit': 1000, "
              "'mtu': 1500, 'address': '10.0.0.1'}], 'methods': {'host': null, "
              "'disk': null}, 'gpus': [], 'folders': []}");
    json_auto_t *changed = parse(changes);
    json_object_set_new(object, "version", json_string(rf_version()));
    json_object_set_new(object, "build", json_string(rf_build()));
    json_object_update(object, changed);
    assert_ok(
        rf_schema_decode(&rf_msg_hello_schema, object, "HELLO", &decoded, &err),
        err);
    return decoded;
}

/* Two nodes, "a" and "b", a scenario of theirs, and what is found. */
struct advised {
    struct configured_pair pair;
    struct rf_msg_hello said[2];
    const struct rf_msg_hello *hellos[2];
    struct rf_findings findings;
};

/* `b` NULL: it has not joined. */
static struct advised advise(const char *scenario, const char *a, const char *b)
{
    struct advised advised = {.pair = configured_pair(scenario),
                              .said[0] = hello(a)};
    if (b != NULL) {
        advised.said[1] = hello(b);
    }
    return advised;
}

static const struct rf_msg_hello *const *hellos(struct advised *advised)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(advised->hellos); i++) {
        bool joined = advised->said[i].control != NULL;
        advised->hellos[i] = joined ? &advised->said[i] : NULL;
    }
    return advised->hellos;
}

static void advised_free(struct advised *advised)
{
    rf_findings_free(&advised->findings);
    for (size_t i = 0; i < RF_ARRAY_SIZE(advised->said); i++) {
        rf_schema_free(&rf_msg_hello_schema, &advised->said[i]);
    }
    configured_pair_free(&advised->pair);
}
AUTO_STRUCT(advised, advised_free)

/* --- Rules about a scenario ----------------------------------------------- */

static const struct {
    const char *scenario, *timeline;
    enum rf_advice_level level;
    const char *text;
    bool found;
} scenario_cases[] = {
    {"{'name': 's', 'train': {'tp': 4}, 'infer': {'tp': 2}}", "{}",
     RF_ADVICE_WARNING, "TP 4 is more than the 2 slots of a node", true},
    {"{'name': 's', 'train': {'tp': 2}, 'infer': {'tp': 4}}", "{}",
     RF_ADVICE_WARNING, "slots", false},
    {"{'name': 's', 'train': {'tp': 2, 'ep': 2, 'etp': 2}, 'infer': {'tp': 2}}",
     "{}", RF_ADVICE_INFO,
     "ETP 2 with EP 2 could be ETP 1 with EP 4 (4 experts", true},
    {"{'name': 's', 'train': {'tp': 2, 'ep': 2, 'etp': 1}, 'infer': {'tp': 2}}",
     "{}", RF_ADVICE_INFO, "ETP", false},
    {COLOCATED, "{'sequence_length': 16384}", RF_ADVICE_WARNING,
     "sequences of 16384 tokens without context parallelism", true},
    {COLOCATED, "{'sequence_length': 8191}", RF_ADVICE_WARNING, "sequences",
     false},
    {"{'name': 's', 'train': {'tp': 2, 'cp': 2}, 'infer': {'tp': 4}}",
     "{'sequence_length': 16384}", RF_ADVICE_WARNING, "sequences", false},
    {"{'name': 's', 'train': {'pp': 2}, 'infer': {'tp': 2}}",
     "{'global_batch': 4, 'micro_batch': 1}", RF_ADVICE_WARNING,
     "PP 2 is not below the 2 micro-batches", true},
    {"{'name': 's', 'train': {'pp': 2}, 'infer': {'tp': 2}}",
     "{'global_batch': 64, 'micro_batch': 1}", RF_ADVICE_WARNING,
     "micro-batches", false},
    {"{'name': 's', 'train': {'pp': 2}, 'infer': {'tp': 2}}",
     "{'global_batch': 4}", RF_ADVICE_WARNING, "micro-batches", false},
    {"{'name': 's', 'train': {'pp': 2}, 'infer': {'tp': 2}}",
     "{'global_batch': 8, 'micro_batch': 1}", RF_ADVICE_INFO,
     "PP 2 with 4 micro-batches in a step, few for a pipeline: TP", true},
    {"{'name': 's', 'train': {'pp': 2}, 'infer': {'tp': 2}}",
     "{'global_batch': 32, 'micro_batch': 1}", RF_ADVICE_INFO,
     "few for a pipeline", false},
    {"{'name': 's', 'train': {'pp': 2}, 'infer': {'tp': 2}}",
     "{'global_batch': 4, 'micro_batch': 1}", RF_ADVICE_INFO,
     "few for a pipeline", false},
    {COLOCATED, "{}", RF_ADVICE_INFO, "assumed: 80 GB a GPU", true},
    {COLOCATED, "{'sequence_length': 4096}", RF_ADVICE_INFO,
     "assumed: 80 GB a GPU (timeline.memory_gbytes); flash attention", true},
    {COLOCATED,
     "{'memory_gbytes': 40, 'sequence_length': 4096, 'attention': 'flash'}",
     RF_ADVICE_INFO, "assumed", false},
    {COLOCATED, "{'sequence_length': 400000000}", RF_ADVICE_WARNING,
     "full recompute; a GPU has 80 GB", true},
    {"{'name': 's', 'train': {'pp': 2}, 'infer': {'tp': 2}}", "{}",
     RF_ADVICE_INFO, "with PP 2, VPP 2 may shorten", true},
    {COLOCATED, "{}", RF_ADVICE_INFO, "VPP", false},
    {"{'name': 's', 'train': {'tp': 2, 'cp': 2}, 'infer': {'tp': 4}}",
     "{'sequence_length': 4096}", RF_ADVICE_INFO, "CP 2 is for sequences",
     true},
    {COLOCATED, "{'global_batch': 64, 'micro_batch': 4}", RF_ADVICE_INFO,
     "with 16 micro-batches in a step PP 2", true},
    {COLOCATED, "{'global_batch': 64, 'micro_batch': 5}", RF_ADVICE_INFO,
     "in a step PP 2", false},
    {COLOCATED, "{'micro_batch': 2}", RF_ADVICE_INFO, "micro-batches of 2",
     true},
    {"{'name': 's', 'train': {'tp': 2}, 'infer': {'tp': 2}}",
     "{'global_batch': 6, 'micro_batch': 2}", RF_ADVICE_WARNING,
     "batch of 6 is not a multiple of DP 2 times micro-batches of 2", true},
    {"{'name': 's', 'train': {'tp': 2}, 'infer': {'tp': 2}}",
     "{'global_batch': 8, 'micro_batch': 2}", RF_ADVICE_WARNING,
     "is not a multiple", false},
    {"{'name': 's', 'train': {'tp': 2}, 'infer': {'tp': 2}}",
     "{'global_batch': 6, 'micro_batch': 2, 'max_tokens_in_packing': 4096}",
     RF_ADVICE_WARNING, "is not a multiple", false},
    {"{'name': 's', 'train': {'tp': 2}, 'infer': {'tp': 2}}",
     "{'global_batch': 3}", RF_ADVICE_WARNING, "times micro-batches of 1",
     true},
    {"{'name': 's', 'train': {'cp': 2}, 'infer': {'tp': 4}}",
     "{'sequence_length': 8190}", RF_ADVICE_WARNING,
     "8190 tokens do not divide into 4 parts", true},
    {"{'name': 's', 'train': {'cp': 2}, 'infer': {'tp': 4}}",
     "{'sequence_length': 8190, 'max_tokens_in_packing': 9000}",
     RF_ADVICE_WARNING, "do not divide", false},
    {"{'name': 's', 'train': {'cp': 2}, 'infer': {'tp': 4}}",
     "{'sequence_length': 8192}", RF_ADVICE_WARNING, "do not divide", false},
    {COLOCATED, "{'micro_batch': 2, 'max_tokens_in_packing': 8192}",
     RF_ADVICE_INFO, "micro-batches of 2", false},
    {COLOCATED, "{'sequence_length': 8192, 'max_tokens_in_packing': 4096}",
     RF_ADVICE_WARNING, "of 4096 tokens cannot hold one of 8192", true},
    {COLOCATED, "{'sequence_length': 4096, 'max_tokens_in_packing': 4096}",
     RF_ADVICE_WARNING, "cannot hold", false},
    /* 400,000 tokens of 64 over TP 4, two layers: 435 MB kept, 243 computed
       again, and 51 of logits. */
    {COLOCATED, "{'memory_gbytes': 0.0001}", RF_ADVICE_WARNING,
     "full recompute; a GPU has 0.0001 GB", true},
    {COLOCATED, "{'memory_gbytes': 1}", RF_ADVICE_WARNING, "full recompute",
     false},
    {COLOCATED, "{'memory_gbytes': 0.3, 'sequence_length': 400000}",
     RF_ADVICE_INFO, "recompute \"full\" fits, \"selective\" saves", true},
    {COLOCATED,
     "{'memory_gbytes': 0.3, 'sequence_length': 400000, 'recompute': "
     "'selective'}",
     RF_ADVICE_INFO, "recompute \"full\" fits, \"selective\" saves", true},
    {COLOCATED,
     "{'memory_gbytes': 2, 'sequence_length': 400000, 'recompute': "
     "'selective'}",
     RF_ADVICE_INFO, "recompute \"selective\" costs time", true},
    /* 8 GB of scores a layer */
    {COLOCATED,
     "{'memory_gbytes': 10, 'sequence_length': 40000, 'attention': 'unfused'}",
     RF_ADVICE_INFO, "a GPU has 10 GB: recompute \"selective\" fits", true},
    {COLOCATED,
     "{'memory_gbytes': 10, 'sequence_length': 40000, 'attention': 'unfused', "
     "'recompute': 'selective'}",
     RF_ADVICE_INFO, "recompute \"", false},
    {COLOCATED,
     "{'memory_gbytes': 10, 'sequence_length': 40000, 'attention': 'unfused', "
     "'recompute': 'full'}",
     RF_ADVICE_INFO, "fit in 10 GB with recompute \"selective\"", true},
    {COLOCATED,
     "{'memory_gbytes': 0.3, 'sequence_length': 400000, 'recompute': 'full'}",
     RF_ADVICE_INFO, "recompute \"", false},
    {COLOCATED,
     "{'memory_gbytes': 2, 'sequence_length': 400000, 'recompute': 'full'}",
     RF_ADVICE_INFO, "recompute \"full\" costs time", true},
    {COLOCATED, "{'memory_gbytes': 0.00001}", RF_ADVICE_WARNING,
     "GB a GPU do not fit in 1e-05 GB", true},
    {"{'name': 's', 'train': {'tp': 2}, 'infer': {'pp': 2}}", "{}",
     RF_ADVICE_INFO, "PP 2 with TP 1 inside a node of 2", true},
    {"{'name': 's', 'train': {'tp': 2}, 'infer': {'tp': 2, 'pp': 2}}", "{}",
     RF_ADVICE_INFO, "inside a node of 2", false},
    {"{'name': 's', 'train': {'tp': 2}, 'infer': {'tp': 2, 'pp': 2}}",
     "{'memory_gbytes': 1}", RF_ADVICE_INFO, "inference: PP 2, but", true},
    {COLOCATED, "{}", RF_ADVICE_INFO, "inference: TP 4 is more than the 2",
     true},
};

static struct rf_timeline timeline_of(const char *text)
{
    struct rf_timeline timeline;
    struct rf_err err = {.text = ""};
    json_auto_t *document = json_pack("{s:o}", "timeline", parse(text));
    struct rf_jnode root = rf_jnode_root(document, "cluster.json");
    assert_ok(rf_timeline_read(&root, &timeline, &err), err);
    return timeline;
}

LOOP_TEST(test_advice_about_scenarios, RF_ARRAY_SIZE(scenario_cases))
{
    AUTO(rf_findings) findings = {0};
    AUTO(configured_pair) pair = configured_pair(scenario_cases[_i].scenario);
    const struct rf_timeline timeline =
        timeline_of(scenario_cases[_i].timeline);
    rf_advise_scenario(pair.scenario, &timeline, &findings);
    ck_assert_int_eq(
        says(&findings, scenario_cases[_i].level, scenario_cases[_i].text),
        scenario_cases[_i].found);
    for (size_t i = 0; i < findings.n; i++) {
        ck_assert_str_eq(findings.list[i].about, "s");
        ck_assert_ptr_null(strpbrk(findings.list[i].text, "{}"));
    }
}

/* What is said of the only scenario of a model on one node of four slots. */
static struct rf_findings advise_model(const char *model_text,
                                       const char *members)
{
    struct rf_findings findings = {0};
    AUTO(rf_config) *config;
    AUTO(rf_model) *model;
    struct rf_scenario *scenario = NULL;
    struct rf_err err = {.text = ""};
    const struct rf_timeline timeline =
        timeline_of("{'sequence_length': 16384}");
    char *text = rf_xasprintf("{'launch': {'method': 'local'}, 'nodes': "
                              "[{'host': 'a', 'slots': 4}], 'model': {%s}, "
                              "'scenarios': [{'name': 's', %s}]}",
                              model_text, members);
    configured(text, &config, &model);
    assert_ok(rf_scenario_build(config, model, 0, &scenario, &err), err);
    rf_advise_scenario(scenario, &timeline, &findings);
    rf_scenario_destroy(scenario);
    free(text);
    return findings;
}

/* Of a dense model; of host memory nothing is said. */
LOOP_TEST(test_advice_about_parameters_per_gpu, 2)
{
    static const char *const members[] = {
        "'method': 'nccl', 'train': {'tp': 2}, 'infer': {'tp': 2}",
        "'method': 'host', 'train': {'tp': 2}, 'infer': {'tp': 2}"};
    AUTO(rf_findings) findings =
        advise_model("'megatron': {'num_layers': 2, 'hidden_size': 64, "
                     "'num_attention_heads': 4, 'vocab_size': 128}",
                     members[_i]);
    ck_assert_int_eq(says(&findings, RF_ADVICE_INFO, "0.00 billion parameters"),
                     _i == 0);
}

/* Where the experts do not divide by all of ETP, they may by a part of it. */
TEST(test_advice_replaces_part_of_expert_tensor_parallelism)
{
    AUTO(rf_findings) findings = advise_model(
        "'megatron': {'num_layers': 2, 'hidden_size': 64, "
        "'num_attention_heads': 4, 'vocab_size': 128, 'num_experts': 6, "
        "'moe_ffn_hidden_size': 32}",
        "'train': {'tp': 4, 'etp': 4}, 'infer': {'tp': 4}");
    ck_assert(says(&findings, RF_ADVICE_INFO,
                   "ETP 4 with EP 1 could be ETP 2 with EP 2 (6 experts"));
}

/* The guide speaks of Megatron's kinds of parallelism, which FSDP has not. */
TEST(test_no_advice_about_parallelism_that_fsdp_lacks)
{
    AUTO(rf_findings) findings =
        advise_model("'megatron': {'num_layers': 2, 'hidden_size': 64, "
                     "'num_attention_heads': 4, 'vocab_size': 128}",
                     "'method': 'nccl', 'train': {'layout': 'fsdp'}, 'infer': "
                     "{'tp': 4, 'layout': 'vllm'}");
    ck_assert(!says(&findings, RF_ADVICE_INFO, "parameters per GPU"));
    ck_assert(!says(&findings, RF_ADVICE_WARNING, "context parallelism"));
}

/* They have no sizes of parallelism to judge. */
TEST(test_no_advice_about_explicit_meshes)
{
    struct rf_findings findings = advise_model(
        "'tensor': {'shape': [8, 8]}",
        "'train': {'layout': 'spec', 'mesh': [1, 4], 'spec': 'S1R'}, "
        "'infer': {'layout': 'spec', 'mesh': [4, 1], 'spec': 'S0R'}");
    ck_assert_uint_eq(findings.n, 0);
}

/* --- Rules about nodes ---------------------------------------------------- */

#define NIC(address, mtu)                                                      \
    "{'address': '" address "', 'nics': [{'name': 'eth0', 'speed_mbit': "      \
    "1000, 'mtu': " mtu ", 'address': '" address "'}]}"

static const struct {
    const char *a, *b; /* what they change in HELLO */
    enum rf_advice_level level;
    const char *text;
    bool found;
} node_cases[] = {
    {"{}", "{}", RF_ADVICE_INFO,
     "Linux 6, x, 2 processors, 1.10 TB of 1.10 TB memory available", true},
    {"{'kernel': null, 'cpus': null, 'memory_bytes': null}", NULL,
     RF_ADVICE_INFO, "?, x, 0 processors, 1.10 TB of 0 B memory", true},
    {"{}", NULL, RF_ADVICE_INFO,
     "interface eth0 10.0.0.1, MTU 1500, 1000 Mbit/s", true},
    {"{'nics': [{'name': 'lo', 'speed_mbit': null, 'mtu': null, 'address': "
     "'127.0.0.1'}]}",
     NULL, RF_ADVICE_INFO, "interface lo 127.0.0.1, MTU 0, speed unknown",
     true},
    {"{}", "{}", RF_ADVICE_INFO, "cannot use", false},
    {"{'methods': {'nccl': 'no driver', 'host': null, 'shm': 'no space', "
     "'ipc': 'no driver'}}",
     NULL, RF_ADVICE_INFO, "cannot use nccl, ipc: no driver", true},
    {"{}", "{}", RF_ADVICE_WARNING, "", false},
    {"{'boot_id': 'x'}", "{'boot_id': 'x'}", RF_ADVICE_WARNING,
     "a, b are 2 nodes on one machine", true},
    {"{'boot_id': 'x'}", "{'boot_id': 'y'}", RF_ADVICE_WARNING, "one machine",
     false},
    {"{}", "{'build': 'other'}", RF_ADVICE_WARNING,
     "worker build \"other\" differs from", true},
    {"{'kernel': 'Linux 5'}", "{}", RF_ADVICE_WARNING,
     "kernel \"Linux 6\" differs from \"Linux 5\" on a", true},
    {"{}", "{'cpu': null}", RF_ADVICE_WARNING,
     "processor \"?\" differs from \"x\" on a", true},
    {"{}", "{'congestion_control': 'bbr'}", RF_ADVICE_WARNING,
     "TCP congestion control \"bbr\" differs from \"cubic\" on a", true},
    {"{}", "{'nics': []}", RF_ADVICE_WARNING,
     "its fastest interface runs at 0 Mbit/s, that of a at 1000", true},
    {NIC("10.0.0.1", "9000"), NIC("10.0.0.2", "1500"), RF_ADVICE_WARNING,
     "its data address has MTU 1500, that of a 9000", true},
    {NIC("10.0.0.1", "1500"), NIC("10.0.0.2", "1500"), RF_ADVICE_WARNING, "MTU",
     false},
    {NIC("10.0.0.1", "9000"), NIC("10.0.0.2", "null"), RF_ADVICE_WARNING, "MTU",
     false},
};

LOOP_TEST(test_advice_about_nodes, RF_ARRAY_SIZE(node_cases))
{
    AUTO(advised) advised =
        advise(COLOCATED, node_cases[_i].a, node_cases[_i].b);
    const struct rf_findings *findings = &advised.findings;
    rf_advise_nodes(advised.pair.config, hellos(&advised), &advised.findings);
    ck_assert_int_eq(says(findings, node_cases[_i].level, node_cases[_i].text),
                     node_cases[_i].found);
    ck_assert_uint_eq(rf_findings_count(findings, RF_ADVICE_ERROR), 0);
}

/* What is compared with the first node is about the other. */
TEST(test_advice_names_the_node_that_differs)
{
    AUTO(advised) advised =
        advise(COLOCATED, "{}", "{'cpu': 'y', 'methods': {}}");
    rf_advise_nodes(advised.pair.config, hellos(&advised), &advised.findings);
    for (size_t i = 0; i < advised.findings.n; i++) {
        const struct rf_finding *finding = &advised.findings.list[i];
        if (finding->level == RF_ADVICE_WARNING) {
            ck_assert_str_eq(finding->about, "b");
        }
    }
    ck_assert_uint_eq(rf_findings_count(&advised.findings, RF_ADVICE_WARNING),
                      1);
}

TEST(test_advice_has_one_line_for_methods_without_a_driver)
{
    AUTO(advised) advised =
        advise(COLOCATED,
               "{'methods': {'nccl': 'no driver', 'ipc': 'no driver'}}", NULL);
    rf_advise_nodes(advised.pair.config, hellos(&advised), &advised.findings);
    ck_assert_uint_eq(advised.findings.n, 3); /* node, interface, methods */
}

#define CROSSING                                                               \
    "{'name': 's', 'mode': 'disaggregated', 'train': {'tp': 2, 'nodes': "      \
    "['b']}, 'infer': {'tp': 2, 'nodes': ['a']}}"
#define STAYING                                                                \
    "{'name': 's', 'train': {'tp': 1, 'dp': 4}, 'infer': {'tp': 1, 'dp': 4}}"
#define INSIDE(method)                                                         \
    "{'name': 's', 'method': '" method "', 'train': {'tp': 2, 'nodes': "       \
    "['a']}, 'infer': {'tp': 1, 'dp': 2, 'nodes': ['a']}}"
#define LACKS "a does not have the address 10.0.0.2 ($.nodes[0].address)"

static const struct {
    const char *scenario;
    const char *first, *second; /* addresses in cluster.json */
    enum rf_advice_level level;
    const char *text; /* NULL: nothing to say */
} address_cases[] = {
    {CROSSING, "10.0.0.1", "10.9.9.9", RF_ADVICE_ERROR, NULL}, /* not joined */
    {CROSSING, "127.0.0.1", NULL, RF_ADVICE_ERROR, NULL},
    {CROSSING, "0.0.0.0", NULL, RF_ADVICE_ERROR, NULL},
    {CROSSING, "::1", NULL, RF_ADVICE_ERROR, NULL},
    {CROSSING, "a.example", NULL, RF_ADVICE_ERROR, NULL},
    {CROSSING, "10.0.0.2", NULL, RF_ADVICE_ERROR, LACKS " that its ranks"},
    {CROSSING, "fd00::1", NULL, RF_ADVICE_ERROR,
     "interfaces have 10.0.0.1: use one of these"},
    {STAYING, "10.0.0.2", NULL, RF_ADVICE_WARNING,
     LACKS "; no rank of this scenario listens"},
    {INSIDE("host"), "10.0.0.2", NULL, RF_ADVICE_WARNING, LACKS},
    {INSIDE("tcp"), "10.0.0.2", NULL, RF_ADVICE_ERROR, LACKS},
};

LOOP_TEST(test_advice_about_an_address_that_a_node_lacks,
          RF_ARRAY_SIZE(address_cases))
{
    AUTO(advised) advised =
        advise(address_cases[_i].scenario,
               "{'methods': {'host': null, 'tcp': null}}", NULL);
    struct rf_node_config *nodes = advised.pair.config->nodes;
    const char *text = address_cases[_i].text;
    const enum rf_advice_level level = address_cases[_i].level;
    nodes[0].address = address_cases[_i].first;
    nodes[1].address = address_cases[_i].second;
    rf_advise_fit(advised.pair.scenario, hellos(&advised), &advised.findings);
    ck_assert_uint_eq(rf_findings_count(&advised.findings, RF_ADVICE_ERROR),
                      text != NULL && level == RF_ADVICE_ERROR);
    ck_assert_uint_eq(rf_findings_count(&advised.findings, RF_ADVICE_WARNING),
                      text != NULL && level == RF_ADVICE_WARNING);
    ck_assert(text == NULL || says(&advised.findings, level, text));
}

/* Index: 0 ours, 1 another build, 2 another version, 3 and 4 not known. */
LOOP_TEST(test_advice_warns_of_a_worker_of_another_build, 5)
{
    static const char *const changes[] = {
        "{}", "{'build': 'other'}", "{'version': '0.0.7'}",
        "{'build': 'unknown'}", "{'build': null}"};
    struct rf_msg_hello node = hello(changes[_i]);
    AUTO(rf_findings) findings = {0};
    bool differs = (_i == 1 && strcmp(rf_build(), "unknown") != 0) || _i == 2;
    bool cannot_tell = _i >= 3 && strcmp(rf_build(), "unknown") != 0;
    rf_advise_build("a", &node, false, &findings);
    ck_assert_uint_eq(findings.n, differs);
    ck_assert_uint_eq(rf_findings_count(&findings, RF_ADVICE_WARNING), differs);
    if (differs) {
        ck_assert(says(&findings, RF_ADVICE_WARNING, rf_version()));
        ck_assert(says(&findings, RF_ADVICE_WARNING,
                       _i == 1 ? "(other)" : "0.0.7 ("));
        ck_assert(says(&findings, RF_ADVICE_WARNING, "launch.deploy"));
    }
    rf_advise_build("a", &node, true, &findings);
    ck_assert_uint_eq(rf_findings_count(&findings, RF_ADVICE_ERROR),
                      differs || cannot_tell);
    ck_assert(!cannot_tell || says(&findings, RF_ADVICE_ERROR, "cannot tell"));
    rf_schema_free(&rf_msg_hello_schema, &node);
}

/* --- Rules about a scenario on the nodes ---------------------------------- */

#define DISK                                                                   \
    "{'name': 's', 'method': 'disk', 'train': {'tp': 4}, 'infer': {'tp': 4}, " \
    "'disk': {'folder': '/x'}}"
#define FOLDER(error, sees)                                                    \
    "{'folders': [{'path': '/x', 'error': " error ", 'sees': " sees "}]}"

#define UCX                                                                    \
    "{'name': 's', 'method': 'ucx', 'train': {'tp': 4}, 'infer': {'tp': 4}}"
#define SHM(bytes) "{'shm_bytes': " bytes ", 'methods': {'ucx': null}}"

static const struct {
    const char *scenario, *a, *b;
    enum rf_advice_level level;
    const char *text;
    bool found;
} fit_cases[] = {
    {COLOCATED, "{}", "{}", RF_ADVICE_ERROR, "", false},
    {COLOCATED, "{}", "{}", RF_ADVICE_WARNING, "", false},
    {COLOCATED, "{'memory_available_bytes': 1000}", "{}", RF_ADVICE_ERROR,
     "of memory on a, which has 1.00 kB", true},
    {COLOCATED, "{}", "{'methods': {'host': 'no kernel support'}}",
     RF_ADVICE_ERROR, "method host cannot be used on b: no kernel support",
     true},
    {COLOCATED, "{}", "{'methods': {}}", RF_ADVICE_ERROR,
     "method host cannot be used on b: unknown to its worker", true},
    {"{'name': 's', 'train': {'tp': 2, 'dp': 1}, 'infer': {'tp': 2, 'dp': 1}}",
     "{}", "{'methods': {}, 'memory_available_bytes': 1}", RF_ADVICE_ERROR, "",
     false}, /* it has no ranks */
    {COLOCATED, "{'boot_id': 'x', 'cpus': 1}", "{'boot_id': 'x', 'cpus': 1}",
     RF_ADVICE_WARNING,
     "4 ranks share the 1 processor of a: times reflect scheduling more than "
     "data movement; use at most 2 ranks there",
     true},
    {COLOCATED, "{'boot_id': 'x', 'cpus': 1}", "{'boot_id': 'y', 'cpus': 1}",
     RF_ADVICE_WARNING, "share", false},
    {COLOCATED, "{'cpus': null}", "{}", RF_ADVICE_WARNING, "share", false},
    {LOADED("{'memory_gbytes_per_s': 1}"), "{}", "{}", RF_ADVICE_WARNING,
     "load", false},
    {LOADED("{'memory_gbytes_per_s': 1, 'cores': 2}"), "{}", "{}",
     RF_ADVICE_WARNING,
     "load: 2 ranks with 2 threads each share the 2 processors of a: it may be "
     "too slow even alone; lower \"cores\", or use fewer ranks there",
     true},
    {LOADED("{'network_gbytes_per_s': 1}"), "{'cpus': 4}", "{'cpus': 3}",
     RF_ADVICE_WARNING, "load: 2 ranks with 2 threads each share the 3", true},
    {LOADED("{'memory_gbytes_per_s': 1, 'cores': 3}"), "{}", "{}",
     RF_ADVICE_WARNING, "load", false}, /* refused */
    {"{'name': 's', 'train': {'tp': 4}, 'infer': {'tp': 2, 'dp': 1}, 'load': "
     "{'memory_gbytes_per_s': 1, 'cores': 3}}",
     "{'cpus': 6}", "{}", RF_ADVICE_ERROR, "load", false}, /* not b's */
    {UCX, SHM("1000"), SHM("1000000000"), RF_ADVICE_WARNING,
     "a has 1.00 kB of shared memory", true},
    {UCX, SHM("1000000000"), SHM("null"), RF_ADVICE_WARNING, "sharing", false},
    {UCX, "{'shm_bytes': 1, 'methods': {'ucx': null}, 'env': {'UCX_TLS': 'x'}}",
     SHM("null"), RF_ADVICE_WARNING, "sharing", false},
    {COLOCATED, SHM("1"), SHM("1"), RF_ADVICE_WARNING, "sharing", false},
    {DISK, FOLDER("'read-only'", "[]"), "{}", RF_ADVICE_ERROR,
     "method disk cannot use folder /x on a: read-only", true},
    {DISK, FOLDER("null", "[0]"), FOLDER("null", "[1]"), RF_ADVICE_ERROR,
     "folder /x is not shared by all nodes", true},
    {DISK, FOLDER("null", "[0]"), FOLDER("null", "[0, 1]"), RF_ADVICE_ERROR, "",
     false},
};

LOOP_TEST(test_advice_about_a_scenario_on_the_nodes, RF_ARRAY_SIZE(fit_cases))
{
    AUTO(advised) advised =
        advise(fit_cases[_i].scenario, fit_cases[_i].a, fit_cases[_i].b);
    rf_advise_fit(advised.pair.scenario, hellos(&advised), &advised.findings);
    ck_assert_int_eq(
        says(&advised.findings, fit_cases[_i].level, fit_cases[_i].text),
        fit_cases[_i].found);
    for (size_t i = 0; i < advised.findings.n; i++) {
        ck_assert_str_eq(advised.findings.list[i].about, "s");
    }
}

/* --- Rules about GPUs ----------------------------------------------------- */

#define NCCL                                                                   \
    "{'name': 's', 'method': 'nccl', 'train': {'tp': 4}, 'infer': {'tp': 4}}"
#define NCCL_ON_A                                                              \
    "{'name': 's', 'method': 'nccl', 'mode': 'colocated', 'train': {'tp': 2, " \
    "'dp': 1}, 'infer': {'tp': 2, 'dp': 1}}"
/* HELLO of a node with two devices, the first of which has `members`. */
#define GPU(index, members)                                                    \
    "{'index': " index ", 'uuid': 'u', 'pci_bus_id': 'p', 'memory_bytes': "    \
    "80, 'compute_capability': '9.0', 'multiprocessors': 1" members "}"
#define GPUS(members, others)                                                  \
    "{'methods': {'nccl': null}, 'gpus': [" GPU("0", members) ", " GPU(        \
        "1", others) "]}"
#define RDMA(adapters, verbs, peermem) RDMA_GPU(adapters, verbs, peermem, "")
#define RDMA_GPU(adapters, verbs, peermem, of_gpu)                             \
    "{'methods': {'nccl': null}, 'gpus': [" GPU(                               \
        "0", of_gpu) "], 'rdma': {'adapters': " adapters ", 'verbs': " verbs   \
                     ", 'peermem': " peermem "}}"
#define MEMLOCK(bytes, adapters)                                               \
    "{'methods': {'nccl': null}, 'memlock_bytes': " bytes                      \
    ", 'rdma': {'adapters': " adapters ", 'verbs': true, 'peermem': true}}"
#define NIC_AT(name, numa)                                                     \
    "{'name': '" name "', 'interfaces': [], 'pci': {'path': '" name            \
    "', 'numa_node': " numa "}}"
/* The GPUs of both slots on node 1, with NICs `a` and `b`. */
#define PLACED(near, a, b)                                                     \
    "{'methods': {'nccl': null}, 'rdma': {'adapters': 2, 'verbs': true, "      \
    "'peermem': true}, 'topology': {'nics': [" NIC_AT("a", a) ", " NIC_AT(     \
        "b", b) "], 'gpus': [{'index': 0, 'pci': {'path': 'p', 'numa_node': "  \
                "1}, 'nearest_nics': " near "}, {'index': 1, 'pci': {'path': " \
                "'q', 'numa_node': 1}, 'nearest_nics': ['a']}]}}"
#define FINE GPUS("", "")

static const struct {
    const char *scenario, *a;
    enum rf_advice_level level;
    const char *text;
    bool found;
} gpu_cases[] = {
    {NCCL, FINE, RF_ADVICE_WARNING, "", false},
    {NCCL, GPUS(", 'processes': 0, 'foreign_bytes': 0, 'ecc_errors': 0", ""),
     RF_ADVICE_WARNING, "", false},
    {NCCL, GPUS(", 'processes': 1, 'foreign_bytes': 1000", ""),
     RF_ADVICE_WARNING,
     "GPU 0 of a: used by other processes (1 process, 1.00 kB)", true},
    {NCCL, GPUS(", 'processes': 2", ", 'processes': 3"), RF_ADVICE_WARNING,
     "GPUs 0, 1 of a: used by other processes (5 processes, 0 B)", true},
    {COLOCATED, GPUS(", 'processes': 1", ""), RF_ADVICE_WARNING, "GPU", false},
    {NCCL, GPUS("", ", 'ecc_errors': 3"), RF_ADVICE_WARNING,
     "GPU 1 of a: 3 uncorrectable ECC errors", true},
    {COLOCATED, GPUS("", ", 'ecc_errors': 3"), RF_ADVICE_WARNING, "ECC", false},
    {NCCL, GPUS(", 'slowed': 'power brake'", ""), RF_ADVICE_WARNING,
     "GPU 0 of a: clocks are throttled (power brake)", true},
    {COLOCATED, GPUS(", 'slowed': 'power brake'", ""), RF_ADVICE_WARNING,
     "clocks", false},

    {NCCL, RDMA("0", "false", "false"), RF_ADVICE_WARNING, "", false},
    {NCCL, RDMA("0", "false", "false"), RF_ADVICE_INFO,
     "a has no RDMA adapter (/sys/class/infiniband): method nccl goes over TCP",
     true},
    {NCCL_ON_A, RDMA("0", "false", "false"), RF_ADVICE_INFO, "RDMA", false},
    {COLOCATED, RDMA("0", "false", "false"), RF_ADVICE_INFO, "RDMA", false},
    {NCCL, RDMA("2", "false", "false"), RF_ADVICE_WARNING,
     "a has 2 RDMA adapters, but no /dev/infiniband/uverbs* can be opened",
     true},
    {NCCL, RDMA("2", "false", "false"), RF_ADVICE_WARNING, "peermem", false},
    {NCCL_ON_A, RDMA("2", "false", "false"), RF_ADVICE_WARNING, "", false},
    {COLOCATED, RDMA("2", "false", "false"), RF_ADVICE_WARNING, "", false},
    {NCCL, RDMA("1", "true", "false"), RF_ADVICE_WARNING,
     "a has neither nvidia-peermem nor dma-buf support", true},
    {NCCL, RDMA("1", "true", "true"), RF_ADVICE_WARNING, "", false},
    {NCCL, RDMA_GPU("1", "true", "false", ", 'dmabuf': true"),
     RF_ADVICE_WARNING, "", false},
    {NCCL_ON_A, RDMA("1", "true", "false"), RF_ADVICE_WARNING, "", false},
    {NCCL, MEMLOCK("65536", "1"), RF_ADVICE_WARNING,
     "ranks on a may lock 65.54 kB of memory (RLIMIT_MEMLOCK)", true},
    {NCCL, MEMLOCK("null", "1"), RF_ADVICE_WARNING, "", false},
    {NCCL, MEMLOCK("17179869184", "1"), RF_ADVICE_WARNING, "", false},
    {NCCL, MEMLOCK("65536", "0"), RF_ADVICE_WARNING, "", false},
    {NCCL_ON_A, MEMLOCK("65536", "1"), RF_ADVICE_WARNING, "", false},
    {NCCL, PLACED("['a', 'b']", "0", "0"), RF_ADVICE_WARNING,
     "GPUs 0, 1 of a: the nearest NIC is on another NUMA node", true},
    {NCCL, PLACED("['a', 'b']", "0", "1"), RF_ADVICE_WARNING,
     "GPU 1 of a: the nearest NIC is on another NUMA node", true},
    {NCCL, PLACED("['a', 'b']", "1", "1"), RF_ADVICE_WARNING, "", false},
    {NCCL, PLACED("['b']", "null", "null"), RF_ADVICE_WARNING, "", false},
    {NCCL, PLACED("[]", "1", "0"), RF_ADVICE_WARNING, "", false},
    {NCCL_ON_A, PLACED("['a', 'b']", "0", "0"), RF_ADVICE_WARNING, "", false},
};

LOOP_TEST(test_advice_about_gpus_and_adapters, RF_ARRAY_SIZE(gpu_cases))
{
    AUTO(advised) advised =
        advise(gpu_cases[_i].scenario, gpu_cases[_i].a, FINE);
    rf_advise_fit(advised.pair.scenario, hellos(&advised), &advised.findings);
    ck_assert_int_eq(
        says(&advised.findings, gpu_cases[_i].level, gpu_cases[_i].text),
        gpu_cases[_i].found);
    for (size_t i = 0; i < advised.findings.n; i++) {
        ck_assert_ptr_null(strpbrk(advised.findings.list[i].text, "{}"));
    }
}

TEST(test_nodes_that_have_not_joined_get_no_advice)
{
    AUTO(advised) advised = advise(COLOCATED, "{}", NULL);
    advised.hellos[0] = advised.hellos[1] = NULL;
    rf_advise_nodes(advised.pair.config, advised.hellos, &advised.findings);
    rf_advise_fit(advised.pair.scenario, advised.hellos, &advised.findings);
    ck_assert_uint_eq(advised.findings.n, 0);
}
