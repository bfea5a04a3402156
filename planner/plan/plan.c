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
        free(plan->priv);
    }
    free(plan);
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

enum rf_dtype rf_plan_dtype(const struct rf_plan *plan, enum rf_side side,
                            uint32_t family)
{
    return rf_side_dtype(&plan->spec->side[side],
                         plan->model->families[family].dtype);
}

uint32_t rf_plan_item_bytes(const struct rf_plan *plan, enum rf_side side,
                            uint32_t family)
{
    return rf_dtype_bytes(rf_plan_dtype(plan, side, family));
}

/* This cannot fail: mesh_rules.c refuses dtypes without a cast between them. */
enum rf_cast rf_plan_cast(const struct rf_plan *plan, uint32_t family)
{
    enum rf_cast cast;
    (void)rf_cast_between(rf_plan_dtype(plan, RF_TRAIN, family),
                          rf_plan_dtype(plan, RF_INFER, family), &cast);
    return cast;
}
