/* Scenarios are planned once, within a budget of memory. */
#include <string.h>

#include "common/mem.h"
#include "coordinator/scenario/scenario_set.h"
#include "tests/lib/configured.h"
#include "tests/lib/logged.h"
#include "tests/unit/unit.h"

AUTO_POINTER(rf_scenario_set, rf_scenario_set_destroy)

#define CLUSTER                                                                \
    "{'launch': {'method': 'local'}, 'nodes': [{'host': 'a', 'slots': 4}], "   \
    "'model': {'megatron': {'num_layers': 2, 'hidden_size': 64, "              \
    "'num_attention_heads': 4, 'vocab_size': 128}}, 'scenarios': [%s]}"

struct lab {
    struct rf_config *config;
    struct rf_model *model;
};

static struct lab lab_of(const char *scenarios)
{
    struct lab lab;
    AUTO_FREE char *text = rf_xasprintf(CLUSTER, scenarios);
    configured(text, &lab.config, &lab.model);
    return lab;
}

/* Of twenty scenarios that are equal but for their names. */
static struct lab lab_of_twenty(void)
{
    struct lab lab;
    char list[2000] = "";
    for (unsigned i = 0; i < 20; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used,
                 "%s{'name': 's%u', 'train': {'tp': 2}, 'infer': {'tp': 4}}",
                 i > 0 ? ", " : "", i);
    }
    lab = lab_of(list);
    ck_assert_uint_eq(lab.config->n_scenarios, 20);
    return lab;
}

static void lab_free(struct lab *lab)
{
    rf_model_destroy(lab->model);
    rf_config_destroy(lab->config);
}
AUTO_STRUCT(lab, lab_free)

static void count_cb(enum rf_log_level level, const char *line, void *data)
{
    size_t *n_plans = data;
    (void)level;
    *n_plans += strstr(line, ": planned in ") != NULL;
}

/* Adds plans to *n_plans from now on; NULL: no more. */
static void count_plans(size_t *n_plans)
{
    rf_log_init(n_plans != NULL ? RF_LOG_DEBUG : RF_LOG_INFO, NULL);
    rf_log_set_sink(n_plans != NULL ? count_cb : NULL, n_plans);
}

/* Takes every scenario in turn. Returns how many plans that made in all. */
static size_t plans_made(const struct lab *lab, uint64_t budget_bytes)
{
    AUTO(rf_scenario_set) *scenarios = NULL;
    struct rf_err err = {.text = ""};
    size_t n_plans = 0;
    count_plans(&n_plans);
    assert_ok(rf_scenario_set_plan(lab->config, lab->model, budget_bytes,
                                   &scenarios, &err),
              err);
    ck_assert_uint_eq(n_plans, lab->config->n_scenarios);
    for (size_t i = 0; i < lab->config->n_scenarios; i++) {
        AUTO(rf_scenario) *scenario = NULL;
        ck_assert_msg(rf_scenario_set_take(scenarios, i, &scenario, &err) ==
                          RF_OK,
                      "%s", err.text);
        ck_assert_uint_eq(scenario->index, i);
        ck_assert_str_eq(scenario->spec->name, lab->config->scenarios[i].name);
        ck_assert_uint_gt(scenario->schedule->n_ops, 0);
    }
    count_plans(NULL);
    return n_plans;
}

TEST(test_a_scenario_is_planned_once)
{
    AUTO(lab) lab = lab_of_twenty();
    ck_assert_uint_eq(plans_made(&lab, RF_SCENARIOS_BYTES), 20);
}

TEST(test_memory_of_kept_scenarios_is_bounded)
{
    AUTO(lab) lab = lab_of_twenty();
    size_t some;
    ck_assert_uint_eq(plans_made(&lab, 0), 40);
    some = plans_made(&lab, 500 << 10);
    ck_assert_uint_gt(some, 20);
    ck_assert_uint_lt(some, 40);
}

TEST(test_a_scenario_may_be_taken_again)
{
    AUTO(lab) lab =
        lab_of("{'name': 's', 'train': {'tp': 2}, 'infer': {'tp': 4}}");
    AUTO(rf_scenario_set) *scenarios = NULL;
    AUTO(rf_scenario) *first = NULL, *second = NULL;
    size_t n_plans = 0;
    count_plans(&n_plans);
    ck_assert_int_eq(rf_scenario_set_plan(lab.config, lab.model,
                                          RF_SCENARIOS_BYTES, &scenarios, NULL),
                     RF_OK);
    ck_assert_int_eq(rf_scenario_set_take(scenarios, 0, &first, NULL), RF_OK);
    ck_assert_int_eq(rf_scenario_set_take(scenarios, 0, &second, NULL), RF_OK);
    count_plans(NULL);
    ck_assert_ptr_ne(first, second);
    ck_assert_uint_eq(n_plans, 2);
}

TEST(test_the_first_scenario_that_cannot_work_is_named)
{
    struct rf_scenario_set *scenarios = NULL;
    struct rf_err err = {.text = ""};
    AUTO(lab) lab =
        lab_of("{'name': 'good', 'train': {'tp': 2}, 'infer': {'tp': 4}}, "
               "{'name': 'bad', 'train': {'tp': 3}, 'infer': {'tp': 4}}");
    ck_assert_int_eq(rf_scenario_set_plan(lab.config, lab.model,
                                          RF_SCENARIOS_BYTES, &scenarios, &err),
                     RF_ERR_CONFIG);
    ck_assert_ptr_null(scenarios);
    assert_says(err.text, "$.scenarios[1] (bad)");
}

TEST(test_members_that_cannot_work_are_left_out_where_allowed)
{
    AUTO(lab) lab = lab_of("{'name': 's', 'impossible': 'skip', 'train': "
                           "{'tp': [1, 3, 2]}, 'infer': {'tp': 4}}");
    AUTO(rf_scenario_set) *scenarios = NULL;
    AUTO(rf_scenario) *second = NULL;
    logged_begin();
    ck_assert_int_eq(rf_scenario_set_plan(lab.config, lab.model,
                                          RF_SCENARIOS_BYTES, &scenarios, NULL),
                     RF_OK);
    logged_end();
    ck_assert_ptr_eq(strstr(logged, "2 of 3 scenarios, 1 skipped\nskipped: "),
                     logged);
    ck_assert_uint_eq(lab.config->n_scenarios, 2);
    ck_assert_uint_eq(lab.config->n_skipped, 1);
    ck_assert_str_eq(lab.config->skipped[0].name, "s-train.tp=3");
    assert_says(lab.config->skipped[0].reason, "tp 3");
    ck_assert_int_eq(rf_scenario_set_take(scenarios, 1, &second, NULL), RF_OK);
    ck_assert_str_eq(second->spec->name, "s-train.tp=2");
}
