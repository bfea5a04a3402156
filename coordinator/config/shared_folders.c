/* See shared_folders.h. */
#include "coordinator/config/shared_folders.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

/* NULL: the scenario's method needs none. */
static const char *folder_of(const json_t *scenario)
{
    const struct rf_method_info *info = rf_config_method(scenario);
    const json_t *disk = json_object_get(scenario, "disk");
    return info != NULL && info->needs_folder
               ? json_string_value(json_object_get(disk, "folder"))
               : NULL;
}

static void add_once(struct rf_texts *texts, const char *text)
{
    for (size_t i = 0; i < texts->n; i++) {
        if (strcmp(texts->list[i], text) == 0) {
            return;
        }
    }
    texts->list = rf_xrealloc(texts->list, texts->n + 1, sizeof(*texts->list));
    texts->list[texts->n++] = rf_xstrdup(text);
}

struct rf_msg_shared *rf_shared_folders(const struct rf_config *config,
                                        const char *token)
{
    struct rf_msg_shared *shared = rf_xmalloc(sizeof(*shared));
    rf_schema_init(&rf_msg_shared_schema, shared);
    for (size_t i = 0; i < config->n_scenarios; i++) {
        const char *folder = folder_of(config->scenarios[i].value);
        if (folder != NULL) {
            add_once(&shared->folders, folder);
        }
    }
    if (config->export_folder != NULL) {
        shared->exported = rf_xstrdup(config->export_folder);
        add_once(&shared->folders, config->export_folder);
    }
    if (shared->folders.n == 0) {
        rf_shared_folders_free(shared);
        return NULL;
    }
    shared->token = rf_xstrdup(token);
    shared->nodes = config->n_nodes;
    return shared;
}

void rf_shared_folders_free(struct rf_msg_shared *shared)
{
    if (shared != NULL) {
        rf_schema_free(&rf_msg_shared_schema, shared);
        free(shared);
    }
}
