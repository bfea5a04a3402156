/* Properties of ranks and families in a plan. */
#include "planner/plan/plan.h"

#include <stdlib.h>

#include "planner/plan/plan_internal.h"

void rf_plan_destroy(struct rf_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    if (plan->priv != NULL) {
        rf_layouts_free(&plan->priv->layouts[RF_TRAIN]);
        rf_layouts_free(&plan->priv->layouts[RF_INFER]);
        rf_shards_free(&plan->priv->source);
        rf_shards_free(&plan->priv->target);
        rf_matches_free(&plan->priv->matches);
        free(plan->priv->match_elements);
        rf_assign_destroy(plan->priv->assign);
        rf_link_weights_free(&plan->priv->weights);
        rf_plan_destroy(plan->priv->before);
        free(plan->priv);
    }
    if (!rf_plan_is_converted(plan)) {
        for (uint32_t i = 0; i < RF_SIDES_MAX; i++) {
            rf_converted_free(plan->converted[i]);
        }
    }
    free(plan);
}

bool rf_plan_is_converted(const struct rf_plan *plan)
{
    return plan->weights != plan;
}

const struct rf_converted *rf_plan_converted(const struct rf_plan *plan,
                                             uint32_t rank)
{
    return plan->converted[RF_TRAIN] != NULL
               ? plan->converted[RF_TRAIN]
               : plan->converted[rf_world_pool(plan->world, rank)];
}

const struct rf_side_spec *rf_plan_pool(const struct rf_plan *plan,
                                        uint32_t rank)
{
    return &plan->spec
                ->side[RF_MAX(rf_world_pool(plan->world, rank), RF_INFER)];
}

const struct rf_rank_layout *rf_plan_layout(const struct rf_plan *plan,
                                            enum rf_side side, uint32_t rank)
{
    static const struct rf_rank_layout nothing = {.n_pieces = 0};
    const struct rf_layouts *layouts = &plan->priv->layouts[side];
    uint32_t index = plan->world->ranks[rank].index[side];
    return index == RF_NONE ? &nothing
                            : &layouts->layouts[layouts->of_index[index]];
}

struct rf_form rf_plan_form(const struct rf_plan *plan, enum rf_side side,
                            uint32_t family)
{
    const struct rf_family *of = &plan->model->families[family];
    return (struct rf_form){
        (uint8_t)(of->is_result
                      ? of->dtype
                      : rf_side_dtype(&plan->spec->side[side], of->dtype))};
}

struct rf_form rf_plan_wire(const struct rf_plan *plan, uint32_t family)
{
    return rf_plan_form(plan, plan->spec->cast_at_source ? RF_INFER : RF_TRAIN,
                        family);
}
