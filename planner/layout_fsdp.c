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

/* Keeps rows [first, first + count) of what the sections are together. */
static void keep_rows(struct rf_section *sections, size_t n, uint64_t first,
                      uint64_t count)
{
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        struct rf_section *section = &sections[i];
        bool joined = section->dim == 0; /* one above the other */
        uint64_t size = section->extent[0], start = joined ? at : 0;
        uint64_t from = RF_MIN(RF_MAX(first, start), start + size);
        uint64_t to = RF_MIN(RF_MAX(first + count, from), start + size);
        section->start[0] += from - start;
        section->extent[0] = to - from;
        section->rows = joined ? to - from : section->rows;
        at += size;
    }
}

/* Of a stacked family dimension 0 is that of its experts. */
static void keep_experts(struct rf_section *sections, size_t n, uint64_t part,
                         uint64_t parts)
{
    uint64_t experts = sections[0].n_experts;
    uint64_t chunk = rf_div_up(experts, parts);
    uint64_t first = RF_MIN(part * chunk, experts);
    for (size_t i = 0; i < n; i++) {
        sections[i].first_expert += first;
        sections[i].n_experts = RF_MIN(chunk, experts - first);
    }
}

static enum rf_status add_chunk(struct rf_layout_build *build, uint32_t f,
                                const char *name, struct rf_err *err)
{
    const struct rf_side_spec *side = build->side;
    const struct rf_family *family = &build->model->families[f];
    bool own_experts = side->ep > 1 || side->etp != side->tp;
    bool expert = own_experts && family->has_experts;
    uint64_t part = expert ? build->at.edp : build->at.dp;
    uint64_t parts = RF_MAX(expert ? build->edp : side->dp, 1), rows = 0;
    struct rf_section sections[RF_FAMILY_MAX_PARTS];
    size_t n = 0;
    enum rf_status status = rf_layout_sections(build, f, sections, &n, err);
    if (status != RF_OK) {
        return status;
    }
    for (size_t i = 0; i < n; i++) {
        rows = sections[i].dim == 0 ? rows + sections[i].extent[0]
                                    : sections[i].extent[0];
    }
    if (family->stacked) {
        keep_experts(sections, n, part, parts);
    } else {
        uint64_t chunk = rf_div_up(rows, parts);
        uint64_t first = RF_MIN(part * chunk, rows);
        keep_rows(sections, n, first, RF_MIN(chunk, rows - first));
    }
    return rf_layout_add(build, name, sections, n, err);
}

static enum rf_status make_fsdp(struct rf_layout_build *build,
                                struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (size_t i = 0; i < build->n_schemes && status == RF_OK; i++) {
        const struct rf_param_scheme *scheme = &build->schemes[i];
        uint32_t f = scheme->members[0].family;
        if (rf_layout_holds(build, f)) {
            status = add_chunk(build, f, scheme->name, err);
        }
    }
    return status;
}

/* A tensor family inside a flat unit. */
struct member {
    struct rf_section section;
    uint64_t elements;    /* of one tensor on this rank */
    uint64_t base;        /* first element of expert 0 in the unit */
    uint64_t expert_step; /* elements from one expert's tensor to the next */
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
        piece.box.start[RF_DIM_EXPERT] =
            member->section.first_expert + range.expert;
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
    if (shard->low > member->base + size && member->section.n_experts > 1) {
        expert = (shard->low - member->base - size) / member->expert_step;
    }
    for (; expert < member->section.n_experts; expert++) {
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
    return base + step * members[first].section.n_experts;
}

/* Whether `b` lies with `a` expert by expert: parts of the same tensors, or of
 * modules that are lists of experts. */
static bool follows(const struct rf_family *a, const struct rf_family *b)
{
    return a == b || (b->has_experts && !a->stacked && !b->stacked &&
                      a->n_experts == b->n_experts);
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
               follows(a, &families[members[end].section.family])) {
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

/* Which families a unit has. */
struct unit {
    bool in_layers;
    const struct rf_family *like; /* of layers that are not the decoder's: a
                                     family of the same list of modules */
    uint32_t layer;
};

/* Whether two families are of the same list of layers, which is what stands
 * before the number. */
static bool same_list(const struct rf_family *a, const struct rf_family *b)
{
    const char *mark = strstr(a->name, "{L}");
    return a->own_layers && b->own_layers && mark != NULL &&
           strncmp(a->name, b->name, (size_t)(mark - a->name) + 3) == 0;
}

static bool is_member(const struct rf_layout_build *build,
                      const struct unit *unit, uint32_t f)
{
    const struct rf_family *family = &build->model->families[f];
    struct rf_layer_run run = {unit->layer, 1};
    return unit->in_layers == (family->layers != NULL) &&
           (unit->like != NULL ? same_list(unit->like, family)
                               : !family->own_layers) &&
           rf_layout_holds(build, f) &&
           (!unit->in_layers || rf_family_layers(family, run).count > 0);
}

/* Adds the sections of family `f` to the members of a unit. */
static enum rf_status add_members(const struct rf_layout_build *build,
                                  uint32_t f, struct member *members, size_t *n,
                                  struct rf_err *err)
{
    const struct rf_family *family = &build->model->families[f];
    struct rf_section sections[RF_FAMILY_MAX_PARTS];
    size_t parts = 0;
    enum rf_status status = rf_layout_sections(build, f, sections, &parts, err);
    for (size_t i = 0; i < parts && status == RF_OK; i++) {
        struct member *member = &members[*n];
        if (parts > 1 && sections[i].dim != 0) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "%s: fsdp1 with tp flattens parts that lie one "
                              "above the other, not side by side",
                              family->name);
        }
        *member = (struct member){.section = sections[i], .elements = 1};
        for (uint32_t d = 0; d < family->ndim; d++) {
            member->elements *= member->section.extent[d];
        }
        (*n)++;
    }
    return status;
}

/* The members of a unit. */
static enum rf_status collect(const struct rf_layout_build *build,
                              const struct unit *unit, struct member *members,
                              size_t *n, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    *n = 0;
    for (uint32_t f = 0; f < build->model->n_families && status == RF_OK; f++) {
        if (is_member(build, unit, f)) {
            status = add_members(build, f, members, n, err);
        }
    }
    return status;
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
                                 const struct rf_family *like,
                                 struct member *members, struct member *next,
                                 struct rf_err *err)
{
    uint32_t layer = run.first, end = run.first + run.count;
    enum rf_status status = RF_OK;
    while (layer < end && status == RF_OK) {
        struct shard shard = {.layers = {layer, 0}, .in_layers = true};
        struct unit unit = {true, like, layer};
        size_t n, m;
        status = collect(build, &unit, members, &n, err);
        do {
            unit.layer = ++layer;
            shard.layers.count++;
            m = n + 1;
            if (layer < end && status == RF_OK) {
                status = collect(build, &unit, next, &m, err);
            }
        } while (status == RF_OK && layer < end &&
                 same_members(members, n, next, m));
        if (status == RF_OK) {
            status = add_unit(build, members, n, shard, err);
        }
    }
    return status;
}

/* Units of layers that are not the decoder's, list by list. */
static enum rf_status add_own_layers(struct rf_layout_build *build,
                                     struct member *members,
                                     struct member *next, struct rf_err *err)
{
    const struct rf_model *model = build->model;
    enum rf_status status = RF_OK;
    for (uint32_t f = 0; f < model->n_families && status == RF_OK; f++) {
        const struct rf_family *first = &model->families[f];
        struct rf_layer_run run = {0, 0};
        uint32_t end = 0;
        for (uint32_t g = 0; g < model->n_families; g++) {
            const struct rf_family *other = &model->families[g];
            if (same_list(first, other) && g < f) {
                break; /* done with an earlier one */
            }
            if (same_list(first, other)) {
                end = RF_MAX(end, other->layers[other->n_layers - 1] + 1);
                run.count = end;
            }
        }
        status = add_layers(build, run, first, members, next, err);
    }
    return status;
}

static enum rf_status make_fsdp1(struct rf_layout_build *build,
                                 struct rf_err *err)
{
    const struct unit unit = {.in_layers = false};
    size_t most = (size_t)build->model->n_families * RF_FAMILY_MAX_PARTS + 1;
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
    members = rf_xcalloc(2 * most, sizeof(*members));
    status = collect(build, &unit, members, &n, err);
    if (status == RF_OK) {
        status = add_unit(build, members, n, outside, err);
    }
    for (uint32_t v = 0; v < RF_MAX(build->side->vpp, 1) && status == RF_OK;
         v++) {
        status = add_layers(
            build,
            rf_stage_chunk(build->side, build->stage_layers, build->at.pp, v),
            NULL, members, members + most, err);
    }
    if (status == RF_OK) {
        status = add_own_layers(build, members, members + most, err);
    }
    free(members);
    return status;
}

const struct rf_layout_ops rf_layout_fsdp = {
    .by_dp = true,
    .repeat_kv = true,
    .keep_stacked = true,
    .vocab_multiple = rf_layout_no_padding,
    .make = make_fsdp,
};

const struct rf_layout_ops rf_layout_fsdp1 = {
    .by_dp = true,
    .repeat_kv = true,
    .keep_stacked = true,
    .vocab_multiple = rf_layout_no_padding,
    .make = make_fsdp1,
};
