/* Reading cluster.json and its model. See load.h. */
#include "coordinator/commands/load.h"

#include <stdio.h>

#include "coordinator/commands/salloc.h"
#include "planner/families/model_read.h"

enum rf_status rf_load_model(const struct rf_config *config,
                             struct rf_model **out, struct rf_err *err)
{
    struct rf_jnode node = rf_jnode_root(config->model, config->file);
    const char *folder = rf_config_checkpoint(config);
    if (folder != NULL) {
        return rf_err_set(
            err, RF_ERR_CONFIG,
            "%s: $.model.checkpoint: %s is not on this machine, where this "
            "command reads names and shapes from the headers in the folder: "
            "mount it here under the same path, or run the command on a node; "
            "\"refit-coord run\" and \"check\" ask the nodes for the headers",
            config->file, folder);
    }
    snprintf(node.path, sizeof(node.path), "%s", config->model_path);
    return rf_model_from_json(&node, out, err);
}

enum rf_status rf_load(const struct rf_cli *cli, bool need_nodes,
                       struct rf_config **config, struct rf_model **model,
                       struct rf_err *err)
{
    json_t *document = NULL;
    enum rf_status status;
    RF_TRY(rf_config_read(cli->config, &cli->overrides, &document, err));
    status = rf_salloc(cli, document, cli->config, err);
    if (status != RF_OK) {
        json_decref(document);
        return status;
    }
    return rf_load_document(cli, document, cli->config, need_nodes, config,
                            model, err);
}

enum rf_status rf_load_document(const struct rf_cli *cli, json_t *document,
                                const char *file, bool need_nodes,
                                struct rf_config **config,
                                struct rf_model **model, struct rf_err *err)
{
    struct rf_config *loaded = NULL;
    enum rf_status status;
    RF_TRY(rf_config_from_json(document, file, need_nodes, &loaded, err));
    status = rf_config_select(loaded, cli->globs, cli->n_globs, cli->slow, err);
    if (status != RF_OK) {
        goto free_config;
    }
    if (cli->export != NULL) {
        status = rf_config_export(loaded, cli->export, err);
    }
    if (status == RF_OK &&
        (!need_nodes || rf_config_checkpoint(loaded) == NULL)) {
        status = rf_load_model(loaded, model, err);
    }
    if (status != RF_OK) {
        goto free_config;
    }
    *config = loaded;
    return RF_OK;
free_config:
    rf_config_destroy(loaded);
    return status;
}
