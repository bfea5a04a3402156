/* cluster.json: the checkpoints that scenarios' updates go between. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/headers.h"
#include "coordinator/config/config_internal.h"
#include "coordinator/config/hub_cache.h"
#include "coordinator/config/paths.h"
#include "planner/families/model_read.h"

static bool is_here(const char *folder)
{
    return access(folder, F_OK) == 0 || errno != ENOENT;
}

char *rf_config_place_checkpoint(const char *folder, const char *said)
{
    char *path = rf_paths_absolute(folder, said), *snapshot;
    if (is_here(path) || !rf_hub_cache_is_name(said)) {
        return path;
    }
    snapshot = rf_hub_cache_find(said, NULL, "*.safetensors");
    if (snapshot == NULL) {
        return path;
    }
    free(path);
    return snapshot;
}

const char *const rf_config_update_keys[] = {"from", "to", NULL};

static const char *folder_of(const struct rf_scenario_config *scenario,
                             const char *key)
{
    const json_t *update = json_object_get(scenario->value, "update");
    return json_string_value(json_object_get(update, key));
}

const char *rf_config_missing_update(const struct rf_config *config,
                                     size_t index, const char *key)
{
    const char *folder = folder_of(&config->scenarios[index], key);
    return folder != NULL && !is_here(folder) ? folder : NULL;
}

/* Whether an earlier scenario of the same model has the folder, at any key. */
static bool is_known(const struct rf_config *config, size_t index,
                     const char *folder)
{
    for (size_t i = 0; i < index; i++) {
        const struct rf_scenario_config *at = &config->scenarios[i];
        for (size_t k = 0; rf_config_update_keys[k] != NULL; k++) {
            const char *other = folder_of(at, rf_config_update_keys[k]);
            if (at->model == config->scenarios[index].model && other != NULL &&
                strcmp(other, folder) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Compares one with `files` of the model, as every rank will. */
static enum rf_status check_folder(const struct rf_config *config, size_t index,
                                   const char *key, const json_t *files,
                                   bool asked, struct rf_err *err)
{
    const struct rf_scenario_config *scenario = &config->scenarios[index];
    const char *folder = folder_of(scenario, key);
    json_t *found = NULL;
    enum rf_status status;
    if (folder == NULL || is_known(config, index, folder) ||
        (asked && !is_here(folder))) {
        return RF_OK;
    }
    if (!is_here(folder)) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: %s.update.%s: %s is not on this machine: mount "
                          "the folder here under the same path, or run the "
                          "command on a node; \"refit-coord run\" and "
                          "\"check\" ask the nodes for it",
                          config->file, scenario->path, key, folder);
    }
    status = rf_checkpoint_files_read(folder, files, &found, err);
    json_decref(found);
    return rf_err_within(status, err, "%s: %s.update.%s", config->file,
                         scenario->path, key);
}

/* Whether both are one folder, under whatever names. */
static bool is_same(const char *folder, const char *other)
{
    struct stat info, info2;
    return strcmp(folder, other) == 0 ||
           (stat(folder, &info) == 0 && stat(other, &info2) == 0 &&
            info.st_dev == info2.st_dev && info.st_ino == info2.st_ino);
}

/* The step has to go from one folder to another. */
static enum rf_status check_distinct(const struct rf_config *config,
                                     const struct rf_scenario_config *scenario,
                                     const json_t *files, struct rf_err *err)
{
    const char *from = folder_of(scenario, "from");
    const char *to = folder_of(scenario, "to");
    const bool model = to == NULL;
    to = model ? json_string_value(json_object_get(files, "folder")) : to;
    return to == NULL || !is_same(from, to)
               ? RF_OK
               : rf_err_set(err, RF_ERR_CONFIG,
                            "%s: %s.update.from: %s is the same folder as %s, "
                            "%s: nothing would change; name the checkpoint "
                            "before the step",
                            config->file, scenario->path, from,
                            model ? "that of the model" : "\"to\"", to);
}

/* Those of a scenario. Models that are no checkpoint are the planner's to
 * refuse. */
static enum rf_status check_scenario(const struct rf_config *config,
                                     size_t index, const struct rf_model *model,
                                     bool asked, struct rf_err *err)
{
    enum rf_status status;
    if (model->files == NULL) {
        return RF_OK;
    }
    status =
        check_distinct(config, &config->scenarios[index], model->files, err);
    for (size_t k = 0; status == RF_OK && rf_config_update_keys[k] != NULL;
         k++) {
        status = check_folder(config, index, rf_config_update_keys[k],
                              model->files, asked, err);
    }
    return status;
}

enum rf_status rf_config_check_updates(const struct rf_config *config,
                                       const struct rf_model *model, bool asked,
                                       struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (size_t i = 0; status == RF_OK && i < config->n_scenarios; i++) {
        const struct rf_scenario_config *scenario = &config->scenarios[i];
        struct rf_jnode node = rf_jnode_root(scenario->model, config->file);
        struct rf_model *own = NULL;
        if (folder_of(scenario, "from") == NULL) {
            continue;
        }
        snprintf(node.path, sizeof(node.path), "%s.model", scenario->path);
        node.label = scenario->name;
        status = scenario->model != NULL ? rf_model_from_json(&node, &own, err)
                                         : RF_OK;
        RF_THEN(status, check_scenario(config, i, own != NULL ? own : model,
                                       asked, err));
        rf_model_destroy(own);
    }
    return status;
}
