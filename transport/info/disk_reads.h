/* How method disk reads an op. */
#ifndef RF_TRANSPORT_INFO_DISK_READS_H
#define RF_TRANSPORT_INFO_DISK_READS_H

#include "planner/schedule/copy_shape.h"

/* Bytes read from the source's file for an op: short rows not too far apart are
 * read with the gaps between them. */
uint64_t rf_disk_reads_bytes(const struct rf_op *op);
/* Bytes of an op that are copied again, from the read buffer to their place:
 * all but long rows without a cast. */
uint64_t rf_disk_reads_scattered(const struct rf_op *op);

/* Whether the rows of a shape's innermost loop are read together. */
bool rf_disk_reads_dense(const struct rf_copy_shape *shape);
/* Whether an image is read row by row instead of in long runs. */
bool rf_disk_reads_short_rows(const struct rf_copy_shape *shape);
/* Whether an op is read into its place instead of into the stage. */
bool rf_disk_reads_into_place(const struct rf_op *op,
                              const struct rf_copy_shape *shape);

#endif
