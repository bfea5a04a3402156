/*
 * Full-size models by sample: elements drawn at random, and for each the ranks
 * that hold it by Megatron-LM's formulae. On each rank that needs it exactly
 * one transfer brings it, from a rank that has it.
 */
#include <string.h>

#include "common/pattern.h"
#include "planner/layout/mesh_rules.h"
#include "planner/plan/plan.h"
#include "tests/lib/places.h"
#include "tests/lib/planned.h"
#include "tests/lib/quoted.h"
#include "tests/unit/unit.h"

#define SAMPLES 400

/* Where a rank of a mesh of W ranks is: dense rank tp + TP(dp + DP·pp), expert
 * rank etp + ETP(ep + EP(edp + EDP·pp)). */
struct place {
    uint32_t tp, pp, etp, ep;
};

static struct place place_of(const struct rf_side_spec *side, uint32_t size,
                             uint32_t rank)
{
    uint32_t stage = rank % (size / side->pp);
    return (struct place){
        .tp = stage % side->tp,
        .pp = rank / (size / side->pp),
        .etp = stage % side->etp,
        .ep = stage / side->etp % side->ep,
    };
}

static bool part(uint64_t index, uint64_t size, uint32_t place, uint32_t parts)
{
    return index / (size / parts) == place;
}

/* First layer of a stage when the first and last may have fewer. */
static uint32_t stage_of_layer(const struct rf_side_spec *side, uint32_t layers,
                               uint32_t layer)
{
    uint32_t first = side->first_stage_layers, last = side->last_stage_layers;
    uint32_t ends = (first ? 1u : 0u) + (last ? 1u : 0u);
    uint32_t share =
        side->pp > ends ? (layers - first - last) / (side->pp - ends) : 0;
    if (first && layer < first) {
        return 0;
    }
    if (last && layer >= layers - last) {
        return side->pp - 1;
    }
    return (first ? 1u : 0u) + (layer - first) / share;
}

/* Whether a rank has element (i, j) of a tensor, by its name. */
static bool has(const struct rf_model *model, const struct rf_side_spec *side,
                struct place at, const struct rf_family *family, uint32_t layer,
                uint32_t expert, const uint64_t *ij)
{
    const char *name = family->name;
    uint64_t rows = family->shape[0], cols = family->shape[1];
    if (strstr(name, "embed_tokens") || strstr(name, "lm_head")) {
        uint64_t padded = (rows + 1023) / 1024 * 1024; /* 128 · TP 8 */
        uint32_t stage = strstr(name, "embed") ? 0 : side->pp - 1;
        return at.pp == stage && part(ij[0], padded, at.tp, side->tp);
    }
    if (strcmp(name, "model.norm.weight") == 0) {
        return at.pp == side->pp - 1;
    }
    if (at.pp != stage_of_layer(side, model->n_layers, layer)) {
        return false;
    }
    if (strstr(name, ".experts.")) {
        return expert / (model->n_experts / side->ep) == at.ep &&
               (strstr(name, "down_proj")
                    ? part(ij[1], cols, at.etp, side->etp)
                    : part(ij[0], rows, at.etp, side->etp));
    }
    if (strstr(name, "gate_proj") || strstr(name, "up_proj") ||
        strstr(name, "q_b_proj") || strstr(name, "kv_b_proj")) {
        return part(ij[0], rows, at.tp, side->tp);
    }
    if (strstr(name, "down_proj") || strstr(name, "o_proj")) {
        return part(ij[1], cols, at.tp, side->tp);
    }
    return true; /* norms, routers, latent down-projections */
}

/* The transfers into `rank`, which are in a row. */
static size_t first_into(const struct rf_plan *plan,
                         const struct rf_transfer *transfers, uint32_t rank)
{
    size_t low = 0, high = plan->n_transfers;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (transfers[middle].dst < rank) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct element {
    uint32_t family;
    uint64_t at[RF_BOX_DIMS];
};

static void check_receiver(const struct rf_plan *plan,
                           const struct rf_transfer *transfers,
                           const struct element *element, uint32_t index)
{
    const struct rf_family *family = &plan->model->families[element->family];
    const struct rf_side_spec *train = &plan->spec->train;
    const struct rf_side_spec *infer = &plan->spec->infer;
    uint32_t rank = plan->world->rank_of[RF_INFER][index], found = 0;
    uint32_t layer = family->layers ? family->layers[element->at[0]] : 0;
    uint32_t expert = (uint32_t)element->at[1];
    bool wanted = has(plan->model, infer,
                      place_of(infer, plan->world->size[RF_INFER], index),
                      family, layer, expert, element->at + 2);
    for (size_t i = first_into(plan, transfers, rank);
         i < plan->n_transfers && transfers[i].dst == rank; i++) {
        const struct rf_transfer *t = &transfers[i];
        if (t->family == element->family &&
            place_inside(&t->box, element->at)) {
            uint32_t from = plan->world->ranks[t->src].index[RF_TRAIN];
            ck_assert(has(plan->model, train,
                          place_of(train, plan->world->size[RF_TRAIN], from),
                          family, layer, expert, element->at + 2));
            found++;
        }
    }
    ck_assert_msg(found == wanted, "%s on rank %u: %u transfers, want %d",
                  family->name, rank, found, wanted);
}

static void check_samples(const struct rf_plan *plan)
{
    AUTO_FREE struct rf_transfer *transfers = planned_transfers(plan);
    uint64_t seed = plan->n_transfers;
    for (int i = 0; i < SAMPLES; i++) {
        struct element element = {.at = {0}};
        element.family = (uint32_t)(rf_mix64(++seed) % plan->model->n_families);
        const struct rf_family *family = &plan->model->families[element.family];
        element.at[0] = rf_mix64(++seed) % family->n_layers;
        element.at[1] = rf_mix64(++seed) % family->n_experts;
        for (uint32_t d = 0; d < family->ndim; d++) {
            element.at[2 + d] = rf_mix64(++seed) % family->shape[d];
        }
        for (int k = 0; k < 8; k++) {
            check_receiver(
                plan, transfers, &element,
                (uint32_t)(rf_mix64(++seed) % plan->world->size[RF_INFER]));
        }
    }
}

static const struct {
    const char *mode, *from, *to;
} pairs[] = {
    {"disaggregated", "'tp': 8, 'ep': 8, 'etp': 1, 'dp': 8",
     "'tp': 8, 'ep': 4, 'etp': 1, 'dp': 4"},
    {"disaggregated", "'tp': 8, 'ep': 8, 'dp': 8", "'tp': 16, 'ep': 4"},
    {"colocated", "'tp': 8, 'ep': 8, 'dp': 16", "'tp': 8, 'ep': 16, 'dp': 16"},
    {"disaggregated",
     "'tp': 8, 'pp': 16, 'ep': 16, 'etp': 1, 'dp': 16, "
     "'num_layers_in_first_pipeline_stage': 3, "
     "'num_layers_in_last_pipeline_stage': 2",
     "'tp': 8, 'ep': 32, 'etp': 1, 'dp': 32"},
};

LIMIT(60)

LOOP_TEST(test_oracle_samples_of_a_trillion_parameters, RF_ARRAY_SIZE(pairs))
{
    struct rf_err err = {0};
    AUTO(rf_model) *model = file_model("kimi-k2", "");
    AUTO(rf_spec) *spec =
        quoted_spec("'mode': '%s', 'train': {%s}, 'infer': {%s}",
                    pairs[_i].mode, pairs[_i].from, pairs[_i].to);
    AUTO(rf_world) *world = NULL;
    AUTO(rf_plan) *plan = NULL;
    ck_assert_msg(rf_mesh_rules_place(spec, model, NULL, 0, &world, &err) ==
                      RF_OK,
                  "%s", err.text);
    assert_ok(rf_plan_build(model, world, spec, &plan, &err), err);
    check_samples(plan);
    ck_assert_uint_le(plan->totals.max_send_bytes * 100,
                      plan->totals.bound_send_bytes * 101);
}
