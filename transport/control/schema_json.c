/* The JSON Schema of structs. See schema_json.h. */
#include "transport/control/schema_json.h"

/* Bounds are doubles, which INT64_MAX is not. */
static json_t *integer(double min, double max)
{
    return rf_json_schema_integer(
        (uint64_t)(int64_t)min,
        max < (double)INT64_MAX ? (uint64_t)(int64_t)max : INT64_MAX);
}

static json_t *text(double min)
{
    return min > 0 ? rf_json_schema_text() : rf_json_schema_type("string");
}

/* Texts or null by any key. */
static json_t *pairs(void)
{
    json_t *out = rf_json_schema_type("object");
    json_object_set_new(out, "additionalProperties",
                        rf_json_schema_or_null(text(0)));
    return out;
}

static json_t *value_schema(const struct rf_field *field)
{
    const size_t most = (size_t)field->min; /* of a list of plain values */
    switch (field->kind) {
    case RF_FIELD_BOOL:
        return rf_json_schema_type("boolean");
    case RF_FIELD_U32:
    case RF_FIELD_U64:
    case RF_FIELD_I64:
        return integer(field->min, field->max);
    case RF_FIELD_REAL:
        return rf_json_schema_number(field->min, field->max);
    case RF_FIELD_TEXT:
    case RF_FIELD_SECRET:
        return text(field->min);
    case RF_FIELD_TREE:
        return rf_json_schema_type("object");
    case RF_FIELD_PAIRS:
        return pairs();
    case RF_FIELD_U64S:
        return rf_json_schema_list(integer(0, field->max), 0, most);
    case RF_FIELD_TEXTS:
    case RF_FIELD_SECRETS:
        return rf_json_schema_list(text(0), 0, most);
    case RF_FIELD_PART:
    case RF_FIELD_MAYBE:
        return rf_schema_json(field->of);
    case RF_FIELD_LIST:
        return rf_json_schema_list(rf_schema_json(field->of),
                                   (size_t)field->min, (size_t)field->max);
    }
    return NULL;
}

json_t *rf_schema_json(const struct rf_schema *schema)
{
    json_t *out = rf_json_schema_object();
    for (size_t i = 0; i < schema->n_fields; i++) {
        const struct rf_field *field = &schema->fields[i];
        const bool written =
            field->kind == RF_FIELD_LIST || !rf_schema_may_be_absent(field);
        const enum rf_presence how = written ? RF_REQUIRED
                                     : field->kind == RF_FIELD_MAYBE
                                         ? RF_OPTIONAL
                                         : field->presence;
        rf_json_schema_describe(out, field->key, how, value_schema(field));
    }
    return out;
}
