/* See update_rules.h. */
#include "planner/plan/update_rules.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

#define BLOCK 128 /* elements, of pattern "blocks" */

static bool matches_any(const struct rf_model *model, const char *match)
{
    uint32_t f = 0;
    while (f < model->n_families &&
           fnmatch(match, model->families[f].name, 0) != 0) {
        f++;
    }
    return f < model->n_families;
}

/* A name to show, with a layer in it if any has one. */
static const char *example_name(const struct rf_model *model)
{
    uint32_t f = 0;
    while (f + 1 < model->n_families &&
           strstr(model->families[f].name, "{L}") == NULL) {
        f++;
    }
    return model->families[f].name;
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
                          "update.from: the model must be a checkpoint, too, "
                          "with the same tensors: set model.checkpoint");
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
                              example_name(plan->model));
        }
    }
    return RF_OK;
}

double rf_update_share(const struct rf_plan *plan, uint32_t family)
{
    const struct rf_update_spec *update = &plan->spec->update;
    const char *name = plan->model->families[family].name;
    return RF_MIN(1.0, update->every * rf_update_density_of(update, name));
}

uint64_t rf_update_unit(const struct rf_plan *plan, uint32_t family)
{
    const struct rf_family *of = &plan->model->families[family];
    switch (plan->spec->update.pattern) {
    case RF_UPDATE_ROWS:
        return of->shape[of->ndim - 1];
    case RF_UPDATE_BLOCKS:
        return BLOCK;
    case RF_UPDATE_EXPERTS:
        return of->has_experts ? rf_family_tensor_elements(of) : 0;
    default:
        return 0;
    }
}

/* Bits of a symbol of this probability, times the probability. */
static double entropy(double p)
{
    return p > 0 ? -p * log2(p) : 0;
}

/* Of a difference: its sign, and how far it goes. */
static double difference_bits(const struct rf_update_spec *update)
{
    double bits = 1, below = 0;
    if (update->pattern == RF_UPDATE_UNIFORM) {
        return bits;
    }
#define PART(step, from)                                                       \
    bits += entropy(((from)-below) / 65536);                                   \
    below = (from);
    RF_UPDATE_DISTANCES(PART)
#undef PART
    return bits + entropy((65536 - below) / 65536);
}

/* Elements of any width; others' values are not below their own entropy. */
static bool may_compress(enum rf_encoding encoding)
{
    return encoding == RF_ENCODING_GAP8_DIFF_ZSTD ||
           encoding == RF_ENCODING_XOR_ZSTD || encoding == RF_ENCODING_AUTO;
}

double rf_update_least(const struct rf_plan *plan, uint32_t family,
                       enum rf_encoding encoding)
{
    const struct rf_spec *spec = plan->spec;
    const uint32_t width = rf_dtype_bytes(rf_plan_wire(plan, family).dtype);
    double share, bits = 8 * width;
    if (encoding == RF_ENCODING_DENSE) {
        return 1;
    }
    if (spec->update.from != NULL || rf_update_unit(plan, family) > 0 ||
        plan->model->families[family].is_result) {
        return 0;
    }
    if (width == 2 ? rf_encoding_is_diff(encoding) : may_compress(encoding)) {
        bits = difference_bits(&spec->update);
    }
    share = rf_update_share(plan, family);
    bits = share * bits + entropy(share) + entropy(1 - share);
    return RF_MIN(bits / (8 * width), 1.0);
}
