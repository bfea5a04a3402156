/* How method disk reads an op. */
#ifndef RF_TRANSPORT_INFO_DISK_READS_H
#define RF_TRANSPORT_INFO_DISK_READS_H

#include "planner/schedule/copy_shape.h"

/* Bytes that reading an op takes from the file of its source: short rows that
 * are not too far apart with what lies between them. */
uint64_t rf_disk_reads_bytes(const struct rf_op *op);
/* Bytes of it that are copied once more, from where they were read to where
 * they belong: all but long rows that are not cast. */
uint64_t rf_disk_reads_scattered(const struct rf_op *op);

/* Whether the rows of a shape's innermost loop are read together. */
bool rf_disk_reads_dense(const struct rf_copy_shape *shape);
/* Whether an image is read row by row, and not in long runs. */
bool rf_disk_reads_short_rows(const struct rf_copy_shape *shape);
/* Whether an op is read to where it belongs, and not into the stage. */
bool rf_disk_reads_into_place(const struct rf_op *op,
                              const struct rf_copy_shape *shape);

#endif
