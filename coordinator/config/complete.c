/*
 * Writes down what was read. See complete.h. Paths on the nodes stay as they
 * are: only the nodes know what they are relative to.
 */
#include "coordinator/config/complete.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/config/paths.h"

/* An absent text leaves the key out. */
static void put_text(json_t *object, const char *key, const char *text)
{
    if (text != NULL) {
        json_object_set_new(object, key, json_string(text));
    }
}

static void put_path(json_t *object, const char *key, const char *path)
{
    char *whole = path != NULL ? rf_paths_absolute(".", path) : NULL;
    put_text(object, key, whole);
    free(whole);
}

/* Only with "local" is the worker's path one of this machine. */
static void put_worker(json_t *object, const struct rf_launch_config *how)
{
    if (strcmp(how->method, "local") == 0 && strchr(how->worker, '/') != NULL) {
        put_path(object, "worker", how->worker);
    } else {
        put_text(object, "worker", how->worker);
    }
}

static json_t *launch_json(const struct rf_config *config)
{
    const struct rf_launch_config *how = &config->launch;
    json_t *out = json_object();
    put_text(out, "method", how->method);
    put_worker(out, how);
    if (how->n_wrap > 0) {
        json_t *words = json_array();
        for (size_t i = 0; i < how->n_wrap; i++) {
            json_array_append_new(words, json_string(how->wrap[i]));
        }
        json_object_set_new(out, "wrap", words);
    }
    if (config->env != NULL) {
        json_object_set_new(out, "env", json_deep_copy(config->env));
    }
    json_object_set_new(out, "parallel", json_integer(how->parallel));
    json_object_set_new(out, "timeout_s", json_integer(how->timeout_s));
    put_path(out, "known_hosts", how->known_hosts);
    put_path(out, "ssh_config", how->ssh_config);
    json_object_set_new(out, "use_ssh_config",
                        json_boolean(how->use_ssh_config));
    json_object_set_new(out, "accept_new", json_boolean(how->accept_new));
    json_object_set_new(out, "deploy", json_boolean(how->deploy));
    return out;
}

static json_t *control_json(const struct rf_control_config *control)
{
    json_t *out = json_object();
    put_text(out, "address", control->address);
    if (control->port_first > 0) {
        json_object_set_new(out, "port_range",
                            json_pack("[i, i]", (int)control->port_first,
                                      (int)control->port_last));
    } else {
        json_object_set_new(out, "port", json_integer(control->port));
    }
    return out;
}

static json_t *node_json(const struct rf_node_config *node)
{
    json_t *out = json_object();
    put_text(out, "host", node->name);
    put_text(out, "hostname", node->hostname);
    json_object_set_new(out, "slots", json_integer(node->slots));
    if (node->port > 0) {
        json_object_set_new(out, "port", json_integer(node->port));
    }
    put_text(out, "user", node->user);
    put_path(out, "identity", node->identity);
    put_text(out, "address", node->address);
    put_text(out, "host_key_sha256", node->host_key_sha256);
    return out;
}

static json_t *nodes_json(const struct rf_config *config)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        json_array_append_new(list, node_json(&config->nodes[i]));
    }
    return list;
}

json_t *rf_config_complete(const struct rf_config *config, json_t *model,
                           json_t *scenario)
{
    json_t *out =
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:[O]}", "name", config->name,
                  "launch", launch_json(config), "control",
                  control_json(&config->control), "nodes", nodes_json(config),
                  "model", json_deep_copy(model), "scenarios", scenario);
    if (config->links != NULL) {
        json_object_set_new(out, "links", json_deep_copy(config->links));
    }
    if (config->timeline.given) {
        json_object_set_new(
            out, "timeline",
            json_deep_copy(json_object_get(config->document, "timeline")));
    }
    return out;
}
