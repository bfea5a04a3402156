/*
 * Runs a scenario again from its record. See rerun.h.
 *
 * Only an equal plan makes two runs comparable, so a different one is refused
 * before anything is launched. The digest decides; the other parts of the
 * record only explain the difference.
 */
#include "coordinator/store/rerun.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/text.h"
#include "common/version.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/records_differ.h"
#include "coordinator/records/result_files.h"
#include "coordinator/store/result_json.h"
#include "planner/model/model_json.h"
#include "planner/schedule/plan_json.h"

/* --- The cluster file ----------------------------------------------------- */

enum rf_status rf_rerun_complete(const json_t *result, const char *path,
                                 struct rf_err *err)
{
    const json_t *cluster = json_object_get(result, "cluster");
    if (json_is_object(json_object_get(result, "configuration"))) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: describes a whole run; name the file of one of "
                          "its scenarios",
                          path);
    }
    RF_TRY(rf_result_check(result, path, err));
    if (json_array_size(json_object_get(cluster, "scenarios")) != 1) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: $.cluster: incomplete: build %.100s, which "
                          "wrote the file, did not record the model and the "
                          "scenario; run its cluster file %.200s again instead",
                          path, rf_result_text(result, "tool", "build"),
                          rf_result_text(result, NULL, "file"));
    }
    if (!json_is_string(
            json_object_get(json_object_get(result, "plan"), "digest"))) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: $.plan.digest: is missing: the scenario was "
                          "refused before planning, nothing to rerun",
                          path);
    }
    return RF_OK;
}

/* Restores the secrets that result_json.c removed. */
static enum rf_status restore_secrets(json_t *env, const char *path,
                                      struct rf_err *err)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(env, next, key, value)
    {
        const char *own = getenv(key);
        if (!rf_result_secret_name(key)) {
            continue;
        }
        if (own == NULL) {
            return rf_err_set(
                err, RF_ERR_CONFIG,
                "%s: $.cluster.launch.env.%.128s: is a secret, not kept in "
                "results; set %.128s in the environment of refit-coord",
                path, key, key);
        }
        if (json_object_set_new(env, key, json_string(own)) != 0) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "%s: $.cluster.launch.env.%.128s: its value in "
                              "the environment of refit-coord is not UTF-8",
                              path, key);
        }
    }
    return RF_OK;
}

static json_t *names_of(const json_t *nodes)
{
    json_t *out = json_array();
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        json_array_append(out,
                          json_object_get(json_array_get(nodes, i), "host"));
    }
    return out;
}

/* Removes the figures of single nodes, in "links" and in each of its "methods":
 * they are those of the old machines. */
static void forget_node_links(json_t *links)
{
    const char *method;
    json_t *level;
    json_object_del(links, "nodes");
    json_object_foreach (json_object_get(links, "methods"), method, level) {
        json_object_del(level, "nodes");
    }
}

/* Replaces a node by a host, which keeps the node's slots; another number of
 * slots is an error. */
static enum rf_status replace_node(json_t *node, const struct rf_host *host,
                                   struct rf_err *err)
{
    json_int_t slots = json_integer_value(json_object_get(node, "slots"));
    if (host->slots > 0 && host->slots != slots) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "host %s has %u slots, but replaces %s with %lld; "
                          "the plan would differ",
                          host->name, host->slots,
                          json_string_value(json_object_get(node, "host")),
                          (long long)slots);
    }
    rf_hosts_rename(node, host);
    return RF_OK;
}

static enum rf_status replace_nodes(json_t *cluster, const char *path,
                                    const struct rf_hosts *hosts,
                                    struct rf_err *err)
{
    json_t *nodes = json_object_get(cluster, "nodes");
    json_t *old = names_of(nodes), *now;
    enum rf_status status = RF_OK;
    if (hosts->n != json_array_size(old)) {
        status = rf_err_set(err, RF_ERR_USAGE,
                            "%zu hosts given for the %zu nodes of %s; each "
                            "replaces one and needs as many slots",
                            hosts->n, json_array_size(old), path);
    }
    for (size_t i = 0; status == RF_OK && i < hosts->n; i++) {
        status = replace_node(json_array_get(nodes, i), &hosts->list[i], err);
    }
    now = names_of(nodes);
    if (status == RF_OK) {
        forget_node_links(json_object_get(cluster, "links"));
        rf_hosts_rename_sides(
            json_array_get(json_object_get(cluster, "scenarios"), 0), old, now);
    }
    json_decref(old);
    json_decref(now);
    return status;
}

enum rf_status rf_rerun_cluster(const json_t *result, const char *path,
                                const struct rf_hosts *hosts, json_t **out,
                                struct rf_err *err)
{
    enum rf_status status = rf_rerun_complete(result, path, err);
    json_t *cluster;
    if (status != RF_OK) {
        return status;
    }
    cluster = json_deep_copy(json_object_get(result, "cluster"));
    if (cluster == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM, "%s: cluster", path);
    }
    status = restore_secrets(
        json_object_get(json_object_get(cluster, "launch"), "env"), path, err);
    if (status == RF_OK && hosts->n > 0) {
        status = replace_nodes(cluster, path, hosts, err);
    }
    if (status != RF_OK) {
        json_decref(cluster);
        return status;
    }
    *out = cluster;
    return RF_OK;
}

/* --- The plan ------------------------------------------------------------- */

static char *value_text(const json_t *value)
{
    return value != NULL ? rf_json_line(value) : rf_xstrdup("absent");
}

/* Adds "model.tensors is 2 in the file and 3 now" if they differ. */
static void add_difference(char **list, const char *part, const json_t *then,
                           const json_t *now)
{
    const json_t *in_then, *in_now;
    char *where = rf_json_difference_at(then, now, &in_then, &in_now);
    char *a, *b;
    if (where == NULL) {
        return;
    }
    a = value_text(in_then);
    b = value_text(in_now);
    rf_text_add(list, "; ", "%s%s is %.80s in the file and %.80s now", part,
                where, a, b);
    free(where);
    free(a);
    free(b);
}

/* Drops the digest and the planning time from a plan's record; returns it. */
static json_t *figures_of(json_t *plan)
{
    json_object_del(plan, "digest");
    json_object_del(plan, "plan_ms");
    return plan;
}

static void add_model(char **list, const json_t *result,
                      const struct rf_model *model)
{
    json_t *now = rf_model_json(model);
    add_difference(list, "model", json_object_get(result, "model"), now);
    json_decref(now);
}

/* Ignores names of nodes, which --nodes may have replaced. */
static void add_scenario(char **list, const json_t *result,
                         const struct rf_scenario *scenario)
{
    const json_t *cluster = json_object_get(result, "cluster");
    json_t *then = json_deep_copy(json_object_get(result, "scenario"));
    json_t *old = names_of(json_object_get(cluster, "nodes"));
    json_t *now = json_array();
    for (uint32_t i = 0; i < scenario->config->n_nodes; i++) {
        json_array_append_new(now,
                              json_string(scenario->config->node_names[i]));
    }
    rf_hosts_rename_sides(then, old, now);
    add_difference(list, "scenario", then, scenario->document);
    json_decref(now);
    json_decref(old);
    json_decref(then);
}

static void add_world(char **list, const json_t *result,
                      const struct rf_scenario *scenario)
{
    size_t then = json_array_size(json_object_get(result, "memory"));
    uint32_t now = scenario->world->n_ranks;
    if (then != now) {
        rf_text_add(list, "; ",
                    "the world has %zu ranks in the file and %" PRIu32 " now",
                    then, now);
    }
}

static void add_plan(char **list, const json_t *result,
                     const struct rf_scenario *scenario)
{
    json_t *then = figures_of(json_deep_copy(json_object_get(result, "plan")));
    json_t *now = figures_of(rf_plan_summary_json(scenario->plan));
    add_difference(list, "plan", then, now);
    json_decref(then);
    json_decref(now);
}

static enum rf_status refuse(const json_t *result, const char *path,
                             const struct rf_model *model,
                             const struct rf_scenario *scenario,
                             struct rf_err *err)
{
    const char *then = rf_result_text(result, "plan", "digest");
    const char *build = rf_result_text(result, "tool", "build");
    char now[RF_HASH_TEXT_SIZE], *parts = NULL;
    rf_hash_text(&scenario->plan->digest, now);
    add_model(&parts, result, model);
    add_scenario(&parts, result, scenario);
    add_world(&parts, result, scenario);
    add_plan(&parts, result, scenario);
    (void)rf_err_set(
        err, RF_ERR_CONFIG,
        "%s: its plan would differ: digest %.40s in the file, %s now; %s "
        "(written by build %.60s, this is %s)",
        path, then, now,
        parts != NULL
            ? parts
            : "nothing else differs: the file or the planner was changed",
        build, rf_build());
    free(parts);
    rf_text_clean_line(err->text, strlen(err->text));
    return RF_ERR_CONFIG;
}

static bool is_digest(const json_t *result, const char *object,
                      const struct rf_hash *digest)
{
    char text[RF_HASH_TEXT_SIZE];
    rf_hash_text(digest, text);
    return strcmp(rf_result_text(result, object, "digest"), text) == 0;
}

enum rf_status rf_rerun_check(const json_t *result, const char *path,
                              const struct rf_model *model,
                              const struct rf_scenario *scenario,
                              struct rf_err *err)
{
    if (!is_digest(result, "plan", &scenario->plan->digest)) {
        return refuse(result, path, model, scenario, err);
    }
    if (!is_digest(result, "schedule", &scenario->schedule->digest)) {
        rf_warn("%s: same plan, but strategy %s now schedules other operations",
                path, rf_strategy_name(scenario->spec->strategy));
    }
    return RF_OK;
}
