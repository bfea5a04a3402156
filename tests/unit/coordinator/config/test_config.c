/* cluster.json: what is read, how matrices expand, what is refused and where
 * the error points. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "coordinator/config/config.h"
#include "coordinator/config/paths.h"
#include "planner/model/model.h"
#include "tests/lib/configured.h"
#include "tests/lib/fake_root.h"
#include "tests/lib/quoted.h"
#include "tests/lib/quotes.h"
#include "tests/unit/unit.h"

#define MODEL                                                                  \
    "'model': {'megatron': {'num_layers': 2, 'hidden_size': 64, "              \
    "'num_attention_heads': 4, 'vocab_size': 128}}"
#define NODES "'nodes': [{'host': 'a', 'slots': 4}]"
#define FINGERPRINT "SHA256:+RZHtOEZbXhcmiWcBgYpIlp8/5lUBl5JTzVNT4zGTG4"
#define SCENARIO "{'name': 's', 'train': {'tp': 2}, 'infer': {}}"
#define FILE_WITH(nodes, scenarios)                                            \
    "{'name': 't', " nodes ", " MODEL ", 'scenarios': [" scenarios "]}"

static enum rf_status read_text(const char *text, bool need_nodes,
                                struct rf_config **out, struct rf_err *err)
{
    return configured_read(text, "dir/c.json", need_nodes, out, err);
}

static struct rf_config *read_good(const char *text)
{
    struct rf_config *config = NULL;
    struct rf_err err = {0};
    assert_ok(read_text(text, true, &config, &err), err);
    return config;
}

TEST(test_config_fills_in_defaults)
{
    AUTO(rf_config) *config = read_good(FILE_WITH(NODES, SCENARIO));
    ck_assert_str_eq(config->name, "t");
    ck_assert_str_eq(config->folder, "dir");
    ck_assert_str_eq(config->launch.method, "ssh");
    ck_assert_str_eq(config->launch.worker, "refit-worker");
    ck_assert_uint_eq(config->launch.parallel, 32);
    ck_assert_uint_eq(config->launch.timeout_s, 30);
    ck_assert_uint_eq(rf_config_join_limit_s(config), 120);
    ck_assert(config->launch.use_ssh_config);
    ck_assert(!config->launch.accept_new);
    ck_assert(!config->launch.deploy);
    ck_assert_str_eq(config->launch.bind, "none");
    ck_assert_str_eq(config->control.address, "auto");
    ck_assert_uint_eq(config->n_nodes, 1);
    ck_assert_uint_eq(config->slots[0], 4);
    ck_assert_uint_eq(config->n_scenarios, 1);
}

TEST(test_config_reads_nodes_launch_and_control)
{
    AUTO(rf_config) *config = read_good(FILE_WITH(
        "'launch': {'method': 'local', 'env': {'A_1': 'x'}, 'known_hosts': "
        "'kh', 'deploy': true, 'bind': 'core', 'timeout_s': 5}, 'control': "
        "{'address': "
        "'10.0.0.1', 'port_range': [7000, 7010]}, 'nodes': [{'host': 'a', "
        "'slots': 1, 'port': 2222, 'user': 'rl', 'identity': '/k', 'address': "
        "'10.1.0.1', 'hostname': 'a.example', 'host_key_sha256': '" FINGERPRINT
        "'}]",
        SCENARIO));
    const struct rf_node_config *node = &config->nodes[0];
    ck_assert_str_eq(config->launch.known_hosts, "dir/kh");
    ck_assert(config->launch.deploy);
    ck_assert_str_eq(config->launch.bind, "core");
    ck_assert_uint_eq(config->launch.timeout_s, 5);
    ck_assert_uint_eq(rf_config_join_limit_s(config), 370);
    ck_assert_uint_eq(config->control.port_first, 7000);
    ck_assert_uint_eq(config->control.port_last, 7010);
    ck_assert_str_eq(node->hostname, "a.example");
    ck_assert_uint_eq(node->port, 2222);
    ck_assert_str_eq(node->user, "rl");
    ck_assert_str_eq(node->identity, "/k");
    ck_assert_str_eq(node->address, "10.1.0.1");
    ck_assert_str_eq(node->host_key_sha256, FINGERPRINT);
    ck_assert_str_eq(json_text_at(config->env, "A_1"), "x");
}

TEST(test_config_paths_are_relative_to_the_file)
{
    char *path;
    setenv("HOME", "/home/u", 1);
    path = rf_paths_resolve("dir", "~/.ssh/id");
    ck_assert_str_eq(path, "/home/u/.ssh/id");
    free(path);
    path = rf_paths_resolve("dir", "x/y");
    ck_assert_str_eq(path, "dir/x/y");
    free(path);
    path = rf_paths_resolve("dir", "/x");
    ck_assert_str_eq(path, "/x");
    free(path);
    path = rf_paths_resolve(".", "x");
    ck_assert_str_eq(path, "x");
    free(path);
}

TEST(test_config_places_the_disk_folder_beside_the_file)
{
    static const char *const expected[] = {"/tmp/dir/x", "/x", "/home/u/x"};
    AUTO(rf_config) *config;
    ck_assert_int_eq(chdir("/tmp"), 0);
    setenv("HOME", "/home/u", 1);
    config = read_good(
        FILE_WITH(NODES, "{'name': 's', 'method': 'disk', 'disk': {'folder': "
                         "['x', '/x', '~/x']}, 'train': {}, 'infer': {}}"));
    ck_assert_uint_eq(config->n_scenarios, 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *value = config->scenarios[i].value;
        ck_assert_str_eq(json_text_at(value, "disk.folder"), expected[i]);
    }
}

TEST(test_config_lists_make_a_matrix_first_axis_slowest)
{
    static const char *const names[] = {
        "s-method=host-train.tp=1", "s-method=host-train.tp=2",
        "s-method=tcp-train.tp=1", "s-method=tcp-train.tp=2"};
    AUTO(rf_config) *config =
        read_good(FILE_WITH(NODES, "{'name': 's', 'method': ['host', 'tcp'], "
                                   "'train': {'tp': [1, 2]}, 'infer': {}}"));
    ck_assert_uint_eq(config->n_scenarios, 4);
    for (size_t i = 0; i < 4; i++) {
        const struct rf_scenario_config *scenario = &config->scenarios[i];
        ck_assert_str_eq(scenario->name, names[i]);
        ck_assert_str_eq(scenario->base, "s");
        ck_assert_str_eq(scenario->path, "$.scenarios[0]");
        ck_assert_str_eq(json_text_at(scenario->value, "name"), names[i]);
        ck_assert_int_eq(json_integer_at(scenario->value, "train.tp"),
                         i % 2 == 0 ? 1 : 2);
    }
}

/* Names of members may have what names of scenarios may have. */
TEST(test_config_members_are_called_as_the_file_spells_their_values)
{
    AUTO(rf_config) *config = read_good(
        FILE_WITH(NODES, "{'name': 's', 'method': ['ucx-cuda', 'nccl'], "
                         "'train': {}, 'infer': {}, 'model': [{'name': "
                         "'a-b=c d'}]}"));
    ck_assert_str_eq(config->scenarios[0].name,
                     "s-method=ucx-cuda-model=a-b=c_d");
}

TEST(test_config_lists_of_objects_make_a_matrix)
{
    static const char *const names[] = {
        "s-train=tp=1+pp=2-group=rdt", "s-train=tp=1+pp=2-group=by=layers_2",
        "s-train=tp=2+nodes=__a__-group=rdt",
        "s-train=tp=2+nodes=__a__-group=by=layers_2"};
    AUTO(rf_config) *config = read_good(FILE_WITH(
        NODES, "{'name': 's', 'train': [{'tp': 1, 'pp': 2}, {'tp': 2, 'nodes': "
               "['a']}], 'infer': {}, 'group': ['rdt', {'by': 'layers:2'}]}"));
    ck_assert_uint_eq(config->n_scenarios, 4);
    for (size_t i = 0; i < 4; i++) {
        const struct rf_scenario_config *scenario = &config->scenarios[i];
        ck_assert_str_eq(scenario->name, names[i]);
        ck_assert_int_eq(json_integer_at(scenario->value, "train.tp"),
                         i < 2 ? 1 : 2);
    }
    ck_assert_str_eq(json_text_at(config->scenarios[3].value, "group.by"),
                     "layers:2");
}

/* Pools have axes of their own; paths in an object become absolute. */
TEST(test_config_objects_of_a_matrix_are_read_as_others)
{
    AUTO(rf_config) *config;
    ck_assert_int_eq(chdir("/tmp"), 0);
    config = read_good(FILE_WITH(
        NODES, "{'name': 's', 'mode': 'disaggregated', 'method': 'disk', "
               "'train': {}, 'infer': [{'quantize': [{'format': 'mxfp8'}, "
               "'nvfp4']}, {}], 'disk': [{'folder': 'x'}, {'folder': '/y'}]}"));
    ck_assert_uint_eq(config->n_scenarios, 4);
    ck_assert_str_eq(config->scenarios[0].name,
                     "s-infer.0.quantize=format=mxfp8-disk=folder=x");
    ck_assert_str_eq(json_text_at(config->scenarios[0].value, "disk.folder"),
                     "/tmp/dir/x");
    ck_assert_str_eq(json_text_at(config->scenarios[3].value, "disk.folder"),
                     "/y");
    ck_assert_str_eq(
        json_text_at(
            json_array_get(json_object_get(config->scenarios[0].value, "infer"),
                           0),
            "quantize.format"),
        "mxfp8");
}

TEST(test_config_lists_by_nature_are_no_axes)
{
    AUTO(rf_config) *config = read_good(FILE_WITH(
        NODES, "{'name': 's', 'mode': 'disaggregated', 'train': {'tp': 1, "
               "'pp': 2, 'pp_layers': [1, 1]}, 'infer': {'tp': 2}}"));
    ck_assert_uint_eq(config->n_scenarios, 1);
    ck_assert_str_eq(config->scenarios[0].name, "s");
}

TEST(test_config_select_matches_members_and_their_scenario)
{
    static const char *const text =
        FILE_WITH(NODES, "{'name': 'm', 'iterations': [1, 2], 'train': {}, "
                         "'infer': {}}, " SCENARIO);
    AUTO(rf_config) *config = read_good(text);
    struct rf_err err = {0};
    assert_ok(rf_config_select(config, (const char *[]){"m"}, 1, false, &err),
              err);
    ck_assert_uint_eq(config->n_scenarios, 2);
    assert_ok(rf_config_select(config, (const char *[]){"*=2"}, 1, false, &err),
              err);
    ck_assert_uint_eq(config->n_scenarios, 1);
    ck_assert_str_eq(config->scenarios[0].name, "m-iterations=2");
    ck_assert_int_eq(
        rf_config_select(config, (const char *[]){"x"}, 1, false, &err),
        RF_ERR_USAGE);
}

TEST(test_config_plan_needs_no_nodes_a_run_does)
{
    struct rf_config *config = NULL;
    struct rf_err err = {0};
    static const char text[] = "{" MODEL ", 'scenarios': [" SCENARIO "]}";
    assert_ok(read_text(text, false, &config, &err), err);
    rf_config_destroy(config);
    assert_fails(read_text(text, true, &config, &err), RF_ERR_CONFIG, err,
                 "nodes");
}

static const struct {
    const char *text, *path, *rule;
} wrong[] = {
    {FILE_WITH(NODES, SCENARIO ", " SCENARIO), "$.scenarios[1]",
     "is used by $.scenarios[0]"},
    {FILE_WITH(NODES ", 'links': {'link_gbps': 1}", SCENARIO), "$.links",
     "link_gbps"},
    {FILE_WITH(NODES ", 'links': {'methods': {'pigeon': {}}}", SCENARIO),
     "$.links.methods.pigeon", "unknown method \"pigeon\""},
    {FILE_WITH(NODES ", 'links': {'methods': {'ncl': {}}}", SCENARIO),
     "$.links.methods.ncl", "unknown method \"ncl\" (did you mean \"nccl\"?)"},
    {FILE_WITH(NODES ", 'links': {'methods': {'host': 1}}", SCENARIO),
     "$.links.methods.host", "object"},
    {FILE_WITH(NODES ", 'timeline': {'refits': -1}", SCENARIO),
     "$.timeline.refits", "0"},
    {FILE_WITH(NODES, "{'name': 'run', 'train': {}, 'infer': {}}"),
     "$.scenarios[0]", "run.json"},
    {FILE_WITH(NODES, "{'name': 'RUN', 'train': {}, 'infer': {}}"),
     "$.scenarios[0]", "run.json"},
    {FILE_WITH(NODES, "{'name': 'a/b', 'train': {}, 'infer': {}}"),
     "$.scenarios[0].name", "letters"},
    {FILE_WITH(NODES, "{'train': {}, 'infer': {}}"), "$.scenarios[0]", "name"},
    {FILE_WITH(NODES, ""), "$.scenarios", "at least one"},
    {FILE_WITH(NODES, "7"), "$.scenarios[0]", "object"},
    {FILE_WITH(NODES, "{'name': 's', 'method': []}"),
     "$.scenarios[0].method (s)", "empty list"},
    {FILE_WITH(NODES, "{'name': 's', 'method': [['a']]}"),
     "$.scenarios[0].method[0] (s)", "matrix"},
    {FILE_WITH(NODES, "{'name': 's', 'group': ['rdt', null]}"),
     "$.scenarios[0].group[1] (s)", "true or false, or objects"},
    {FILE_WITH(NODES, "{'name': 's', 'model': {'megatron': [{}]}}"),
     "$.scenarios[0].model.megatron[0] (s)", "true or false"},
    {FILE_WITH(NODES, "{'name': 's', 'train': [{'nodes': ['a'], 'tp': [1, "
                      "2]}]}"),
     "$.scenarios[0].train[0].tp (s)",
     "no matrix inside a value of a matrix; write one object for each value of "
     "\"tp\""},
    {FILE_WITH(NODES, "{'name': 's', 'train': {}, 'infer': {}, 'quantize': "
                      "['mxfp8', {'format': 'mxfp9'}]}"),
     "$.scenarios[0].quantize.format (s-quantize=format=mxfp9)",
     "(did you mean \"mxfp8\"?)"},
    {FILE_WITH(
         NODES,
         "{'name': 's', 'method': ['host', 'host'], 'train': {}, 'infer': {}}"),
     "$.scenarios[0].method[1] (s)", "twice"},
    {FILE_WITH(NODES, "{'name': 's', 'train': {'tpp': 1}, 'infer': {}}"),
     "$.scenarios[0].train (s)", "tpp"},
    {FILE_WITH("'nodes': []", SCENARIO), "$.nodes", "1 to"},
    {FILE_WITH("'nodes': [{'host': 'a'}]", SCENARIO), "$.nodes[0]", "slots"},
    {FILE_WITH("'nodes': [{'host': 'a', 'slots': 0}]", SCENARIO),
     "$.nodes[0].slots", "from 1"},
    {FILE_WITH(
         "'nodes': [{'host': 'a', 'slots': 1}, {'host': 'A', 'slots': 1}]",
         SCENARIO),
     "$.nodes[1]", "$.nodes[0]"},
    {FILE_WITH("'nodes': [{'host': '-oProxyCommand=x', 'slots': 1}]", SCENARIO),
     "$.nodes[0].host", "host name"},
    {FILE_WITH("'nodes': [{'host': 'a', 'slots': 1, 'user': 'x -p'}]",
               SCENARIO),
     "$.nodes[0].user", "user name"},
    {FILE_WITH("'nodes': [{'host': 'a', 'slots': 1, 'address': 'b'}]",
               SCENARIO),
     "$.nodes[0].address", "numeric"},
    {FILE_WITH("'nodes': [{'host': 'a', 'slots': 1, 'host_key_sha256': 'zz'}]",
               SCENARIO),
     "$.nodes[0].host_key_sha256", "fingerprint"},
    {FILE_WITH(
         "'nodes': [{'host': 'a', 'slots': 1, 'host_key_sha256': '" FINGERPRINT
         "=='}]",
         SCENARIO),
     "$.nodes[0].host_key_sha256", "fingerprint"},
    {FILE_WITH("'launch': {'method': 'rsh'}, " NODES, SCENARIO),
     "$.launch.method", "one of"},
    {FILE_WITH("'launch': {'bind': 'socket'}, " NODES, SCENARIO),
     "$.launch.bind", "one of"},
    {FILE_WITH("'launch': {'slurm': {'nodes': 1}}, " NODES, SCENARIO),
     "$.launch.slurm", "nodes"},
    {FILE_WITH("'launch': {'slurm': {'options': '-N2'}}, " NODES, SCENARIO),
     "$.launch.slurm.options", "list"},
    {FILE_WITH("'launch': {'slurm': {'options': ['-N', '2']}}, " NODES,
               SCENARIO),
     "$.launch.slurm.options[1]", "such as"},
    {FILE_WITH("'launch': {'slurm': {'options': ['--']}}, " NODES, SCENARIO),
     "$.launch.slurm.options[0]", "such as"},
    {FILE_WITH("'nodes': 'pbs'", SCENARIO), "$.nodes", "slurm"},
    {FILE_WITH("'launch': {'worker': 'a b'}, " NODES, SCENARIO),
     "$.launch.worker", "path of a program"},
    {FILE_WITH("'launch': {'env': {'A=B': 'x'}}, " NODES, SCENARIO),
     "$.launch.env.A=B", "environment variable"},
    {FILE_WITH("'launch': {'env': {'NCCL_COMM_ID': 'x'}}, " NODES, SCENARIO),
     "$.launch.env.NCCL_COMM_ID", "secret"},
    {FILE_WITH("'control': {'address': 'head'}, " NODES, SCENARIO),
     "$.control.address", "numeric"},
    {FILE_WITH("'control': {'port_range': [9, 1]}, " NODES, SCENARIO),
     "$.control.port_range", "first, last"},
    {FILE_WITH("'labels': 1, " NODES, SCENARIO), "$", "labels"},
    {FILE_WITH("'method': 'ucx', " NODES, SCENARIO), "$",
     "\"method\" belongs to \"scenarios\" or \"defaults\""},
    {FILE_WITH("'ucx': {'direction': 'get'}, " NODES, SCENARIO), "$",
     "\"ucx\" belongs to"},
    {"{" NODES ", 'model': {}, 'scenarios': []}", "$.model", "needs one"},
    {"{" NODES ", 'model': {'config': 'x', 'tensor': {}}, 'scenarios': []}",
     "$.model", "cannot be combined"},
    {"{" NODES ", 'model': {'config': 'no-such-file.json'}, 'scenarios': []}",
     "$.model.config", "no-such-file.json"},
    {"{" NODES ", 'model': {'checkpoint': 7}, 'scenarios': []}",
     "$.model.checkpoint", "folder"},
    {"{" NODES ", " MODEL "}", "$", "scenarios"},
};

LOOP_TEST(test_config_errors_name_place_and_rule, RF_ARRAY_SIZE(wrong))
{
    struct rf_config *config = NULL;
    struct rf_err err = {0};
    char place[128];
    ck_assert_int_eq(read_text(wrong[_i].text, true, &config, &err),
                     RF_ERR_CONFIG);
    snprintf(place, sizeof(place), "dir/c.json: %s: ", wrong[_i].path);
    ck_assert_msg(strncmp(err.text, place, strlen(place)) == 0, "%s", err.text);
    assert_says(err.text, wrong[_i].rule);
}

TEST(test_config_refuses_a_matrix_that_is_too_large)
{
    struct rf_config *config = NULL;
    struct rf_err err = {0};
    char *text = NULL, *list = rf_xstrdup("0");
    for (int i = 1; i < 100; i++) {
        char *longer = rf_xasprintf("%s, %d", list, i);
        free(list);
        list = longer;
    }
    text = rf_xasprintf("{" NODES ", " MODEL
                        ", 'scenarios': [{'name': 's', 'warmup': [%s], "
                        "'iterations': [%s], 'train': {}, 'infer': {}}]}",
                        list, list);
    assert_fails(read_text(text, true, &config, &err), RF_ERR_CONFIG, err,
                 "plus the product of its lists");
    free(list);
    free(text);
}

TEST(test_config_refuses_a_list_that_is_too_long)
{
    struct rf_config *config = NULL;
    struct rf_err err = {0};
    json_t *document = quoted_json("{" NODES ", " MODEL "}");
    json_t *list = json_array();
    for (int i = 0; i <= RF_CONFIG_MAX_SCENARIOS; i++) {
        json_array_append_new(list, json_pack("{s:o, s:{}, s:{}}", "name",
                                              json_sprintf("s%d", i), "train",
                                              "infer"));
    }
    json_object_set_new(document, "scenarios", list);
    ck_assert_int_eq(
        rf_config_from_json(document, "c.json", true, &config, &err),
        RF_ERR_CONFIG);
    ck_assert_str_eq(err.text,
                     "c.json: $.scenarios[4096] (s4096): more than 4096 "
                     "scenarios: 4096 before this one");
}

TEST(test_config_knows_a_model_file)
{
    json_auto_t *model = json_pack("{s:s}", "model_type", "llama");
    json_auto_t *cluster =
        json_pack("{s:s, s:[]}", "model_type", "x", "scenarios");
    ck_assert(rf_config_is_model(model));
    ck_assert(!rf_config_is_model(cluster));
}

/* --- files ---------------------------------------------------------------- */

static void write_text(const char *name, const char *text)
{
    fake_root_write(name, Q(text));
}

static enum rf_status load(struct rf_config **out, struct rf_err *err)
{
    const char *path = fake_root_path("cluster.json");
    json_t *document = NULL;
    enum rf_status status = rf_config_read(path, NULL, &document, err);
    RF_THEN(status, rf_config_from_json(document, path, true, out, err));
    return status;
}

/* What BOOT could not carry is refused before anything is launched. */
TEST(test_config_limits_the_environment)
{
    static const struct {
        int n, bytes;
        const char *rule;
    } cases[] = {{1024, 20, NULL},
                 {1025, 1, "$.launch.env: has 1025 variables, more than 1024"},
                 {40, 1000, "exceed 32768 bytes"}};
    for (size_t c = 0; c < RF_ARRAY_SIZE(cases); c++) {
        json_t *document, *env = json_object();
        AUTO(rf_config) *config = NULL;
        struct rf_err err = {0};
        AUTO_FREE char *value = rf_xcalloc(1, (size_t)cases[c].bytes + 1);
        memset(value, 'x', (size_t)cases[c].bytes);
        for (int i = 0; i < cases[c].n; i++) {
            char key[16];
            snprintf(key, sizeof(key), "V%d", i);
            json_object_set_new(env, key, json_string(value));
        }
        document = json_loads(Q(FILE_WITH(NODES, SCENARIO)), 0, NULL);
        json_object_set_new(
            document, "launch",
            json_pack("{s:s, s:o}", "method", "local", "env", env));
        ck_assert_int_eq(
            rf_config_from_json(document, "c.json", true, &config, &err),
            cases[c].rule == NULL ? RF_OK : RF_ERR_CONFIG);
        if (cases[c].rule != NULL) {
            assert_says(err.text, cases[c].rule);
        }
    }
}

CASE("files")
FIXTURE(fake_root_make, fake_root_remove)

TEST(test_config_inlines_the_model_file)
{
    AUTO(rf_config) *config = NULL;
    struct rf_err err = {0};
    write_text("m.json", "{'model_type': 'llama', 'hidden_size': 64, "
                         "'num_hidden_layers': 2, 'num_attention_heads': 4, "
                         "'num_key_value_heads': 2, 'intermediate_size': 128, "
                         "'vocab_size': 256, 'tie_word_embeddings': false}");
    write_text("cluster.json",
               "{" NODES ", 'model': {'config': 'm.json', 'num_layers': 1}, "
               "'scenarios': [" SCENARIO "]}");
    assert_ok(load(&config, &err), err);
    ck_assert(json_is_object(json_object_get(config->model, "config")));
    ck_assert_int_eq(json_integer_at(config->model, "num_layers"), 1);
    ck_assert_str_eq(json_text_at(config->model, "name"),
                     "m.json (num_layers 1)");
}

/* One file with one 2 × 3 tensor of F32. */
static void write_safetensors(const char *name, uint64_t announced)
{
    static const char header[] =
        "{'a.weight':{'dtype':'F32','shape':[2,3],'data_offsets':[0,24]}}";
    uint8_t bytes[8 + sizeof(header) - 1 + 24] = {0};
    uint64_t size = announced > 0 ? announced : sizeof(header) - 1;
    for (int i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(size >> (8 * i));
    }
    memcpy(bytes + 8, Q(header), sizeof(header) - 1);
    fake_root_write_bytes(name, bytes, sizeof(bytes));
}

#define CHECKPOINT                                                             \
    "{" NODES ", 'model': {'checkpoint': '.'}, 'scenarios': [{'name': 's', "   \
    "'train': {'layout': 'fsdp'}, 'infer': {'layout': 'fsdp'}}]}"

TEST(test_config_reads_the_headers_of_a_checkpoint)
{
    AUTO(rf_config) *config = NULL;
    struct rf_err err = {0};
    const json_t *tensor;
    write_safetensors("model.safetensors", 0);
    write_text("cluster.json", CHECKPOINT);
    assert_ok(load(&config, &err), err);
    tensor =
        json_object_get(json_object_get(config->model, "manifest"), "a.weight");
    ck_assert_str_eq(json_text_at(tensor, "file"), "model.safetensors");
    ck_assert_ptr_null(json_object_get(config->model, "checkpoint"));
    ck_assert_str_eq(json_text_at(config->model, "folder"), fake_root);
}

TEST(test_config_leaves_a_checkpoint_that_is_not_here_to_the_nodes)
{
    AUTO(rf_config) *config = NULL;
    struct rf_err err = {0};
    json_auto_t *headers = json_pack("{s:{}, s:s}", "manifest", "folder", "/x");
    write_text("cluster.json",
               "{" NODES ", 'model': {'checkpoint': 'absent'}, 'scenarios': "
               "[{'name': 's', 'train': {}, 'infer': {}}]}");
    assert_ok(load(&config, &err), err);
    ck_assert_str_eq(rf_config_checkpoint(config), fake_root_path("absent"));
    ck_assert_str_eq(json_text_at(config->model, "name"), "absent");
    rf_config_add_headers(config, headers);
    ck_assert_ptr_null(rf_config_checkpoint(config));
    ck_assert_ptr_nonnull(json_object_get(config->model, "manifest"));
}

LOOP_TEST(test_config_refuses_checkpoints_that_lie, 5)
{
    struct rf_config *config = NULL;
    struct rf_err err = {0};
    write_text("cluster.json", CHECKPOINT);
    if (_i == 0) {
        write_safetensors("model.safetensors", UINT64_MAX);
    } else if (_i == 1) {
        write_text("model.safetensors", "short");
    } else if (_i == 2) {
        write_text("model.safetensors.index.json",
                   "{'weight_map': {'a': '../../etc/passwd'}}");
    } else if (_i == 3) {
        write_text("model.safetensors.index.json",
                   "{'weight_map': {'a': 'absent.safetensors'}}");
    }
    assert_fails(load(&config, &err), RF_ERR_CONFIG, err, "$.model.checkpoint");
}

TEST(test_config_refuses_files_that_are_none)
{
    json_t *document = NULL;
    struct rf_err err = {0};
    ck_assert_int_eq(rf_config_read(fake_root, NULL, &document, &err),
                     RF_ERR_CONFIG);
    ck_assert_int_eq(rf_config_read("/dev/zero", NULL, &document, &err),
                     RF_ERR_CONFIG);
    ck_assert_int_eq(rf_config_read("/nonexistent", NULL, &document, &err),
                     RF_ERR_CONFIG);
}
