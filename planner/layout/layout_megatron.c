/*
 * Megatron-LM's layout.
 *
 * linear_qkv holds, for each query group in turn, the rows of its queries, its
 * key and its value; these rows are split evenly over TP, also when TP exceeds
 * the groups. Where keys double as values, the rows of values exist but are
 * never read. linear_fc1 holds [gate; up] of the rank's columns, for dense
 * MLPs, shared and routed experts. Vocabulary rows are padded to a multiple of
 * make_vocab_size_divisible_by times TP, of the training side unless the other
 * sets its own. With tied embeddings and PP > 1 the last stage has a copy of
 * the embedding. A vision tower is Hugging Face's module, whole on every rank
 * of the first stage.
 */
#include "planner/layout/layout_section.h"

#include <stdlib.h>

#include "common/mem.h"
#include "planner/model/roles.h"

/* One part of a group's rows: queries, key or value. */
struct group_part {
    struct rf_section whole; /* its rows of all groups, on one rank */
    uint64_t rows;           /* rows per group */
    bool unread;             /* padding: never read */
};

/* A rank's rows [start, end) of the fused parameter. */
struct fused {
    uint64_t start, end;
    struct rf_section *of;
    size_t n, cap;
};

/* Adds the rank's share of rows [first, first + part.rows) of the fused
 * parameter, which are rows [at, …) of the part. */
static void add_rows(struct fused *fused, const struct group_part *part,
                     uint64_t first, uint64_t at)
{
    uint64_t from = RF_MAX(first, fused->start);
    uint64_t to = RF_MIN(first + part->rows, fused->end);
    struct rf_section section = part->whole;
    if (from >= to) {
        return;
    }
    section.start[section.dim] += at + (from - first);
    section.rows = to - from;
    section.extent[section.dim] = part->unread ? 0 : section.rows;
    RF_PUSH(fused->of, fused->n, fused->cap, section);
}

/* Finds all rows of a member, which must consist of whole groups. */
static enum rf_status find_part(const struct rf_layout_build *build,
                                struct rf_param_member member, uint64_t groups,
                                struct group_part *out, struct rf_err *err)
{
    const struct rf_family *family = &build->model->families[member.family];
    const struct rf_part *part = &family->parts[member.part];
    struct rf_section *whole = &out->whole;
    if (part->size % groups != 0) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: %llu rows do not divide into %llu query groups",
                          family->name, (unsigned long long)part->size,
                          (unsigned long long)groups);
    }
    *whole = (struct rf_section){.family = member.family,
                                 .dim = rf_family_part_dim(family),
                                 .n_experts = family->n_experts};
    for (uint32_t d = 0; d < family->ndim; d++) {
        whole->extent[d] = family->shape[d];
    }
    for (uint32_t p = 0; p < member.part; p++) {
        whole->start[whole->dim] += family->parts[p].size;
    }
    out->rows = part->size / groups;
    return RF_OK;
}

/* Adds the fused parameter of queries, keys and values. */
static enum rf_status add_groups(struct rf_layout_build *build,
                                 const struct rf_param_scheme *scheme,
                                 struct rf_err *err)
{
    const struct rf_family *families = build->model->families;
    const struct rf_family *query = &families[scheme->members[0].family];
    const struct rf_family *key = &families[scheme->members[1].family];
    uint32_t tp = build->side->tp;
    uint64_t groups = RF_MAX(
        rf_part_units(build->model, &key->parts[scheme->members[1].part]), 1);
    uint64_t group_rows = 0, share;
    struct group_part parts[3];
    struct fused fused = {.start = 0};
    enum rf_status status;
    for (uint32_t i = 0; i < 3; i++) {
        parts[i].unread =
            i == 2 && families[scheme->members[i].family].keys_are_values;
        RF_TRY(find_part(build, scheme->members[i], groups, &parts[i], err));
        group_rows += parts[i].rows;
    }
    if (group_rows * groups % tp != 0) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: %llu rows with keys and values do not divide "
                          "over tp %u",
                          query->name,
                          (unsigned long long)(group_rows * groups), tp);
    }
    share = group_rows * groups / tp;
    fused.start = share * build->at.tp;
    fused.end = fused.start + share;
    for (uint64_t g = fused.start / group_rows; g * group_rows < fused.end;
         g++) {
        uint64_t first = g * group_rows;
        for (uint32_t i = 0; i < 3; i++) {
            add_rows(&fused, &parts[i], first, g * parts[i].rows);
            first += parts[i].rows;
        }
    }
    status = rf_layout_add(build, scheme->name, fused.of, fused.n, err);
    free(fused.of);
    return status;
}

static enum rf_status make_megatron(struct rf_layout_build *build,
                                    struct rf_err *err)
{
    for (size_t i = 0; i < build->n_schemes; i++) {
        const struct rf_param_scheme *scheme = &build->schemes[i];
        if (rf_layout_holds(build, scheme->members[0].family)) {
            RF_TRY(scheme->by_group ? add_groups(build, scheme, err)
                                    : rf_layout_add_scheme(build, scheme, err));
        }
    }
    return RF_OK;
}

static uint64_t vocab_multiple(const struct rf_spec *spec, enum rf_side side)
{
    /* The trainer decides; the engine loads the trainer's padding. */
    const struct rf_side_spec *own = &spec->side[side];
    const struct rf_side_spec *padded =
        own->vocab_divisor_given || spec->train.layout != RF_LAYOUT_MEGATRON
            ? own
            : &spec->train;
    return RF_MAX((uint64_t)padded->vocab_divisor * padded->tp, 1);
}

static const struct rf_fusion fusions[] = {
    {"linear_qkv", {RF_ROLE_Q, RF_ROLE_K, RF_ROLE_V}, 3, true},
    {"linear_fc1", {RF_ROLE_GATE, RF_ROLE_UP}, 2, false},
    {"linear_fc1", {RF_ROLE_SHARED_GATE, RF_ROLE_SHARED_UP}, 2, false},
    {"linear_fc1", {RF_ROLE_EXPERT_GATE, RF_ROLE_EXPERT_UP}, 2, false},
};

const struct rf_layout_ops rf_layout_megatron = {
    .fusions = fusions,
    .n_fusions = RF_ARRAY_SIZE(fusions),
    .tied_copy = true,
    .vocab_multiple = vocab_multiple,
    .make = make_megatron,
};
