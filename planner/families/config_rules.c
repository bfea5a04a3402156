/*
 * Plans of Transformers as rules. See config_rules.h.
 *
 * A plan maps a module or a parameter of the base model,
 * "layers.*.mlp.up_proj", to a style. Styles that cut weights become roles: the
 * tensor's own role if the common names know it and cut it the same way, else a
 * general one. Modules with styles that cut nothing are skipped.
 */
#include "planner/families/config_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/families/family_table.h"
#include "planner/families/model_fields.h"
#include "planner/model/roles.h"

enum plan_kind {
    KIND_COLUMN,
    KIND_ROW,
    KIND_WHOLE,
    KIND_VOCABULARY,
    KIND_MODULE,
    KIND_EXPERT,
    KIND_ROUTER
};

static const struct {
    const char *name;
    enum plan_kind kind;
    bool packed; /* gate and up in one */
} styles[] = {
    {"colwise", KIND_COLUMN, false},
    {"colwise_rep", KIND_COLUMN, false},
    {"colwise_gather_output", KIND_COLUMN, false},
    {"local_colwise", KIND_COLUMN, false},
    {"packed_colwise", KIND_COLUMN, true},
    {"local_packed_colwise", KIND_COLUMN, true},
    {"rowwise", KIND_ROW, false},
    {"rowwise_rep", KIND_ROW, false},
    {"rowwise_split_input", KIND_ROW, false},
    {"local_rowwise", KIND_ROW, false},
    {"packed_rowwise", KIND_ROW, false},
    {"local_packed_rowwise", KIND_ROW, false},
    {"embedding_colwise", KIND_ROW, false},
    {"embedding_rowwise", KIND_VOCABULARY, false},
    {"vocab", KIND_VOCABULARY, false},
    {"grouped_gemm", KIND_EXPERT, false},
    {"ep_router", KIND_ROUTER, false},
    {"replicate", KIND_WHOLE, false},
    {"replicated", KIND_WHOLE, false},
    {"replicated_with_grad_allreduce", KIND_WHOLE, false},
    {"mla_kv_a_proj", KIND_WHOLE, false},
    {"sequence_parallel", KIND_WHOLE, false},
    {"moe_tp_experts", KIND_MODULE, false},
    {"moe_identity_expert", KIND_MODULE, false},
    {"all_reduce", KIND_MODULE, false},
    {"gather", KIND_MODULE, false},
    {"local", KIND_MODULE, false},
    {"isolated", KIND_MODULE, false},
};

/* One entry of a plan. */
struct plan_entry {
    char *name;   /* "model.layers.{L}.mlp.up_proj" */
    bool experts; /* routed experts, */
    bool stacked; /* all in one tensor */
    bool packed;
    enum plan_kind kind;
};

static enum rf_status read_style(const struct rf_jnode *plan, const char *key,
                                 struct plan_entry *out, struct rf_err *err)
{
    struct rf_jnode node = rf_jnode_get(plan, key);
    const char *names[RF_ARRAY_SIZE(styles) + 1] = {NULL}, *style = NULL;
    RF_TRY(rf_jnode_string(plan, key, &style, err));
    for (size_t i = 0; i < RF_ARRAY_SIZE(styles); i++) {
        names[i] = styles[i].name;
        if (strcmp(style, styles[i].name) == 0) {
            out->kind = styles[i].kind;
            out->packed = styles[i].packed;
            return RF_OK;
        }
    }
    return rf_jnode_fail(&node, err,
                         "unknown style \"%.40s\"%s; list the tensors in "
                         "\"rules\" instead of \"config\"",
                         style, rf_did_you_mean(style, names).text);
}

/* "layers.*.mlp.experts.*.up_proj" below `prefix`, with {L} and {E}. */
static void read_name(const char *prefix, const char *key,
                      struct plan_entry *out)
{
    const char *experts = strstr(key, "experts.");
    bool shared = experts != NULL && strstr(key, "shared_experts.") != NULL;
    char name[256] = "";
    size_t used = (size_t)snprintf(name, sizeof(name), "%s", prefix);
    for (const char *at = key; *at != '\0' && used + 4 < sizeof(name); at++) {
        const char *mark = experts != NULL && at > experts ? "{E}" : "{L}";
        used += (size_t)snprintf(name + used, sizeof(name) - used, "%.*s",
                                 *at == '*' ? 3 : 1, *at == '*' ? mark : at);
    }
    out->name = rf_xstrdup(name);
    out->experts = experts != NULL && !shared;
    out->stacked = out->experts && strstr(name, "{E}") == NULL;
}

/* The general role of an entry. */
static enum rf_role general_role(const struct plan_entry *entry)
{
    bool expert = entry->experts;
    switch (entry->kind) {
    case KIND_COLUMN:
        return expert ? RF_ROLE_EXPERT_COLUMN : RF_ROLE_COLUMN;
    case KIND_ROW:
        return expert ? RF_ROLE_EXPERT_ROW : RF_ROLE_ROW;
    case KIND_VOCABULARY:
        return RF_ROLE_VOCABULARY;
    case KIND_EXPERT: /* spread whole; cut only with expert TP */
        return strstr(entry->name, "down") != NULL ? RF_ROLE_EXPERT_ROW
                                                   : RF_ROLE_EXPERT_COLUMN;
    case KIND_ROUTER:
        return RF_ROLE_ROUTER;
    case KIND_WHOLE:
    case KIND_MODULE:
        break;
    }
    return RF_ROLE_REPLICATED;
}

/* The role of `name` by the common names if it cuts like `general`, else
 * `general`. */
static enum rf_role role_of(const struct rf_family_table *common,
                            const char *name, enum rf_role general)
{
    const struct rf_role_division *wanted = rf_role_division(general);
    for (size_t i = 0; i < common->n_rules; i++) {
        enum rf_role role = common->rules[i].roles[0];
        const struct rf_role_division *division = rf_role_division(role);
        if (strcmp(common->rules[i].name, name) == 0 &&
            division->over == wanted->over && division->dim == wanted->dim) {
            return role;
        }
    }
    return general;
}

static json_t *make_rule(const struct rf_family_table *common,
                         const struct plan_entry *entry, const char *suffix)
{
    char *name = rf_xasprintf("%s%s", entry->name, suffix);
    const char *role = rf_role_name(role_of(common, name, general_role(entry)));
    json_t *rule = json_pack("{s:s, s:b}", "name", name, "optional", 1);
    if (entry->packed) {
        json_object_set_new(
            rule, "parts",
            json_pack("[{s:s}, {s:s}]", "role", role, "role", role));
    } else {
        json_object_set_new(rule, "role", json_string(role));
    }
    if (entry->stacked) {
        json_object_set_new(rule, "stacked", json_true());
    }
    free(name);
    return rule;
}

/* Endings of the tensors that a module's name in a plan can mean. */
static const char *const suffixes[] = {"", ".weight", ".bias"};
#define MAX_ENTRIES (RF_MODEL_MAX_RULES / RF_ARRAY_SIZE(suffixes))

static enum rf_status read_plan(const struct rf_jnode *plan, const char *prefix,
                                const struct rf_family_table *common,
                                json_t *known, json_t *out, struct rf_err *err)
{
    const char *key;
    json_t *value;
    json_object_foreach (plan->value, key, value) {
        struct plan_entry entry = {.name = NULL};
        RF_TRY(read_style(plan, key, &entry, err));
        read_name(prefix, key, &entry);
        for (size_t i = 0;
             i < RF_ARRAY_SIZE(suffixes) && entry.kind != KIND_MODULE &&
             json_object_get(known, key) == NULL;
             i++) {
            json_array_append_new(out, make_rule(common, &entry, suffixes[i]));
        }
        if (entry.kind != KIND_MODULE) {
            json_object_set_new(known, key, json_true());
        }
        free(entry.name);
    }
    return RF_OK;
}

enum rf_status rf_model_config_rules(const struct rf_jnode *config,
                                     json_t **out, struct rf_err *err)
{
    static const char *const plans[] = {"base_model_tp_plan",
                                        "base_model_ep_plan"};
    const json_t *inner = rf_model_text_config(config->value);
    bool wrapped = inner != NULL && inner != config->value;
    struct rf_jnode object = *config;
    struct rf_family_table *common = NULL;
    json_t *rules = json_array(), *known = json_object();
    enum rf_status status = rf_family_table_named("common names", &common, err);
    if (wrapped) {
        object.value = (json_t *)inner;
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(plans) && status == RF_OK; i++) {
        struct rf_jnode plan = rf_jnode_get(&object, plans[i]);
        if (plan.value != NULL && !json_is_object(plan.value)) {
            status = rf_jnode_wrong(&plan, err, "must be an object");
        } else if (json_object_size(plan.value) > MAX_ENTRIES) {
            status = rf_jnode_fail(&plan, err,
                                   "has %zu entries, the limit is %zu; write * "
                                   "in names for all layers",
                                   json_object_size(plan.value), MAX_ENTRIES);
        } else if (plan.value != NULL) {
            status =
                read_plan(&plan, wrapped ? "model.language_model." : "model.",
                          common, known, rules, err);
        }
    }
    if (status == RF_OK && json_array_size(rules) == 0) {
        status = rf_jnode_fail(config, err,
                               "\"rules\": \"config\" needs a "
                               "base_model_tp_plan or base_model_ep_plan in "
                               "the config");
    }
    rf_family_table_destroy(common);
    json_decref(known);
    if (status != RF_OK) {
        json_decref(rules);
        return status;
    }
    *out = rules;
    return RF_OK;
}
