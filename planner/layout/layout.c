/*
 * Layouts of a side: one per class of ranks that hold the same, made by the
 * rules of its kind (layout_*.c) and sorted for matching.
 *
 * A class is a place (tp, pp, ep, etp), for FSDP also the shard, for Alpa
 * specs the device. Anything that makes a layout impossible is RF_ERR_CONFIG
 * with the family and the rule.
 */
#include "planner/layout/layout.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/model/roles.h"

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

bool rf_layout_fuses_groups(const struct rf_layout_ops *ops)
{
    for (size_t i = 0; i < ops->n_fusions; i++) {
        if (ops->fusions[i].by_group) {
            return true;
        }
    }
    return false;
}

bool rf_layout_divides(const struct rf_side_spec *side,
                       const struct rf_family *family,
                       const struct rf_part *part)
{
    return rf_family_is_cut(family, part) &&
           (family->whole_in >> side->layout & 1) == 0;
}

uint32_t rf_layout_tp_ranks(const struct rf_side_spec *side,
                            const struct rf_family *family,
                            const struct rf_part *part, uint32_t tp)
{
    const struct rf_division *division = rf_role_division(part->role);
    bool heads = part->units != 0 || division->unit != RF_UNIT_ELEMENT;
    bool input = division->vocabulary && family->stage == RF_STAGE_FIRST;
    return heads || input ? tp / side->attention_dp : tp;
}

bool rf_layout_deals(const struct rf_layout_ops *ops,
                     const struct rf_family *family)
{
    return ops->deals_blocks && family->block > 0;
}

uint64_t rf_layout_vocab_rows(const struct rf_layout_ops *ops,
                              uint64_t multiple, uint64_t rows, uint32_t ranks)
{
    uint64_t padded = rf_align_up(rows, multiple);
    return ops->pads_to_ranks && padded % ranks != 0
               ? rf_align_up(rows, multiple * ranks)
               : padded;
}

enum rf_status rf_stage_layers(const struct rf_side_spec *side,
                               uint32_t n_layers, uint32_t *layers,
                               struct rf_err *err)
{
    uint32_t ends[2] = {side->first_stage_layers, side->last_stage_layers};
    uint64_t listed = 0;
    if (side->n_pp_layers > 0) {
        for (uint32_t i = 0; i < side->n_pp_layers; i++) {
            listed += side->pp_layers[i];
        }
        if (side->n_pp_layers != side->pp || listed != n_layers) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "pp_layers: %u stages with %llu layers, "
                              "but pp is %u and the model has %u layers",
                              side->n_pp_layers, (unsigned long long)listed,
                              side->pp, n_layers);
        }
        memcpy(layers, side->pp_layers, side->pp * sizeof(*layers));
    } else {
        uint32_t fixed =
            (ends[0] != 0 ? 1u : 0) + (ends[1] != 0 && side->pp > 1 ? 1u : 0);
        uint64_t given = (uint64_t)ends[0] + (side->pp > 1 ? ends[1] : 0);
        uint32_t others = side->pp > fixed ? side->pp - fixed : 0;
        uint64_t rest = n_layers - given;
        if (given > n_layers ||
            (others == 0 ? rest != 0 : rest % others != 0)) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "layers %% pp: %u layers do not spread over "
                              "%u pipeline stages",
                              n_layers, side->pp);
        }
        for (uint32_t i = 0; i < side->pp; i++) {
            layers[i] = others ? (uint32_t)(rest / others) : 0;
        }
        if (ends[1] != 0 && side->pp > 1) {
            layers[side->pp - 1] = ends[1];
        }
        if (ends[0] != 0) {
            layers[0] = ends[0];
        }
    }
    for (uint32_t i = 0; i < side->pp; i++) {
        if (layers[i] % RF_MAX(side->vpp, 1) != 0) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "layers %% (pp * vpp): the %u layers of stage "
                              "%u do not spread over vpp %u",
                              layers[i], i, side->vpp);
        }
    }
    return RF_OK;
}

struct rf_layer_run rf_stage_chunk(const struct rf_side_spec *side,
                                   const uint32_t *stage_layers, uint32_t pp,
                                   uint32_t chunk)
{
    uint32_t vpp = RF_MAX(side->vpp, 1), before = 0, turn = 0;
    for (uint32_t p = 0; p < side->pp; p++) {
        turn += stage_layers[p] / vpp;
        before += p < pp ? stage_layers[p] / vpp : 0;
    }
    return (struct rf_layer_run){.first = chunk * turn + before,
                                 .count = stage_layers[pp] / vpp};
}

/* Index of the first layer number ≥ `layer`. */
static uint32_t lower_bound(const struct rf_family *family, uint64_t layer)
{
    uint32_t low = 0, high = family->n_layers;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (family->layers[middle] < layer) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct rf_layer_run rf_family_layers(const struct rf_family *family,
                                     struct rf_layer_run run)
{
    uint32_t first = lower_bound(family, run.first);
    uint32_t end = lower_bound(family, (uint64_t)run.first + run.count);
    return (struct rf_layer_run){.first = first, .count = end - first};
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

/* A rank's class; equal keys hold the same. */
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
    return (x->index > y->index) - (x->index < y->index);
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
    if (x->family != y->family) {
        return x->family < y->family ? -1 : 1;
    }
    return rf_box_compare(&x->box, &y->box);
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
    if (build->out.n_pieces > 0) {
        qsort(build->out.pieces, build->out.n_pieces,
              sizeof(*build->out.pieces), compare_pieces);
    }
    *out = build->out;
    return RF_OK;
}

/* Keys sorted, one layout for each run of equal ones. */
static enum rf_status make_all(struct rf_layout_build *build,
                               const struct rf_layout_ops *ops,
                               const struct class_key *keys,
                               struct rf_layouts *out, struct rf_err *err)
{
    for (uint32_t i = 0; i < out->n_indices; i++) {
        if (i == 0 ||
            memcmp(keys[i].part, keys[i - 1].part, sizeof(keys[i].part)) != 0) {
            enum rf_status status;
            build->index = keys[i].index;
            build->at = rf_coord_of(build->side, out->n_indices, build->index);
            status =
                make_layout(build, ops, &out->layouts[out->n_layouts], err);
            if (status != RF_OK) {
                return status;
            }
            out->n_layouts++;
        }
        out->of_index[keys[i].index] = out->n_layouts - 1;
    }
    return RF_OK;
}

enum rf_status rf_layouts_build(const struct rf_model *model,
                                const struct rf_world *world,
                                const struct rf_spec *spec, enum rf_side which,
                                struct rf_layouts *out, struct rf_err *err)
{
    const struct rf_side_spec *side = rf_side_of(spec, which);
    const struct rf_layout_ops *ops = rf_layout_ops_of(side->layout);
    uint32_t size = world->size[which];
    struct rf_layouts made = {.n_indices = size};
    uint32_t *stage_layers = rf_calloc(RF_MAX(side->pp, 1), sizeof(uint32_t));
    struct class_key *keys = rf_calloc(size, sizeof(*keys));
    struct rf_param_scheme *schemes =
        rf_calloc(model->n_families, sizeof(*schemes));
    enum rf_status status = RF_ERR_NOMEM;
    struct rf_layout_build build = {
        .model = model,
        .side = side,
        .ops = ops,
        .tied_copy = ops->tied_copy && model->tied_embeddings && side->pp > 1,
        .vocab_multiple = ops->vocab_multiple(spec, which),
        .stage_layers = stage_layers,
        .schemes = schemes,
    };
    made.layouts = rf_calloc(size, sizeof(*made.layouts));
    made.of_index = rf_calloc(size, sizeof(*made.of_index));
    if (!stage_layers || !keys || !schemes || !made.layouts || !made.of_index) {
        rf_err_set(err, status, "no memory for the layouts of %u ranks", size);
        goto free_scratch;
    }
    status = rf_stage_layers(side, model->n_layers, stage_layers, err);
    if (status != RF_OK) {
        goto free_scratch;
    }
    build.n_schemes = rf_layout_fuse(model, ops->fusions, ops->n_fusions,
                                     ops->experts_inside, schemes);
    for (uint32_t i = 0; i < size; i++) {
        keys[i] = key_of(ops, model, side, rf_coord_of(side, size, i), i);
    }
    qsort(keys, size, sizeof(*keys), compare_keys);
    status = make_all(&build, ops, keys, &made, err);
free_scratch:
    free(stage_layers);
    free(keys);
    free(schemes);
    if (status != RF_OK) {
        rf_layouts_free(&made);
        rf_err_wrap(err, "%s layout of the %s side",
                    rf_layout_name(side->layout),
                    which == RF_TRAIN ? "train" : "infer");
        return status;
    }
    *out = made;
    return RF_OK;
}
