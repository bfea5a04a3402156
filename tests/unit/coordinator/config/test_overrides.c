/* Members of a cluster file set by their path. */
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/mem.h"
#include "coordinator/config/config.h"
#include "coordinator/config/overrides.h"
#include "tests/lib/logged.h"
#include "tests/lib/quotes.h"
#include "tests/unit/unit.h"

#define CLUSTER                                                                \
    "{'name': 't', 'nodes': [{'host': 'n.1', 'slots': 4}, {'host': 'n.2', "    \
    "'slots': 4}], 'model': {'megatron': {'num_layers': 4, 'hidden_size': "    \
    "64, 'num_attention_heads': 4, 'vocab_size': 128}}, 'scenarios': ["        \
    "{'name': 'one', 'train': {'tp': 2}, 'infer': {}}, "                       \
    "{'name': 'one.x=2', 'train': {'tp': 2}, 'infer': {}, "                    \
    "'method': ['host', 'tcp']}]}"

static json_t *cluster(void)
{
    json_t *document = json_loads(Q(CLUSTER), 0, NULL);
    ck_assert_ptr_nonnull(document);
    return document;
}

static enum rf_status set(json_t *document, const char *text,
                          struct rf_err *err)
{
    const char *sets[] = {text};
    struct rf_overrides overrides = {.sets = sets, .n_sets = 1};
    return rf_overrides_set(&overrides, document, "c.json", err);
}

/* A path to where the value must have gone, by json_unpack's format. */
static const struct {
    const char *text; /* after it, this document is the same: */
    const char *place[4];
    const char *value;
} good[] = {
    {"model.megatron.num_layers=2", {"model", "megatron", "num_layers"}, "2"},
    {"$.model.megatron.num_layers=2", {"model", "megatron", "num_layers"}, "2"},
    {"name=demo", {"name"}, "'demo'"},
    {"name='0.6'", {"name"}, "'0.6'"},
    {"name=0.6B", {"name"}, "'0.6B'"},
    {"name=a=b", {"name"}, "'a=b'"},
    {"name=1,2", {"name"}, "'1,2'"},
    {"scenarios.0.method=nccl", {"scenarios", "0", "method"}, "'nccl'"},
    {"scenarios[0].method=nccl", {"scenarios", "0", "method"}, "'nccl'"},
    {"scenarios.one.method=tcp", {"scenarios", "0", "method"}, "'tcp'"},
    {"scenarios.one.x=2.method=tcp", {"scenarios", "1", "method"}, "'tcp'"},
    {"scenarios.one.train.tp=[1,2]",
     {"scenarios", "0", "train", "tp"},
     "[1,2]"},
    {"scenarios.one.x=2.method[1]=shm",
     {"scenarios", "1", "method", "1"},
     "'shm'"},
    {"scenarios.*.iterations={'max':9,'ci_percent':2}",
     {"scenarios", "1", "iterations"},
     "{'max':9,'ci_percent':2}"},
    {"nodes.n.2.slots=8", {"nodes", "1", "slots"}, "8"},
    {"nodes.*.user=rl", {"nodes", "1", "user"}, "'rl'"},
    {"nodes[*].user=rl", {"nodes", "0", "user"}, "'rl'"},
    {"links.copy_gbytes_per_s=1.5", {"links", "copy_gbytes_per_s"}, "1.5"},
    {"launch.env.A=x=null", {"launch", "env", "A"}, "'x=null'"},
    {"scenarios.one.yardstick=false", {"scenarios", "0", "yardstick"}, "false"},
};

static json_t *member(json_t *at, const char *const *place)
{
    for (size_t i = 0; i < 4 && place[i] != NULL; i++) {
        at = json_is_array(at) ? json_array_get(at, strtoul(place[i], NULL, 10))
                               : json_object_get(at, place[i]);
    }
    return at;
}

LOOP_TEST(test_overrides_set_a_member, RF_ARRAY_SIZE(good))
{
    json_auto_t *document = cluster(), *value;
    struct rf_err err = {0};
    assert_ok(rf_json_parse_value(Q(good[_i].value), "v", &value, &err), err);
    assert_ok(set(document, Q(good[_i].text), &err), err);
    ck_assert(json_equal(member(document, good[_i].place), value));
}

TEST(test_overrides_star_means_all_members)
{
    json_t *document = cluster(),
           *list = json_object_get(document, "scenarios");
    ck_assert_int_eq(set(document, "scenarios.*.train.tp=1", NULL), RF_OK);
    ck_assert_int_eq(set(document, "scenarios.one.x=2.method.*=shm", NULL),
                     RF_OK);
    for (size_t i = 0; i < 2; i++) {
        json_t *train = json_object_get(json_array_get(list, i), "train");
        ck_assert_int_eq(json_integer_at(train, "tp"), 1);
    }
    list = json_at(list, "[1].method");
    ck_assert_str_eq(json_text_at(list, "[0]"), "shm");
    ck_assert_str_eq(json_text_at(list, "[1]"), "shm");
    json_decref(document);
}

LOOP_TEST(test_overrides_null_removes, 5)
{
    static const char *const removals[] = {
        "scenarios.*.method=null", "scenarios.one=null",
        "model.megatron.*=null", "nodes=null", "nodes.*=null"};
    static const char *const left[] = {
        "{'scenarios':[{'name':'one','train':{'tp':2},'infer':{}},{'name':'one."
        "x=2','train':{'tp':2},'infer':{}}]}",
        "{'scenarios':[{'name':'one.x=2','train':{'tp':2},'infer':{},'method':["
        "'host','tcp']}]}",
        "{'model':{'megatron':{}}}", "{}", "{'nodes':[]}"};
    json_auto_t *document = cluster(), *wanted = cluster();
    json_auto_t *change = json_loads(Q(left[_i]), 0, NULL);
    ck_assert_ptr_nonnull(change);
    ck_assert_int_eq(set(document, removals[_i], NULL), RF_OK);
    json_object_update(wanted, change);
    if (_i == 3) {
        json_object_del(wanted, "nodes");
    }
    ck_assert(json_equal(document, wanted));
}

/* There is a method of that name. */
TEST(test_overrides_warn_where_null_may_mean_the_method)
{
    json_auto_t *document = cluster();
    logged_begin();
    ck_assert_int_eq(set(document, "scenarios[1].train=null", NULL), RF_OK);
    ck_assert_int_eq(set(document, "launch.method=ssh", NULL), RF_OK);
    ck_assert_int_eq(set(document, "launch.method=null", NULL), RF_OK);
    ck_assert_str_eq(logged, "");
    ck_assert_int_eq(set(document, "scenarios.*.method=null", NULL), RF_OK);
    logged_expect(RF_LOG_WARN, 1);
    ck_assert_str_eq(logged,
                     "warning: --set scenarios.*.method=null removes the "
                     "key; for method null type "
                     "'scenarios.*.method=\"null\"'\n");
}

static const struct {
    const char *text, *error;
} bad[] = {
    {"model.num_layers", "needs a value: PATH=VALUE"},
    {"name=", "empty value"},
    {"=1", "c.json: $: expected a name before"},
    {"model..x=1", "c.json: $.model: expected a name before"},
    {"name={'a':1", "value:1"},
    {"name={'a':1,'a':2}", "duplicate object key"},
    {"name.x=1", "c.json: $.name: no member \"x\": not an object or list"},
    {"name[0]=1", "c.json: $.name: no member \"[0]\": not an object"},
    {"model[0]=1", "c.json: $.model: \"[0]=1\" in the path: brackets hold"},
    {"scenarios[x]=1", "c.json: $.scenarios: unknown member \"x\""},
    {"scenarios[0=1", "brackets hold a number or \"*\" and follow a list"},
    {"scenarios[0]x=1", "c.json: $.scenarios: expected \".\", \"[\" or \"=\" "
                        "after \"[0]\", not \"x=1\""},
    {"scenarios.one.x=2.method", "without \"=VALUE\""},
    {"scenarios.2.method=x", "c.json: $.scenarios: unknown member \"2\"; use a "
                             "name, a number from 0 to 1, or \"*\""},
    {"scenarios.onn.method=x",
     "c.json: $.scenarios: unknown member \"onn\" (did you mean \"one\"?)"},
    {"nodes.n.3.slots=1", "c.json: $.nodes: unknown member \"n\""},
    {"links.*.x=1", "c.json: $.links: no members for \"*\""},
    {"timeline=null", "c.json: $: has no such member to remove; for the word "
                      "null type 'timeline=\"null\"'"},
    {"scenarios.*.disk.folder=null", "c.json: $: has no such member to remove"},
    {"name=\xff", "the value is not UTF-8"},
    {"a\xff.b=1", "not UTF-8"},
    {"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=1",
     "nested deeper than 32 levels"},
};

LOOP_TEST(test_overrides_refuse_with_the_place, RF_ARRAY_SIZE(bad))
{
    json_auto_t *document = cluster();
    struct rf_err err = {0};
    ck_assert_int_ne(set(document, Q(bad[_i].text), &err), RF_OK);
    ck_assert_msg(strncmp(err.text, "--set ", 6) == 0, "%s", err.text);
    assert_says(err.text, bad[_i].error);
}

/* Names of one letter are near any digit. */
TEST(test_overrides_take_no_number_for_a_slip_of_a_name)
{
    json_auto_t *document =
        json_loads(Q("{'scenarios': [{'name': 'a'}]}"), 0, NULL);
    struct rf_err err = {0};
    ck_assert_int_ne(set(document, "scenarios[9].method=tcp", &err), RF_OK);
    assert_says(err.text,
                "unknown member \"9\"; use a name, a number from 0 to 0");
}

/* What is set is read like the file itself. */
LOOP_TEST(test_overrides_unknown_members_are_errors_of_the_file, 3)
{
    static const char *const sets[] = {"scenarios.*.iteration=3", "link.x=1",
                                       "scenarios.one.trian.tp=1"};
    static const char *const errors[] = {
        "c.json: $.scenarios[0] (one): unknown key \"iteration\" (did you mean "
        "\"iterations\"?)",
        "c.json: $: unknown key \"link\" (did you mean \"links\"?)",
        "c.json: $.scenarios[0] (one): unknown key \"trian\" (did you mean "
        "\"train\"?)"};
    json_t *document = cluster();
    struct rf_config *config = NULL;
    struct rf_err err = {0};
    assert_ok(set(document, sets[_i], &err), err);
    ck_assert_int_eq(
        rf_config_from_json(document, "c.json", true, &config, &err),
        RF_ERR_CONFIG);
    ck_assert_str_eq(err.text, errors[_i]);
}

TEST(test_overrides_place_nodes_before_members_are_set)
{
    const char *sets[] = {"nodes.b2.port=2200"};
    const struct rf_overrides overrides = {
        .sets = sets, .n_sets = 1, .nodes = "b[1-2]:2"};
    json_t *document = cluster();
    struct rf_config *config = NULL;
    struct rf_err err = {0};
    ck_assert_msg(rf_overrides_apply(&overrides, document, "c.json", &err) ==
                      RF_OK,
                  "%s", err.text);
    assert_ok(rf_config_from_json(document, "c.json", true, &config, &err),
              err);
    ck_assert_uint_eq(config->n_nodes, 2);
    ck_assert_str_eq(config->nodes[1].name, "b2");
    ck_assert_uint_eq(config->nodes[1].port, 2200);
    ck_assert_uint_eq(config->nodes[1].slots, 2);
    rf_config_destroy(config);
}

TEST(test_overrides_errors_of_hosts_name_the_option)
{
    struct rf_overrides overrides = {.nodes = "a["};
    json_auto_t *document = cluster();
    struct rf_err err = {0};
    ck_assert_int_eq(rf_overrides_apply(&overrides, document, "c", &err),
                     RF_ERR_CONFIG);
    ck_assert_str_eq(err.text, "--nodes: \"a[\": a bracket is not closed");
    overrides = (struct rf_overrides){.hostfile = "/nonexistent"};
    ck_assert_int_eq(rf_overrides_apply(&overrides, document, "c", &err),
                     RF_ERR_CONFIG);
    ck_assert_msg(strstr(err.text, "--hostfile: /nonexistent: ") == err.text,
                  "%s", err.text);
}
