/*
 * Judging folders by what nodes have told. See folders.h and worker/signs.h: of
 * two nodes that share a folder at least one saw the other's sign.
 */
#include "coordinator/run/folders.h"

#include <stdio.h>
#include <string.h>

/* What a node said of a folder, or NULL. */
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
struct names {
    char text[400];
    size_t used;
    uint32_t left_out;
};

static void add_name(struct names *names, const char *name)
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

static enum rf_status not_shared(const struct rf_scenario *scenario,
                                 uint32_t first, struct names *apart,
                                 struct rf_err *err)
{
    if (apart->left_out > 0) {
        snprintf(apart->text + apart->used, sizeof(apart->text) - apart->used,
                 " and %u more", apart->left_out);
    }
    return rf_err_set(
        err, RF_ERR_UNSUPPORTED,
        "method disk: folder %.300s is not shared by all nodes: a file that %s "
        "makes there is not seen on %s; name a folder of a file system that "
        "all of them mount, or use method host or tcp",
        scenario->spec->disk_folder, scenario->config->node_names[first],
        apart->text);
}

enum rf_status rf_folders_check(const struct rf_scenario *scenario,
                                const struct rf_msg_hello *const *hellos,
                                struct rf_err *err)
{
    const char *folder = scenario->spec->disk_folder;
    const struct rf_msg_folder *first_told = NULL;
    struct names apart = {.used = 0};
    uint32_t first = 0;
    for (uint32_t i = 0; folder != NULL && i < scenario->config->n_nodes; i++) {
        const struct rf_msg_folder *entry = told(hellos[i], folder);
        if (entry == NULL || rf_scenario_node_ranks(scenario, i) == 0) {
            continue;
        }
        if (entry->error != NULL) {
            return rf_err_set(err, RF_ERR_UNSUPPORTED,
                              "method disk cannot use folder %.300s on %s: "
                              "%.200s; it must be there and writable for the "
                              "user that runs refit-worker",
                              folder, scenario->config->node_names[i],
                              entry->error);
        }
        if (first_told == NULL) {
            first_told = entry;
            first = i;
        } else if (!sees(first_told, i) && !sees(entry, first)) {
            add_name(&apart, scenario->config->node_names[i]);
        }
    }
    return apart.used > 0 ? not_shared(scenario, first, &apart, err) : RF_OK;
}
