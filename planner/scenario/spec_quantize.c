/* Reads "quantize". See spec_quantize.h. */
#include "planner/scenario/spec_quantize.h"

#include "common/json_schema.h"

static enum rf_status read_format(const struct rf_jnode *object, void *out,
                                  const struct rf_spec_nodes *nodes,
                                  struct rf_err *err)
{
    const struct rf_jnode name = rf_jnode_get(object, "format");
    unsigned format = 0;
    (void)nodes;
    RF_TRY(rf_jnode_word(&name, rf_quant_names, &format, err));
    ((struct rf_quantize_spec *)out)->format = &rf_quant_formats[format];
    return RF_OK;
}

static json_t *write_format(const void *in, const struct rf_spec_nodes *nodes)
{
    (void)nodes;
    return json_string(((const struct rf_quantize_spec *)in)->format->name);
}

static json_t *format_schema(void)
{
    return rf_json_schema_words(rf_quant_names, NULL);
}

const struct rf_spec_field rf_quantize_fields[] = {
    {"format", .required = true, .read = read_format, .write = write_format,
     .schema = format_schema},
    {"at", RF_SPEC_SWITCH,
     .offset = offsetof(struct rf_quantize_spec, at_sender),
     .words = (const char *const[]){"receiver", "sender", NULL}},
    {"overlap", RF_SPEC_BOOL,
     .offset = offsetof(struct rf_quantize_spec, overlaps)},
    {.key = NULL}};

enum rf_status rf_quantize_spec_read(const struct rf_jnode *node,
                                     struct rf_quantize_spec *out,
                                     const struct rf_spec_nodes *nodes,
                                     struct rf_err *err)
{
    unsigned format = 0;
    if (node->value == NULL) {
        return RF_OK;
    }
    if (json_is_object(node->value)) {
        return rf_spec_fields_read(rf_quantize_fields, node, out, nodes, err);
    }
    RF_TRY(rf_jnode_word(node, rf_quant_names, &format, err));
    out->format = &rf_quant_formats[format];
    return RF_OK;
}

json_t *rf_quantize_spec_write(const struct rf_quantize_spec *quantize,
                               const struct rf_spec_nodes *nodes)
{
    return quantize->format != NULL
               ? rf_spec_fields_write(rf_quantize_fields, quantize, nodes)
               : NULL;
}

json_t *rf_quantize_spec_schema(void)
{
    return rf_json_schema_either(rf_json_schema_words(rf_quant_names, NULL),
                                 rf_spec_fields_schema(rf_quantize_fields));
}
