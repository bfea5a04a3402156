/* Quantising on a rank. See rank_quantize.h. */
#include "worker/rank/rank_quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"

enum rf_status rf_rank_amax_make(const struct rf_plan *plan,
                                 const struct rf_quantize *what,
                                 struct rf_rank_amax *amax, struct rf_err *err)
{
    bool scaled = false; /* tensors, on any rank */
    for (uint32_t i = 0; i < RF_SIDES_MAX; i++) {
        scaled |= plan->converted[i] != NULL &&
                  rf_quant_has_tensor_scale(plan->converted[i]->format);
    }
    if (scaled) {
        RF_TRY(rf_quantize_check(plan, &amax->exchanged, err));
    }
    if (what->n_joined > 0) {
        amax->of = rf_xcalloc(what->n_joined, sizeof(*amax->of));
        amax->parts = rf_xcalloc(what->n_joined, sizeof(*amax->parts));
    }
    return RF_OK;
}

void rf_rank_amax_free(struct rf_rank_amax *amax)
{
    free(amax->of);
    free(amax->parts);
    *amax = (struct rf_rank_amax){.of = NULL};
}

/* --- Groups --- */

/* About a millisecond's work. */
#define PART_BYTES (UINT64_C(1) << 20)

void rf_rank_groups_make(const struct rf_method_env *env,
                         const struct rf_quantize *what,
                         struct rf_rank_groups *groups)
{
    if (what->n > 0 && rf_converts_meanwhile(env->plan) &&
        env->memory->quantizer_part != NULL) {
        groups->of = rf_conversions_make(env->plan, env->schedule, env->rank,
                                         what, &groups->n);
    }
}

void rf_rank_groups_free(struct rf_rank_groups *groups)
{
    free(groups->of);
    *groups = (struct rf_rank_groups){.of = NULL};
}

/* Whether the conversion in hand is for a group, or at a sender for one before:
 * its groups come in order, those of a receiver arrive in any. */
static bool is_due(const struct rf_rank_quantize *quantize, uint32_t group)
{
    const struct rf_rank_groups *groups = quantize->groups;
    if (groups->at == groups->n) {
        return false;
    }
    return rf_quantize_side(quantize->env->plan) == RF_TRAIN
               ? groups->of[groups->at].group <= group
               : groups->of[groups->at].group == group;
}

/* Moves on to the first conversion of a group that a receiver has. */
static void go_to(const struct rf_rank_quantize *quantize, uint32_t group)
{
    struct rf_rank_groups *groups = quantize->groups;
    groups->at = 0;
    while (groups->at < groups->n && groups->of[groups->at].group < group) {
        groups->at++;
    }
}

/* Converts a part of what is in hand, and moves on behind its last row. */
static enum rf_status convert_part(const struct rf_rank_quantize *quantize,
                                   struct rf_err *err)
{
    struct rf_rank_groups *groups = quantize->groups;
    const struct rf_conversion *now = &groups->of[groups->at];
    const uint64_t *extent =
        &quantize->what->matrices[now->matrix].box.extent[RF_DIM_TENSOR];
    const uint64_t most =
        RF_MAX(PART_BYTES / (sizeof(uint16_t) * extent[1]), RF_CONVERSION_ROWS);
    const struct rf_quantize_rows part = {
        now->matrix, now->row + groups->done,
        RF_MIN(now->rows - groups->done,
               most / RF_CONVERSION_ROWS * RF_CONVERSION_ROWS)};
    RF_TRY(quantize->env->memory->quantizer_part(
        quantize->quantizer, quantize->amax->of, &part, err));
    groups->done += part.rows;
    if (groups->done == now->rows) {
        groups->done = 0;
        groups->at++;
    }
    return RF_OK;
}

static enum rf_status convert_up_to(const struct rf_rank_quantize *quantize,
                                    uint32_t group, struct rf_err *err)
{
    while (is_due(quantize, group)) {
        RF_TRY(convert_part(quantize, err));
    }
    return RF_OK;
}

enum rf_status rf_rank_quantize_part(const struct rf_rank_quantize *quantize,
                                     uint32_t group, bool *done,
                                     struct rf_err *err)
{
    const int64_t before = rf_now_ns();
    if (rf_quantize_side(quantize->env->plan) == RF_INFER &&
        !is_due(quantize, group)) {
        go_to(quantize, group);
    }
    if (is_due(quantize, group)) {
        RF_TRY(convert_part(quantize, err));
    }
    *done = !is_due(quantize, group);
    quantize->groups->ns += rf_now_ns() - before;
    return RF_OK;
}

enum rf_status rf_rank_quantize_rest(const struct rf_rank_quantize *quantize,
                                     struct rf_err *err)
{
    return convert_up_to(quantize, RF_NO_GROUP, err);
}

/* --- Largest magnitudes --- */

static int compare_parts(const void *a, const void *b)
{
    const struct rf_rank_amax_part *x = a;
    const struct rf_quantize_joined *y = b;
    return RF_THEN_BY(RF_COMPARE(x->family, y->family),
                      RF_THEN_BY(RF_COMPARE(x->layer_index, y->layer_index),
                                 RF_COMPARE(x->expert, y->expert)));
}

/* Raises this rank's magnitudes by those of another. */
static enum rf_status take_parts(const struct rf_rank_quantize *quantize,
                                 const struct rf_blob *blob, struct rf_err *err)
{
    const struct rf_quantize *what = quantize->what;
    struct rf_rank_amax_part part;
    if (quantize->amax->of == NULL) { /* it has no such tensors */
        return RF_OK;
    }
    for (size_t at = 0; at + sizeof(part) <= blob->size; at += sizeof(part)) {
        const struct rf_quantize_joined *found;
        memcpy(&part, (const uint8_t *)blob->data + at, sizeof(part));
        found = bsearch(&part, what->joined, what->n_joined,
                        sizeof(*what->joined), compare_parts);
        if (!isfinite(part.amax)) {
            return rf_err_set(err, RF_ERR_PROTOCOL,
                              "a rank sent a largest magnitude that is not "
                              "finite");
        }
        if (found != NULL) {
            float *amax = &quantize->amax->of[found - what->joined];
            *amax = RF_MAX(*amax, part.amax);
        }
    }
    return RF_OK;
}

/* Each rank sends the magnitudes of tensors that it holds in part. */
static enum rf_status exchange(const struct rf_rank_quantize *quantize,
                               struct rf_err *err)
{
    const struct rf_method_env *env = quantize->env;
    const struct rf_quantize *what = quantize->what;
    const size_t n_joined = quantize->amax->of != NULL ? what->n_joined : 0;
    struct rf_blob *all = NULL;
    size_t n = 0;
    enum rf_status status;
    for (size_t i = 0; i < n_joined; i++) {
        const struct rf_quantize_joined *joined = &what->joined[i];
        if (!joined->whole) {
            quantize->amax->parts[n++] = (struct rf_rank_amax_part){
                joined->family, joined->layer_index, joined->expert,
                quantize->amax->of[i]};
        }
    }
    status = rf_share(env, quantize->amax->parts,
                      n * sizeof(*quantize->amax->parts), &all, err);
    for (uint32_t r = 0; status == RF_OK && r < env->plan->world->n_ranks;
         r++) {
        status = take_parts(quantize, &all[r], err);
    }
    rf_shared_free(env, &all);
    return status;
}

/* Records time since *since_ns, which moves on to now. */
static int64_t spent(const struct rf_rank_quantize *quantize,
                     enum rf_trace_kind kind, int64_t *since_ns)
{
    const struct rf_trace_event event = {*since_ns, rf_now_ns(), 0, RF_NO_OP,
                                         kind};
    if (quantize->env->trace != NULL) {
        rf_trace_add(quantize->env->trace, &event);
    }
    *since_ns = event.end_ns;
    return event.end_ns - event.start_ns;
}

/* All that the window has, at once. */
static enum rf_status convert_all(const struct rf_rank_quantize *quantize,
                                  int64_t *ns, struct rf_err *err)
{
    const int64_t before = rf_now_ns();
    if (quantize->groups->of == NULL) {
        return quantize->env->memory->quantizer_run(
            quantize->quantizer, quantize->amax->of, ns, err);
    }
    RF_TRY(convert_up_to(quantize, 0, err));
    *ns = rf_now_ns() - before;
    return RF_OK;
}

enum rf_status rf_rank_quantize_run(const struct rf_rank_quantize *quantize,
                                    int64_t *ns, int64_t *amax_ns,
                                    struct rf_err *err)
{
    const struct rf_method_env *env = quantize->env;
    int64_t at_ns = rf_now_ns(), found_ns = 0;
    *ns = *amax_ns = 0;
    quantize->groups->ns = 0;
    quantize->groups->at = quantize->groups->done = 0;
    if (quantize->amax->of != NULL && quantize->quantizer != NULL) {
        RF_TRY(env->memory->quantizer_amax(quantize->quantizer,
                                           quantize->amax->of, err));
        found_ns = spent(quantize, RF_TRACE_QUANTIZE, &at_ns);
    }
    if (quantize->amax->exchanged) {
        RF_TRY(exchange(quantize, err));
        *amax_ns = spent(quantize, RF_TRACE_WAIT, &at_ns);
    }
    *ns = found_ns;
    if (quantize->quantizer != NULL &&
        !rf_spec_quantize(env->plan->spec)->overlaps) {
        RF_TRY(convert_all(quantize, ns, err));
        spent(quantize, RF_TRACE_QUANTIZE, &at_ns);
        *ns += found_ns;
    }
    return RF_OK;
}
