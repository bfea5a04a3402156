/* Scenarios: defaults, every key, round trip, bad input. */
#include <string.h>

#include "planner/scenario/spec.h"
#include "planner/scenario/spec_fields.h"
#include "tests/lib/quoted.h"
#include "tests/unit/unit.h"

TEST(test_spec_defaults)
{
    AUTO(rf_spec) *spec = quoted_spec("'train': {}, 'infer': {}");
    ck_assert_str_eq(spec->name, "scenario");
    ck_assert_int_eq(spec->mode, RF_COLOCATED);
    ck_assert_str_eq(spec->method, "host");
    ck_assert_int_eq(spec->strategy, RF_SEND_RECV);
    ck_assert_int_eq(spec->balance, RF_BALANCE_SIZE);
    ck_assert_uint_eq(spec->warmup, 1);
    ck_assert_uint_eq(spec->iterations, 5);
    ck_assert_uint_eq(spec->bucket_bytes, 64 << 20);
    ck_assert_uint_eq(spec->chunk_bytes, 0);
    ck_assert_uint_eq(spec->timeout_s, 0);
    ck_assert(!spec->serialize && !spec->separate_processes);
    ck_assert(!spec->cast_at_source);
    ck_assert_ptr_null(spec->disk_folder);
    ck_assert_int_eq(spec->infer.layout, RF_LAYOUT_MEGATRON);
    ck_assert_uint_eq(spec->infer.tp, 1);
    ck_assert_uint_eq(spec->infer.cp, 1);
    ck_assert_uint_eq(spec->infer.ep, 1);
    ck_assert_uint_eq(spec->infer.etp, 1);
    ck_assert_uint_eq(spec->infer.pp, 1);
    ck_assert_uint_eq(spec->infer.vpp, 1);
    ck_assert(!spec->infer.dp_given && !spec->infer.dtype_given);
}

/* Of all ways to write them, the scenario's object is the canonical one. */
LOOP_TEST(test_spec_has_a_format_of_inference, 5)
{
    static const struct {
        const char *text;
        int format; /* -1: none */
    } ways[] = {
        {"'infer': {}", -1},
        {"'infer': {'quantize': false}", -1},
        {"'infer': {'quantize': true}", RF_FP8_BLOCK128},
        {"'infer': {'quantize': 'mxfp8'}", RF_MXFP8},
        {"'infer': {}, 'quantize': 'nvfp4'", RF_NVFP4},
        {"'infer': {}, 'quantize': {'format': 'mxfp8', 'at': 'receiver'}",
         RF_MXFP8},
    };
    AUTO(rf_spec) *spec = quoted_spec("'train': {}, %s", ways[_i].text);
    const int wanted = ways[_i].format;
    const struct rf_quant_format *found = spec->infer.quantize.format;
    json_auto_t *written = rf_spec_to_json(spec, NULL);
    const json_t *quantize = json_object_get(written, "quantize");
    ck_assert_ptr_null(
        json_object_get(json_object_get(written, "infer"), "quantize"));
    if (wanted < 0) {
        ck_assert_ptr_null(found);
        ck_assert_ptr_null(quantize);
    } else {
        ck_assert_int_eq(found->id, wanted);
        ck_assert_str_eq(json_string_value(json_object_get(quantize, "format")),
                         rf_quant_names[wanted]);
        ck_assert_str_eq(json_string_value(json_object_get(quantize, "at")),
                         "receiver");
    }
}

TEST(test_spec_load_is_on_one_core_of_the_inference_side)
{
    AUTO(rf_spec) *none = quoted_spec("'train': {}, 'infer': {}");
    AUTO(rf_spec) *most = quoted_spec("'train': {}, 'infer': {}, 'load': "
                                      "{'memory_gbytes_per_s': 'max'}");
    AUTO(rf_spec) *paced =
        quoted_spec("'train': {}, 'infer': {}, 'load': {'memory_gbytes_per_s': "
                    "2.5, 'on': 'all', 'cores': 3}");
    json_auto_t *written = rf_spec_to_json(none, NULL);
    ck_assert(!none->load.given && most->load.given);
    ck_assert_ptr_null(json_object_get(written, "load"));
    ck_assert_double_eq(most->load.gbytes_per_s, 0);
    ck_assert_int_eq(most->load.on, RF_LOAD_ON_INFER);
    ck_assert_uint_eq(most->load.cores, 1);
    ck_assert_double_eq(paced->load.gbytes_per_s, 2.5);
    ck_assert_int_eq(paced->load.on, RF_LOAD_ON_ALL);
    ck_assert_uint_eq(paced->load.cores, 3);
}

LOOP_TEST(test_spec_mode_synonyms, 5)
{
    static const struct {
        const char *word;
        enum rf_mode mode;
    } words[] = {{"colocated", RF_COLOCATED},
                 {"collocated", RF_COLOCATED},
                 {"disaggregated", RF_DISAGGREGATED},
                 {"non-collocated", RF_DISAGGREGATED},
                 {"non-colocated", RF_DISAGGREGATED}};
    AUTO(rf_spec) *spec =
        quoted_spec("'mode': '%s', 'train': {}, 'infer': {}", words[_i].word);
    ck_assert_int_eq(spec->mode, words[_i].mode);
}

TEST(test_spec_method_aliases_become_the_method)
{
    struct rf_spec *spec =
        quoted_spec("'method': 'gloo', 'train': {}, 'infer': {}");
    ck_assert_str_eq(spec->method, "host");
    rf_spec_destroy(spec);
    spec = quoted_spec("'method': 'cuda_ipc', 'train': {}, 'infer': {}");
    ck_assert_str_eq(spec->method, "ipc");
    rf_spec_destroy(spec);
    spec = quoted_spec("'method': 'ucx', 'memory': 'cuda', 'train': {}, "
                       "'infer': {}");
    ck_assert_str_eq(spec->method, "ucx-cuda");
    rf_spec_destroy(spec);
    spec = quoted_spec("'method': 'ucx', 'memory': 'host', 'train': {}, "
                       "'infer': {}");
    ck_assert_str_eq(spec->method, "ucx");
    rf_spec_destroy(spec);
    spec = quoted_spec("'method': 'ucx-cuda', 'memory': 'cuda', 'train': {}, "
                       "'infer': {}");
    ck_assert_str_eq(spec->method, "ucx-cuda");
    rf_spec_destroy(spec);
}

static const struct {
    const char *side;
    uint32_t etp;
} etps[] = {
    {"'tp': 4", 4},
    {"'tp': 4, 'ep': 2", 4},
    {"'tp': 4, 'ep': 2, 'etp': 1", 1},
    {"'tp': 4, 'layout': 'hf'", 4},
    {"'tp': 4, 'ep': 2, 'layout': 'hf'", 1},
    {"'tp': 4, 'ep': 2, 'layout': 'vllm'", 1},
    {"'tp': 4, 'ep': 2, 'layout': 'vllm', 'etp': 2", 2},
    {"'layout': 'fsdp', 'dp': 8", 1},
    {"'tp': 8, 'ep': 2, 'layout': 'sglang'", 4},
    {"'tp': 8, 'ep': 8, 'layout': 'sglang'", 1},
    {"'tp': 8, 'ep': 2, 'etp': 2, 'layout': 'sglang'", 2},
};

LOOP_TEST(test_spec_default_expert_tensor_parallelism, RF_ARRAY_SIZE(etps))
{
    AUTO(rf_spec) *spec =
        quoted_spec("'train': {%s}, 'infer': {}", etps[_i].side);
    ck_assert_uint_eq(spec->train.etp, etps[_i].etp);
}

TEST(test_spec_pipeline_stages)
{
    AUTO(rf_spec) *spec = quoted_spec(
        "'train': {'pp_layers': [3, 5, 4]}, 'infer': {'pp': 4, 'vpp': 2, "
        "'num_layers_in_first_pipeline_stage': 2, "
        "'num_layers_in_last_pipeline_stage': 6}");
    ck_assert_uint_eq(spec->train.pp, 3);
    ck_assert_uint_eq(spec->train.n_pp_layers, 3);
    ck_assert_uint_eq(spec->train.pp_layers[1], 5);
    ck_assert_uint_eq(spec->infer.first_stage_layers, 2);
    ck_assert_uint_eq(spec->infer.last_stage_layers, 6);
    ck_assert_uint_eq(spec->infer.vpp, 2);
}

TEST(test_spec_sharding_as_list_and_as_text)
{
    AUTO(rf_spec) *spec = quoted_spec(
        "'train': {'layout': 'spec', 'mesh': [2, 4], 'spec': ['S01', 'R', "
        "'R']}, 'infer': {'layout': 'spec', 'mesh': [1, 3], 'spec': "
        "'S0RS1'}");
    ck_assert_uint_eq(spec->train.dp, 8);
    ck_assert(spec->train.dp_given);
    ck_assert_str_eq(spec->train.spec[0], "S01");
    ck_assert_str_eq(spec->infer.spec[0], "S0");
    ck_assert_str_eq(spec->infer.spec[1], "R");
    ck_assert_str_eq(spec->infer.spec[2], "S1");
    ck_assert_uint_eq(spec->infer.n_spec, 3);
}

TEST(test_spec_disk_options_stay_with_method_disk)
{
    struct rf_spec *spec = quoted_spec(
        "'method': 'disk', 'disk': {'folder': '/x', 'fsync': true}, "
        "'train': {}, 'infer': {}");
    ck_assert_str_eq(spec->disk_folder, "/x");
    ck_assert(spec->disk_fsync && !spec->disk_drop_cache);
    rf_spec_destroy(spec);
    spec =
        quoted_spec("'method': 'tcp', 'disk': {'folder': '/x', 'fsync': true}, "
                    "'train': {}, 'infer': {}");
    ck_assert_ptr_null(spec->disk_folder);
    ck_assert(!spec->disk_fsync);
    rf_spec_destroy(spec);
}

TEST(test_spec_ucx_options_stay_with_method_ucx)
{
    struct rf_spec *spec = quoted_spec("'method': 'ucx', 'ucx': {'direction': "
                                       "'get'}, 'train': {}, 'infer': {}");
    ck_assert(spec->ucx_gets);
    rf_spec_destroy(spec);
    spec = quoted_spec("'method': 'ucx', 'ucx': {'direction': 'put'}, "
                       "'train': {}, 'infer': {}");
    ck_assert(!spec->ucx_gets);
    rf_spec_destroy(spec);
    spec = quoted_spec("'method': 'tcp', 'ucx': {'direction': 'get'}, "
                       "'train': {}, 'infer': {}");
    ck_assert(!spec->ucx_gets);
    rf_spec_destroy(spec);
}

static const struct {
    const char *text;
} whole[] = {
    {"'train': {}, 'infer': {}"},
    {"'name': 'a b, tp=2 (x)', 'mode': 'non-collocated', 'train': {'nodes': "
     "['b', 'a'], 'tp': 2, 'pp_layers': [1, 3], 'dtype': 'float32', 'cp': 2, "
     "'vpp': 1}, 'infer': {'layout': 'vllm', 'tp': 2, 'ep': 4, 'dp': 2, "
     "'nodes': ['c']}, 'method': 'gloo', 'strategy': 'gather_broadcast', "
     "'balance': 'order', 'serialize': true, 'warmup': 0, 'iterations': 9, "
     "'bucket_bytes': 8192, 'chunk_bytes': 4096, 'cast': 'source', "
     "'timeout_s': 77"},
    {"'colocated_processes': 'separate', 'method': 'disk', 'disk': {'folder': "
     "'/x', 'drop_cache': true}, 'train': {'layout': 'fsdp1', 'dp': 6, "
     "'dp_replicate': 2}, "
     "'infer': {'layout': 'spec', 'mesh': [2, 2], 'spec': 'S0S1R'}"},
    {"'train': {}, 'infer': {}, 'iterations': {'min': 7, 'max': 70, "
     "'ci_percent': 1.5, 'max_s': 10}"},
    {"'mode': 'disaggregated', 'train': {'nodes': 2}, 'infer': {'nodes': 1}"},
    {"'train': {}, 'infer': {}, 'balance': 'time'"},
    {"'train': {}, 'infer': {'layout': 'sglang', 'tp': 4, 'attention_dp': "
     "2}"},
    {"'train': {}, 'infer': {}, 'balance': 'time', 'balance_links': "
     "[{'weight': 1000}, {'weight': 1, 'nics': 64}, {'weight': 3}, {'weight': "
     "4}]"},
    {"'train': {}, 'infer': {}, 'method': 'ucx', 'ucx': {'direction': 'get'}"},
    {"'train': {'pp': 4, 'vpp': 2, 'num_layers_in_first_pipeline_stage': 2, "
     "'num_layers_in_last_pipeline_stage': 4}, 'infer': {'layout': 'hf'}"},
    {"'train': {'make_vocab_size_divisible_by': 0}, 'infer': {}"},
    {"'train': {}, 'infer': {'quantize': true}"},
    {"'train': {}, 'infer': {}, 'quantize': {'format': 'nvfp4'}"},
    {"'train': {}, 'infer': {}, 'quantize': {'format': 'fp8_block128', 'eps': "
     "1e-10, 'divide': 'exact'}"},
    {"'train': {}, 'infer': {}, 'group': 'rdt', 'quantize': {'format': "
     "'mxfp8', 'at': 'sender', 'overlap': true}"},
    {"'train': {'pp': 2, 'vpp': 2, 'pp_layers': [1, 2, 3, 0]}, 'infer': {}"},
    {"'train': {}, 'infer': {}, 'load': {'memory_gbytes_per_s': 'max'}"},
    {"'train': {}, 'infer': {}, 'load': {'memory_gbytes_per_s': 0.5, 'on': "
     "'train', 'cores': 8}"},
    {"'mode': 'disaggregated', 'train': {'nodes': 1}, 'infer': [{'tp': 4}, "
     "{'nodes': 2, 'quantize': true}, {'quantize': {'format': "
     "'fp8_block128_ue8m0', 'eps': "
     "0.5}}]"},
    {"'train': {}, 'infer': [{}, {'quantize': false}], 'quantize': 'nvfp4'"},
};

LOOP_TEST(test_spec_round_trips, RF_ARRAY_SIZE(whole))
{
    AUTO(rf_spec) *spec = quoted_spec("%s", whole[_i].text), *again = NULL;
    json_auto_t *first = rf_spec_to_json(spec, quoted_nodes), *second;
    struct rf_jnode node = rf_jnode_root(first, "test");
    struct rf_err err = {0};
    ck_assert_msg(rf_spec_from_json(&node, quoted_nodes, 4, &again, &err) ==
                      RF_OK,
                  "%s", err.text);
    second = rf_spec_to_json(again, quoted_nodes);
    ck_assert(json_equal(first, second));
    ck_assert_uint_eq(again->train.n_nodes, spec->train.n_nodes);
    ck_assert_uint_eq(again->infer.dp, spec->infer.dp);
    ck_assert_int_eq(again->infer.dp_given, spec->infer.dp_given);
    ck_assert_int_eq(again->strategy, spec->strategy);
    ck_assert_int_eq(again->cast_at_source, spec->cast_at_source);
    ck_assert_uint_eq(again->n_sides, spec->n_sides);
    for (uint32_t i = 0; i < spec->n_sides; i++) {
        ck_assert_ptr_eq(again->side[i].quantize.format,
                         spec->side[i].quantize.format);
    }
}

/* A pool follows its own "quantize", or else that of the scenario. */
TEST(test_spec_false_undoes_a_default_format)
{
    AUTO(rf_spec) *spec = quoted_spec(
        "'train': {}, 'infer': {'quantize': false}, 'quantize': 'nvfp4'");
    ck_assert_ptr_null(spec->infer.quantize.format);
}

TEST(test_spec_reads_pools)
{
    AUTO(rf_spec) *one = quoted_spec("'train': {}, 'infer': [{'tp': 4}]");
    AUTO(rf_spec) *spec = quoted_spec(
        "'train': {}, 'infer': [{'tp': 4}, {'tp': 2, 'quantize': true}, "
        "{'quantize': false}], 'quantize': 'nvfp4'");
    json_auto_t *written = rf_spec_to_json(one, quoted_nodes);
    ck_assert(json_is_object(json_object_get(written, "infer")));
    ck_assert_str_eq(rf_spec_side_name(one, RF_INFER), "infer");
    ck_assert_uint_eq(spec->n_sides, 4);
    ck_assert_uint_eq(spec->infer.tp, 4);
    ck_assert_uint_eq(spec->side[2].tp, 2);
    ck_assert_str_eq(rf_spec_side_name(spec, 2), "infer[1]");
    ck_assert_str_eq(spec->infer.quantize.format->name, "nvfp4");
    ck_assert_str_eq(spec->side[2].quantize.format->name, "fp8_block128");
    ck_assert_ptr_null(spec->side[3].quantize.format);
}

static void assert_nodes(const struct rf_side_spec *side, const char *expected)
{
    char text[8] = "";
    for (uint32_t i = 0; i < side->n_nodes; i++) {
        strncat(text, quoted_nodes[side->nodes[i]],
                sizeof(text) - strlen(text) - 1);
    }
    ck_assert_str_eq(text, expected);
}

static const struct {
    const char *mode, *train, *infer, *train_has, *infer_has;
} counts[] = {
    {"colocated", "2", "2", "ab", "ab"},
    {"colocated", "3", NULL, "abc", ""},
    {"disaggregated", "1", "2", "a", "bc"},
    {"disaggregated", "2", NULL, "ab", ""},
    {"disaggregated", "2", "['b']", "ac", "b"},
    {"disaggregated", "['b', 'd']", "2", "bd", "ac"},
};

/* "'nodes': 2", or nothing. */
static const char *nodes_text(const char *value, char text[32])
{
    text[0] = '\0';
    if (value != NULL) {
        snprintf(text, 32, "'nodes': %s", value);
    }
    return text;
}

LOOP_TEST(test_spec_counts_of_nodes_take_the_first_free_ones,
          RF_ARRAY_SIZE(counts))
{
    char train[32], infer[32];
    AUTO(rf_spec) *spec =
        quoted_spec("'mode': '%s', 'train': {%s}, 'infer': {%s}",
                    counts[_i].mode, nodes_text(counts[_i].train, train),
                    nodes_text(counts[_i].infer, infer));
    assert_nodes(&spec->train, counts[_i].train_has);
    assert_nodes(&spec->infer, counts[_i].infer_has);
}

#define SIDES "'train': {}, 'infer': {}"
#define TIME ", 'balance': 'time', 'balance_links': "
#define TRAIN(side) "'train': {" side "}, 'infer': {}"

static const struct {
    const char *text, *says;
} refused[] = {
    {"'infer': {}", "\"train\" is missing"},
    {"'train': {}", "\"infer\" is missing"},
    {"'train': 3, 'infer': {}", "$.train: must be an object"},
    {SIDES ", 'modes': 1", "did you mean \"mode\"?"},
    {SIDES ", 'mode': 'both'", "$.mode: must be one of \"colocated\""},
    {SIDES ", 'mode': 'both'", ", not \"both\""},
    {SIDES ", 'load': {}",
     "$.load: must have either \"memory_gbytes_per_s\" or"},
    {SIDES ", 'load': {'memory_gbytes_per_s': 1, 'network_gbytes_per_s': 1}",
     "must have either"},
    {SIDES ", 'load': {'network_gbytes_per_s': 0}",
     "$.load.network_gbytes_per_s: must be a number from 0.01 to 1000000, or "
     "\"max\""},
    {SIDES ", 'load': {'memory_gbytes_per_s': 0}",
     "$.load.memory_gbytes_per_s: must be a number from 0.01 to 1000000, or "
     "\"max\""},
    {SIDES ", 'load': {'memory_gbytes_per_s': -5}", "a number from 0.01 to"},
    {SIDES ", 'load': {'memory_gbytes_per_s': 'all'}", "or \"max\""},
    {SIDES ", 'load': {'memory_gbytes_per_s': 'max', 'cores': 0}",
     "$.load.cores: "},
    {SIDES ", 'load': {'memory_gbytes_per_s': 'max', 'on': 'both'}",
     "$.load.on: must be one of \"infer\", \"train\", \"all\""},
    {SIDES ", 'quantize': 'fp8'", "$.quantize: must be one of \"fp8_tensor\""},
    {SIDES ", 'quantize': {}", "\"format\" is missing"},
    {SIDES ", 'quantize': {'format': 'mxfp4'}", "did you mean \"mxfp8\"?"},
    {SIDES ", 'quantize': 'fp8'", "did you mean \"fp8_tensor\"?"},
    {SIDES ", 'quantize': {'format': 'mxfp8', 'at': 'source'}",
     "$.quantize.at: must be one of \"receiver\", \"sender\", not \"source\" "
     "(did you mean \"sender\"?)"},
    {SIDES ", 'quantize': {'format': 'mxfp8', 'at': 'trainer'}",
     "$.quantize.at: must be one of \"receiver\", \"sender\""},
    {SIDES ", 'quantize': {'format': 'mxfp8', 'overlap': true}",
     "\"overlap\" needs \"group\""},
    {SIDES ", 'group': 'rdt', 'quantize': {'format': 'nvfp4', 'overlap': true}",
     "needs scales of blocks"},
    {SIDES ", 'quantize': {'format': 'mxfp8', 'eps': 1e-10}",
     "$.quantize.eps: mxfp8 has one form"},
    {SIDES ", 'quantize': {'format': 'fp8_tensor', 'divide': 'reciprocal'}",
     "$.quantize.divide: fp8_tensor has one form"},
    {SIDES ", 'quantize': {'format': 'fp8_block128', 'eps': 0}",
     "$.quantize.eps"},
    {"'train': {}, 'infer': {'quantize': true}, 'quantize': 'mxfp8'",
     "stands beside infer.quantize"},
    {"'train': {}, 'infer': [{'quantize': true}, {'quantize': 'mxfp8'}], "
     "'quantize': {'format': 'nvfp4', 'at': 'sender'}",
     "$.quantize: is of no effect: each pool has its own"},
    {"'train': {'quantize': true}, 'infer': {}", "belongs to \"infer\""},
    {"'train': {}, 'infer': []", "$.infer: has 0 pools; one refit serves 1"},
    {"'train': {}, 'infer': [{}, {}, {}, {}, {}]", "$.infer: has 5 pools"},
    {"'train': {}, 'infer': [{}, {'tq': 2}]", "$.infer[1]: unknown key \"tq\""},
    {"'train': {}, 'infer': [{}, {'layout': 'spec'}]",
     "$.infer[1]: \"mesh\" is missing"},
    {"'train': {}, 'infer': [{}, {'dtype': 'float32'}]",
     "$.infer[1]: all pools must have the same \"dtype\""},
    {"'train': {}, 'infer': [{}, {'quantize': {'format': 'mxfp8', 'at': "
     "'sender'}}]",
     "$.infer[0]: senders convert to one format, mxfp8, for all pools"},
    {"'train': {}, 'group': 'rdt', 'infer': [{'quantize': {'format': 'mxfp8', "
     "'overlap': true}}, {'quantize': 'mxfp8'}]",
     "$.infer[1]: pools that convert must have the same"},
    {"'train': {}, 'infer': [{}, {'quantize': {'format': 'mxfp8', 'overlap': "
     "true}}]",
     "$.infer[1].quantize: \"overlap\" needs \"group\""},
    {SIDES ", 'tp': 2", "\"tp\" belongs to \"train\" or \"infer\""},
    {TRAIN("'dtype': 'fp8'"), "\"fp8\"; known: float64"},
    {SIDES ", 'strategy': 'x'", "\"gather_broadcast\""},
    {SIDES ", 'balance': 'x'", "$.balance: must be one of"},
    {SIDES ", 'balance': 'loadbalance_oder'",
     "(did you mean \"loadbalance_order\"?)"},
    {SIDES ", 'balance_links': []", "needs \"balance\": \"time\""},
    {SIDES TIME "[{'weight': 1}]", "4 objects, one per node"},
    {SIDES TIME "[1, 2, 3, 4]", "balance_links[0]: must be an object"},
    {SIDES TIME "[{'weight': 1}, {}, {}, {}]",
     "balance_links[1]: \"weight\" is missing"},
    {SIDES TIME "[{'weight': 0}, {}, {}, {}]", "weight: must be an integer"},
    {SIDES TIME "[{'weight': 1001}, {}, {}, {}]", "from 1 to 1000"},
    {SIDES TIME "[{'weight': 1, 'nics': 65}, {}, {}, {}]", "from 1 to 64"},
    {SIDES TIME "[{'weight': 1, 'nic': 2}, {}, {}, {}]", "\"nics\"?"},
    {SIDES ", 'cast': 'x'", "$.cast: must be one of"},
    {SIDES ", 'serialize': 1", "must be true or false"},
    {SIDES ", 'iterations': 0", "must be an integer from 1"},
    {SIDES ", 'iterations': 'many'", "iterations: must be an integer"},
    {SIDES ", 'iterations': {'max': 9}",
     "iterations: \"ci_percent\" is missing"},
    {SIDES ", 'iterations': {'ci_percent': 2}",
     "iterations: \"max\" is missing"},
    {SIDES ", 'iterations': {'max': 4, 'ci_percent': 2}",
     "iterations.max: must be an integer from 5 to 10000"},
    {SIDES ", 'iterations': {'max': 9, 'ci_percent': 2, 'min': 4}",
     "iterations.min: must be an integer from 5 to 10000"},
    {SIDES ", 'iterations': {'max': 9, 'ci_percent': 0}",
     "iterations.ci_percent: must be"},
    {SIDES ", 'iterations': {'max': 9, 'ci_percent': 2, 'min': 10}",
     "iterations.max: is 9, less than"},
    {SIDES ", 'iterations': {'max': 9, 'ci_percent': 2, 'max_s': 0}",
     "iterations.max_s: must be"},
    {SIDES ", 'iterations': {'max': 9, 'ci_percent': 2, 'mix': 3}", "\"mix\""},
    {SIDES ", 'warmup': -1", "must be an integer from 0"},
    {SIDES ", 'bucket_bytes': 1", "must be an integer from 4096"},
    {SIDES ", 'chunk_bytes': 1", "must be 0 (chosen by the planner)"},
    {SIDES ", 'timeout_s': 1.5", "must be an integer"},
    {SIDES ", 'method': 'a b'", "must be the name of a method"},
    {SIDES ", 'method': '../x'", "must be the name of a method"},
    {SIDES ", 'method': ['tcp']", "must be a non-empty string"},
    {SIDES ", 'method': 'ucx', 'memory': 'gpu'",
     "$.memory: must be one of \"host\", \"cuda\", not \"gpu\" (did you mean "
     "\"cuda\"?)"},
    {SIDES ", 'method': 'ucx', 'ucx': {'direction': 'read'}",
     "did you mean \"get\"?"},
    {SIDES ", 'method': 'ucx', 'ucx': {'direction': 'write'}",
     "did you mean \"put\"?"},
    {SIDES ", 'method': 'ucx', 'memory': 'hots'", "did you mean \"host\"?"},
    {SIDES ", 'method': 'ucx', 'memory': true", "$.memory: must be"},
    {SIDES ", 'method': 'disk'", "method disk needs \"disk\""},
    {SIDES ", 'disk': {}", "\"folder\" is missing"},
    {SIDES ", 'disk': {'folder': '/x', 'y': 1}", "unknown key \"y\""},
    {SIDES ", 'ucx': {'directoin': 'get'}", "unknown key \"directoin\""},
    {SIDES ", 'ucx': {'direction': 'gte'}", "must be one of"},
    {SIDES ", 'ucx': 'get'", "must be an object"},
    {SIDES ", 'name': '../x'", "is used as a file name"},
    {SIDES ", 'name': '.x'", "is used as a file name"},
    {SIDES ", 'name': 'a\\n'", "is used as a file name"},
    {SIDES ", 'name': 'a '", "is used as a file name"},
    {SIDES ", 'name': ''", "must be a non-empty string"},
    {SIDES ", 'mode': 'disaggregated', 'colocated_processes': 'separate'",
     "\"separate\" needs mode colocated"},
    {TRAIN("'tp': 0"), "$.train.tp: must be an integer from 1 to 65536"},
    {TRAIN("'tp': 65537"), "$.train.tp: must be an integer"},
    {TRAIN("'tp': '2'"), "$.train.tp: must be an integer"},
    {TRAIN("'tpp': 2"), "$.train: unknown key \"tpp\""},
    {TRAIN("'layout': 'gguf'"), "$.train.layout: must be one of"},
    {TRAIN("'layout': 'sglan'"), "(did you mean \"sglang\"?)"},
    {TRAIN("'layout': 'vllm', 'tp': 2, 'attention_dp': 2"),
     "$.train.attention_dp: needs layout sglang; with vllm"},
    {TRAIN("'dtype': 'x'"), "$.train.dtype: unknown dtype"},
    {TRAIN("'nodes': []"), "must be an array of hosts"},
    {TRAIN("'nodes': 0"), "$.train.nodes: must be an integer from 1"},
    {TRAIN("'nodes': 1.5"), "$.train.nodes: must be an integer from 1"},
    {TRAIN("'nodes': 5"),
     "$.train.nodes: needs 5 nodes, but the cluster has 4"},
    {"'mode': 'disaggregated', 'train': {'nodes': 2}, 'infer': {'nodes': 3}",
     "$.infer.nodes: needs 3 nodes, but the cluster has 4 and other sides "
     "take 2 of them"},
    {"'mode': 'disaggregated', 'train': {'nodes': 4}, 'infer': {'nodes': 1}",
     "$.infer.nodes: needs 1 node, but the cluster has 4 and other sides "
     "take 4 of them"},
    {"'mode': 'disaggregated', 'train': {}, 'infer': {'nodes': 1}",
     "$.infer.nodes: a number of nodes here needs"},
    {TRAIN("'nodes': ['z']"), "$.train.nodes[0]: unknown node \"z\""},
    {TRAIN("'nodes': ['a', 'a']"), "listed twice"},
    {TRAIN("'nodes': [1]"), "must be the name of a host"},
    {TRAIN("'pp': 2, 'pp_layers': [1]"), "has 1 entries, but pp is 2"},
    {TRAIN("'pp_layers': []"), "number of layers of each pipeline stage"},
    {TRAIN("'pp_layers': [1, -1]"), "$.train.pp_layers[1]: must be an integer"},
    {TRAIN("'pp_layers': [1, 2], 'num_layers_in_first_pipeline_stage': 1"),
     "\"pp_layers\" and layers of the first or last stage"},
    {TRAIN("'num_layers_in_last_pipeline_stage': 1"), "need pp of at least 2"},
    {TRAIN("'vpp': 2"), "needs pp of at least 2"},
    {TRAIN("'pp': 2, 'vpp': 2, 'layout': 'hf'"), "needs layout megatron"},
    {TRAIN("'layout': 'fsdp', 'tp': 2"), "must be 1 with layout fsdp"},
    {TRAIN("'layout': 'fsdp1', 'pp': 2"), "must be 1 with layout fsdp1"},
    {TRAIN("'layout': 'zero3', 'ep': 2"), "must be 1 with layout zero3"},
    {TRAIN("'layout': 'hf', 'make_vocab_size_divisible_by': 64"),
     "$.train.make_vocab_size_divisible_by: needs layout megatron"},
    {"'train': {}, 'infer': {}, 'make_vocab_size_divisible_by': 64",
     "belongs to \"train\" or \"infer\""},
    {TRAIN("'dp_replicate': 1"),
     "$.train.dp_replicate: needs layout fsdp, fsdp1, zero3 or vllm"},
    {TRAIN("'layout': 'fsdp', 'dp': 4, 'dp_replicate': 3"),
     "$.train.dp_replicate: must divide dp (4)"},
    {TRAIN("'spec': 'R', 'mesh': [1, 1]"), "need layout spec"},
    {TRAIN("'layout': 'spec', 'spec': 'R'"), "\"mesh\" is missing"},
    {TRAIN("'layout': 'spec', 'mesh': [2, 2]"), "\"spec\" is missing"},
    {TRAIN("'layout': 'spec', 'mesh': [2], 'spec': 'R'"), "array of two sizes"},
    {TRAIN("'layout': 'spec', 'mesh': [2, 0], 'spec': 'R'"),
     "$.train.mesh[1]: must be an integer from 1"},
    {TRAIN("'layout': 'spec', 'mesh': [65536, 65536], 'spec': 'R'"),
     "more than 65536 devices"},
    {TRAIN("'layout': 'spec', 'mesh': [2, 2], 'spec': 'S0S0'"),
     "mesh axis 0 splits more than one dimension"},
    {TRAIN("'layout': 'spec', 'mesh': [2, 2], 'spec': 'S01S1'"),
     "mesh axis 1 splits more than one dimension"},
    {TRAIN("'layout': 'spec', 'mesh': [2, 2], 'spec': 'RRRRRR'"),
     "more than 5 dimensions"},
    {TRAIN("'layout': 'spec', 'mesh': [2, 2], 'spec': 'RX'"),
     "must have one of \"R\""},
    {TRAIN("'layout': 'spec', 'mesh': [2, 2], 'spec': ['RR']"),
     "must have one of \"R\""},
    {TRAIN("'layout': 'spec', 'mesh': [2, 2], 'spec': [1]"),
     "must have one of \"R\""},
    {TRAIN("'layout': 'spec', 'mesh': [2, 2], 'spec': [], 'dp': 4"),
     "must be an array such as"},
    {TRAIN("'layout': 'spec', 'mesh': [2, 2], 'spec': 'R', 'dp': 3"),
     "must be the mesh's 4 devices, or left out"},
};

LOOP_TEST(test_spec_refuses_bad_input_with_place_and_rule,
          RF_ARRAY_SIZE(refused))
{
    const char *error = spec_error("%s", refused[_i].text);
    assert_says(error, refused[_i].says);
    assert_says(error, "test: $");
}

static bool is_in_manual(const char *key)
{
    FILE *page = fopen("docs/man/refit-cluster.5", "r");
    char line[1000], *rest;
    bool found = false;
    ck_assert_ptr_nonnull(page);
    while (!found && fgets(line, sizeof(line), page) != NULL) {
        const char *word = strncmp(line, ".It Cm ", 7) == 0
                               ? strtok_r(line + 7, " ,\n", &rest)
                               : NULL;
        while (word != NULL && !found) {
            found = strcmp(word, key) == 0;
            word = strtok_r(NULL, " ,\n", &rest);
        }
    }
    fclose(page);
    return found;
}

static const struct rf_spec_field *const tables[] = {rf_spec_fields,
                                                     rf_side_fields};

LOOP_TEST(test_spec_keys_are_in_the_manual, RF_ARRAY_SIZE(tables))
{
    for (const struct rf_spec_field *field = tables[_i]; field->key != NULL;
         field++) {
        ck_assert_msg(is_in_manual(field->key), "no %s", field->key);
    }
}
