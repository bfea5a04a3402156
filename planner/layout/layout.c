/*
 * Layouts of a side: one per class of ranks with the same contents, made by the
 * rules of its kind (layout_*.c) and sorted for matching.
 *
 * A class is a place (tp, pp, ep, etp), for FSDP also the shard, for Alpa specs
 * the device. An impossible layout is RF_ERR_CONFIG with the family and the
 * rule.
 */
#include "planner/layout/layout.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/layout/layout_params.h"

static const struct rf_layout_ops *const kinds[] = {
    [RF_LAYOUT_MEGATRON] = &rf_layout_megatron,
    [RF_LAYOUT_HF] = &rf_layout_hf,
    [RF_LAYOUT_VLLM] = &rf_layout_vllm,
    [RF_LAYOUT_SGLANG] = &rf_layout_sglang,
    [RF_LAYOUT_FSDP] = &rf_layout_fsdp,
    [RF_LAYOUT_FSDP1] = &rf_layout_fsdp1,
    [RF_LAYOUT_ZERO3] = &rf_layout_zero3,
    [RF_LAYOUT_SPEC] = &rf_layout_spec,
};

const struct rf_layout_ops *rf_layout_ops_of(enum rf_layout_kind kind)
{
    return kinds[kind];
}

void rf_layout_joined(const struct rf_model *model, uint32_t *first)
{
    struct rf_param_scheme *schemes =
        rf_xcalloc(model->n_families, sizeof(*schemes));
    const size_t n =
        rf_layout_fuse(model, rf_layout_vllm.fusions, rf_layout_vllm.n_fusions,
                       rf_layout_vllm.experts_inside, schemes);
    for (size_t i = 0; i < n; i++) {
        uint32_t least = UINT32_MAX;
        for (uint32_t m = 0; m < schemes[i].n_members; m++) {
            least = RF_MIN(least, schemes[i].members[m].family);
        }
        for (uint32_t m = 0; m < schemes[i].n_members; m++) {
            first[schemes[i].members[m].family] = least;
        }
    }
    free(schemes);
}

void rf_layouts_free(struct rf_layouts *layouts)
{
    for (uint32_t i = 0; i < layouts->n_layouts; i++) {
        free(layouts->layouts[i].pieces);
        free(layouts->layouts[i].params);
    }
    free(layouts->layouts);
    free(layouts->of_index);
    *layouts = (struct rf_layouts){.layouts = NULL};
}

/* A rank's class; ranks with equal keys hold the same. */
struct class_key {
    uint32_t part[5];
    uint32_t index;
};

static int compare_keys(const void *a, const void *b)
{
    const struct class_key *x = a, *y = b;
    for (size_t i = 0; i < RF_ARRAY_SIZE(x->part); i++) {
        if (x->part[i] != y->part[i]) {
            return x->part[i] < y->part[i] ? -1 : 1;
        }
    }
    return RF_COMPARE(x->index, y->index);
}

static struct class_key key_of(const struct rf_layout_ops *ops,
                               const struct rf_model *model,
                               const struct rf_side_spec *side,
                               struct rf_coord at, uint32_t index)
{
    struct class_key key = {.index = index};
    if (ops->by_device) {
        key.part[0] = index % (side->mesh[0] * side->mesh[1]);
        return key;
    }
    key.part[0] = at.pp;
    key.part[1] = at.tp;
    if (model->n_experts > 0) {
        key.part[2] = at.ep;
        key.part[3] = at.etp;
    }
    if (ops->by_dp) {
        key.part[4] = rf_layout_shard(side, at.dp).part;
    }
    return key;
}

static int compare_pieces(const void *a, const void *b)
{
    const struct rf_piece *x = a, *y = b;
    return RF_THEN_BY(RF_COMPARE(x->family, y->family),
                      rf_box_compare(&x->box, &y->box));
}

void rf_layout_sort(struct rf_rank_layout *layout)
{
    if (layout->n_pieces > 0) {
        qsort(layout->pieces, layout->n_pieces, sizeof(*layout->pieces),
              compare_pieces);
    }
}

static enum rf_status make_layout(struct rf_layout_build *build,
                                  const struct rf_layout_ops *ops,
                                  struct rf_rank_layout *out,
                                  struct rf_err *err)
{
    enum rf_status status;
    build->out = (struct rf_rank_layout){.pieces = NULL};
    build->params_cap = build->pieces_cap = 0;
    status = ops->make(build, err);
    if (status != RF_OK) {
        free(build->out.pieces);
        free(build->out.params);
        return status;
    }
    *out = build->out;
    rf_layout_sort(out);
    return RF_OK;
}

/* Makes one layout per run of equal keys. */
static enum rf_status make_all(struct rf_layout_build *build,
                               const struct rf_layout_ops *ops,
                               const struct class_key *keys,
                               const struct rf_world_mesh *mesh,
                               struct rf_layouts *out, struct rf_err *err)
{
    for (uint32_t i = 0; i < mesh->size; i++) {
        if (i == 0 ||
            memcmp(keys[i].part, keys[i - 1].part, sizeof(keys[i].part)) != 0) {
            build->index = keys[i].index;
            build->at = rf_coord_of(build->side, mesh->size, build->index);
            RF_TRY(make_layout(build, ops, &out->layouts[out->n_layouts], err));
            out->n_layouts++;
        }
        out->of_index[mesh->first + keys[i].index] = out->n_layouts - 1;
    }
    return RF_OK;
}

/* Adds the layouts of one side of the scenario. */
static enum rf_status add_mesh(const struct rf_model *model,
                               const struct rf_world *world,
                               const struct rf_spec *spec, enum rf_side which,
                               struct rf_layouts *made, struct rf_err *err)
{
    const struct rf_side_spec *side = &spec->side[which];
    const struct rf_layout_ops *ops = rf_layout_ops_of(side->layout);
    const uint32_t size = world->mesh[which].size;
    uint32_t *starts = rf_xcalloc(rf_stage_slices(side) + 1, sizeof(*starts));
    struct class_key *keys = rf_xcalloc(size, sizeof(*keys));
    struct rf_param_scheme *schemes =
        rf_xcalloc(model->n_families, sizeof(*schemes));
    struct rf_layout_build build = {
        .model = model,
        .side = side,
        .ops = ops,
        .tied_copy = ops->tied_copy && model->tied_embeddings && side->pp > 1,
        .vocab_multiple = ops->vocab_multiple(spec, which),
        .stage_starts = starts,
        .schemes = schemes,
    };
    build.n_schemes = rf_layout_fuse(model, ops->fusions, ops->n_fusions,
                                     ops->experts_inside, schemes);
    for (uint32_t i = 0; i < size; i++) {
        keys[i] = key_of(ops, model, side, rf_coord_of(side, size, i), i);
    }
    qsort(keys, size, sizeof(*keys), compare_keys);
    enum rf_status status =
        rf_stage_starts(ops, side, model->n_layers, starts, err);
    RF_THEN(status,
            make_all(&build, ops, keys, &world->mesh[which], made, err));
    free(starts);
    free(keys);
    free(schemes);
    return rf_err_within(status, err, "%s layout of the %s side",
                         rf_layout_kind_name(side->layout),
                         rf_spec_side_name(spec, which));
}

enum rf_status rf_layouts_build(const struct rf_model *model,
                                const struct rf_world *world,
                                const struct rf_spec *spec, enum rf_side side,
                                struct rf_layouts *out, struct rf_err *err)
{
    const uint32_t size = world->size[side];
    const uint32_t end = side == RF_TRAIN ? RF_INFER : world->n_meshes;
    struct rf_layouts made = {
        .n_indices = size,
        .layouts = rf_xcalloc(size, sizeof(*made.layouts)),
        .of_index = rf_xcalloc(size, sizeof(*made.of_index))};
    for (uint32_t i = side; i < end; i++) {
        enum rf_status status =
            add_mesh(model, world, spec, (enum rf_side)i, &made, err);
        if (status != RF_OK) {
            rf_layouts_free(&made);
            return status;
        }
    }
    *out = made;
    return RF_OK;
}
