/*
 * A list in place of a scalar or an object makes a matrix: one scenario object
 * with lists becomes one object for each combination of their values.
 *
 * The axes are in the order of the file, nested objects included; the first
 * varies slowest. Lists by nature, such as pp_layers, are not axes
 * (spec_fields.h). A member is called <scenario>-<axis>=<value>-… (nested axes
 * as "train.tp", an object as "tp=1+pp=2"), with bytes unfit for a file name
 * replaced by "_". Axes that do not concern a member's method
 * (config_method_keys.c) neither multiply nor name it. The product is bounded
 * before any member is made.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/mem.h"
#include "common/text.h"
#include "coordinator/config/config_internal.h"
#include "coordinator/config/nodes/names.h"
#include "planner/scenario/spec_fields.h"
#include "planner/scenario/spec_update.h"

struct axis {
    char *path; /* "train.tp" */
    const json_t *values;
};

struct axes {
    struct axis *list;
    size_t n, cap;
};

static bool list_by_nature(const char *key)
{
    const struct rf_spec_field *field = rf_spec_field_find(rf_spec_fields, key);
    if (field == NULL) {
        field = rf_spec_field_find(rf_side_fields, key);
    }
    if (field == NULL) {
        field = rf_spec_field_find(rf_update_fields, key);
    }
    return field != NULL && field->is_list;
}

bool rf_config_in_model(const char *path)
{
    return strncmp(path, "model.", 6) == 0;
}

bool rf_config_may_be_axis(const char *path, const char *key)
{
    const char *in_model = rf_config_in_model(path) ? path + 6 : NULL;
    if (list_by_nature(key)) {
        return false;
    }
    if (in_model == NULL) {
        return true;
    }
    if (strncmp(in_model, "megatron.", 9) == 0) {
        return strcmp(in_model + 9, "moe_layer_freq") != 0;
    }
    return strchr(in_model, '.') == NULL && strcmp(key, "rules") != 0;
}

const char *const rf_config_model_names[] = {"name", "config", "manifest",
                                             "checkpoint", NULL};

/* The name of a member of a list of models: its own, or its file's. */
static const char *model_name(const json_t *model)
{
    for (size_t i = 0; rf_config_model_names[i] != NULL; i++) {
        const char *text =
            json_string_value(json_object_get(model, rf_config_model_names[i]));
        const char *slash = text != NULL ? strrchr(text, '/') : NULL;
        if (text != NULL) {
            return slash != NULL && slash[1] != '\0' ? slash + 1 : text;
        }
    }
    return NULL;
}

/* Refuses a list as an axis inside a value of an axis. */
static enum rf_status check_object(const struct rf_jnode *object,
                                   struct rf_err *err)
{
    const char *key;
    json_t *value;
    json_object_foreach (object->value, key, value) {
        if (json_is_array(value) && !list_by_nature(key)) {
            const struct rf_jnode inner = rf_jnode_get(object, key);
            return rf_jnode_fail(&inner, err,
                                 "no matrix inside a value of a matrix; write "
                                 "one object for each value of \"%.60s\"",
                                 key);
        }
    }
    return RF_OK;
}

static enum rf_status check_value(const struct rf_jnode *item, const char *path,
                                  struct rf_err *err)
{
    if (strcmp(path, "model") == 0) {
        return json_is_object(item->value) && model_name(item->value) != NULL
                   ? RF_OK
                   : rf_jnode_fail(item, err,
                                   "each model of a matrix must be an object "
                                   "with a \"name\" or the path of a file");
    }
    if (json_is_object(item->value) && !rf_config_in_model(path)) {
        return check_object(item, err);
    }
    return json_is_object(item->value) || json_is_array(item->value) ||
                   json_is_null(item->value)
               ? rf_jnode_fail(item, err,
                               "values of a matrix must be numbers, strings, "
                               "true or false%s",
                               rf_config_in_model(path) ? "" : ", or objects")
               : RF_OK;
}

/* "tp=1+pp=2" */
static char *object_text(const json_t *object)
{
    char *text = NULL;
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)object, key, value) {
        char *inner = rf_json_plain(value);
        rf_text_add(&text, "+", "%s=%s", key, inner);
        free(inner);
    }
    return text != NULL ? text : rf_xstrdup("");
}

/* What names a value of the axis at `path`. */
static char *value_text(const char *path, const json_t *value)
{
    char *text;
    if (strcmp(path, "model") == 0) {
        const char *name = model_name(value);
        size_t length = strlen(name);
        bool file = length > 5 && strcmp(name + length - 5, ".json") == 0;
        text = rf_xasprintf("%.*s", (int)(file ? length - 5 : length), name);
    } else {
        text =
            json_is_object(value) ? object_text(value) : rf_json_plain(value);
    }
    for (char *c = text; *c != '\0'; c++) {
        if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                   "0123456789._-+=",
                   *c) == NULL) {
            *c = '_';
        }
    }
    return text;
}

/* Refuses member `i` of a list if an earlier one is equal or has the same text:
 * texts name scenarios, which name files. */
static enum rf_status check_twice(const struct rf_jnode *list, size_t i,
                                  char *const *texts, struct rf_err *err)
{
    struct rf_jnode item = rf_jnode_at(list, i);
    for (size_t j = 0; j < i; j++) {
        if (json_equal(item.value, json_array_get(list->value, j))) {
            return rf_jnode_fail(&item, err,
                                 "the same value twice in a matrix");
        }
        if (strcasecmp(texts[i], texts[j]) == 0) {
            return rf_jnode_fail(&item, err,
                                 "makes the same name as [%zu]: \"%.80s\"; "
                                 "names must be unique, they name result files",
                                 j, texts[i]);
        }
    }
    return RF_OK;
}

static enum rf_status check_values(const struct rf_jnode *list,
                                   const char *path, struct rf_err *err)
{
    char **texts = rf_xcalloc(json_array_size(list->value) + 1, sizeof(*texts));
    enum rf_status status = RF_OK;
    size_t n = 0;
    while (status == RF_OK && n < json_array_size(list->value)) {
        struct rf_jnode item = rf_jnode_at(list, n);
        status = check_value(&item, path, err);
        if (status == RF_OK) {
            texts[n] = value_text(path, item.value);
            status = check_twice(list, n++, texts, err);
        }
    }
    while (n > 0) {
        free(texts[--n]);
    }
    free(texts);
    return status;
}

static enum rf_status add_axis(const struct rf_jnode *node, const char *path,
                               struct axes *axes, struct rf_err *err)
{
    enum rf_status status;
    if (json_array_size(node->value) == 0) {
        return rf_jnode_fail(node, err, "an empty list gives no scenarios");
    }
    status = check_values(node, path, err);
    if (status == RF_OK) {
        RF_PUSH(axes->list, axes->n, axes->cap,
                ((struct axis){rf_xstrdup(path), node->value}));
    }
    return status;
}

static enum rf_status find_axes(const struct rf_jnode *object,
                                const char *prefix, unsigned depth,
                                struct axes *axes, struct rf_err *err);

/* Those of the members of a list that are objects: of pools. */
static enum rf_status find_axes_of_each(const struct rf_jnode *list,
                                        const char *path, unsigned depth,
                                        struct axes *axes, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (size_t i = 0; status == RF_OK && i < json_array_size(list->value);
         i++) {
        const struct rf_jnode item = rf_jnode_at(list, i);
        char *of = rf_xasprintf("%s.%zu", path, i);
        if (json_is_object(item.value)) {
            status = find_axes(&item, of, depth, axes, err);
        }
        free(of);
    }
    return status;
}

/* Scenario objects are two levels deep (the sides); deeper keys are unknown to
 * the planner's reader anyway. */
static enum rf_status find_axes(const struct rf_jnode *object,
                                const char *prefix, unsigned depth,
                                struct axes *axes, struct rf_err *err)
{
    const char *key;
    json_t *value;
    enum rf_status status = RF_OK;
    json_object_foreach (object->value, key, value) {
        struct rf_jnode node = rf_jnode_get(object, key);
        char *path = rf_xasprintf("%s%s%.40s", prefix,
                                  prefix[0] == '\0' ? "" : ".", key);
        if (json_is_array(value) && rf_config_may_be_axis(path, key)) {
            status = add_axis(&node, path, axes, err);
        } else if (json_is_object(value) && depth < 2) {
            status = find_axes(&node, path, depth + 1, axes, err);
        } else if (strcmp(path, "infer") == 0) {
            status = find_axes_of_each(&node, path, depth + 1, axes, err);
        }
        free(path);
        if (status != RF_OK) {
            return status;
        }
    }
    return RF_OK;
}

/* Puts `value` (taken) at a dotted `path` of `object`; numbers are places in
 * lists. */
static void put_at(json_t *object, const char *path, json_t *value)
{
    char key[128];
    const char *dot;
    while ((dot = strchr(path, '.')) != NULL) {
        snprintf(key, sizeof(key), "%.*s", (int)(dot - path), path);
        object = json_is_array(object)
                     ? json_array_get(object, strtoul(key, NULL, 10))
                     : json_object_get(object, key);
        path = dot + 1;
    }
    json_object_set_new(object, path, value);
}

/* The index of member `index`'s value among those of axis `a`. */
static size_t choice_of(const struct axes *axes, size_t a, size_t index)
{
    for (size_t i = axes->n - 1; i > a; i--) {
        index /= json_array_size(axes->list[i].values);
    }
    return index % json_array_size(axes->list[a].values);
}

/* Puts the values of member `index` into the scenario object `member`. */
static void choose(const struct axes *axes, size_t index, json_t *member)
{
    for (size_t a = 0; a < axes->n; a++) {
        const struct axis *axis = &axes->list[a];
        put_at(member, axis->path,
               json_deep_copy(
                   json_array_get(axis->values, choice_of(axes, a, index))));
    }
}

/* Whether the member differs from an earlier one only in keys that do not
 * concern its method; the first one is enough. */
static bool is_equal_to_earlier(const struct axes *axes, size_t index,
                                const json_t *member)
{
    bool equal = false;
    for (size_t a = 0; a < axes->n; a++) {
        equal |= choice_of(axes, a, index) > 0 &&
                 !rf_config_key_concerns(member, axes->list[a].path);
    }
    return equal;
}

static char *member_name(const char *base, const struct axes *axes,
                         size_t index, const json_t *member)
{
    char *name = rf_xstrdup(base);
    for (size_t a = 0; a < axes->n; a++) {
        const struct axis *axis = &axes->list[a];
        char *text;
        if (!rf_config_key_concerns(member, axis->path)) {
            continue;
        }
        text =
            value_text(axis->path,
                       json_array_get(axis->values, choice_of(axes, a, index)));
        rf_text_add(&name, "-", "%s=%s", axis->path, text);
        free(text);
    }
    return name;
}

/* Appends a member; it takes `value` and `name`. */
static void add_member(const struct rf_jnode *scenario,
                       const struct rf_scenario_config *all, json_t *value,
                       char *name, struct rf_config *config)
{
    struct rf_scenario_config member = *all;
    if (!rf_config_key_concerns(value, "memory")) {
        json_object_del(value, "memory");
    }
    json_object_set_new(value, "name", json_string(name));
    member.model = json_incref(json_object_get(value, "model"));
    json_object_del(value, "model");
    json_object_del(value, "slow");
    json_object_del(value, "impossible");
    member.name = name;
    member.base = rf_xstrdup(all->base);
    member.value = value;
    snprintf(member.path, sizeof(member.path), "%.39s", scenario->path);
    config->scenarios = rf_xrealloc(config->scenarios, config->n_scenarios + 1,
                                    sizeof(*config->scenarios));
    config->scenarios[config->n_scenarios++] = member;
}

/* Member `index` of the matrix. */
static enum rf_status make_member(const struct rf_jnode *scenario,
                                  const struct rf_scenario_config *all,
                                  const struct axes *axes, size_t index,
                                  struct rf_config *config, struct rf_err *err)
{
    json_t *value = json_deep_copy(scenario->value);
    char *name;
    if (value == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM, "scenario \"%s\"", all->base);
    }
    choose(axes, index, value);
    if (is_equal_to_earlier(axes, index, value)) {
        json_decref(value);
        config->n_equal_left++;
        return RF_OK;
    }
    name = member_name(all->base, axes, index, value);
    if (strlen(name) > RF_CONFIG_MAX_NAME) {
        rf_jnode_fail(scenario, err,
                      "the member name \"%.60s…\" is longer than %d bytes",
                      name, RF_CONFIG_MAX_NAME);
        free(name);
        json_decref(value);
        return RF_ERR_CONFIG;
    }
    add_member(scenario, all, value, name, config);
    return RF_OK;
}

static enum rf_status count_members(const struct rf_jnode *scenario,
                                    const struct axes *axes, size_t before,
                                    size_t *out, struct rf_err *err)
{
    uint64_t product = 1;
    for (size_t a = 0; a < axes->n && product <= RF_CONFIG_MAX_SCENARIOS; a++) {
        product *= json_array_size(axes->list[a].values);
    }
    if (before + product > RF_CONFIG_MAX_SCENARIOS) {
        return rf_jnode_fail(
            scenario, err, "more than %d scenarios: %zu before this one%s",
            RF_CONFIG_MAX_SCENARIOS, before,
            axes->n > 0 ? ", plus the product of its lists" : "");
    }
    *out = (size_t)product;
    return RF_OK;
}

static enum rf_status expand(const struct rf_jnode *scenario,
                             const struct rf_scenario_config *all,
                             const struct axes *axes, struct rf_config *config,
                             struct rf_err *err)
{
    size_t count = 0;
    enum rf_status status =
        count_members(scenario, axes, config->n_scenarios, &count, err);
    for (size_t i = 0; status == RF_OK && i < count; i++) {
        status = make_member(scenario, all, axes, i, config, err);
    }
    return status;
}

const char *const rf_config_impossible_words[] = {"error", "skip", NULL};

/* Reads the keys that the planner does not. */
static enum rf_status read_own_keys(const struct rf_jnode *scenario,
                                    struct rf_scenario_config *all,
                                    struct rf_err *err)
{
    unsigned impossible = 0;
    enum rf_status status = rf_jnode_bool(scenario, "slow", &all->slow, err);
    RF_THEN(status,
            rf_jnode_choice(scenario, "impossible", rf_config_impossible_words,
                            &impossible, err));
    all->skip = impossible == 1;
    return status;
}

enum rf_status rf_config_expand(const struct rf_jnode *scenario,
                                struct rf_config *config, struct rf_err *err)
{
    struct axes axes = {0};
    struct rf_scenario_config all = {0};
    const char *base = NULL;
    enum rf_status status;
    if (!json_is_object(scenario->value)) {
        return rf_jnode_wrong(scenario, err, "must be an object");
    }
    status = rf_jnode_require(scenario, "name", err);
    RF_THEN(status, rf_jnode_string(scenario, "name", &base, err));
    if (status != RF_OK) {
        return status;
    }
    if (!rf_names_valid_file(base, RF_CONFIG_MAX_NAME)) {
        struct rf_jnode node = rf_jnode_get(scenario, "name");
        return rf_jnode_wrong(&node, err,
                              "must be at most %d letters, digits, \".\", "
                              "\"_\", \"-\", \"+\" or \"=\", and not start "
                              "with \".\" or \"-\" (it names a result file)",
                              RF_CONFIG_MAX_NAME);
    }
    struct rf_jnode named = *scenario;
    named.label = base;
    status = read_own_keys(&named, &all, err);
    RF_THEN(status, find_axes(&named, "", 0, &axes, err));
    if (status == RF_OK) {
        all.base = rf_xstrdup(base);
        status = expand(&named, &all, &axes, config, err);
        free(all.base);
    }
    for (size_t a = 0; a < axes.n; a++) {
        free(axes.list[a].path);
    }
    free(axes.list);
    return status;
}
