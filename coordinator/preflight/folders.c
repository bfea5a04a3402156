/*
 * Checks of folders. See folders.h and worker/agent/folder_signs.h: of two
 * nodes that share a folder at least one saw the other's sign.
 */
#include "coordinator/preflight/folders.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"

/* A node's report about a folder, or NULL. */
static const struct rf_msg_folder *told(const struct rf_msg_hello *hello,
                                        const char *folder)
{
    for (size_t i = 0; hello != NULL && i < hello->n_folders; i++) {
        if (strcmp(hello->folders[i].path, folder) == 0) {
            return &hello->folders[i];
        }
    }
    return NULL;
}

static bool sees(const struct rf_msg_folder *folder, uint32_t node)
{
    for (size_t i = 0; i < folder->sees.n; i++) {
        if (folder->sees.list[i] == node) {
            return true;
        }
    }
    return false;
}

/* "a, b and 7 more" */
struct name_list {
    char text[400];
    size_t used;
    uint32_t left_out;
};

static void add_name(struct name_list *names, const char *name)
{
    size_t need = strlen(name) + 2;
    if (names->used + need >= sizeof(names->text) - 32) {
        names->left_out++;
        return;
    }
    names->used += (size_t)snprintf(names->text + names->used,
                                    sizeof(names->text) - names->used, "%s%s",
                                    names->used > 0 ? ", " : "", name);
}

/* The user of a folder, and the alternative to it. */
struct need {
    const char *who, *folder, *instead;
    bool inference; /* by nodes with inference ranks; else all with ranks */
};

static enum rf_status not_shared(const struct rf_scenario *scenario,
                                 const struct need *need, uint32_t first,
                                 struct name_list *apart, struct rf_err *err)
{
    if (apart->left_out > 0) {
        snprintf(apart->text + apart->used, sizeof(apart->text) - apart->used,
                 " and %u more", apart->left_out);
    }
    return rf_err_set(
        err, RF_ERR_UNSUPPORTED,
        "%s: folder %.300s is not shared by all %snodes: a file from %s is not "
        "visible on %s; use a folder on a file system that all of them mount, "
        "or %s",
        need->who, need->folder, need->inference ? "inference " : "",
        scenario->config->node_names[first], apart->text, need->instead);
}

static bool needs(const struct rf_scenario *scenario, const struct need *need,
                  uint32_t node)
{
    const struct rf_world *world = scenario->world;
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        if (world->ranks[r].node == node &&
            (!need->inference || world->ranks[r].index[RF_INFER] != RF_NONE)) {
            return true;
        }
    }
    return false;
}

static enum rf_status check_folder(const struct rf_scenario *scenario,
                                   const struct need *need,
                                   const struct rf_msg_hello *const *hellos,
                                   struct rf_err *err)
{
    const struct rf_msg_folder *first_told = NULL;
    struct name_list apart = {.used = 0};
    uint32_t first = 0;
    for (uint32_t i = 0; i < scenario->config->n_nodes; i++) {
        const struct rf_msg_folder *entry = told(hellos[i], need->folder);
        if (entry == NULL || !needs(scenario, need, i)) {
            continue;
        }
        if (entry->error != NULL) {
            return rf_err_set(err, RF_ERR_UNSUPPORTED,
                              "%s cannot use folder %.300s on %s: %.200s; it "
                              "must exist on every node and be writable for "
                              "the user of refit-worker, the same on all nodes",
                              need->who, need->folder,
                              scenario->config->node_names[i], entry->error);
        }
        if (first_told == NULL) {
            first_told = entry;
            first = i;
        } else if (!sees(first_told, i) && !sees(entry, first)) {
            add_name(&apart, scenario->config->node_names[i]);
        }
    }
    return apart.used > 0 ? not_shared(scenario, need, first, &apart, err)
                          : RF_OK;
}

enum rf_status rf_folders_check(const struct rf_scenario *scenario,
                                const struct rf_msg_hello *const *hellos,
                                struct rf_err *err)
{
    const struct need list[] = {{"method disk", scenario->spec->disk_folder,
                                 "use method host or tcp", false},
                                {"--export", scenario->config->export_folder,
                                 "put all inference ranks on one node", true}};
    enum rf_status status = RF_OK;
    for (size_t i = 0; i < RF_ARRAY_SIZE(list) && status == RF_OK; i++) {
        if (list[i].folder != NULL) {
            status = check_folder(scenario, &list[i], hellos, err);
        }
    }
    return status;
}
