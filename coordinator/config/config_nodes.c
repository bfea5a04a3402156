/*
 * cluster.json: how to start agents ("launch"), their address to connect back
 * to ("control"), and the nodes; read and written. Names are checked here, so
 * that a bad one is a configuration error and nothing is spawned.
 */
#include <arpa/inet.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_schema.h"
#include "common/mem.h"
#include "common/variables.h"
#include "coordinator/config/config_fields.h"
#include "coordinator/config/config_internal.h"
#include "coordinator/config/nodes/names.h"
#include "coordinator/config/nodes/slurm_job.h"
#include "coordinator/config/paths.h"

static const char *const methods[] = {"ssh", "local", "manual", "slurm", NULL};
static const char *const binds[] = {RF_BIND_NONE, "numa", "core", NULL};

static bool numeric_address(const char *text)
{
    unsigned char bytes[16];
    return inet_pton(AF_INET, text, bytes) == 1 ||
           inet_pton(AF_INET6, text, bytes) == 1;
}

static bool valid_control_address(const char *text)
{
    return strcmp(text, "auto") == 0 || strcmp(text, "stdio") == 0 ||
           numeric_address(text);
}

/* An optional "SHA256:" and 32 bytes in base64, padded or not. */
static bool valid_fingerprint(const char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t size;
    text += strncmp(text, "SHA256:", 7) == 0 ? 7 : 0;
    size = strspn(text, digits);
    /* The last digit has four bits of the hash, two are zero. */
    return size == 43 && (strchr(digits, text[42]) - digits) % 4 == 0 &&
           (text[43] == '\0' || strcmp(text + 43, "=") == 0);
}

/* --- Keys ----------------------------------------------------------------- */

static json_t *method_schema(void)
{
    return rf_json_schema_words(methods);
}

static json_t *bind_schema(void)
{
    return rf_json_schema_words(binds);
}

static json_t *env_schema(void)
{
    return json_pack("{s:s, s:{s:s}, s:{s:s}, s:i}", "type", "object",
                     "propertyNames", "pattern", "^[A-Za-z_][A-Za-z0-9_]*$",
                     "additionalProperties", "type", "string", "maxProperties",
                     RF_CONFIG_MAX_ENV);
}

static json_t *wrap_schema(void)
{
    return rf_json_schema_list(rf_json_schema_text(), 1, RF_LAUNCH_WRAP_MAX);
}

static json_t *port_range_schema(void)
{
    return rf_json_schema_list(rf_json_schema_integer(1, 65535), 2, 2);
}

#define AT(member) .offset = offsetof(struct rf_launch_config, member)
static const struct rf_config_field launch_fields[] = {
    {.key = "method", .schema = method_schema},
    {"worker", RF_CONFIG_TEXT, AT(worker), .valid = rf_names_valid_worker,
     .what = "a name or path of a program: letters, digits and \"/._+-\" "
             "only"},
    {.key = "env", .schema = env_schema},
    {.key = "wrap", .schema = wrap_schema},
    {.key = "slurm", .schema = rf_slurm_schema},
    {.key = "bind", .schema = bind_schema},
    {"parallel", RF_CONFIG_NUMBER, AT(parallel), 1, 1024},
    {"timeout_s", RF_CONFIG_NUMBER, AT(timeout_s), 1, 3600},
    {"known_hosts", RF_CONFIG_PATH, AT(known_hosts)},
    {"ssh_config", RF_CONFIG_PATH, AT(ssh_config)},
    {"use_ssh_config", RF_CONFIG_FLAG, AT(use_ssh_config)},
    {"accept_new", RF_CONFIG_FLAG, AT(accept_new)},
    {"deploy", RF_CONFIG_FLAG, AT(deploy)},
    {.key = NULL}};
#undef AT

#define AT(member) .offset = offsetof(struct rf_control_config, member)
static const struct rf_config_field control_fields[] = {
    {"address", RF_CONFIG_TEXT, AT(address), .valid = valid_control_address,
     .what = "\"auto\", \"stdio\" or a numeric address of this machine"},
    {"port", RF_CONFIG_NUMBER, AT(port), 0, 65535},
    {.key = "port_range", .schema = port_range_schema},
    {.key = NULL}};
#undef AT

#define AT(member) .offset = offsetof(struct rf_node_config, member)
static const struct rf_config_field node_fields[] = {
    {"host", RF_CONFIG_TEXT, AT(name), .required = true,
     .valid = rf_names_valid_host,
     .what = "a host name: letters, digits and \"._-:\" only, no leading dash"},
    {"hostname", RF_CONFIG_TEXT, AT(hostname), .valid = rf_names_valid_host,
     .what = "a host name"},
    {"slots", RF_CONFIG_NUMBER, AT(slots), 1, RF_CONFIG_MAX_SLOTS,
     .required = true},
    {"port", RF_CONFIG_NUMBER, AT(port), 1, 65535},
    {"user", RF_CONFIG_TEXT, AT(user), .valid = rf_names_valid_user,
     .what = "a user name"},
    {"identity", RF_CONFIG_PATH, AT(identity)},
    {"address", RF_CONFIG_TEXT, AT(address), .valid = numeric_address,
     .what = "a numeric address"},
    {"host_key_sha256", RF_CONFIG_TEXT, AT(host_key_sha256),
     .valid = valid_fingerprint,
     .what = "a fingerprint as \"ssh-keygen -l\" prints it: \"SHA256:\" and "
             "43 digits of base64"},
    {.key = NULL}};
#undef AT

/* --- launch and control --------------------------------------------------- */

static bool valid_env_name(const char *name)
{
    size_t size = strlen(name);
    return size > 0 && size <= 128 &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                        "0123456789_") == size &&
           !(name[0] >= '0' && name[0] <= '9');
}

static enum rf_status read_env(const struct rf_jnode *launch,
                               struct rf_config *config, struct rf_err *err)
{
    struct rf_jnode env = rf_jnode_get(launch, "env");
    const char *key;
    json_t *value;
    size_t bytes = 0;
    if (env.value == NULL) {
        return RF_OK;
    }
    if (!json_is_object(env.value)) {
        return rf_jnode_fail(&env, err, "must be an object of strings");
    }
    if (json_object_size(env.value) > RF_CONFIG_MAX_ENV) {
        return rf_jnode_fail(&env, err, "has %zu variables, more than %d",
                             json_object_size(env.value), RF_CONFIG_MAX_ENV);
    }
    json_object_foreach (env.value, key, value) {
        struct rf_jnode node = rf_jnode_get(&env, key);
        if (!valid_env_name(key)) {
            return rf_jnode_fail(&node, err,
                                 "not a valid name of an environment variable");
        }
        if (!json_is_string(value)) {
            return rf_jnode_fail(&node, err, "must be a string");
        }
        bytes += strlen(key) + json_string_length(value);
        if (bytes > RF_CONFIG_MAX_ENV_BYTES) {
            return rf_jnode_fail(&node, err,
                                 "the variables up to this one exceed %d bytes",
                                 RF_CONFIG_MAX_ENV_BYTES);
        }
        if (strcmp(key, RF_VARIABLE_NCCL_ID) == 0) {
            return rf_jnode_fail(&node, err,
                                 "may not be set: it replaces the secret "
                                 "NCCL unique ID with a public one");
        }
    }
    config->env = env.value;
    return RF_OK;
}

/* Words of a command. Any are valid: each is quoted for the node's shell. */
static enum rf_status read_wrap(const struct rf_jnode *launch,
                                struct rf_launch_config *how,
                                struct rf_err *err)
{
    struct rf_jnode wrap = rf_jnode_get(launch, "wrap");
    if (wrap.value == NULL) {
        return RF_OK;
    }
    how->n_wrap = json_array_size(wrap.value);
    if (how->n_wrap == 0 || how->n_wrap > RF_LAUNCH_WRAP_MAX) {
        return rf_jnode_wrong(&wrap, err,
                              "must be a list of 1 to %d words, such as "
                              "[\"docker\", \"exec\", \"-i\", \"trainer\"]",
                              RF_LAUNCH_WRAP_MAX);
    }
    for (size_t i = 0; i < how->n_wrap; i++) {
        struct rf_jnode word = rf_jnode_at(&wrap, i);
        const char *text = json_string_value(word.value);
        if (text == NULL || text[0] == '\0' ||
            strpbrk(text, "\r\n\t\033") != NULL) {
            return rf_jnode_wrong(&word, err,
                                  "must be a word without line breaks");
        }
        how->wrap[i] = text;
    }
    return RF_OK;
}

/* One srun starts the workers of all nodes. */
static enum rf_status check_slurm_wrap(const struct rf_jnode *launch,
                                       const struct rf_launch_config *how,
                                       struct rf_err *err)
{
    struct rf_jnode wrap = rf_jnode_get(launch, "wrap");
    for (size_t i = 0; i < how->n_wrap; i++) {
        if (strstr(how->wrap[i], "{host}") != NULL) {
            struct rf_jnode word = rf_jnode_at(&wrap, i);
            return rf_jnode_fail(
                &word, err,
                "\"{host}\" does not work with method \"slurm\": one srun "
                "starts the workers of all nodes");
        }
    }
    return RF_OK;
}

static enum rf_status read_launch(const struct rf_jnode *root,
                                  struct rf_config *config, struct rf_err *err)
{
    struct rf_launch_config *how = &config->launch;
    const struct rf_jnode launch = rf_jnode_get(root, "launch");
    json_t *options = NULL; /* only checked; used outside a job */
    unsigned method = 0, bind = 0;
    *how = (struct rf_launch_config){.method = methods[0],
                                     .bind = binds[0],
                                     .worker = "refit-worker",
                                     .use_ssh_config = true,
                                     .parallel = 32,
                                     .timeout_s = 30};
    if (launch.value == NULL) {
        return RF_OK;
    }
    RF_TRY(rf_config_fields_read(launch_fields, &launch, config, how, err));
    RF_TRY(rf_jnode_choice(&launch, "method", methods, &method, err));
    RF_TRY(rf_jnode_choice(&launch, "bind", binds, &bind, err));
    RF_TRY(read_env(&launch, config, err));
    RF_TRY(read_wrap(&launch, how, err));
    RF_TRY(rf_slurm_options(root, &options, err));
    how->method = methods[method];
    how->bind = binds[bind];
    return strcmp(how->method, "slurm") == 0
               ? check_slurm_wrap(&launch, how, err)
               : RF_OK;
}

static enum rf_status read_port_range(const struct rf_jnode *control,
                                      struct rf_control_config *out,
                                      struct rf_err *err)
{
    struct rf_jnode range = rf_jnode_get(control, "port_range");
    json_int_t first, last;
    if (range.value == NULL) {
        return RF_OK;
    }
    first = json_integer_value(json_array_get(range.value, 0));
    last = json_integer_value(json_array_get(range.value, 1));
    if (json_array_size(range.value) != 2 || first < 1 || last > 65535 ||
        first > last) {
        return rf_jnode_wrong(&range, err,
                              "must be [first, last] with ports from 1 to "
                              "65535");
    }
    if (out->port != 0) {
        return rf_jnode_fail(&range, err,
                             "\"port\" and \"port_range\" cannot be combined");
    }
    out->port_first = (uint32_t)first;
    out->port_last = (uint32_t)last;
    return RF_OK;
}

enum rf_status rf_config_read_launch(const struct rf_jnode *root,
                                     struct rf_config *config,
                                     struct rf_err *err)
{
    const struct rf_jnode control = rf_jnode_get(root, "control");
    config->control.address = "auto";
    RF_TRY(read_launch(root, config, err));
    if (control.value == NULL) {
        return RF_OK;
    }
    RF_TRY(rf_config_fields_read(control_fields, &control, config,
                                 &config->control, err));
    return read_port_range(&control, &config->control, err);
}

/* --- nodes ---------------------------------------------------------------- */

static enum rf_status check_unique(const struct rf_jnode *list,
                                   const struct rf_config *config, uint32_t i,
                                   struct rf_err *err)
{
    for (uint32_t j = 0; j < i; j++) {
        struct rf_jnode node = rf_jnode_at(list, i);
        if (strcasecmp(config->nodes[i].name, config->nodes[j].name) == 0) {
            return rf_jnode_fail(&node, err,
                                 "host \"%s\" is already $.nodes[%u]; list it "
                                 "once, with all its slots",
                                 config->nodes[i].name, j);
        }
    }
    return RF_OK;
}

enum rf_status rf_config_place_nodes(const struct rf_jnode *root,
                                     bool need_nodes, struct rf_err *err)
{
    struct rf_jnode nodes = rf_jnode_get(root, "nodes");
    const char *from = json_string_value(nodes.value);
    struct rf_hosts hosts = {0};
    enum rf_status status;
    if (from == NULL || strcmp(from, "slurm") != 0) {
        return RF_OK;
    }
    if (!need_nodes && !rf_slurm_job_is_here()) {
        json_object_del(root->value, "nodes");
        return RF_OK;
    }
    status = rf_slurm_job_hosts(&hosts, err);
    if (status == RF_OK) {
        rf_hosts_place(&hosts, root->value);
    } else {
        rf_err_wrap(err, "%s: %s: \"slurm\"", nodes.file, nodes.path);
    }
    rf_hosts_free(&hosts);
    return status;
}

enum rf_status rf_config_read_nodes(const struct rf_jnode *root,
                                    struct rf_config *config,
                                    struct rf_err *err)
{
    struct rf_jnode list = rf_jnode_get(root, "nodes");
    size_t count = json_array_size(list.value);
    if (list.value == NULL) {
        return RF_OK;
    }
    if (!json_is_array(list.value) || count == 0 ||
        count > RF_CONFIG_MAX_NODES) {
        return rf_jnode_wrong(&list, err,
                              "must be a list of 1 to %d nodes, or \"slurm\"",
                              RF_CONFIG_MAX_NODES);
    }
    config->nodes = rf_xcalloc(count, sizeof(*config->nodes));
    config->node_names = rf_xcalloc(count, sizeof(*config->node_names));
    config->slots = rf_xcalloc(count, sizeof(*config->slots));
    for (uint32_t i = 0; i < count; i++) {
        struct rf_jnode node = rf_jnode_at(&list, i);
        enum rf_status status = rf_config_fields_read(
            node_fields, &node, config, &config->nodes[i], err);
        RF_THEN(status, check_unique(&list, config, i, err));
        if (status != RF_OK) {
            return status;
        }
        config->node_names[i] = config->nodes[i].name;
        config->slots[i] = config->nodes[i].slots;
        config->n_nodes = i + 1;
    }
    return RF_OK;
}

/* --- Writing -------------------------------------------------------------- */

/* Only with "local" is the worker's path on this machine; only the nodes can
 * resolve others. */
static json_t *launch_json(const struct rf_config *config)
{
    const struct rf_launch_config *how = &config->launch;
    json_t *out = rf_config_fields_write(launch_fields, how);
    json_object_set_new(out, "method", json_string(how->method));
    json_object_set_new(out, "bind", json_string(how->bind));
    if (strcmp(how->method, "local") == 0 && strchr(how->worker, '/') != NULL) {
        char *path = rf_paths_absolute(".", how->worker);
        json_object_set_new(out, "worker", json_string(path));
        free(path);
    }
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
    return out;
}

static json_t *control_json(const struct rf_control_config *control)
{
    json_t *out = rf_config_fields_write(control_fields, control);
    if (control->port_first > 0) {
        json_object_del(out, "port");
        json_object_set_new(out, "port_range",
                            json_pack("[i, i]", (int)control->port_first,
                                      (int)control->port_last));
    }
    return out;
}

json_t *rf_config_complete(const struct rf_config *config, json_t *model,
                           json_t *scenario)
{
    json_t *nodes = json_array(), *out;
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        json_array_append_new(
            nodes, rf_config_fields_write(node_fields, &config->nodes[i]));
    }
    out = json_pack("{s:s, s:o, s:o, s:o, s:o, s:[O]}", "name", config->name,
                    "launch", launch_json(config), "control",
                    control_json(&config->control), "nodes", nodes, "model",
                    json_deep_copy(model), "scenarios", scenario);
    json_object_set_new(
        out, "links",
        json_deep_copy(json_object_get(config->document, "links")));
    json_object_set_new(
        out, "timeline",
        json_deep_copy(json_object_get(config->document, "timeline")));
    return out;
}

/* --- Schemas -------------------------------------------------------------- */

json_t *rf_config_launch_schema(void)
{
    return rf_config_fields_schema(launch_fields);
}

json_t *rf_config_control_schema(void)
{
    return rf_config_fields_schema(control_fields);
}

json_t *rf_config_nodes_schema(void)
{
    return rf_json_schema_either(
        json_pack("{s:s}", "const", "slurm"),
        rf_json_schema_list(rf_config_fields_schema(node_fields), 1,
                            RF_CONFIG_MAX_NODES));
}
