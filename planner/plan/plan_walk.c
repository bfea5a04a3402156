/*
 * Walks: receivers in ascending order, each with its pieces in order, their
 * matching source shards in order, and the sending rank of each (assign.h). A
 * walk changes nothing but itself.
 */
#include "planner/plan/plan_walk.h"

#include "planner/plan/plan_internal.h"

void rf_plan_walk_start(struct rf_plan_walk *walk, const struct rf_plan *plan)
{
    *walk = (struct rf_plan_walk){.plan = plan, .dst = RF_NONE};
    rf_assign_start(plan->priv->assign, &walk->sources);
}

void rf_plan_walk_end(struct rf_plan_walk *walk)
{
    rf_assign_end(&walk->sources);
}

/* Advances to the first piece of the next receiver, if any. */
static bool next_receiver(struct rf_plan_walk *walk)
{
    const struct rf_world *world = walk->plan->world;
    uint32_t rank = walk->dst + 1; /* RF_NONE + 1 is 0 */
    while (rank < world->n_ranks &&
           rf_plan_layout(walk->plan, RF_INFER, rank)->n_pieces == 0) {
        rank++;
    }
    if (rank >= world->n_ranks) {
        return false;
    }
    walk->dst = rank;
    walk->layout = rf_plan_layout(walk->plan, RF_INFER, rank);
    walk->piece = 0;
    rf_assign_receiver(&walk->sources, rank);
    return true;
}

/* Advances to the next source shard that overlaps the receiver's needs. */
static bool next_match(struct rf_plan_walk *walk)
{
    const struct rf_plan_private *priv = walk->plan->priv;
    if (walk->layout != NULL) {
        walk->match++;
    }
    while (walk->layout == NULL || walk->match >= walk->match_end) {
        if (walk->layout != NULL && walk->piece + 1 < walk->layout->n_pieces) {
            walk->piece++;
        } else if (!next_receiver(walk)) {
            return false;
        }
        uint32_t index = walk->plan->world->ranks[walk->dst].index[RF_INFER];
        uint32_t layout = priv->layouts[RF_INFER].of_index[index];
        uint32_t shard =
            priv->target
                .of_piece[priv->target.piece_first[layout] + walk->piece];
        walk->match = priv->matches.first[shard];
        walk->match_end = priv->matches.first[shard + 1];
    }
    walk->item = rf_form_item(rf_plan_form(
        walk->plan, RF_INFER, walk->layout->pieces[walk->piece].family));
    walk->elements = priv->match_elements[walk->match];
    walk->done = 0;
    return true;
}

/* The intersection of the piece and the source shard. */
static struct rf_box shared_box(const struct rf_plan_walk *walk)
{
    const struct rf_plan_private *priv = walk->plan->priv;
    struct rf_box both = walk->layout->pieces[walk->piece].box;
    rf_box_intersect(
        &priv->source.shards[priv->matches.source[walk->match]].box, &both,
        &both);
    return both;
}

/* Chooses the sender of the next part of the match. */
static void decide(struct rf_plan_walk *walk)
{
    const struct rf_assign_need need = {
        .shard = walk->plan->priv->matches.source[walk->match],
        .wanted = &walk->layout->pieces[walk->piece].box,
        .elements = walk->elements,
        .done = walk->done,
        .item = walk->item,
    };
    uint64_t count;
    walk->src = rf_assign_next(&walk->sources, &need, &count);
    walk->box = 0;
    walk->n_boxes = 1;
    walk->whole = count == walk->elements;
    if (!walk->whole) {
        struct rf_box both = shared_box(walk);
        walk->n_boxes =
            rf_box_range(&both, walk->done, walk->done + count, walk->boxes);
    }
    walk->done += count;
}

bool rf_plan_walk_step(struct rf_plan_walk *walk)
{
    while (walk->box == walk->n_boxes) {
        if (walk->done < walk->elements || next_match(walk)) {
            decide(walk);
        } else {
            return false;
        }
    }
    walk->box++;
    return true;
}

const struct rf_transfer *rf_plan_walk_transfer(struct rf_plan_walk *walk)
{
    const struct rf_box box =
        walk->whole ? shared_box(walk) : walk->boxes[walk->box - 1];
    const struct rf_plan_private *priv = walk->plan->priv;
    const struct rf_layouts *layouts = &priv->layouts[RF_TRAIN];
    const struct rf_piece *to = &walk->layout->pieces[walk->piece], *from;
    uint32_t index = walk->plan->world->ranks[walk->src].index[RF_TRAIN];
    uint32_t layout = layouts->of_index[index];
    size_t number = rf_shards_piece(&priv->source, layout,
                                    priv->matches.source[walk->match]);
    from = &layouts->layouts[layout].pieces[number];
    walk->transfer = (struct rf_transfer){
        .family = to->family,
        .src = walk->src,
        .dst = walk->dst,
        .src_piece = (uint32_t)number,
        .dst_piece = (uint32_t)walk->piece,
        .box = box,
        .src_offset = rf_piece_offset(from, box.start),
        .dst_offset = rf_piece_offset(to, box.start),
    };
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        walk->transfer.src_stride[d] = from->stride[d];
        walk->transfer.dst_stride[d] = to->stride[d];
    }
    return &walk->transfer;
}
