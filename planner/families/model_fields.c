/* The table of fields, and the names of models with overrides. */
#include "planner/families/model_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/json_schema.h"
#include "common/text.h"
#include "planner/model/shape_json.h"

#define SIZE 1, RF_MODEL_MAX_SIZE
#define HEADS 1, RF_MODEL_MAX_HEADS
#define LAYERS 1, RF_MODEL_MAX_LAYERS
#define EXPERTS 0, RF_MODEL_MAX_EXPERTS

/* In the order in which a model's name lists them. */
static const struct rf_model_field fields[] = {
    {{"num_hidden_layers", "num_layers"}, RF_MODEL_FIELD_INTEGER, LAYERS},
    {{"dtype", "torch_dtype"}, RF_MODEL_FIELD_DTYPE, 0, 0},
    {{"vocab_size"}, RF_MODEL_FIELD_INTEGER, SIZE},
    {{"hidden_size"}, RF_MODEL_FIELD_INTEGER, SIZE},
    {{"intermediate_size"}, RF_MODEL_FIELD_INTEGER, SIZE},
    {{"num_attention_heads"}, RF_MODEL_FIELD_INTEGER, HEADS},
    {{"num_key_value_heads"}, RF_MODEL_FIELD_INTEGER, HEADS},
    {{"head_dim"}, RF_MODEL_FIELD_INTEGER, HEADS},
    {{"tie_word_embeddings"}, RF_MODEL_FIELD_BOOL, 0, 1},
    {{"num_experts", "n_routed_experts", "num_local_experts"},
     RF_MODEL_FIELD_INTEGER,
     EXPERTS},
    {{"moe_intermediate_size"}, RF_MODEL_FIELD_INTEGER, SIZE},
    {{"n_shared_experts"}, RF_MODEL_FIELD_INTEGER, EXPERTS},
    {{"first_k_dense_replace"}, RF_MODEL_FIELD_INTEGER, 0, RF_MODEL_MAX_LAYERS},
    {{"kv_lora_rank"}, RF_MODEL_FIELD_INTEGER, HEADS},
    {{"q_lora_rank"}, RF_MODEL_FIELD_INTEGER, HEADS},
    {{"qk_nope_head_dim"}, RF_MODEL_FIELD_INTEGER, HEADS},
    {{"qk_rope_head_dim"}, RF_MODEL_FIELD_INTEGER, HEADS},
    {{"v_head_dim"}, RF_MODEL_FIELD_INTEGER, HEADS},
};

const struct rf_model_field *rf_model_field_of(const char *name)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(fields); i++) {
        for (size_t k = 0; k < RF_MODEL_FIELD_MAX_NAMES && fields[i].names[k];
             k++) {
            if (strcmp(fields[i].names[k], name) == 0) {
                return &fields[i];
            }
        }
    }
    return NULL;
}

void rf_model_field_add_keys(const char **keys, size_t n)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(fields); i++) {
        for (size_t k = 0; k < RF_MODEL_FIELD_MAX_NAMES && fields[i].names[k];
             k++) {
            keys[n++] = fields[i].names[k];
        }
    }
    keys[n] = NULL;
}

void rf_model_field_add_schemas(json_t *object)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(fields); i++) {
        const struct rf_model_field *field = &fields[i];
        for (size_t k = 0; k < RF_MODEL_FIELD_MAX_NAMES && field->names[k];
             k++) {
            rf_json_schema_add(
                object, field->names[k],
                field->kind == RF_MODEL_FIELD_DTYPE
                    ? rf_json_schema_either(rf_dtype_schema(true),
                                            rf_json_schema_type("null"))
                : field->kind == RF_MODEL_FIELD_BOOL
                    ? rf_json_schema_type("boolean")
                    : rf_json_schema_integer(field->min, field->max));
        }
    }
}

json_t *rf_model_field_value(const json_t *object,
                             const struct rf_model_field *field,
                             const char **name)
{
    json_t *value = json_object_get(object, *name);
    if (value != NULL && !json_is_null(value)) {
        return value;
    }
    for (size_t k = 0; k < RF_MODEL_FIELD_MAX_NAMES && field->names[k]; k++) {
        value = json_object_get(object, field->names[k]);
        if (value != NULL && !json_is_null(value)) {
            *name = field->names[k];
            return value;
        }
    }
    return NULL;
}

/* "num_layers 2"; NULL: unchanged. Freed with free(). */
static char *override_text(const json_t *model,
                           const struct rf_model_field *field)
{
    const char *name = field->names[0], *config_name = name, *text;
    const json_t *value = rf_model_field_value(model, field, &name);
    const json_t *config =
        rf_model_text_config(json_object_get(model, "config"));
    const json_t *old = rf_model_field_value(config, field, &config_name);
    char number[24];
    if (value == NULL || json_equal(value, old)) {
        return NULL;
    }
    snprintf(number, sizeof(number), "%lld",
             (long long)json_integer_value(value));
    text = json_is_string(value)    ? json_string_value(value)
           : json_is_boolean(value) ? json_is_true(value) ? "true" : "false"
                                    : number;
    return rf_xasprintf("%s %.*s", name, rf_text_head(text, 32), text);
}

/* The same for optional parts. */
static char *part_text(const json_t *model, const char *key)
{
    const json_t *value = json_object_get(model, key);
    const char *text = json_string_value(value);
    if (json_is_true(value)) {
        return rf_xstrdup(key);
    }
    return text != NULL && strcmp(text, "leave_out") != 0
               ? rf_xasprintf("%s %.*s", key, rf_text_head(text, 32), text)
               : NULL;
}

char *rf_model_config_name(const char *base, const json_t *model)
{
    static const char *const parts[] = {"mtp", "vision"};
    char *name = rf_xasprintf("%.*s", rf_text_head(base, 160), base);
    const size_t n = RF_ARRAY_SIZE(fields);
    bool any = false;
    for (size_t i = 0; i < n + RF_ARRAY_SIZE(parts); i++) {
        char *text = i < n ? override_text(model, &fields[i])
                           : part_text(model, parts[i - n]);
        if (text != NULL) {
            rf_text_add(&name, any ? ", " : " (", "%s", text);
            any = true;
            free(text);
        }
    }
    if (any) {
        rf_text_add(&name, "", ")");
    }
    return name;
}

const json_t *rf_model_text_config(const json_t *config)
{
    static const char *const inner[] = {"text_config", "llm_config"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(inner); i++) {
        const json_t *member = json_object_get(config, inner[i]);
        if (json_is_object(member)) {
            return member;
        }
    }
    return config;
}
