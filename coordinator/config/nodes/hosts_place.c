/* Hosts as the nodes of a cluster file that nothing has read yet: what is in
 * it may have any type, and its reader judges that. See hosts.h. */
#include <stdbool.h>
#include <string.h>

#include "common/compiler.h"
#include "coordinator/config/nodes/hosts.h"

static const char *host_of(const json_t *node)
{
    return json_string_value(json_object_get(node, "host"));
}

static void take_user(json_t *node, const struct rf_host *host)
{
    if (host->user != NULL) {
        json_object_set_new(node, "user", json_string(host->user));
    }
}

void rf_hosts_rename(json_t *node, const struct rf_host *host)
{
    static const char *const own[] = {"hostname", "address", "host_key_sha256"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(own); i++) {
        json_object_del(node, own[i]);
    }
    json_object_set_new(node, "host", json_string(host->name));
    take_user(node, host);
}

/* What the file says of a host at that place of the list. */
static json_t *make_node(const json_t *nodes, const struct rf_host *new,
                         size_t index)
{
    size_t n = json_array_size(nodes);
    const json_t *like;
    json_t *node;
    for (size_t i = 0; i < n; i++) {
        const char *host = host_of(json_array_get(nodes, i));
        if (host != NULL && strcasecmp(host, new->name) == 0) {
            node = json_deep_copy(json_array_get(nodes, i));
            take_user(node, new);
            return node;
        }
    }
    like = json_array_get(nodes, n > 0 ? RF_MIN(index, n - 1) : 0);
    node = json_is_object(like) ? json_deep_copy(like)
                                : json_pack("{s:i}", "slots", 1);
    rf_hosts_rename(node, new);
    return node;
}

static bool is_there(const json_t *nodes, const char *name)
{
    size_t i;
    json_t *node;
    json_array_foreach (nodes, i, node) {
        const char *host = host_of(node);
        if (host != NULL && strcmp(host, name) == 0) {
            return true;
        }
    }
    return false;
}

static void forget_figures(json_t *level, const json_t *nodes)
{
    json_t *figures = json_object_get(level, "nodes"), *value;
    const char *name;
    void *next;
    json_object_foreach_safe(figures, next, name, value)
    {
        if (!is_there(nodes, name)) {
            json_object_del(figures, name);
        }
    }
}

void rf_hosts_place(const struct rf_hosts *hosts, json_t *document)
{
    const json_t *old = json_object_get(document, "nodes");
    json_t *links = json_object_get(document, "links"), *level;
    json_t *nodes = json_array();
    const char *method;
    for (size_t i = 0; i < hosts->n; i++) {
        const struct rf_host *host = &hosts->list[i];
        json_t *node = make_node(old, host, i);
        if (host->slots > 0) {
            json_object_set_new(node, "slots", json_integer(host->slots));
        }
        json_array_append_new(nodes, node);
    }
    json_object_set_new(document, "nodes", nodes);
    forget_figures(links, nodes);
    json_object_foreach (json_object_get(links, "methods"), method, level) {
        forget_figures(level, nodes);
    }
}
