/*
 * Scenario keys that concern some methods only: "disk" the method disk, "ucx"
 * the method ucx in host memory, and "memory" the method ucx, which has two.
 * One rule for all: members of a matrix with other methods go without the key,
 * and a scenario may have it only if a member uses it or it is from "defaults".
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text.h"
#include "coordinator/config/config_internal.h"
#include "planner/scenario/spec.h"
#include "transport/info/method_info.h"

static const struct {
    const char *word, *text;
} memories[] = {[RF_HOST_MEMORY] = {"host", "host memory"},
                [RF_DEVICE_MEMORY] = {"cuda", "GPU memory"}};

static bool is_key(const char *path, const char *key)
{
    size_t size = strlen(key);
    return strncmp(path, key, size) == 0 &&
           (path[size] == '\0' || path[size] == '.');
}

const struct rf_method_info *rf_config_method(const json_t *scenario)
{
    const char *method = rf_spec_method(scenario);
    return method != NULL ? rf_method_info_find(method)
                          : &rf_method_infos[RF_METHOD_HOST];
}

static bool is_memory(const json_t *value)
{
    const char *word = json_string_value(value);
    return word != NULL && (strcmp(word, memories[RF_HOST_MEMORY].word) == 0 ||
                            strcmp(word, memories[RF_DEVICE_MEMORY].word) == 0);
}

/* Written as "ucx", not as the method that it becomes with a "memory". */
static bool is_ucx(const json_t *member)
{
    const char *method = json_string_value(json_object_get(member, "method"));
    return method != NULL &&
           strcmp(method, rf_method_infos[RF_METHOD_UCX].name) == 0;
}

bool rf_config_key_concerns(const json_t *member, const char *path)
{
    const struct rf_method_info *info = rf_config_method(member);
    if (info == NULL) {
        return true;
    }
    if (is_key(path, "memory")) {
        return is_ucx(member) || !is_memory(json_object_get(member, "memory"));
    }
    if (is_key(path, "ucx")) {
        return info == &rf_method_infos[RF_METHOD_UCX];
    }
    return !is_key(path, "disk") || info->needs_folder;
}

/* The members of one scenario object. */
struct members {
    const json_t **list;
    size_t n;
    char *methods; /* their methods, each once: "host, tcp" */
    size_t n_methods;
};

static void add_method(struct members *members, const char *name)
{
    for (size_t i = 0; i + 1 < members->n; i++) {
        if (strcmp(rf_config_method(members->list[i])->name, name) == 0) {
            return;
        }
    }
    rf_text_add(&members->methods, ", ", "%s", name);
    members->n_methods++;
}

/* False: a method is unknown. */
static bool find_members(const char *path, const struct rf_config *config,
                         struct members *members)
{
    for (size_t i = 0; i < config->n_scenarios; i++) {
        const json_t *member = config->scenarios[i].value;
        if (strcmp(config->scenarios[i].path, path) != 0) {
            continue;
        }
        if (rf_config_method(member) == NULL) {
            return false;
        }
        members->list[members->n++] = member;
        add_method(members, rf_config_method(member)->name);
    }
    return true;
}

static enum rf_status check_key(const struct rf_jnode *scenario,
                                const char *key, const char *method,
                                const struct members *members,
                                struct rf_err *err)
{
    const struct rf_jnode node = rf_jnode_get(scenario, key);
    for (size_t i = 0; i < members->n; i++) {
        if (rf_config_key_concerns(members->list[i], key)) {
            return RF_OK;
        }
    }
    return rf_jnode_fail(
        &node, err,
        "applies to method %s, not to %s: remove it, or set it in "
        "\"defaults\", where scenarios of other methods ignore it",
        method, members->methods);
}

/* The methods that keep weights in such memory, "ipc, nccl". To be freed. */
static char *methods_in(enum rf_memory_kind memory)
{
    char *list = NULL;
    for (size_t i = 0; i < RF_METHOD_COUNT; i++) {
        if (rf_method_infos[i].memory == memory) {
            rf_text_add(&list, ", ", "%s", rf_method_infos[i].name);
        }
    }
    return list;
}

/* `node` is one value of "memory". */
static enum rf_status check_memory(const struct rf_jnode *node,
                                   const struct members *members,
                                   struct rf_err *err)
{
    const char *wanted = json_string_value(node->value);
    enum rf_memory_kind kind = RF_HOST_MEMORY, other = RF_DEVICE_MEMORY;
    enum rf_status status;
    char *methods;
    for (size_t i = 0; i < members->n; i++) {
        kind = rf_config_method(members->list[i])->memory;
        if (is_ucx(members->list[i]) ||
            strcmp(memories[kind].word, wanted) == 0) {
            return RF_OK;
        }
    }
    other = kind == RF_HOST_MEMORY ? RF_DEVICE_MEMORY : RF_HOST_MEMORY;
    methods = methods_in(other);
    status = rf_jnode_fail(node, err,
                           "method%s %s %s weights in %s: remove the key, or "
                           "use a method for %s: %s",
                           members->n_methods == 1 ? "" : "s", members->methods,
                           members->n_methods == 1 ? "keeps" : "keep",
                           memories[kind].text, memories[other].text, methods);
    free(methods);
    return status;
}

static enum rf_status check_memories(const struct rf_jnode *scenario,
                                     const struct members *members,
                                     struct rf_err *err)
{
    const struct rf_jnode node = rf_jnode_get(scenario, "memory");
    enum rf_status status = RF_OK;
    if (!json_is_array(node.value)) {
        return check_memory(&node, members, err);
    }
    for (size_t i = 0; status == RF_OK && i < json_array_size(node.value);
         i++) {
        const struct rf_jnode item = rf_jnode_at(&node, i);
        status = check_memory(&item, members, err);
    }
    return status;
}

enum rf_status rf_config_check_method_keys(const struct rf_jnode *scenario,
                                           const json_t *written,
                                           const struct rf_config *config,
                                           struct rf_err *err)
{
    struct members members = {
        .list = rf_xcalloc(config->n_scenarios, sizeof(*members.list))};
    enum rf_status status = RF_OK;
    if (find_members(scenario->path, config, &members)) {
        if (json_object_get(written, "disk") != NULL) {
            status = check_key(scenario, "disk", "disk", &members, err);
        }
        if (status == RF_OK && json_object_get(written, "ucx") != NULL) {
            status =
                check_key(scenario, "ucx", "ucx in host memory", &members, err);
        }
        if (status == RF_OK && json_object_get(written, "memory") != NULL) {
            status = check_memories(scenario, &members, err);
        }
    }
    free(members.methods);
    free(members.list);
    return status;
}
