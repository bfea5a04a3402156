/* Reads "quantize". See spec_quantize.h. */
#include "planner/scenario/spec_quantize.h"

#include "common/json_schema.h"

static const char *const places[] = {"receiver", NULL};

enum rf_status rf_quantize_spec_read(const struct rf_jnode *node,
                                     const struct rf_quant_format **out,
                                     struct rf_err *err)
{
    static const char *const keys[] = {"format", "at", NULL};
    struct rf_jnode name = *node;
    unsigned format = 0, place = 0;
    if (node->value == NULL) {
        return RF_OK;
    }
    if (json_is_object(node->value)) {
        RF_TRY(rf_jnode_check_keys(node, keys, err));
        RF_TRY(rf_jnode_require(node, "format", err));
        RF_TRY(rf_jnode_choice(node, "at", places, &place, err));
        name = rf_jnode_get(node, "format");
    }
    RF_TRY(rf_jnode_word(&name, rf_quant_names, &format, err));
    *out = &rf_quant_formats[format];
    return RF_OK;
}

json_t *rf_quantize_spec_write(const struct rf_quant_format *format)
{
    return format != NULL ? json_pack("{s:s, s:s}", "format", format->name,
                                      "at", places[0])
                          : NULL;
}

json_t *rf_quantize_spec_schema(void)
{
    json_t *object = rf_json_schema_object();
    rf_json_schema_add(object, "format",
                       rf_json_schema_words(rf_quant_names, NULL));
    rf_json_schema_add(object, "at", rf_json_schema_words(places, NULL));
    rf_json_schema_require(object, "format");
    return rf_json_schema_either(rf_json_schema_words(rf_quant_names, NULL),
                                 object);
}
