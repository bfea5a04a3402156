/* The step "export": the inference ranks write what they hold as whole tensors
 * into safetensors files that they share. See planner/plan/export.h. */
#ifndef RF_WORKER_EXPORT_H
#define RF_WORKER_EXPORT_H

#include "worker/rank/attempt_internal.h"

/*
 * Collective. The first inference rank makes the files under other names, all
 * write, and it renames them and adds index and config.json: until then, and
 * after a failure, the folder has no model. Fails where it has one already.
 */
enum rf_status rf_export_step(struct rf_exec *exec,
                              const struct rf_msg_step *step,
                              struct rf_msg_answer *answer,
                              struct rf_err *err) RF_MUST_CHECK;

#endif
