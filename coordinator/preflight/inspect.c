/*
 * Headers of a checkpoint from the nodes. See inspect.h.
 *
 * For each folder, the first node of the training side of the first scenario
 * that reads it sends the headers if they are of the model's checkpoint. The
 * others are compared with it file by file once all have answered, so the order
 * of answers does not matter.
 */
#include "coordinator/preflight/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/scenario/world.h"

/* Time for an answer to arrive, beyond the node's own time limit. */
#define SLACK_S 60

struct inspected_node {
    bool decided;
    struct rf_msg_headers said; /* once `decided`, if it has answered */
    char *error;
};

struct inspected_folder {
    char *path;         /* in the file: "$.model.checkpoint" */
    const char *folder; /* of the configuration */
    bool *asked;        /* by node */
    uint32_t source;    /* the node that others are compared with; RF_NONE:
                           none yet */
};

struct rf_preflight_inspect {
    const struct rf_config *config;
    struct inspected_folder *folders;
    size_t n_folders, cap_folders;
    size_t at;                      /* the folder that nodes are asked for */
    bool whole;                     /* the first is the model's */
    struct inspected_node *members; /* their answers */
    json_t *headers;                /* as sent; NULL: nothing yet */
};

static const struct inspected_folder *
folder_of(const struct rf_preflight_inspect *inspect)
{
    return &inspect->folders[inspect->at];
}

/* --- Nodes to ask --------------------------------------------------------- */

/* A folder, named at `path` (taken) for the first time or again. */
static size_t add_folder(struct rf_preflight_inspect *inspect,
                         const char *folder, char *path)
{
    struct inspected_folder new = {
        .path = path, .folder = folder, .source = RF_NONE};
    for (size_t i = 0; i < inspect->n_folders; i++) {
        if (strcmp(inspect->folders[i].folder, folder) == 0) {
            free(path);
            return i;
        }
    }
    new.asked = rf_xcalloc(inspect->config->n_nodes, sizeof(*new.asked));
    RF_PUSH(inspect->folders, inspect->n_folders, inspect->cap_folders, new);
    return inspect->n_folders - 1;
}

/* Marks all nodes with ranks in either mesh, and the source. */
static void ask_nodes_of(struct inspected_folder *folder,
                         const struct rf_world *world)
{
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        folder->asked[world->ranks[r].node] = true;
    }
    if (folder->source == RF_NONE) {
        folder->source = world->ranks[world->rank_of[RF_TRAIN][0]].node;
    }
}

/* The folders that the ranks of a scenario read. */
static void add_folders(struct rf_preflight_inspect *inspect, size_t index,
                        const struct rf_world *world)
{
    const struct rf_config *config = inspect->config;
    if (inspect->whole) {
        ask_nodes_of(&inspect->folders[0], world);
    }
    for (size_t k = 0; rf_config_update_keys[k] != NULL; k++) {
        const char *key = rf_config_update_keys[k];
        const char *folder = rf_config_missing_update(config, index, key);
        if (folder != NULL) {
            const size_t at =
                add_folder(inspect, folder,
                           rf_xasprintf("%s.update.%s",
                                        config->scenarios[index].path, key));
            ask_nodes_of(&inspect->folders[at], world);
        }
    }
}

static enum rf_status add_scenario(struct rf_preflight_inspect *inspect,
                                   size_t index, struct rf_err *err)
{
    const struct rf_config *config = inspect->config;
    struct rf_jnode node = rf_config_scenario(config, index);
    struct rf_spec *spec = NULL;
    struct rf_world *world = NULL;
    enum rf_status status = rf_spec_from_json(&node, config->node_names,
                                              config->n_nodes, &spec, err);
    if (status != RF_OK) {
        return status; /* already names the place */
    }
    status = rf_jnode_within(
        &node,
        rf_world_place(spec, config->slots, config->n_nodes, &world, err), err);
    if (status == RF_OK) {
        add_folders(inspect, index, world);
    }
    rf_world_destroy(world);
    rf_spec_destroy(spec);
    return status;
}

enum rf_status rf_preflight_inspect_create(const struct rf_config *config,
                                           struct rf_preflight_inspect **out,
                                           struct rf_err *err)
{
    struct rf_preflight_inspect *inspect = rf_xcalloc(1, sizeof(*inspect));
    inspect->config = config;
    inspect->members = rf_xcalloc(config->n_nodes, sizeof(*inspect->members));
    inspect->whole = rf_config_checkpoint(config) != NULL;
    if (inspect->whole) {
        add_folder(inspect, rf_config_checkpoint(config),
                   rf_xasprintf("%s.checkpoint", config->model_path));
    }
    for (size_t i = 0; i < config->n_scenarios; i++) {
        enum rf_status status = add_scenario(inspect, i, err);
        if (status != RF_OK) {
            rf_preflight_inspect_destroy(inspect);
            return status;
        }
    }
    if (inspect->n_folders == 0) {
        rf_preflight_inspect_destroy(inspect);
        inspect = NULL;
    }
    *out = inspect;
    return RF_OK;
}

static void forget(struct inspected_node *member)
{
    rf_schema_free(&rf_msg_headers_schema, &member->said);
    free(member->error);
    *member = (struct inspected_node){.decided = false};
}

void rf_preflight_inspect_destroy(struct rf_preflight_inspect *inspect)
{
    if (inspect == NULL) {
        return;
    }
    for (uint32_t i = 0; i < inspect->config->n_nodes; i++) {
        forget(&inspect->members[i]);
    }
    for (size_t i = 0; i < inspect->n_folders; i++) {
        free(inspect->folders[i].path);
        free(inspect->folders[i].asked);
    }
    free(inspect->folders);
    free(inspect->members);
    json_decref(inspect->headers);
    free(inspect);
}

/* Time limit for a node to read a checkpoint's headers. */
static uint32_t node_limit_s(const struct rf_preflight_inspect *inspect)
{
    return 4 * inspect->config->launch.timeout_s;
}

uint32_t
rf_preflight_inspect_limit_s(const struct rf_preflight_inspect *inspect)
{
    return node_limit_s(inspect) + SLACK_S;
}

/* The headers themselves, not only their digests. */
static bool sends_headers(const struct rf_preflight_inspect *inspect,
                          uint32_t node)
{
    return inspect->whole && inspect->at == 0 &&
           node == folder_of(inspect)->source;
}

bool rf_preflight_inspect_ask(const struct rf_preflight_inspect *inspect,
                              uint32_t node, struct rf_msg *out)
{
    if (!folder_of(inspect)->asked[node]) {
        return false;
    }
    rf_msg_init(out, RF_MSG_INSPECT);
    out->inspect.folder = rf_xstrdup(folder_of(inspect)->folder);
    out->inspect.whole = sends_headers(inspect, node);
    out->inspect.timeout_s = node_limit_s(inspect);
    return true;
}

bool rf_preflight_inspect_more(struct rf_preflight_inspect *inspect)
{
    if (inspect->at + 1 == inspect->n_folders) {
        return false;
    }
    inspect->at++;
    for (uint32_t i = 0; i < inspect->config->n_nodes; i++) {
        forget(&inspect->members[i]);
    }
    return true;
}

/* --- Comparing ------------------------------------------------------------ */

/* A file's digest; NULL: no such file. */
static const char *digest_of(const struct rf_text_pairs *digests,
                             const char *file)
{
    for (size_t i = 0; i < digests->n; i++) {
        if (strcmp(digests->list[i].key, file) == 0) {
            const char *digest = digests->list[i].value;
            return digest != NULL ? digest : "";
        }
    }
    return NULL;
}

/* Reports the first file that differs, or that only one of the two has. */
static void compare(const struct rf_preflight_inspect *inspect, uint32_t node)
{
    const struct inspected_folder *of = folder_of(inspect);
    const struct rf_text_pairs *right =
        &inspect->members[of->source].said.digests;
    struct inspected_node *member = &inspect->members[node];
    const char *host = inspect->config->node_names[of->source];
    for (size_t i = 0; i < right->n && member->error == NULL; i++) {
        const char *file = right->list[i].key;
        const char *own = digest_of(&member->said.digests, file);
        if (own == NULL || strcmp(own, digest_of(right, file)) != 0) {
            member->error = rf_xasprintf(
                "%s: %s/%s: %s %s: the folder must hold the same checkpoint on "
                "all nodes",
                of->path, of->folder, file,
                own == NULL ? "is missing, but exists on"
                            : "differs from that on",
                host);
        }
    }
    for (size_t i = 0; i < member->said.digests.n && member->error == NULL;
         i++) {
        const char *file = member->said.digests.list[i].key;
        if (digest_of(right, file) == NULL) {
            member->error =
                rf_xasprintf("%s: %s/%s: does not exist on %s: the folder must "
                             "hold the same checkpoint on all nodes",
                             of->path, of->folder, file, host);
        }
    }
}

static bool is_awaited(const struct rf_preflight_inspect *inspect,
                       uint32_t node)
{
    return folder_of(inspect)->asked[node] && !inspect->members[node].decided;
}

/* The verdict once all have answered. */
static enum rf_verdict judge(struct rf_preflight_inspect *inspect)
{
    const struct inspected_folder *of = folder_of(inspect);
    enum rf_verdict verdict = RF_VERDICT_NEXT;
    for (uint32_t i = 0; i < inspect->config->n_nodes; i++) {
        if (is_awaited(inspect, i)) {
            return RF_VERDICT_GO_ON;
        }
    }
    for (uint32_t i = 0; i < inspect->config->n_nodes; i++) {
        struct inspected_node *member = &inspect->members[i];
        if (of->asked[i] && member->error == NULL &&
            inspect->members[of->source].error == NULL) {
            compare(inspect, i);
        }
        if (member->error != NULL) {
            verdict = RF_VERDICT_ABORT;
        }
    }
    return verdict;
}

/* --- Answers -------------------------------------------------------------- */

enum rf_verdict rf_preflight_inspect_fail(struct rf_preflight_inspect *inspect,
                                          uint32_t node, const char *why)
{
    if (!is_awaited(inspect, node)) {
        return RF_VERDICT_GO_ON;
    }
    inspect->members[node].decided = true;
    inspect->members[node].error = rf_xstrdup(why);
    return judge(inspect);
}

/* Keeps only the permitted members of the node's answer, with the folder that
 * every rank gets. */
static json_t *take_headers(const struct rf_preflight_inspect *inspect,
                            const json_t *sent)
{
    json_t *headers = json_object(), *value;
    if ((value = json_object_get(sent, "manifest")) != NULL) {
        json_object_set(headers, "manifest", value);
    }
    if ((value = json_object_get(sent, "config")) != NULL) {
        json_object_set(headers, "config", value);
    }
    json_object_set_new(headers, "folder",
                        json_string(rf_config_checkpoint(inspect->config)));
    return headers;
}

enum rf_verdict rf_preflight_inspect_take(struct rf_preflight_inspect *inspect,
                                          uint32_t node,
                                          const struct rf_msg_headers *headers)
{
    struct inspected_node *member = &inspect->members[node];
    if (!is_awaited(inspect, node)) {
        return RF_VERDICT_GO_ON;
    }
    if (headers->error != NULL) {
        char *why = rf_xasprintf("%s, which ranks read on their nodes: %s",
                                 folder_of(inspect)->path, headers->error);
        const enum rf_verdict verdict =
            rf_preflight_inspect_fail(inspect, node, why);
        free(why);
        return verdict;
    }
    if (headers->digests.n == 0 ||
        (sends_headers(inspect, node) && headers->headers == NULL)) {
        return rf_preflight_inspect_fail(
            inspect, node, "its HEADERS lacks what INSPECT asked for");
    }
    member->decided = true;
    rf_schema_copy(&rf_msg_headers_schema, headers, &member->said);
    if (sends_headers(inspect, node)) {
        inspect->headers = take_headers(inspect, headers->headers);
    }
    return judge(inspect);
}

enum rf_verdict
rf_preflight_inspect_silence(struct rf_preflight_inspect *inspect,
                             long long waited_s)
{
    enum rf_verdict verdict = RF_VERDICT_GO_ON;
    for (uint32_t i = 0; i < inspect->config->n_nodes; i++) {
        char why[512];
        if (is_awaited(inspect, i)) {
            snprintf(why, sizeof(why),
                     "did not send the headers in %.300s within %lld s",
                     folder_of(inspect)->folder, waited_s);
            verdict = rf_preflight_inspect_fail(inspect, i, why);
        }
    }
    return verdict;
}

const char *
rf_preflight_inspect_error(const struct rf_preflight_inspect *inspect,
                           uint32_t node)
{
    return inspect->members[node].error;
}

json_t *rf_preflight_inspect_headers(const struct rf_preflight_inspect *inspect)
{
    return inspect->headers;
}
