/*
 * Reads slices of tensors from the files of a checkpoint. Long slices go
 * straight to their destination; short ones, such as the rows of a column
 * split, go through a window, which saves a system call for each.
 */
#ifndef RF_CHECKPOINT_SLICES_H
#define RF_CHECKPOINT_SLICES_H

#include <stdatomic.h>

#include "planner/model/model.h"

struct rf_checkpoint;

/* `files` is rf_model.files (borrowed). Opens no file yet. Adds the bytes read
 * from files to *read_bytes unless that is NULL. Not thread-safe: each thread
 * needs a separate object. */
enum rf_status rf_checkpoint_slices_create(const json_t *files,
                                           atomic_ullong *read_bytes,
                                           struct rf_checkpoint **out,
                                           struct rf_err *err) RF_MUST_CHECK;
void rf_checkpoint_slices_destroy(struct rf_checkpoint *checkpoint);

/* Selects the tensor for the next reads. If it has a twin, reads fail where the
 * twin's bytes differ: RF_ERR_CONFIG that names both. */
enum rf_status rf_checkpoint_slices_select(struct rf_checkpoint *checkpoint,
                                           const char *tensor,
                                           struct rf_err *err) RF_MUST_CHECK;

/* Reads bytes [at, at + bytes) of the tensor. Read-ahead stops at `end`, where
 * the caller's later requests end. A short file is RF_ERR_IO that names file
 * and tensor. */
struct rf_checkpoint_slice {
    uint64_t at, bytes, end;
};
enum rf_status
rf_checkpoint_slices_read(struct rf_checkpoint *checkpoint,
                          const struct rf_checkpoint_slice *slice, void *dst,
                          struct rf_err *err) RF_MUST_CHECK;

#endif
