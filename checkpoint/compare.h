/* Compares two checkpoints of one model, as before and after a training step. */
#ifndef RF_CHECKPOINT_COMPARE_H
#define RF_CHECKPOINT_COMPARE_H

#include <stddef.h>

#include "checkpoint/changes.h"
#include "common/err.h"

/* Of the tensors whose names differ in numbers only. */
struct rf_kind_changes {
    char *kind;                /* see rf_checkpoint_kind() */
    struct rf_changes changes; /* settled */
};

struct rf_checkpoint_changes {
    struct rf_kind_changes *kinds; /* by name */
    size_t n;
};

/* Reads all data of both folders, with several threads. RF_ERR_CONFIG as for
 * rf_checkpoint_files_read(). Free *out also after an error. */
enum rf_status rf_checkpoint_compare(const char *before, const char *after,
                                     struct rf_checkpoint_changes *out,
                                     struct rf_err *err) RF_MUST_CHECK;
void rf_checkpoint_changes_free(struct rf_checkpoint_changes *changes);

#endif
