/*
 * Keys of a scenario and of its sides: a row for each, from which reading,
 * writing, the list of keys, and what a key bears on follow. A new key is a
 * member of a struct, a row, and its entry in refit-cluster(5).
 */
#ifndef RF_PLANNER_SCENARIO_SPEC_FIELDS_H
#define RF_PLANNER_SCENARIO_SPEC_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json.h"

enum rf_spec_kind {
    RF_SPEC_OWN, /* by functions of the row */
    RF_SPEC_BOOL,
    RF_SPEC_U32,
    RF_SPEC_U64,
    RF_SPEC_WORD,   /* an enum */
    RF_SPEC_SWITCH, /* one of two words for a bool, false first */
    RF_SPEC_TEXT,   /* a copy, or NULL */
    RF_SPEC_OBJECT, /* with keys of its own */
};

/* What another value of the key makes another thing. */
enum rf_spec_bearing {
    RF_BEARS_ON_REFIT,
    RF_BEARS_ON_MEASURING, /* what ranks do beside the refit */
    RF_BEARS_ON_NOTHING,   /* that a rank does */
};

struct rf_spec_nodes {
    const char *const *names;
    uint32_t n;
};

struct rf_spec_field {
    const char *key; /* NULL: the end of a table */
    enum rf_spec_kind kind;
    enum rf_spec_bearing bearing;
    bool is_list; /* by nature: no axis of a matrix */
    bool required;
    bool optional; /* is written only where it is not the default; an object,
                      where a key of it is written */
    size_t offset; /* in the struct that the table is of */
    const struct rf_spec_field *keys; /* of an object */
    uint64_t least, most;             /* of numbers */
    uint64_t standard;                /* of a word: its index */
    const char *const *words;         /* end with NULL */
    const char *const *others;        /* as of rf_jnode_choice_or(); or NULL */
    const unsigned *values;           /* of each word; NULL: its index */
    /* Both of the object that has the key, read in the order of the table.
     * Without one the row is read or written by its kind, or not at all. What
     * `write` returns NULL for is left out. */
    enum rf_status (*read)(const struct rf_jnode *object, void *out,
                           const struct rf_spec_nodes *nodes,
                           struct rf_err *err);
    json_t *(*write)(const void *in, const struct rf_spec_nodes *nodes);
};

extern const struct rf_spec_field rf_spec_fields[], rf_side_fields[];

/* NULL: `fields` has no such key. */
const struct rf_spec_field *
rf_spec_field_find(const struct rf_spec_field *fields, const char *key);

/* Fills zeroed `out`, defaults included. Other keys than those of `fields` are
 * errors, unless `object` ignores them. */
enum rf_status rf_spec_fields_read(const struct rf_spec_field *fields,
                                   const struct rf_jnode *object, void *out,
                                   const struct rf_spec_nodes *nodes,
                                   struct rf_err *err) RF_MUST_CHECK;
/* A new reference. */
json_t *rf_spec_fields_write(const struct rf_spec_field *fields, const void *in,
                             const struct rf_spec_nodes *nodes);

#endif
