/*
 * Source choice: the replica that sends each transfer.
 *
 * Under `size`, `order` and `time` a replica on the receiver's own slot always
 * serves it; else the replicas on its node; else all. Where several may serve,
 * the load is divided so that the busiest rank link and the busiest node link
 * carry as little as possible; boxes are cut only if that lowers the busiest
 * link. Under `time` a link's load counts relative to its weight
 * (planner/assign/link_weights.h), and only traffic between nodes uses a link.
 * Under `none` the first replica serves everyone.
 *
 * The same module computes the least possible loads over all replica choices.
 */
#ifndef RF_PLANNER_ASSIGN_ASSIGN_H
#define RF_PLANNER_ASSIGN_ASSIGN_H

#include "planner/assign/assign_input.h"
#include "planner/assign/turn_line.h"

/* Least possible loads over all choices of replicas, without transfers inside
 * one rank; node loads count transfers between nodes. */
struct rf_assign_bounds {
    uint64_t send, recv, node_send, node_recv;
};

struct rf_assign;

/* Everything in `input` is borrowed and must outlive the result. RF_ERR_CONFIG:
 * receivers need 2^63 bytes or more. */
enum rf_status rf_assign_build(const struct rf_assign_input *input,
                               struct rf_assign **out,
                               struct rf_assign_bounds *bounds,
                               struct rf_err *err) RF_MUST_CHECK;
void rf_assign_destroy(struct rf_assign *assign);

/* The progress of one walk over the transfers. Cursors of one assignment are
 * independent of each other. */
struct rf_assign_cursor {
    const struct rf_assign *assign;
    uint32_t receiver;
    uint32_t *held; /* per source shard: 1 + the receiver whose slot holds it */
    struct rf_turn_line *near_lines; /* per group, over ranks */
    struct rf_turn_line *far_lines;  /* per set, over groups or over ranks */
};

/* Starts before the first receiver; every cursor gives the same answers to the
 * same questions. `assign` is borrowed; rf_assign_end() frees the cursor. */
void rf_assign_start(const struct rf_assign *assign,
                     struct rf_assign_cursor *out);
void rf_assign_end(struct rf_assign_cursor *cursor);

/* Starts on the transfers to world rank `rank`. Ranks are visited in ascending
 * order, each with its pieces in order and their matches in order. */
void rf_assign_receiver(struct rf_assign_cursor *cursor, uint32_t rank);

/* A receiver's remaining need of a source shard. */
struct rf_assign_need {
    uint32_t shard;
    const struct rf_box *wanted; /* a box that intersects the shard */
    uint64_t elements, done;     /* of the intersection, and served so far */
    uint32_t item;               /* bytes per element at the receiver */
};

/* Returns the sender of the next part and sets its number of elements; the last
 * part ends at the box's end. */
uint32_t rf_assign_next(struct rf_assign_cursor *cursor,
                        const struct rf_assign_need *need, uint64_t *count);

#endif
