/* Folders that nodes have to share, judged by what they tell in HELLO. */
#include "coordinator/preflight/folders.h"
#include "tests/lib/configured.h"
#include "tests/unit/unit.h"

#define SIDES "'train': {'tp': 6}, 'infer': {'tp': 2}"
#define CLUSTER(scenarios)                                                     \
    "{'nodes': [{'host': 'a', 'slots': 2}, {'host': 'b', 'slots': 2}, "        \
    "{'host': 'c', 'slots': 2}], 'launch': {'method': 'local'}, 'model': "     \
    "{'megatron': {'num_layers': 2, 'hidden_size': 48, "                       \
    "'num_attention_heads': 12, 'vocab_size': 700}}, 'scenarios': [" scenarios \
    "]}"
#define DISK(name, folder)                                                     \
    "{'name': '" name "', 'method': ['disk', 'host'], " SIDES                  \
    ", 'disk': {'folder': '" folder "'}}"

#define HELLO "{'protocol': [1, 1], 'node': 0, 'control': 'tcp', 'methods': {}"
#define TOLD(sees)                                                             \
    HELLO ", 'folders': [{'path': '/other', 'error': 'x', 'sees': []}, "       \
          "{'path': '/one', 'error': null, 'sees': [" sees "]}]}"

static const struct {
    const char *hellos[3]; /* NULL: the node has not joined */
    const char *says[3];   /* all NULL: may run */
} verdicts[] = {
    /* in whatever order they came */
    {{TOLD(""), TOLD("0"), TOLD("0, 1")}, {NULL}},
    {{TOLD("1, 2"), TOLD(""), TOLD("1")}, {NULL}},
    {{TOLD("1"), TOLD(""), TOLD("0, 1")}, {NULL}},
    /* each on its own */
    {{TOLD(""), TOLD(""), TOLD("")},
     {"/one", "a file from a", "visible on b, c;"}},
    /* one of them, the first, the last */
    {{TOLD("2"), TOLD(""), TOLD("")}, {"/one", "visible on b;", "method host"}},
    {{TOLD(""), TOLD("2"), TOLD("")},
     {"/one", "a file from a", "visible on b, c"}},
    {{TOLD(""), TOLD("0"), TOLD("1")},
     {"/one", "a file from a", "visible on c;"}},
    /* not there */
    {{TOLD("1"), TOLD(""),
      HELLO ", 'folders': [{'path': '/one', 'error': 'Permission denied', "
            "'sees': []}]}"},
     {"folder /one on c", "Permission denied", "be writable"}},
    /* says nothing, or has not joined */
    {{TOLD("1"), TOLD(""), HELLO "}"}, {NULL}},
    {{TOLD("1"), TOLD(""), NULL}, {NULL}},
};

LOOP_TEST(test_folder_verdicts, RF_ARRAY_SIZE(verdicts))
{
    AUTO(rf_config) *config = NULL;
    AUTO(rf_model) *model = NULL;
    AUTO(rf_scenario) *scenario = NULL;
    struct rf_err err = {.text = ""};
    struct rf_msg_hello decoded[3];
    const struct rf_msg_hello *hellos[3];
    enum rf_status status;
    configured(CLUSTER(DISK("x", "/one")), &config, &model);
    assert_ok(rf_scenario_build(config, model, 0, &scenario, &err), err);
    for (int i = 0; i < 3; i++) {
        hellos[i] = configured_hello(verdicts[_i].hellos[i], &decoded[i]);
    }
    status = rf_folders_check(scenario, hellos, &err);
    ck_assert_int_eq(status,
                     verdicts[_i].says[0] == NULL ? RF_OK : RF_ERR_UNSUPPORTED);
    for (int i = 0; i < 3 && verdicts[_i].says[i] != NULL; i++) {
        assert_says(err.text, verdicts[_i].says[i]);
    }
    for (int i = 0; i < 3; i++) {
        rf_schema_free(&rf_msg_hello_schema, &decoded[i]);
    }
}
