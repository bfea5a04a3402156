/*
 * Strict reading of JSON over Jansson. A node knows its file and its path, so
 * every error reads "cluster.json: $.nodes[1].slots: must be …".
 */
#ifndef RF_COMMON_JSON_H
#define RF_COMMON_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

/* A borrowed value with its place. Copy freely; valid while the document is. */
struct rf_jnode {
    json_t *value;    /* NULL when absent */
    const char *file; /* borrowed; what the document is called in errors */
    char path[232];   /* "$.nodes[1].slots" */
    /* NULL: unknown keys are errors. Else they are ignored, but for those whose
     * paths are here (ends with NULL): a newer program has written these, and
     * means them to be known. */
    const char *const *needs;
};

/* Parses a whole document: duplicate keys, trailing text, depth beyond
 * RF_JSON_MAX_DEPTH and bad UTF-8 are errors. The caller owns *out. `name` is
 * what errors call the document. */
enum rf_status rf_json_parse(const char *text, size_t size, const char *name,
                             json_t **out, struct rf_err *err) RF_MUST_CHECK;

/* The same for any value, which need not be an object or a list. */
enum rf_status rf_json_parse_value(const char *text, const char *name,
                                   json_t **out,
                                   struct rf_err *err) RF_MUST_CHECK;

/* What rf_json_parse() refuses before Jansson sees it: a NUL, a byte order mark
 * and too great a depth. */
enum rf_status rf_json_check_text(const char *text, size_t size,
                                  const char *name,
                                  struct rf_err *err) RF_MUST_CHECK;

/* Reads a regular file of at most `max_bytes` and parses it. */
enum rf_status rf_json_load(const char *path, size_t max_bytes, json_t **out,
                            struct rf_err *err) RF_MUST_CHECK;

/* The same of a file that Python's json module may have written: Infinity and
 * -Infinity are read as 1e308 and -1e308, NaN as the text "NaN". */
enum rf_status rf_json_load_python(const char *path, size_t max_bytes,
                                   json_t **out,
                                   struct rf_err *err) RF_MUST_CHECK;

/* The same from a descriptor, to its end. */
enum rf_status rf_json_read(int fd, const char *name, size_t max_bytes,
                            json_t **out, struct rf_err *err) RF_MUST_CHECK;

/* What rf_json_store() writes, to be freed; NULL when it cannot be encoded. */
char *rf_json_text(const json_t *value);

/* Writes `value` to `path` whole, as rf_store() does. */
enum rf_status rf_json_store(const json_t *value, const char *path,
                             struct rf_err *err) RF_MUST_CHECK;

struct rf_jnode rf_jnode_root(json_t *value, const char *file);
struct rf_jnode rf_jnode_get(const struct rf_jnode *object, const char *key);
struct rf_jnode rf_jnode_at(const struct rf_jnode *array, size_t index);

/* Sets `err` to "<file>: <path>: <text>" with RF_ERR_CONFIG, returns that. */
enum rf_status rf_jnode_fail(const struct rf_jnode *node, struct rf_err *err,
                             const char *fmt, ...) RF_PRINTF(3, 4);

/* The same of a value that is not what it must be: the text, which says that,
 * then ", not " and the value. */
enum rf_status rf_jnode_wrong(const struct rf_jnode *node, struct rf_err *err,
                              const char *fmt, ...) RF_PRINTF(3, 4);

/* Fails unless `node` is an object whose keys are all in `allowed` (ends with
 * NULL) or, with `needs`, may be ignored; an unknown key names the nearest
 * allowed one. */
enum rf_status rf_jnode_check_keys(const struct rf_jnode *node,
                                   const char *const *allowed,
                                   struct rf_err *err) RF_MUST_CHECK;

/*
 * Typed members of an object. An absent member (JSON null counts as a wrong
 * type) leaves *out as it was: set the default before the call. `require`
 * first where there is none. Integers outside [min, max] are errors that name
 * the range and the value. Strings are borrowed from the document and never
 * empty.
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

/* The index of a string in `names` (ends with NULL). One outside `names` lists
 * them and says which is near. */
enum rf_status rf_jnode_word(const struct rf_jnode *node,
                             const char *const *names, unsigned *out,
                             struct rf_err *err) RF_MUST_CHECK;

/* The same of the member `key`; absent leaves *out. */
enum rf_status rf_jnode_choice(const struct rf_jnode *object, const char *key,
                               const char *const *names, unsigned *out,
                               struct rf_err *err) RF_MUST_CHECK;

/* The same; `others` are pairs of a word that is none of `names` and the one of
 * them that it stands for, such as "gpu", "cuda", and end with NULL. An error
 * says which may have been meant. */
enum rf_status rf_jnode_choice_or(const struct rf_jnode *object,
                                  const char *key, const char *const *names,
                                  const char *const *others, unsigned *out,
                                  struct rf_err *err) RF_MUST_CHECK;

/* Whether `names` (ends with NULL) has the word. */
bool rf_word_is_one_of(const char *word, const char *const *names);
/* The word of `names` (ends with NULL) nearest to `word` by edit distance when
 * near enough to be a slip, else NULL. */
const char *rf_nearest_word(const char *word, const char *const *names);

struct rf_hint {
    char text[96];
};

/* What errors say behind an unknown word: " (did you mean \"...\"?)" with the
 * nearest of `names`, or "" where none is near. */
struct rf_hint rf_did_you_mean(const char *word, const char *const *names);

#endif
