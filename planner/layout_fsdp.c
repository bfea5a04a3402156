/*
 * PyTorch's fully sharded layouts.
 *
 * fsdp (FSDP2): every tensor is cut along dimension 0 into chunks of
 * ceil(size / DP) rows; the last may be smaller, ranks beyond hold nothing of
 * it.
 *
 * fsdp1: all tensors of a unit are flattened, joined, padded to a multiple of
 * DP and cut into DP equal ranges. Units are each decoder layer, and everything
 * outside the layers. Order inside a unit: the model's families; families with
 * experts that follow each other go expert by expert, as modules do. A range
 * covers parts of tensors as boxes: a partial row, whole rows, a partial row.
 *
 * With TP > 1 the rules of `hf` cut a tensor first.
 */
#include "planner/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/box.h"

static enum rf_status make_fsdp(struct rf_layout_build *build,
                                struct rf_err *err)
{
    const struct rf_side_spec *side = build->side;
    bool own_experts = side->ep > 1 || side->etp != side->tp;
    for (size_t i = 0; i < build->n_schemes; i++) {
        const struct rf_param_scheme *scheme = &build->schemes[i];
        uint32_t f = scheme->family[0];
        bool expert = own_experts && build->model->families[f].has_experts;
        uint64_t part = expert ? build->at.edp : build->at.dp;
        uint64_t parts = expert ? build->edp : side->dp;
        struct rf_section section;
        enum rf_status status;
        if (!rf_layout_holds(build, f)) {
            continue;
        }
        status = rf_layout_section(build, f, &section, err);
        if (status != RF_OK) {
            return status;
        }
        uint64_t rows = section.extent[0];
        uint64_t chunk = rf_div_up(rows, RF_MAX(parts, 1));
        uint64_t first = RF_MIN(part * chunk, rows);
        section.start[0] += first;
        section.extent[0] = section.rows = RF_MIN(chunk, rows - first);
        status = rf_layout_add(build, scheme->name, &section, 1, err);
        if (status != RF_OK) {
            return status;
        }
    }
    return RF_OK;
}

/* A tensor family inside a flat unit. */
struct member {
    struct rf_section section;
    uint64_t elements;    /* of one tensor on this rank */
    uint64_t base;        /* first element of expert 0 in the unit */
    uint64_t expert_step; /* elements from one expert's tensor to the next */
    uint64_t first_expert, n_experts;
};

/* The flat shard of a run of equal units. */
struct shard {
    uint64_t low, high; /* elements of the unit that the rank holds */
    uint64_t stride, item;
    struct rf_param_place place;
    struct rf_layer_run layers; /* layer numbers; count 1 outside layers */
    bool in_layers;
};

/* Elements [from, to) of the tensors of experts [expert, expert + n). */
struct range {
    uint64_t expert, n;
    uint64_t from, to;
};

static void push_range(struct rf_layout_build *build, const struct shard *shard,
                       const struct member *member, struct range range)
{
    const struct rf_family *family =
        &build->model->families[member->section.family];
    struct rf_box tensor = rf_box_whole(family), boxes[RF_BOX_RANGE_MAX];
    struct rf_piece piece = {.family = member->section.family,
                             .param = shard->place.param};
    uint64_t base = member->base + range.expert * member->expert_step;
    for (uint32_t d = 0; d < family->ndim; d++) {
        tensor.start[RF_DIM_TENSOR + d] = member->section.start[d];
        tensor.extent[RF_DIM_TENSOR + d] = member->section.extent[d];
    }
    tensor.extent[RF_DIM_LAYER] = tensor.extent[RF_DIM_EXPERT] = 1;
    for (uint32_t d = RF_DIM_TENSOR; d < RF_BOX_DIMS; d++) {
        piece.stride[d] = rf_box_step(&tensor, d) * shard->item;
    }
    piece.stride[RF_DIM_LAYER] = shard->stride;
    piece.stride[RF_DIM_EXPERT] = member->expert_step * shard->item;
    size_t n_boxes = rf_box_range(&tensor, range.from, range.to, boxes);
    uint64_t at = base + range.from - shard->low;
    for (size_t i = 0; i < n_boxes; i++) {
        piece.box = boxes[i];
        piece.offset = shard->place.offset + at * shard->item;
        at += rf_box_elements(&boxes[i]);
        piece.box.start[RF_DIM_EXPERT] = member->first_expert + range.expert;
        piece.box.extent[RF_DIM_EXPERT] = range.n;
        if (shard->in_layers) {
            struct rf_layer_run run = rf_family_layers(family, shard->layers);
            piece.box.start[RF_DIM_LAYER] = run.first;
            piece.box.extent[RF_DIM_LAYER] = run.count;
        }
        rf_layout_push(build, &piece);
    }
}

/* Pieces of all tensors of a member that the flat range touches: experts inside
 * the range together, those that it cuts one by one. */
static void push_member(struct rf_layout_build *build,
                        const struct shard *shard, const struct member *member)
{
    uint64_t size = member->elements, whole = 0, first_whole = 0;
    uint64_t expert = 0;
    if (size == 0 || shard->high <= member->base) {
        return;
    }
    if (shard->low > member->base + size && member->n_experts > 1) {
        expert = (shard->low - member->base - size) / member->expert_step;
    }
    for (; expert < member->n_experts; expert++) {
        uint64_t start = member->base + expert * member->expert_step;
        uint64_t from = RF_MAX(start, shard->low);
        uint64_t to = RF_MIN(start + size, shard->high);
        if (start >= shard->high) {
            break;
        }
        if (from >= to) {
            continue;
        }
        if (to - from < size) {
            push_range(build, shard, member,
                       (struct range){expert, 1, from - start, to - start});
        } else if (whole++ == 0) {
            first_whole = expert;
        }
    }
    if (whole > 0) {
        push_range(build, shard, member,
                   (struct range){first_whole, whole, 0, size});
    }
}

/* Places members[first, end), a run of families with experts, expert by
 * expert. */
static uint64_t place_block(struct member *members, size_t first, size_t end,
                            uint64_t base)
{
    uint64_t step = 0;
    for (size_t i = first; i < end; i++) {
        members[i].base = base + step;
        step += members[i].elements;
    }
    for (size_t i = first; i < end; i++) {
        members[i].expert_step = step;
    }
    return base + step * members[first].n_experts;
}

/* Fills in where each member lies; returns the elements of the unit. */
static uint64_t place_members(const struct rf_layout_build *build,
                              struct member *members, size_t n)
{
    uint64_t base = 0;
    for (size_t first = 0, end; first < n; first = end) {
        const struct rf_family *families = build->model->families;
        const struct rf_family *a = &families[members[first].section.family];
        end = first + 1;
        while (a->has_experts && end < n &&
               families[members[end].section.family].has_experts &&
               families[members[end].section.family].n_experts ==
                   a->n_experts) {
            end++;
        }
        base = place_block(members, first, end, base);
    }
    return base;
}

/* The flat parameter of a run of equal units with these members. */
static enum rf_status add_unit(struct rf_layout_build *build,
                               struct member *members, size_t n,
                               struct shard shard, struct rf_err *err)
{
    const char *name = shard.in_layers ? "model.layers.{L}.flat" : "flat";
    uint64_t total, share, bytes;
    enum rf_status status;
    if (n == 0) {
        return RF_OK;
    }
    shard.item = rf_layout_item(build, members[0].section.family);
    for (size_t i = 0; i < n; i++) {
        if (rf_layout_item(build, members[i].section.family) != shard.item) {
            return rf_err_set(
                err, RF_ERR_CONFIG,
                "%s and %s have elements of different sizes; fsdp1 flattens "
                "units of one dtype, so name a dtype for this side",
                build->model->families[members[0].section.family].name,
                build->model->families[members[i].section.family].name);
        }
    }
    total = place_members(build, members, n);
    share = rf_div_up(total, RF_MAX(build->side->dp, 1));
    shard.low = RF_MIN(build->at.dp * share, total);
    shard.high = RF_MIN(shard.low + share, total);
    if (!rf_mul_u64(share, shard.item, &bytes) || bytes > INT64_MAX / 2) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: a shard of 2^62 bytes or more", name);
    }
    shard.stride = rf_align_up(bytes, RF_PARAM_ALIGN);
    status = rf_layout_reserve(build, name, bytes, shard.layers.count,
                               &shard.place, err);
    for (size_t i = 0; i < n && status == RF_OK; i++) {
        push_member(build, &shard, &members[i]);
    }
    return status;
}

/* The members of the unit of layer `layer`, or of everything outside layers. */
static enum rf_status collect(const struct rf_layout_build *build,
                              bool in_layers, uint32_t layer,
                              struct member *members, size_t *n,
                              struct rf_err *err)
{
    *n = 0;
    for (uint32_t f = 0; f < build->model->n_families; f++) {
        const struct rf_family *family = &build->model->families[f];
        struct member *member = &members[*n];
        enum rf_status status;
        if (in_layers != (family->layers != NULL) ||
            !rf_layout_holds(build, f) ||
            (in_layers &&
             rf_family_layers(family, (struct rf_layer_run){layer, 1}).count ==
                 0)) {
            continue;
        }
        *member = (struct member){.elements = 1};
        status = rf_layout_section(build, f, &member->section, err);
        if (status == RF_OK) {
            status = rf_layout_experts(build, f, &member->first_expert,
                                       &member->n_experts, err);
        }
        if (status != RF_OK) {
            return status;
        }
        for (uint32_t d = 0; d < family->ndim; d++) {
            member->elements *= member->section.extent[d];
        }
        (*n)++;
    }
    return RF_OK;
}

static bool same_members(const struct member *a, size_t n,
                         const struct member *b, size_t m)
{
    for (size_t i = 0; i < n && n == m; i++) {
        if (a[i].section.family != b[i].section.family) {
            return false;
        }
    }
    return n == m;
}

/* Units of one run of consecutive layers, equal neighbours together. */
static enum rf_status add_layers(struct rf_layout_build *build,
                                 struct rf_layer_run run,
                                 struct member *members, struct member *next,
                                 struct rf_err *err)
{
    uint32_t layer = run.first, end = run.first + run.count;
    enum rf_status status = RF_OK;
    while (layer < end && status == RF_OK) {
        struct shard shard = {.layers = {layer, 0}, .in_layers = true};
        size_t n, m;
        status = collect(build, true, layer, members, &n, err);
        do {
            layer++;
            shard.layers.count++;
            m = n + 1;
            if (layer < end && status == RF_OK) {
                status = collect(build, true, layer, next, &m, err);
            }
        } while (status == RF_OK && layer < end &&
                 same_members(members, n, next, m));
        if (status == RF_OK) {
            status = add_unit(build, members, n, shard, err);
        }
    }
    return status;
}

static enum rf_status make_fsdp1(struct rf_layout_build *build,
                                 struct rf_err *err)
{
    struct shard outside = {.layers = {0, 1}};
    struct member *members;
    size_t n;
    enum rf_status status;
    if (build->model->n_experts > 0 &&
        (build->side->ep > 1 || build->side->etp != build->side->tp)) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "fsdp1 shards whole units over dp: ep must be 1 "
                          "and etp equal to tp");
    }
    members =
        rf_xcalloc(2 * (size_t)build->model->n_families + 2, sizeof(*members));
    status = collect(build, false, 0, members, &n, err);
    if (status == RF_OK) {
        status = add_unit(build, members, n, outside, err);
    }
    for (uint32_t v = 0; v < RF_MAX(build->side->vpp, 1) && status == RF_OK;
         v++) {
        status = add_layers(
            build,
            rf_stage_chunk(build->side, build->stage_layers, build->at.pp, v),
            members, members + build->model->n_families + 1, err);
    }
    free(members);
    return status;
}

const struct rf_layout_ops rf_layout_fsdp = {
    .by_dp = true,
    .repeat_kv = true,
    .vocab_multiple = rf_layout_no_padding,
    .make = make_fsdp,
};

const struct rf_layout_ops rf_layout_fsdp1 = {
    .by_dp = true,
    .repeat_kv = true,
    .vocab_multiple = rf_layout_no_padding,
    .make = make_fsdp1,
};
