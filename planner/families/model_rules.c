/*
 * The families of a model known by its config alone: its table's rules make
 * them, in the order of the rules.
 *
 * A rule with {L} in its name makes a tensor in each layer where its conditions
 * hold; layers with other shapes form other families.
 */
#include "planner/families/model_rules.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/families/family_rules.h"
#include "planner/families/model_build.h"
#include "planner/model/shape_json.h"

#define MAX_SHAPES 256
#define MAX_NAMES (1 << 20) /* compared at most */

/* A rule under evaluation. */
struct rule_maker {
    struct rf_model *model;
    struct rf_values *values;
    const struct rf_jnode *where;
    const struct rf_rule *rule;
    struct rf_err *err;
    uint32_t *layers; /* where the conditions hold */
    uint32_t n_layers;
};

static enum rf_status holds(const struct rule_maker *maker, const char *member,
                            bool *out)
{
    struct rf_jnode node = rf_jnode_get(&maker->rule->node, member);
    bool result = true;
    if (node.value != NULL && !json_is_array(node.value)) {
        RF_TRY(rf_values_test(maker->values, &node, node.value, &result,
                              maker->err));
    }
    *out = *out && result;
    return RF_OK;
}

/* Whether the rule applies to the current layer of `values`. */
static enum rf_status applies(const struct rule_maker *maker, bool *out)
{
    *out = true;
    RF_TRY(holds(maker, "if", out));
    return *out ? holds(maker, "layers", out) : RF_OK;
}

/* Finds the layers to which the rule applies. */
static enum rf_status pick_layers(struct rule_maker *maker)
{
    uint64_t first = 0, count = maker->model->n_layers;
    bool yes = true;
    if (maker->rule->own_layers) {
        RF_TRY(rf_rule_layers(maker->rule, maker->values, &first, &count,
                              maker->err));
    }
    maker->layers = rf_xcalloc(count + 1, sizeof(*maker->layers));
    maker->values->read_layer = true;
    for (uint64_t i = 0; i < count; i++) {
        if (maker->values->read_layer) {
            maker->values->layer = (int64_t)(first + i);
            maker->values->read_layer = false;
            RF_TRY(applies(maker, &yes));
        }
        if (yes) {
            maker->layers[maker->n_layers++] = (uint32_t)(first + i);
        }
    }
    return RF_OK;
}

/* Reads the sizes of the rule's tensor in the current layer of `values`. */
static enum rf_status read_sizes(const struct rule_maker *maker,
                                 struct rf_family_draft *draft)
{
    struct rf_jnode shape = rf_jnode_get(&maker->rule->node, "shape");
    struct rf_jnode experts = rf_jnode_get(&maker->rule->node, "experts");
    uint64_t n = 0;
    if (shape.value == NULL) {
        return rf_jnode_fail(
            &maker->rule->node, maker->err,
            "needs \"shape\": a config has no tensors to take it from");
    }
    draft->ndim = maker->rule->ndim;
    for (uint32_t d = 0; d < draft->ndim; d++) {
        struct rf_jnode size = rf_jnode_at(&shape, d);
        RF_TRY(rf_rule_u64(&size, maker->values, 0, RF_MODEL_MAX_SIZE,
                           &draft->shape[d], maker->err));
    }
    if (strstr(maker->rule->name, "{E}") != NULL) {
        RF_TRY(experts.value == NULL
                   ? rf_jnode_fail(&maker->rule->node, maker->err,
                                   "needs \"experts\", the number of experts")
                   : rf_rule_u64(&experts, maker->values, 1,
                                 RF_MODEL_MAX_EXPERTS, &n, maker->err));
        draft->n_experts = (uint32_t)n;
    }
    return RF_OK;
}

static bool same_sizes(const struct rf_family_draft *a,
                       const struct rf_family_draft *b)
{
    return a->n_experts == b->n_experts && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, sizeof(a->shape)) == 0;
}

static enum rf_status add(const struct rule_maker *maker,
                          struct rf_family_draft *draft)
{
    return rf_model_add_family(maker->model, draft, maker->where, maker->err);
}

/* Adds a family for each shape among the layers. */
static enum rf_status add_layers(struct rule_maker *maker,
                                 const struct rf_family_draft *empty)
{
    struct rf_family_draft *drafts =
        rf_xcalloc(maker->n_layers, sizeof(*drafts));
    uint32_t *same = rf_xcalloc(maker->n_layers, sizeof(*same)), shapes = 0;
    enum rf_status status = RF_OK;
    maker->values->read_layer = true;
    for (uint32_t i = 0; i < maker->n_layers && status == RF_OK; i++) {
        drafts[i] = i > 0 ? drafts[i - 1] : *empty;
        if (maker->values->read_layer) {
            maker->values->layer = maker->layers[i];
            maker->values->read_layer = false;
            status = read_sizes(maker, &drafts[i]);
        }
    }
    for (uint32_t i = 0; i < maker->n_layers && status == RF_OK; i++) {
        uint32_t n = 0;
        if (drafts[i].rule == NULL) {
            continue; /* already in a family */
        }
        if (++shapes > MAX_SHAPES) {
            status = rf_jnode_fail(&maker->rule->node, maker->err,
                                   "has more than %d shapes in different "
                                   "layers",
                                   MAX_SHAPES);
            break;
        }
        for (uint32_t k = i; k < maker->n_layers; k++) {
            if (drafts[k].rule != NULL && same_sizes(&drafts[i], &drafts[k])) {
                same[n++] = maker->layers[k];
                drafts[k].rule = k == i ? drafts[k].rule : NULL;
            }
        }
        maker->values->layer = maker->layers[i];
        drafts[i].layers = same;
        drafts[i].n_layers = n;
        status = add(maker, &drafts[i]);
    }
    free(drafts);
    free(same);
    return status;
}

static enum rf_status add_rule(struct rule_maker *maker)
{
    const struct rf_rule *rule = maker->rule;
    struct rf_family_draft draft = {
        .name = rule->name,
        .dtype = rule->dtype_given ? rule->dtype : maker->model->dtype,
        .rule = rule,
        .values = maker->values};
    bool yes = true;
    if (strchr(rule->name, '*') != NULL) {
        return rf_jnode_fail(
            &rule->node, maker->err,
            "\"%.100s\" needs tensors to match; a config has none", rule->name);
    }
    if (strstr(rule->name, "{L}") != NULL) {
        RF_TRY(pick_layers(maker));
        return maker->n_layers > 0 ? add_layers(maker, &draft) : RF_OK;
    }
    maker->values->layer = RF_VALUES_NO_LAYER;
    RF_TRY(applies(maker, &yes));
    if (!yes) {
        return RF_OK;
    }
    RF_TRY(read_sizes(maker, &draft));
    return add(maker, &draft);
}

/* Refuses tensors in the families from `first` on that another rule has already
 * made: `names` maps each tensor to its rule's number. */
static enum rf_status refuse_twins(const struct rule_maker *maker,
                                   uint32_t first, json_t *names)
{
    const struct rf_rule *rules = maker->values->table->rules;
    if (maker->model->n_tensors > MAX_NAMES) {
        return rf_jnode_fail(maker->where, maker->err,
                             "the rules make more than %d tensors", MAX_NAMES);
    }
    for (uint32_t f = first; f < maker->model->n_families; f++) {
        const struct rf_family *family = &maker->model->families[f];
        const size_t size = strlen(family->name) + 2 * sizeof("4294967295");
        const uint32_t n = (uint32_t)rf_family_tensors(family);
        char *name = rf_xmalloc(size);
        enum rf_status status = RF_OK;
        for (uint32_t i = 0; i < n && status == RF_OK; i++) {
            rf_family_tensor_name(family, i % family->n_layers,
                                  i / family->n_layers, name, size);
            const json_t *other = json_object_get(names, name);
            const json_int_t rule = json_integer_value(other);
            if (other != NULL && &rules[rule] != maker->rule) {
                status =
                    rf_rule_fail_two(&maker->rule->node, name, &rules[rule],
                                     maker->rule, maker->err);
            }
            json_object_set_new_nocheck(names, name,
                                        json_integer(maker->rule - rules));
        }
        free(name);
        RF_TRY(status);
    }
    return RF_OK;
}

enum rf_status rf_model_add_rules(struct rf_model *model,
                                  struct rf_values *values,
                                  const struct rf_jnode *where,
                                  struct rf_err *err)
{
    const struct rf_family_table *table = values->table;
    json_t *names = json_object();
    enum rf_status status = RF_OK;
    for (size_t i = 0; i < table->n_rules && status == RF_OK; i++) {
        struct rule_maker maker = {.model = model,
                                   .values = values,
                                   .where = where,
                                   .rule = &table->rules[i],
                                   .err = err};
        const uint32_t first = model->n_families;
        values->mtp = maker.rule->component == RF_COMPONENT_MTP;
        if (maker.rule->roles[0] != RF_ROLE_SKIP) {
            status = add_rule(&maker);
        }
        if (table->by_hand) {
            RF_THEN(status, refuse_twins(&maker, first, names));
        }
        free(maker.layers);
    }
    json_decref(names);
    values->layer = RF_VALUES_NO_LAYER;
    if (status == RF_OK && model->n_families == 0) {
        return rf_jnode_fail(where, err, "the rules produce no tensors");
    }
    return status;
}
