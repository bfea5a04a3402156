/* See update_rules.h. */
#include "planner/plan/update_rules.h"

#include <fnmatch.h>

static bool matches_any(const struct rf_model *model, const char *match)
{
    uint32_t f = 0;
    while (f < model->n_families &&
           fnmatch(match, model->families[f].name, 0) != 0) {
        f++;
    }
    return f < model->n_families;
}

enum rf_status rf_update_check(const struct rf_plan *plan, struct rf_err *err)
{
    const struct rf_update_spec *update = &plan->spec->update;
    if (update->given && update->from == NULL && plan->model->files != NULL) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "update.density: changes weights made by the "
                          "pattern, not those of a checkpoint: name the "
                          "checkpoint before the step as \"from\", or "
                          "describe the model by its \"config\"");
    }
    if (update->from != NULL && plan->model->files == NULL) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "update.from: the model must be that checkpoint, or "
                          "the one after the step, as model.checkpoint");
    }
    for (uint32_t f = 0; update->given && f < plan->model->n_families; f++) {
        if (!rf_form_equal(rf_plan_form(plan, RF_TRAIN, f),
                           rf_plan_form(plan, RF_INFER, f))) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "update: %.200s has another dtype in training "
                              "than in inference, where most of its changes "
                              "would vanish: use one dtype",
                              plan->model->families[f].name);
        }
    }
    for (uint32_t i = 0; i < update->n_densities; i++) {
        if (!matches_any(plan->model, update->densities[i].match)) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "update.densities[%u].match: no tensor is called "
                              "\"%.200s\"; names are as %.200s",
                              i, update->densities[i].match,
                              plan->model->families[0].name);
        }
    }
    return RF_OK;
}
