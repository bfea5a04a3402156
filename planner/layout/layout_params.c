/*
 * From families to parameters: the fusion of families into parameters, the
 * places of their instances in the arena, and their pieces.
 *
 * All arena sizes are checked to stay below 2^63 bytes.
 */
#include "planner/layout/layout_params.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/model/roles.h"

uint32_t rf_layout_item(const struct rf_layout_build *build, uint32_t family)
{
    return rf_dtype_bytes(build->side->dtype_given
                              ? build->side->dtype
                              : build->model->families[family].dtype);
}

/* Whether `b` can share a parameter with `a`, as more rows. */
static bool can_fuse(const struct rf_family *a, const struct rf_family *b)
{
    if (a->ndim != b->ndim || a->dtype != b->dtype ||
        a->n_layers != b->n_layers || a->n_experts != b->n_experts ||
        a->has_experts != b->has_experts || a->transposed != b->transposed ||
        a->stage != b->stage || a->own_layers != b->own_layers ||
        (a->layers == NULL) != (b->layers == NULL)) {
        return false;
    }
    for (uint32_t d = 0; d < a->ndim; d++) {
        if (d != rf_family_part_dim(a) && a->shape[d] != b->shape[d]) {
            return false;
        }
    }
    return a->layers == NULL ||
           memcmp(a->layers, b->layers, a->n_layers * sizeof(*a->layers)) == 0;
}

/* "model.layers.{L}.self_attn.q_proj.weight" with q_proj replaced, and without
 * "{E}." when one parameter holds all experts. */
static void fused_name(const char *family, const char *name, bool drop_expert,
                       char *out, size_t size)
{
    const char *end = strrchr(family, '.');
    const char *start = end;
    const char *expert = strstr(family, ".{E}");
    int prefix;
    while (start != NULL && start > family && start[-1] != '.') {
        start--;
    }
    if (end == NULL || name == NULL) {
        start = end = family + strlen(family);
        name = "";
    }
    if (drop_expert && expert != NULL && expert < start) {
        prefix = (int)(expert - family);
        expert += strlen(".{E}");
        snprintf(out, size, "%.*s%.*s%s%s", prefix, family,
                 (int)(start - expert), expert, name, end);
    } else {
        snprintf(out, size, "%.*s%s%s", (int)(start - family), family, name,
                 end);
    }
}

/* Whether a family fills a role: its own, or V if its keys are values. */
static bool serves(const struct rf_family *family, enum rf_role role)
{
    return family->role == role ||
           (role == RF_ROLE_V && family->keys_are_values);
}

/* Finds a family for each role of a fusion, `first` for its own; false if a
 * role has no unused family that fits. */
static bool find_partners(const struct rf_model *model,
                          const struct rf_fusion *fusion, const bool *used,
                          uint32_t first, struct rf_param_member *out)
{
    for (uint32_t r = 0; r < fusion->n_roles; r++) {
        bool found = false;
        for (uint32_t f = 0; f < model->n_families && !found; f++) {
            const struct rf_family *family = &model->families[f];
            found =
                !used[f] && serves(family, fusion->roles[r]) &&
                can_fuse(&model->families[first], family) &&
                (fusion->roles[r] != model->families[first].role || f == first);
            out[r] = (struct rf_param_member){f, 0};
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

/* Finds a fusion's parts in a family with exactly those parts. */
static bool find_parts(const struct rf_model *model,
                       const struct rf_fusion *fusion, uint32_t first,
                       struct rf_param_member *out)
{
    const struct rf_family *family = &model->families[first];
    uint32_t found = 0;
    if (family->n_parts != fusion->n_roles || family->interleaved) {
        return false;
    }
    for (uint32_t r = 0; r < fusion->n_roles; r++) {
        for (uint32_t p = 0; p < family->n_parts; p++) {
            if (family->parts[p].role == fusion->roles[r]) {
                out[r] = (struct rf_param_member){first, p};
                found++;
            }
        }
    }
    return found == fusion->n_roles;
}

/* Takes all parts of one family, in its order. */
static void take_whole(const struct rf_model *model, uint32_t first,
                       struct rf_param_scheme *out)
{
    const struct rf_family *family = &model->families[first];
    *out = (struct rf_param_scheme){.n_members = family->n_parts};
    if (family->interleaved) {
        out->n_members = 1;
    }
    for (uint32_t p = 0; p < out->n_members; p++) {
        out->members[p] = (struct rf_param_member){first, p};
    }
    snprintf(out->name, sizeof(out->name), "%s", family->name);
}

static bool fuse_one(const struct rf_model *model,
                     const struct rf_fusion *fusions, size_t n_fusions,
                     bool *used, uint32_t first, struct rf_param_scheme *out)
{
    for (size_t i = 0; i < n_fusions; i++) {
        const struct rf_fusion *fusion = &fusions[i];
        struct rf_param_member partners[RF_FAMILY_MAX_PARTS] = {{0}};
        bool member = false, fused = model->families[first].n_parts > 1;
        for (uint32_t r = 0; r < fusion->n_roles; r++) {
            member |= fusion->roles[r] == model->families[first].role;
        }
        if (fused ? find_parts(model, fusion, first, partners)
                  : member &&
                        find_partners(model, fusion, used, first, partners)) {
            memcpy(out->members, partners, sizeof(partners));
            out->n_members = fusion->n_roles;
            out->by_group = fusion->by_group;
            fused_name(model->families[partners[0].family].name, fusion->name,
                       false, out->name, sizeof(out->name));
            for (uint32_t r = 0; r < fusion->n_roles; r++) {
                used[partners[r].family] = true;
            }
            return true;
        }
    }
    return false;
}

size_t rf_layout_fuse(const struct rf_model *model,
                      const struct rf_fusion *fusions, size_t n_fusions,
                      bool experts_inside, struct rf_param_scheme *out)
{
    bool *used = rf_xcalloc(model->n_families, sizeof(*used));
    size_t n = 0;
    for (uint32_t f = 0; f < model->n_families; f++) {
        struct rf_param_scheme *scheme = &out[n];
        if (used[f]) {
            continue;
        }
        take_whole(model, f, scheme);
        if (!fuse_one(model, fusions, n_fusions, used, f, scheme)) {
            used[f] = true;
        }
        if (experts_inside) {
            char name[sizeof(scheme->name)];
            fused_name(scheme->name, NULL, true, name, sizeof(name));
            memcpy(scheme->name, name, sizeof(name));
        }
        n++;
    }
    free(used);
    return n;
}

bool rf_layout_is_copy(const struct rf_layout_build *build, uint32_t family)
{
    const struct rf_family *of = &build->model->families[family];
    return build->tied_copy && build->at.pp == build->side->pp - 1 &&
           of->stage == RF_STAGE_FIRST && of->role == RF_ROLE_EMBED;
}

bool rf_layout_holds(const struct rf_layout_build *build, uint32_t family)
{
    const struct rf_family *of = &build->model->families[family];
    uint32_t last = build->side->pp - 1;
    switch (of->stage) {
    case RF_STAGE_FIRST:
        return build->at.pp == 0 || rf_layout_is_copy(build, family);
    case RF_STAGE_LAST:
        return build->at.pp == last;
    case RF_STAGE_EVERY:
        break;
    }
    return true;
}

static enum rf_status too_big(const char *name, struct rf_err *err)
{
    return rf_err_set(err, RF_ERR_CONFIG,
                      "%s: memory of a rank exceeds 2^63 - 1 bytes", name);
}

enum rf_status rf_layout_reserve(struct rf_layout_build *build,
                                 const char *name, uint64_t bytes,
                                 uint64_t instances, struct rf_param_place *out,
                                 struct rf_err *err)
{
    struct rf_rank_layout *layout = &build->out;
    struct rf_param entry = {.bytes = bytes, .offset = layout->arena_bytes};
    uint64_t stride = rf_align_up(bytes, RF_PARAM_ALIGN), total, end;
    if (instances > UINT32_MAX || !rf_mul_u64(stride, instances, &total) ||
        !rf_add_u64(layout->arena_bytes, total, &end) ||
        end > INT64_MAX - RF_PARAM_ALIGN) {
        return too_big(name, err);
    }
    snprintf(entry.name, sizeof(entry.name), "%s", name);
    entry.n_instances = (uint32_t)instances;
    out->param = (uint32_t)layout->n_params;
    out->offset = layout->arena_bytes;
    RF_PUSH(layout->params, layout->n_params, build->params_cap, entry);
    layout->arena_bytes = rf_align_up(end, RF_PARAM_ALIGN);
    return RF_OK;
}

void rf_layout_push(struct rf_layout_build *build, const struct rf_piece *piece)
{
    RF_PUSH(build->out.pieces, build->out.n_pieces, build->pieces_cap, *piece);
}

/* The instances of one parameter in the arena. */
struct instances {
    struct rf_param_place place;
    uint64_t layer_stride, expert_stride;
    uint64_t rows;      /* of all sections */
    uint64_t row_bytes; /* of one row, over all other dimensions */
};

/* The layers of a family (as indices) in virtual stage `chunk` of the rank; for
 * a family outside the layers, count tells whether the rank holds it there. */
static struct rf_layer_run layers_of(const struct rf_layout_build *build,
                                     const struct rf_family *family,
                                     uint32_t chunk)
{
    if (family->layers == NULL) {
        return (struct rf_layer_run){.first = 0, .count = chunk == 0};
    }
    if (family->own_layers) {
        return (struct rf_layer_run){
            .first = 0, .count = chunk == 0 ? family->n_layers : 0};
    }
    return rf_family_layers(
        family,
        rf_stage_chunk(build->side, build->stage_starts, build->at.pp, chunk));
}

static enum rf_status lay_out(struct rf_layout_build *build, const char *name,
                              const struct rf_section *sections, size_t n,
                              struct instances *out, struct rf_err *err)
{
    const struct rf_family *family =
        &build->model->families[sections[0].family];
    const struct rf_section *first = &sections[0];
    uint64_t layers = 0, bytes, count = 1;
    for (uint32_t v = 0; v < RF_MAX(build->side->vpp, 1); v++) {
        layers += layers_of(build, family, v).count;
    }
    for (size_t i = 0; i < n; i++) {
        out->rows += sections[i].rows;
    }
    out->row_bytes = rf_layout_item(build, first->family);
    for (uint32_t d = 0; d < family->ndim; d++) {
        if (d != first->dim &&
            !rf_mul_u64(out->row_bytes, first->extent[d], &out->row_bytes)) {
            return too_big(name, err);
        }
    }
    if (!rf_mul_u64(out->rows, out->row_bytes, &bytes) ||
        bytes > INT64_MAX / 2) {
        return too_big(name, err);
    }
    out->expert_stride = rf_align_up(bytes, RF_PARAM_ALIGN);
    if (family->has_experts &&
        (build->ops->experts_inside ||
         (build->ops->keep_stacked && family->stacked))) {
        out->expert_stride = bytes;
        if (!rf_mul_u64(bytes, first->n_experts, &bytes)) {
            return too_big(name, err);
        }
    } else {
        count = first->n_experts;
    }
    out->layer_stride = rf_align_up(bytes, RF_PARAM_ALIGN);
    if (!rf_mul_u64(out->layer_stride, count, &out->layer_stride) ||
        bytes > INT64_MAX / 2) {
        return too_big(name, err);
    }
    if (bytes == 0 || count == 0 || layers == 0) {
        out->row_bytes = 0;
        return RF_OK;
    }
    return rf_layout_reserve(build, name, bytes, layers * count, &out->place,
                             err);
}

static void push_section(struct rf_layout_build *build,
                         const struct rf_section *section,
                         const struct instances *at, uint64_t row)
{
    const struct rf_family *family = &build->model->families[section->family];
    struct rf_piece piece = {.family = section->family,
                             .param = at->place.param};
    uint64_t stride = rf_layout_item(build, section->family), before = 0;
    for (uint32_t d = RF_TENSOR_MAX_DIMS; d-- > 0;) {
        bool real = d < family->ndim;
        piece.box.start[RF_DIM_TENSOR + d] = real ? section->start[d] : 0;
        piece.box.extent[RF_DIM_TENSOR + d] = real ? section->extent[d] : 1;
        piece.stride[RF_DIM_TENSOR + d] = stride;
        stride *= d == section->dim ? section->rows
                                    : piece.box.extent[RF_DIM_TENSOR + d];
    }
    piece.box.start[RF_DIM_EXPERT] = section->first_expert;
    piece.box.extent[RF_DIM_EXPERT] = section->n_experts;
    piece.stride[RF_DIM_EXPERT] = at->expert_stride;
    piece.stride[RF_DIM_LAYER] = at->layer_stride;
    for (uint32_t v = 0; v < RF_MAX(build->side->vpp, 1); v++) {
        struct rf_layer_run run = layers_of(build, family, v);
        piece.box.start[RF_DIM_LAYER] = run.first;
        piece.box.extent[RF_DIM_LAYER] = run.count;
        piece.offset =
            at->place.offset + before * at->layer_stride + row * at->row_bytes;
        before += run.count;
        if (run.count > 0) {
            rf_layout_push(build, &piece);
        }
    }
}

enum rf_status rf_layout_add(struct rf_layout_build *build, const char *name,
                             const struct rf_section *sections, size_t n,
                             struct rf_err *err)
{
    struct instances at = {.row_bytes = 0};
    uint64_t row = 0;
    enum rf_status status;
    if (n == 0) {
        return RF_OK;
    }
    status = lay_out(build, name, sections, n, &at, err);
    if (status != RF_OK || at.row_bytes == 0) {
        return status;
    }
    for (size_t i = 0; i < n; i++) {
        if (sections[i].extent[sections[i].dim] > 0) {
            push_section(build, &sections[i], &at, row);
        }
        row += sections[i].rows;
    }
    return RF_OK;
}
