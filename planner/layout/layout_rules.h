/*
 * What layouts differ in, and what follows from that for a tensor, a stage and
 * a rank.
 */
#ifndef RF_PLANNER_LAYOUT_LAYOUT_RULES_H
#define RF_PLANNER_LAYOUT_LAYOUT_RULES_H

#include "planner/scenario/world.h"

/* Roles whose families become one parameter, in the order of its rows. */
struct rf_fusion {
    const char *name; /* of the parameter, instead of "q_proj" and so on */
    enum rf_role roles[3];
    uint32_t n_roles;
    bool by_group; /* Megatron's query, key, value rows per query group */
};

struct rf_layout_build;

/* What becomes of layers that the pipeline stages do not divide. */
enum rf_remainder {
    RF_REMAINDER_REFUSED,
    RF_REMAINDER_LAST,        /* the last stages have one more each */
    RF_REMAINDER_BEFORE_LAST, /* those before the last stage do */
};

/* What differs between the layouts. */
struct rf_layout_ops {
    const struct rf_fusion *fusions;
    size_t n_fusions;
    bool experts_inside; /* a parameter holds all experts of the rank */
    bool repeat_kv;      /* key/value heads repeat when TP exceeds them */
    bool tied_copy;      /* the last stage holds a tied embedding, too */
    bool keep_stacked; /* experts in one tensor on disk stay in one parameter */
    bool by_dp;        /* every shard has its own layout: rows of any tensor,
                          none where there are too few */
    bool by_device;    /* every device of the spec mesh has its own layout */
    bool pads_to_ranks;    /* a vocabulary whose padded rows do not split evenly
                           is padded further, so that they do */
    bool experts_in_tp;    /* ETP · EP divides TP */
    bool experts_over_all; /* EP is off or spans TP · CP · DP of an engine */
    bool deals_blocks;     /* shares may be uneven, see struct rf_family */
    enum rf_remainder remainder;
    /* The vocabulary is padded to a multiple of so many rows. */
    uint64_t (*vocab_multiple)(const struct rf_spec *spec, enum rf_side side);
    enum rf_status (*make)(struct rf_layout_build *build, struct rf_err *err);
};

/* Whether a layout fuses queries, keys and values group by group, so that what
 * it cuts need not be whole heads. */
bool rf_layout_fuses_groups(const struct rf_layout_ops *ops);

/* Whether a rank of the side has less than the whole part: its role says so,
 * and no rule of the model that the layout keeps it whole. */
bool rf_layout_divides(const struct rf_side_spec *side,
                       const struct rf_family *family,
                       const struct rf_part *part);

/* How many neighbours among `tp` ranks share out a part that is divided over
 * TP: heads and the input embedding stay in an attention group. */
uint32_t rf_layout_tp_ranks(const struct rf_side_spec *side,
                            const struct rf_family *family,
                            const struct rf_part *part, uint32_t tp);

/* Whether shares of the family may be uneven. */
bool rf_layout_deals(const struct rf_layout_ops *ops,
                     const struct rf_family *family);

/* Rows of a vocabulary with the padding for so many ranks, where the layout
 * pads to `multiple`. */
uint64_t rf_layout_vocab_rows(const struct rf_layout_ops *ops,
                              uint64_t multiple, uint64_t rows, uint32_t ranks);

/* `vocab_multiple` of layouts that pad nothing. */
uint64_t rf_layout_no_padding(const struct rf_spec *spec, enum rf_side side);

/* One part of several. */
struct rf_share {
    uint32_t part, parts;
};

/* Which shard a DP rank holds where layouts shard over dp: ranks next to each
 * other form a group that holds the weights once, and dp_replicate groups hold
 * the same (PyTorch's mesh of ("dp_replicate", "dp_shard")). */
struct rf_share rf_layout_shard(const struct rf_side_spec *side, uint32_t dp);

/* Where the virtual stages of `side` begin, in the order of the layers: entry
 * turn · pp + stage, and at the end the number of layers. `starts` has
 * rf_stage_slices() + 1 entries; NULL: only checked. */
enum rf_status rf_stage_starts(const struct rf_layout_ops *ops,
                               const struct rf_side_spec *side,
                               uint32_t n_layers, uint32_t *starts,
                               struct rf_err *err) RF_MUST_CHECK;

/* How many virtual stages the pipeline has. */
uint64_t rf_stage_slices(const struct rf_side_spec *side);

/* A run of consecutive layers (of a model, or indices into a family's). */
struct rf_layer_run {
    uint32_t first, count;
};

/* Layers of virtual stage `chunk` of stage `pp`: with vpp > 1 the stages take
 * turns. */
struct rf_layer_run rf_stage_chunk(const struct rf_side_spec *side,
                                   const uint32_t *starts, uint32_t pp,
                                   uint32_t chunk);

/* The members of `run` that the family has, as indices into family->layers. */
struct rf_layer_run rf_family_layers(const struct rf_family *family,
                                     struct rf_layer_run run);

#endif
