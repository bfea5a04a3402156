/* Tables of schemas in Markdown. See reference.h. */
#include "tests/unit/transport/control/reference.h"

#include <string.h>

#include "transport/control/message_fields.h"

/* "msg_hello" is hello. */
static const char *short_name(const struct rf_schema *schema)
{
    const char *underscore = strchr(schema->name, '_');
    return underscore != NULL ? underscore + 1 : schema->name;
}

static const char *const type_names[] = {
    [RF_FIELD_BOOL] = "true or false",
    [RF_FIELD_U32] = "integer",
    [RF_FIELD_U64] = "integer",
    [RF_FIELD_I64] = "integer",
    [RF_FIELD_REAL] = "number",
    [RF_FIELD_TEXT] = "string",
    [RF_FIELD_SECRET] = "secret string",
    [RF_FIELD_TREE] = "object",
    [RF_FIELD_PAIRS] = "object",
    [RF_FIELD_U64S] = "list",
    [RF_FIELD_TEXTS] = "list",
    [RF_FIELD_SECRETS] = "list",
    [RF_FIELD_PART] = "",
    [RF_FIELD_MAYBE] = "",
    [RF_FIELD_LIST] = "list",
};

/* Describes a value; the text follows the name of its type. */
static void describe(const struct rf_field *field, char *out, size_t size)
{
    char count[60], each[80];
    rf_schema_describe_count(field, count, sizeof(count));
    rf_schema_describe_bytes(0, field->max, each, sizeof(each));
    out[0] = '\0';
    switch (field->kind) {
    case RF_FIELD_U32:
    case RF_FIELD_U64:
    case RF_FIELD_I64:
    case RF_FIELD_REAL:
        rf_schema_describe_range(field, out, size);
        break;
    case RF_FIELD_TEXT:
    case RF_FIELD_SECRET:
        rf_schema_describe_bytes(field->min, field->max, out, size);
        break;
    case RF_FIELD_PAIRS:
        snprintf(out, size, "%s members: string%s or null", count, each);
        break;
    case RF_FIELD_U64S:
        rf_schema_describe_range(
            &(struct rf_field){.kind = field->kind, .max = field->max}, each,
            sizeof(each));
        snprintf(out, size, "%s: integer%s", count, each);
        break;
    case RF_FIELD_TEXTS:
        snprintf(out, size, "%s: string%s", count, each);
        break;
    case RF_FIELD_SECRETS:
        snprintf(out, size, "%s: secret string%s", count, each);
        break;
    case RF_FIELD_PART:
    case RF_FIELD_MAYBE:
        snprintf(out, size, "`%s`", short_name(field->of));
        break;
    case RF_FIELD_LIST:
        snprintf(out, size, "%s: `%s`", count, short_name(field->of));
        break;
    case RF_FIELD_BOOL:
    case RF_FIELD_TREE:
        break;
    }
}

static const char *presence_of(const struct rf_field *field)
{
    return field->presence == RF_NULLABLE   ? ", may be null"
           : rf_schema_may_be_absent(field) ? ", may be absent"
                                            : "";
}

void reference_print_schema(const struct rf_schema *schema, FILE *to)
{
    fprintf(to, "| key | value | meaning |\n|---|---|---|\n");
    for (size_t i = 0; i < schema->n_fields; i++) {
        const struct rf_field *field = &schema->fields[i];
        char value[200];
        describe(field, value, sizeof(value));
        fprintf(to, "| `%s` | %s%s%s | %s |\n", field->key,
                type_names[field->kind], value, presence_of(field),
                field->meaning);
    }
}

/* A part has a NULL `title` and gets the name that tables use for it. */
static void print_table(const char *title, const struct rf_schema *schema,
                        FILE *to)
{
    if (title != NULL) {
        fprintf(to, "### %s\n\n", title);
    } else {
        fprintf(to, "### `%s`\n\n", strchr(schema->name, '_') + 1);
    }
    reference_print_schema(schema, to);
    fputc('\n', to);
}

void reference_print_messages(FILE *to)
{
#define X(TYPE, name, FIELDS) print_table(#TYPE, &rf_msg_##name##_schema, to);
    RF_SCHEMA_MESSAGES(X)
#undef X
#define X(name, FIELDS) print_table(NULL, &rf_##name##_schema, to);
    RF_SCHEMA_PARTS(X)
#undef X
}
