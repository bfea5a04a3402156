/* One operation of a schedule: a copy of a box between two memories. */
#ifndef RF_PLANNER_SCHEDULE_OP_H
#define RF_PLANNER_SCHEDULE_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/layout/form.h"

enum rf_mem {
    RF_MEM_TRAIN, /* the training side's arena */
    RF_MEM_INFER, /* the inference side's arena */
    RF_MEM_STAGE, /* staging: a slot for each group in flight */
    RF_MEM_COUNT,
};

#define RF_NO_OP UINT32_MAX
#define RF_NO_GROUP UINT32_MAX

struct rf_op {
    uint32_t id; /* position in the world's order, the same on every rank */
    uint32_t src, dst; /* world ranks */
    uint32_t dep;      /* id of another op, RF_NO_OP: none */
    uint32_t group;    /* for rule 2; RF_NO_GROUP: none */
    uint32_t round;
    uint32_t task; /* for rule 3 */
    uint32_t family;
    uint8_t src_mem, dst_mem;      /* enum rf_mem */
    struct rf_form from, wire, to; /* in src_mem, between ranks, in dst_mem: the
                                      op converts where neighbours differ */
    uint32_t dst_piece; /* of dst's inference layout; RF_NONE: it writes staging
                           memory, or no tensor (yardsticks) */
    struct rf_box box;  /* its elements, for messages and checks */
    uint64_t src_offset, dst_offset; /* bytes into those memories */
    uint64_t src_stride[RF_BOX_DIMS], dst_stride[RF_BOX_DIMS]; /* bytes */
};

/* What it does to its elements, and at which end. */
enum rf_cast rf_op_cast(const struct rf_op *op);
bool rf_op_casts_at_source(const struct rf_op *op);
bool rf_op_casts_at_destination(const struct rf_op *op);

/* Its bytes on the wire, and the bytes it writes. */
uint64_t rf_op_bytes(const struct rf_op *op);
uint64_t rf_op_written(const struct rf_op *op);
/* Whether it reads training memory as the training side holds it: it has no
 * dependency, and its source casts nothing. */
bool rf_op_reads_held(const struct rf_op *op);
/* The end of the bytes it reads, as an offset into op->src_mem. */
uint64_t rf_op_src_end(const struct rf_op *op);

#endif
