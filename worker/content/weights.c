/* Weights before conversion. See weights.h. */
#include "worker/content/weights.h"

#include <stdlib.h>

#include "checkpoint/slices.h"
#include "common/mem.h"
#include "common/pattern.h"
#include "worker/content/pattern_bytes.h"
#include "worker/content/reference_cast.h"
#include "worker/content/update.h"

struct rf_weights {
    const struct rf_plan *plan;
    enum rf_side side;
    uint64_t iteration;
    struct rf_checkpoint *checkpoint; /* NULL: the pattern */
    /* The tensor read last, to avoid repeated look-ups. */
    uint32_t family, layer_index, expert;
    struct rf_update update;   /* with spec.update */
    uint64_t stored_at;        /* byte offset of the expert's elements in it */
    uint8_t *stored, *trained; /* RF_CONTENT_CHUNK elements each */
};

/* Dtypes along the way: as stored → training side → this side. */
struct stages {
    enum rf_dtype stored, train, own;
};

static struct stages stages_of(const struct rf_weights *weights,
                               uint32_t family)
{
    struct stages stages = {
        .train = rf_plan_form(weights->plan, RF_TRAIN, family).dtype,
        .own = rf_plan_form(weights->plan, weights->side, family).dtype};
    stages.stored = weights->checkpoint != NULL
                        ? weights->plan->model->families[family].dtype
                        : stages.train;
    return stages;
}

static enum rf_status check_casts(const struct rf_weights *weights,
                                  struct rf_err *err)
{
    const struct rf_model *model = weights->plan->model;
    for (uint32_t f = 0; f < model->n_families; f++) {
        struct stages s = stages_of(weights, f);
        bool first = rf_reference_cast_supported(s.stored, s.train);
        if (!first || !rf_reference_cast_supported(s.train, s.own)) {
            return rf_err_set(err, RF_ERR_UNSUPPORTED,
                              "%s: no exact cast from %s to %s in host memory",
                              model->families[f].name,
                              rf_dtype_name(first ? s.train : s.stored),
                              rf_dtype_name(first ? s.own : s.train));
        }
    }
    return RF_OK;
}

enum rf_status rf_weights_create(const struct rf_content_job *job,
                                 atomic_ullong *read_bytes,
                                 struct rf_weights **out, struct rf_err *err)
{
    const json_t *files =
        job->files != NULL ? job->files : job->plan->model->files;
    struct rf_weights *weights = rf_xcalloc(1, sizeof(*weights));
    enum rf_status status = RF_OK;
    weights->plan = job->plan->weights;
    weights->side = job->side;
    weights->iteration = job->iteration - job->before;
    weights->family = RF_NONE;
    weights->stored = rf_xmalloc(8 * RF_CONTENT_CHUNK);
    weights->trained = rf_xmalloc(8 * RF_CONTENT_CHUNK);
    if (files != NULL) {
        status = rf_checkpoint_slices_create(files, read_bytes,
                                             &weights->checkpoint, err);
    }
    RF_THEN(status, check_casts(weights, err));
    if (status != RF_OK) {
        rf_weights_destroy(weights);
        return status;
    }
    *out = weights;
    return RF_OK;
}

void rf_weights_destroy(struct rf_weights *weights)
{
    if (weights == NULL) {
        return;
    }
    rf_checkpoint_slices_destroy(weights->checkpoint);
    free(weights->stored);
    free(weights->trained);
    free(weights);
}

static enum rf_status select_tensor(struct rf_weights *weights,
                                    const struct rf_content_span *span,
                                    struct rf_err *err)
{
    const struct rf_family *f = &weights->plan->model->families[span->family];
    char name[512];
    if (weights->family == span->family &&
        weights->layer_index == span->layer_index &&
        weights->expert == span->expert) {
        return RF_OK;
    }
    weights->family = RF_NONE; /* invalid if the selection fails */
    if (weights->checkpoint != NULL) {
        rf_family_tensor_name(f, span->layer_index, span->expert, name,
                              sizeof(name));
        RF_TRY(rf_checkpoint_slices_select(weights->checkpoint, name, err));
    }
    if (weights->checkpoint == NULL && weights->plan->spec->update.given) {
        weights->update =
            rf_update_of(weights->plan, span->family, span->layer_index,
                         span->expert, weights->iteration);
    }
    weights->family = span->family;
    weights->layer_index = span->layer_index;
    weights->expert = span->expert;
    weights->stored_at = f->stacked ? (uint64_t)span->expert *
                                          rf_dtype_bytes(f->dtype) *
                                          rf_family_tensor_elements(f)
                                    : 0;
    return RF_OK;
}

/* Reads from the selected tensor, as stored. */
static enum rf_status read_stored(struct rf_weights *weights,
                                  uint32_t item_bytes,
                                  const struct rf_content_span *span, void *dst,
                                  struct rf_err *err)
{
    const uint64_t at = span->first * item_bytes;
    const uint64_t bytes = span->count * item_bytes;
    if (weights->checkpoint == NULL) {
        const bool updated = weights->plan->spec->update.given;
        rf_pattern_bytes(
            rf_pattern_seed(span->family, span->layer_index, span->expert),
            updated ? 0 : weights->iteration, at, bytes, dst);
        if (updated) {
            rf_update_apply(&weights->update, span->first, span->count,
                            item_bytes, dst);
        }
        return RF_OK;
    }
    return rf_checkpoint_slices_read(
        weights->checkpoint,
        &(struct rf_checkpoint_slice){
            .at = weights->stored_at + at,
            .bytes = bytes,
            .end = weights->stored_at +
                   RF_MAX(at + bytes, span->end * item_bytes)},
        dst, err);
}

/* Casts through the buffers, a chunk at a time. */
static enum rf_status read_cast(struct rf_weights *weights,
                                const struct stages *stages,
                                const struct rf_content_span *span,
                                uint8_t *dst, struct rf_err *err)
{
    struct rf_content_span chunk = *span;
    chunk.end = RF_MAX(span->first + span->count, span->end);
    for (uint64_t left = span->count; left > 0; left -= chunk.count) {
        chunk.count = RF_MIN(left, RF_CONTENT_CHUNK);
        RF_TRY(read_stored(weights, rf_dtype_bytes(stages->stored), &chunk,
                           weights->stored, err));
        rf_reference_cast_elements(stages->stored, stages->train,
                                   weights->stored, weights->trained,
                                   chunk.count);
        rf_reference_cast_elements(stages->train, stages->own, weights->trained,
                                   dst, chunk.count);
        chunk.first += chunk.count;
        dst += chunk.count * rf_dtype_bytes(stages->own);
    }
    return RF_OK;
}

enum rf_status rf_weights_read(struct rf_weights *weights,
                               const struct rf_content_span *span, void *dst,
                               struct rf_err *err)
{
    struct stages stages = stages_of(weights, span->family);
    RF_TRY(select_tensor(weights, span, err));
    if (stages.stored == stages.train && stages.train == stages.own) {
        return read_stored(weights, rf_dtype_bytes(stages.own), span, dst, err);
    }
    return read_cast(weights, &stages, span, dst, err);
}
