/* See configured.h. */
#include "tests/lib/configured.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/families/model_read.h"
#include "tests/lib/asserts.h"
#include "tests/lib/quotes.h"

enum rf_status configured_read(const char *text, const char *file,
                               bool need_nodes, struct rf_config **config,
                               struct rf_err *err)
{
    json_t *document = NULL;
    enum rf_status status =
        rf_json_parse(Q(text), strlen(text), file, &document, err);
    RF_THEN(status,
            rf_config_from_json(document, file, need_nodes, config, err));
    return status;
}

struct rf_config *configured_only(const char *text)
{
    struct rf_config *config = NULL;
    struct rf_err err = {0};
    assert_ok(configured_read(text, "c.json", true, &config, &err), err);
    return config;
}

void configured(const char *text, struct rf_config **config,
                struct rf_model **model)
{
    struct rf_err err = {0};
    struct rf_jnode node;
    *config = configured_only(text);
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

const struct rf_msg_hello *configured_hello(const char *text,
                                            struct rf_msg_hello *out)
{
    struct rf_err err = {0};
    json_auto_t *document = NULL;
    rf_schema_init(&rf_msg_hello_schema, out);
    if (text == NULL) {
        return NULL;
    }
    assert_ok(rf_json_parse(Q(text), strlen(text), "HELLO", &document, &err),
              err);
    assert_ok(
        rf_schema_decode(&rf_msg_hello_schema, document, "HELLO", out, &err),
        err);
    return out;
}
