/* A configuration written down so that it needs no other file. */
#include <unistd.h>

#include "tests/lib/configured.h"
#include "tests/lib/quotes.h"
#include "tests/unit/unit.h"

#define MODEL                                                                  \
    "'model': {'megatron': {'num_layers': 2, 'hidden_size': 64, "              \
    "'num_attention_heads': 4, 'vocab_size': 128}}"

static struct rf_config *read_config(json_t *document, const char *file)
{
    struct rf_config *config = NULL;
    struct rf_err err = {0};
    ck_assert_msg(rf_config_from_json(document, file, true, &config, &err) ==
                      RF_OK,
                  "%s", err.text);
    return config;
}

static struct rf_config *parse(const char *text)
{
    return read_config(json_loads(Q(text), 0, NULL), "dir/c.json");
}

static const char *text_at(const json_t *object, const char *part,
                           const char *key)
{
    return json_string_value(
        json_object_get(json_object_get(object, part), key));
}

TEST(test_complete_means_the_same_in_another_folder)
{
    AUTO(rf_config) *config = parse(
        "{'name': 't', 'launch': {'timeout_s': 7, 'env': {'A': 'b'}}, "
        "'control': {'port_range': [5000, 5010]}, 'nodes': [{'host': 'n', "
        "'slots': 4, 'user': 'u', 'identity': 'key'}], " MODEL
        ", 'links': {'link_gbytes_per_s': 2}, 'scenarios': [{'name': 's', "
        "'train': {'tp': 2}, 'infer': {}, 'method': ['host', 'tcp']}]}");
    json_auto_t *first =
        rf_config_complete(config, config->model, config->scenarios[1].value);
    AUTO(rf_config) *again = read_config(json_deep_copy(first), "else/r.json");
    json_auto_t *second =
        rf_config_complete(again, again->model, again->scenarios[0].value);
    ck_assert(json_equal(first, second));
    ck_assert_uint_eq(again->n_scenarios, 1);
    ck_assert_str_eq(again->scenarios[0].name, "s-method=tcp");
    ck_assert(json_equal(config->model, again->model));
    ck_assert_uint_eq(again->control.port_last, 5010);
    ck_assert_uint_eq(again->launch.timeout_s, 7);
    ck_assert_double_eq(again->links.all[0].link_gbytes_per_s, 2);
}

TEST(test_complete_has_absolute_paths_and_defaults)
{
    AUTO(rf_config) *config = parse(
        "{'launch': {'method': 'local', 'worker': 'bin/worker', "
        "'known_hosts': 'known'}, 'nodes': [{'host': 'n', 'slots': 4, "
        "'identity': '/keys/id'}], " MODEL
        ", 'scenarios': [{'name': 's', 'train': {'tp': 2}, 'infer': {}}]}");
    json_auto_t *out =
        rf_config_complete(config, config->model, config->scenarios[0].value);
    char here[4096], want[4200];
    ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
    snprintf(want, sizeof(want), "%s/dir/known", here);
    ck_assert_str_eq(text_at(out, "launch", "known_hosts"), want);
    snprintf(want, sizeof(want), "%s/bin/worker", here);
    ck_assert_str_eq(text_at(out, "launch", "worker"), want);
    ck_assert_str_eq(text_at(out, "control", "address"), "auto");
    ck_assert_str_eq(json_text_at(out, "nodes[0].identity"), "/keys/id");
}
