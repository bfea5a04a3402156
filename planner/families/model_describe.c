/*
 * Facts about a model derived from its families, and the numbers of heads,
 * which shapes cannot give: they come from the model's values (keys beside the
 * description, its config, its table). If a model is read from shapes, every
 * attention tensor must agree with them, so that layouts may rely on rows =
 * heads · head size.
 */
#include "planner/families/model_describe.h"

#include <stdlib.h>

#include "common/mem.h"
#include "common/text.h"
#include "planner/families/family_rules.h"
#include "planner/model/roles.h"
#include "planner/model/shape_json.h"

#define MAX_COMPLAINTS 10

static void describe_parts(struct rf_model *model,
                           const struct rf_family *family, bool *has_head)
{
    for (uint32_t p = 0; p < family->n_parts; p++) {
        const struct rf_role_division *division =
            rf_role_division(family->parts[p].role);
        model->mla |= family->parts[p].role == RF_ROLE_MLA_KV_B;
        *has_head |= division->vocabulary && family->stage == RF_STAGE_LAST &&
                     family->component == RF_COMPONENT_NONE;
        if (division->vocabulary && family->stage == RF_STAGE_FIRST) {
            model->vocab = family->parts[p].size;
        }
    }
}

static void describe(struct rf_model *model)
{
    bool has_head = false;
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        if (family->layers != NULL && !family->own_layers) {
            model->n_layers = RF_MAX(model->n_layers,
                                     family->layers[family->n_layers - 1] + 1);
        }
        if (family->has_experts) {
            model->n_experts = RF_MAX(model->n_experts, family->n_experts);
        }
        describe_parts(model, family, &has_head);
    }
    model->tied_embeddings = model->vocab > 0 && !has_head;
}

/* The dtype of most of the model's bytes. */
static void derive_dtype(struct rf_model *model)
{
    uint64_t bytes[RF_DTYPE_COUNT] = {0};
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        bytes[family->dtype] +=
            rf_family_elements(family) * rf_dtype_bytes(family->dtype);
    }
    for (unsigned d = 0; d < RF_DTYPE_COUNT; d++) {
        if (bytes[d] > bytes[model->dtype]) {
            model->dtype = (enum rf_dtype)d;
        }
    }
}

/* Beside latent attention, a q_proj holds heads only, without key and value
 * rows to fuse with. */
static void fix_latent_roles(struct rf_model *model)
{
    for (uint32_t i = 0; model->mla && i < model->n_families; i++) {
        if (model->families[i].role == RF_ROLE_Q) {
            model->families[i].role = RF_ROLE_MLA_Q_B;
            model->families[i].parts[0].role = RF_ROLE_MLA_Q_B;
        }
    }
}

/* Takes a missing head size from the first query tensor. */
static void derive_head_dim(struct rf_model *model)
{
    for (uint32_t i = 0; i < model->n_families && model->head_dim == 0; i++) {
        const struct rf_family *family = &model->families[i];
        for (uint32_t p = 0; p < family->n_parts; p++) {
            uint64_t rows = family->parts[p].size / model->heads;
            if (family->parts[p].role == RF_ROLE_Q &&
                family->parts[p].units == 0 && rows <= RF_MODEL_MAX_HEADS) {
                model->head_dim = (uint32_t)rows;
                break;
            }
        }
    }
}

/* Faults in shapes, the first of them as text. */
struct complaints {
    char *text;
    unsigned n;
};

/* Checks one part against the heads and their size; parts with their own number
 * of heads were checked when read. */
static void check_part(const struct rf_model *model,
                       const struct rf_family *family,
                       const struct rf_part *part, struct complaints *all)
{
    bool row = rf_role_division(part->role)->dim == 1;
    bool sized = part->role == RF_ROLE_Q || part->role == RF_ROLE_K ||
                 part->role == RF_ROLE_V;
    uint64_t heads = part->units != 0 || row ? 0 : rf_part_units(model, part);
    bool divides = heads == 0 || part->size % heads == 0;
    if (heads == 0 ||
        (divides && (!sized || part->size / heads == model->head_dim)) ||
        all->n++ >= MAX_COMPLAINTS) {
        return;
    }
    if (divides) {
        rf_text_add(&all->text, "; ",
                    "%.100s: %llu rows are not %llu heads of size %u",
                    family->name, (unsigned long long)part->size,
                    (unsigned long long)heads, model->head_dim);
    } else {
        rf_text_add(&all->text, "; ",
                    "%.100s: %llu rows do not divide into %llu heads",
                    family->name, (unsigned long long)part->size,
                    (unsigned long long)heads);
    }
}

static enum rf_status check_heads(const struct rf_model *model,
                                  const struct rf_jnode *where,
                                  struct rf_err *err)
{
    struct complaints all = {.n = 0};
    enum rf_status status = RF_OK;
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        for (uint32_t p = 0; p < family->n_parts; p++) {
            check_part(model, family, &family->parts[p], &all);
        }
    }
    if (all.n > MAX_COMPLAINTS) {
        rf_text_add(&all.text, "; ", "and %u more", all.n - MAX_COMPLAINTS);
    }
    if (all.n > 0) {
        status = rf_jnode_fail(where, err, "%s", all.text);
    }
    free(all.text);
    return status;
}

/* Evaluates the table's entry `key` on attention, else the field `name`. The
 * value may be missing with `derive`, or if the table has no such entry. */
static enum rf_status read_attention(struct rf_values *values, const char *key,
                                     const char *name, bool derive,
                                     uint32_t *out, struct rf_err *err)
{
    const struct rf_family_table *table = values->table;
    struct rf_jnode where = {.file = table != NULL ? table->name : "values",
                             .path = "attention"};
    json_t *expression = json_incref(
        json_object_get(table != NULL ? table->attention : NULL, key));
    bool optional = derive || expression == NULL;
    struct rf_value value;
    struct rf_err why = {.status = RF_OK};
    uint64_t number = 0;
    enum rf_status status;
    if (expression == NULL) {
        expression = json_string(name);
    }
    where.value = expression;
    status = rf_values_evaluate(values, &where, expression, &value, &why);
    if (status == RF_OK && value.kind != RF_VALUE_NULL) {
        status =
            rf_rule_u64(&where, values, 1, RF_MODEL_MAX_HEADS, &number, &why);
        *out = number > 0 ? (uint32_t)number : *out;
    } else if (status != RF_OK && optional && values->missing) {
        status = RF_OK;
    }
    if (status != RF_OK && err != NULL) {
        *err = why;
    }
    json_decref(expression);
    return status;
}

enum rf_status rf_model_describe(struct rf_model *model,
                                 struct rf_values *values,
                                 const struct rf_jnode *where, bool derive,
                                 struct rf_err *err)
{
    describe(model);
    if (derive) {
        derive_dtype(model);
        fix_latent_roles(model);
    }
    RF_TRY(read_attention(values, "heads", "num_attention_heads", derive,
                          &model->heads, err));
    if (model->heads == 0) { /* the others need it */
        return RF_OK;
    }
    model->kv_heads = model->heads;
    RF_TRY(read_attention(values, "kv_heads", "num_key_value_heads", derive,
                          &model->kv_heads, err));
    RF_TRY(read_attention(values, "head_dim", "head_dim", derive,
                          &model->head_dim, err));
    if (model->heads % model->kv_heads != 0) {
        return rf_jnode_fail(where, err,
                             "num_attention_heads must be a multiple of "
                             "num_key_value_heads");
    }
    if (!derive) {
        return RF_OK;
    }
    derive_head_dim(model);
    return check_heads(model, where, err);
}
