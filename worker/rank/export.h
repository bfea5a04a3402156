/* Export: the inference ranks write their content as whole tensors into shared
 * safetensors files. See planner/plan/export.h. */
#ifndef RF_WORKER_RANK_EXPORT_H
#define RF_WORKER_RANK_EXPORT_H

#include "transport/method/method.h"

struct rf_rank_export_job {
    const struct rf_method_env *env; /* of the refit's method */
    struct rf_content_job arrived;
    struct rf_content_job converted; /* what this rank made of it, if it has
                                        results */
    const json_t *model;             /* of START */
    const char *folder;
};

/*
 * Collective. The first inference rank creates the files under temporary names;
 * all inference ranks write; the first then renames the files and adds the
 * index and config.json. Until then, and after a failure, the folder has no
 * model, or still a former export. Fails if the folder has another model.
 */
enum rf_status rf_rank_export_run(const struct rf_rank_export_job *job,
                                  uint64_t *written,
                                  struct rf_err *err) RF_MUST_CHECK;

#endif
