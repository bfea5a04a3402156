/*
 * Reads slices of tensors from the files of a checkpoint through one window,
 * so that the short rows of a column split do not cost a system call each.
 */
#ifndef RF_WORKER_CHECKPOINT_H
#define RF_WORKER_CHECKPOINT_H

#include "planner/model.h"

struct rf_checkpoint;

/* `files` is rf_model.files (borrowed). Nothing is opened yet. */
enum rf_status rf_checkpoint_create(const json_t *files,
                                    struct rf_checkpoint **out,
                                    struct rf_err *err) RF_MUST_CHECK;
void rf_checkpoint_destroy(struct rf_checkpoint *checkpoint);

/* Bytes [at, at + bytes) of a tensor. */
struct rf_checkpoint_slice {
    const char *tensor;
    uint64_t tensor_bytes; /* in all */
    uint64_t at, bytes;
};

/* A short file is RF_ERR_IO that names file and tensor. */
enum rf_status rf_checkpoint_read(struct rf_checkpoint *checkpoint,
                                  const struct rf_checkpoint_slice *slice,
                                  void *dst, struct rf_err *err) RF_MUST_CHECK;

#endif
