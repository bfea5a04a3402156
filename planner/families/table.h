/* A table as family_table.h reads it. Private to the model readers. */
#ifndef RF_PLANNER_FAMILIES_TABLE_H
#define RF_PLANNER_FAMILIES_TABLE_H

#include "common/json.h"
#include "planner/model/model.h"

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
    bool quantize, quantize_given;
    uint32_t parameters; /* that an element stands for */
    uint32_t whole_in;   /* see struct rf_family */
    enum rf_stage stage;
    enum rf_dtype dtype;
    struct rf_jnode range; /* [first, count] of layers beside the decoder's; no
                              value: the decoder's */
    enum rf_component component; /* that it is a part of */
    bool own;                    /* not taken over from another table */
    bool optional;               /* a model need not have such a tensor */
    uint64_t matched;            /* tensors found by rf_rule_match() */
};

enum rf_vision { RF_VISION_LEAVE_OUT, RF_VISION_REPLICATE, RF_VISION_SPLIT };

/* What a model's description says of parts that may be left out. */
struct rf_components {
    struct rf_jnode model; /* the description */
    bool mtp;
    enum rf_vision vision;
};

struct rf_family_table {
    char *name;        /* a model type, or "rules" */
    json_t *values;    /* expressions and numbers by name */
    json_t *layers;    /* conditions by name of the set */
    json_t *attention; /* "heads", "kv_heads", "head_dim"; NULL: no table's */
    struct rf_jnode components[RF_COMPONENT_VISION + 1]; /* "mtp", "vision" */
    struct rf_components chosen;                         /* of these */
    struct rf_jnode prefixes; /* other ones of the same tensors */
    json_t *documents;        /* what `values` and rules borrow from */
    bool by_hand;             /* some are a model's own "rules" */
    struct rf_rule *rules;
    size_t n_rules, cap;
};

#endif
