/* "variables" and "defaults" of cluster.json. */
#include <string.h>

#include "common/mem.h"
#include "tests/lib/configured.h"
#include "tests/lib/logged.h"
#include "tests/lib/quotes.h"
#include "tests/unit/unit.h"

#define BASE                                                                   \
    "'nodes': [{'host': 'a', 'slots': 4}], 'model': {'megatron': "             \
    "{'num_layers': 2, 'hidden_size': 64, 'num_attention_heads': 4, "          \
    "'vocab_size': 128}}"

static void expect_value(const struct rf_config *config, size_t index,
                         const char *text)
{
    json_auto_t *want = json_loads(Q(text), 0, NULL);
    ck_assert_ptr_nonnull(want);
    ck_assert_msg(json_equal(config->scenarios[index].value, want), "%s",
                  json_dumps(config->scenarios[index].value, 0));
}

TEST(test_suite_scenarios_have_the_defaults_that_they_do_not_override)
{
    AUTO(rf_config) *config = configured_only(
        "{" BASE ", 'defaults': {'method': 'tcp', 'iterations': "
        "{'ci_percent': 5, 'max': 9}, 'train': {'tp': 2, 'pp': 2}, "
        "'infer': {'tp': 4}}, 'scenarios': [{'name': 'a'}, {'name': 'b', "
        "'method': 'host', 'iterations': 3, 'train': {'pp': 1, 'dp': 2}}]}");
    ck_assert_uint_eq(config->n_scenarios, 2);
    expect_value(config, 0,
                 "{'name': 'a', 'method': 'tcp', 'iterations': {'ci_percent': "
                 "5, 'max': 9}, 'train': {'tp': 2, 'pp': 2}, "
                 "'infer': {'tp': 4}}");
    expect_value(config, 1,
                 "{'name': 'b', 'method': 'host', 'iterations': 3, 'train': "
                 "{'tp': 2, 'pp': 1, 'dp': 2}, 'infer': {'tp': 4}}");
    ck_assert_ptr_nonnull(json_object_get(config->document, "defaults"));
}

TEST(test_suite_variables_replace_whole_values)
{
    AUTO(rf_config) *config = configured_only(
        "{" BASE ", 'variables': {'n': 4, 'methods': ['host', 'tcp'], 'side': "
        "{'tp': 2}}, 'defaults': {'infer': {'tp': '$n'}}, 'scenarios': "
        "[{'name': 'a', 'method': '$methods', 'train': '$side'}]}");
    ck_assert_uint_eq(config->n_scenarios, 2);
    expect_value(config, 1,
                 "{'name': 'a-method=tcp', 'method': 'tcp', 'train': "
                 "{'tp': 2}, 'infer': {'tp': 4}}");
}

TEST(test_suite_variables_reach_the_model)
{
    AUTO(rf_config) *config = configured_only(
        "{'nodes': [{'host': 'a', 'slots': 1}], 'variables': {'layers': 3}, "
        "'model': {'megatron': {'num_layers': '$layers', 'hidden_size': 64, "
        "'num_attention_heads': 4, 'vocab_size': 128}}, 'scenarios': "
        "[{'name': 'a', 'train': {}, 'infer': {}}]}");
    ck_assert_int_eq(json_integer_at(config->model, "megatron.num_layers"), 3);
}

TEST(test_suite_a_variable_that_nothing_uses_is_warned_of)
{
    struct rf_config *config;
    logged_begin();
    config =
        configured_only("{" BASE ", 'variables': {'n': 4}, 'scenarios': [{"
                        "'name': 'a', 'train': {'tp': '$n'}, 'infer': {}}]}");
    ck_assert_str_eq(logged, "");
    rf_config_destroy(config);
    config =
        configured_only("{" BASE ", 'variables': {'n': 4, 'm': '$n', 'tp': 1}, "
                        "'scenarios': [{'name': 'n', 'train': {'tp': '$n'}, "
                        "'infer': {'tp': '$tp'}}]}");
    logged_expect(RF_LOG_WARN, 1);
    assert_says(logged, "c.json: $.variables.m: ");
    assert_says(logged, "\"$m\"");
    rf_config_destroy(config);
}

TEST(test_suite_slow_scenarios_run_when_asked_for)
{
    static const char text[] =
        "{" BASE ", 'defaults': {'train': {}, 'infer': {}}, 'scenarios': "
        "[{'name': 'a'}, {'name': 'b', 'slow': true, 'method': ['host', "
        "'tcp']}]}";
    static const char *const globs[] = {"b"};
    static const struct {
        size_t n_globs, n, n_left;
        bool slow;
    } cases[] = {{0, 1, 2, false}, {0, 3, 0, true}, {1, 2, 0, false}};
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        AUTO(rf_config) *config = configured_only(text);
        ck_assert_ptr_null(json_object_get(config->scenarios[1].value, "slow"));
        ck_assert_int_eq(rf_config_select(config, globs, cases[i].n_globs,
                                          cases[i].slow, NULL),
                         RF_OK);
        ck_assert_uint_eq(config->n_scenarios, cases[i].n);
        ck_assert_uint_eq(config->n_slow_left, cases[i].n_left);
    }
}

static json_int_t layers_of(const struct rf_config *config, size_t index)
{
    return json_integer_at(rf_config_model(config, index),
                           "megatron.num_layers");
}

#define TINY(name, layers)                                                     \
    "{'name': '" name "', 'megatron': {'num_layers': " layers                  \
    ", 'hidden_size': 64, 'num_attention_heads': 4, 'vocab_size': 128}}"

TEST(test_suite_models_make_a_matrix)
{
    AUTO(rf_config) *config = configured_only(
        "{" BASE ", 'defaults': {'train': {}, 'infer': {}}, 'scenarios': "
        "[{'name': 'a'}, {'name': 'b', 'model': [" TINY("x", "3") ", " TINY(
            "y", "5") "]}, {'name': 'c', 'model': " TINY("z", "[6, 7]") "}]}");
    static const char *const names[] = {"a", "b-model=x", "b-model=y",
                                        "c-model.megatron.num_layers=6",
                                        "c-model.megatron.num_layers=7"};
    static const int layers[] = {2, 3, 5, 6, 7};
    ck_assert_uint_eq(config->n_scenarios, 5);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_str_eq(config->scenarios[i].name, names[i]);
        ck_assert_int_eq(layers_of(config, i), layers[i]);
        ck_assert_ptr_null(
            json_object_get(config->scenarios[i].value, "model"));
    }
}

TEST(test_suite_a_model_without_a_source_is_the_files_with_other_sizes)
{
    AUTO(rf_config) *config = configured_only(
        "{'nodes': [{'host': 'a', 'slots': 1}], 'model': {'name': 'm', "
        "'config': {'model_type': 'qwen3', 'architectures': ['A']}}, "
        "'scenarios': [{'name': 'a', 'model': {'num_layers': [2, 4]}, "
        "'train': {}, 'infer': {}}]}");
    const json_t *model;
    ck_assert_uint_eq(config->n_scenarios, 2);
    model = rf_config_model(config, 1);
    ck_assert_int_eq(json_integer_at(model, "num_layers"), 4);
    ck_assert_ptr_nonnull(json_object_get(model, "config"));
    ck_assert_ptr_null(json_object_get(model, "name"));
}

static const struct {
    const char *text, *path, *rule;
} wrong[] = {
    {"'variables': {'count': 4}, 'scenarios': [{'name': 's', 'train': {'tp': "
     "'$coumt'}}]",
     "$.scenarios[0].train.tp", "did you mean \"$count\"?"},
    {"'scenarios': [{'name': 's', 'method': ['host', '$m']}]",
     "$.scenarios[0].method[1]", "define it in \"variables\""},
    {"'variables': [1], 'scenarios': []", "$.variables", "object"},
    {"'defaults': 1, 'scenarios': []", "$.defaults", "object"},
    {"'defaults': {'name': 'x'}, 'scenarios': []", "$.defaults.name",
     "each scenario needs its own name"},
    {"'defaults': {'metod': 'host'}, 'scenarios': [{'name': 's', 'train': {}, "
     "'infer': {}}]",
     "$.scenarios[0] (s)", "metod"},
    {"'scenarios': [{'name': 's', 'method': ['a b', 'A_b'], 'train': {}}]",
     "$.scenarios[0].method[1] (s)", "makes the same name as [0]: \"A_b\""},
    {"'scenarios': [{'name': 's', 'model': [{'name': 'm', 'x': 1}, {'config': "
     "'d/m.json'}], 'train': {}}]",
     "$.scenarios[0].model[1] (s)", "makes the same name as [0]: \"m\""},
    {"'scenarios': [{'name': 's', 'model': ['a', 'b'], 'train': {}}]",
     "$.scenarios[0].model[0] (s)", "each model of a matrix"},
    {"'scenarios': [{'name': 's', 'model': {'checkpoint': '/absent'}, 'train': "
     "{}, 'infer': {}}]",
     "$.scenarios[0].model (s)", "/absent is not on this machine"},
    {"'scenarios': [{'name': 's', 'slow': [true, false]}]",
     "$.scenarios[0].slow (s)", "true or false"},
    {"'scenarios': [{'name': 's', 'impossible': 'ignore'}]",
     "$.scenarios[0].impossible (s)", "skip"},
};

LOOP_TEST(test_suite_errors_name_place_and_rule, RF_ARRAY_SIZE(wrong))
{
    struct rf_config *config = NULL;
    struct rf_err err = {0};
    char text[1024], place[128];
    snprintf(text, sizeof(text), "{" BASE ", %s}", wrong[_i].text);
    ck_assert_int_eq(configured_read(text, "c.json", true, &config, &err),
                     RF_ERR_CONFIG);
    snprintf(place, sizeof(place), "c.json: %s: ", wrong[_i].path);
    ck_assert_msg(strncmp(err.text, place, strlen(place)) == 0, "%s", err.text);
    assert_says(err.text, wrong[_i].rule);
}
