/*
 * Host lists. See hosts.h.
 *
 * A word expands from left to right into its names: a literal is appended to
 * all of them, a bracket multiplies them. Names, numbers and their count are
 * bounded before any allocation for them.
 */
#include "coordinator/config/nodes/hosts.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/mem.h"
#include "common/text.h"
#include "coordinator/config/nodes/hosts_internal.h"
#include "coordinator/config/nodes/launch_settings.h"
#include "coordinator/config/nodes/names.h"

#define DIGITS "0123456789"
#define MAX_DIGITS 9
#define MAX_NAME 253

struct host_names {
    char **list;
    size_t n, cap;
};

/* "3-5" or "3" in a bracket. */
struct bracket_range {
    unsigned long first, last;
    int width;
};

static void free_names(struct host_names *names)
{
    for (size_t i = 0; i < names->n; i++) {
        free(names->list[i]);
    }
    free(names->list);
    *names = (struct host_names){0};
}

/* Reads digits at the start of `text`; false: none, or too many. */
static bool read_number(const char **text, unsigned long *out)
{
    size_t size = strspn(*text, DIGITS);
    if (size == 0 || size > MAX_DIGITS) {
        return false;
    }
    *out = strtoul(*text, NULL, 10);
    *text += size;
    return true;
}

enum rf_status rf_hosts_slots(const char *text, uint32_t *out,
                              struct rf_err *err)
{
    const char *end = text;
    unsigned long slots = 0;
    if (!read_number(&end, &slots) || *end != '\0' || slots < 1 ||
        slots > RF_CONFIG_MAX_SLOTS) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "\"%.40s\": slots must be a number from 1 to %d",
                          text, RF_CONFIG_MAX_SLOTS);
    }
    *out = (uint32_t)slots;
    return RF_OK;
}

/* Adds `text` to every name. */
static enum rf_status append(struct host_names *names, const char *text,
                             size_t size, struct rf_err *err)
{
    for (size_t i = 0; i < names->n; i++) {
        if (strlen(names->list[i]) + size > MAX_NAME) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "\"%.40s…\": longer than %d bytes",
                              names->list[i], MAX_NAME);
        }
        rf_text_add(&names->list[i], "", "%.*s", (int)size, text);
    }
    return RF_OK;
}

/* Reads one range of a bracket, up to the ',' or ']' after it. */
static enum rf_status read_range(const char **at, const char *word,
                                 struct bracket_range *out, struct rf_err *err)
{
    const char *start = *at, *end = start;
    bool valid = read_number(&end, &out->first);
    out->width = (int)(end - start);
    out->last = out->first;
    if (valid && *end == '-') {
        end++;
        valid = read_number(&end, &out->last);
    }
    if (!valid || (*end != ',' && *end != ']')) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "\"%.80s\": brackets hold numbers of at most %d "
                          "digits and ranges of them, such as [01-03,7]",
                          word, MAX_DIGITS);
    }
    if (out->last < out->first) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "\"%.80s\": descending range %lu-%lu", word,
                          out->first, out->last);
    }
    *at = end;
    return RF_OK;
}

/* Reads the numbers of the closed bracket that begins at `*at`, and passes it.
 * More than `most` are an error. */
static enum rf_status read_bracket(const char **at, const char *word,
                                   size_t most, struct host_names *numbers,
                                   struct rf_err *err)
{
    while (*(*at)++ != ']') {
        struct bracket_range range = {0};
        RF_TRY(read_range(at, word, &range, err));
        if (range.last - range.first >= most - numbers->n) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "\"%.80s\": more than %d hosts", word,
                              RF_CONFIG_MAX_NODES);
        }
        for (unsigned long v = range.first; v <= range.last; v++) {
            RF_PUSH(numbers->list, numbers->n, numbers->cap,
                    rf_xasprintf("%0*lu", range.width, v));
        }
    }
    return RF_OK;
}

/* Combines every name with each number. */
static void multiply(struct host_names *names, const struct host_names *numbers)
{
    struct host_names out = {0};
    for (size_t i = 0; i < names->n; i++) {
        for (size_t j = 0; j < numbers->n; j++) {
            RF_PUSH(out.list, out.n, out.cap,
                    rf_xasprintf("%s%s", names->list[i], numbers->list[j]));
        }
    }
    free_names(names);
    *names = out;
}

/* The address of "[::1]", the IPv6 form beside a port, here beside slots; NULL
 * for other words. Numbers and ranges have no colons. */
static char *bracketed_address(const char *word)
{
    const size_t size = strcspn(word, "]");
    const bool whole =
        word[0] == '[' && word[size] == ']' && word[size + 1] == '\0';
    return whole && memchr(word, ':', size) != NULL
               ? rf_xasprintf("%.*s", (int)size - 1, word + 1)
               : NULL;
}

/* Expands a word without slots into its names. */
static enum rf_status expand(const char *word, struct host_names *names,
                             struct rf_err *err)
{
    const char *at = word;
    char *address = bracketed_address(word);
    struct host_names numbers = {0};
    enum rf_status status = RF_OK;
    if (address != NULL) {
        RF_PUSH(names->list, names->n, names->cap, address);
        return RF_OK;
    }
    RF_PUSH(names->list, names->n, names->cap, rf_xstrdup(""));
    while (status == RF_OK && *at != '\0') {
        size_t size = strcspn(at, "[]");
        status = append(names, at, size, err);
        at += size;
        if (status != RF_OK || *at == '\0') {
            return status;
        }
        if (*at == ']' || strchr(at, ']') == NULL) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "\"%.80s\": a bracket is not %s", word,
                              *at == ']' ? "opened" : "closed");
        }
        assert(names->n > 0);
        status = read_bracket(&at, word, RF_CONFIG_MAX_NODES / names->n,
                              &numbers, err);
        if (status == RF_OK) {
            multiply(names, &numbers);
        }
        free_names(&numbers);
    }
    return status;
}

/* The start of ":slots", or NULL. Without brackets, a word with several colons
 * is an IPv6 address without slots. */
static char *find_slots(char *word)
{
    char *close = strrchr(word, ']');
    char *colon = strchr(close != NULL ? close : word, ':');
    bool address = close == NULL && colon != NULL && strchr(colon + 1, ':');
    return address ? NULL : colon;
}

/* The host of that name, ignoring case; NULL: none. Files that list a host
 * several times mostly do so on consecutive lines. */
static struct rf_host *find_host(const struct rf_hosts *hosts, const char *name)
{
    for (size_t i = hosts->n; i-- > 0;) {
        if (strcasecmp(hosts->list[i].name, name) == 0) {
            return &hosts->list[i];
        }
    }
    return NULL;
}

static enum rf_status add_again(struct rf_host *host,
                                const struct rf_host *again,
                                enum rf_hosts_twice twice, struct rf_err *err)
{
    uint32_t sum = RF_MAX(host->slots, 1) + RF_MAX(again->slots, 1);
    if (twice == RF_HOSTS_REFUSE) {
        return rf_err_set(err, RF_ERR_CONFIG, "host %s is listed twice",
                          host->name);
    }
    if (strcmp(host->user != NULL ? host->user : "",
               again->user != NULL ? again->user : "") != 0) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "host %s has a different user on an earlier line",
                          host->name);
    }
    if (sum > RF_CONFIG_MAX_SLOTS) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "host %s has more than %d slots on its lines",
                          host->name, RF_CONFIG_MAX_SLOTS);
    }
    host->slots = sum;
    return RF_OK;
}

static enum rf_status add(struct rf_hosts *hosts, const struct rf_host *host,
                          enum rf_hosts_twice twice, struct rf_err *err)
{
    const char *name = host->name;
    struct rf_host *known;
    if (!rf_names_valid_host(name)) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "\"%.80s\" is not a host name: letters, digits and "
                          "\"._-:\" only, no leading dash",
                          name);
    }
    known = find_host(hosts, name);
    if (known != NULL) {
        return add_again(known, host, twice, err);
    }
    if (hosts->n == RF_CONFIG_MAX_NODES) {
        return rf_err_set(err, RF_ERR_CONFIG, "more than %d hosts",
                          RF_CONFIG_MAX_NODES);
    }
    RF_PUSH(hosts->list, hosts->n, hosts->cap,
            ((struct rf_host){.name = rf_xstrdup(name),
                              .user = rf_xstrdup_or_null(host->user),
                              .slots = host->slots}));
    return RF_OK;
}

enum rf_status rf_hosts_add_word(const char *word, uint32_t slots,
                                 enum rf_hosts_twice twice,
                                 struct rf_hosts *out, struct rf_err *err)
{
    struct host_names names = {0};
    char *whole = rf_xstrdup(word), *at = strchr(whole, '@');
    char *name = at != NULL ? at + 1 : whole, *colon = find_slots(name);
    struct rf_host host = {.user = at != NULL ? whole : NULL};
    enum rf_status status = RF_OK;
    if (at != NULL) {
        *at = '\0';
        if (!rf_names_valid_user(whole)) {
            status = rf_err_set(err, RF_ERR_CONFIG,
                                "\"%.80s\": invalid user before \"@\": "
                                "letters, digits and \"._-\" only",
                                word);
        }
    }
    if (colon != NULL) {
        *colon = '\0';
        RF_THEN(status, slots > 0
                            ? rf_err_set(err, RF_ERR_CONFIG,
                                         "\"%.80s\": slots given twice", word)
                            : rf_hosts_slots(colon + 1, &slots, err));
    }
    RF_THEN(status, expand(name, &names, err));
    for (size_t i = 0; status == RF_OK && i < names.n; i++) {
        host.name = names.list[i];
        host.slots = slots;
        status = add(out, &host, twice, err);
    }
    free_names(&names);
    free(whole);
    return status;
}

/* Bytes up to the next comma outside brackets, or to the end. */
static size_t word_size(const char *text)
{
    size_t size = 0;
    bool inside = false;
    for (; text[size] != '\0' && (inside || text[size] != ','); size++) {
        inside = text[size] == '[' || (inside && text[size] != ']');
    }
    return size;
}

enum rf_status rf_hosts_parse(const char *text, struct rf_hosts *out,
                              struct rf_err *err)
{
    enum rf_status status;
    bool more;
    do {
        size_t size = word_size(text);
        char *word = rf_xasprintf("%.*s", (int)size, text);
        status = rf_hosts_add_word(word, 0, RF_HOSTS_REFUSE, out, err);
        free(word);
        more = text[size] == ',';
        text += size + (more ? 1 : 0);
    } while (status == RF_OK && more);
    return status;
}

void rf_hosts_free(struct rf_hosts *hosts)
{
    for (size_t i = 0; i < hosts->n; i++) {
        free(hosts->list[i].name);
        free(hosts->list[i].user);
    }
    free(hosts->list);
    *hosts = (struct rf_hosts){0};
}

/* --- Replacing "nodes" ---------------------------------------------------- */

/* Nothing has read the file yet: its values may have any type, which its reader
 * checks. */

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

/* The node for a host at that index of the list, made from the file's nodes. */
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

static void rename_side(const json_t *side, const json_t *old,
                        const json_t *now)
{
    json_t *list = json_object_get(side, "nodes");
    for (size_t i = 0; i < json_array_size(list); i++) {
        size_t n = 0;
        while (n < json_array_size(old) &&
               !json_equal(json_array_get(list, i), json_array_get(old, n))) {
            n++;
        }
        if (n < json_array_size(old)) {
            json_array_set(list, i, json_array_get(now, n));
        }
    }
}

void rf_hosts_rename_sides(json_t *scenario, const json_t *old,
                           const json_t *now)
{
    const json_t *infer = json_object_get(scenario, "infer");
    rename_side(json_object_get(scenario, "train"), old, now);
    rename_side(infer, old, now);
    for (size_t i = 0; i < json_array_size(infer); i++) {
        rename_side(json_array_get(infer, i), old, now);
    }
}

/* The names of nodes that are not among `others`. */
static json_t *names_beyond(const json_t *nodes, const json_t *others)
{
    json_t *out = json_array(), *node;
    size_t i;
    json_array_foreach (nodes, i, node) {
        const char *name = host_of(node);
        if (name != NULL && !is_there(others, name)) {
            json_array_append_new(out, json_string(name));
        }
    }
    return out;
}

/* In scenarios, names an added node in place of each dropped one, in order. */
static void rename_dropped(json_t *document, const json_t *old,
                           const json_t *nodes)
{
    json_t *dropped = names_beyond(old, nodes);
    json_t *added = names_beyond(nodes, old), *scenario;
    size_t i;
    json_array_foreach (json_object_get(document, "scenarios"), i, scenario) {
        rf_hosts_rename_sides(scenario, dropped, added);
    }
    rf_hosts_rename_sides(json_object_get(document, "defaults"), dropped,
                          added);
    json_decref(dropped);
    json_decref(added);
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
    rename_dropped(document, old, nodes);
    json_object_set_new(document, "nodes", nodes);
    forget_figures(links, nodes);
    json_object_foreach (json_object_get(links, "methods"), method, level) {
        forget_figures(level, nodes);
    }
}
