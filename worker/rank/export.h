/* Exporting: the inference ranks write what they hold as whole tensors into
 * safetensors files that they share. See planner/plan/export.h. */
#ifndef RF_WORKER_RANK_EXPORT_H
#define RF_WORKER_RANK_EXPORT_H

#include "transport/method/method.h"

struct rf_rank_export_job {
    const struct rf_method_env *env;    /* of the method that has refitted */
    const struct rf_method_ops *method; /* says where pieces are */
    void *state;                        /* the method's */
    const json_t *model;                /* of START */
    const char *folder;
};

/*
 * Collective. The first inference rank makes the files under other names, all
 * write, and it renames them and adds index and config.json: until then, and
 * after a failure, the folder has no model, or still a former export. Fails
 * where there is another model.
 */
enum rf_status rf_rank_export_run(const struct rf_rank_export_job *job,
                                  uint64_t *written,
                                  struct rf_err *err) RF_MUST_CHECK;

#endif
