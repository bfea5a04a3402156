/*
 * Models: the entry point that picks a reader, and the reader of one tensor.
 *
 * A reader that fails leaves a partly filled model, which rf_model_from_json()
 * destroys.
 */
#include "planner/families/model_read.h"

#include <string.h>

#include "common/mem.h"
#include "common/json_schema.h"
#include "planner/families/components.h"
#include "planner/families/model_build.h"
#include "planner/families/model_config.h"
#include "planner/families/model_fields.h"
#include "planner/families/model_manifest.h"
#include "planner/families/model_megatron.h"
#include "planner/model/shape_json.h"

static enum rf_status read_tensor(const struct rf_jnode *node,
                                  struct rf_model *model, struct rf_err *err)
{
    static const char *const keys[] = {"tensor", "name", "unknown_tensors",
                                       NULL};
    static const char *const inner[] = {"name", "shape", "dtype", NULL};
    struct rf_family_draft draft = {.name = "tensor", .dtype = RF_F32};
    struct rf_jnode tensor = rf_jnode_get(node, "tensor");
    const char *name = "tensor";
    RF_TRY(rf_jnode_check_keys(node, keys, err));
    RF_TRY(rf_jnode_check_keys(&tensor, inner, err));
    RF_TRY(rf_jnode_string(node, "name", &name, err));
    RF_TRY(rf_jnode_string(&tensor, "name", &draft.name, err));
    RF_TRY(rf_shape_from_json(&tensor, &draft.ndim, draft.shape, err));
    RF_TRY(rf_dtype_from_json(&tensor, "dtype", &draft.dtype, err));
    if (strpbrk(draft.name, "{}") != NULL) {
        return rf_jnode_fail(&tensor, err, "a name must not contain braces");
    }
    model->name = rf_xstrdup(name);
    model->model_type = rf_xstrdup("tensor");
    model->dtype = draft.dtype;
    return rf_model_add_family(model, &draft, &tensor, err);
}

typedef enum rf_status (*reader_fn)(const struct rf_jnode *node,
                                    struct rf_model *model, struct rf_err *err);

static const struct {
    const char *key;
    reader_fn read;
} readers[] = {
    /* "manifest" first: it may have "config" beside it */
    {"manifest", rf_model_read_manifest},
    {"config", rf_model_read_config},
    {"megatron", rf_model_read_megatron},
    {"tensor", read_tensor},
};

static const char *const unknown_names[] = {"error", "replicate", NULL};

static enum rf_status read_unknown(const struct rf_jnode *node,
                                   struct rf_model *model, struct rf_err *err)
{
    unsigned choice = 0;
    enum rf_status status =
        rf_jnode_choice(node, "unknown_tensors", unknown_names, &choice, err);
    model->replicate_unknown = choice == 1;
    return status;
}

static enum rf_status read_revision(const struct rf_jnode *node,
                                    struct rf_model *model, struct rf_err *err)
{
    const char *revision = NULL;
    RF_TRY(rf_jnode_string(node, "revision", &revision, err));
    model->revision = revision != NULL ? rf_xstrdup(revision) : NULL;
    return RF_OK;
}

enum rf_status rf_model_from_json(const struct rf_jnode *node,
                                  struct rf_model **out, struct rf_err *err)
{
    struct rf_model *model;
    enum rf_status status;
    reader_fn read = NULL;
    if (!json_is_object(node->value)) {
        return rf_jnode_wrong(node, err, "must be an object");
    }
    for (unsigned i = 0; i < RF_ARRAY_SIZE(readers) && read == NULL; i++) {
        if (json_object_get(node->value, readers[i].key) != NULL) {
            read = readers[i].read;
        }
    }
    if (read == NULL) {
        return rf_jnode_fail(node, err,
                             "needs one of \"config\", \"megatron\", "
                             "\"manifest\", \"tensor\"");
    }
    model = rf_xcalloc(1, sizeof(*model));
    status = read(node, model, err);
    RF_THEN(status, read_unknown(node, model, err));
    RF_THEN(status, read_revision(node, model, err));
    if (status != RF_OK) {
        rf_model_destroy(model);
        return status;
    }
    *out = model;
    return RF_OK;
}

/* --- Schema --------------------------------------------------------------- */

static json_t *tensor_schema(void)
{
    json_t *tensor = rf_json_schema_object();
    rf_json_schema_add(tensor, "shape", rf_shape_schema());
    rf_json_schema_add(tensor, "dtype", rf_dtype_schema(true));
    rf_json_schema_require(tensor, "shape");
    return tensor;
}

static json_t *manifest_schema(void)
{
    json_t *entry = tensor_schema();
    rf_json_schema_add(entry, "file", rf_json_schema_text());
    rf_json_schema_add(entry, "offset", rf_json_schema_integer(0, INT64_MAX));
    rf_json_schema_require(entry, "dtype");
    return json_pack("{s:s, s:o}", "type", "object", "additionalProperties",
                     entry);
}

json_t *rf_model_schema(void)
{
    json_t *model = rf_json_schema_object(), *tensor = tensor_schema();
    json_t *megatron = rf_json_schema_object();
    rf_json_schema_add(tensor, "name", rf_json_schema_text());
    rf_model_megatron_add_schemas(megatron);
    rf_json_schema_add(model, "name", rf_json_schema_text());
    rf_json_schema_add(model, "config", rf_json_schema_type("object"));
    rf_json_schema_add(model, "megatron", megatron);
    rf_json_schema_add(model, "manifest", manifest_schema());
    rf_json_schema_add(model, "folder", rf_json_schema_text());
    rf_json_schema_add(model, "tensor", tensor);
    rf_json_schema_add(model, "unknown_tensors",
                       rf_json_schema_words(unknown_names));
    rf_json_schema_add(model, "revision", rf_json_schema_text());
    rf_json_schema_add(
        model, "rules",
        json_pack("{s:[s, s, s]}", "type", "object", "array", "string"));
    rf_components_add_schemas(model);
    rf_model_megatron_add_schemas(model);
    rf_model_field_add_schemas(model); /* a null "dtype" is none */
    return model;
}
