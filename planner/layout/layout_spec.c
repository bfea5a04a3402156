/*
 * Alpa's sharding specs: devices form a mesh of two axes, numbered row by row,
 * and each dimension of a tensor is whole (R) or cut over axis 0 (S0), axis 1
 * (S1) or both (S01, axis 0 slower). A dimension that does not divide is cut
 * into chunks of ceil(size / parts); the last may be smaller, and a spec that
 * would leave one empty is refused.
 */
#include "planner/layout/layout_params.h"

#include <string.h>

#include "common/mem.h"

static enum rf_status make_spec(struct rf_layout_build *build,
                                struct rf_err *err)
{
    const struct rf_side_spec *side = build->side;
    uint64_t device = build->index % ((uint64_t)side->mesh[0] * side->mesh[1]);
    uint64_t at[2] = {device / side->mesh[1], device % side->mesh[1]};
    for (uint32_t f = 0; f < build->model->n_families; f++) {
        const struct rf_family *family = &build->model->families[f];
        struct rf_section section = {.family = f,
                                     .n_experts = family->n_experts};
        if (side->n_spec != family->ndim) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "%s has %u dimensions, the spec has %u entries",
                              family->name, family->ndim, side->n_spec);
        }
        for (uint32_t d = 0; d < family->ndim; d++) {
            uint64_t parts = 1, part = 0, chunk, size = family->shape[d];
            for (uint32_t axis = 0; axis < 2; axis++) {
                if (strchr(side->spec[d], axis == 0 ? '0' : '1') != NULL) {
                    part = part * side->mesh[axis] + at[axis];
                    parts *= side->mesh[axis];
                }
            }
            chunk = rf_div_up(size, parts);
            if ((parts - 1) * chunk >= size) {
                return rf_err_set(
                    err, RF_ERR_CONFIG,
                    "%s: dimension %u has %llu elements: over %llu devices in "
                    "chunks of %llu, the last shard would be empty",
                    family->name, d, (unsigned long long)size,
                    (unsigned long long)parts, (unsigned long long)chunk);
            }
            section.start[d] = part * chunk;
            section.extent[d] = RF_MIN(chunk, size - section.start[d]);
        }
        section.rows = section.extent[0];
        RF_TRY(rf_layout_add(build, family->name, &section, 1, err));
    }
    return RF_OK;
}

const struct rf_layout_ops rf_layout_spec = {
    .by_device = true,
    .vocab_multiple = rf_layout_no_padding,
    .make = make_spec,
};
