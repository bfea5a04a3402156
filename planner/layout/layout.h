/*
 * Layouts: which part of which tensor a rank of a mesh holds, and where.
 *
 * A layout is a list of *parameters*. A parameter is a concatenation of
 * sections (parts of one or more families) along the first dimension,
 * contiguous and row-major, once per layer and expert that the rank holds. The
 * arena is parameter-major: all instances of a parameter follow each other at a
 * constant distance, so that one piece covers all layers of a stage and all
 * experts of a rank. Ranks that hold the same share one layout.
 */
#ifndef RF_PLANNER_LAYOUT_H
#define RF_PLANNER_LAYOUT_H

#include "planner/layout/piece.h"
#include "planner/scenario/world.h"

/* All layouts of one side. */
struct rf_layouts {
    struct rf_rank_layout *layouts;
    uint32_t n_layouts;
    uint32_t *of_index; /* mesh index → layout */
    uint32_t n_indices;
};

/* Makes the layouts of a side; pieces are sorted by family, then box.
 * rf_layouts_free() frees what is in `out`. */
enum rf_status rf_layouts_build(const struct rf_model *model,
                                const struct rf_world *world,
                                const struct rf_spec *spec, enum rf_side side,
                                struct rf_layouts *out,
                                struct rf_err *err) RF_MUST_CHECK;
void rf_layouts_free(struct rf_layouts *layouts);

/* Layers of each of `side`'s pipeline stages, pp entries. */
enum rf_status rf_stage_layers(const struct rf_side_spec *side,
                               uint32_t n_layers, uint32_t *layers,
                               struct rf_err *err) RF_MUST_CHECK;

/* A run of consecutive layers (of a model, or indices into a family's). */
struct rf_layer_run {
    uint32_t first, count;
};

/* Layers of virtual stage `chunk` of stage `pp`: with vpp > 1 the stages take
 * turns, each giving an equal part of its layers a turn. */
struct rf_layer_run rf_stage_chunk(const struct rf_side_spec *side,
                                   const uint32_t *stage_layers, uint32_t pp,
                                   uint32_t chunk);

/* The members of `run` that the family has, as indices into family->layers. */
struct rf_layer_run rf_family_layers(const struct rf_family *family,
                                     struct rf_layer_run run);

/* Roles whose families become one parameter, in the order of its rows. */
struct rf_fusion {
    const char *name; /* of the parameter, instead of "q_proj" and so on */
    enum rf_role roles[3];
    uint32_t n_roles;
    bool by_group; /* Megatron's query, key, value rows per query group */
};

struct rf_layout_build;

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
    bool pads_to_ranks; /* a vocabulary whose padded rows do not split evenly
                           is padded further, so that they do */
    bool experts_in_tp; /* ETP · EP divides TP */
    bool deals_blocks;  /* shares may be uneven, see struct rf_family */
    /* The vocabulary is padded to a multiple of so many rows. */
    uint64_t (*vocab_multiple)(const struct rf_spec *spec, enum rf_side side);
    enum rf_status (*make)(struct rf_layout_build *build, struct rf_err *err);
};
const struct rf_layout_ops *rf_layout_ops_of(enum rf_layout_kind kind);

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

/* The rest of this header is for the layout_*.c files. */

/* A part of a family. */
struct rf_param_member {
    uint32_t family, part;
};

/* One parameter before it is cut for a rank. */
struct rf_param_scheme {
    char name[96];
    struct rf_param_member members[RF_FAMILY_MAX_PARTS];
    uint32_t n_members;
    bool by_group;
};

/* The layout of one rank while it is made. */
struct rf_layout_build {
    const struct rf_model *model;
    const struct rf_side_spec *side;
    const struct rf_layout_ops *ops;
    struct rf_coord at;
    uint32_t index;
    bool tied_copy;          /* the last stage holds the embedding too */
    uint64_t vocab_multiple; /* vocabulary rows are padded to this */
    const uint32_t *stage_layers;
    const struct rf_param_scheme *schemes;
    size_t n_schemes;
    struct rf_rank_layout out;
    size_t params_cap, pieces_cap;
};

/* A rank's part of every tensor of a family. */
struct rf_section {
    uint32_t family;
    uint32_t dim; /* along which sections of a parameter follow each other */
    uint64_t start[RF_TENSOR_MAX_DIMS], extent[RF_TENSOR_MAX_DIMS];
    uint64_t rows; /* in the parameter: extent[dim] and padding */
    uint64_t first_expert, n_experts;
};

/* What the rank holds of a part of a family, as its role's division says
 * (planner/model/roles.h): experts over EP, the rest over TP or ETP, or whole.
 * Extents may be 0. */
enum rf_status rf_layout_section(const struct rf_layout_build *build,
                                 struct rf_param_member member,
                                 struct rf_section *out,
                                 struct rf_err *err) RF_MUST_CHECK;

/* Whether the rank's stage has the family at all. */
bool rf_layout_holds(const struct rf_layout_build *build, uint32_t family);

/* Whether that is as the output head of tied embeddings: a copy of the
 * embedding on the last stage. */
bool rf_layout_is_copy(const struct rf_layout_build *build, uint32_t family);

/* Adds a parameter made of `sections`, which agree in all but the dimension
 * along which they follow each other, for all layers of the rank and the
 * experts of the first. Each is contiguous, also where that dimension is not
 * the outermost. Sections without elements make no piece; a parameter
 * without rows is not added. */
enum rf_status rf_layout_add(struct rf_layout_build *build, const char *name,
                             const struct rf_section *sections, size_t n,
                             struct rf_err *err) RF_MUST_CHECK;

/* One part of several. */
struct rf_share {
    uint32_t part, parts;
};

/* Which shard a DP rank holds where layouts shard over dp: ranks next to each
 * other form a group that holds the weights once, and dp_replicate groups hold
 * the same (PyTorch's mesh of ("dp_replicate", "dp_shard")). */
struct rf_share rf_layout_shard(const struct rf_side_spec *side, uint32_t dp);

/* Bytes an element of `family` has on this side. */
uint32_t rf_layout_item(const struct rf_layout_build *build, uint32_t family);

/* A parameter's number and where its first instance lies. */
struct rf_param_place {
    uint32_t param;
    uint64_t offset;
};

/* Reserves memory in the arena for the instances of a parameter, `bytes` each
 * (at most 2^62). */
enum rf_status rf_layout_reserve(struct rf_layout_build *build,
                                 const char *name, uint64_t bytes,
                                 uint64_t instances, struct rf_param_place *out,
                                 struct rf_err *err) RF_MUST_CHECK;
void rf_layout_push(struct rf_layout_build *build,
                    const struct rf_piece *piece);

/* The layers of a family (as indices) that the rank holds in virtual stage
 * `chunk`; outside layers, count says whether it holds the family. */
struct rf_layer_run rf_layout_run(const struct rf_layout_build *build,
                                  const struct rf_family *family,
                                  uint32_t chunk);

/* Joins families into parameters by a layout's fusions: families fuse when
 * their layers, experts, dtype and inner dimensions agree; one that consists of
 * a fusion's parts already is put in the fusion's order. `out` takes n_families
 * entries; the number of schemes is returned. */
size_t rf_layout_fuse(const struct rf_model *model,
                      const struct rf_fusion *fusions, size_t n_fusions,
                      bool experts_inside, struct rf_param_scheme *out);

extern const struct rf_layout_ops rf_layout_megatron, rf_layout_hf,
    rf_layout_vllm, rf_layout_sglang, rf_layout_fsdp, rf_layout_fsdp1,
    rf_layout_zero3, rf_layout_spec;

/* `vocab_multiple` of layouts that pad nothing. */
uint64_t rf_layout_no_padding(const struct rf_spec *spec, enum rf_side side);
/* Each scheme as one stacked parameter: `make` of hf, vllm, sglang and
 * megatron. */
enum rf_status rf_layout_make_params(struct rf_layout_build *build,
                                     struct rf_err *err) RF_MUST_CHECK;
/* Megatron's fused query, key and value rows. */
enum rf_status rf_layout_add_groups(struct rf_layout_build *build,
                                    const struct rf_param_scheme *scheme,
                                    struct rf_err *err) RF_MUST_CHECK;

#endif
