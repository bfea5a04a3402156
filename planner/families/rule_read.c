/* Reading a rule. See rule_read.h. */
#include "planner/families/rule_read.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/model/layout_kind.h"
#include "planner/model/roles.h"
#include "planner/model/shape_json.h"

static enum rf_status read_role(const struct rf_jnode *node, enum rf_role *role,
                                struct rf_err *err)
{
    struct rf_jnode member = rf_jnode_get(node, "role");
    const char *names[RF_ROLE_COUNT], *name = NULL;
    RF_TRY(rf_jnode_require(node, "role", err));
    RF_TRY(rf_jnode_string(node, "role", &name, err));
    if (rf_role_parse(name, role)) {
        return RF_OK;
    }
    rf_role_names(names);
    return rf_jnode_fail(&member, err,
                         "unknown role \"%.40s\"%s; docs/MODELS.md lists roles",
                         name, rf_did_you_mean(name, names).text);
}

static enum rf_status check_part(const struct rf_jnode *node,
                                 const struct rf_rule *rule, unsigned part,
                                 struct rf_err *err)
{
    const struct rf_role_division *division =
        rf_role_division(rule->roles[part]);
    bool experts = json_object_get(rule->node.value, "experts") != NULL ||
                   strstr(rule->name, "{E}") != NULL || rule->stacked;
    if (division->unit == RF_UNIT_OWN &&
        json_object_get(node->value, "heads") == NULL) {
        return rf_jnode_fail(
            node, err,
            "role \"%s\" needs \"heads\", the number of heads in the tensor",
            division->name);
    }
    if (division->over == RF_OVER_ETP && !experts) {
        return rf_jnode_fail(node, err,
                             "role \"%s\" needs {E} in the name or "
                             "\"stacked\": true",
                             division->name);
    }
    if (rule->n_parts > 1 && division->dim != 0) {
        return rf_jnode_fail(node, err,
                             "role \"%s\" is split along dimension 1, but "
                             "parts are along dimension 0",
                             division->name);
    }
    return RF_OK;
}

static enum rf_status read_parts(struct rf_rule *rule, struct rf_err *err)
{
    static const char *const keys[] = {"role", "rows", "heads", NULL};
    struct rf_jnode list = rf_jnode_get(&rule->node, "parts");
    size_t n = json_array_size(list.value);
    if (list.value == NULL) {
        rule->n_parts = 1;
        RF_TRY(read_role(&rule->node, &rule->roles[0], err));
        return check_part(&rule->node, rule, 0, err);
    }
    if (!json_is_array(list.value) || n < 2 || n > RF_FAMILY_MAX_PARTS ||
        json_object_get(rule->node.value, "role") != NULL) {
        return rf_jnode_fail(&list, err,
                             "must be a list of 2 to %d parts, without "
                             "\"role\" beside it",
                             RF_FAMILY_MAX_PARTS);
    }
    rule->n_parts = (uint32_t)n;
    for (unsigned i = 0; i < n; i++) {
        struct rf_jnode part = rf_jnode_at(&list, i);
        RF_TRY(rf_jnode_check_keys(&part, keys, err));
        RF_TRY(read_role(&part, &rule->roles[i], err));
        RF_TRY(check_part(&part, rule, i, err));
        if (rule->roles[i] == RF_ROLE_SKIP) {
            return rf_jnode_fail(&part, err, "a part cannot be skipped");
        }
    }
    return RF_OK;
}

/* "shape" or "dims": the number of dimensions of a tensor on disk. */
static enum rf_status read_dims(struct rf_rule *rule, struct rf_err *err)
{
    struct rf_jnode shape = rf_jnode_get(&rule->node, "shape");
    size_t most = RF_TENSOR_MAX_DIMS + (rule->stacked ? 1u : 0u);
    if (shape.value == NULL) {
        return rf_jnode_u32(&rule->node, "dims", 1, (uint32_t)most, &rule->ndim,
                            err);
    }
    rule->ndim = (uint32_t)json_array_size(shape.value);
    if (rule->ndim < (rule->stacked ? 2u : 1u) || rule->ndim > most) {
        return rf_jnode_fail(&shape, err, "must be a list of 1 to %d sizes%s",
                             RF_TENSOR_MAX_DIMS,
                             rule->stacked ? " after the number of experts"
                                           : "");
    }
    return RF_OK;
}

/* "whole": layouts that do not divide the tensor, whatever its role. */
static enum rf_status read_whole(struct rf_rule *rule, struct rf_err *err)
{
    struct rf_jnode list = rf_jnode_get(&rule->node, "whole");
    const char *const *names = rf_layout_kind_names;
    if (list.value != NULL && !json_is_array(list.value)) {
        return rf_jnode_fail(&list, err, "must be a list of layouts");
    }
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        struct rf_jnode item = rf_jnode_at(&list, i);
        unsigned layout = 0;
        RF_TRY(rf_jnode_word(&item, names, &layout, err));
        rule->whole_in |= UINT32_C(1) << layout;
    }
    return RF_OK;
}

static enum rf_status check_pattern(const struct rf_rule *rule,
                                    struct rf_err *err)
{
    const char *marks[] = {"{L}", "{E}"};
    size_t braces = 0, n = 0;
    for (const char *at = rule->name; *at != '\0'; at++) {
        braces += *at == '{' || *at == '}';
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(marks); i++) {
        const char *first = strstr(rule->name, marks[i]);
        if (first != NULL && strstr(first + 1, marks[i]) != NULL) {
            return rf_jnode_fail(&rule->node, err, "%s appears twice in %.100s",
                                 marks[i], rule->name);
        }
        n += first != NULL;
    }
    if (braces != 2 * n) {
        return rf_jnode_fail(
            &rule->node, err,
            "no braces but {L} and {E} are allowed in a name: %.100s",
            rule->name);
    }
    return RF_OK;
}

static enum rf_status read_flags(struct rf_rule *rule, struct rf_err *err)
{
    const struct {
        const char *key;
        bool *out;
    } flags[] = {
        {"interleaved", &rule->interleaved},
        {"stacked", &rule->stacked},
        {"transposed", &rule->transposed},
        {"optional", &rule->optional},
        {"keys_are_values", &rule->keys_are_values},
        {"quantize", &rule->quantize},
    };
    for (size_t i = 0; i < RF_ARRAY_SIZE(flags); i++) {
        RF_TRY(rf_jnode_bool(&rule->node, flags[i].key, flags[i].out, err));
    }
    return RF_OK;
}

static enum rf_status check_flags(const struct rf_rule *rule,
                                  struct rf_err *err)
{
    struct rf_jnode member = rf_jnode_get(&rule->node, "keys_are_values");
    if (rule->keys_are_values &&
        (rule->n_parts > 1 || rule->roles[0] != RF_ROLE_K)) {
        return rf_jnode_fail(&member, err,
                             "is for tensors of role \"key\" only");
    }
    return RF_OK;
}

enum rf_status rf_rule_read(const struct rf_jnode *node, const char *table,
                            struct rf_rule *out, struct rf_err *err)
{
    static const char *const keys[] = {
        "name",       "role",  "parts", "interleaved",     "stacked",
        "transposed", "shape", "dims",  "dtype",           "experts",
        "layers",     "if",    "stage", "heads",           "after",
        "optional",   "whole", "block", "keys_are_values", "quantize",
        "parameters", NULL};
    static const char *const stages[] = {"all", "first", "last", NULL};
    struct rf_jnode layers = rf_jnode_get(node, "layers");
    struct rf_rule rule = {
        .node = *node, .table = table, .own = true, .parameters = 1};
    const char *name = NULL;
    unsigned stage = 0;
    RF_TRY(rf_jnode_check_keys(node, keys, err));
    RF_TRY(rf_jnode_require(node, "name", err));
    if (json_is_array(layers.value) && json_array_size(layers.value) != 2) {
        return rf_jnode_fail(
            &layers, err,
            "must be a condition or [first layer, number of layers]");
    }
    RF_TRY(rf_jnode_string(node, "name", &name, err));
    RF_TRY(read_flags(&rule, err));
    RF_TRY(rf_jnode_u32(node, "parameters", 0, 2, &rule.parameters, err));
    RF_TRY(rf_jnode_choice(node, "stage", stages, &stage, err));
    RF_TRY(rf_dtype_from_json(node, "dtype", &rule.dtype, err));
    rule.stage_given = json_object_get(node->value, "stage") != NULL;
    rule.dtype_given = json_object_get(node->value, "dtype") != NULL;
    rule.quantize_given = json_object_get(node->value, "quantize") != NULL;
    rule.stage = (enum rf_stage)stage;
    if (json_is_array(layers.value)) {
        rule.own_layers = true;
        rule.first = rf_jnode_at(&layers, 0);
        rule.count = rf_jnode_at(&layers, 1);
    }
    rule.name = rf_xstrdup(name);
    enum rf_status status = check_pattern(&rule, err);
    RF_THEN(status, read_parts(&rule, err));
    RF_THEN(status, check_flags(&rule, err));
    RF_THEN(status, read_whole(&rule, err));
    RF_THEN(status, read_dims(&rule, err));
    if (status != RF_OK) {
        free(rule.name);
        return status;
    }
    *out = rule;
    return RF_OK;
}
