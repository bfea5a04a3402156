/* See configured.h. */
#include "tests/lib/configured.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/families/model_read.h"
#include "tests/lib/asserts.h"
#include "tests/lib/quotes.h"

void configured(const char *text, struct rf_config **config,
                struct rf_model **model)
{
    struct rf_err err = {0};
    json_t *document = NULL;
    struct rf_jnode node;
    text = Q(text);
    assert_ok(rf_json_parse(text, strlen(text), "c.json", &document, &err),
              err);
    ck_assert_msg(rf_config_from_json(document, "c.json", true, config, &err) ==
                      RF_OK,
                  "%s", err.text);
    if (rf_config_checkpoint(*config) != NULL) {
        return;
    }
    node = rf_jnode_root((*config)->model, "c.json");
    assert_ok(rf_model_from_json(&node, model, &err), err);
}

struct configured_pair configured_pair(const char *scenario)
{
    struct configured_pair pair = {.scenario = NULL};
    struct rf_err err = {0};
    char *text = rf_xasprintf(
        "{'launch': {'method': 'local'}, 'nodes': [{'host': 'a', "
        "'slots': 2}, {'host': 'b', 'slots': 2}], 'model': "
        "{'megatron': {'num_layers': 2, 'hidden_size': 64, "
        "'num_attention_heads': 4, 'vocab_size': 128, 'num_experts': 4, "
        "'moe_ffn_hidden_size': 32}}, 'scenarios': [%s]}",
        scenario);
    configured(text, &pair.config, &pair.model);
    free(text);
    assert_ok(
        rf_scenario_build(pair.config, pair.model, 0, &pair.scenario, &err),
        err);
    return pair;
}

void configured_pair_free(struct configured_pair *pair)
{
    rf_scenario_destroy(pair->scenario);
    rf_model_destroy(pair->model);
    rf_config_destroy(pair->config);
}
