/*
 * The layout of one rank under construction: parameters, their places in its
 * arena, and their pieces. Private to layout*.c.
 */
#ifndef RF_PLANNER_LAYOUT_LAYOUT_PARAMS_H
#define RF_PLANNER_LAYOUT_LAYOUT_PARAMS_H

#include "planner/layout/layout_rules.h"
#include "planner/layout/piece.h"

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

/* The layout of one rank under construction. */
struct rf_layout_build {
    const struct rf_model *model;
    const struct rf_side_spec *side;
    const struct rf_layout_ops *ops;
    struct rf_coord at;
    uint32_t index;
    bool tied_copy;               /* the last stage also holds the embedding */
    uint64_t vocab_multiple;      /* vocabulary rows are padded to this */
    const uint32_t *stage_starts; /* see rf_stage_starts() */
    const struct rf_param_scheme *schemes;
    size_t n_schemes;
    struct rf_rank_layout out;
    size_t params_cap, pieces_cap;
};

/* A rank's part of each tensor of a family. */
struct rf_section {
    uint32_t family;
    uint32_t dim; /* sections of a parameter follow each other along it */
    uint64_t start[RF_TENSOR_MAX_DIMS], extent[RF_TENSOR_MAX_DIMS];
    uint64_t rows; /* rows in the parameter: extent[dim] plus padding */
    uint64_t first_expert, n_experts;
};

/* Whether the rank's stage has the family. */
bool rf_layout_holds(const struct rf_layout_build *build, uint32_t family);

/* Whether the rank holds the family as the output head of tied embeddings: a
 * copy of the embedding on the last stage. */
bool rf_layout_is_copy(const struct rf_layout_build *build, uint32_t family);

/* Adds a parameter of `sections` for all layers of the rank and the experts of
 * the first section. The sections agree in all dimensions but the one along
 * which they follow each other. Each is contiguous, even if that dimension is
 * not the outermost. Empty sections make no piece; a parameter without rows is
 * not added. */
enum rf_status rf_layout_add(struct rf_layout_build *build, const char *name,
                             const struct rf_section *sections, size_t n,
                             struct rf_err *err) RF_MUST_CHECK;

/* Bytes per element of `family` on this side. */
uint32_t rf_layout_item(const struct rf_layout_build *build, uint32_t family);

/* A parameter's number and the offset of its first instance. */
struct rf_param_place {
    uint32_t param;
    uint64_t offset;
};

/* Reserves arena memory for the instances of a parameter, `bytes` each (at most
 * 2^62). */
enum rf_status rf_layout_reserve(struct rf_layout_build *build,
                                 const char *name, uint64_t bytes,
                                 uint64_t instances, struct rf_param_place *out,
                                 struct rf_err *err) RF_MUST_CHECK;
void rf_layout_push(struct rf_layout_build *build,
                    const struct rf_piece *piece);

/* Joins families into parameters by a layout's fusions. Families fuse if their
 * layers, experts, dtype and inner dimensions agree; the parts of an already
 * fused family are put in the fusion's order. `out` has room for n_families
 * entries; returns the number of schemes. */
size_t rf_layout_fuse(const struct rf_model *model,
                      const struct rf_fusion *fusions, size_t n_fusions,
                      bool experts_inside, struct rf_param_scheme *out);

/* The layouts; layout.c lists them. */
extern const struct rf_layout_ops rf_layout_megatron, rf_layout_hf,
    rf_layout_vllm, rf_layout_sglang, rf_layout_fsdp, rf_layout_fsdp1,
    rf_layout_zero3, rf_layout_spec;

#endif
