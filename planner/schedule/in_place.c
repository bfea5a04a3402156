/*
 * Finding pieces that can stay where they are. See in_place.h.
 *
 * A piece can be used in place when ops from one rank's training memory cover
 * it, without casts, every element sits where the piece's own strides would put
 * it (layers and experts, which are parameters of their own, may be anywhere),
 * and nobody forwards it.
 *
 * All ops are looked at once. An op's strides are those of the piece that it
 * ends in, so both agree on where the element with index 0 in every dimension
 * would be (the *origin*, modulo 2^64): pieces are sorted by family, origin and
 * first index, and the search begins at the last piece that can hold the op.
 */
#include "planner/schedule/in_place.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/box.h"

static uint64_t origin_of(uint64_t offset, const struct rf_box *box,
                          const uint64_t *stride)
{
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        offset -= box->start[d] * stride[d];
    }
    return offset;
}

/* Where something lies, for sorting. */
struct memory_place {
    uint32_t family;
    uint64_t origin;
    const uint64_t *start;
};

static struct memory_place place_of_piece(const struct rf_piece *piece)
{
    return (struct memory_place){
        piece->family, origin_of(piece->offset, &piece->box, piece->stride),
        piece->box.start};
}

static int compare_arrays(const struct memory_place *a,
                          const struct memory_place *b)
{
    if (a->family != b->family) {
        return a->family < b->family ? -1 : 1;
    }
    return (a->origin > b->origin) - (a->origin < b->origin);
}

static int compare_places(const struct memory_place *a,
                          const struct memory_place *b)
{
    int order = compare_arrays(a, b);
    for (uint32_t d = 0; d < RF_BOX_DIMS && order == 0; d++) {
        order = (a->start[d] > b->start[d]) - (a->start[d] < b->start[d]);
    }
    return order;
}

static int by_place(const void *a, const void *b, void *pieces)
{
    const struct rf_piece *all = pieces;
    struct memory_place x = place_of_piece(&all[*(const uint32_t *)a]);
    struct memory_place y = place_of_piece(&all[*(const uint32_t *)b]);
    return compare_places(&x, &y);
}

static void sort_pieces(struct rf_rank_in_place *of)
{
    size_t n = of->layout->n_pieces;
    of->order = rf_xcalloc(n, sizeof(*of->order));
    of->by_piece = rf_xcalloc(n, sizeof(*of->by_piece));
    for (size_t i = 0; i < n; i++) {
        of->order[i] = (uint32_t)i;
    }
    if (n > 0) {
        qsort_r(of->order, n, sizeof(*of->order), by_place, of->layout->pieces);
    }
}

/* Whether `op` writes into `piece`, and how far from its first element that is
 * at the source. */
static bool is_inside(const struct rf_op *op, const struct rf_piece *piece,
                      uint64_t *src_distance)
{
    uint64_t at = piece->offset;
    *src_distance = 0;
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        uint64_t from = op->box.start[d] - piece->box.start[d];
        if (op->box.start[d] < piece->box.start[d] ||
            from + op->box.extent[d] > piece->box.extent[d]) {
            return false;
        }
        at += from * piece->stride[d];
        *src_distance += from * op->src_stride[d];
    }
    return op->family == piece->family && at == op->dst_offset;
}

/* The number of the piece that `op` ends in, or RF_NONE. */
static uint32_t find_piece(const struct rf_rank_in_place *of,
                           const struct rf_op *op, uint64_t *src_distance)
{
    const struct rf_piece *pieces = of->layout->pieces;
    struct memory_place wanted = {
        op->family, origin_of(op->dst_offset, &op->box, op->dst_stride),
        op->box.start};
    size_t low = 0, high = of->layout->n_pieces;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct memory_place at = place_of_piece(&pieces[of->order[middle]]);
        if (compare_places(&at, &wanted) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    while (low-- > 0) {
        const struct rf_piece *piece = &pieces[of->order[low]];
        struct memory_place at = place_of_piece(piece);
        if (compare_arrays(&at, &wanted) != 0) {
            break;
        }
        if (is_inside(op, piece, src_distance)) {
            return of->order[low];
        }
    }
    return RF_NONE;
}

static bool has_same_strides(const struct rf_op *op,
                             const struct rf_piece *piece)
{
    for (uint32_t d = RF_DIM_TENSOR; d < RF_BOX_DIMS; d++) {
        if (piece->box.extent[d] > 1 && op->src_stride[d] != piece->stride[d]) {
            return false;
        }
    }
    return true;
}

static void add_to_cover(struct rf_in_place *cover, const struct rf_op *op,
                         const struct rf_piece *piece, uint64_t distance,
                         bool forwarded)
{
    if (cover->elements == 0) {
        cover->src = op->src;
        cover->offset = op->src_offset - distance;
        memcpy(cover->stride, op->src_stride, sizeof(cover->stride));
        cover->usable = true;
    }
    cover->elements += rf_box_elements(&op->box);
    cover->usable =
        cover->usable && !forwarded && op->dep == RF_NO_OP &&
        op->src_mem == RF_MEM_TRAIN && op->cast == RF_CAST_NONE &&
        op->src == cover->src && op->src_offset - distance == cover->offset &&
        memcmp(cover->stride, op->src_stride, sizeof(cover->stride)) == 0 &&
        has_same_strides(op, piece);
}

/* Of each op, whether another one reads what it wrote; to be freed. */
static bool *find_forwarded(const struct rf_schedule *schedule)
{
    bool *forwarded = rf_xcalloc(schedule->n_ops, sizeof(*forwarded));
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const uint32_t dep = schedule->ops[i].dep;
        const size_t at = dep == RF_NO_OP ? schedule->n_ops
                                          : rf_schedule_index(schedule, dep);
        if (at < schedule->n_ops) {
            forwarded[at] = true;
        }
    }
    return forwarded;
}

static struct rf_rank_in_place *set_of_rank(const struct rf_in_place_set *set,
                                            const struct rf_op *op)
{
    return op->dst_mem == RF_MEM_INFER &&
                   (set->only == RF_NONE || set->only == op->dst)
               ? &set->ranks[op->dst]
               : NULL;
}

static void add_op(struct rf_in_place_set *set, const struct rf_plan *plan,
                   const struct rf_op *op, bool forwarded)
{
    struct rf_rank_in_place *of = set_of_rank(set, op);
    uint64_t distance;
    uint32_t piece;
    if (of == NULL) {
        return;
    }
    if (of->layout == NULL) {
        of->layout = rf_plan_layout(plan, RF_INFER, op->dst);
        sort_pieces(of);
    }
    piece = find_piece(of, op, &distance);
    if (piece != RF_NONE) {
        add_to_cover(&of->by_piece[piece], op, &of->layout->pieces[piece],
                     distance, forwarded);
    }
}

/* A piece of which a part comes from elsewhere cannot stay. */
static void rule_out_parts(const struct rf_rank_in_place *of)
{
    for (size_t p = 0; of->layout != NULL && p < of->layout->n_pieces; p++) {
        of->by_piece[p].usable =
            of->by_piece[p].usable &&
            of->by_piece[p].elements ==
                rf_box_elements(&of->layout->pieces[p].box);
    }
}

void rf_in_place_find(const struct rf_plan *plan,
                      const struct rf_schedule *schedule, uint32_t rank,
                      struct rf_in_place_set *out)
{
    bool *forwarded = find_forwarded(schedule);
    *out =
        (struct rf_in_place_set){.n_ranks = plan->world->n_ranks, .only = rank};
    out->ranks = rf_xcalloc(out->n_ranks, sizeof(*out->ranks));
    for (size_t i = 0; i < schedule->n_ops; i++) {
        add_op(out, plan, &schedule->ops[i], forwarded[i]);
    }
    for (uint32_t r = 0; r < out->n_ranks; r++) {
        rule_out_parts(&out->ranks[r]);
    }
    free(forwarded);
}

const struct rf_in_place *rf_in_place_of_op(const struct rf_in_place_set *set,
                                            const struct rf_op *op)
{
    const struct rf_rank_in_place *of = set_of_rank(set, op);
    uint64_t distance;
    uint32_t piece = of != NULL && of->layout != NULL
                         ? find_piece(of, op, &distance)
                         : RF_NONE;
    return piece != RF_NONE ? &of->by_piece[piece] : NULL;
}

void rf_in_place_free(struct rf_in_place_set *set)
{
    for (uint32_t r = 0; r < set->n_ranks; r++) {
        free(set->ranks[r].order);
        free(set->ranks[r].by_piece);
    }
    free(set->ranks);
}
