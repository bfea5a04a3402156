/*
 * Lists families. What a rank holds is read off the pieces of its layout, not
 * off the rules that made them: this is what the plan moves.
 */
#include "coordinator/plan_families.h"

#include <inttypes.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/table.h"

/* What a rank holds of one tensor of a family, and of how many experts. */
struct holding {
    uint64_t shape[RF_TENSOR_MAX_DIMS]; /* the pieces joined along rows */
    bool joined;                        /* they can be */
    uint64_t elements;
    uint64_t first_expert, end_expert;
};

static bool same_columns(const struct rf_box *a, const struct rf_box *b)
{
    const size_t from = RF_DIM_TENSOR + 1;
    const size_t bytes = (RF_BOX_DIMS - from) * sizeof(a->start[0]);
    return memcmp(a->start + from, b->start + from, bytes) == 0 &&
           memcmp(a->extent + from, b->extent + from, bytes) == 0;
}

static void add_piece(struct holding *holding, const struct rf_box *first,
                      const struct rf_box *box)
{
    uint64_t elements = 1;
    holding->first_expert =
        RF_MIN(holding->first_expert, box->start[RF_DIM_EXPERT]);
    holding->end_expert =
        RF_MAX(holding->end_expert,
               box->start[RF_DIM_EXPERT] + box->extent[RF_DIM_EXPERT]);
    if (box->start[RF_DIM_LAYER] != first->start[RF_DIM_LAYER] ||
        box->start[RF_DIM_EXPERT] != first->start[RF_DIM_EXPERT]) {
        return; /* of another tensor */
    }
    for (uint32_t d = 0; d < RF_TENSOR_MAX_DIMS; d++) {
        uint64_t extent = box->extent[RF_DIM_TENSOR + d];
        elements *= extent;
        holding->shape[d] = d == 0 ? holding->shape[0] + extent : extent;
    }
    holding->elements += elements;
    holding->joined = holding->joined && same_columns(first, box);
}

/* Of the first rank of the mesh that has any; false: none has. */
static bool find_holding(const struct rf_plan *plan, enum rf_side side,
                         uint32_t family, struct holding *out)
{
    *out = (struct holding){.joined = true, .first_expert = UINT64_MAX};
    for (uint32_t i = 0; i < plan->world->size[side]; i++) {
        const struct rf_rank_layout *layout =
            rf_plan_layout(plan, side, plan->world->rank_of[side][i]);
        const struct rf_box *first = NULL;
        for (size_t p = 0; p < layout->n_pieces; p++) {
            const struct rf_piece *piece = &layout->pieces[p];
            if (piece->family == family) {
                first = first != NULL ? first : &piece->box;
                add_piece(out, first, &piece->box);
            }
        }
        if (first != NULL) {
            return true;
        }
    }
    return false;
}

static void holding_cell(struct rf_table *table, const struct rf_plan *plan,
                         enum rf_side side, uint32_t family)
{
    const struct rf_family *of = &plan->model->families[family];
    uint64_t tensor = rf_family_elements(of) / rf_family_tensors(of);
    char text[RF_SHAPE_TEXT_SIZE], experts[64] = "";
    struct holding holding;
    if (!find_holding(plan, side, family, &holding)) {
        rf_table_cell(table, "nothing");
        return;
    }
    if (holding.end_expert - holding.first_expert < of->n_experts) {
        snprintf(experts, sizeof(experts), ", %" PRIu64 " of %u experts",
                 holding.end_expert - holding.first_expert, of->n_experts);
    }
    if (holding.elements == tensor) {
        rf_table_cell(table, "whole%s", experts);
    } else if (holding.joined) {
        rf_table_cell(table, "%s%s",
                      rf_shape_text(holding.shape, of->ndim, text), experts);
    } else {
        rf_table_cell(table, "%" PRIu64 " of %" PRIu64 " elements%s",
                      holding.elements, tensor, experts);
    }
}

void rf_plan_families_print(const struct rf_model *model,
                            const struct rf_plan *plan)
{
    static const char *const heads[] = {
        "family", "shape",           ">tensors",
        "role",   "a training rank", "an inference rank",
        NULL};
    static const char *const model_heads[] = {"family", "shape", ">tensors",
                                              "role", NULL};
    struct rf_table *table =
        rf_table_create(plan != NULL ? heads : model_heads);
    char shape[RF_SHAPE_TEXT_SIZE];
    for (uint32_t f = 0; f < model->n_families; f++) {
        const struct rf_family *family = &model->families[f];
        rf_table_cell(table, "%s", family->name);
        rf_table_cell(table, "%s",
                      rf_shape_text(family->shape, family->ndim, shape));
        rf_table_cell(table, "%" PRIu64, rf_family_tensors(family));
        rf_table_cell(table, "%s", rf_role_name(family->role));
        if (plan != NULL) {
            holding_cell(table, plan, RF_TRAIN, f);
            holding_cell(table, plan, RF_INFER, f);
        }
    }
    rf_table_print(table, stdout, RF_REPORT_TABLE, 2);
    rf_table_destroy(table);
}
