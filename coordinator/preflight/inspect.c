/*
 * Headers of a checkpoint from the nodes. See inspect.h.
 *
 * The first node of the first scenario's training side sends the headers. The
 * others are compared with it file by file once all have answered, so the order
 * of answers does not matter.
 */
#include "coordinator/preflight/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/scenario/world.h"

struct inspected_node {
    bool asked, decided;
    struct rf_msg_headers said; /* once `decided`, if it has answered */
    char *error;
};

struct rf_preflight_inspect {
    const struct rf_config *config;
    struct inspected_node *members;
    uint32_t source; /* the node that sends the headers; RF_NONE: none yet */
    json_t *headers; /* as sent; NULL: nothing yet */
};

/* --- Nodes to ask --------------------------------------------------------- */

/* Marks all nodes with ranks in either mesh, and the source. */
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
    status = rf_world_place(spec, config->slots, config->n_nodes, &world, err);
    if (status != RF_OK) {
        rf_err_wrap(err, "%s: %s (%s)", config->file, node.path,
                    config->scenarios[index].name);
        goto free_spec;
    }
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        inspect->members[world->ranks[r].node].asked = true;
    }
    if (inspect->source == RF_NONE) {
        inspect->source = world->ranks[world->rank_of[RF_TRAIN][0]].node;
    }
    rf_world_destroy(world);
free_spec:
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
    inspect->source = RF_NONE;
    for (size_t i = 0; i < config->n_scenarios; i++) {
        enum rf_status status = add_scenario(inspect, i, err);
        if (status != RF_OK) {
            rf_preflight_inspect_destroy(inspect);
            return status;
        }
    }
    *out = inspect;
    return RF_OK;
}

void rf_preflight_inspect_destroy(struct rf_preflight_inspect *inspect)
{
    if (inspect == NULL) {
        return;
    }
    for (uint32_t i = 0; i < inspect->config->n_nodes; i++) {
        rf_schema_free(&rf_msg_headers_schema, &inspect->members[i].said);
        free(inspect->members[i].error);
    }
    free(inspect->members);
    json_decref(inspect->headers);
    free(inspect);
}

bool rf_preflight_inspect_ask(const struct rf_preflight_inspect *inspect,
                              uint32_t node, struct rf_msg *out)
{
    if (!inspect->members[node].asked) {
        return false;
    }
    rf_msg_init(out, RF_MSG_INSPECT);
    out->inspect.folder = rf_xstrdup(rf_config_checkpoint(inspect->config));
    out->inspect.whole = node == inspect->source;
    out->inspect.timeout_s = rf_config_inspect_limit_s(inspect->config);
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
    const struct rf_text_pairs *right =
        &inspect->members[inspect->source].said.digests;
    struct inspected_node *member = &inspect->members[node];
    const char *folder = rf_config_checkpoint(inspect->config);
    const char *host = inspect->config->node_names[inspect->source];
    for (size_t i = 0; i < right->n && member->error == NULL; i++) {
        const char *file = right->list[i].key;
        const char *own = digest_of(&member->said.digests, file);
        if (own == NULL || strcmp(own, digest_of(right, file)) != 0) {
            member->error = rf_xasprintf(
                "%s/%s: %s %s: the folder must hold the same checkpoint on all "
                "nodes",
                folder, file,
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
                rf_xasprintf("%s/%s: does not exist on %s: the folder must "
                             "hold the same checkpoint on all nodes",
                             folder, file, host);
        }
    }
}

/* The verdict once all have answered. */
static enum rf_verdict judge(struct rf_preflight_inspect *inspect)
{
    enum rf_verdict verdict = RF_VERDICT_NEXT;
    for (uint32_t i = 0; i < inspect->config->n_nodes; i++) {
        if (inspect->members[i].asked && !inspect->members[i].decided) {
            return RF_VERDICT_GO_ON;
        }
    }
    for (uint32_t i = 0; i < inspect->config->n_nodes; i++) {
        struct inspected_node *member = &inspect->members[i];
        if (member->asked && member->error == NULL &&
            inspect->headers != NULL) {
            compare(inspect, i);
        }
        if (member->error != NULL) {
            verdict = RF_VERDICT_ABORT;
        }
    }
    return verdict;
}

/* --- Answers -------------------------------------------------------------- */

static bool is_awaited(const struct rf_preflight_inspect *inspect,
                       uint32_t node)
{
    return inspect->members[node].asked && !inspect->members[node].decided;
}

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
        return rf_preflight_inspect_fail(inspect, node, headers->error);
    }
    if (headers->digests.n == 0 ||
        (node == inspect->source && headers->headers == NULL)) {
        return rf_preflight_inspect_fail(
            inspect, node, "its HEADERS lacks what INSPECT asked for");
    }
    member->decided = true;
    rf_schema_copy(&rf_msg_headers_schema, headers, &member->said);
    if (node == inspect->source) {
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
                     rf_config_checkpoint(inspect->config), waited_s);
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
