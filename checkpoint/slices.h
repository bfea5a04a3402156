/*
 * Reads slices of tensors from the files of a checkpoint. Long ones go straight
 * to their destination; short ones, such as the rows of a column split, through
 * a window, so that they do not cost a system call each.
 */
#ifndef RF_CHECKPOINT_SLICES_H
#define RF_CHECKPOINT_SLICES_H

#include <stdatomic.h>

#include "planner/model/model.h"

struct rf_checkpoint;

/* `files` is rf_model.files (borrowed). Nothing is opened yet. What is read
 * from files is added to *read_bytes, unless that is NULL. For one thread; each
 * of several has its own. */
enum rf_status rf_checkpoint_slices_create(const json_t *files,
                                           atomic_ullong *read_bytes,
                                           struct rf_checkpoint **out,
                                           struct rf_err *err) RF_MUST_CHECK;
void rf_checkpoint_slices_destroy(struct rf_checkpoint *checkpoint);

/* What the next reads are from. Of a tensor with a twin they fail where that
 * holds other bytes: RF_ERR_CONFIG that names both. */
enum rf_status rf_checkpoint_slices_select(struct rf_checkpoint *checkpoint,
                                           const char *tensor,
                                           struct rf_err *err) RF_MUST_CHECK;

/* Bytes [at, at + bytes) of the tensor; nothing is read from `end` on, up to
 * where the caller will want bytes of it. A short file is RF_ERR_IO that names
 * file and tensor. */
struct rf_checkpoint_slice {
    uint64_t at, bytes, end;
};
enum rf_status
rf_checkpoint_slices_read(struct rf_checkpoint *checkpoint,
                          const struct rf_checkpoint_slice *slice, void *dst,
                          struct rf_err *err) RF_MUST_CHECK;

#endif
