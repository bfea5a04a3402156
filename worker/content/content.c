/* Content of weights. See content.h. */
#include "worker/content/content.h"

#include <stdlib.h>

#include "checkpoint/slices.h"
#include "common/mem.h"
#include "common/pattern.h"
#include "worker/content/pattern_bytes.h"
#include "worker/content/reference_cast.h"
#include "worker/content/update.h"

struct rf_content {
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

static struct stages stages_of(const struct rf_content *content,
                               uint32_t family)
{
    struct stages stages = {
        .train = rf_plan_form(content->plan, RF_TRAIN, family).dtype,
        .own = rf_plan_form(content->plan, content->side, family).dtype};
    stages.stored = content->checkpoint != NULL
                        ? content->plan->model->families[family].dtype
                        : stages.train;
    return stages;
}

static enum rf_status check_casts(const struct rf_content *content,
                                  struct rf_err *err)
{
    const struct rf_model *model = content->plan->model;
    for (uint32_t f = 0; f < model->n_families; f++) {
        struct stages s = stages_of(content, f);
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

enum rf_status rf_content_create(const struct rf_content_job *job,
                                 atomic_ullong *read_bytes,
                                 struct rf_content **out, struct rf_err *err)
{
    const json_t *files =
        job->files != NULL ? job->files : job->plan->model->files;
    struct rf_content *content = rf_xcalloc(1, sizeof(*content));
    enum rf_status status = RF_OK;
    content->plan = job->plan;
    content->side = job->side;
    content->iteration = job->iteration - job->before;
    content->family = RF_NONE;
    content->stored = rf_xmalloc(8 * RF_CONTENT_CHUNK);
    content->trained = rf_xmalloc(8 * RF_CONTENT_CHUNK);
    if (files != NULL) {
        status = rf_checkpoint_slices_create(files, read_bytes,
                                             &content->checkpoint, err);
    }
    RF_THEN(status, check_casts(content, err));
    if (status != RF_OK) {
        rf_content_destroy(content);
        return status;
    }
    *out = content;
    return RF_OK;
}

void rf_content_destroy(struct rf_content *content)
{
    if (content == NULL) {
        return;
    }
    rf_checkpoint_slices_destroy(content->checkpoint);
    free(content->stored);
    free(content->trained);
    free(content);
}

static enum rf_status select_tensor(struct rf_content *content,
                                    const struct rf_content_span *span,
                                    struct rf_err *err)
{
    const struct rf_family *f = &content->plan->model->families[span->family];
    char name[512];
    if (content->family == span->family &&
        content->layer_index == span->layer_index &&
        content->expert == span->expert) {
        return RF_OK;
    }
    content->family = RF_NONE; /* invalid if the selection fails */
    if (content->checkpoint != NULL) {
        rf_family_tensor_name(f, span->layer_index, span->expert, name,
                              sizeof(name));
        RF_TRY(rf_checkpoint_slices_select(content->checkpoint, name, err));
    }
    if (content->checkpoint == NULL && content->plan->spec->update.given) {
        content->update =
            rf_update_of(content->plan, span->family, span->layer_index,
                         span->expert, content->iteration);
    }
    content->family = span->family;
    content->layer_index = span->layer_index;
    content->expert = span->expert;
    content->stored_at = f->stacked ? (uint64_t)span->expert *
                                          rf_dtype_bytes(f->dtype) *
                                          rf_family_tensor_elements(f)
                                    : 0;
    return RF_OK;
}

/* Reads from the selected tensor, as stored. */
static enum rf_status read_stored(struct rf_content *content,
                                  uint32_t item_bytes,
                                  const struct rf_content_span *span, void *dst,
                                  struct rf_err *err)
{
    const uint64_t at = span->first * item_bytes;
    const uint64_t bytes = span->count * item_bytes;
    if (content->checkpoint == NULL) {
        const bool updated = content->plan->spec->update.given;
        rf_pattern_bytes(
            rf_pattern_seed(span->family, span->layer_index, span->expert),
            updated ? 0 : content->iteration, at, bytes, dst);
        if (updated) {
            rf_update_apply(&content->update, span->first, span->count,
                            item_bytes, dst);
        }
        return RF_OK;
    }
    return rf_checkpoint_slices_read(
        content->checkpoint,
        &(struct rf_checkpoint_slice){
            .at = content->stored_at + at,
            .bytes = bytes,
            .end = content->stored_at +
                   RF_MAX(at + bytes, span->end * item_bytes)},
        dst, err);
}

/* Casts through the buffers, a chunk at a time. */
static enum rf_status read_cast(struct rf_content *content,
                                const struct stages *stages,
                                const struct rf_content_span *span,
                                uint8_t *dst, struct rf_err *err)
{
    struct rf_content_span chunk = *span;
    chunk.end = RF_MAX(span->first + span->count, span->end);
    for (uint64_t left = span->count; left > 0; left -= chunk.count) {
        chunk.count = RF_MIN(left, RF_CONTENT_CHUNK);
        RF_TRY(read_stored(content, rf_dtype_bytes(stages->stored), &chunk,
                           content->stored, err));
        rf_reference_cast_elements(stages->stored, stages->train,
                                   content->stored, content->trained,
                                   chunk.count);
        rf_reference_cast_elements(stages->train, stages->own, content->trained,
                                   dst, chunk.count);
        chunk.first += chunk.count;
        dst += chunk.count * rf_dtype_bytes(stages->own);
    }
    return RF_OK;
}

enum rf_status rf_content_read(struct rf_content *content,
                               const struct rf_content_span *span, void *dst,
                               struct rf_err *err)
{
    struct stages stages = stages_of(content, span->family);
    RF_TRY(select_tensor(content, span, err));
    if (stages.stored == stages.train && stages.train == stages.own) {
        return read_stored(content, rf_dtype_bytes(stages.own), span, dst, err);
    }
    return read_cast(content, &stages, span, dst, err);
}
