/*
 * The plan of a refit: which box of which logical tensor goes from which rank's
 * memory to which. Pure and deterministic: the same input gives the same plan
 * and digest on every machine.
 *
 * Layouts map each rank's memory to *pieces* (boxes of families with an offset
 * and strides in the rank's arena). A transfer is the intersection of a source
 * piece and a destination piece. The layouts are proved here; the transfers are
 * proved as operations of a schedule (rf_schedule_prove()). A plan's memory
 * grows with the distinct layouts and the ranks. It does not store transfers;
 * planner/plan/plan_walk.h lists them.
 */
#ifndef RF_PLANNER_PLAN_PLAN_H
#define RF_PLANNER_PLAN_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "common/hash.h"
#include "planner/layout/form.h"
#include "planner/plan/converted.h"
#include "planner/scenario/world.h"

/* One box from one rank's training arena to one rank's inference arena. */
struct rf_transfer {
    uint32_t family;
    uint32_t src, dst;  /* world ranks; equal: a local copy */
    uint32_t src_piece; /* piece of src's training layout */
    uint32_t dst_piece; /* piece of dst's inference layout */
    struct rf_box box;
    uint64_t src_offset, dst_offset; /* bytes into the arenas */
    uint64_t src_stride[RF_BOX_DIMS], dst_stride[RF_BOX_DIMS];
};

/* A rank process's memory beyond its arenas and staging: code, libraries,
 * tables. Part of the memory that is predicted before launch and checked
 * against that of the node. */
#define RF_PLAN_PROCESS_BYTES (UINT64_C(24) << 20)

struct rf_plan_totals {
    uint64_t transfers; /* per logical tensor, as `plan --full` lists them */
    uint64_t bytes_total, bytes_local, bytes_intra_node, bytes_inter_node;
    uint64_t max_send_bytes, max_recv_bytes;     /* between different ranks */
    uint64_t bound_send_bytes, bound_recv_bytes; /* lower bounds */
    uint64_t max_node_send_bytes, max_node_recv_bytes; /* between nodes */
    uint64_t bound_node_send_bytes, bound_node_recv_bytes;
};

struct rf_plan {
    const struct rf_model *model; /* of what moves; borrowed, as are the next
                                     two */
    const struct rf_world *world;
    const struct rf_spec *spec;
    size_t n_transfers;           /* see planner/plan/plan_walk.h */
    struct rf_plan_totals totals; /* bytes at the destination's dtype */
    struct rf_hash digest;
    int64_t plan_ns;
    /* What "quantize" makes of the weights, by side of the scenario that
     * converts: training, or pools; NULL: nothing. */
    struct rf_converted *converted[RF_SIDES_MAX];
    /* The weights before conversion: their model and layouts, without
     * transfers. The plan itself, unless rf_plan_is_converted(). */
    const struct rf_plan *weights;
    struct rf_plan_private *priv;
};

/*
 * Makes a plan. `model`, `world` and `spec` must outlive it. Errors:
 * RF_ERR_CONFIG with the rule that makes the layout impossible, RF_ERR_NOMEM,
 * RF_ERR_INTERNAL when the proof of layouts fails (a bug, with the place).
 */
enum rf_status rf_plan_build(const struct rf_model *model,
                             const struct rf_world *world,
                             const struct rf_spec *spec, struct rf_plan **out,
                             struct rf_err *err) RF_MUST_CHECK;
void rf_plan_destroy(struct rf_plan *plan);

/* Whether senders convert, so that what moves is in the format of
 * "quantize". */
bool rf_plan_is_converted(const struct rf_plan *plan);

/* What becomes of the weights that a rank has or gets; NULL: they stay as they
 * are. */
const struct rf_converted *rf_plan_converted(const struct rf_plan *plan,
                                             uint32_t rank);

/* The side whose "quantize" a rank follows: its pool or, at a sender, one of
 * all pools, which have the same. */
const struct rf_side_spec *rf_plan_pool(const struct rf_plan *plan,
                                        uint32_t rank);

/* The pieces and parameters of a world rank on one side; empty if the rank is
 * not on that side. Owned by the plan, shared between replicas. */
const struct rf_rank_layout *rf_plan_layout(const struct rf_plan *plan,
                                            enum rf_side side, uint32_t rank);

/* The form of `family` on a side, and between ranks (the source's or the
 * destination's, as the scenario's "cast" says). */
struct rf_form rf_plan_form(const struct rf_plan *plan, enum rf_side side,
                            uint32_t family);
struct rf_form rf_plan_wire(const struct rf_plan *plan, uint32_t family);

#endif
