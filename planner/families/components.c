/*
 * Optional parts of a model. See components.h.
 *
 * A layer for multi-token prediction is like one of the decoder's: the rules
 * with {L} are copied under the names of such layers, with their own numbers,
 * and the name `mtp` tells conditions which kind of layer it is.
 */
#include "planner/families/components.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/json_schema.h"
#include "planner/families/family_rules.h"
#include "planner/families/model_fields.h"
#include "planner/families/model_values.h"
#include "planner/families/rule_read.h"
#include "planner/model/layout_kind.h"
#include "planner/model/shape_json.h"

static const char *const component_keys[] = {NULL, "mtp", "vision"};

static const char *const vision_names[] = {"leave_out", "replicate", "split",
                                           NULL};

enum rf_status rf_components_read(const struct rf_jnode *model,
                                  struct rf_components *out, struct rf_err *err)
{
    unsigned vision = RF_VISION_LEAVE_OUT;
    *out = (struct rf_components){.model = *model};
    RF_TRY(rf_jnode_bool(model, "mtp", &out->mtp, err));
    RF_TRY(rf_jnode_choice(model, "vision", vision_names, &vision, err));
    out->vision = (enum rf_vision)vision;
    return RF_OK;
}

void rf_components_add_schemas(json_t *model)
{
    rf_json_schema_add(model, "mtp", rf_json_schema_type("boolean"));
    rf_json_schema_add(model, "vision", rf_json_schema_words(vision_names));
}

static bool is_chosen(const struct rf_components *components,
                      enum rf_component component)
{
    return component == RF_COMPONENT_MTP
               ? components->mtp
               : components->vision != RF_VISION_LEAVE_OUT;
}

/* Fails at the model's own key. */
static enum rf_status fail(const struct rf_components *components,
                           enum rf_component component, struct rf_err *err,
                           const char *text)
{
    struct rf_jnode member =
        rf_jnode_get(&components->model, component_keys[component]);
    return rf_jnode_fail(&member, err, "%s", text);
}

static bool from_tensors(const struct rf_components *components)
{
    return json_object_get(components->model.value, "manifest") != NULL;
}

/* --- Rules ---------------------------------------------------------------- */

/* Whether the model's own rules include that name. */
static bool has_own(const struct rf_family_table *table, const char *name)
{
    for (size_t i = 0; i < table->n_rules; i++) {
        if (strcmp(table->rules[i].table, "rules") == 0 &&
            strcmp(table->rules[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Assigns the rule to the component, its stage and its layers. */
static void assign(const struct rf_family_table *table,
                   enum rf_component component, struct rf_rule *rule)
{
    rule->component = component;
    if (component == RF_COMPONENT_VISION) {
        rule->whole_in |= table->chosen.vision == RF_VISION_REPLICATE
                              ? RF_IN_EVERY_LAYOUT
                              : UINT32_C(1) << RF_LAYOUT_MEGATRON;
    }
    if (!rule->stage_given) {
        rule->stage =
            component == RF_COMPONENT_MTP ? RF_STAGE_LAST : RF_STAGE_FIRST;
        rule->stage_given = true;
    }
    if (component == RF_COMPONENT_MTP && !rule->own_layers &&
        strstr(rule->name, "{L}") != NULL) {
        rule->own_layers = true;
        rule->first = rf_jnode_get(&table->components[component], "first");
        rule->count = rf_jnode_get(&table->components[component], "count");
        rule->each = rf_jnode_get(&table->components[component], "each");
    }
}

static void push(struct rf_family_table *table, const struct rf_rule *rule)
{
    RF_PUSH(table->rules, table->n_rules, table->cap, *rule);
}

static enum rf_status add_tensors(struct rf_family_table *table,
                                  enum rf_component component,
                                  struct rf_err *err)
{
    struct rf_jnode list =
        rf_jnode_get(&table->components[component], "tensors");
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        struct rf_jnode node = rf_jnode_at(&list, i);
        struct rf_rule rule;
        RF_TRY(rf_rule_read(&node, table->name, &rule, err));
        if (has_own(table, rule.name)) {
            free(rule.name);
            continue;
        }
        assign(table, component, &rule);
        push(table, &rule);
    }
    return RF_OK;
}

/* Adds rules that give one role to all names of a component. */
static enum rf_status add_names(struct rf_family_table *table,
                                enum rf_component component, const char *role,
                                struct rf_err *err)
{
    struct rf_jnode list = rf_jnode_get(&table->components[component], "names");
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        struct rf_jnode node = rf_jnode_at(&list, i);
        struct rf_rule rule;
        node.value = json_pack("{s:O, s:s}", "name", node.value, "role", role);
        json_array_append_new(table->documents, node.value);
        RF_TRY(rf_rule_read(&node, table->name, &rule, err));
        if (rule.roles[0] != RF_ROLE_SKIP) {
            assign(table, component, &rule);
        }
        push(table, &rule);
    }
    return RF_OK;
}

/* --- Multi-token prediction ----------------------------------------------- */

static bool is_without(const struct rf_jnode *mtp, const char *name)
{
    const json_t *list = json_object_get(mtp->value, "without");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *pattern = json_string_value(json_array_get(list, i));
        struct rf_name_number ignored[2];
        if (pattern != NULL &&
            rf_rule_fits(pattern, name, &ignored[0], &ignored[1])) {
            return true;
        }
    }
    return false;
}

/* Copies the decoder's rules for layers whose names begin with `layer`. */
static void copy_layers(struct rf_family_table *table, const char *layer)
{
    size_t n = table->n_rules;
    for (size_t i = 0; i < n; i++) {
        struct rf_rule rule = table->rules[i];
        const char *mark = strstr(rule.name, "{L}.");
        char *name;
        if (mark == NULL || rule.own_layers || rule.roles[0] == RF_ROLE_SKIP) {
            continue;
        }
        name = rf_xasprintf("%s%s", layer, mark + strlen("{L}."));
        if (is_without(&table->components[RF_COMPONENT_MTP], name)) {
            free(name);
            continue;
        }
        rule.name = name;
        rule.optional = true;
        rule.stage_given = false;
        assign(table, RF_COMPONENT_MTP, &rule);
        push(table, &rule);
    }
}

static enum rf_status add_mtp(struct rf_family_table *table, struct rf_err *err)
{
    const struct rf_jnode *mtp = &table->components[RF_COMPONENT_MTP];
    const char *layer = NULL;
    RF_TRY(rf_jnode_string(mtp, "layer", &layer, err));
    if (layer != NULL) {
        copy_layers(table, layer);
    }
    return add_tensors(table, RF_COMPONENT_MTP, err);
}

/* --- Vision --------------------------------------------------------------- */

static enum rf_status fail_split(const struct rf_family_table *table,
                                 struct rf_err *err)
{
    struct rf_jnode member = rf_jnode_get(&table->chosen.model, "vision");
    return rf_jnode_fail(
        &member, err,
        "the vision tower of %.60s cannot be split: its table names the "
        "tensors but has no rules for them; use \"replicate\" (with "
        "\"checkpoint\" or \"manifest\") or \"leave_out\", or add \"rules\"",
        table->name);
}

static enum rf_status add_vision(struct rf_family_table *table,
                                 struct rf_err *err)
{
    const struct rf_components *chosen = &table->chosen;
    bool known = json_object_get(table->components[RF_COMPONENT_VISION].value,
                                 "tensors") != NULL;
    if (!known && chosen->vision == RF_VISION_SPLIT) {
        return fail_split(table, err);
    }
    if (!known && !from_tensors(chosen)) {
        return fail(chosen, RF_COMPONENT_VISION, err,
                    "the table of this model type lacks the shapes of its "
                    "vision tower; use \"replicate\" with \"checkpoint\"");
    }
    RF_TRY(add_tensors(table, RF_COMPONENT_VISION, err));
    return from_tensors(chosen) && chosen->vision == RF_VISION_REPLICATE
               ? add_names(table, RF_COMPONENT_VISION, "replicated", err)
               : RF_OK;
}

/* --- Entry points --------------------------------------------------------- */

static enum rf_status check_keys(const struct rf_family_table *table,
                                 enum rf_component component,
                                 struct rf_err *err)
{
    static const char *const mtp[] = {"names",   "values", "count",
                                      "each",    "first",  "without",
                                      "tensors", "layer",  NULL};
    static const char *const vision[] = {"names", "values", "tensors", NULL};
    return rf_jnode_check_keys(&table->components[component],
                               component == RF_COMPONENT_MTP ? mtp : vision,
                               err);
}

static enum rf_status add_component(struct rf_family_table *table,
                                    enum rf_component component,
                                    struct rf_err *err)
{
    const struct rf_jnode *node = &table->components[component];
    bool chosen = is_chosen(&table->chosen, component);
    if (!json_is_object(node->value)) {
        return !chosen ? RF_OK
               : component == RF_COMPONENT_MTP
                   ? fail(&table->chosen, component, err,
                          "this model type has no multi-token-prediction "
                          "layers; docs/MODELS.md lists model types that do")
                   : fail(&table->chosen, component, err,
                          "this model type has no vision tower; docs/MODELS.md "
                          "lists model types that do");
    }
    RF_TRY(check_keys(table, component, err));
    json_object_update_missing(table->values,
                               json_object_get(node->value, "values"));
    return !chosen ? add_names(table, component, "skip", err)
           : component == RF_COMPONENT_MTP ? add_mtp(table, err)
                                           : add_vision(table, err);
}

enum rf_status rf_components_need_table(const struct rf_components *components,
                                        struct rf_err *err)
{
    for (enum rf_component c = RF_COMPONENT_MTP; c <= RF_COMPONENT_VISION;
         c++) {
        if (is_chosen(components, c)) {
            return fail(components, c, err,
                        "unknown tensors: needs \"rules\", or a \"config\" "
                        "with a model type listed in docs/MODELS.md");
        }
    }
    return RF_OK;
}

enum rf_status rf_components_add(struct rf_family_table *table,
                                 const struct rf_components *components,
                                 struct rf_err *err)
{
    table->chosen = *components;
    RF_TRY(add_component(table, RF_COMPONENT_MTP, err));
    return add_component(table, RF_COMPONENT_VISION, err);
}

/* --- Checks --------------------------------------------------------------- */

static enum rf_status count_modules(const struct rf_family_table *table,
                                    struct rf_values *values, uint64_t *out,
                                    struct rf_err *err)
{
    struct rf_jnode count =
        rf_jnode_get(&table->components[RF_COMPONENT_MTP], "count");
    return rf_rule_u64(&count, values, 0, RF_MODEL_MAX_LAYERS, out, err);
}

static enum rf_status check_mtp(const struct rf_family_table *table,
                                struct rf_values *values, struct rf_err *err)
{
    const json_t *count =
        json_object_get(table->components[RF_COMPONENT_MTP].value, "count");
    struct rf_jnode member = rf_jnode_get(&table->chosen.model, "mtp");
    uint64_t n = 0;
    RF_TRY(count_modules(table, values, &n, err));
    return n > 0 ? RF_OK
                 : rf_jnode_fail(&member, err,
                                 "the config has no multi-token-prediction "
                                 "layers: \"%.60s\" is 0 or missing",
                                 json_string_value(count));
}

enum rf_status rf_components_check(const struct rf_family_table *table,
                                   struct rf_values *values, struct rf_err *err)
{
    const struct rf_components *chosen = &table->chosen;
    if (chosen->mtp) {
        RF_TRY(check_mtp(table, values, err));
    }
    if (is_chosen(chosen, RF_COMPONENT_VISION) && !from_tensors(chosen) &&
        !json_is_object(
            json_object_get(values->config.value, "vision_config"))) {
        return fail(
            chosen, RF_COMPONENT_VISION, err,
            "the config has no vision tower: \"vision_config\" is missing");
    }
    return RF_OK;
}

enum rf_status rf_components_check_matched(const struct rf_family_table *table,
                                           struct rf_err *err)
{
    static const char *const missing[] = {
        NULL,
        "no tensors of the multi-token-prediction layers in the config; were "
        "they left out of the checkpoint?",
        "no tensors of a vision tower; was it left out of the checkpoint?"};
    uint64_t matched[RF_ARRAY_SIZE(missing)] = {0};
    for (size_t i = 0; i < table->n_rules; i++) {
        matched[table->rules[i].component] += table->rules[i].matched;
    }
    for (enum rf_component c = RF_COMPONENT_MTP; c <= RF_COMPONENT_VISION;
         c++) {
        if (is_chosen(&table->chosen, c) && matched[c] == 0) {
            return fail(&table->chosen, c, err, missing[c]);
        }
    }
    return RF_OK;
}

uint64_t rf_components_left_out(const struct rf_family_table *table,
                                struct rf_values *values)
{
    const char *name = "num_nextn_predict_layers";
    const json_t *config = rf_model_text_config(values->config.value);
    json_int_t told = json_integer_value(json_object_get(config, name));
    uint64_t n = 0;
    if (!json_is_object(table->components[RF_COMPONENT_MTP].value)) {
        return told > 0 && !rf_values_is_used(values, name) ? (uint64_t)told
                                                            : 0;
    }
    if (table->chosen.mtp || count_modules(table, values, &n, NULL) != RF_OK) {
        return 0;
    }
    return n;
}
