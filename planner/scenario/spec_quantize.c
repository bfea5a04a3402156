/* Reads "quantize". See spec_quantize.h. */
#include "planner/scenario/spec_quantize.h"

#include "common/compiler.h"
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
    return rf_json_schema_words(rf_quant_names);
}

/* 1 / s and x · (1 / s) are normal numbers. */
#define EPS_LEAST 1e-30
#define EPS_MOST 1.

static enum rf_status read_eps(const struct rf_jnode *object, void *out,
                               const struct rf_spec_nodes *nodes,
                               struct rf_err *err)
{
    (void)nodes;
    return rf_jnode_number(object, "eps", EPS_LEAST, EPS_MOST,
                           &((struct rf_quantize_spec *)out)->eps, err);
}

static json_t *write_eps(const void *in, const struct rf_spec_nodes *nodes)
{
    const double eps = ((const struct rf_quantize_spec *)in)->eps;
    (void)nodes;
    return eps > 0 ? json_real(eps) : NULL;
}

static json_t *eps_schema(void)
{
    return rf_json_schema_number(EPS_LEAST, EPS_MOST);
}

const struct rf_spec_field rf_quantize_fields[] = {
    {"format", .required = true, .read = read_format, .write = write_format,
     .schema = format_schema},
    {"at", RF_SPEC_SWITCH,
     .offset = offsetof(struct rf_quantize_spec, at_sender),
     .words = (const char *const[]){"receiver", "sender", NULL},
     .others = (const char *const[]){"source", "sender", "destination",
                                     "receiver", NULL}},
    {"overlap", RF_SPEC_BOOL,
     .offset = offsetof(struct rf_quantize_spec, overlaps)},
    {"eps", .optional = true, .read = read_eps, .write = write_eps,
     .schema = eps_schema},
    {"divide", RF_SPEC_SWITCH, .optional = true,
     .offset = offsetof(struct rf_quantize_spec, divides),
     .words = (const char *const[]){"reciprocal", "exact", NULL}},
    {.key = NULL}};

/* Refuses options of a format that has none. */
static enum rf_status check_options(const struct rf_jnode *object,
                                    const struct rf_quant_format *format,
                                    struct rf_err *err)
{
    static const char *const options[] = {"eps", "divide"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(options); i++) {
        const struct rf_jnode option = rf_jnode_get(object, options[i]);
        if (option.value != NULL && !rf_quant_has_options(format)) {
            return rf_jnode_fail(&option, err,
                                 "%s has one form; fp8_block128 and "
                                 "fp8_block128_ue8m0 have a choice",
                                 format->name);
        }
    }
    return RF_OK;
}

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
        RF_TRY(rf_spec_fields_read(rf_quantize_fields, node, out, nodes, err));
        return check_options(node, out->format, err);
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
    return rf_json_schema_either(rf_json_schema_words(rf_quant_names),
                                 rf_spec_fields_schema(rf_quantize_fields));
}
