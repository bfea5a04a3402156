/*
 * cluster.json: how to start agents ("launch"), where they connect back to
 * ("control") and the nodes. Names are checked here, so that a bad one is a
 * configuration error and nothing is spawned.
 */
#include <arpa/inet.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/config/config_internal.h"
#include "coordinator/config/nodes/names.h"
#include "coordinator/config/nodes/slurm_job.h"
#include "coordinator/config/paths.h"

static const char *const launch_keys[] = {
    "method",     "worker",      "env",        "parallel",
    "timeout_s",  "known_hosts", "ssh_config", "use_ssh_config",
    "accept_new", "deploy",      "slurm",      "wrap",
    NULL};
static const char *const control_keys[] = {"address", "port", "port_range",
                                           NULL};
static const char *const node_keys[] = {
    "host",     "hostname", "slots",           "port", "user",
    "identity", "address",  "host_key_sha256", NULL};
static const char *const methods[] = {"ssh", "local", "manual", "slurm", NULL};

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
                                 "not a name of an environment variable");
        }
        if (!json_is_string(value)) {
            return rf_jnode_fail(&node, err, "must be a string");
        }
        bytes += strlen(key) + json_string_length(value);
        if (bytes > RF_CONFIG_MAX_ENV_BYTES) {
            return rf_jnode_fail(&node, err,
                                 "the variables up to this one are longer than "
                                 "%d bytes together",
                                 RF_CONFIG_MAX_ENV_BYTES);
        }
        if (strcmp(key, "NCCL_COMM_ID") == 0) {
            return rf_jnode_fail(&node, err,
                                 "may not be set: it replaces the secret "
                                 "NCCL unique ID with a public one");
        }
    }
    config->env = env.value;
    return RF_OK;
}

static enum rf_status read_path(const struct rf_jnode *object, const char *key,
                                struct rf_config *config, const char **out,
                                struct rf_err *err)
{
    const char *text = NULL;
    enum rf_status status = rf_jnode_string(object, key, &text, err);
    if (status == RF_OK && text != NULL) {
        *out = rf_config_keep(config, rf_paths_resolve(config->folder, text));
    }
    return status;
}

/* Words of a command; any, since each is quoted for the node's shell. */
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
            return rf_jnode_fail(&word, err,
                                 "\"{host}\" does not go with method "
                                 "\"slurm\", where one srun starts the "
                                 "workers of all nodes");
        }
    }
    return RF_OK;
}

static enum rf_status check_worker(const struct rf_jnode *launch,
                                   const char *worker, struct rf_err *err)
{
    struct rf_jnode node = rf_jnode_get(launch, "worker");
    if (rf_names_valid_worker(worker)) {
        return RF_OK;
    }
    return rf_jnode_fail(&node, err,
                         "\"%.80s\" is not a name or path of a program: "
                         "letters, digits and \"/._+-\" only",
                         worker);
}

static enum rf_status read_launch_object(const struct rf_jnode *root,
                                         const struct rf_jnode *launch,
                                         struct rf_config *config,
                                         struct rf_err *err)
{
    struct rf_launch_config *how = &config->launch;
    json_t *options = NULL; /* only checked: they matter outside a job */
    unsigned method = 0;
    enum rf_status status = rf_jnode_check_keys(launch, launch_keys, err);
#define READ(call)                                                             \
    if (status == RF_OK) {                                                     \
        status = (call);                                                       \
    }
    READ(rf_jnode_choice(launch, "method", methods, &method, err))
    READ(rf_jnode_string(launch, "worker", &how->worker, err))
    READ(read_env(launch, config, err))
    READ(rf_jnode_u32(launch, "parallel", 1, 1024, &how->parallel, err))
    READ(rf_jnode_u32(launch, "timeout_s", 1, 3600, &how->timeout_s, err))
    READ(read_path(launch, "known_hosts", config, &how->known_hosts, err))
    READ(read_path(launch, "ssh_config", config, &how->ssh_config, err))
    READ(rf_jnode_bool(launch, "use_ssh_config", &how->use_ssh_config, err))
    READ(rf_jnode_bool(launch, "accept_new", &how->accept_new, err))
    READ(rf_jnode_bool(launch, "deploy", &how->deploy, err))
    READ(read_wrap(launch, how, err))
    READ(check_worker(launch, how->worker, err))
    READ(rf_slurm_options(root, &options, err))
#undef READ
    how->method = methods[method];
    if (status == RF_OK && strcmp(how->method, "slurm") == 0) {
        status = check_slurm_wrap(launch, how, err);
    }
    return status;
}

static bool numeric_address(const char *text)
{
    unsigned char bytes[16];
    return inet_pton(AF_INET, text, bytes) == 1 ||
           inet_pton(AF_INET6, text, bytes) == 1;
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

static enum rf_status read_control(const struct rf_jnode *root,
                                   struct rf_config *config, struct rf_err *err)
{
    struct rf_jnode control = rf_jnode_get(root, "control");
    const char *address = "auto";
    enum rf_status status = RF_OK;
    if (control.value != NULL) {
        status = rf_jnode_check_keys(&control, control_keys, err);
        RF_THEN(status, rf_jnode_string(&control, "address", &address, err));
        if (status == RF_OK && strcmp(address, "auto") != 0 &&
            strcmp(address, "stdio") != 0 && !numeric_address(address)) {
            struct rf_jnode node = rf_jnode_get(&control, "address");
            status = rf_jnode_wrong(&node, err,
                                    "must be \"auto\", \"stdio\" or a numeric "
                                    "address of this machine");
        }
        RF_THEN(status, rf_jnode_u32(&control, "port", 0, 65535,
                                     &config->control.port, err));
        RF_THEN(status, read_port_range(&control, &config->control, err));
    }
    config->control.address = rf_xstrdup(address);
    return status;
}

enum rf_status rf_config_read_launch(const struct rf_jnode *root,
                                     struct rf_config *config,
                                     struct rf_err *err)
{
    struct rf_jnode launch = rf_jnode_get(root, "launch");
    enum rf_status status = RF_OK;
    config->launch = (struct rf_launch_config){.method = "ssh",
                                               .worker = "refit-worker",
                                               .use_ssh_config = true,
                                               .parallel = 32,
                                               .timeout_s = 30};
    if (launch.value != NULL) {
        status = read_launch_object(root, &launch, config, err);
    }
    return status != RF_OK ? status : read_control(root, config, err);
}

/* "SHA256:" (or not) and 32 bytes in base64, padded or not. */
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

static enum rf_status check_node(const struct rf_jnode *node,
                                 const struct rf_node_config *out,
                                 struct rf_err *err)
{
    struct rf_jnode at = rf_jnode_get(node, "host");
    if (!rf_names_valid_host(out->name)) {
        return rf_jnode_fail(&at, err,
                             "\"%.80s\" is not a host name: letters, digits "
                             "and \"._-:\" only, not a dash first",
                             out->name);
    }
    if (out->hostname != NULL && !rf_names_valid_host(out->hostname)) {
        at = rf_jnode_get(node, "hostname");
        return rf_jnode_fail(&at, err, "\"%.80s\" is not a host name",
                             out->hostname);
    }
    if (out->user != NULL && !rf_names_valid_user(out->user)) {
        at = rf_jnode_get(node, "user");
        return rf_jnode_fail(&at, err, "\"%.80s\" is not a user name",
                             out->user);
    }
    if (out->address != NULL && !numeric_address(out->address)) {
        at = rf_jnode_get(node, "address");
        return rf_jnode_fail(&at, err, "\"%.80s\" is not a numeric address",
                             out->address);
    }
    if (out->host_key_sha256 != NULL &&
        !valid_fingerprint(out->host_key_sha256)) {
        at = rf_jnode_get(node, "host_key_sha256");
        return rf_jnode_fail(&at, err,
                             "\"%.80s\" is not a fingerprint as \"ssh-keygen "
                             "-l\" prints it: \"SHA256:\" and 43 digits of "
                             "base64",
                             out->host_key_sha256);
    }
    return RF_OK;
}

static enum rf_status read_node(const struct rf_jnode *node,
                                struct rf_config *config,
                                struct rf_node_config *out, struct rf_err *err)
{
    enum rf_status status = rf_jnode_check_keys(node, node_keys, err);
    *out = (struct rf_node_config){0};
#define READ(call)                                                             \
    if (status == RF_OK) {                                                     \
        status = (call);                                                       \
    }
    READ(rf_jnode_require(node, "host", err))
    READ(rf_jnode_require(node, "slots", err))
    READ(rf_jnode_string(node, "host", &out->name, err))
    READ(rf_jnode_string(node, "hostname", &out->hostname, err))
    READ(rf_jnode_u32(node, "slots", 1, RF_CONFIG_MAX_SLOTS, &out->slots, err))
    READ(rf_jnode_u32(node, "port", 1, 65535, &out->port, err))
    READ(rf_jnode_string(node, "user", &out->user, err))
    READ(read_path(node, "identity", config, &out->identity, err))
    READ(rf_jnode_string(node, "address", &out->address, err))
    READ(rf_jnode_string(node, "host_key_sha256", &out->host_key_sha256, err))
    READ(check_node(node, out, err))
#undef READ
    return status;
}

static enum rf_status check_unique(const struct rf_jnode *list,
                                   const struct rf_config *config, uint32_t i,
                                   struct rf_err *err)
{
    for (uint32_t j = 0; j < i; j++) {
        struct rf_jnode node = rf_jnode_at(list, i);
        if (strcasecmp(config->nodes[i].name, config->nodes[j].name) == 0) {
            return rf_jnode_fail(&node, err,
                                 "host \"%s\" is listed already as "
                                 "$.nodes[%u]; give it all its slots once",
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
        enum rf_status status =
            read_node(&node, config, &config->nodes[i], err);
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
