/*
 * Strict JSON reading over Jansson. A node knows its file and its path, so
 * every error reads "cluster.json: $.nodes[1].slots: must be …".
 */
#ifndef RF_COMMON_JSON_H
#define RF_COMMON_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

/* A borrowed value and its location. May be copied; valid as long as the
 * document. */
struct rf_jnode {
    json_t *value;    /* NULL when absent */
    const char *file; /* borrowed; the document's name in errors */
    char path[232];   /* "$.nodes[1].slots" */
    /* NULL: unknown keys are errors. Otherwise unknown keys are ignored, except
     * the paths listed here (ends with NULL), which a newer program wrote and
     * requires the reader to know. */
    const char *const *needs;
    const char *label; /* borrowed; errors add it to the path. NULL: none */
};

/* Parses a whole document: duplicate keys, trailing text, depth beyond
 * RF_JSON_MAX_DEPTH and bad UTF-8 are errors. The caller owns *out. `name`
 * names the document in errors. */
enum rf_status rf_json_parse(const char *text, size_t size, const char *name,
                             json_t **out, struct rf_err *err) RF_MUST_CHECK;

/* The same for any value, not only an object or array. */
enum rf_status rf_json_parse_value(const char *text, const char *name,
                                   json_t **out,
                                   struct rf_err *err) RF_MUST_CHECK;

/* The checks of rf_json_parse() before Jansson sees the text: no NUL, no byte
 * order mark, bounded depth. */
enum rf_status rf_json_check_text(const char *text, size_t size,
                                  const char *name,
                                  struct rf_err *err) RF_MUST_CHECK;

/* Reads a regular file of at most `max_bytes` as it is. The caller frees
 * *text, which does not end in NUL. */
enum rf_status rf_json_load_text(const char *path, size_t max_bytes,
                                 char **text, size_t *size,
                                 struct rf_err *err) RF_MUST_CHECK;

/* The same, and parses it. */
enum rf_status rf_json_load(const char *path, size_t max_bytes, json_t **out,
                            struct rf_err *err) RF_MUST_CHECK;

/* The same for a file that Python's json module may have written: Infinity and
 * -Infinity are read as 1e308 and -1e308, NaN as the text "NaN". */
enum rf_status rf_json_load_python(const char *path, size_t max_bytes,
                                   json_t **out,
                                   struct rf_err *err) RF_MUST_CHECK;

/* A text and a document from a descriptor, up to its end. */
enum rf_status rf_json_read_text(int fd, const char *name, size_t max_bytes,
                                 char **text, size_t *size,
                                 struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_json_read(int fd, const char *name, size_t max_bytes,
                            json_t **out, struct rf_err *err) RF_MUST_CHECK;

/* The text that rf_json_store() writes; freed with free(). NULL when it cannot
 * be encoded. */
char *rf_json_text(const json_t *value);

/* A value of any type, for people: its JSON in one line; "?" when it cannot be
 * encoded. Caller frees. */
char *rf_json_line(const json_t *value);
/* Likewise, but a string as it is. */
char *rf_json_plain(const json_t *value);

/* Whether `list` contains the string. */
bool rf_json_has_text(const json_t *list, const char *text);

/* Writes `value` to a file of the program's own, like rf_store_own(). */
enum rf_status rf_json_store(const json_t *value, const char *path,
                             struct rf_err *err) RF_MUST_CHECK;

struct rf_jnode rf_jnode_root(json_t *value, const char *file);
struct rf_jnode rf_jnode_get(const struct rf_jnode *object, const char *key);
struct rf_jnode rf_jnode_at(const struct rf_jnode *array, size_t index);

/* Sets `err` to "<file>: <path>: <text>", or with a label to "<file>: <path>
 * (<label>): <text>", with RF_ERR_CONFIG; returns that. */
enum rf_status rf_jnode_fail(const struct rf_jnode *node, struct rf_err *err,
                             const char *fmt, ...) RF_PRINTF(3, 4);

/* Puts that place before the error of a call that failed: nothing for RF_OK.
 * Returns `status`. */
enum rf_status rf_jnode_within(const struct rf_jnode *node,
                               enum rf_status status,
                               struct rf_err *err) RF_MUST_CHECK;

/* The same as rf_jnode_fail() for a value that breaks a rule: the text, which
 * states the rule, then ", not " and the value. */
enum rf_status rf_jnode_wrong(const struct rf_jnode *node, struct rf_err *err,
                              const char *fmt, ...) RF_PRINTF(3, 4);

/* Fails unless `node` is an object whose keys are all in `allowed` (ends with
 * NULL) or, with `needs`, may be ignored. The error suggests the nearest
 * allowed key. */
enum rf_status rf_jnode_check_keys(const struct rf_jnode *node,
                                   const char *const *allowed,
                                   struct rf_err *err) RF_MUST_CHECK;

/*
 * Typed members of an object. An absent member leaves *out unchanged: set the
 * default before the call, or call `require` first if there is none. JSON null
 * is a wrong type. Integers outside [min, max] are errors that name the range
 * and the value. Strings are borrowed from the document and never empty.
 */
enum rf_status rf_jnode_require(const struct rf_jnode *object, const char *key,
                                struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_jnode_string(const struct rf_jnode *object, const char *key,
                               const char **out,
                               struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_jnode_bool(const struct rf_jnode *object, const char *key,
                             bool *out, struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_jnode_u64(const struct rf_jnode *object, const char *key,
                            uint64_t min, uint64_t max, uint64_t *out,
                            struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_jnode_u32(const struct rf_jnode *object, const char *key,
                            uint32_t min, uint32_t max, uint32_t *out,
                            struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_jnode_number(const struct rf_jnode *object, const char *key,
                               double min, double max, double *out,
                               struct rf_err *err) RF_MUST_CHECK;

/* The index of a string in `names` (ends with NULL). For any other string the
 * error lists them and suggests the nearest. */
enum rf_status rf_jnode_word(const struct rf_jnode *node,
                             const char *const *names, unsigned *out,
                             struct rf_err *err) RF_MUST_CHECK;

/* The same for the member `key`; when absent, *out is unchanged. */
enum rf_status rf_jnode_choice(const struct rf_jnode *object, const char *key,
                               const char *const *names, unsigned *out,
                               struct rf_err *err) RF_MUST_CHECK;

/* The same with synonyms: `others` (ends with NULL) holds pairs of a word
 * outside `names` and its equivalent in `names`, such as "gpu", "cuda". An
 * error suggests the equivalent. */
enum rf_status rf_jnode_choice_or(const struct rf_jnode *object,
                                  const char *key, const char *const *names,
                                  const char *const *others, unsigned *out,
                                  struct rf_err *err) RF_MUST_CHECK;

/* Whether `names` (ends with NULL) contains the word. */
bool rf_word_is_one_of(const char *word, const char *const *names);
/* The shortest word of `names` (ends with NULL) that begins with `word`, if
 * that has three letters or more; else the nearest by edit distance if close
 * enough to be a typo, else NULL. */
const char *rf_nearest_word(const char *word, const char *const *names);

struct rf_hint {
    char text[96];
};

/* The suffix of errors about an unknown word: " (did you mean \"...\"?)" with
 * the nearest of `names`, or "" if none is near. */
struct rf_hint rf_did_you_mean(const char *word, const char *const *names);

#endif
