/*
 * The cluster file of a run.
 *
 * How to reach the nodes stays as its author wrote it, with the absolute paths
 * of the records; the models and scenarios are those of the records, so they
 * need no other file, and choices such as that of strategy "auto" are the same
 * again. The reader of cluster files accepts it before it is packed. Secrets,
 * which results replace, are taken out.
 */
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/shell.h"
#include "common/text.h"
#include "coordinator/artifact/artifact_run.h"
#include "coordinator/config/config.h"
#include "coordinator/records/fields.h"
#include "coordinator/store/rerun.h"

void rf_artifact_note(json_t *list, const char *text)
{
    if (text != NULL && !rf_json_has_text(list, text)) {
        json_array_append_new(list, json_string(text));
    }
}

/* Adds a record's scenario, with its model unless that is the file's. */
static void add_scenario(json_t *cluster, const json_t *record)
{
    json_t *scenarios = json_object_get(cluster, "scenarios"), *other;
    const json_t *recorded = json_object_get(record, "cluster");
    json_t *model = json_object_get(recorded, "model");
    json_t *scenario = json_deep_copy(
        json_array_get(json_object_get(recorded, "scenarios"), 0));
    size_t i;
    if (json_object_get(cluster, "model") == NULL) {
        json_object_set(cluster, "model", model);
    } else if (!json_equal(json_object_get(cluster, "model"), model)) {
        json_object_set(scenario, "model", model);
    }
    json_array_foreach (scenarios, i, other) {
        if (json_equal(other, scenario)) { /* a copy of a record */
            json_decref(scenario);
            return;
        }
    }
    json_array_append_new(scenarios, scenario);
}

static void take_secrets(json_t *env, json_t *secrets)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(env, next, key, value)
    {
        if (rf_result_secret_name(key)) {
            rf_artifact_note(secrets, key);
            json_object_del(env, key);
        }
    }
}

static void note_path(json_t *list, const json_t *object, const char *key)
{
    rf_artifact_note(list, json_string_value(json_object_get(object, key)));
}

/* How nodes are reached: paths, and the command that wraps the worker. */
static void note_launch(const json_t *cluster, json_t *launching)
{
    const json_t *launch = json_object_get(cluster, "launch"), *at;
    const char *worker = json_string_value(json_object_get(launch, "worker"));
    char *wrap = NULL;
    size_t i;
    rf_artifact_note(launching, worker != NULL && strchr(worker, '/') != NULL
                                    ? worker
                                    : NULL);
    json_array_foreach (json_object_get(launch, "wrap"), i, at) {
        char *word = rf_shell_word(json_string_value(at));
        rf_text_add(&wrap, " ", "%s", word);
        free(word);
    }
    rf_artifact_note(launching, wrap);
    free(wrap);
    note_path(launching, launch, "known_hosts");
    note_path(launching, launch, "ssh_config");
    json_array_foreach (json_object_get(cluster, "nodes"), i, at) {
        note_path(launching, at, "identity");
    }
}

static void note_data(const json_t *cluster, json_t *data)
{
    const json_t *at;
    size_t i;
    json_array_foreach (json_object_get(cluster, "scenarios"), i, at) {
        const json_t *own = json_object_get(at, "model");
        const json_t *model =
            own != NULL ? own : json_object_get(cluster, "model");
        note_path(data, json_object_get(model, "files"), "folder");
        note_path(data, model, "checkpoint");
        note_path(data, json_object_get(at, "disk"), "folder");
        note_path(data, json_object_get(at, "update"), "from");
        note_path(data, json_object_get(at, "update"), "to");
    }
}

/* Takes a path, if `to` has one, from the same object of a record. */
static void take_path(json_t *to, const json_t *recorded, const char *key)
{
    json_t *path = json_object_get(recorded, key);
    if (path != NULL && json_object_get(to, key) != NULL) {
        json_object_set(to, key, path);
    }
}

static void take_paths(json_t *cluster, const json_t *recorded)
{
    json_t *launch = json_object_get(cluster, "launch"), *node;
    const json_t *from = json_object_get(recorded, "launch");
    size_t i;
    take_path(launch, from, "worker");
    take_path(launch, from, "known_hosts");
    take_path(launch, from, "ssh_config");
    from = json_object_get(recorded, "nodes");
    json_array_foreach (json_object_get(cluster, "nodes"), i, node) {
        take_path(node, json_array_get(from, i), "identity");
    }
}

/* The configuration without what the records have. */
static json_t *begin_cluster(const struct rf_artifact_run *run)
{
    static const char *const replaced[] = {"$schema", "variables", "defaults",
                                           "model", "scenarios"};
    json_t *out =
        json_deep_copy(json_object_get(run->document, "configuration"));
    const json_t *recorded = json_object_get(run->files[0].result, "cluster");
    if (!json_is_object(out)) {
        json_decref(out);
        out = json_object();
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(replaced); i++) {
        json_object_del(out, replaced[i]);
    }
    if (!json_is_array(json_object_get(out, "nodes"))) { /* Slurm's */
        json_object_set(out, "nodes", json_object_get(recorded, "nodes"));
    }
    json_object_set_new(out, "scenarios", json_array());
    take_paths(out, recorded);
    return out;
}

/* Has the file read, as if by a command. */
static enum rf_status check(const struct rf_artifact_run *run,
                            const json_t *cluster, struct rf_err *err)
{
    char *name = rf_artifact_cluster_name(run);
    struct rf_config *config = NULL;
    enum rf_status status =
        rf_config_from_json(json_deep_copy(cluster), name, true, &config, err);
    rf_config_destroy(config);
    free(name);
    return rf_err_within(status, err,
                         "the configuration of %s would not run again",
                         run->files[0].folder);
}

enum rf_status rf_artifact_cluster(struct rf_artifact_run *run,
                                   struct rf_err *err)
{
    json_t *cluster = begin_cluster(run);
    enum rf_status status = RF_OK;
    run->secrets = json_array();
    run->launching = json_array();
    run->data = json_array();
    for (size_t i = 0; i < run->n; i++) {
        const struct rf_result_file *file = &run->files[i];
        struct rf_err why = {0};
        if (rf_rerun_complete(file->result, file->path, &why) == RF_OK) {
            add_scenario(cluster, file->result);
        } else {
            rf_warn("%s; not in the cluster file of the pack", why.text);
        }
    }
    take_secrets(json_object_get(json_object_get(cluster, "launch"), "env"),
                 run->secrets);
    note_launch(cluster, run->launching);
    note_data(cluster, run->data);
    if (json_array_size(json_object_get(cluster, "scenarios")) > 0) {
        status = check(run, cluster, err);
        run->cluster = json_incref(cluster);
    }
    json_decref(cluster);
    return status;
}
