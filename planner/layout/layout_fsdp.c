/*
 * Layouts that shard everything over DP: PyTorch's and DeepSpeed's. With
 * dp_replicate, each group of DP / dp_replicate ranks holds everything; "DP"
 * below is the size of a group.
 *
 * fsdp (FSDP2): every tensor is cut along dimension 0 into chunks of
 * ceil(size / DP) rows; the last may be smaller, later ranks hold none of it.
 *
 * fsdp1: all tensors of a unit are flattened, joined, padded to a multiple of
 * DP and cut into DP equal ranges. Units are each decoder layer, and everything
 * outside the layers. Order inside a unit: the model's families; successive
 * families with experts go expert by expert, as modules do. A range covers
 * parts of tensors as boxes: a partial row, whole rows, a partial row.
 *
 * zero3 (DeepSpeed ZeRO-3): the same, with each tensor its own unit.
 *
 * TP and EP cut nothing, so roles do not matter.
 */
#include "planner/layout/layout_params.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/box.h"

static struct rf_section whole_section(const struct rf_layout_build *build,
                                       uint32_t f)
{
    const struct rf_family *family = &build->model->families[f];
    struct rf_section section = {
        .family = f, .rows = family->shape[0], .n_experts = family->n_experts};
    memcpy(section.extent, family->shape,
           family->ndim * sizeof(*section.extent));
    return section;
}

/* Adds the rank's shard: rows of dimension 0 or, in a stacked family, whole
 * experts. */
static enum rf_status add_chunk(struct rf_layout_build *build, uint32_t f,
                                const char *name, struct rf_err *err)
{
    const struct rf_share share = rf_layout_shard(build->side, build->at.dp);
    const bool stacked = build->model->families[f].stacked;
    struct rf_section section = whole_section(build, f);
    uint64_t size = stacked ? section.n_experts : section.rows;
    uint64_t chunk = rf_div_up(size, share.parts);
    uint64_t first = RF_MIN(share.part * chunk, size);
    uint64_t count = RF_MIN(chunk, size - first);
    if (stacked) {
        section.first_expert = first;
        section.n_experts = count;
    } else {
        section.start[0] = first;
        section.extent[0] = section.rows = count;
    }
    return rf_layout_add(build, name, &section, 1, err);
}

static enum rf_status make_fsdp(struct rf_layout_build *build,
                                struct rf_err *err)
{
    for (size_t i = 0; i < build->n_schemes; i++) {
        const struct rf_param_scheme *scheme = &build->schemes[i];
        uint32_t f = scheme->members[0].family;
        if (rf_layout_holds(build, f)) {
            RF_TRY(add_chunk(build, f, scheme->name, err));
        }
    }
    return RF_OK;
}

/* A tensor family inside a flat unit. */
struct unit_member {
    struct rf_section section;
    uint64_t elements;    /* of one tensor on this rank */
    uint64_t base;        /* first element of expert 0 in the unit */
    uint64_t expert_step; /* elements from one expert's tensor to the next */
};

static struct unit_member member_of(const struct rf_layout_build *build,
                                    uint32_t f)
{
    const struct rf_family *family = &build->model->families[f];
    struct unit_member member = {.section = whole_section(build, f),
                                 .elements = 1};
    for (uint32_t d = 0; d < family->ndim; d++) {
        member.elements *= family->shape[d];
    }
    return member;
}

/* The flat shard of a run of equal units. */
struct shard {
    uint64_t low, high; /* the rank's elements of the unit */
    uint64_t stride, item;
    struct rf_param_place place;
    struct rf_layer_run layers; /* layer numbers; count 1 outside layers */
    bool in_layers;
};

/* Elements [from, to) of the tensors of experts [expert, expert + n). */
struct element_range {
    uint64_t expert, n;
    uint64_t from, to;
};

static void push_range(struct rf_layout_build *build, const struct shard *shard,
                       const struct unit_member *member,
                       struct element_range range)
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

/* Adds the pieces of a member's tensors within the flat range: experts wholly
 * inside it together, those that it cuts one by one. */
static void push_member(struct rf_layout_build *build,
                        const struct shard *shard,
                        const struct unit_member *member)
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
            push_range(
                build, shard, member,
                (struct element_range){expert, 1, from - start, to - start});
        } else if (whole++ == 0) {
            first_whole = expert;
        }
    }
    if (whole > 0) {
        push_range(build, shard, member,
                   (struct element_range){first_whole, whole, 0, size});
    }
}

/* Places members[first, end), successive families with experts, expert by
 * expert. */
static uint64_t place_block(struct unit_member *members, size_t first,
                            size_t end, uint64_t base)
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

/* Whether `b` alternates with `a` expert by expert, as in modules that are
 * lists of experts. */
static bool follows(const struct rf_family *a, const struct rf_family *b)
{
    return b->has_experts && !a->stacked && !b->stacked &&
           a->n_experts == b->n_experts;
}

/* Sets each member's place; returns the elements of the unit. */
static uint64_t place_members(const struct rf_layout_build *build,
                              struct unit_member *members, size_t n)
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

/* Adds the flat parameter of a run of equal units with these members. */
static enum rf_status add_unit(struct rf_layout_build *build,
                               struct unit_member *members, size_t n,
                               struct shard shard, struct rf_err *err)
{
    const char *name = shard.in_layers ? "model.layers.{L}.flat" : "flat";
    const struct rf_share of = rf_layout_shard(build->side, build->at.dp);
    uint64_t total, share, bytes;
    if (n == 0) {
        return RF_OK;
    }
    shard.item = rf_layout_item(build, members[0].section.family);
    for (size_t i = 0; i < n; i++) {
        if (rf_layout_item(build, members[i].section.family) != shard.item) {
            return rf_err_set(
                err, RF_ERR_CONFIG,
                "%s and %s have elements of different sizes; fsdp1 flattens "
                "units of one dtype: set \"dtype\" for this side",
                build->model->families[members[0].section.family].name,
                build->model->families[members[i].section.family].name);
        }
    }
    total = place_members(build, members, n);
    share = rf_div_up(total, of.parts);
    shard.low = RF_MIN(of.part * share, total);
    shard.high = RF_MIN(shard.low + share, total);
    if (!rf_mul_u64(share, shard.item, &bytes) || bytes > INT64_MAX / 2) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: shard exceeds 2^62 - 1 bytes", name);
    }
    shard.stride = rf_align_up(bytes, RF_PARAM_ALIGN);
    RF_TRY(rf_layout_reserve(build, name, bytes, shard.layers.count,
                             &shard.place, err));
    for (size_t i = 0; i < n; i++) {
        push_member(build, &shard, &members[i]);
    }
    return RF_OK;
}

/* The families of a unit. */
struct unit {
    bool in_layers;
    const struct rf_family *like; /* for layers outside the decoder: a family of
                                     the same module list */
    uint32_t layer;
};

/* Whether two families belong to the same list of layers, that is, whether
 * their names agree up to the number. */
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

/* Lists the members of a unit; returns their number. */
static size_t collect(const struct rf_layout_build *build,
                      const struct unit *unit, struct unit_member *members)
{
    size_t n = 0;
    for (uint32_t f = 0; f < build->model->n_families; f++) {
        if (is_member(build, unit, f)) {
            members[n++] = member_of(build, f);
        }
    }
    return n;
}

static bool same_members(const struct unit_member *a, size_t n,
                         const struct unit_member *b, size_t m)
{
    for (size_t i = 0; i < n && n == m; i++) {
        if (a[i].section.family != b[i].section.family) {
            return false;
        }
    }
    return n == m;
}

/* Adds the units of a run of consecutive layers, equal neighbours as one. */
static enum rf_status add_layers(struct rf_layout_build *build,
                                 struct rf_layer_run run,
                                 const struct rf_family *like,
                                 struct unit_member *members,
                                 struct unit_member *next, struct rf_err *err)
{
    uint32_t layer = run.first, end = run.first + run.count;
    while (layer < end) {
        struct shard shard = {.layers = {layer, 0}, .in_layers = true};
        struct unit unit = {true, like, layer};
        size_t n, m;
        n = collect(build, &unit, members);
        do {
            unit.layer = ++layer;
            shard.layers.count++;
            m = layer < end ? collect(build, &unit, next) : n + 1;
        } while (same_members(members, n, next, m));
        RF_TRY(add_unit(build, members, n, shard, err));
    }
    return RF_OK;
}

/* One past the last layer in the module list of family `f`; 0: no such list, or
 * an earlier family is also in it. */
static uint32_t end_of_list(const struct rf_model *model, uint32_t f)
{
    uint32_t end = 0;
    for (uint32_t g = 0; g < model->n_families; g++) {
        const struct rf_family *other = &model->families[g];
        if (same_list(&model->families[f], other)) {
            if (g < f) {
                return 0;
            }
            end = RF_MAX(end, other->layers[other->n_layers - 1] + 1);
        }
    }
    return end;
}

/* Adds the units of layers outside the decoder, list by list. */
static enum rf_status add_own_layers(struct rf_layout_build *build,
                                     struct unit_member *members,
                                     struct unit_member *next,
                                     struct rf_err *err)
{
    const struct rf_model *model = build->model;
    for (uint32_t f = 0; f < model->n_families; f++) {
        const struct rf_layer_run run = {0, end_of_list(model, f)};
        RF_TRY(add_layers(build, run, &model->families[f], members, next, err));
    }
    return RF_OK;
}

static enum rf_status make_fsdp1(struct rf_layout_build *build,
                                 struct rf_err *err)
{
    const struct unit unit = {.in_layers = false};
    const size_t most = (size_t)build->model->n_families + 1;
    struct unit_member *members = rf_xcalloc(2 * most, sizeof(*members));
    size_t n = collect(build, &unit, members);
    enum rf_status status =
        add_unit(build, members, n, (struct shard){.layers = {0, 1}}, err);
    RF_THEN(status,
            add_layers(build, (struct rf_layer_run){0, build->model->n_layers},
                       NULL, members, members + most, err));
    RF_THEN(status, add_own_layers(build, members, members + most, err));
    free(members);
    return status;
}

/* Adds a flat shard of each tensor of a family. */
static enum rf_status add_tensors(struct rf_layout_build *build, uint32_t f,
                                  struct rf_err *err)
{
    const struct rf_family *family = &build->model->families[f];
    const struct rf_share of = rf_layout_shard(build->side, build->at.dp);
    struct unit_member member = member_of(build, f);
    struct shard shard = {.item = rf_layout_item(build, f), .layers = {0, 1}};
    uint64_t tensors = family->stacked ? 1 : family->n_experts;
    uint64_t size = member.elements * (family->n_experts / tensors);
    uint64_t share = rf_div_up(size, of.parts);
    uint64_t step = rf_align_up(share * shard.item, RF_PARAM_ALIGN);
    RF_TRY(rf_layout_reserve(build, family->name, share * shard.item,
                             family->n_layers * tensors, &shard.place, err));
    if (family->layers != NULL) {
        shard.in_layers = true;
        shard.layers.count = family->layers[family->n_layers - 1] + 1;
    }
    shard.low = RF_MIN(of.part * share, size);
    shard.high = RF_MIN(shard.low + share, size);
    shard.stride = step * tensors;
    member.expert_step = family->stacked ? member.elements : step / shard.item;
    if (family->stacked) {
        push_member(build, &shard, &member);
    } else if (shard.low < shard.high) {
        push_range(build, &shard, &member,
                   (struct element_range){0, tensors, shard.low, shard.high});
    }
    return RF_OK;
}

static enum rf_status make_zero3(struct rf_layout_build *build,
                                 struct rf_err *err)
{
    for (uint32_t f = 0; f < build->model->n_families; f++) {
        RF_TRY(add_tensors(build, f, err));
    }
    return RF_OK;
}

const struct rf_layout_ops rf_layout_fsdp = {
    .by_dp = true,
    .keep_stacked = true,
    .vocab_multiple = rf_layout_no_padding,
    .make = make_fsdp,
};

const struct rf_layout_ops rf_layout_fsdp1 = {
    .by_dp = true,
    .keep_stacked = true,
    .vocab_multiple = rf_layout_no_padding,
    .make = make_fsdp1,
};

const struct rf_layout_ops rf_layout_zero3 = {
    .by_dp = true,
    .vocab_multiple = rf_layout_no_padding,
    .make = make_zero3,
};
