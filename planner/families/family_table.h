/*
 * Tables that say which tensors the models of a type have and what they are:
 * those of planner/families/, and people's own ("rules" of a model). The format
 * is in docs/MODELS.md. Private to the model readers.
 */
#ifndef RF_PLANNER_FAMILY_TABLE_H
#define RF_PLANNER_FAMILY_TABLE_H

#include "planner/families/components.h"
#include "planner/families/model_build.h"
#include "planner/families/model_values.h"

/* One entry of "tensors". */
struct rf_rule {
    struct rf_jnode node;
    const char *table; /* the name of the table that it comes from; borrowed */
    char *name;        /* the pattern */
    enum rf_role roles[RF_FAMILY_MAX_PARTS];
    uint32_t n_parts;
    uint32_t ndim; /* of a tensor as it is on disk; 0: any */
    bool interleaved, stacked, transposed, stage_given, dtype_given;
    bool keys_are_values; /* see struct rf_family */
    uint32_t whole_in;    /* see struct rf_family */
    enum rf_stage stage;
    enum rf_dtype dtype;
    struct rf_jnode range; /* [first, count] of layers beside the decoder's; no
                              value: the decoder's */
    enum rf_component component; /* that it is a part of */
    bool own;                    /* not taken over from another table */
    bool optional;               /* a model need not have such a tensor */
    uint64_t matched;            /* tensors found by rf_rule_match() */
};

struct rf_family_table {
    char *name;        /* a model type, or "rules" */
    json_t *values;    /* expressions and numbers by name */
    json_t *layers;    /* conditions by name of the set */
    json_t *attention; /* "heads", "kv_heads", "head_dim"; NULL: no table's */
    struct rf_jnode components[RF_COMPONENT_VISION + 1]; /* "mtp", "vision" */
    struct rf_components chosen;                         /* of these */
    json_t *documents; /* what `values` and rules borrow from */
    struct rf_rule *rules;
    size_t n_rules, cap;
};

/*
 * The table of a model type; `rules`, the model's own "rules", goes before it:
 * an object is a table of its own (with "like" to start from another), a list
 * replaces and adds tensors of the model type's. `model_type` may be NULL. Of
 * the parts that may be left out it has those of `components`. *out is NULL
 * when there are neither rules nor a table of that type. The caller destroys
 * it; it borrows from `rules` and `components`.
 */
enum rf_status rf_family_table_open(const char *model_type,
                                    const struct rf_jnode *rules,
                                    const struct rf_components *components,
                                    struct rf_family_table **out,
                                    struct rf_err *err) RF_MUST_CHECK;
/* The built-in table that has that "name", or is of that model type. */
enum rf_status rf_family_table_named(const char *name,
                                     struct rf_family_table **out,
                                     struct rf_err *err) RF_MUST_CHECK;
void rf_family_table_destroy(struct rf_family_table *table); /* NULL is fine */

/* Fails with the known model types and the one that `model_type` may mean. */
enum rf_status rf_family_table_unknown(const struct rf_jnode *node,
                                       const char *model_type,
                                       struct rf_err *err);

/* Marks every name that any expression of the table mentions as used by
 * `values`, and checks that all are well formed. */
enum rf_status rf_family_table_mention(const struct rf_family_table *table,
                                       struct rf_values *values,
                                       struct rf_err *err) RF_MUST_CHECK;

/* Reads one rule; `table` is the name of the table that has it. The rule's name
 * is the caller's to free. */
enum rf_status rf_rule_read(const struct rf_jnode *node, const char *table,
                            struct rf_rule *out,
                            struct rf_err *err) RF_MUST_CHECK;

/* A number in a tensor's name. */
struct rf_name_number {
    int64_t number; /* -1: none */
    const char *at; /* where its digits are, NULL: written {L} or {E} */
    size_t length;
};

/*
 * The rule that a tensor's name follows; *out NULL: none. `*` stands for any
 * characters, {L} and {E} for a number or themselves; a name without `*` goes
 * before one with. Two that fit equally well are an error that names both. Of
 * rules of the same name, which have conditions, the first whose conditions
 * hold is taken.
 */
enum rf_status rf_rule_match(struct rf_family_table *table,
                             struct rf_values *values, const char *name,
                             uint32_t ndim, struct rf_rule **out,
                             struct rf_name_number *layer,
                             struct rf_name_number *expert,
                             struct rf_err *err) RF_MUST_CHECK;

/* Says at `node` that a tensor follows both rules. */
enum rf_status rf_rule_fail_two(const struct rf_jnode *node, const char *name,
                                const struct rf_rule *a,
                                const struct rf_rule *b, struct rf_err *err);

/* Whether `name` fits the pattern; fills in the numbers. */
bool rf_rule_fits(const char *pattern, const char *name,
                  struct rf_name_number *layer, struct rf_name_number *expert);

/* Gives a family, whose shape and layers are set, its role, parts and stage. */
enum rf_status rf_rule_divide(const struct rf_rule *rule,
                              struct rf_values *values,
                              struct rf_family *family,
                              struct rf_err *err) RF_MUST_CHECK;

/* Evaluates a member of the rule: a number or an expression. */
enum rf_status rf_rule_u64(const struct rf_jnode *node,
                           struct rf_values *values, uint64_t min, uint64_t max,
                           uint64_t *out, struct rf_err *err) RF_MUST_CHECK;

#endif
