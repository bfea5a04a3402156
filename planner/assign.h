/*
 * Source choice: which replica sends what to whom.
 *
 * Under `size` and `order` a replica on the receiver's own slot always serves
 * it; else the replicas on its node; else all. What can be chosen is divided so
 * that the busiest rank link and the busiest node link carry as little as
 * possible, by cutting boxes only where that lowers the busiest link. Under
 * `none` the first replica serves everyone.
 *
 * The same module computes the least possible loads over all replica choices.
 */
#ifndef RF_PLANNER_ASSIGN_H
#define RF_PLANNER_ASSIGN_H

#include "planner/match.h"

struct rf_assign_input {
    const struct rf_world *world;
    enum rf_balance balance;
    const struct rf_layouts *source_layouts, *target_layouts;
    const struct rf_shards *source, *target;
    const struct rf_matches *matches;
    const uint64_t *match_bytes; /* of each match, at the destination's dtype */
};

/* Least possible loads over all choices of replicas, transfers inside one rank
 * not counted; node loads count transfers between nodes. */
struct rf_assign_bounds {
    uint64_t send, recv, node_send, node_recv;
};

struct rf_assign;

/* Everything in `input` is borrowed and must outlive the result. */
enum rf_status rf_assign_build(const struct rf_assign_input *input,
                               struct rf_assign **out,
                               struct rf_assign_bounds *bounds,
                               struct rf_err *err) RF_MUST_CHECK;
void rf_assign_destroy(struct rf_assign *assign);

/* Back to before the first receiver: the same questions get the same answers
 * again. */
void rf_assign_restart(struct rf_assign *assign);

/* Starts on the transfers to world rank `rank`. Ranks are visited in ascending
 * order, each with its pieces in order and their matches in order. */
void rf_assign_receiver(struct rf_assign *assign, uint32_t rank);

/*
 * Who sends the next part of `box` (a part of source shard `shard`, with
 * elements [done, …) still to be sent) to the current receiver, and how many
 * elements; the last part ends at the box's end.
 */
uint32_t rf_assign_next(struct rf_assign *assign, uint32_t shard,
                        const struct rf_box *box, uint64_t elements,
                        uint64_t done, uint32_t item, uint64_t *count);

#endif
