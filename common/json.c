/*
 * Strict JSON reading and atomic writing.
 *
 * Jansson checks syntax, UTF-8, duplicate keys and numbers beyond 64 bits, but
 * limits the depth only to 2048, so the depth is scanned first.
 */
#include "common/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/foreign_keys.h"
#include "common/json_syntax.h"
#include "common/mem.h"
#include "common/store.h"
#include "common/text.h"

#define SHOWN_BYTES 60    /* of a string in an error */
#define LEAST_BEGINNING 3 /* letters of a word that is written in part */

static bool too_deep(const char *text, size_t size)
{
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (in_string) {
            if (c == '\\') {
                i++;
            } else if (c == '"') {
                in_string = false;
            }
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > RF_JSON_MAX_DEPTH) {
                return true;
            }
        } else if (c == ']' || c == '}') {
            depth--;
        }
    }
    return false;
}

enum rf_status rf_json_check_text(const char *text, size_t size,
                                  const char *name, struct rf_err *err)
{
    const char *nul = memchr(text, '\0', size); /* Jansson skips some */
    if (nul != NULL) {
        return rf_err_set(err, RF_ERR_CONFIG, "%s: NUL byte at offset %td",
                          name, nul - text);
    }
    if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: begins with a byte order mark; save it as "
                          "UTF-8 without one",
                          name);
    }
    if (too_deep(text, size)) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: nested deeper than %d levels", name,
                          RF_JSON_MAX_DEPTH);
    }
    return RF_OK;
}

static enum rf_status parse(const char *text, size_t size, const char *name,
                            size_t flags, json_t **out, struct rf_err *err)
{
    json_error_t why;
    json_t *value;
    RF_TRY(rf_json_check_text(text, size, name, err));
    value = json_loadb(text, size, JSON_REJECT_DUPLICATES | flags, &why);
    if (value == NULL) {
        return rf_json_syntax_fail(text, name, &why, err);
    }
    *out = value;
    return RF_OK;
}

enum rf_status rf_json_parse(const char *text, size_t size, const char *name,
                             json_t **out, struct rf_err *err)
{
    return parse(text, size, name, 0, out, err);
}

enum rf_status rf_json_parse_value(const char *text, const char *name,
                                   json_t **out, struct rf_err *err)
{
    return parse(text, strlen(text), name, JSON_DECODE_ANY, out, err);
}

enum rf_status rf_json_load_text(const char *path, size_t max_bytes,
                                 char **text, size_t *size, struct rf_err *err)
{
    struct stat info = {.st_mode = 0};
    enum rf_status status = RF_ERR_CONFIG;
    size_t have = 0;
    char *buffer = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        rf_err_errno(err, status, errno, "%s: cannot open", path);
        return status;
    }
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        rf_err_set(err, status, "%s: %s", path,
                   S_ISDIR(info.st_mode) ? "is a folder, not a file"
                                         : "not a regular file");
        goto close_file;
    }
    if ((uint64_t)info.st_size > max_bytes) {
        rf_err_set(err, status, "%s: %lld bytes, the limit is %zu", path,
                   (long long)info.st_size, max_bytes);
        goto close_file;
    }
    buffer = rf_xmalloc((size_t)info.st_size);
    while (have < (size_t)info.st_size) {
        ssize_t got = read(fd, buffer + have, (size_t)info.st_size - have);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            rf_err_errno(err, status, got < 0 ? errno : EIO, "%s: read", path);
            goto close_file;
        }
        have += (size_t)got;
    }
    *text = buffer;
    *size = have;
    buffer = NULL;
    status = RF_OK;
close_file:
    free(buffer);
    close(fd);
    return status;
}

/* Converts Python's extensions of JSON to JSON; freed with free(). Errors after
 * Infinity still name the right column. */
static char *from_python(const char *text, size_t *size)
{
    static const struct {
        const char *from, *to;
    } words[] = {{"Infinity", "1e308   "}, {"NaN", "\"NaN\""}};
    char *out = rf_xmalloc(2 * *size);
    size_t used = 0;
    bool in_string = false;
    for (size_t i = 0; i < *size;) {
        const char *to = NULL;
        for (size_t w = 0; !in_string && to == NULL && w < RF_ARRAY_SIZE(words);
             w++) {
            const size_t length = strlen(words[w].from);
            if (*size - i >= length &&
                memcmp(text + i, words[w].from, length) == 0) {
                to = words[w].to;
                i += length;
            }
        }
        if (to != NULL) {
            used = (size_t)(stpcpy(out + used, to) - out);
            continue;
        }
        if (text[i] == '"') {
            in_string = !in_string;
        } else if (in_string && text[i] == '\\' && i + 1 < *size) {
            out[used++] = text[i++];
        }
        out[used++] = text[i++];
    }
    *size = used;
    return out;
}

static enum rf_status load(const char *path, size_t max_bytes, bool python,
                           json_t **out, struct rf_err *err)
{
    char *text = NULL;
    size_t size = 0;
    enum rf_status status;
    RF_TRY(rf_json_load_text(path, max_bytes, &text, &size, err));
    if (python) {
        char *converted = from_python(text, &size);
        free(text);
        text = converted;
    }
    status = rf_json_parse(text, size, path, out, err);
    free(text);
    return status;
}

enum rf_status rf_json_load(const char *path, size_t max_bytes, json_t **out,
                            struct rf_err *err)
{
    return load(path, max_bytes, false, out, err);
}

enum rf_status rf_json_load_python(const char *path, size_t max_bytes,
                                   json_t **out, struct rf_err *err)
{
    return load(path, max_bytes, true, out, err);
}

enum rf_status rf_json_read_text(int fd, const char *name, size_t max_bytes,
                                 char **out, size_t *size, struct rf_err *err)
{
    size_t have = 0, cap = 64 << 10;
    char *text = rf_xmalloc(cap);
    enum rf_status status = RF_OK;
    ssize_t got = 1;
    while (status == RF_OK && got > 0) {
        if (have == cap) {
            text = rf_xrealloc(text, cap *= 2, 1);
        }
        got = read(fd, text + have, cap - have);
        have += got > 0 ? (size_t)got : 0;
        if (got < 0 && errno == EINTR) {
            got = 1;
        } else if (got < 0) {
            status = rf_err_errno(err, RF_ERR_CONFIG, errno, "%s: read", name);
        } else if (have > max_bytes) {
            status = rf_err_set(err, RF_ERR_CONFIG,
                                "%s: larger than the limit of %zu bytes", name,
                                max_bytes);
        }
    }
    if (status != RF_OK) {
        free(text);
        return status;
    }
    *out = text;
    *size = have;
    return RF_OK;
}

enum rf_status rf_json_read(int fd, const char *name, size_t max_bytes,
                            json_t **out, struct rf_err *err)
{
    char *text = NULL;
    size_t size = 0;
    enum rf_status status;
    RF_TRY(rf_json_read_text(fd, name, max_bytes, &text, &size, err));
    status = rf_json_parse(text, size, name, out, err);
    free(text);
    return status;
}

char *rf_json_text(const json_t *value)
{
    char *text = json_dumps(value, JSON_INDENT(2) | JSON_PRESERVE_ORDER |
                                       JSON_REAL_PRECISION(9));
    char *line = text != NULL ? rf_xasprintf("%s\n", text) : NULL;
    free(text);
    return line;
}

char *rf_json_line(const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT |
                                       JSON_REAL_PRECISION(9));
    return text != NULL ? text : rf_xstrdup("?");
}

char *rf_json_plain(const json_t *value)
{
    return json_is_string(value) ? rf_xstrdup(json_string_value(value))
                                 : rf_json_line(value);
}

bool rf_json_has_text(const json_t *list, const char *text)
{
    const json_t *one;
    size_t i;
    json_array_foreach (list, i, one) {
        if (json_is_string(one) && strcmp(json_string_value(one), text) == 0) {
            return true;
        }
    }
    return false;
}

enum rf_status rf_json_store(const json_t *value, const char *path,
                             struct rf_err *err)
{
    char *text = rf_json_text(value);
    enum rf_status status =
        text != NULL
            ? rf_store_own(path, 0, text, strlen(text), err)
            : rf_err_set(err, RF_ERR_INTERNAL, "%s: cannot encode", path);
    free(text);
    return status;
}

struct rf_jnode rf_jnode_root(json_t *value, const char *file)
{
    struct rf_jnode node = {.value = value, .file = file, .path = "$"};
    return node;
}

/* Truncates long paths. Runs for every member of every message, so it avoids
 * snprintf(). */
static char *append(char *at, const char *text, size_t most)
{
    const size_t size = strnlen(text, most);
    memcpy(at, text, size);
    return at + size;
}

struct rf_jnode rf_jnode_get(const struct rf_jnode *object, const char *key)
{
    struct rf_jnode node;
    char *at = append(node.path, object->path, 110);
    *at++ = '.';
    *append(at, key, 120) = '\0';
    node.value = json_object_get(object->value, key);
    node.file = object->file;
    node.label = object->label;
    node.needs = object->needs;
    return node;
}

struct rf_jnode rf_jnode_at(const struct rf_jnode *array, size_t index)
{
    struct rf_jnode node;
    char digits[24];
    char *at = append(node.path, array->path, 200);
    size_t first = sizeof(digits), rest = index;
    do {
        digits[--first] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    *at++ = '[';
    at = append(at, digits + first, sizeof(digits) - first);
    *at++ = ']';
    *at = '\0';
    node.value = json_array_get(array->value, index);
    node.file = array->file;
    node.label = array->label;
    node.needs = array->needs;
    return node;
}

enum rf_status rf_jnode_fail(const struct rf_jnode *node, struct rf_err *err,
                             const char *fmt, ...)
{
    char text[768];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return rf_jnode_within(node, rf_err_set(err, RF_ERR_CONFIG, "%s", text),
                           err);
}

enum rf_status rf_jnode_within(const struct rf_jnode *node,
                               enum rf_status status, struct rf_err *err)
{
    const bool labelled = node->label != NULL;
    return rf_err_within(status, err, "%s: %s%s%.80s%s", node->file, node->path,
                         labelled ? " (" : "", labelled ? node->label : "",
                         labelled ? ")" : "");
}

/* A value as shown in errors: its JSON, truncated if long. */
static void describe(const json_t *value, char *out, size_t size)
{
    char *text = rf_json_line(value);
    snprintf(out, size, "%.*s%s", rf_text_head(text, SHOWN_BYTES), text,
             strlen(text) > SHOWN_BYTES ? "..." : "");
    free(text);
}

enum rf_status rf_jnode_wrong(const struct rf_jnode *node, struct rf_err *err,
                              const char *fmt, ...)
{
    char text[640], value[SHOWN_BYTES + 8];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (node->value == NULL) {
        return rf_jnode_fail(node, err, "%s", text);
    }
    describe(node->value, value, sizeof(value));
    return rf_jnode_fail(node, err, "%s, not %s", text, value);
}

/* ASCII only, independent of the locale. */
static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* Ignores case. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[64], n = strlen(b);
    if (n + 1 > RF_ARRAY_SIZE(row)) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= n; j++) {
        row[j] = j;
    }
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t change = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
            size_t step = RF_MIN(row[j], row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = RF_MIN(change, step);
        }
    }
    return row[n];
}

const char *rf_nearest_word(const char *word, const char *const *names)
{
    const size_t size = strlen(word);
    const char *best = NULL, *begins = NULL;
    size_t best_distance = size / 3 + 2;
    for (; *names != NULL; names++) {
        size_t distance = edit_distance(word, *names);
        if (distance < best_distance) {
            best_distance = distance;
            best = *names;
        }
        if (size >= LEAST_BEGINNING && strncasecmp(word, *names, size) == 0 &&
            (begins == NULL || strlen(*names) < strlen(begins))) {
            begins = *names;
        }
    }
    return begins != NULL ? begins : best;
}

static struct rf_hint hint_of(const char *meant)
{
    struct rf_hint hint = {""};
    if (meant != NULL) {
        snprintf(hint.text, sizeof(hint.text), " (did you mean \"%.64s\"?)",
                 meant);
    }
    return hint;
}

struct rf_hint rf_did_you_mean(const char *word, const char *const *names)
{
    return hint_of(rf_nearest_word(word, names));
}

bool rf_word_is_one_of(const char *word, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (strcmp(word, *names) == 0) {
            return true;
        }
    }
    return false;
}

static enum rf_status unknown_key(const struct rf_jnode *node, const char *key,
                                  const char *const *allowed,
                                  struct rf_err *err)
{
    const char *ours = rf_foreign_key(key);
    if (ours != NULL) {
        return rf_jnode_fail(node, err,
                             "unknown key \"%s\"; in cluster.json it is %s",
                             key, ours);
    }
    return rf_jnode_fail(node, err, "unknown key \"%.*s\"%s",
                         rf_text_head(key, 60), key,
                         rf_did_you_mean(key, allowed).text);
}

static enum rf_status older_than(const struct rf_jnode *node, const char *key,
                                 struct rf_err *err)
{
    const struct rf_jnode member = rf_jnode_get(node, key);
    return rf_word_is_one_of(member.path, node->needs)
               ? rf_jnode_fail(
                     &member, err,
                     "unknown key that the refit depends on: this worker is "
                     "older than refit-coord; install the same build on all "
                     "nodes, for instance with launch.deploy")
               : RF_OK;
}

enum rf_status rf_jnode_check_keys(const struct rf_jnode *node,
                                   const char *const *allowed,
                                   struct rf_err *err)
{
    const char *key;
    json_t *value;
    if (!json_is_object(node->value)) {
        return rf_jnode_wrong(node, err, "must be an object");
    }
    json_object_foreach (node->value, key, value) {
        if (rf_word_is_one_of(key, allowed)) {
            continue;
        }
        RF_TRY(node->needs != NULL ? older_than(node, key, err)
                                   : unknown_key(node, key, allowed, err));
    }
    return RF_OK;
}

enum rf_status rf_jnode_require(const struct rf_jnode *object, const char *key,
                                struct rf_err *err)
{
    if (json_object_get(object->value, key) == NULL) {
        return rf_jnode_fail(object, err, "\"%s\" is missing", key);
    }
    return RF_OK;
}

enum rf_status rf_jnode_string(const struct rf_jnode *object, const char *key,
                               const char **out, struct rf_err *err)
{
    struct rf_jnode node = rf_jnode_get(object, key);
    if (node.value == NULL) {
        return RF_OK;
    }
    if (!json_is_string(node.value) || json_string_length(node.value) == 0) {
        return rf_jnode_wrong(&node, err, "must be a non-empty string");
    }
    *out = json_string_value(node.value);
    return RF_OK;
}

enum rf_status rf_jnode_bool(const struct rf_jnode *object, const char *key,
                             bool *out, struct rf_err *err)
{
    struct rf_jnode node = rf_jnode_get(object, key);
    if (node.value == NULL) {
        return RF_OK;
    }
    if (!json_is_boolean(node.value)) {
        return rf_jnode_wrong(&node, err, "must be true or false");
    }
    *out = json_is_true(node.value);
    return RF_OK;
}

enum rf_status rf_jnode_u64(const struct rf_jnode *object, const char *key,
                            uint64_t min, uint64_t max, uint64_t *out,
                            struct rf_err *err)
{
    struct rf_jnode node = rf_jnode_get(object, key);
    json_int_t value;
    if (node.value == NULL) {
        return RF_OK;
    }
    value = json_integer_value(node.value);
    if (!json_is_integer(node.value) || value < 0 || (uint64_t)value < min ||
        (uint64_t)value > max) {
        return rf_jnode_wrong(&node, err,
                              "must be an integer from %llu to %llu",
                              (unsigned long long)min, (unsigned long long)max);
    }
    *out = (uint64_t)value;
    return RF_OK;
}

enum rf_status rf_jnode_u32(const struct rf_jnode *object, const char *key,
                            uint32_t min, uint32_t max, uint32_t *out,
                            struct rf_err *err)
{
    uint64_t wide = *out;
    RF_TRY(rf_jnode_u64(object, key, min, max, &wide, err));
    *out = (uint32_t)wide;
    return RF_OK;
}

enum rf_status rf_jnode_number(const struct rf_jnode *object, const char *key,
                               double min, double max, double *out,
                               struct rf_err *err)
{
    struct rf_jnode node = rf_jnode_get(object, key);
    double value;
    if (node.value == NULL) {
        return RF_OK;
    }
    value = json_number_value(node.value);
    if (!json_is_number(node.value) || !(value >= min && value <= max)) {
        return rf_jnode_wrong(&node, err, "must be a number from %g to %g", min,
                              max);
    }
    *out = value;
    return RF_OK;
}

/* The likely meaning of an unknown choice, or NULL. */
static const char *meant_by(const char *text, const char *const *names,
                            const char *const *others)
{
    for (; others[0] != NULL; others += 2) {
        if (strcasecmp(text, others[0]) == 0) {
            return others[1];
        }
    }
    return rf_nearest_word(text, names);
}

static enum rf_status read_word(const struct rf_jnode *node,
                                const char *const *names,
                                const char *const *others, unsigned *out,
                                struct rf_err *err)
{
    const char *text = json_string_value(node->value);
    char *list = NULL;
    enum rf_status status;
    for (unsigned i = 0; text != NULL && names[i] != NULL; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = i;
            return RF_OK;
        }
    }
    for (unsigned i = 0; names[i] != NULL; i++) {
        rf_text_add(&list, ", ", "\"%s\"", names[i]);
    }
    status = text == NULL
                 ? rf_jnode_wrong(node, err, "must be one of %s", list)
                 : rf_jnode_fail(
                       node, err, "must be one of %s, not \"%.60s\"%s", list,
                       text, hint_of(meant_by(text, names, others)).text);
    free(list);
    return status;
}

enum rf_status rf_jnode_word(const struct rf_jnode *node,
                             const char *const *names, unsigned *out,
                             struct rf_err *err)
{
    return read_word(node, names, (const char *const[]){NULL}, out, err);
}

enum rf_status rf_jnode_choice(const struct rf_jnode *object, const char *key,
                               const char *const *names, unsigned *out,
                               struct rf_err *err)
{
    struct rf_jnode node = rf_jnode_get(object, key);
    return node.value != NULL ? rf_jnode_word(&node, names, out, err) : RF_OK;
}

enum rf_status rf_jnode_choice_or(const struct rf_jnode *object,
                                  const char *key, const char *const *names,
                                  const char *const *others, unsigned *out,
                                  struct rf_err *err)
{
    struct rf_jnode node = rf_jnode_get(object, key);
    return node.value != NULL ? read_word(&node, names, others, out, err)
                              : RF_OK;
}
