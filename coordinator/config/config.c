/*
 * cluster.json: the top level, the model and the scenarios.
 *
 * Order: keys and types; nodes; variables and defaults; the model's files; the
 * matrix, each member of which the planner's own reader checks; the files of
 * scenarios' own models. Any failure frees everything and returns one error
 * that names the file, the JSON path and the rule. Nothing here starts a
 * process or opens a socket.
 */
#include "coordinator/config/config.h"

#include <assert.h>
#include <errno.h>
#include <fnmatch.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "coordinator/config/config_internal.h"
#include "coordinator/config/defaults.h"
#include "coordinator/config/links/links.h"
#include "coordinator/config/model_file.h"
#include "coordinator/config/nodes/names.h"
#include "coordinator/config/paths.h"
#include "planner/scenario/spec.h"
#include "planner/scenario/spec_fields.h"

#define INPUT_NAME "standard input"
#define TOP_KEYS_MAX 16

const char *rf_config_keep(struct rf_config *config, char *text)
{
    RF_PUSH(config->strings, config->n_strings, config->cap_strings, text);
    return text;
}

bool rf_config_is_model(const json_t *document)
{
    return json_is_object(document) &&
           json_object_get(document, "scenarios") == NULL &&
           json_object_get(document, "model") == NULL &&
           json_object_get(document, "model_type") != NULL;
}

static enum rf_status read_name(const struct rf_jnode *root,
                                struct rf_config *config, struct rf_err *err)
{
    const char *name = "refit", *schema = NULL;
    RF_TRY(rf_jnode_string(root, "name", &name, err));
    RF_TRY(rf_jnode_string(root, "$schema", &schema, err));
    if (!rf_names_valid_file(name, 64)) {
        struct rf_jnode node = rf_jnode_get(root, "name");
        return rf_jnode_wrong(&node, err,
                              "must be at most 64 letters, digits, \".\", "
                              "\"_\", \"-\", \"+\" or \"=\", and not start "
                              "with \".\" or \"-\" (it names the result "
                              "folder)");
    }
    config->name = rf_xstrdup(name);
    return RF_OK;
}

/* Scenario names become file names, so they must be unique even if case is
 * ignored. */
static enum rf_status check_names(const struct rf_jnode *list,
                                  const struct rf_config *config,
                                  struct rf_err *err)
{
    for (size_t i = 0; i < config->n_scenarios; i++) {
        const struct rf_scenario_config *a = &config->scenarios[i];
        struct rf_jnode node = *list;
        snprintf(node.path, sizeof(node.path), "%s", a->path);
        if (strcasecmp(a->name, "run") == 0) {
            return rf_jnode_fail(&node, err,
                                 "the name \"run\" is reserved: run.json "
                                 "describes the whole run");
        }
        for (size_t j = 0; j < i; j++) {
            const struct rf_scenario_config *b = &config->scenarios[j];
            if (strcasecmp(a->name, b->name) == 0) {
                return rf_jnode_fail(&node, err,
                                     "the name \"%s\" is used by %s; names "
                                     "must be unique, they name result files",
                                     a->name, b->path);
            }
        }
    }
    return RF_OK;
}

/* Makes folders absolute, relative to the file: later users of the scenario, on
 * any node, do not know where the file is. */
static void place_folders(const struct rf_config *config,
                          const struct rf_scenario_config *scenario)
{
    static const char *const folders[][2] = {
        {"disk", "folder"}, {"update", "from"}, {"update", "to"}};
    for (size_t i = 0; i < RF_ARRAY_SIZE(folders); i++) {
        json_t *object = json_object_get(scenario->value, folders[i][0]);
        const char *folder =
            json_string_value(json_object_get(object, folders[i][1]));
        if (folder != NULL && folder[0] != '\0') {
            char *path =
                strcmp(folders[i][0], "update") == 0
                    ? rf_config_place_checkpoint(config->folder, folder)
                    : rf_paths_absolute(config->folder, folder);
            json_object_set_new(object, folders[i][1], json_string(path));
            free(path);
        }
    }
}

/* Logs once the meaning of each of Alpa's words for a balance. */
static void explain_balances(const struct rf_config *config)
{
    json_t *said = json_object();
    for (size_t i = 0; i < config->n_scenarios; i++) {
        const char *word = json_string_value(
            json_object_get(config->scenarios[i].value, "balance"));
        const char *meant = word != NULL ? rf_spec_balance_meant(word) : NULL;
        if (meant != NULL && json_object_get(said, word) == NULL) {
            rf_info("%s: balance \"%s\" is Alpa's word for \"%s\"",
                    config->file, word, meant);
            json_object_set_new(said, word, json_true());
        }
    }
    json_decref(said);
}

/* Passes every member through the planner's reader, so that a mistake in the
 * last scenario is found before the first one runs. */
static enum rf_status check_members(const struct rf_config *config,
                                    struct rf_err *err)
{
    for (size_t i = 0; i < config->n_scenarios; i++) {
        struct rf_jnode node = rf_config_scenario(config, i);
        struct rf_spec *spec = NULL;
        RF_TRY(rf_spec_from_json(&node, config->node_names, config->n_nodes,
                                 &spec, err));
        rf_spec_destroy(spec);
    }
    return RF_OK;
}

static enum rf_status check_method_keys(const struct rf_jnode *suite,
                                        const struct rf_config *config,
                                        struct rf_err *err)
{
    const struct rf_jnode list = rf_jnode_get(suite, "scenarios");
    const json_t *written = json_object_get(suite->value, "written");
    enum rf_status status = RF_OK;
    for (size_t i = 0; status == RF_OK && i < json_array_size(list.value);
         i++) {
        struct rf_jnode node = rf_jnode_at(&list, i);
        node.label = json_string_value(json_object_get(node.value, "name"));
        status = rf_config_check_method_keys(&node, json_array_get(written, i),
                                             config, err);
    }
    return status;
}

static enum rf_status expand_all(const struct rf_jnode *list,
                                 struct rf_config *config, struct rf_err *err)
{
    for (size_t i = 0; i < json_array_size(list->value); i++) {
        struct rf_jnode node = rf_jnode_at(list, i);
        RF_TRY(rf_config_expand(&node, config, err));
    }
    config->n_in_file = config->n_scenarios;
    return RF_OK;
}

static enum rf_status read_scenarios(const struct rf_jnode *root,
                                     struct rf_config *config,
                                     struct rf_err *err)
{
    struct rf_jnode list = rf_jnode_get(root, "scenarios");
    enum rf_status status;
    RF_TRY(rf_jnode_require(root, "scenarios", err));
    if (!json_is_array(list.value) || json_array_size(list.value) == 0) {
        return rf_jnode_wrong(&list, err,
                              "must be a list with at least one scenario");
    }
    RF_TRY(expand_all(&list, config, err));
    for (size_t i = 0; i < config->n_scenarios; i++) {
        place_folders(config, &config->scenarios[i]);
    }
    status = check_names(&list, config, err);
    RF_THEN(status, check_members(config, err));
    RF_THEN(status, check_method_keys(root, config, err));
    if (status == RF_OK) {
        explain_balances(config);
    }
    return status;
}

static enum rf_status read_suite(const struct rf_jnode *root,
                                 struct rf_config *config, struct rf_err *err)
{
    json_t *suite = NULL;
    struct rf_jnode node;
    enum rf_status status;
    RF_TRY(rf_defaults_resolve(root, &suite, err));
    node = rf_jnode_root(suite, config->file);
    status = rf_config_read_model(&node, config, err);
    RF_THEN(status, read_scenarios(&node, config, err));
    RF_THEN(status, rf_config_read_own_models(&node, config, err));
    json_decref(suite);
    return status;
}

static enum rf_status check_top_keys(const struct rf_jnode *root,
                                     struct rf_err *err)
{
    const char *keys[TOP_KEYS_MAX + 1] = {NULL}, *key;
    json_t *value;
    for (size_t n = 0; rf_config_members[n].key != NULL; n++) {
        assert(n < TOP_KEYS_MAX);
        keys[n] = rf_config_members[n].key;
    }
    json_object_foreach (root->value, key, value) {
        if (!rf_word_is_one_of(key, keys) &&
            rf_spec_field_find(rf_spec_fields, key) != NULL) {
            return rf_jnode_fail(root, err,
                                 "\"%s\" belongs to \"scenarios\" or "
                                 "\"defaults\"; for --set it is "
                                 "scenarios.*.%s",
                                 key, key);
        }
    }
    return rf_jnode_check_keys(root, keys, err);
}

static enum rf_status read_all(struct rf_config *config, bool need_nodes,
                               struct rf_err *err)
{
    struct rf_jnode root = rf_jnode_root(config->document, config->file);
    enum rf_status status;
    if (rf_config_is_model(config->document)) {
        return rf_jnode_fail(&root, err,
                             "this is a model's config.json, not a cluster "
                             "file: use it as \"model\": {\"config\": ...} in "
                             "one; \"refit-coord plan\" shows its size");
    }
    if (json_object_get(config->document, "schema_version") != NULL) {
        return rf_jnode_fail(&root, err,
                             "this is a result, not a cluster file; to run "
                             "its scenario again, use \"refit-coord rerun\"");
    }
    status = check_top_keys(&root, err);
    RF_THEN(status, read_name(&root, config, err));
    RF_THEN(status, rf_config_read_launch(&root, config, err));
    RF_THEN(status, rf_config_place_nodes(&root, need_nodes, err));
    RF_THEN(status, rf_config_read_nodes(&root, config, err));
    if (status == RF_OK && need_nodes && config->n_nodes == 0) {
        status = rf_jnode_fail(&root, err,
                               "\"nodes\" is missing: a run needs at least "
                               "one node");
    }
    RF_THEN(status, read_suite(&root, config, err));
    RF_THEN(status, rf_timeline_read(&root, &config->timeline, err));
    RF_THEN(status, rf_links_read(&root, config->node_names, config->n_nodes,
                                  &config->links, err));
    return status;
}

static bool is_standard_input(const char *file)
{
    return strcmp(file, "-") == 0;
}

static const char *shown_name(const char *file)
{
    return is_standard_input(file) ? INPUT_NAME : file;
}

/* A model's config.json may have the extensions of Python's json module. */
static enum rf_status load(const char *file, json_t **out, struct rf_err *err)
{
    struct rf_err strict;
    json_t *document = NULL;
    if (rf_json_load(file, RF_CONFIG_MAX_BYTES, out, &strict) == RF_OK) {
        return RF_OK;
    }
    if (rf_json_load_python(file, RF_CONFIG_MAX_BYTES, &document, NULL) ==
            RF_OK &&
        rf_config_is_model(document)) {
        *out = document;
        return RF_OK;
    }
    json_decref(document);
    *err = strict;
    return strict.status;
}

enum rf_status rf_config_read(const char *file,
                              const struct rf_overrides *overrides,
                              json_t **out, struct rf_err *err)
{
    json_t *document = NULL;
    enum rf_status status =
        is_standard_input(file)
            ? rf_json_read(STDIN_FILENO, INPUT_NAME, RF_CONFIG_MAX_BYTES,
                           &document, err)
            : load(file, &document, err);
    if (status == RF_OK && overrides != NULL) {
        status = rf_overrides_apply(overrides, document, shown_name(file), err);
    }
    if (status != RF_OK) {
        json_decref(document);
        return status;
    }
    *out = document;
    return RF_OK;
}

enum rf_status rf_config_from_json(json_t *document, const char *file,
                                   bool need_nodes, struct rf_config **out,
                                   struct rf_err *err)
{
    struct rf_config *config = rf_xcalloc(1, sizeof(*config));
    char *copy = rf_xstrdup(file);
    enum rf_status status;
    config->file = rf_xstrdup(shown_name(file));
    config->folder = rf_xstrdup(dirname(copy));
    config->document = document;
    free(copy);
    status = read_all(config, need_nodes, err);
    if (status != RF_OK) {
        rf_config_destroy(config);
        return status;
    }
    *out = config;
    return RF_OK;
}

static void free_scenario(struct rf_scenario_config *scenario)
{
    free(scenario->name);
    free(scenario->base);
    json_decref(scenario->value);
    json_decref(scenario->model);
}

static bool matches(const struct rf_scenario_config *scenario, const char *glob)
{
    return fnmatch(glob, scenario->name, 0) == 0 ||
           fnmatch(glob, scenario->base, 0) == 0;
}

enum rf_status rf_config_select(struct rf_config *config,
                                const char *const *globs, size_t n_globs,
                                bool slow, struct rf_err *err)
{
    size_t kept = 0;
    for (size_t g = 0; g < n_globs; g++) {
        bool any = false;
        for (size_t i = 0; i < config->n_scenarios && !any; i++) {
            any = matches(&config->scenarios[i], globs[g]);
        }
        if (!any) {
            return rf_err_set(err, RF_ERR_USAGE,
                              "%s: no scenario matches \"%.100s\" (the first "
                              "of %zu is \"%s\")",
                              config->file, globs[g], config->n_scenarios,
                              config->scenarios[0].name);
        }
    }
    for (size_t i = 0; i < config->n_scenarios; i++) {
        const bool left = n_globs == 0 && !slow && config->scenarios[i].slow;
        bool any = n_globs == 0 && !left;
        for (size_t g = 0; g < n_globs && !any; g++) {
            any = matches(&config->scenarios[i], globs[g]);
        }
        if (any) {
            config->scenarios[kept++] = config->scenarios[i];
        } else {
            free_scenario(&config->scenarios[i]);
        }
        config->n_slow_left += left;
    }
    config->n_scenarios = kept;
    return kept > 0 ? RF_OK
                    : rf_err_set(err, RF_ERR_USAGE,
                                 "%s: every scenario is slow; add --slow, or "
                                 "choose some with --scenario",
                                 config->file);
}

void rf_config_skip(struct rf_config *config, size_t index, const char *reason)
{
    struct rf_scenario_config *at = &config->scenarios[index];
    const struct rf_skipped_config skipped = {rf_xstrdup(at->name),
                                              rf_xstrdup(reason)};
    RF_PUSH(config->skipped, config->n_skipped, config->cap_skipped, skipped);
    free_scenario(at);
    config->n_scenarios--;
    memmove(at, at + 1, (config->n_scenarios - index) * sizeof(*at));
}

enum rf_status rf_config_export(struct rf_config *config, const char *folder,
                                struct rf_err *err)
{
    char here[PATH_MAX];
    if (config->n_scenarios != 1) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--export needs one scenario, %zu are selected: "
                          "choose one with --scenario",
                          config->n_scenarios);
    }
    if (getcwd(here, sizeof(here)) == NULL) {
        return rf_err_errno(err, RF_ERR_CONFIG, errno, "current folder");
    }
    config->export_folder = rf_paths_absolute(here, folder);
    return RF_OK;
}

const char *rf_config_checkpoint(const struct rf_config *config)
{
    return json_string_value(json_object_get(config->model, "checkpoint"));
}

void rf_config_add_headers(struct rf_config *config, json_t *headers)
{
    rf_model_file_add_headers(config->model, headers);
}

uint32_t rf_config_join_limit_s(const struct rf_config *config)
{
    return 60 + 2 * config->launch.timeout_s + config->n_nodes / 16 +
           (config->launch.deploy ? 300 : 0);
}

bool rf_config_shares_gpus(const struct rf_config *config)
{
    const char *share =
        json_string_value(json_object_get(config->env, "REFIT_SHARE_GPU"));
    return share != NULL && strcmp(share, "1") == 0;
}

struct rf_jnode rf_config_scenario(const struct rf_config *config, size_t index)
{
    struct rf_jnode node =
        rf_jnode_root(config->scenarios[index].value, config->file);
    snprintf(node.path, sizeof(node.path), "%s", config->scenarios[index].path);
    node.label = config->scenarios[index].name;
    return node;
}

void rf_config_destroy(struct rf_config *config)
{
    if (config == NULL) {
        return;
    }
    for (size_t i = 0; i < config->n_scenarios; i++) {
        free_scenario(&config->scenarios[i]);
    }
    for (size_t i = 0; i < config->n_strings; i++) {
        free(config->strings[i]);
    }
    for (size_t i = 0; i < config->n_skipped; i++) {
        free(config->skipped[i].name);
        free(config->skipped[i].reason);
    }
    free(config->skipped);
    free(config->links.own);
    free(config->scenarios);
    free(config->strings);
    free(config->nodes);
    free(config->node_names);
    free(config->slots);
    free(config->export_folder);
    free(config->name);
    free(config->file);
    free(config->folder);
    json_decref(config->model);
    json_decref(config->models);
    json_decref(config->document);
    free(config);
}
