/*
 * Values of the names in a table's expressions, for one model. In this order:
 * an override beside the config, a field of the config (first of its
 * "text_config" or "llm_config"), the class default of a key that the config
 * lacks, the table's own value. Private to the model readers.
 */
#ifndef RF_PLANNER_FAMILIES_MODEL_VALUES_H
#define RF_PLANNER_FAMILIES_MODEL_VALUES_H

#include "common/json.h"
#include "planner/families/expr.h"

#define RF_VALUES_NO_LAYER (-1)

struct rf_family_table;

struct rf_value_memo {
    const json_t *json; /* the expression */
    struct rf_value value;
};

struct rf_values {
    struct rf_jnode overrides;           /* the model's description */
    struct rf_jnode config;              /* its value may be NULL */
    const json_t *inner;                 /* the config's text_config, or NULL */
    const struct rf_family_table *table; /* may be NULL */
    json_t *defaults; /* for keys that the config lacks, or NULL */
    int64_t layer;    /* the current value of `layer` */
    bool mtp;         /* that layer is for multi-token prediction */
    bool read_layer;  /* an evaluation depended on these */
    bool missing;     /* the last error was a name without a value */
    unsigned depth;
    json_t *used; /* names in expressions, by their first spelling */
    struct rf_value_memo *memos;
    size_t n_memos, cap;
};

/* `node` is the model's description, `table` may be NULL; both are borrowed. */
void rf_values_init(struct rf_values *values, const struct rf_jnode *node,
                    const struct rf_family_table *table);
void rf_values_free(struct rf_values *values);

/* Evaluates `json`: a text is an expression, anything else is its own value.
 * Errors point at `where`. */
enum rf_status rf_values_evaluate(struct rf_values *values,
                                  const struct rf_jnode *where,
                                  const json_t *json, struct rf_value *out,
                                  struct rf_err *err) RF_MUST_CHECK;

/* The same for a condition. */
enum rf_status rf_values_test(struct rf_values *values,
                              const struct rf_jnode *where, const json_t *json,
                              bool *out, struct rf_err *err) RF_MUST_CHECK;

/* Marks the names in an expression as used; checks its form. */
enum rf_status rf_values_mention(struct rf_values *values,
                                 const struct rf_jnode *where,
                                 const json_t *json,
                                 struct rf_err *err) RF_MUST_CHECK;
bool rf_values_is_used(const struct rf_values *values, const char *name);

#endif
