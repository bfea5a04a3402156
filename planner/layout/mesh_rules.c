/*
 * The meshes that a model allows. A failed rule names itself and the nearest
 * values of the failing size that pass all its rules.
 *
 * The sizes are checked independently here (tp, etp, ep, pp each against the
 * model), so a suggestion for one holds whatever the others are; world.c checks
 * the number of ranks.
 */
#include "planner/layout/mesh_rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/layout.h"
#include "planner/layout/layout_rules.h"
#include "planner/layout/unknown_tensors.h"
#include "planner/model/roles.h"

struct rule_context {
    const struct rf_spec *spec;
    enum rf_side which;
    const struct rf_side_spec *side;
    const struct rf_layout_ops *layout;
    const struct rf_model *model;
    bool searching; /* other values are tried: no reason is wanted */
    char why[320];  /* the rule that failed last, unless searching */
};

/* Whether `value` passes all rules of one size; if not, sets context->why
 * unless other values are only tried. */
typedef bool (*works_fn)(struct rule_context *context, uint32_t value);

static bool breaks(struct rule_context *context, const char *fmt, ...)
    RF_PRINTF(2, 3);
static bool breaks(struct rule_context *context, const char *fmt, ...)
{
    if (!context->searching) {
        va_list args;
        va_start(args, fmt);
        vsnprintf(context->why, sizeof(context->why), fmt, args);
        va_end(args);
    }
    return false;
}

/* "key value is impossible: rule; nearest values of key that work: a, b".
 * `works` has just failed for `value`. */
static enum rf_status fail_with_nearest(struct rule_context *context,
                                        const char *key, uint32_t value,
                                        works_fn works, struct rf_err *err)
{
    char list[96] = "";
    uint32_t below = value - 1, above = value + 1;
    if (err == NULL) { /* nobody reads it */
        return RF_ERR_CONFIG;
    }
    context->searching = true;
    while (below > 0 && !works(context, below)) {
        below--;
    }
    while (above <= RF_SIDE_SIZE_MAX && !works(context, above)) {
        above++;
    }
    if (above > RF_SIDE_SIZE_MAX) {
        above = 0;
    }
    if (below > 0 && above > 0) {
        snprintf(list, sizeof(list), "; nearest values of %s that work: %u, %u",
                 key, below, above);
    } else if (below > 0 || above > 0) {
        snprintf(list, sizeof(list), "; nearest value of %s that works: %u",
                 key, RF_MAX(below, above));
    }
    return rf_world_fail(context->spec, context->which, err,
                         "%s %u is impossible: %s%s", key, value, context->why,
                         list);
}

typedef bool (*part_works_fn)(struct rule_context *context,
                              const struct rf_family *family,
                              const struct rf_part *part, uint32_t value);

/* Whether `works` accepts each part that the side divides over `over`. */
static bool parts_work(struct rule_context *context, enum rf_over over,
                       uint32_t value, part_works_fn works)
{
    for (uint32_t i = 0; i < context->model->n_families; i++) {
        const struct rf_family *family = &context->model->families[i];
        for (uint32_t p = 0; p < family->n_parts; p++) {
            const struct rf_part *part = &family->parts[p];
            if (rf_role_division(part->role)->over == over &&
                rf_layout_divides(context->side, family, part) &&
                !works(context, family, part, value)) {
                return false;
            }
        }
    }
    return true;
}

/* Whether a part with role `only` (RF_ROLE_COUNT: any) is cut by the model's
 * heads. */
static bool has_heads(const struct rf_model *model, enum rf_role only)
{
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        for (uint32_t p = 0; p < family->n_parts; p++) {
            const struct rf_part *part = &family->parts[p];
            enum rf_unit unit = rf_role_division(part->role)->unit;
            if (part->units == 0 && rf_family_is_cut(family, part) &&
                (unit == RF_UNIT_HEAD || unit == RF_UNIT_KV_HEAD) &&
                (only == RF_ROLE_COUNT || only == part->role)) {
                return true;
            }
        }
    }
    return false;
}

static bool has_kv_heads(const struct rf_model *model)
{
    return has_heads(model, RF_ROLE_K) || has_heads(model, RF_ROLE_V);
}

/* For messages: the size that divides heads. */
static const char *heads_over(const struct rule_context *context)
{
    return context->side->attention_dp > 1 ? "(tp / attention_dp)" : "tp";
}

/* Checks heads against the ranks that share them, also for latent attention. */
static bool attention_works(struct rule_context *context, uint32_t tp)
{
    const struct rf_model *model = context->model;
    const char *group = heads_over(context);
    uint64_t rows;
    if (model->heads % tp != 0) {
        return breaks(context, "%s must divide num_attention_heads (%u)", group,
                      model->heads);
    }
    if (!has_kv_heads(model)) {
        return true;
    }
    if (model->kv_heads % tp != 0 && tp % model->kv_heads != 0) {
        return breaks(
            context,
            "%s must divide num_key_value_heads (%u) or be a multiple of it",
            group, model->kv_heads);
    }
    rows = (model->heads + 2ull * model->kv_heads) * model->head_dim;
    if (rf_layout_fuses_groups(context->layout) && rows % tp != 0) {
        return breaks(context,
                      "tp must divide the %llu fused rows of q, k and v",
                      (unsigned long long)rows);
    }
    return true;
}

/* Checks the rows of a vocabulary, with the layout's padding for that tp. */
static bool vocab_works(struct rule_context *context,
                        const struct rf_part *part, uint32_t tp, uint32_t ranks)
{
    struct rf_spec changed = *context->spec;
    uint64_t rows;
    changed.side[context->which].tp = tp;
    rows = rf_layout_vocab_rows(
        context->layout,
        context->layout->vocab_multiple(&changed, context->which), part->size,
        ranks);
    if (rows % ranks != 0) {
        return breaks(context,
                      "the %llu rows of the vocabulary%s must split evenly",
                      (unsigned long long)rows,
                      rows == part->size ? ""
                      : context->side->layout == RF_LAYOUT_MEGATRON
                          ? " with padding (make_vocab_size_divisible_by)"
                          : " with padding");
    }
    return true;
}

/* Checks a part's own number of heads. */
static bool units_work(struct rule_context *context,
                       const struct rf_family *family,
                       const struct rf_part *part, uint32_t tp)
{
    bool repeats = rf_role_repeats(part->role, part->units) &&
                   (context->layout->repeat_kv ||
                    (rf_layout_fuses_groups(context->layout) &&
                     rf_role_division(part->role)->unit == RF_UNIT_KV_HEAD));
    if (part->units % tp == 0 || (repeats && tp % part->units == 0)) {
        return true;
    }
    return breaks(context, "%s must divide the %llu heads of %.120s%s",
                  heads_over(context), (unsigned long long)part->units,
                  family->name, repeats ? " or be a multiple of them" : "");
}

static bool extent_works(struct rule_context *context,
                         const struct rf_family *family,
                         const struct rf_part *part, uint32_t ranks,
                         const char *key)
{
    return part->size % ranks == 0 ||
           rf_layout_deals(context->layout, family,
                           rf_family_part_dim(family)) ||
           breaks(context, "%llu of %.120s %% %s must be 0",
                  (unsigned long long)part->size, family->name, key);
}

/* Checks a part that tp splits. Rows of keys and values have their own rule. */
static bool tp_part_works(struct rule_context *context,
                          const struct rf_family *family,
                          const struct rf_part *part, uint32_t tp)
{
    const struct rf_role_division *division = rf_role_division(part->role);
    uint32_t ranks = rf_layout_tp_ranks(context->side, family, part, tp);
    if (division->vocabulary) {
        return vocab_works(context, part, tp, ranks);
    }
    if (part->units != 0) {
        return units_work(context, family, part, ranks);
    }
    return division->unit == RF_UNIT_KV_HEAD ||
           extent_works(context, family, part, ranks,
                        ranks == tp ? "tp" : heads_over(context));
}

static bool tp_works(struct rule_context *context, uint32_t tp)
{
    const struct rf_model *model = context->model;
    uint32_t groups = context->side->attention_dp;
    if (tp % groups != 0) {
        return breaks(context, "tp must be a multiple of attention_dp (%u)",
                      groups);
    }
    if (model->heads > 0 && has_heads(model, RF_ROLE_COUNT) &&
        !attention_works(context, tp / groups)) {
        return false;
    }
    return parts_work(context, RF_OVER_TP, tp, tp_part_works);
}

static bool etp_part_works(struct rule_context *context,
                           const struct rf_family *family,
                           const struct rf_part *part, uint32_t etp)
{
    return extent_works(context, family, part, etp, "etp");
}

/* Without dp, as many engines as fill the slots. */
static bool spans_engine(const struct rf_side_spec *side, uint32_t ep)
{
    const uint64_t group = (uint64_t)side->tp * side->cp;
    return side->dp_given
               ? (uint64_t)ep * side->dp_replicate == group * side->dp
               : ep % group == 0;
}

static bool etp_works(struct rule_context *context, uint32_t etp)
{
    const struct rf_side_spec *side = context->side;
    if (context->layout->experts_over_all && side->ep > 1 && etp != 1) {
        return breaks(context,
                      "etp must be 1 where ep is %u with layout %s, which "
                      "keeps experts whole",
                      side->ep, rf_layout_kind_name(side->layout));
    }
    if (context->layout->experts_in_tp &&
        side->tp % ((uint64_t)etp * side->ep) != 0) {
        return breaks(
            context,
            "with layout %s etp * ep must divide tp; tp is %u and ep %u",
            rf_layout_kind_name(side->layout), side->tp, side->ep);
    }
    return parts_work(context, RF_OVER_ETP, etp, etp_part_works);
}

static bool ep_works(struct rule_context *context, uint32_t ep)
{
    const struct rf_side_spec *side = context->side;
    bool experts = false;
    if (context->layout->experts_over_all && ep > 1 &&
        !spans_engine(side, ep)) {
        return breaks(context,
                      "with layout %s ep must be 1 or %s (dp is that of one "
                      "engine unless dp_replicate gives the number of engines)",
                      rf_layout_kind_name(side->layout),
                      side->dp_given ? "tp * cp * dp / dp_replicate"
                                     : "a multiple of tp * cp");
    }
    if (context->layout->experts_in_tp && side->tp % ep != 0) {
        return breaks(context, "with layout %s ep must divide tp (%u)",
                      rf_layout_kind_name(side->layout), side->tp);
    }
    for (uint32_t i = 0; i < context->model->n_families; i++) {
        const struct rf_family *family = &context->model->families[i];
        experts |= family->has_experts;
        if (family->has_experts && family->n_experts % ep != 0) {
            return breaks(context, "ep must divide the number of experts (%u)",
                          family->n_experts);
        }
    }
    return experts || ep == 1 || breaks(context, "the model has no experts");
}

static bool pp_works(struct rule_context *context, uint32_t pp)
{
    struct rf_side_spec side = *context->side;
    struct rf_err err = {0};
    side.pp = pp;
    if (context->model->n_layers == 0) {
        return pp == 1 || breaks(context, "the model has no layers");
    }
    if (pp < 2 && side.vpp > 1) {
        return breaks(context, "vpp needs pp of at least 2");
    }
    return rf_stage_starts(context->layout, &side, context->model->n_layers,
                           NULL, context->searching ? NULL : &err) == RF_OK ||
           breaks(context, "%s", err.text);
}

/* Checks a sharding spec against every tensor of the model. */
static enum rf_status check_sharding(const struct rule_context *context,
                                     struct rf_err *err)
{
    const struct rf_side_spec *side = context->side;
    for (uint32_t i = 0; i < context->model->n_families; i++) {
        const struct rf_family *family = &context->model->families[i];
        if (family->ndim != side->n_spec) {
            return rf_world_fail(context->spec, context->which, err,
                                 "spec names %u dimensions, %.120s has %u",
                                 side->n_spec, family->name, family->ndim);
        }
        for (uint32_t d = 0; d < side->n_spec; d++) {
            uint64_t chunks = 1;
            chunks *= strchr(side->spec[d], '0') ? side->mesh[0] : 1;
            chunks *= strchr(side->spec[d], '1') ? side->mesh[1] : 1;
            if (family->shape[d] < chunks) {
                return rf_world_fail(
                    context->spec, context->which, err,
                    "dimension %u of %.120s has %llu elements, fewer than the "
                    "%llu shards of %s",
                    d, family->name, (unsigned long long)family->shape[d],
                    (unsigned long long)chunks, side->spec[d]);
            }
        }
    }
    return RF_OK;
}

/* Whether a copy of the embedding on the last stage is cut like the embedding.
 * Parts of a tensor at the sources must be equal or disjoint. */
static bool copies_match(const struct rule_context *context)
{
    const struct rf_side_spec *side = context->side;
    if (!context->layout->tied_copy || !context->model->tied_embeddings ||
        side->pp < 2) {
        return true;
    }
    for (uint32_t i = 0; i < context->model->n_families; i++) {
        const struct rf_family *family = &context->model->families[i];
        const struct rf_part *part = &family->parts[0];
        if (family->role == RF_ROLE_EMBED && side->tp > 1 &&
            (!rf_layout_divides(side, family, part) ||
             rf_layout_tp_ranks(side, family, part, side->tp) != side->tp)) {
            return false;
        }
    }
    return true;
}

enum rf_status rf_mesh_rules_check_side(const struct rf_spec *spec,
                                        enum rf_side side,
                                        const struct rf_model *model,
                                        struct rf_err *err)
{
    const struct rf_side_spec *self = &spec->side[side];
    struct rule_context context = {.spec = spec,
                                   .which = side,
                                   .side = self,
                                   .layout = rf_layout_ops_of(self->layout),
                                   .model = model};
    bool fused = rf_layout_fuses_groups(context.layout) &&
                 (has_heads(model, RF_ROLE_Q) || has_kv_heads(model));
    if (context.layout->by_device) {
        return check_sharding(&context, err);
    }
    if (context.layout->by_dp) {
        return RF_OK;
    }
    if (model->heads == 0 &&
        (fused || (self->tp > 1 && has_heads(model, RF_ROLE_COUNT)))) {
        return rf_world_fail(
            spec, side, err,
            "layout %s with tp %u needs the number of heads: set "
            "num_attention_heads and num_key_value_heads in \"model\", or give "
            "the model's config.json (as \"config\" beside a manifest, or in "
            "the checkpoint's folder)",
            rf_layout_kind_name(self->layout), self->tp);
    }
    if (!tp_works(&context, self->tp)) {
        return fail_with_nearest(&context, "tp", self->tp, tp_works, err);
    }
    if (!ep_works(&context, self->ep)) {
        return fail_with_nearest(&context, "ep", self->ep, ep_works, err);
    }
    if (!etp_works(&context, self->etp)) {
        return fail_with_nearest(&context, "etp", self->etp, etp_works, err);
    }
    if (side == RF_TRAIN && !copies_match(&context)) {
        return rf_world_fail(
            spec, side, err,
            "pp %u is impossible with layout %s here: the last stage's copy of "
            "the tied embedding would be split differently; nearest value of "
            "pp that works: 1",
            self->pp, rf_layout_kind_name(self->layout));
    }
    if (!pp_works(&context, self->pp)) {
        return self->pp_layers != NULL
                   ? rf_world_fail(spec, side, err, "pp %u is impossible: %s",
                                   self->pp, context.why)
                   : fail_with_nearest(&context, "pp", self->pp, pp_works, err);
    }
    return RF_OK;
}

/* Checks that every dtype conversion of the refit is possible. */
static enum rf_status check_dtypes(const struct rf_spec *spec,
                                   const struct rf_model *model,
                                   struct rf_err *err)
{
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        enum rf_dtype from = rf_side_dtype(&spec->train, family->dtype);
        enum rf_dtype to = rf_side_dtype(&spec->infer, family->dtype);
        enum rf_cast cast;
        if (!rf_cast_between(from, to, &cast)) {
            return rf_world_fail(
                spec, RF_INFER, err,
                "%.120s: no conversion from %s to %s; supported: float32 to or "
                "from bfloat16 or float16%s",
                family->name, rf_dtype_name(from), rf_dtype_name(to),
                to == RF_F8_E4M3 ? "; for fp8 with block scales, keep "
                                   "infer.dtype bfloat16 and set "
                                   "infer.quantize"
                                 : "");
        }
    }
    return RF_OK;
}

enum rf_status rf_mesh_rules_place(struct rf_spec *spec,
                                   const struct rf_model *model,
                                   const uint32_t *slots, uint32_t n_nodes,
                                   struct rf_world **out, struct rf_err *err)
{
    for (uint32_t i = 0; i < spec->n_sides; i++) {
        RF_TRY(rf_mesh_rules_check_side(spec, (enum rf_side)i, model, err));
    }
    RF_TRY(rf_unknown_tensors_check(model, spec, err));
    RF_TRY(check_dtypes(spec, model, err));
    return rf_world_place(spec, slots, n_nodes, out, err);
}
