/*
 * Keys of a scenario and of its sides: one row each, which defines how the key
 * is read, written and listed, and what it affects. A new key needs a struct
 * member, a row, and an entry in refit-cluster(5).
 */
#ifndef RF_PLANNER_SCENARIO_SPEC_FIELDS_H
#define RF_PLANNER_SCENARIO_SPEC_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json.h"

enum rf_spec_kind {
    RF_SPEC_OWN, /* by the row's own functions */
    RF_SPEC_BOOL,
    RF_SPEC_U32,
    RF_SPEC_U64,
    RF_SPEC_WORD,   /* an enum */
    RF_SPEC_SWITCH, /* one of two words for a bool, false first */
    RF_SPEC_SHARE,  /* a double from 0 to 1, by default 0, rounded to nine
                       digits, as files have them */
    RF_SPEC_TEXT,   /* a copy, or NULL */
    RF_SPEC_OBJECT, /* with its own keys */
};

/* What changes with the key's value. */
enum rf_spec_bearing {
    RF_BEARS_ON_REFIT,
    RF_BEARS_ON_MEASURING, /* the ranks' work beside the refit */
    RF_BEARS_ON_NOTHING,   /* nothing on any rank */
};

struct rf_spec_nodes {
    const char *const *names;
    uint32_t n;
};

struct rf_spec_field {
    const char *key; /* NULL: end of the table */
    enum rf_spec_kind kind;
    enum rf_spec_bearing bearing;
    bool is_list; /* always a list, never a matrix axis */
    bool required;
    bool optional; /* written only when not the default; an object, when one of
                      its keys is written */
    size_t offset; /* in the table's struct */
    const struct rf_spec_field *keys; /* of an object */
    uint64_t least, most;             /* of numbers */
    uint64_t standard;                /* for a word, its index */
    const char *const *words;         /* end with NULL */
    const char *const *others;        /* as for rf_jnode_choice_or(); or NULL */
    const unsigned *values;           /* one per word; NULL: the word's index */
    /* `object` is the JSON object with the key; `out` and `in` are the table's
     * struct. Rows are read in table order. Without `read` or `write` the kind
     * determines how the row is read or written, if at all. A NULL from `write`
     * omits the key. */
    enum rf_status (*read)(const struct rf_jnode *object, void *out,
                           const struct rf_spec_nodes *nodes,
                           struct rf_err *err);
    json_t *(*write)(const void *in, const struct rf_spec_nodes *nodes);
    json_t *(*schema)(void); /* where the kind does not say what is read */
};

extern const struct rf_spec_field rf_spec_fields[], rf_side_fields[];

/* NULL when `fields` has no such key. */
const struct rf_spec_field *
rf_spec_field_find(const struct rf_spec_field *fields, const char *key);

/* Fills zeroed `out`, including defaults. Keys outside `fields` are errors,
 * unless `object` ignores them. */
enum rf_status rf_spec_fields_read(const struct rf_spec_field *fields,
                                   const struct rf_jnode *object, void *out,
                                   const struct rf_spec_nodes *nodes,
                                   struct rf_err *err) RF_MUST_CHECK;
/* The JSON Schema of objects that rf_spec_fields_read() accepts, but for rules
 * between keys. A new reference. */
json_t *rf_spec_fields_schema(const struct rf_spec_field *fields);
/* A new reference. */
json_t *rf_spec_fields_write(const struct rf_spec_field *fields, const void *in,
                             const struct rf_spec_nodes *nodes);

#endif
