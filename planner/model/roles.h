/*
 * Roles of tensors and how a mesh divides them: the one table for all layouts
 * and rules (for users: docs/MODELS.md).
 */
#ifndef RF_PLANNER_MODEL_ROLES_H
#define RF_PLANNER_MODEL_ROLES_H

#include "planner/model/model.h"

/* The ranks that share a tensor. */
enum rf_over {
    RF_OVER_NOTHING, /* each rank has all of it */
    RF_OVER_TP,
    RF_OVER_ETP, /* of experts */
};

/* The unit that is not cut. */
enum rf_unit {
    RF_UNIT_ELEMENT,
    RF_UNIT_HEAD,    /* of attention, num_attention_heads by default */
    RF_UNIT_KV_HEAD, /* num_key_value_heads by default */
    RF_UNIT_OWN,     /* the rule's "heads" */
};

/* Whether ranks may share units when they outnumber them. */
enum rf_repeat {
    RF_REPEATS_NEVER,
    RF_REPEATS_ONE, /* only a single unit */
    RF_REPEATS_ANY,
};

struct rf_role_division {
    const char *name; /* "mlp down" */
    enum rf_over over;
    uint32_t dim; /* of a weight [out, in] */
    enum rf_unit unit;
    enum rf_repeat repeats;
    bool vocabulary;     /* rows are padded as the layout does */
    bool linear;         /* "quantize" converts it unless a rule objects */
    enum rf_stage stage; /* of the pipeline, outside layers */
};

const struct rf_role_division *rf_role_division(enum rf_role role);

/* Whether ranks may share the units when they outnumber them. */
bool rf_role_repeats(enum rf_role role, uint64_t units);

/* The role of that name in rules; false: none. */
bool rf_role_parse(const char *name, enum rf_role *out);

/* All names that rf_role_parse() knows, NULL-terminated. */
void rf_role_names(const char *out[RF_ROLE_COUNT]);

/* Number of units in the part; 0: single elements. */
uint64_t rf_part_units(const struct rf_model *model,
                       const struct rf_part *part);

/* The dimension along which the family's parts follow each other; with one
 * part, the dimension that is cut. */
uint32_t rf_family_part_dim(const struct rf_family *family);

/* Whether a rank of TP or ETP holds only a share of the part. */
bool rf_family_is_cut(const struct rf_family *family,
                      const struct rf_part *part);

#endif
