/* Prefixes of names. See spelling.h. */
#include "planner/families/spelling.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/families/family_rules.h"

/* The rule's name with these prefixes; freed with free(). A model's own rules
 * use the names of its tensors. */
static char *respelled(const struct rf_rule *rule, const json_t *prefixes)
{
    const char *from, *name = rule->name;
    const bool own = strcmp(rule->table, "rules") == 0;
    json_t *to;
    json_object_foreach ((json_t *)(uintptr_t)prefixes, from, to) {
        const size_t length = strlen(from);
        if (!own && strncmp(name, from, length) == 0) {
            return rf_xasprintf("%s%s", json_string_value(to), name + length);
        }
    }
    return rf_xstrdup(name);
}

static enum rf_status check(const struct rf_jnode *prefixes, struct rf_err *err)
{
    const char *from;
    json_t *to;
    if (prefixes->value != NULL && !json_is_object(prefixes->value)) {
        return rf_jnode_fail(prefixes, err,
                             "must be an object {old prefix: new prefix}");
    }
    json_object_foreach (prefixes->value, from, to) {
        if (!json_is_string(to)) {
            return rf_jnode_fail(prefixes, err, "values must be strings");
        }
    }
    return RF_OK;
}

enum rf_status rf_spelling_apply(struct rf_family_table *table,
                                 const struct rf_jnode *prefixes,
                                 struct rf_err *err)
{
    RF_TRY(check(prefixes, err));
    for (size_t i = 0; i < table->n_rules; i++) {
        char *old = table->rules[i].name;
        table->rules[i].name = respelled(&table->rules[i], prefixes->value);
        free(old);
    }
    return RF_OK;
}

/* Whether a tensor matches the rule of a decoder layer with these prefixes. */
static bool speaks(const struct rf_family_table *table, const json_t *prefixes,
                   const json_t *tensors)
{
    bool found = false;
    for (size_t i = 0; i < table->n_rules && !found; i++) {
        const struct rf_rule *rule = &table->rules[i];
        const char *name;
        json_t *value;
        char *pattern;
        if (rule->component != RF_COMPONENT_NONE ||
            strstr(rule->name, "{L}") == NULL ||
            strchr(rule->name, '*') != NULL) {
            continue;
        }
        pattern = respelled(rule, prefixes);
        json_object_foreach ((json_t *)(uintptr_t)tensors, name, value) {
            struct rf_name_number ignored[2];
            found = rf_rule_fits(pattern, name, &ignored[0], &ignored[1]);
            if (found) {
                break;
            }
        }
        free(pattern);
    }
    return found;
}

enum rf_status rf_spelling_choose(struct rf_family_table *table,
                                  const json_t *tensors, char **out,
                                  struct rf_err *err)
{
    const size_t n = json_array_size(table->prefixes.value);
    if (table->prefixes.value != NULL &&
        !json_is_array(table->prefixes.value)) {
        return rf_jnode_fail(&table->prefixes, err,
                             "must be a list of objects {prefix: other "
                             "prefix}");
    }
    *out = NULL;
    if (n == 0 || speaks(table, NULL, tensors)) {
        return RF_OK;
    }
    for (size_t i = 0; i < n; i++) {
        struct rf_jnode prefixes = rf_jnode_at(&table->prefixes, i);
        void *first = json_object_iter(prefixes.value);
        RF_TRY(check(&prefixes, err));
        if (first != NULL && speaks(table, prefixes.value, tensors)) {
            *out = rf_xasprintf(
                "%s* for %s*", json_string_value(json_object_iter_value(first)),
                json_object_iter_key(first));
            return rf_spelling_apply(table, &prefixes, err);
        }
    }
    return RF_OK;
}
