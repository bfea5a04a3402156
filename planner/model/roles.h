/*
 * What tensors are and how a mesh divides them: one table, which all layouts
 * and rules go by (docs/MODELS.md has it for people).
 */
#ifndef RF_PLANNER_MODEL_ROLES_H
#define RF_PLANNER_MODEL_ROLES_H

#include "planner/model/model.h"

/* The group of ranks that shares a tensor out. */
enum rf_over {
    RF_OVER_NOTHING, /* each rank has all of it */
    RF_OVER_TP,
    RF_OVER_ETP, /* of experts */
};

/* What stays together when it is cut. */
enum rf_unit {
    RF_UNIT_ELEMENT,
    RF_UNIT_HEAD,    /* of attention, num_attention_heads by default */
    RF_UNIT_KV_HEAD, /* num_key_value_heads by default */
    RF_UNIT_OWN,     /* as many as the rule says under "heads" */
};

/* Whether ranks share units that are fewer than they. */
enum rf_repeat {
    RF_REPEATS_NEVER,
    RF_REPEATS_ONE, /* where there is only one */
    RF_REPEATS_ANY,
};

struct rf_role_division {
    const char *name; /* "mlp down" */
    enum rf_over over;
    uint32_t dim; /* of a weight [out, in] */
    enum rf_unit unit;
    enum rf_repeat repeats;
    bool vocabulary;     /* rows are padded as the layout does */
    bool linear;         /* infer.quantize converts it, if no rule objects */
    enum rf_stage stage; /* of the pipeline, outside layers */
};

const struct rf_role_division *rf_role_division(enum rf_role role);

/* Whether ranks that are more than `units` may share them. */
bool rf_role_repeats(enum rf_role role, uint64_t units);

/* The role that rules call so; false: none. */
bool rf_role_parse(const char *name, enum rf_role *out);

/* All names that rf_role_parse() knows, ends with NULL. */
void rf_role_names(const char *out[RF_ROLE_COUNT]);

/* How many units the part consists of; 0: single elements. */
uint64_t rf_part_units(const struct rf_model *model,
                       const struct rf_part *part);

/* The dimension along which the family's parts lie, or, of a single part, along
 * which it is cut. */
uint32_t rf_family_part_dim(const struct rf_family *family);

/* Whether a rank of TP or ETP has less than the whole part. */
bool rf_family_is_cut(const struct rf_family *family,
                      const struct rf_part *part);

#endif
