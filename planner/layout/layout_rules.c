/* Rules common to several layouts. See layout_rules.h. */
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
                     const struct rf_family *family, uint32_t dim)
{
    return ops->deals_blocks && family->grain[dim] > 0;
}

uint64_t rf_layout_grain(const struct rf_side_spec *side,
                         const struct rf_family *family, uint32_t dim)
{
    const uint64_t own = RF_MAX(family->grain[dim], 1);
    const struct rf_quant_format *format = side->quantize.format;
    if (format == NULL || !rf_family_is_quantized(family)) {
        return own;
    }
    return RF_MAX(dim == 0 ? format->rows : format->columns, own);
}

bool rf_layout_keeps_grain(const struct rf_side_spec *side,
                           const struct rf_family *family, uint32_t dim,
                           uint64_t start, uint64_t end)
{
    const uint64_t grain = rf_layout_grain(side, family, dim);
    return start % grain == 0 &&
           (end % grain == 0 || end == family->shape[dim]);
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

uint64_t rf_stage_slices(const struct rf_side_spec *side)
{
    return (uint64_t)side->pp * side->vpp;
}

/* The pipeline of a side. */
struct pipeline {
    const struct rf_layout_ops *ops;
    const struct rf_side_spec *side;
    uint32_t n_layers;
    uint32_t rest, others; /* layers and stages that no key fixes */
};

/* Whether a stage has one of the surplus layers, which engines give to that
 * many neighbouring stages. */
static bool has_one_more(const struct pipeline *line, uint32_t stage)
{
    uint32_t over = line->rest % line->others;
    uint32_t end = line->side->pp;
    end -= line->ops->remainder == RF_REMAINDER_BEFORE_LAST ? 1 : 0;
    return stage < end && stage + over >= end;
}

static uint32_t stage_layers(const struct pipeline *line, uint32_t stage)
{
    const struct rf_side_spec *side = line->side;
    if (side->n_pp_layers > 0) {
        return side->pp_layers[stage];
    }
    if (stage == 0 && side->first_stage_layers != 0) {
        return side->first_stage_layers;
    }
    if (stage == side->pp - 1 && side->last_stage_layers != 0) {
        return side->last_stage_layers;
    }
    return line->rest / line->others + has_one_more(line, stage);
}

/* A last stage with fewer layers lacks them in its last turns. */
static uint32_t turn_layers(const struct pipeline *line, uint32_t stage,
                            uint32_t turn)
{
    const uint32_t pp = line->side->pp, vpp = line->side->vpp;
    uint32_t layers, usual;
    if (line->side->n_pp_layers > pp) {
        return line->side->pp_layers[turn * pp + stage];
    }
    layers = stage_layers(line, stage);
    if (layers % vpp == 0) {
        return layers / vpp;
    }
    usual = stage_layers(line, stage - 1) / vpp;
    return RF_MIN(layers - RF_MIN(layers, turn * usual), usual);
}

static enum rf_status check_turns(const struct pipeline *line,
                                  struct rf_err *err)
{
    const struct rf_side_spec *side = line->side;
    const uint64_t slices = rf_stage_slices(side);
    if (slices > RF_SIDE_SIZE_MAX) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%llu virtual stages exceed the limit of %d",
                          (unsigned long long)slices, RF_SIDE_SIZE_MAX);
    }
    for (uint32_t stage = 0; stage < side->pp && side->n_pp_layers <= side->pp;
         stage++) {
        const uint32_t layers = stage_layers(line, stage);
        const bool last = stage > 0 && stage == side->pp - 1;
        if (layers % side->vpp != 0 &&
            (!last || layers > stage_layers(line, stage - 1))) {
            return rf_err_set(
                err, RF_ERR_CONFIG,
                "vpp must divide the layers of each stage but a shorter last "
                "one: stage %u has %u layers, vpp is %u (pp_layers can list "
                "all %llu virtual stages)",
                stage, layers, side->vpp, (unsigned long long)slices);
        }
    }
    return RF_OK;
}

/* Sets `rest` and `others`; fails if the stages cannot share the layers. */
static enum rf_status check_stages(struct pipeline *line, struct rf_err *err)
{
    const struct rf_side_spec *side = line->side;
    const uint32_t listed = side->n_pp_layers;
    const uint64_t ends =
        (uint64_t)side->first_stage_layers + side->last_stage_layers;
    const uint32_t named = (side->first_stage_layers != 0 ? 1u : 0) +
                           (side->last_stage_layers != 0 ? 1u : 0);
    bool split = named <= side->pp && ends <= line->n_layers;
    if (listed != 0 && listed != side->pp && listed != rf_stage_slices(side)) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "pp_layers has %u entries, but pp is %u", listed,
                          side->pp);
    }
    if (split) {
        line->others = side->pp - named;
        line->rest = line->n_layers - (uint32_t)ends;
        split = line->others == 0
                    ? line->rest == 0
                    : line->rest % line->others == 0 ||
                          (named == 0 && line->rest >= side->pp &&
                           line->ops->remainder != RF_REMAINDER_REFUSED);
    }
    if (listed == 0 && !split) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%u layers, less those set for the first and last "
                          "stage, must split evenly over the stages (or list "
                          "the layers of each stage in pp_layers)",
                          line->n_layers);
    }
    return check_turns(line, err);
}

enum rf_status rf_stage_starts(const struct rf_layout_ops *ops,
                               const struct rf_side_spec *side,
                               uint32_t n_layers, uint32_t *starts,
                               struct rf_err *err)
{
    struct pipeline line = {.ops = ops, .side = side, .n_layers = n_layers};
    uint64_t sum = 0;
    RF_TRY(check_stages(&line, err));
    for (uint32_t turn = 0; turn < side->vpp; turn++) {
        for (uint32_t stage = 0; stage < side->pp; stage++) {
            if (starts != NULL) {
                starts[(size_t)turn * side->pp + stage] = (uint32_t)sum;
            }
            sum += turn_layers(&line, stage, turn);
        }
    }
    if (sum != n_layers) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "pp_layers must add up to the model's %u layers, not "
                          "%llu",
                          n_layers, (unsigned long long)sum);
    }
    if (starts != NULL) {
        starts[rf_stage_slices(side)] = n_layers;
    }
    return RF_OK;
}

struct rf_layer_run rf_stage_chunk(const struct rf_side_spec *side,
                                   const uint32_t *starts, uint32_t pp,
                                   uint32_t chunk)
{
    const uint32_t *start = &starts[(size_t)chunk * side->pp + pp];
    return (struct rf_layer_run){.first = start[0],
                                 .count = start[1] - start[0]};
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
