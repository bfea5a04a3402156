/*
 * Members set by their path. See overrides.h.
 *
 * A path is followed from the document down, one step at a time, from all
 * places reached so far: "*" turns one place into several. The meaning of a
 * step depends on its place, since names of scenarios, hosts and tensors may
 * contain dots and "=": the longest existing name wins.
 */
#include "coordinator/config/overrides.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/json_syntax.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/shell.h"
#include "common/text.h"

/* A place that a path has reached, and the rest of the path. */
struct path_place {
    struct rf_jnode node;
    const char *rest;
    unsigned depth;
};

enum step_kind { STEP_KEY, STEP_INDEX, STEP_ALL };

struct path_step {
    enum step_kind kind;
    char *key; /* STEP_KEY; owned */
    size_t index;
    const char *rest; /* after the step */
    bool last;        /* `rest` is the value */
};

struct setting {
    const char *text; /* as given */
    struct path_place
        *places; /* reached so far, in the order of the document */
    size_t n, cap;
    size_t n_set; /* members set or removed */
    bool warned;  /* about null, which removes */
};

/* --- One step ------------------------------------------------------------- */

/* Whether `name` is the next step of `rest`. */
static bool begins_with(const char *rest, const char *name)
{
    size_t size = strlen(name);
    return size > 0 && strncmp(rest, name, size) == 0 && rest[size] != '\0' &&
           strchr(".[=", rest[size]) != NULL;
}

/* The name of a list member, or NULL. */
static const char *name_of(const json_t *item)
{
    const char *name = json_string_value(json_object_get(item, "name"));
    return name != NULL ? name
                        : json_string_value(json_object_get(item, "host"));
}

static size_t longest_key(json_t *object, const char *rest)
{
    const char *key;
    json_t *value;
    size_t longest = 0;
    json_object_foreach (object, key, value) {
        if (begins_with(rest, key)) {
            longest = RF_MAX(longest, strlen(key));
        }
    }
    return longest;
}

/* The list member with the longest name that `rest` begins with. */
static size_t longest_name(const json_t *list, const char *rest, size_t *index)
{
    size_t i, longest = 0;
    json_t *item;
    json_array_foreach (list, i, item) {
        const char *name = name_of(item);
        if (name != NULL && strlen(name) > longest && begins_with(rest, name)) {
            longest = strlen(name);
            *index = i;
        }
    }
    return longest;
}

static enum rf_status no_member(const struct rf_jnode *list, const char *word,
                                int size, struct rf_err *err)
{
    size_t n = 0, count = json_array_size(list->value);
    const char **names = rf_xcalloc(count + 1, sizeof(*names));
    char *wanted = rf_xasprintf("%.*s", size, word);
    const char *nearest;
    for (size_t i = 0; i < count; i++) {
        const char *name = name_of(json_array_get(list->value, i));
        if (name != NULL) {
            names[n++] = name;
        }
    }
    /* A number is not a misspelt name. */
    nearest = strspn(wanted, "0123456789") < strlen(wanted)
                  ? rf_nearest_word(wanted, names)
                  : NULL;
    if (nearest != NULL) {
        rf_jnode_fail(list, err,
                      "unknown member \"%.*s\" (did you mean \"%.60s\"?)",
                      rf_text_head(wanted, 60), wanted, nearest);
    } else {
        rf_jnode_fail(list, err,
                      "unknown member \"%.*s\"; use a name, a number from 0 to "
                      "%zu, or \"*\" for all",
                      rf_text_head(wanted, 60), wanted, count - (count > 0));
    }
    free(wanted);
    free(names);
    return RF_ERR_CONFIG;
}

/* `text` is the digits of an index, `size` bytes. */
static enum rf_status take_index(const struct rf_jnode *list, const char *text,
                                 size_t size, struct path_step *out,
                                 struct rf_err *err)
{
    if (size == 0 || size > 9 || strspn(text, "0123456789") < size ||
        (out->index = strtoul(text, NULL, 10)) >=
            json_array_size(list->value)) {
        return no_member(list, text, (int)size, err);
    }
    out->kind = STEP_INDEX;
    return RF_OK;
}

/* A list member, by name or number; sets the length of the step. */
static enum rf_status list_step(const struct path_place *at,
                                struct path_step *out, size_t *size,
                                struct rf_err *err)
{
    *size = longest_name(at->node.value, at->rest, &out->index);
    if (*size > 0) {
        out->kind = STEP_INDEX;
        return RF_OK;
    }
    *size = strcspn(at->rest, ".[=");
    return take_index(&at->node, at->rest, *size, out, err);
}

static enum rf_status key_step(const struct path_place *at,
                               struct path_step *out, size_t *size,
                               struct rf_err *err)
{
    *size = longest_key(at->node.value, at->rest);
    *size = *size > 0 ? *size : strcspn(at->rest, ".[=");
    if (*size == 0) {
        return rf_jnode_fail(&at->node, err,
                             "expected a name before \"%.20s\" in the path",
                             at->rest);
    }
    out->kind = STEP_KEY;
    out->key = rf_xasprintf("%.*s", (int)*size, at->rest);
    return RF_OK;
}

/* "[3]" or "[*]" after a list. */
static enum rf_status bracket_step(const struct path_place *at,
                                   struct path_step *out, size_t *size,
                                   struct rf_err *err)
{
    const char *inside = at->rest + 1;
    *size = strcspn(inside, "]=");
    if (inside[*size] != ']' || !json_is_array(at->node.value)) {
        return rf_jnode_fail(
            &at->node, err,
            "\"%.20s\" in the path: brackets hold a number or \"*\" and "
            "follow a list",
            at->rest);
    }
    if (strncmp(inside, "*]", 2) == 0) {
        out->kind = STEP_ALL;
    } else if (take_index(&at->node, inside, *size, out, err) != RF_OK) {
        return RF_ERR_CONFIG;
    }
    *size += 2;
    return RF_OK;
}

/* Reports a step of `size` bytes without a separator after it. */
static void no_separator(const struct path_place *at, size_t size,
                         struct rf_err *err)
{
    if (at->rest[size] == '\0') {
        rf_jnode_fail(&at->node, err,
                      "the path ends at \"%.40s\" without \"=VALUE\"",
                      at->rest);
    } else {
        rf_jnode_fail(
            &at->node, err,
            "expected \".\", \"[\" or \"=\" after \"%.*s\", not \"%.40s\"",
            (int)RF_MIN(size, 40), at->rest, at->rest + size);
    }
}

static enum rf_status read_step(const struct path_place *at,
                                struct path_step *out, struct rf_err *err)
{
    size_t size = 1;
    enum rf_status status = RF_OK;
    *out = (struct path_step){.kind = STEP_ALL};
    if (!json_is_object(at->node.value) && !json_is_array(at->node.value)) {
        size = at->rest[0] == '[';
        size += strcspn(at->rest + size, ".[=");
        return rf_jnode_fail(&at->node, err,
                             "no member \"%.*s\": not an object or list",
                             (int)RF_MIN(size, 60), at->rest);
    }
    if (at->rest[0] == '[') {
        status = bracket_step(at, out, &size, err);
    } else if (!begins_with(at->rest, "*")) {
        status = json_is_array(at->node.value) ? list_step(at, out, &size, err)
                                               : key_step(at, out, &size, err);
    }
    if (status != RF_OK) {
        return status;
    }
    if (at->rest[size] == '\0' || strchr(".[=", at->rest[size]) == NULL) {
        free(out->key);
        no_separator(at, size, err);
        return RF_ERR_CONFIG;
    }
    out->last = at->rest[size] == '=';
    out->rest = at->rest + size + (at->rest[size] == '[' ? 0 : 1);
    return RF_OK;
}

/* --- The way down --------------------------------------------------------- */

static void go_to(struct setting *setting, const struct path_place *from,
                  struct rf_jnode node, const char *rest)
{
    RF_PUSH(setting->places, setting->n, setting->cap,
            ((struct path_place){node, rest, from->depth + 1}));
}

static enum rf_status go_to_key(struct setting *setting,
                                const struct path_place *from,
                                const struct path_step *step,
                                struct rf_err *err)
{
    json_t *object = from->node.value;
    if (json_object_get(object, step->key) == NULL) {
        const char *value = strchr(step->rest, '='); /* after new keys only */
        if (value != NULL && strcmp(value, "=null") == 0) {
            return RF_OK; /* nothing to remove here */
        }
        if (json_object_set_new(object, step->key, json_object()) != 0) {
            return rf_jnode_fail(&from->node, err,
                                 "the name of a member is not UTF-8");
        }
    }
    go_to(setting, from, rf_jnode_get(&from->node, step->key), step->rest);
    return RF_OK;
}

static enum rf_status go_to_all(struct setting *setting,
                                const struct path_place *from,
                                const struct path_step *step,
                                struct rf_err *err)
{
    const char *key;
    json_t *value;
    size_t before = setting->n;
    json_object_foreach (from->node.value, key, value) {
        go_to(setting, from, rf_jnode_get(&from->node, key), step->rest);
    }
    for (size_t i = 0; i < json_array_size(from->node.value); i++) {
        go_to(setting, from, rf_jnode_at(&from->node, i), step->rest);
    }
    return setting->n > before
               ? RF_OK
               : rf_jnode_fail(&from->node, err, "no members for \"*\"");
}

/* --- Setting the value ---------------------------------------------------- */

/* JSON, or a word taken as a string; NULL for null, which removes. */
static enum rf_status read_value(const char *text, json_t **out,
                                 struct rf_err *err)
{
    json_t *value = NULL;
    if (text[0] == '\0') {
        return rf_err_set(err, RF_ERR_CONFIG, "empty value; unset variable?");
    }
    if (strchr("{[\"", text[0]) != NULL) {
        return rf_json_parse_value(text, "value", out, err);
    }
    if (rf_json_parse_value(text, "value", &value, NULL) != RF_OK) {
        value = json_string(text);
    }
    if (value == NULL) {
        return rf_err_set(err, RF_ERR_CONFIG, "the value is not UTF-8");
    }
    *out = value;
    return RF_OK;
}

static void remove_members(struct setting *setting, json_t *from,
                           const struct path_step *step)
{
    size_t before =
        json_is_array(from) ? json_array_size(from) : json_object_size(from);
    switch (step->kind) {
    case STEP_KEY:
        json_object_del(from, step->key);
        break;
    case STEP_INDEX:
        json_array_remove(from, step->index);
        break;
    case STEP_ALL:
        json_object_clear(from);
        json_array_clear(from);
        break;
    }
    setting->n_set += before - (json_is_array(from) ? json_array_size(from)
                                                    : json_object_size(from));
}

static void set_members(struct setting *setting, json_t *in,
                        const struct path_step *step, const json_t *value)
{
    const char *key;
    json_t *old;
    void *next;
    setting->n_set++;
    if (step->kind == STEP_KEY) {
        json_object_set_new(in, step->key, json_deep_copy(value));
    } else if (step->kind == STEP_INDEX) {
        json_array_set_new(in, step->index, json_deep_copy(value));
    } else {
        json_object_foreach_safe(in, next, key, old)
        {
            json_object_set_new(in, key, json_deep_copy(value));
        }
        for (size_t i = 0; i < json_array_size(in); i++) {
            json_array_set_new(in, i, json_deep_copy(value));
        }
    }
}

/* The argument for the string "null". Ends with "=null"; to be freed. */
static char *quoted_null(const char *text)
{
    char *quoted = rf_xasprintf("%.*s\"null\"", (int)strlen(text) - 4, text);
    char *word = rf_shell_word(quoted);
    free(quoted);
    return word;
}

/* "null" is also a method. */
static void warn_method(struct setting *setting, const struct path_place *at,
                        const struct path_step *step)
{
    char *word;
    if (setting->warned || step->kind != STEP_KEY ||
        strcmp(step->key, "method") != 0 ||
        strncmp(at->node.path, "$.launch", 8) == 0) {
        return;
    }
    word = quoted_null(setting->text);
    rf_warn("--set %.100s removes the key; for method null type %s",
            setting->text, word);
    free(word);
    setting->warned = true;
}

static enum rf_status finish(struct setting *setting,
                             const struct path_place *at,
                             const struct path_step *step, struct rf_err *err)
{
    json_t *value = NULL;
    RF_TRY(read_value(step->rest, &value, err));
    if (json_is_null(value)) {
        const size_t before = setting->n_set;
        remove_members(setting, at->node.value, step);
        if (setting->n_set > before) {
            warn_method(setting, at, step);
        }
    } else {
        set_members(setting, at->node.value, step, value);
    }
    json_decref(value);
    return RF_OK;
}

/* Takes one step from a place. */
static enum rf_status advance(struct setting *setting,
                              const struct path_place *at, struct rf_err *err)
{
    struct path_step step;
    enum rf_status status = RF_OK;
    RF_TRY(read_step(at, &step, err));
    if (at->depth >= RF_JSON_MAX_DEPTH) {
        status = rf_jnode_fail(&at->node, err, "nested deeper than %d levels",
                               RF_JSON_MAX_DEPTH);
    } else if (step.last) {
        status = finish(setting, at, &step, err);
    } else if (step.kind == STEP_KEY) {
        status = go_to_key(setting, at, &step, err);
    } else if (step.kind == STEP_INDEX) {
        go_to(setting, at, rf_jnode_at(&at->node, step.index), step.rest);
    } else {
        status = go_to_all(setting, at, &step, err);
    }
    free(step.key);
    return status;
}

static enum rf_status set_one(const char *text, json_t *document,
                              const char *file, struct rf_err *err)
{
    struct setting setting = {.text = text};
    struct path_place root = {.node = rf_jnode_root(document, file),
                              .rest = text};
    enum rf_status status = RF_OK;
    if (strchr(text, '=') == NULL) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "needs a value: PATH=VALUE, such as "
                          "model.num_layers=2");
    }
    root.rest += strncmp(text, "$.", 2) == 0 ? 2 : 0;
    RF_PUSH(setting.places, setting.n, setting.cap, root);
    for (size_t i = 0; status == RF_OK && i < setting.n; i++) {
        struct path_place at = setting.places[i];
        status = advance(&setting, &at, err);
    }
    if (status == RF_OK && setting.n_set == 0) {
        char *word = quoted_null(text);
        status = rf_jnode_fail(&root.node, err,
                               "has no such member to remove; for the word "
                               "null type %s",
                               word);
        free(word);
    }
    free(setting.places);
    return status;
}

/* --- All settings --------------------------------------------------------- */

enum rf_status rf_overrides_hosts(const struct rf_overrides *overrides,
                                  struct rf_hosts *out, struct rf_err *err)
{
    if (overrides->nodes != NULL) {
        return rf_err_within(rf_hosts_parse(overrides->nodes, out, err), err,
                             "--nodes");
    }
    if (overrides->hostfile != NULL) {
        return rf_err_within(rf_hosts_load(overrides->hostfile, out, err), err,
                             "--hostfile");
    }
    return RF_OK;
}

enum rf_status rf_overrides_set(const struct rf_overrides *overrides,
                                json_t *document, const char *file,
                                struct rf_err *err)
{
    for (size_t i = 0; i < overrides->n_sets; i++) {
        RF_TRY(rf_err_within(set_one(overrides->sets[i], document, file, err),
                             err, "--set %.100s", overrides->sets[i]));
    }
    return RF_OK;
}

enum rf_status rf_overrides_apply(const struct rf_overrides *overrides,
                                  json_t *document, const char *file,
                                  struct rf_err *err)
{
    struct rf_hosts hosts = {0};
    enum rf_status status = rf_overrides_hosts(overrides, &hosts, err);
    if (status == RF_OK && hosts.n > 0) {
        rf_hosts_place(&hosts, document);
    }
    rf_hosts_free(&hosts);
    return status != RF_OK ? status
                           : rf_overrides_set(overrides, document, file, err);
}
