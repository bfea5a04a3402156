/*
 * Applying rules: the match for a tensor's name, and its effect on a family.
 * See family_rules.h.
 */
#include "planner/families/family_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/model/roles.h"
#include "planner/model/shape_json.h"

/* Matches a number or its mark at `name`; returns the length, 0: neither. */
static size_t fit_number(const char *name, const char *mark,
                         struct rf_name_number *out)
{
    size_t n = strspn(name, "0123456789");
    if (strncmp(name, mark, 3) == 0) {
        *out = (struct rf_name_number){.number = -1};
        return 3;
    }
    if (n == 0 || n > 8 || (name[0] == '0' && n > 1)) {
        return 0;
    }
    *out = (struct rf_name_number){strtoll(name, NULL, 10), name, n};
    return n;
}

bool rf_rule_fits(const char *pattern, const char *name,
                  struct rf_name_number *layer, struct rf_name_number *expert)
{
    const char *star = NULL, *retry = NULL;
    *layer = *expert = (struct rf_name_number){.number = -1};
    while (*name != '\0' || *pattern != '\0') {
        size_t taken = 0, mark = 1;
        if (*pattern == '*') {
            star = ++pattern;
            retry = name;
            continue;
        }
        if (strncmp(pattern, "{L}", 3) == 0 ||
            strncmp(pattern, "{E}", 3) == 0) {
            mark = 3;
            taken = fit_number(name, pattern[1] == 'L' ? "{L}" : "{E}",
                               pattern[1] == 'L' ? layer : expert);
        } else if (*pattern == *name && *name != '\0') {
            taken = 1;
        }
        if (taken > 0) {
            pattern += mark;
            name += taken;
        } else if (star != NULL && *retry != '\0') {
            pattern = star;
            name = ++retry;
        } else {
            return false;
        }
    }
    return true;
}

/* Reads a number of layers; an absent one is *out already. */
static enum rf_status read_layers(const struct rf_jnode *node,
                                  struct rf_values *values, uint64_t most,
                                  uint64_t *out, struct rf_err *err)
{
    return node->value == NULL ? RF_OK
                               : rf_rule_u64(node, values, 0, most, out, err);
}

enum rf_status rf_rule_layers(const struct rf_rule *rule,
                              struct rf_values *values, uint64_t *first,
                              uint64_t *count, struct rf_err *err)
{
    const uint64_t most = RF_MODEL_MAX_LAYERS;
    uint64_t each = 1;
    *first = *count = 0;
    RF_TRY(read_layers(&rule->first, values, most, first, err));
    RF_TRY(read_layers(&rule->count, values, most, count, err));
    RF_TRY(
        read_layers(&rule->each, values, most / RF_MAX(*count, 1), &each, err));
    *count *= each;
    return RF_OK;
}

enum rf_status rf_rule_decoder_layers(struct rf_values *values, uint64_t *out,
                                      struct rf_err *err)
{
    struct rf_jnode layers = {.value = json_string("num_hidden_layers"),
                              .file = "config",
                              .path = "num_hidden_layers"};
    enum rf_status status =
        rf_rule_u64(&layers, values, 1, RF_MODEL_MAX_LAYERS, out, err);
    json_decref(layers.value);
    return status;
}

/* Whether the layer is one of the rule's: in its own range, or of the decoder.
 * True if unknown. */
static bool has_layer(const struct rf_rule *rule, struct rf_values *values)
{
    uint64_t first = 0, count = 0;
    const enum rf_status status =
        rule->own_layers ? rf_rule_layers(rule, values, &first, &count, NULL)
                         : rf_rule_decoder_layers(values, &count, NULL);
    return status != RF_OK || values->layer < 0 ||
           ((uint64_t)values->layer >= first &&
            (uint64_t)values->layer - first < count);
}

/* Whether the rule's conditions hold; an unknown one counts as true. */
static bool may_apply(const struct rf_rule *rule, struct rf_values *values)
{
    static const char *const members[] = {"if", "layers"};
    values->mtp = rule->component == RF_COMPONENT_MTP;
    for (size_t i = 0; i < RF_ARRAY_SIZE(members); i++) {
        struct rf_jnode node = rf_jnode_get(&rule->node, members[i]);
        bool holds = true;
        if (json_is_string(node.value) &&
            rf_values_test(values, &node, node.value, &holds, NULL) == RF_OK &&
            !holds) {
            return false;
        }
    }
    return has_layer(rule, values);
}

/* Whether the rule has no condition. */
static bool is_for_all(const struct rf_rule *rule)
{
    return rf_jnode_get(&rule->node, "if").value == NULL &&
           rf_jnode_get(&rule->node, "layers").value == NULL;
}

/* Whether two rules of one name both apply to every tensor of that name. A
 * table that is used twice, as for layers that predict tokens, has each rule
 * twice: not twins. */
static bool are_twins(const struct rf_rule *a, const struct rf_rule *b)
{
    return is_for_all(a) && is_for_all(b) &&
           strcmp(a->node.path, b->node.path) != 0;
}

enum rf_status rf_rule_fail_two(const struct rf_jnode *node, const char *name,
                                const struct rf_rule *a,
                                const struct rf_rule *b, struct rf_err *err)
{
    return rf_jnode_fail(
        node, err,
        "%.100s matches two rules, \"%.100s\" (%s) and \"%.100s\" (%s)", name,
        a->name, a->node.path, b->name, b->node.path);
}

enum rf_status rf_rule_match(struct rf_family_table *table,
                             struct rf_values *values, const char *name,
                             uint32_t ndim, struct rf_rule **out,
                             struct rf_name_number *layer,
                             struct rf_name_number *expert, struct rf_err *err)
{
    struct rf_rule *found = NULL;
    bool sure = false;
    for (size_t i = 0; i < table->n_rules; i++) {
        struct rf_rule *rule = &table->rules[i];
        struct rf_name_number numbers[2];
        bool star = strchr(rule->name, '*') != NULL;
        if ((rule->ndim != 0 && rule->ndim != ndim) ||
            !rf_rule_fits(rule->name, name, &numbers[0], &numbers[1])) {
            continue;
        }
        if (found != NULL && strcmp(found->name, rule->name) == 0) {
            if (!sure && may_apply(rule, values)) {
                found = rule;
                sure = true;
            } else if (sure && are_twins(found, rule)) {
                return rf_rule_fail_two(&rule->node, name, found, rule, err);
            }
            continue;
        }
        if (found != NULL && star && strchr(found->name, '*') == NULL) {
            continue;
        }
        if (found != NULL && star == (strchr(found->name, '*') != NULL)) {
            return rf_rule_fail_two(&rule->node, name, found, rule, err);
        }
        found = rule;
        sure = may_apply(rule, values);
        *layer = numbers[0];
        *expert = numbers[1];
    }
    *out = found;
    return RF_OK;
}

enum rf_status rf_rule_u64(const struct rf_jnode *node,
                           struct rf_values *values, uint64_t min, uint64_t max,
                           uint64_t *out, struct rf_err *err)
{
    struct rf_value value;
    RF_TRY(rf_values_evaluate(values, node, node->value, &value, err));
    if (value.kind != RF_VALUE_INTEGER || value.number < 0 ||
        (uint64_t)value.number < min || (uint64_t)value.number > max) {
        char text[32] = "not an integer";
        if (value.kind == RF_VALUE_INTEGER) {
            snprintf(text, sizeof(text), "%lld", (long long)value.number);
        }
        return rf_jnode_fail(
            node, err,
            "\"%.100s\" is %s, must be an integer from %llu "
            "to %llu",
            json_is_string(node->value) ? json_string_value(node->value) : "it",
            text, (unsigned long long)min, (unsigned long long)max);
    }
    *out = (uint64_t)value.number;
    return RF_OK;
}

static enum rf_status read_units(const struct rf_jnode *node,
                                 struct rf_values *values,
                                 const struct rf_family *family,
                                 struct rf_part *part, struct rf_err *err)
{
    struct rf_jnode heads = rf_jnode_get(node, "heads");
    if (heads.value != NULL) {
        RF_TRY(rf_rule_u64(&heads, values, 1, RF_MODEL_MAX_HEADS, &part->units,
                           err));
    }
    if (part->units != 0 && part->size % part->units != 0) {
        return rf_jnode_fail(
            &heads, err,
            "%.100s: %llu rows of role %s do not divide into %llu heads",
            family->name, (unsigned long long)part->size,
            rf_role_name(part->role), (unsigned long long)part->units);
    }
    return RF_OK;
}

/* Reads the sizes of several parts, which must fill the dimension. */
static enum rf_status read_parts(const struct rf_rule *rule,
                                 struct rf_values *values,
                                 struct rf_family *family, struct rf_err *err)
{
    struct rf_jnode list = rf_jnode_get(&rule->node, "parts");
    char shape[RF_SHAPE_TEXT_SIZE];
    uint32_t dim = rf_family_part_dim(family);
    uint64_t size = family->shape[dim], sum = 0;
    bool equal = true; /* if no part gives its size */
    for (uint32_t i = 0; i < rule->n_parts; i++) {
        equal &= json_object_get(json_array_get(list.value, i), "rows") == NULL;
    }
    for (uint32_t i = 0; i < rule->n_parts; i++) {
        struct rf_jnode item = rf_jnode_at(&list, i);
        struct rf_jnode rows = rf_jnode_get(&item, "rows");
        struct rf_part *part = &family->parts[i];
        if (rule->interleaved || equal) {
            part->size = size / rule->n_parts;
        } else if (rows.value == NULL && i + 1 == rule->n_parts && sum < size) {
            part->size = size - sum;
        } else if (rows.value == NULL) {
            return rf_jnode_fail(&item, err,
                                 "needs \"rows\", which only the last part, or "
                                 "all parts if equal, may leave out");
        } else {
            RF_TRY(rf_rule_u64(&rows, values, 1, RF_MODEL_MAX_SIZE, &part->size,
                               err));
        }
        sum += part->size;
        RF_TRY(read_units(&item, values, family, part, err));
    }
    if (sum != size) {
        return rf_jnode_fail(&list, err,
                             "%.100s: the parts sum to %llu rows, but "
                             "dimension %u of shape %s has %llu",
                             family->name, (unsigned long long)sum, dim,
                             rf_shape_text(family->shape, family->ndim, shape),
                             (unsigned long long)size);
    }
    return RF_OK;
}

/* A block is a number of turns where parts alternate. */
static enum rf_status read_block(const struct rf_rule *rule,
                                 struct rf_values *values,
                                 struct rf_family *family, struct rf_err *err)
{
    struct rf_jnode node = rf_jnode_get(&rule->node, "block");
    uint64_t block = 0;
    if (node.value != NULL) {
        RF_TRY(rf_rule_u64(&node, values, 0, RF_MODEL_MAX_SIZE, &block, err));
    }
    family->grain[rf_family_part_dim(family)] =
        block * (rule->interleaved ? rule->n_parts : 1);
    return RF_OK;
}

/* Whether "quantize" treats it as a matrix of a linear layer. Engines leave
 * the vision tower unquantised, as published checkpoints do. */
static bool is_quantized(const struct rf_rule *rule)
{
    bool linear = rule->component != RF_COMPONENT_VISION;
    for (uint32_t i = 0; i < rule->n_parts; i++) {
        linear &= rf_role_division(rule->roles[i])->linear;
    }
    return rule->quantize_given ? rule->quantize : linear;
}

enum rf_status rf_rule_divide(const struct rf_rule *rule,
                              struct rf_values *values,
                              struct rf_family *family, struct rf_err *err)
{
    const struct rf_role_division *division = rf_role_division(rule->roles[0]);
    uint32_t dim;
    family->n_parts = rule->n_parts;
    family->interleaved = rule->interleaved;
    family->transposed = rule->transposed;
    family->keys_are_values = rule->keys_are_values;
    family->own_layers = rule->own_layers;
    family->component = rule->component;
    family->whole_in = rule->whole_in;
    family->quantized = is_quantized(rule);
    values->mtp = rule->component == RF_COMPONENT_MTP;
    for (uint32_t i = 0; i < rule->n_parts; i++) {
        family->parts[i] = (struct rf_part){.role = rule->roles[i]};
    }
    family->role = rule->n_parts > 1 ? RF_ROLE_FUSED : rule->roles[0];
    family->stage = rule->stage_given    ? rule->stage
                    : family->own_layers ? RF_STAGE_LAST
                                         : division->stage;
    family->rule = rf_xasprintf("%s: %s", rule->table, rule->name);
    RF_TRY(read_block(rule, values, family, err));
    if (rule->n_parts > 1) {
        return read_parts(rule, values, family, err);
    }
    dim = rf_family_part_dim(family);
    family->parts[0].size = dim < family->ndim ? family->shape[dim] : 1;
    return read_units(&rule->node, values, family, &family->parts[0], err);
}
