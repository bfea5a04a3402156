/* cluster.json: the model, and the scenarios' own models. */
#include "common/mem.h"
#include "coordinator/config/config_internal.h"
#include "coordinator/config/model_file.h"

/* Completes a scenario's model with the file's, unless it names its own source:
 * {"num_layers": 2} is the file's model with two layers. */
static json_t *complete_model(json_t *said, json_t *whole)
{
    json_t *out;
    if (!json_is_object(said) || rf_model_file_has_source(said) ||
        !json_is_object(whole)) {
        return json_incref(said);
    }
    out = json_copy(whole);
    json_object_del(out, "name"); /* names the other model */
    json_object_update(out, said);
    return out;
}

/* Nodes send the headers of one checkpoint only, the file's. */
static enum rf_status check_here(const struct rf_jnode *node,
                                 const json_t *model, struct rf_err *err)
{
    const char *folder =
        json_string_value(json_object_get(model, "checkpoint"));
    return folder == NULL
               ? RF_OK
               : rf_jnode_fail(
                     node, err,
                     "checkpoint: %s is not on this machine, and nodes send "
                     "headers only of the file's \"model\": use it there, as "
                     "the only model, or mount the folder here under the same "
                     "path",
                     folder);
}

/* Replaces a scenario's model by its inline form. */
static enum rf_status read_own_model(const struct rf_jnode *root,
                                     struct rf_config *config,
                                     struct rf_scenario_config *scenario,
                                     struct rf_err *err)
{
    struct rf_jnode node = rf_jnode_root(NULL, config->file);
    json_t *whole, *inlined = NULL;
    enum rf_status status;
    for (size_t i = 0; i < json_array_size(config->models); i += 2) {
        if (json_equal(json_array_get(config->models, i), scenario->model)) {
            json_decref(scenario->model);
            scenario->model =
                json_incref(json_array_get(config->models, i + 1));
            return RF_OK;
        }
    }
    whole =
        complete_model(scenario->model, json_object_get(root->value, "model"));
    node.value = whole;
    snprintf(node.path, sizeof(node.path), "%s.model", scenario->path);
    node.label = scenario->name;
    status = rf_model_file_inline(&node, config->folder, &inlined, err);
    json_decref(whole);
    RF_THEN(status, check_here(&node, inlined, err));
    if (status != RF_OK) {
        json_decref(inlined);
    } else {
        json_array_append_new(config->models, scenario->model);
        json_array_append(config->models, inlined);
        scenario->model = inlined;
    }
    return status;
}

enum rf_status rf_config_read_model(const struct rf_jnode *root,
                                    struct rf_config *config,
                                    struct rf_err *err)
{
    struct rf_jnode node = rf_jnode_get(root, "model");
    config->model_path = "$.model";
    return node.value == NULL ? RF_OK
                              : rf_model_file_inline(&node, config->folder,
                                                     &config->model, err);
}

enum rf_status rf_config_read_own_models(const struct rf_jnode *root,
                                         struct rf_config *config,
                                         struct rf_err *err)
{
    bool all_own = true;
    config->models = json_array();
    for (size_t i = 0; i < config->n_scenarios; i++) {
        struct rf_scenario_config *scenario = &config->scenarios[i];
        RF_TRY(scenario->model != NULL
                   ? read_own_model(root, config, scenario, err)
                   : RF_OK);
        all_own &= scenario->model != NULL;
    }
    if (config->model == NULL && !all_own) {
        return rf_jnode_require(root, "model", err);
    }
    if (config->model == NULL) {
        config->model = json_incref(config->scenarios[0].model);
        config->model_path = rf_config_keep(
            config, rf_xasprintf("%s.model", config->scenarios[0].path));
    }
    return RF_OK;
}

json_t *rf_config_model(const struct rf_config *config, size_t index)
{
    json_t *own = config->scenarios[index].model;
    return own != NULL ? own : config->model;
}
