/* Content of an arena. See content.h. */
#include "worker/content/content.h"

#include <stdlib.h>

#include "common/mem.h"
#include "worker/content/converted_content.h"

struct rf_content {
    const struct rf_converted *converted; /* whose families the arena has; NULL:
                                             weights alone */
    struct rf_weights *weights;
    struct rf_converted_content *results;
};

enum rf_status rf_content_create(const struct rf_content_job *job,
                                 atomic_ullong *read_bytes,
                                 struct rf_content **out, struct rf_err *err)
{
    const struct rf_plan *plan = job->plan;
    struct rf_content *content = rf_xcalloc(1, sizeof(*content));
    const enum rf_status status =
        rf_weights_create(job, read_bytes, &content->weights, err);
    if (status != RF_OK) {
        rf_content_destroy(content);
        return status;
    }
    if (job->results != NULL || rf_plan_is_converted(plan)) {
        content->converted = rf_plan_converted(plan, job->rank);
        content->results = rf_converted_content_create(plan->weights, job->rank,
                                                       content->weights);
    }
    *out = content;
    return RF_OK;
}

bool rf_content_is_pattern(const struct rf_content_job *job)
{
    const struct rf_plan *plan = job->plan;
    return plan->model->files == NULL && !plan->spec->update.given &&
           !rf_plan_is_converted(plan) && job->results == NULL;
}

void rf_content_destroy(struct rf_content *content)
{
    if (content != NULL) {
        rf_converted_content_destroy(content->results);
        rf_weights_destroy(content->weights);
        free(content);
    }
}

enum rf_status rf_content_read(struct rf_content *content,
                               const struct rf_content_span *span, void *dst,
                               struct rf_err *err)
{
    const struct rf_converted *converted = content->converted;
    struct rf_content_span of = *span;
    if (converted == NULL) {
        return rf_weights_read(content->weights, span, dst, err);
    }
    if (converted->model.families[span->family].is_result) {
        return rf_converted_content_read(content->results, span, dst, err);
    }
    of.family = converted->from[span->family].family;
    return rf_weights_read(content->weights, &of, dst, err);
}
