/*
 * The rules common to all frameworks: the contents of a rank of a TP/EP/ETP
 * mesh.
 *
 * - each part of a tensor by the table of roles (planner/model/roles.h),
 *   in equal shares over TP or ETP;
 * - experts in contiguous ranges over EP;
 * - the rest whole, including tensors without a rule where the model allows
 *   it (planner/layout/unknown_tensors.h).
 *
 * When TP exceeds the key/value heads, each goes whole to TP / heads ranks; the
 * only group of a state space model goes to all ranks.
 */
#include "planner/layout/layout_section.h"

#include "common/mem.h"
#include "planner/model/roles.h"

/* The rank's share of a part. A copy of the embedding is an output head. */
static struct rf_share share_of(const struct rf_layout_build *build,
                                const struct rf_family *family,
                                const struct rf_part *part, bool copy)
{
    uint32_t tp = build->side->tp;
    if (rf_role_division(part->role)->over == RF_OVER_ETP) {
        return (struct rf_share){build->at.etp, build->side->etp};
    }
    tp = copy ? tp : rf_layout_tp_ranks(build->side, family, part, tp);
    return (struct rf_share){build->at.tp % tp, tp};
}

/* Gives each rank as many whole grains as the largest share has; the last ranks
 * get the rest, or none. */
static void deal(struct rf_share share, uint64_t grain, uint64_t base,
                 uint64_t size, struct rf_section *out)
{
    uint64_t most = rf_div_up(rf_div_up(size, grain), share.parts) * grain;
    uint64_t start = RF_MIN(share.part * most, size);
    out->rows = out->extent[out->dim] = RF_MIN(most, size - start);
    out->start[out->dim] = base + start;
}

/* Cuts a share of `size` elements, or turns, of the section's dimension, from
 * `base`. */
static enum rf_status cut(const struct rf_layout_build *build,
                          struct rf_share share, uint64_t base, uint64_t size,
                          struct rf_section *out, struct rf_err *err)
{
    const struct rf_family *family = &build->model->families[out->family];
    const uint64_t turn = family->interleaved ? family->n_parts : 1;
    if (rf_layout_deals(build->ops, family, out->dim)) {
        deal(share, rf_layout_grain(build->side, family, out->dim) / turn, base,
             size, out);
        return RF_OK;
    }
    if (size % share.parts != 0) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: dimension %u has %llu elements, which do not "
                          "divide over %u ranks",
                          family->name, out->dim, (unsigned long long)size,
                          share.parts);
    }
    out->rows = out->extent[out->dim] = size / share.parts;
    out->start[out->dim] = base + share.part * out->rows;
    return RF_OK;
}

/* Cuts the rows of a vocabulary, padded at the end to a multiple. */
static enum rf_status cut_vocabulary(const struct rf_layout_build *build,
                                     struct rf_share share, uint64_t base,
                                     uint64_t rows, struct rf_section *out,
                                     struct rf_err *err)
{
    uint64_t padded = rf_layout_vocab_rows(build->ops, build->vocab_multiple,
                                           rows, share.parts);
    uint32_t dim = out->dim;
    RF_TRY(cut(build, share, base, padded, out, err));
    if (out->start[dim] >= base + rows) {
        out->start[dim] = out->extent[dim] = 0;
    } else {
        out->extent[dim] =
            RF_MIN(out->extent[dim], base + rows - out->start[dim]);
    }
    return RF_OK;
}

/* Cuts between heads or groups; ranks that outnumber units share them if the
 * units repeat. The model's own heads, where they do not repeat, are cut like
 * elements. */
static enum rf_status cut_units(const struct rf_layout_build *build,
                                struct rf_share share, uint64_t base,
                                const struct rf_part *part,
                                struct rf_section *out, struct rf_err *err)
{
    const struct rf_role_division *division = rf_role_division(part->role);
    uint64_t units = rf_part_units(build->model, part), parts = share.parts;
    bool repeats = rf_role_repeats(part->role, units) && build->ops->repeat_kv;
    if (units == 0 || part->size % units != 0 ||
        (part->units == 0 && !repeats)) {
        return cut(build, share, base, part->size, out, err);
    }
    if (parts <= units ? units % parts != 0 : !repeats || parts % units != 0) {
        return rf_err_set(
            err, RF_ERR_CONFIG,
            "%s: %llu %s need a tp that divides their number%s, not %u",
            build->model->families[out->family].name, (unsigned long long)units,
            division->unit == RF_UNIT_KV_HEAD ? "key/value heads" : "heads",
            repeats ? " or is a multiple of it" : "", share.parts);
    }
    share.parts = (uint32_t)RF_MIN(parts, units);
    share.part /= (uint32_t)(parts / share.parts);
    return cut(build, share, base, part->size, out, err);
}

/* Cuts alternating parts together, never between the elements of one turn. */
static enum rf_status cut_turns(const struct rf_layout_build *build,
                                struct rf_share share,
                                const struct rf_family *family,
                                struct rf_section *out, struct rf_err *err)
{
    uint64_t turns = family->parts[0].size;
    enum rf_status status = cut(build, share, 0, turns, out, err);
    out->start[out->dim] *= family->n_parts;
    out->extent[out->dim] *= family->n_parts;
    out->rows *= family->n_parts;
    return status;
}

static enum rf_status find_experts(const struct rf_layout_build *build,
                                   const struct rf_family *of,
                                   struct rf_section *out, struct rf_err *err)
{
    out->n_experts = of->n_experts;
    if (!of->has_experts) {
        return RF_OK;
    }
    if (of->n_experts % build->side->ep != 0) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%u experts of %s do not divide over ep %u",
                          of->n_experts, of->name, build->side->ep);
    }
    out->n_experts = of->n_experts / build->side->ep;
    out->first_expert = build->at.ep * out->n_experts;
    return RF_OK;
}

/* Finds the rank's section of a part of a family. Extents may be 0. */
static enum rf_status find_section(const struct rf_layout_build *build,
                                   struct rf_param_member member,
                                   struct rf_section *out, struct rf_err *err)
{
    const struct rf_family *of = &build->model->families[member.family];
    const struct rf_part *part = &of->parts[member.part];
    const struct rf_role_division *division = rf_role_division(part->role);
    bool copy = rf_layout_is_copy(build, member.family);
    struct rf_share share = share_of(build, of, part, copy);
    uint64_t base = 0;
    *out = (struct rf_section){.family = member.family,
                               .dim = rf_family_part_dim(of)};
    for (uint32_t d = 0; d < of->ndim; d++) {
        out->extent[d] = of->shape[d];
    }
    for (uint32_t p = 0; p < member.part && !of->interleaved; p++) {
        base += of->parts[p].size;
    }
    if (copy ? !rf_family_is_cut(of, part)
             : !rf_layout_divides(build->side, of, part)) {
        out->dim = out->dim < of->ndim ? out->dim : 0;
        out->start[out->dim] = base;
        out->rows = out->extent[out->dim] = of->n_parts > 1 && !of->interleaved
                                                ? part->size
                                                : of->shape[out->dim];
        return find_experts(build, of, out, err);
    }
    RF_TRY(of->interleaved ? cut_turns(build, share, of, out, err)
           : division->vocabulary
               ? cut_vocabulary(build, share, base, part->size, out, err)
               : cut_units(build, share, base, part, out, err));
    return find_experts(build, of, out, err);
}

enum rf_status rf_layout_add_scheme(struct rf_layout_build *build,
                                    const struct rf_param_scheme *scheme,
                                    struct rf_err *err)
{
    struct rf_section sections[RF_FAMILY_MAX_PARTS];
    for (uint32_t k = 0; k < scheme->n_members; k++) {
        RF_TRY(find_section(build, scheme->members[k], &sections[k], err));
    }
    return rf_layout_add(build, scheme->name, sections, scheme->n_members, err);
}

enum rf_status rf_layout_make_params(struct rf_layout_build *build,
                                     struct rf_err *err)
{
    for (size_t i = 0; i < build->n_schemes; i++) {
        const struct rf_param_scheme *scheme = &build->schemes[i];
        if (rf_layout_holds(build, scheme->members[0].family)) {
            RF_TRY(rf_layout_add_scheme(build, scheme, err));
        }
    }
    return RF_OK;
}

/* Hugging Face's layout follows only these rules: tensors under their
 * checkpoint names, unfused. */
const struct rf_layout_ops rf_layout_hf = {
    .repeat_kv = true,
    .keep_stacked = true,
    .vocab_multiple = rf_layout_no_padding,
    .make = rf_layout_make_params,
};
