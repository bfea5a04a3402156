/*
 * Models from a Hugging Face config.json, with overrides beside it: the table
 * of its model type, or the model's own rules, list its tensors
 * (planner/families/family_table.h). Nothing here knows a model type.
 *
 * Unknown keys of the config are ignored (many do not affect weights); an
 * override that no expression of the table reads is an error, since it would
 * silently do nothing.
 */
#include "planner/families/model_config.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/families/components.h"
#include "planner/families/config_rules.h"
#include "planner/families/family_rules.h"
#include "planner/families/family_table.h"
#include "planner/families/layer_words.h"
#include "planner/families/model_build.h"
#include "planner/families/model_describe.h"
#include "planner/families/model_fields.h"
#include "planner/families/model_rules.h"
#include "planner/families/unquantized.h"
#include "planner/model/shape_json.h"

/* Keys beside "config" other than overrides. */
static const char *const other_keys[] = {
    "config", "name", "unknown_tensors", "rules", "mtp", "vision", "revision"};

static enum rf_status check_keys(const struct rf_jnode *node,
                                 struct rf_err *err)
{
    const char *keys[RF_MODEL_FIELD_MAX_KEYS + 1];
    memcpy(keys, other_keys, sizeof(other_keys));
    rf_model_field_add_keys(keys, RF_ARRAY_SIZE(other_keys));
    return rf_jnode_check_keys(node, keys, err);
}

static bool is_override(const char *key)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(other_keys); i++) {
        if (strcmp(key, other_keys[i]) == 0) {
            return false;
        }
    }
    return true;
}

static enum rf_status check_overrides_used(const struct rf_values *values,
                                           const char *model_type,
                                           struct rf_err *err)
{
    const char *key;
    json_t *value;
    json_object_foreach (values->overrides.value, key, value) {
        if (is_override(key) && !rf_values_is_used(values, key)) {
            struct rf_jnode node = rf_jnode_get(&values->overrides, key);
            return rf_jnode_fail(&node, err, "does not apply to model type %s",
                                 model_type);
        }
    }
    return RF_OK;
}

/* The type of the language model: the config's own, else the wrapped one's if
 * only that has a table; "x_text" counts as x. */
static enum rf_status
open_table(const struct rf_jnode *config, const struct rf_jnode *rules,
           const struct rf_components *components, const char *model_type,
           struct rf_family_table **out, struct rf_err *err)
{
    const json_t *inner = rf_model_text_config(config->value);
    const char *types[] = {
        model_type, json_string_value(json_object_get(inner, "model_type"))};
    for (size_t i = 0; i < RF_ARRAY_SIZE(types) && *out == NULL; i++) {
        char *type = types[i] != NULL ? rf_xstrdup(types[i]) : NULL;
        size_t length = type != NULL ? strlen(type) : 0;
        enum rf_status status =
            rf_family_table_open(type, rules, components, out, err);
        if (status == RF_OK && *out == NULL && length > 5 &&
            strcmp(type + length - 5, "_text") == 0) {
            type[length - 5] = '\0';
            status = rf_family_table_open(type, rules, components, out, err);
        }
        free(type);
        RF_TRY(status);
    }
    return RF_OK;
}

enum rf_status rf_model_open_table(const struct rf_jnode *node,
                                   const char *model_type,
                                   struct rf_family_table **out,
                                   struct rf_err *err)
{
    struct rf_jnode config = rf_jnode_get(node, "config");
    struct rf_jnode rules = rf_jnode_get(node, "rules");
    const char *word = json_string_value(rules.value);
    struct rf_components components;
    json_t *made = NULL;
    enum rf_status status = RF_OK;
    *out = NULL;
    RF_TRY(rf_components_read(node, &components, err));
    if (word != NULL && strcmp(word, "config") == 0) {
        status = rf_model_config_rules(&config, &made, err);
        rules.value = made;
    } else if (rules.value != NULL && !json_is_object(rules.value) &&
               !json_is_array(rules.value)) {
        return rf_jnode_wrong(&rules, err,
                              "must be a table, a list of rules, or "
                              "\"config\" (docs/MODELS.md)");
    }
    RF_THEN(status,
            open_table(&config, &rules, &components, model_type, out, err));
    if (status == RF_OK && *out == NULL &&
        json_object_get(node->value, "manifest") != NULL) {
        status = rf_components_need_table(&components, err);
    }
    if (status == RF_OK && made != NULL) {
        json_array_append(*out ? (*out)->documents : NULL, made);
    }
    json_decref(made);
    return status;
}

static enum rf_status read_size(struct rf_values *values,
                                struct rf_model *model, struct rf_err *err)
{
    uint64_t n = 0;
    enum rf_status status = rf_rule_decoder_layers(values, &n, err);
    model->n_layers = (uint32_t)n;
    return status;
}

static enum rf_status read_dtype(struct rf_values *values, enum rf_dtype *out,
                                 struct rf_err *err)
{
    const struct rf_model_field *field = rf_model_field_of("dtype");
    struct rf_jnode places[] = {values->overrides, values->config,
                                values->config};
    places[1].value = (json_t *)values->inner;
    for (size_t i = 0; i < RF_ARRAY_SIZE(places); i++) {
        const char *name = field->names[0];
        if (rf_model_field_value(places[i].value, field, &name) != NULL) {
            return rf_dtype_from_json(&places[i], name, out, err);
        }
    }
    return RF_OK;
}

static void tell_towers(const json_t *config,
                        const struct rf_components *chosen,
                        struct rf_model *model)
{
    static const char *const towers[][2] = {
        {"vision_config", "the vision tower"},
        {"audio_config", "the audio tower"},
    };
    for (size_t i = chosen->vision == RF_VISION_LEAVE_OUT ? 0 : 1;
         i < RF_ARRAY_SIZE(towers); i++) {
        if (json_is_object(json_object_get(config, towers[i][0]))) {
            rf_model_not_counted(model, "%s", towers[i][1]);
        }
    }
}

/* Lists the parts of a config that make no tensor of the model. */
static void tell_not_counted(struct rf_values *values, struct rf_model *model)
{
    uint64_t layers = rf_components_left_out(values->table, values);
    if (layers > 0) {
        rf_model_not_counted(model, "%llu multi-token-prediction layer%s",
                             (unsigned long long)layers,
                             layers == 1 ? "" : "s");
    }
    if (json_is_object(
            json_object_get(values->config.value, "quantization_config")) &&
        !rf_values_is_used(values, "quantization_config")) {
        rf_model_not_counted(model,
                             "quantisation scales (weights counted as %s)",
                             rf_dtype_name(model->dtype));
    }
    tell_towers(values->config.value, &values->table->chosen, model);
}

/* Builds the model from the table. */
static enum rf_status build(struct rf_values *values, const char *model_type,
                            struct rf_model *model, struct rf_err *err)
{
    model->dtype = RF_BF16;
    RF_TRY(rf_family_table_mention(values->table, values, err));
    RF_TRY(rf_layer_words_check(values, err));
    RF_TRY(rf_components_check(values->table, values, err));
    RF_TRY(read_size(values, model, err));
    RF_TRY(read_dtype(values, &model->dtype, err));
    RF_TRY(rf_model_add_rules(model, values, &values->config, err));
    RF_TRY(rf_model_describe(model, values, &values->config, false, err));
    json_object_set_new(values->used, "num_hidden_layers", json_true());
    json_object_set_new(values->used, "dtype", json_true());
    tell_not_counted(values, model);
    RF_TRY(rf_model_leave_unquantized(model, values, err));
    return check_overrides_used(values, model_type, err);
}

enum rf_status rf_model_read_config(const struct rf_jnode *node,
                                    struct rf_model *model, struct rf_err *err)
{
    struct rf_jnode config = rf_jnode_get(node, "config");
    struct rf_family_table *table = NULL;
    struct rf_values values;
    const char *model_type = "rules", *name = NULL;
    bool own = json_is_object(json_object_get(node->value, "rules"));
    enum rf_status status;
    RF_TRY(check_keys(node, err));
    if (!json_is_object(config.value)) {
        return rf_jnode_wrong(&config, err,
                              "must be the object of a config.json");
    }
    if (!own) {
        RF_TRY(rf_jnode_require(&config, "model_type", err));
    }
    RF_TRY(rf_jnode_string(&config, "model_type", &model_type, err));
    RF_TRY(rf_jnode_string(node, "name", &name, err));
    RF_TRY(rf_model_open_table(node, model_type, &table, err));
    if (table == NULL) {
        struct rf_jnode type = rf_jnode_get(&config, "model_type");
        return rf_family_table_unknown(&type, model_type, err);
    }
    model->name = name != NULL ? rf_xstrdup(name)
                               : rf_model_config_name(model_type, node->value);
    model->model_type = rf_xstrdup(model_type);
    rf_values_init(&values, node, table);
    status = build(&values, model_type, model, err);
    rf_values_free(&values);
    rf_family_table_destroy(table);
    return status;
}
