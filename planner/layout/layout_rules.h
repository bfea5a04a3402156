/*
 * The properties of layouts, and the rules that follow for a tensor, a stage
 * and a rank.
 */
#ifndef RF_PLANNER_LAYOUT_LAYOUT_RULES_H
#define RF_PLANNER_LAYOUT_LAYOUT_RULES_H

#include "planner/scenario/world.h"

/* Roles whose families form one parameter, in the order of its rows. */
struct rf_fusion {
    const char *name; /* in place of "q_proj" and so on */
    enum rf_role roles[3];
    uint32_t n_roles;
    bool by_group; /* Megatron's query, key, value rows per query group */
};

struct rf_layout_build;

/* The place of surplus layers, when the stages do not divide the layers. */
enum rf_remainder {
    RF_REMAINDER_REFUSED,
    RF_REMAINDER_LAST,        /* one more on each of the last stages */
    RF_REMAINDER_BEFORE_LAST, /* one more on those before the last stage */
};

/* The properties of a layout. */
struct rf_layout_ops {
    const struct rf_fusion *fusions;
    size_t n_fusions;
    bool experts_inside; /* a parameter holds all experts of the rank */
    bool repeat_kv;      /* key/value heads repeat when TP exceeds them */
    bool tied_copy;      /* the last stage also holds a tied embedding */
    bool keep_stacked; /* experts in one tensor on disk stay in one parameter */
    bool by_dp;        /* each shard has its own layout: rows of any tensor,
                          none if there are too few */
    bool by_device;    /* each device of the spec mesh has its own layout */
    bool pads_to_ranks;    /* pads a vocabulary further if its padded rows do
                              not split evenly */
    bool experts_in_tp;    /* ETP · EP divides TP */
    bool experts_over_all; /* EP is 1 or spans an engine's TP · CP · DP */
    bool deals_blocks;     /* shares may be uneven, see struct rf_family */
    enum rf_remainder remainder;
    /* The row multiple to which the vocabulary is padded. */
    uint64_t (*vocab_multiple)(const struct rf_spec *spec, enum rf_side side);
    enum rf_status (*make)(struct rf_layout_build *build, struct rf_err *err);
};

/* Whether the layout fuses queries, keys and values group by group; its cuts
 * then need not fall between heads. */
bool rf_layout_fuses_groups(const struct rf_layout_ops *ops);

/* Whether a rank of the side holds only a share of the part: its role divides
 * it, and no rule of the model keeps it whole in this layout. */
bool rf_layout_divides(const struct rf_side_spec *side,
                       const struct rf_family *family,
                       const struct rf_part *part);

/* How many of `tp` neighbouring ranks share a part divided over TP: heads and
 * the input embedding stay within an attention group. */
uint32_t rf_layout_tp_ranks(const struct rf_side_spec *side,
                            const struct rf_family *family,
                            const struct rf_part *part, uint32_t tp);

/* Whether shares of the family along `dim` may be uneven. */
bool rf_layout_deals(const struct rf_layout_ops *ops,
                     const struct rf_family *family, uint32_t dim);

/* The grain of dimension `dim` of a family on a side: its multiples, and the
 * tensor's edge, are the places where the dimension may be cut. A block of the
 * side's format in matrices that it converts, or the family's own, or 1. */
uint64_t rf_layout_grain(const struct rf_side_spec *side,
                         const struct rf_family *family, uint32_t dim);

/* Whether [start, end) of dimension `dim` is cut at such places only. */
bool rf_layout_keeps_grain(const struct rf_side_spec *side,
                           const struct rf_family *family, uint32_t dim,
                           uint64_t start, uint64_t end);

/* Rows of a vocabulary including the padding for `ranks`, in a layout that pads
 * to `multiple`. */
uint64_t rf_layout_vocab_rows(const struct rf_layout_ops *ops,
                              uint64_t multiple, uint64_t rows, uint32_t ranks);

/* `vocab_multiple` of layouts without padding. */
uint64_t rf_layout_no_padding(const struct rf_spec *spec, enum rf_side side);

/* One of several shares. */
struct rf_share {
    uint32_t part, parts;
};

/* The shard of a DP rank in layouts that shard over dp. Neighbouring ranks form
 * a group that holds the weights once; the dp_replicate groups are identical
 * (PyTorch's mesh of ("dp_replicate", "dp_shard")). */
struct rf_share rf_layout_shard(const struct rf_side_spec *side, uint32_t dp);

/* The first layer of each virtual stage of `side`, in layer order: entry
 * turn · pp + stage; the last entry is the number of layers. `starts` has
 * rf_stage_slices() + 1 entries; NULL: check only. */
enum rf_status rf_stage_starts(const struct rf_layout_ops *ops,
                               const struct rf_side_spec *side,
                               uint32_t n_layers, uint32_t *starts,
                               struct rf_err *err) RF_MUST_CHECK;

/* Number of virtual stages of the pipeline. */
uint64_t rf_stage_slices(const struct rf_side_spec *side);

/* A run of consecutive layers (of a model, or indices into a family's). */
struct rf_layer_run {
    uint32_t first, count;
};

/* Layers of virtual stage `chunk` of stage `pp`; with vpp > 1 the stages take
 * turns. */
struct rf_layer_run rf_stage_chunk(const struct rf_side_spec *side,
                                   const uint32_t *starts, uint32_t pp,
                                   uint32_t chunk);

/* The layers of `run` that the family has, as indices into family->layers. */
struct rf_layer_run rf_family_layers(const struct rf_family *family,
                                     struct rf_layer_run run);

#endif
