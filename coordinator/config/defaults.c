/*
 * Variables first, then defaults: a default may use a variable, and a variable
 * whose value is a list makes a matrix at every use.
 *
 * A variable replaces a whole value, never a part of a text, and its own value
 * is used unchanged. The reader of a key finds values of the wrong type.
 */
#include "coordinator/config/defaults.h"

#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"

/* Members that may use variables. */
static const char *const places[] = {"model", "defaults", "scenarios"};

static enum rf_status check_object(const struct rf_jnode *node,
                                   struct rf_err *err)
{
    return node->value == NULL || json_is_object(node->value)
               ? RF_OK
               : rf_jnode_wrong(node, err, "must be an object");
}

/* --- Variables ------------------------------------------------------------ */

static enum rf_status unknown_variable(const struct rf_jnode *place,
                                       json_t *variables, struct rf_err *err)
{
    const char *name = json_string_value(place->value) + 1;
    const char **names =
        rf_xcalloc(json_object_size(variables) + 1, sizeof(*names));
    const char *key, *nearest;
    json_t *value;
    size_t n = 0;
    json_object_foreach (variables, key, value) {
        names[n++] = key;
    }
    nearest = rf_nearest_word(name, names);
    if (nearest != NULL) {
        rf_jnode_fail(place, err,
                      "unknown variable \"$%.60s\" (did you mean \"$%.60s\"?)",
                      name, nearest);
    } else {
        rf_jnode_fail(place, err,
                      "unknown variable \"$%.60s\": define it in \"variables\"",
                      name);
    }
    free(names);
    return RF_ERR_CONFIG;
}

static enum rf_status replace(const struct rf_jnode *place, json_t *variables,
                              json_t **out, struct rf_err *err);

static enum rf_status replace_in_object(const struct rf_jnode *object,
                                        json_t *variables, json_t **out,
                                        struct rf_err *err)
{
    json_t *copy = json_object();
    const char *key;
    json_t *value;
    json_object_foreach (object->value, key, value) {
        struct rf_jnode member = rf_jnode_get(object, key);
        json_t *replaced = NULL;
        enum rf_status status = replace(&member, variables, &replaced, err);
        if (status != RF_OK) {
            json_decref(copy);
            return status;
        }
        json_object_set_new(copy, key, replaced);
    }
    *out = copy;
    return RF_OK;
}

static enum rf_status replace_in_list(const struct rf_jnode *list,
                                      json_t *variables, json_t **out,
                                      struct rf_err *err)
{
    json_t *copy = json_array();
    for (size_t i = 0; i < json_array_size(list->value); i++) {
        struct rf_jnode item = rf_jnode_at(list, i);
        json_t *replaced = NULL;
        enum rf_status status = replace(&item, variables, &replaced, err);
        if (status != RF_OK) {
            json_decref(copy);
            return status;
        }
        json_array_append_new(copy, replaced);
    }
    *out = copy;
    return RF_OK;
}

/* A copy with variables replaced. Recursion is bounded: a document is at most
 * RF_JSON_MAX_DEPTH deep. */
static enum rf_status replace(const struct rf_jnode *place, json_t *variables,
                              json_t **out, struct rf_err *err)
{
    const char *text = json_string_value(place->value);
    json_t *value;
    if (json_is_object(place->value)) {
        return replace_in_object(place, variables, out, err);
    }
    if (json_is_array(place->value)) {
        return replace_in_list(place, variables, out, err);
    }
    if (text == NULL || text[0] != '$') {
        *out = json_incref(place->value);
        return RF_OK;
    }
    value = json_object_get(variables, text + 1);
    if (value == NULL) {
        return unknown_variable(place, variables, err);
    }
    *out = json_deep_copy(value);
    return RF_OK;
}

/* Puts the member `key` of `root` into `out`, with variables replaced. */
static enum rf_status take(const struct rf_jnode *root, const char *key,
                           json_t *out, struct rf_err *err)
{
    struct rf_jnode member = rf_jnode_get(root, key);
    json_t *replaced = NULL;
    enum rf_status status;
    if (member.value == NULL) {
        return RF_OK;
    }
    status = replace(&member, json_object_get(root->value, "variables"),
                     &replaced, err);
    if (status == RF_OK) {
        json_object_set_new(out, key, replaced);
    }
    return status;
}

/* Whether `in` uses "$NAME" as a value. */
static bool is_used(const json_t *in, const char *name)
{
    const char *text = json_string_value(in), *key;
    json_t *value;
    bool used = text != NULL && text[0] == '$' && strcmp(text + 1, name) == 0;
    json_object_foreach ((json_t *)in, key, value) {
        used = used || is_used(value, name);
    }
    for (size_t i = 0; !used && i < json_array_size(in); i++) {
        used = is_used(json_array_get(in, i), name);
    }
    return used;
}

#define UNUSED_SHOWN 10

/* An unused variable may be misspelt, as in --set variables.tpp=4. */
static void warn_unused(const struct rf_jnode *root,
                        const struct rf_jnode *variables)
{
    const char *key;
    json_t *value;
    size_t unused = 0;
    json_object_foreach (variables->value, key, value) {
        struct rf_jnode member = rf_jnode_get(variables, key);
        struct rf_err said = {0};
        bool used = false;
        for (size_t i = 0; i < RF_ARRAY_SIZE(places); i++) {
            used =
                used || is_used(json_object_get(root->value, places[i]), key);
        }
        if (!used && unused++ < UNUSED_SHOWN) {
            rf_jnode_fail(&member, &said,
                          "unused variable: \"$%.60s\" does not appear in "
                          "model, defaults or scenarios",
                          key);
            rf_warn("%s", said.text);
        }
    }
    if (unused > UNUSED_SHOWN) {
        rf_warn("%s: %s: %zu more unused variables", variables->file,
                variables->path, unused - UNUSED_SHOWN);
    }
}

/* --- Defaults ------------------------------------------------------------- */

static bool is_side(const char *key)
{
    return strcmp(key, "train") == 0 || strcmp(key, "infer") == 0;
}

/* `value` of a side with the keys of `given` that it lacks, which come first. Of
 * a list, each pool gets those of its place in `given`, if that is a list too. A
 * new reference. */
static json_t *complete_side(json_t *given, json_t *value)
{
    json_t *whole, *pool;
    size_t i;
    if (json_is_array(value)) {
        whole = json_array();
        json_array_foreach (value, i, pool) {
            json_t *own =
                json_is_array(given) ? json_array_get(given, i) : given;
            json_array_append_new(whole, complete_side(own, pool));
        }
        return whole;
    }
    if (!json_is_object(given) || !json_is_object(value)) {
        return json_incref(value);
    }
    whole = json_deep_copy(given);
    json_object_update(whole, value);
    return whole;
}

/* The keys of `defaults` first, so that axes of a matrix vary in their order.
 * Non-objects are left to the scenario's reader. */
static json_t *complete(json_t *defaults, json_t *scenario)
{
    json_t *whole;
    const char *key;
    json_t *value;
    if (!json_is_object(scenario)) {
        return json_incref(scenario);
    }
    whole = json_deep_copy(defaults);
    json_object_foreach (scenario, key, value) {
        json_object_set_new(
            whole, key,
            is_side(key) ? complete_side(json_object_get(whole, key), value)
                         : json_incref(value));
    }
    return whole;
}

static enum rf_status check_defaults(const struct rf_jnode *defaults,
                                     struct rf_err *err)
{
    struct rf_jnode name;
    RF_TRY(check_object(defaults, err));
    name = rf_jnode_get(defaults, "name");
    return name.value == NULL
               ? RF_OK
               : rf_jnode_fail(&name, err, "each scenario needs its own name");
}

static void complete_all(json_t *suite)
{
    json_t *defaults = json_object_get(suite, "defaults");
    json_t *list = json_object_get(suite, "scenarios");
    json_object_set_new(suite, "written", json_copy(list));
    for (size_t i = 0; defaults != NULL && i < json_array_size(list); i++) {
        json_array_set_new(list, i,
                           complete(defaults, json_array_get(list, i)));
    }
    json_object_del(suite, "defaults");
}

enum rf_status rf_defaults_resolve(const struct rf_jnode *root, json_t **out,
                                   struct rf_err *err)
{
    struct rf_jnode variables = rf_jnode_get(root, "variables");
    struct rf_jnode defaults = rf_jnode_get(root, "defaults");
    json_t *suite = json_object();
    enum rf_status status = check_object(&variables, err);
    RF_THEN(status, check_defaults(&defaults, err));
    for (size_t i = 0; status == RF_OK && i < RF_ARRAY_SIZE(places); i++) {
        status = take(root, places[i], suite, err);
    }
    if (status != RF_OK) {
        json_decref(suite);
        return status;
    }
    warn_unused(root, &variables);
    complete_all(suite);
    *out = suite;
    return RF_OK;
}
