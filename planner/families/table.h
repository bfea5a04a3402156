/* A table as family_table.h reads it. Private to the model readers. */
#ifndef RF_PLANNER_FAMILIES_TABLE_H
#define RF_PLANNER_FAMILIES_TABLE_H

#include "common/json.h"
#include "planner/model/model.h"

/* One entry of "tensors". */
struct rf_rule {
    struct rf_jnode node;
    const char *table; /* name of the table it comes from; borrowed */
    char *name;        /* the pattern */
    enum rf_role roles[RF_FAMILY_MAX_PARTS];
    uint32_t n_parts;
    uint32_t ndim; /* of a tensor on disk; 0: any */
    bool interleaved, stacked, transposed, stage_given, dtype_given;
    bool keys_are_values; /* see struct rf_family */
    bool quantize, quantize_given;
    uint32_t parameters; /* values in an element, 0 to 2 */
    uint32_t whole_in;   /* see struct rf_family */
    enum rf_stage stage;
    enum rf_dtype dtype;
    bool own_layers; /* {L} counts layers outside the decoder: from `first` on,
                        `count` (absent: 0) times `each` (absent: 1) */
    struct rf_jnode first, count, each;
    enum rf_component component; /* the component it belongs to */
    bool own;                    /* not inherited from another table */
    bool optional;               /* a model may lack such a tensor */
    uint64_t matched;            /* tensors found by rf_rule_match() */
};

enum rf_vision { RF_VISION_LEAVE_OUT, RF_VISION_REPLICATE, RF_VISION_SPLIT };

/* The optional parts that a model's description asks for. */
struct rf_components {
    struct rf_jnode model; /* the description */
    bool mtp;
    enum rf_vision vision;
};

struct rf_family_table {
    char *name;        /* a model type, or "rules" */
    json_t *values;    /* expressions and numbers by name */
    json_t *layers;    /* conditions by name of the set */
    json_t *attention; /* "heads", "kv_heads", "head_dim"; NULL: none */
    struct rf_jnode components[RF_COMPONENT_VISION + 1]; /* "mtp", "vision" */
    struct rf_components chosen;                         /* those to be moved */
    struct rf_jnode prefixes; /* other prefixes of the same tensors */
    json_t *documents;        /* `values` and rules borrow from these */
    bool by_hand;             /* includes rules of a model's own "rules" */
    struct rf_rule *rules;
    size_t n_rules, cap;
};

#endif
