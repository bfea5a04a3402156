/* Rules of layouts that are the same for many. See layout_rules.h. */
#include "planner/layout/layout_rules.h"

#include <string.h>

#include "common/mem.h"
#include "planner/model/roles.h"

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
    const struct rf_role_division *division = rf_role_division(part->role);
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

uint64_t rf_layout_no_padding(const struct rf_spec *spec, enum rf_side side)
{
    (void)spec;
    (void)side;
    return 1;
}

struct rf_share rf_layout_shard(const struct rf_side_spec *side, uint32_t dp)
{
    uint32_t parts = RF_MAX(side->dp / side->dp_replicate, 1);
    return (struct rf_share){.part = dp % parts, .parts = parts};
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
