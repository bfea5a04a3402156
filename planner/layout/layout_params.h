/*
 * The layout of one rank in the making: parameters, where they lie in its
 * arena, and the pieces in them. Private to layout*.c.
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

/* The layout of one rank while it is made. */
struct rf_layout_build {
    const struct rf_model *model;
    const struct rf_side_spec *side;
    const struct rf_layout_ops *ops;
    struct rf_coord at;
    uint32_t index;
    bool tied_copy;               /* the last stage holds the embedding too */
    uint64_t vocab_multiple;      /* vocabulary rows are padded to this */
    const uint32_t *stage_starts; /* see rf_stage_starts() */
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

/* The layouts; layout.c lists them. */
extern const struct rf_layout_ops rf_layout_megatron, rf_layout_hf,
    rf_layout_vllm, rf_layout_sglang, rf_layout_fsdp, rf_layout_fsdp1,
    rf_layout_zero3, rf_layout_spec;

#endif
