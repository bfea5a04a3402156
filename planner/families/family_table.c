/*
 * Reading tables. See family_table.h.
 *
 * "like" is followed first, so that a table starts from its inherited entries:
 * values and sets of layers by name, tensors by pattern. Built-in files are
 * parsed only if they mention the model type.
 */
#include "planner/families/family_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/complaints.h"
#include "common/mem.h"
#include "planner/families/components.h"
#include "planner/families/families.h"
#include "planner/families/family_rules.h"
#include "planner/families/model_values.h"
#include "planner/families/rule_read.h"
#include "planner/families/spelling.h"

#define MAX_LIKE 8
#define MAX_TYPES 512

static enum rf_status read_table(struct rf_family_table *table,
                                 const struct rf_jnode *node, const char *name,
                                 unsigned depth, struct rf_err *err);

/* --- Putting rules in place ----------------------------------------------- */

static size_t find_rule(const struct rf_family_table *table, const char *name,
                        bool own)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < table->n_rules; i++) {
        if (table->rules[i].own == own &&
            strcmp(table->rules[i].name, name) == 0) {
            found = i;
        }
    }
    return found;
}

static void remove_rule(struct rf_family_table *table, size_t at)
{
    free(table->rules[at].name);
    memmove(&table->rules[at], &table->rules[at + 1],
            (table->n_rules - at - 1) * sizeof(*table->rules));
    table->n_rules--;
}

/* The place of a rule that replaces no other: after the one it names, after its
 * namesake, after the last layer tensor if it is one, else at the end. */
static enum rf_status find_place(const struct rf_family_table *table,
                                 const struct rf_rule *rule, size_t *out,
                                 struct rf_err *err)
{
    const char *after = NULL;
    size_t at = find_rule(table, rule->name, true);
    RF_TRY(rf_jnode_string(&rule->node, "after", &after, err));
    if (after != NULL) {
        at = find_rule(table, after, true);
        at = at != SIZE_MAX ? at : find_rule(table, after, false);
        if (at == SIZE_MAX) {
            struct rf_jnode member = rf_jnode_get(&rule->node, "after");
            return rf_jnode_fail(
                &member, err, "no earlier tensor is named \"%.100s\"", after);
        }
    }
    for (size_t i = table->n_rules;
         at == SIZE_MAX && i-- > 0 && strstr(rule->name, "{L}") != NULL;) {
        at = strstr(table->rules[i].name, "{L}") != NULL ? i : SIZE_MAX;
    }
    *out = at == SIZE_MAX ? table->n_rules : at + 1;
    return RF_OK;
}

static enum rf_status add_rule(struct rf_family_table *table,
                               const struct rf_rule *rule, struct rf_err *err)
{
    size_t at = find_rule(table, rule->name, false), place = at;
    while (at != SIZE_MAX) { /* ends at the first inherited namesake */
        place = at;
        remove_rule(table, at);
        at = find_rule(table, rule->name, false);
    }
    if (place == SIZE_MAX) {
        RF_TRY(find_place(table, rule, &place, err));
    }
    RF_PUSH(table->rules, table->n_rules, table->cap, *rule);
    memmove(&table->rules[place + 1], &table->rules[place],
            (table->n_rules - 1 - place) * sizeof(*rule));
    table->rules[place] = *rule;
    return RF_OK;
}

/* The wrong rules of a list. */
struct wrong_rules {
    struct rf_err first;
    struct rf_complaints all; /* without the file's name */
};

static void note_wrong(struct wrong_rules *wrong, const struct rf_jnode *rule,
                       const struct rf_err *err)
{
    size_t file = strlen(rule->file) + strlen(": ");
    if (wrong->all.n == 0) {
        wrong->first = *err;
    }
    rf_complain(&wrong->all, "%s",
                err->text + (file < strlen(err->text) ? file : 0));
}

/* A single wrong rule is an error like any other. */
static enum rf_status end_wrong(const struct wrong_rules *wrong,
                                const struct rf_jnode *list, struct rf_err *err)
{
    char what[120];
    if (wrong->all.n == 1) {
        return rf_err_set(err, wrong->first.status, "%s", wrong->first.text);
    }
    snprintf(what, sizeof(what), "%.80s: %zu invalid rules", list->file,
             wrong->all.n);
    return rf_complaints_end(&wrong->all, what, err);
}

/* After a wrong rule, others are only read: they may refer to it. */
static enum rf_status read_rules(struct rf_family_table *table,
                                 const struct rf_jnode *list, const char *name,
                                 struct rf_err *err)
{
    struct wrong_rules wrong = {.all = {.n = 0}};
    if (list->value != NULL && !json_is_array(list->value)) {
        return rf_jnode_fail(list, err, "must be a list of rules");
    }
    if (json_array_size(list->value) > RF_MODEL_MAX_RULES) {
        return rf_jnode_fail(list, err,
                             "has %zu rules, the limit is %d; write {L} and "
                             "{E} in names for all layers and experts",
                             json_array_size(list->value), RF_MODEL_MAX_RULES);
    }
    for (size_t i = 0; i < json_array_size(list->value); i++) {
        struct rf_jnode node = rf_jnode_at(list, i);
        struct rf_err why = {.text = ""};
        struct rf_rule rule = {.name = NULL};
        enum rf_status status = rf_rule_read(&node, name, &rule, &why);
        if (status == RF_OK && wrong.all.n == 0) {
            status = add_rule(table, &rule, &why);
            rule.name = status == RF_OK ? NULL : rule.name; /* the table's */
        }
        free(rule.name);
        if (status != RF_OK) {
            note_wrong(&wrong, &node, &why);
        }
    }
    return end_wrong(&wrong, list, err);
}

/* --- One table ------------------------------------------------------------ */

static enum rf_status leave_out(struct rf_family_table *table,
                                const struct rf_jnode *node, struct rf_err *err)
{
    struct rf_jnode list = rf_jnode_get(node, "without");
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        struct rf_jnode item = rf_jnode_at(&list, i);
        const char *pattern = json_string_value(item.value);
        size_t before = table->n_rules;
        for (size_t r = table->n_rules; pattern != NULL && r-- > 0;) {
            struct rf_name_number ignored[2];
            if (rf_rule_fits(pattern, table->rules[r].name, &ignored[0],
                             &ignored[1])) {
                remove_rule(table, r);
            }
        }
        if (table->n_rules == before) {
            return rf_jnode_fail(
                &item, err,
                "must match a tensor of the table named by \"like\"");
        }
    }
    return RF_OK;
}

static enum rf_status merge(json_t *into, const struct rf_jnode *node,
                            const char *key, struct rf_err *err)
{
    struct rf_jnode member = rf_jnode_get(node, key);
    if (member.value != NULL && !json_is_object(member.value)) {
        return rf_jnode_fail(&member, err, "must be an object");
    }
    if (member.value != NULL) {
        json_object_update(into, member.value);
    }
    return RF_OK;
}

/* Inherits a component whole, or replaces it: null is none, a text names the
 * table to take it from. */
static enum rf_status take_component(struct rf_family_table *table,
                                     const struct rf_jnode *node,
                                     enum rf_component component,
                                     const char *key, struct rf_err *err)
{
    struct rf_jnode member = rf_jnode_get(node, key);
    const char *name = json_string_value(member.value);
    struct rf_family_table *other = NULL;
    if (member.value == NULL) {
        return RF_OK;
    }
    if (name == NULL) {
        table->components[component] = member;
        return RF_OK;
    }
    if (rf_family_table_named(name, &other, err) != RF_OK) {
        return rf_family_table_unknown(&member, name, err);
    }
    table->components[component] = other->components[component];
    json_array_extend(table->documents, other->documents);
    rf_family_table_destroy(other);
    return RF_OK;
}

/* Whether the table describes that model type or, `by_table` (another table
 * asks), has that name. */
static bool is_called(const json_t *table, const char *name, bool by_table)
{
    const json_t *types = json_object_get(table, "model_types");
    const char *own = json_string_value(json_object_get(table, "name"));
    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        if (type != NULL && strcmp(type, name) == 0) {
            return true;
        }
    }
    return by_table && own != NULL && strcmp(own, name) == 0;
}

static bool mentions(const struct rf_family_file *file, const char *name)
{
    char *quoted = rf_xasprintf("\"%s\"", name);
    bool found = strstr(file->text, quoted) != NULL;
    free(quoted);
    return found;
}

/* Reads the built-in table called `name`; *found: whether there is one. `name`
 * must outlive `table`. */
static enum rf_status read_named(struct rf_family_table *table,
                                 const char *name, unsigned depth, bool *found,
                                 struct rf_err *err)
{
    *found = false;
    for (const struct rf_family_file *file = rf_family_files;
         file->name != NULL && !*found; file++) {
        json_t *document = NULL;
        struct rf_jnode root;
        if (!mentions(file, name)) {
            continue;
        }
        RF_TRY(
            rf_json_parse(file->text, file->size, file->name, &document, err));
        json_array_append_new(table->documents, document);
        root = rf_jnode_root(document, file->name);
        for (size_t i = 0; i < json_array_size(document) && !*found; i++) {
            struct rf_jnode node = rf_jnode_at(&root, i);
            *found = is_called(node.value, name, depth > 0);
            if (*found) {
                RF_TRY(read_table(table, &node, name, depth, err));
            }
        }
    }
    return RF_OK;
}

static enum rf_status read_like(struct rf_family_table *table,
                                const struct rf_jnode *node, unsigned depth,
                                struct rf_err *err)
{
    struct rf_jnode member = rf_jnode_get(node, "like");
    const char *like = NULL;
    bool found = false;
    enum rf_status status = rf_jnode_string(node, "like", &like, err);
    if (status != RF_OK || like == NULL) {
        return status;
    }
    if (depth >= MAX_LIKE) {
        return rf_jnode_fail(&member, err,
                             "\"like\" nested deeper than %d levels", MAX_LIKE);
    }
    status = read_named(table, like, depth + 1, &found, err);
    if (status == RF_OK && !found) {
        status = rf_family_table_unknown(&member, like, err);
    }
    for (size_t i = 0; i < table->n_rules; i++) {
        table->rules[i].own = false;
    }
    return status;
}

static enum rf_status read_table(struct rf_family_table *table,
                                 const struct rf_jnode *node, const char *name,
                                 unsigned depth, struct rf_err *err)
{
    static const char *const keys[] = {
        "model_types", "name",     "like",      "without", "prefix",
        "values",      "layers",   "attention", "tensors", "mtp",
        "vision",      "prefixes", NULL};
    struct rf_jnode tensors = rf_jnode_get(node, "tensors");
    struct rf_jnode prefix = rf_jnode_get(node, "prefix");
    struct rf_jnode prefixes = rf_jnode_get(node, "prefixes");
    json_t *attention = json_object_get(node->value, "attention");
    RF_TRY(rf_jnode_check_keys(node, keys, err));
    RF_TRY(read_like(table, node, depth, err));
    RF_TRY(leave_out(table, node, err));
    RF_TRY(rf_spelling_apply(table, &prefix, err));
    RF_TRY(merge(table->values, node, "values", err));
    RF_TRY(merge(table->layers, node, "layers", err));
    if (attention != NULL) {
        table->attention = attention;
    }
    if (prefixes.value != NULL) {
        table->prefixes = prefixes;
    }
    RF_TRY(take_component(table, node, RF_COMPONENT_MTP, "mtp", err));
    RF_TRY(take_component(table, node, RF_COMPONENT_VISION, "vision", err));
    return read_rules(table, &tensors, name, err);
}

/* --- Entry points --------------------------------------------------------- */

static struct rf_family_table *table_create(const char *name)
{
    struct rf_family_table *table = rf_xcalloc(1, sizeof(*table));
    table->name = rf_xstrdup(name);
    table->values = json_object();
    table->layers = json_object();
    table->documents = json_array();
    return table;
}

void rf_family_table_destroy(struct rf_family_table *table)
{
    if (table == NULL) {
        return;
    }
    for (size_t i = 0; i < table->n_rules; i++) {
        free(table->rules[i].name);
    }
    free(table->rules);
    json_decref(table->values);
    json_decref(table->layers);
    json_decref(table->documents);
    free(table->name);
    free(table);
}

enum rf_status rf_family_table_unknown(const struct rf_jnode *node,
                                       const char *model_type,
                                       struct rf_err *err)
{
    const char *names[MAX_TYPES + 1];
    json_t *documents = json_array();
    char known[480] = "", more[64] = "";
    size_t n = 0, used = 0, listed = 0;
    for (const struct rf_family_file *file = rf_family_files;
         file->name != NULL; file++) {
        json_t *document = NULL;
        if (rf_json_parse(file->text, file->size, file->name, &document,
                          NULL) == RF_OK) {
            json_array_append_new(documents, document);
        }
        for (size_t i = 0; i < json_array_size(document); i++) {
            const json_t *types =
                json_object_get(json_array_get(document, i), "model_types");
            for (size_t k = 0; k < json_array_size(types) && n < MAX_TYPES;
                 k++) {
                names[n++] = json_string_value(json_array_get(types, k));
            }
        }
    }
    names[n] = NULL;
    for (; listed < n && used + strlen(names[listed]) + 2 < sizeof(known);
         listed++) {
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s",
                                 listed > 0 ? ", " : "", names[listed]);
    }
    if (listed < n) {
        snprintf(more, sizeof(more), " and %zu more in docs/MODELS.md",
                 n - listed);
    }
    rf_jnode_fail(
        node, err,
        "unknown model type \"%.40s\"%s; add \"rules\" beside \"config\" "
        "(\"rules\": {\"like\": \"llama\"} for one like Llama), or use "
        "\"checkpoint\", \"manifest\" or \"megatron\" instead; known: %s%s",
        model_type, rf_did_you_mean(model_type, names).text, known, more);
    json_decref(documents);
    return RF_ERR_CONFIG;
}

enum rf_status rf_family_table_open(const char *model_type,
                                    const struct rf_jnode *rules,
                                    const struct rf_components *components,
                                    struct rf_family_table **out,
                                    struct rf_err *err)
{
    struct rf_family_table *table =
        table_create(model_type != NULL ? model_type : "rules");
    bool own = json_is_object(rules->value), found = false;
    enum rf_status status = RF_OK;
    table->by_hand = rules->value != NULL;
    if (model_type != NULL && !own) {
        status = read_named(table, table->name, 0, &found, err);
    }
    if (status == RF_OK && own) {
        status = read_table(table, rules, "rules", 0, err);
    } else if (status == RF_OK && rules->value != NULL) {
        for (size_t i = 0; i < table->n_rules; i++) {
            table->rules[i].own = false;
        }
        status = read_rules(table, rules, "rules", err);
    }
    if (status == RF_OK && (rules->value != NULL || found)) {
        status = rf_components_add(table, components, err);
    }
    if (status != RF_OK || (rules->value == NULL && !found)) {
        rf_family_table_destroy(table);
        *out = NULL;
        return status;
    }
    *out = table;
    return RF_OK;
}

enum rf_status rf_family_table_named(const char *name,
                                     struct rf_family_table **out,
                                     struct rf_err *err)
{
    struct rf_family_table *table = table_create(name);
    bool found = false;
    enum rf_status status = read_named(table, table->name, 1, &found, err);
    if (status == RF_OK && !found) {
        status = rf_err_set(err, RF_ERR_INTERNAL, "no table \"%s\"", name);
    }
    if (status != RF_OK) {
        rf_family_table_destroy(table);
        return status;
    }
    *out = table;
    return RF_OK;
}

enum rf_status rf_family_table_mention(const struct rf_family_table *table,
                                       struct rf_values *values,
                                       struct rf_err *err)
{
    static const char *const members[] = {"experts", "layers", "if", "heads",
                                          "block"};
    const char *key;
    json_t *value;
    size_t i;
    json_object_foreach (table->attention, key, value) {
        struct rf_jnode where = {.file = table->name};
        snprintf(where.path, sizeof(where.path), "attention.%s", key);
        RF_TRY(rf_values_mention(values, &where, value, err));
    }
    for (size_t r = 0; r < table->n_rules; r++) {
        const struct rf_rule *rule = &table->rules[r];
        const struct rf_jnode *node = &rule->node;
        const json_t *const layers[] = {rule->first.value, rule->count.value,
                                        rule->each.value};
        for (size_t m = 0; m < RF_ARRAY_SIZE(members); m++) {
            struct rf_jnode where = rf_jnode_get(node, members[m]);
            RF_TRY(rf_values_mention(values, &where, where.value, err));
        }
        json_array_foreach (json_object_get(node->value, "shape"), i, value) {
            RF_TRY(rf_values_mention(values, node, value, err));
        }
        for (size_t m = 0; m < RF_ARRAY_SIZE(layers); m++) {
            RF_TRY(rf_values_mention(values, node, layers[m], err));
        }
        json_array_foreach (json_object_get(node->value, "parts"), i, value) {
            RF_TRY(rf_values_mention(values, node,
                                     json_object_get(value, "rows"), err));
            RF_TRY(rf_values_mention(values, node,
                                     json_object_get(value, "heads"), err));
        }
    }
    return RF_OK;
}
