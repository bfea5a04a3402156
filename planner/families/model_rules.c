/*
 * The families of a model without tensors to look at: those that its table's
 * rules make of a config, in the order of the rules.
 *
 * A rule with {L} in its name stands for a tensor of each layer where its
 * conditions hold; layers whose tensors have other shapes are other families.
 */
#include "planner/families/model_rules.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/families/family_rules.h"
#include "planner/families/model_build.h"
#include "planner/model/shape_json.h"

#define MAX_SHAPES 256
#define NAME_SIZE 256 /* for messages; longer ones are cut */

/* A rule while its families are made. */
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
    enum rf_status status = RF_OK;
    if (node.value != NULL && !json_is_array(node.value)) {
        status = rf_values_test(maker->values, &node, node.value, &result,
                                maker->err);
    }
    *out = *out && result;
    return status;
}

/* Whether the rule applies to the layer that `values` has now. */
static enum rf_status applies(const struct rule_maker *maker, bool *out)
{
    enum rf_status status;
    *out = true;
    status = holds(maker, "if", out);
    return status == RF_OK && *out ? holds(maker, "layers", out) : status;
}

/* [first, count], numbers of the rule's own; else the decoder's. */
static enum rf_status read_range(const struct rule_maker *maker,
                                 uint64_t *first, uint64_t *count)
{
    const struct rf_jnode *list = &maker->rule->range;
    struct rf_jnode from = rf_jnode_at(list, 0), n = rf_jnode_at(list, 1);
    enum rf_status status;
    *first = 0;
    *count = maker->model->n_layers;
    if (list->value == NULL) {
        return RF_OK;
    }
    if (json_array_size(list->value) != 2) {
        return rf_jnode_fail(list, maker->err,
                             "must be a condition, or the first layer and how "
                             "many there are");
    }
    status = rf_rule_u64(&from, maker->values, 0, RF_MODEL_MAX_LAYERS, first,
                         maker->err);
    return status == RF_OK ? rf_rule_u64(&n, maker->values, 0,
                                         RF_MODEL_MAX_LAYERS, count, maker->err)
                           : status;
}

/* The layers where the rule applies. */
static enum rf_status pick_layers(struct rule_maker *maker)
{
    uint64_t first, count;
    enum rf_status status = read_range(maker, &first, &count);
    bool yes = true;
    if (status != RF_OK) {
        return status;
    }
    maker->layers = rf_calloc(count + 1, sizeof(*maker->layers));
    if (maker->layers == NULL) {
        return rf_err_set(maker->err, RF_ERR_NOMEM, "layers of %.100s",
                          maker->rule->name);
    }
    maker->values->read_layer = true;
    for (uint64_t i = 0; i < count && status == RF_OK; i++) {
        if (maker->values->read_layer) {
            maker->values->layer = (int64_t)(first + i);
            maker->values->read_layer = false;
            status = applies(maker, &yes);
        }
        if (yes) {
            maker->layers[maker->n_layers++] = (uint32_t)(first + i);
        }
    }
    return status;
}

/* Sizes of the rule's tensor in the layer that `values` has now. */
static enum rf_status read_sizes(const struct rule_maker *maker,
                                 struct rf_family_draft *draft)
{
    struct rf_jnode shape = rf_jnode_get(&maker->rule->node, "shape");
    struct rf_jnode experts = rf_jnode_get(&maker->rule->node, "experts");
    uint64_t n = 0;
    enum rf_status status = RF_OK;
    if (shape.value == NULL) {
        return rf_jnode_fail(&maker->rule->node, maker->err,
                             "needs \"shape\": there are no tensors to take "
                             "it from");
    }
    draft->ndim = maker->rule->ndim;
    for (uint32_t d = 0; d < draft->ndim && status == RF_OK; d++) {
        struct rf_jnode size = rf_jnode_at(&shape, d);
        status = rf_rule_u64(&size, maker->values, 0, RF_MODEL_MAX_SIZE,
                             &draft->shape[d], maker->err);
    }
    if (status == RF_OK && strstr(maker->rule->name, "{E}") != NULL) {
        status = experts.value == NULL
                     ? rf_jnode_fail(&maker->rule->node, maker->err,
                                     "needs \"experts\": how many there are")
                     : rf_rule_u64(&experts, maker->values, 1,
                                   RF_MODEL_MAX_EXPERTS, &n, maker->err);
        draft->n_experts = (uint32_t)n;
    }
    return status;
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

/* A family for each shape among the layers. */
static enum rf_status add_layers(struct rule_maker *maker,
                                 const struct rf_family_draft *empty)
{
    struct rf_family_draft *drafts =
        rf_calloc(maker->n_layers, sizeof(*drafts));
    uint32_t *same = rf_calloc(maker->n_layers, sizeof(*same)), shapes = 0;
    enum rf_status status =
        drafts != NULL && same != NULL
            ? RF_OK
            : rf_err_set(maker->err, RF_ERR_NOMEM, "layers of %.100s",
                         maker->rule->name);
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
            continue; /* in a family already */
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
    enum rf_status status;
    if (strchr(rule->name, '*') != NULL) {
        return rf_jnode_fail(&rule->node, maker->err,
                             "a config does not say which tensors \"%.100s\" "
                             "stands for",
                             rule->name);
    }
    if (strstr(rule->name, "{L}") != NULL) {
        status = pick_layers(maker);
        return status == RF_OK && maker->n_layers > 0
                   ? add_layers(maker, &draft)
                   : status;
    }
    maker->values->layer = RF_VALUES_NO_LAYER;
    status = applies(maker, &yes);
    if (status == RF_OK && yes) {
        status = read_sizes(maker, &draft);
    }
    return status == RF_OK && yes ? add(maker, &draft) : status;
}

/* Whether some layer is among those of both. */
static bool share_a_layer(const struct rf_family *a, const struct rf_family *b)
{
    for (uint32_t i = 0, k = 0; i < a->n_layers && k < b->n_layers;) {
        uint32_t left = a->layers != NULL ? a->layers[i] : 0;
        uint32_t right = b->layers != NULL ? b->layers[k] : 0;
        if (left == right) {
            return true;
        }
        i += left < right;
        k += right < left;
    }
    return false;
}

/* Whether a tensor of `one`, which has no {L} or no {E}, is among those of
 * `many`, too. Fills in the name of the first. */
static bool is_among(const struct rf_family *one, const struct rf_family *many,
                     char *name, size_t size)
{
    struct rf_name_number layer, expert;
    struct rf_family at = *many;
    rf_family_tensor_name(one, 0, 0, name, size);
    if (!rf_rule_fits(many->name, name, &layer, &expert) ||
        expert.number >= (int64_t)many->n_experts) {
        return false;
    }
    at.layers = (uint32_t[]){(uint32_t)layer.number};
    at.n_layers = 1;
    return layer.number < 0 || share_a_layer(&at, many);
}

/* The first tensor that two families have; false: none. */
static bool common_tensor(const struct rf_family *a, const struct rf_family *b,
                          char *name, size_t size)
{
    if (strcmp(a->name, b->name) != 0) {
        return is_among(a, b, name, size) || is_among(b, a, name, size);
    }
    if (!share_a_layer(a, b)) {
        return false;
    }
    for (uint32_t i = 0; i < a->n_layers; i++) {
        struct rf_family at = *a;
        at.layers = a->layers != NULL ? &a->layers[i] : NULL;
        at.n_layers = 1;
        if (share_a_layer(&at, b)) {
            rf_family_tensor_name(a, i, 0, name, size);
            return true;
        }
    }
    return false;
}

/* Refuses a tensor that a rule before has made: ends[i] families come from the
 * rules up to number i. */
static enum rf_status refuse_twins(const struct rule_maker *maker,
                                   const struct rf_rule *rules,
                                   const uint32_t *ends, size_t rule)
{
    const struct rf_family *families = maker->model->families;
    for (uint32_t f = rule > 0 ? ends[rule - 1] : 0; f < ends[rule]; f++) {
        for (uint32_t other = 0, by = 0; other < f; other++) {
            char name[NAME_SIZE];
            while (ends[by] <= other) {
                by++;
            }
            if (by < rule && common_tensor(&families[f], &families[other], name,
                                           sizeof(name))) {
                return rf_rule_fail_two(&maker->rule->node, name, &rules[by],
                                        maker->rule, maker->err);
            }
        }
    }
    return RF_OK;
}

enum rf_status rf_model_add_rules(struct rf_model *model,
                                  struct rf_values *values,
                                  const struct rf_jnode *where,
                                  struct rf_err *err)
{
    const struct rf_family_table *table = values->table;
    uint32_t *ends = rf_calloc(table->n_rules + 1, sizeof(*ends));
    enum rf_status status =
        ends != NULL ? RF_OK : rf_err_set(err, RF_ERR_NOMEM, "rules");
    for (size_t i = 0; i < table->n_rules && status == RF_OK; i++) {
        struct rule_maker maker = {.model = model,
                                   .values = values,
                                   .where = where,
                                   .rule = &table->rules[i],
                                   .err = err};
        values->mtp = maker.rule->component == RF_COMPONENT_MTP;
        if (maker.rule->roles[0] != RF_ROLE_SKIP) {
            status = add_rule(&maker);
        }
        ends[i] = model->n_families;
        if (status == RF_OK && maker.rule->own) {
            status = refuse_twins(&maker, table->rules, ends, i);
        }
        free(maker.layers);
    }
    free(ends);
    values->layer = RF_VALUES_NO_LAYER;
    if (status == RF_OK && model->n_families == 0) {
        return rf_jnode_fail(where, err, "the rules make no tensor of it");
    }
    return status;
}
