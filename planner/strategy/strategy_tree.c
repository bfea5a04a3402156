/*
 * Trees of copies: one box goes from rank to rank in chunks, each forwarded as
 * soon as it has arrived.
 *
 * Rounds (for methods that move in lockstep): chunk k takes hop i in round base
 * + k + i, so in every round each link of the chain carries one chunk. `base`
 * is the first round in which no sender of the chain is busy with an earlier
 * tree; when serialised, the first in which no rank of the tree is.
 */
#include <stdlib.h>

#include "common/mem.h"
#include "planner/strategy/strategy.h"

void rf_tree_reset(struct rf_tree *tree, const struct rf_op_end *root)
{
    tree->n = 0;
    tree->n_heads = 0;
    RF_PUSH(tree->nodes, tree->n, tree->capacity,
            ((struct rf_tree_node){.view = *root}));
}

uint32_t rf_tree_add(struct rf_tree *tree, uint32_t parent,
                     const struct rf_op_end *view)
{
    struct rf_tree_node node = {.parent = parent,
                                .depth = tree->nodes[parent].depth + 1,
                                .view = *view};
    RF_PUSH(tree->nodes, tree->n, tree->capacity, node);
    return tree->n - 1;
}

void rf_tree_free(struct rf_tree *tree)
{
    free(tree->nodes);
    *tree = (struct rf_tree){.nodes = NULL};
}

uint64_t rf_builder_elements(const struct rf_builder *builder, uint32_t family,
                             uint64_t bytes)
{
    return RF_MAX(bytes / rf_form_item(rf_plan_wire(builder->plan, family)), 1);
}

static uint32_t first_round(const struct rf_builder *builder,
                            const struct rf_tree *tree,
                            const struct rf_tree_how *how)
{
    uint32_t base = how->first_round;
    if (builder->spec->serialize) {
        for (uint32_t i = 0; i < tree->n; i++) {
            base = RF_MAX(base, builder->next_round[tree->nodes[i].view.rank]);
        }
        return base;
    }
    for (uint32_t i = 1; how->paced && i <= tree->n_heads; i++) {
        uint32_t parent = tree->nodes[i].parent;
        uint32_t depth = tree->nodes[parent].depth;
        uint32_t next = builder->next_round[tree->nodes[parent].view.rank];
        base = RF_MAX(base, next > depth ? next - depth : 0);
    }
    return base;
}

/* The senders of the chain become free after their last chunk. */
static void keep_pace(struct rf_builder *builder, const struct rf_tree *tree,
                      uint32_t base, uint64_t chunks)
{
    for (uint32_t i = 1; i <= tree->n_heads; i++) {
        const struct rf_tree_node *parent = &tree->nodes[tree->nodes[i].parent];
        builder->next_round[parent->view.rank] =
            base + (uint32_t)chunks + parent->depth;
    }
}

uint32_t rf_tree_emit(struct rf_builder *builder, struct rf_tree *tree,
                      const struct rf_box *box, const struct rf_tree_how *how)
{
    const struct rf_chunking chunking = rf_box_chunking(box, how->max_elements);
    uint32_t base = first_round(builder, tree, how), end = base;
    for (uint64_t k = 0; k < chunking.count && builder->status == RF_OK; k++) {
        struct rf_op_draft step = {.family = how->family,
                                   .box = rf_box_chunk(box, &chunking, k),
                                   .bucket = how->bucket,
                                   .task = how->task};
        tree->nodes[0].op =
            how->root_dep + (how->root_in_chunks ? (uint32_t)k : 0);
        for (uint32_t i = 1; i < tree->n; i++) {
            struct rf_tree_node *node = &tree->nodes[i];
            const struct rf_tree_node *parent = &tree->nodes[node->parent];
            step.dep = parent->op;
            step.round = base + (uint32_t)k + parent->depth;
            node->op =
                rf_builder_emit(builder, &step, &parent->view, &node->view);
            end = RF_MAX(end, step.round + 1);
        }
    }
    if (how->paced && !builder->spec->serialize) {
        keep_pace(builder, tree, base, chunking.count);
    }
    return end;
}
