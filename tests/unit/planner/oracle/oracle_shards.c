/* What a rank holds of flatly sharded models and of tensors with Alpa specs. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "tests/unit/planner/oracle/oracle.h"

static uint64_t elements_of(const struct rf_family *family)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < family->ndim; d++) {
        n *= family->shape[d];
    }
    return n;
}

static uint64_t first_id(const struct oracle *o, uint32_t f, uint32_t place,
                         uint32_t expert)
{
    const struct rf_family *family = &o->model->families[f];
    return o->base[f] +
           ((uint64_t)place * family->n_experts + expert) * elements_of(family);
}

/* Ranks that together hold the weights once, and this rank's place among them:
 * the inner axis of a mesh (dp_replicate, dp_shard). */
static uint32_t group_size(const struct rf_side_spec *side)
{
    uint32_t size = 0;
    while (size * side->dp_replicate < side->dp) {
        size++;
    }
    return size;
}

/* fully_shard(): torch.chunk along dimension 0. */
void oracle_fsdp2(const struct oracle *o, const struct rf_side_spec *side,
                  uint32_t index, struct oracle_rank *out)
{
    for (uint32_t f = 0; f < o->model->n_families; f++) {
        const struct rf_family *family = &o->model->families[f];
        /* Experts in one tensor are its dimension 0. */
        uint64_t rows = family->stacked ? family->n_experts : family->shape[0];
        uint64_t width =
            family->stacked ? elements_of(family) : elements_of(family) / rows;
        uint64_t chunk = (rows + group_size(side) - 1) / group_size(side);
        for (uint32_t l = 0; l < family->n_layers; l++) {
            for (uint32_t e = 0; e < (family->stacked ? 1 : family->n_experts);
                 e++) {
                uint64_t at = 0, mine = 0;
                /* Deal out chunks until the rows are used up. */
                for (uint32_t r = 0; r <= index % group_size(side); r++) {
                    mine = rows - at < chunk ? rows - at : chunk;
                    at += mine;
                }
                if (mine == 0) {
                    continue;
                }
                struct oracle_param *param = oracle_push(out, mine * width);
                for (uint64_t i = 0; i < mine * width; i++) {
                    param->ids[i] =
                        first_id(o, f, l, e) + (at - mine) * width + i;
                }
            }
        }
    }
}

struct flat {
    uint64_t *ids;
    size_t n, cap;
};

/* Place of layer number `layer` in a family, UINT32_MAX: it lacks it. */
static uint32_t place_in(const struct rf_family *family, uint32_t layer)
{
    for (uint32_t i = 0; i < family->n_layers; i++) {
        if (family->layers[i] == layer) {
            return i;
        }
    }
    return UINT32_MAX;
}

static void flatten(const struct oracle *o, uint32_t f, uint32_t place,
                    uint32_t expert, struct flat *flat)
{
    uint64_t first = first_id(o, f, place, expert);
    for (uint64_t i = 0; i < elements_of(&o->model->families[f]); i++) {
        RF_PUSH(flat->ids, flat->n, flat->cap, first + i);
    }
}

/* The flat parameter of a decoder layer: modules in order, the experts' list
 * module one expert after another. `layer` UINT32_MAX: all the rest. */
static void flatten_unit(const struct oracle *o, uint32_t layer,
                         struct flat *flat)
{
    uint32_t n = o->model->n_families;
    for (uint32_t f = 0; f < n; f++) {
        const struct rf_family *family = &o->model->families[f];
        bool in_layer = family->layers != NULL;
        uint32_t place = in_layer ? place_in(family, layer) : 0;
        if (in_layer != (layer != UINT32_MAX) || place == UINT32_MAX) {
            continue;
        }
        if (!family->has_experts) {
            flatten(o, f, place, 0, flat);
            continue;
        }
        uint32_t end = f + 1;
        while (end < n && !family->stacked &&
               o->model->families[end].has_experts &&
               !o->model->families[end].stacked) {
            end++;
        }
        for (uint32_t e = 0; e < family->n_experts; e++) {
            for (uint32_t g = f; g < end; g++) {
                flatten(o, g, place, e, flat);
            }
        }
        f = end - 1;
    }
}

/* The rank's part of a flat parameter, which is padded for it; freed. */
static void hold_part(const struct rf_side_spec *side, uint32_t index,
                      struct flat *flat, struct oracle_rank *out)
{
    uint32_t parts = group_size(side);
    while (flat->n % parts != 0) {
        RF_PUSH(flat->ids, flat->n, flat->cap, ORACLE_PAD);
    }
    size_t share = flat->n / parts;
    if (share > 0) {
        struct oracle_param *param = oracle_push(out, share);
        memcpy(param->ids, flat->ids + index % parts * share,
               share * sizeof(*param->ids));
    }
    free(flat->ids);
}

void oracle_fsdp1(const struct oracle *o, const struct rf_side_spec *side,
                  uint32_t index, struct oracle_rank *out)
{
    for (uint32_t u = 0; u <= o->model->n_layers; u++) {
        struct flat flat = {.ids = NULL};
        flatten_unit(o, u == 0 ? UINT32_MAX : u - 1, &flat);
        hold_part(side, index, &flat, out);
    }
}

/* zero.Init(): each parameter is flat, padded and cut into equal parts. */
void oracle_zero3(const struct oracle *o, const struct rf_side_spec *side,
                  uint32_t index, struct oracle_rank *out)
{
    for (uint32_t f = 0; f < o->model->n_families; f++) {
        const struct rf_family *family = &o->model->families[f];
        for (uint32_t l = 0; l < family->n_layers; l++) {
            struct flat flat = {.ids = NULL};
            for (uint32_t e = 0; e < family->n_experts; e++) {
                flatten(o, f, l, e, &flat);
                if (!family->stacked || e + 1 == family->n_experts) {
                    hold_part(side, index, &flat, out);
                    flat = (struct flat){.ids = NULL};
                }
            }
        }
    }
}

/* Whether mesh place (row, column) has index `i` of a dimension of `size`. */
static bool has_index(const struct rf_side_spec *side, const char *word,
                      uint64_t size, uint64_t i, uint32_t row, uint32_t column)
{
    uint64_t rows = side->mesh[0], cols = side->mesh[1];
    uint64_t tile = size;
    if (strcmp(word, "S0") == 0) {
        tile = (size + rows - 1) / rows;
        return i / tile == row;
    }
    if (strcmp(word, "S1") == 0) {
        tile = (size + cols - 1) / cols;
        return i / tile == column;
    }
    if (strcmp(word, "S01") == 0) {
        tile = (size + rows * cols - 1) / (rows * cols);
        return i / tile == row * cols + column;
    }
    return true;
}

void oracle_alpa(const struct oracle *o, const struct rf_side_spec *side,
                 uint32_t index, struct oracle_rank *out)
{
    for (uint32_t f = 0; f < o->model->n_families; f++) {
        const struct rf_family *family = &o->model->families[f];
        uint64_t total = elements_of(family);
        struct flat mine = {.ids = NULL};
        for (uint64_t id = 0; id < total; id++) {
            uint64_t rest = id;
            bool have = true;
            for (uint32_t d = family->ndim; d-- > 0;) {
                have &= has_index(side, side->spec[d], family->shape[d],
                                  rest % family->shape[d],
                                  index / side->mesh[1], index % side->mesh[1]);
                rest /= family->shape[d];
            }
            if (have) {
                RF_PUSH(mine.ids, mine.n, mine.cap, o->base[f] + id);
            }
        }
        if (mine.n > 0) {
            struct oracle_param *param = oracle_push(out, mine.n);
            memcpy(param->ids, mine.ids, mine.n * sizeof(*param->ids));
        }
        free(mine.ids);
    }
}
