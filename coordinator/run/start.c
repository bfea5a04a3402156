#include "coordinator/run/start.h"

#include "common/bytes.h"
#include "common/mem.h"
#include "coordinator/preflight/addresses.h"
#include "planner/scenario/spec_fields.h"

static void fill_member(const struct rf_config *config,
                        const struct rf_msg_hello *hello, uint32_t node,
                        struct rf_msg_member *out)
{
    rf_schema_init(&rf_msg_member_schema, out);
    out->name = rf_xstrdup(config->nodes[node].name);
    out->slots = config->nodes[node].slots;
    out->address = rf_xstrdup_or_null(rf_addresses_of(config, hello, node));
}

static void need(struct rf_texts *needs, size_t *capacity, char *path)
{
    RF_PUSH(needs->list, needs->n, *capacity, path);
}

/* Lists the keys that ranks must know: of the scenario and of the objects in
 * it. */
static void list_needs(json_t *scenario, struct rf_texts *needs)
{
    const char *key, *inner;
    json_t *value, *member;
    size_t capacity = 0;
    json_object_foreach (scenario, key, value) {
        if (rf_spec_field_find(rf_spec_fields, key)->bearing ==
            RF_BEARS_ON_NOTHING) {
            continue; /* ranks may ignore it */
        }
        need(needs, &capacity, rf_xasprintf("$.scenario.%s", key));
        json_object_foreach (value, inner, member) {
            need(needs, &capacity,
                 rf_xasprintf("$.scenario.%s.%s", key, inner));
        }
    }
}

void rf_run_start_fill(const struct rf_attempt *attempt,
                       const struct rf_preflight_join *join,
                       const uint8_t key[32], struct rf_msg *out)
{
    const struct rf_config *config = attempt->scenario->config;
    struct rf_msg_start *start = &out->start;
    rf_msg_init(out, RF_MSG_START);
    start->attempt = attempt->number;
    start->model = json_incref(rf_config_model(config, attempt->index));
    start->scenario = json_incref(attempt->scenario->document);
    list_needs(start->scenario, &start->needs);
    start->nodes = rf_xcalloc(config->n_nodes, sizeof(*start->nodes));
    start->n_nodes = config->n_nodes;
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        fill_member(config, rf_preflight_join_hello(join, i), i,
                    &start->nodes[i]);
    }
    start->data_key = rf_xmalloc(2 * 32 + 1);
    rf_hex_encode(key, 32, start->data_key);
}
