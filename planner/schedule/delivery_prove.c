/*
 * The proof of a schedule of deliveries (delivery.h), in time proportional to
 * the stops, deliveries and chunks. It proves the properties in
 * schedule_prove.c for every op, from these facts:
 *
 *  - on a route a stop's parent comes before it, and rf_delivery_op() makes
 *    both ends of a hop from the same stops: an op reads at a stop what an
 *    earlier op, in an earlier round, wrote there. So what holds for the box at
 *    the source and for the place of every stop holds for all hops;
 *  - the source has the box: the training side's, or at the one stop of an
 *    earlier delivery of the same box and chunks;
 *  - the parts and chunks of a delivery make up its box once, and the boxes of
 *    all deliveries over a route what the route brings to each of its pieces;
 *  - the staging memory of all stops of a route sees the same writes, if no
 *    other route writes there: the first stop represents them all;
 *  - a rank takes part in a delivery in the rounds of rf_delivery_busy(), so
 *    the first and last delivery of a task over a route bound the task.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/memory_info.h"
#include "planner/layout/box.h"
#include "planner/schedule/schedule_proof.h"

struct delivery_proof {
    struct rf_schedule_proof *of;
    const struct rf_deliveries *all;
    uint64_t next_id;
    struct rf_box_in *brought; /* by delivery: its box on the route that brings
                                  it to pieces */
    size_t n_brought;
    struct rf_box *boxes; /* scratch, for the chunks of a delivery */
    size_t boxes_capacity;
    /* The deliveries of the current task: the first and the last of them. */
    const struct rf_delivery *first, *last;
};

static enum rf_status fault(const struct delivery_proof *proof,
                            const struct rf_delivery *delivery,
                            const char *what)
{
    return rf_schedule_proof_fault(proof->of, &delivery->op, what);
}

static enum rf_status route_fault(const struct delivery_proof *proof,
                                  size_t route, const char *what)
{
    return rf_err_set(proof->of->err, RF_ERR_INTERNAL,
                      "schedule: route %zu: %s", route, what);
}

/* --- Routes --------------------------------------------------------------- */

static bool stages(const struct rf_deliveries *all,
                   const struct rf_delivery_route *route)
{
    return route->n == 0 || rf_route_stops(all, route)->at.piece == NULL;
}

static bool is_staging_tree(const struct rf_deliveries *all,
                            const struct rf_delivery_route *route)
{
    return route->kind == RF_ROUTE_TREE && stages(all, route);
}

/* Whether the numbers of a route are in range. */
static bool has_range(const struct delivery_proof *proof, size_t number)
{
    const struct rf_deliveries *all = proof->all;
    const struct rf_delivery_route *route = &all->routes[number];
    const uint32_t n_ranks = proof->of->plan->world->n_ranks;
    if (route->first > all->n_stops || route->n > all->n_stops - route->first) {
        return false;
    }
    switch (route->kind) {
    case RF_ROUTE_TREE:
        return route->from < n_ranks;
    case RF_ROUTE_RING:
        return route->from < n_ranks && route->n > 0;
    case RF_ROUTE_TAKES:
        return route->from < number && route->n > 0 &&
               all->routes[route->from].kind == RF_ROUTE_TREE;
    }
    return false;
}

/* Whether a stop follows from its parent. */
static bool is_linked(const struct delivery_proof *proof,
                      const struct rf_delivery_route *route, uint32_t at)
{
    const struct rf_deliveries *all = proof->all;
    const struct rf_stop *stop = &rf_route_stops(all, route)[at];
    const struct rf_delivery_route *staged = route;
    const uint32_t parent = stop->parent;
    switch (route->kind) {
    case RF_ROUTE_TREE:
        if (stop->at.rank == route->from && route->n > 1) {
            return false; /* only a local copy ends where it began */
        }
        if (parent == RF_NONE) {
            return stop->depth == 1 && stop->depth <= route->height;
        }
        return parent < at && stop->depth <= route->height &&
               stop->depth == rf_route_stops(all, route)[parent].depth + 1 &&
               rf_route_stops(all, route)[parent].sends;
    case RF_ROUTE_RING:
        return parent == RF_NONE;
    case RF_ROUTE_TAKES:
        staged = &all->routes[route->from];
        return parent == RF_NONE
                   ? stop->at.rank == staged->from
                   : parent < staged->n &&
                         rf_route_stops(all, staged)[parent].at.rank ==
                             stop->at.rank;
    }
    return false;
}

/* Checks the stops of a route; notes their pieces as written. */
static enum rf_status check_stops(const struct delivery_proof *proof,
                                  size_t number)
{
    const struct rf_delivery_route *route = &proof->all->routes[number];
    const struct rf_stop *stops = rf_route_stops(proof->all, route);
    const bool staged = is_staging_tree(proof->all, route);
    for (uint32_t i = 0; i < route->n; i++) {
        if (stops[i].at.rank >= proof->of->plan->world->n_ranks ||
            (stops[i].at.piece == NULL) != staged) {
            return route_fault(proof, number, "a stop is no place");
        }
        if (!is_linked(proof, route, i)) {
            return route_fault(proof, number, "a stop does not follow");
        }
        if (!staged &&
            !rf_schedule_proof_receives(proof->of, &stops[i].at, route->family,
                                        &route->box)) {
            return route_fault(proof, number, "a stop has no place for it");
        }
    }
    return RF_OK;
}

/* Whether routes to staging memory of several stops share no rank with others.
 */
static bool are_apart(const struct delivery_proof *proof)
{
    const struct rf_deliveries *all = proof->all;
    uint32_t *routes_to =
        rf_xcalloc(proof->of->plan->world->n_ranks, sizeof(*routes_to));
    bool apart = true;
    for (size_t i = 0; i < all->n_routes; i++) {
        const struct rf_delivery_route *route = &all->routes[i];
        const struct rf_stop *stops = rf_route_stops(all, route);
        for (uint32_t k = 0; is_staging_tree(all, route) && k < route->n; k++) {
            routes_to[stops[k].at.rank]++;
        }
    }
    for (size_t i = 0; i < all->n_routes; i++) {
        const struct rf_delivery_route *route = &all->routes[i];
        const struct rf_stop *stops = rf_route_stops(all, route);
        const bool several = is_staging_tree(all, route) && route->n > 1;
        for (uint32_t k = 0; several && k < route->n; k++) {
            apart &= routes_to[stops[k].at.rank] == 1;
        }
    }
    free(routes_to);
    return apart;
}

static enum rf_status check_routes(const struct delivery_proof *proof)
{
    for (size_t i = 0; i < proof->all->n_routes; i++) {
        if (!has_range(proof, i)) {
            return route_fault(proof, i, "has a number out of range");
        }
        RF_TRY(check_stops(proof, i));
    }
    return are_apart(proof)
               ? RF_OK
               : rf_err_set(proof->of->err, RF_ERR_INTERNAL,
                            "schedule: routes share staging memory");
}

/* --- Deliveries ----------------------------------------------------------- */

/* Whether the numbers of a delivery are in range, as delivery.c assumes. */
static bool is_sound(const struct delivery_proof *proof,
                     const struct rf_delivery *delivery)
{
    const struct rf_schedule *schedule = proof->of->schedule;
    const struct rf_deliveries *all = proof->all;
    const struct rf_op *op = &delivery->op;
    const struct rf_delivery_route *route;
    if (op->id != proof->next_id || op->id > schedule->n_world_ops ||
        delivery->route >= all->n_routes ||
        op->family >= proof->of->plan->model->n_families) {
        return false;
    }
    route = rf_route_of(all, delivery);
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        if (op->box.extent[d] == 0) {
            return false;
        }
    }
    if (route->kind == RF_ROUTE_TAKES || op->src != route->from ||
        (op->dst_mem != RF_MEM_INFER && op->dst_mem != RF_MEM_STAGE) ||
        delivery->split.dim >= RF_BOX_DIMS || delivery->split.parts == 0 ||
        delivery->split.parts > op->box.extent[delivery->split.dim] ||
        delivery->larger !=
            op->box.extent[delivery->split.dim] % delivery->split.parts ||
        (delivery->takes == RF_NONE && route->n == 0) ||
        (delivery->tasks != 0 && (delivery->tasks != 1 || route->n != 1))) {
        return false;
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (delivery->chunking[i].dim >= RF_BOX_DIMS ||
            delivery->chunking[i].step == 0 ||
            delivery->chunking[i].count == 0) {
            return false;
        }
    }
    return route->kind == RF_ROUTE_RING
               ? delivery->turn < route->n && delivery->pace == 1 &&
                     delivery->split.parts <= route->n &&
                     delivery->takes == RF_NONE
               : delivery->split.parts == 1;
}

/* Whether the takes of a delivery follow its route. */
static bool has_takes(const struct delivery_proof *proof,
                      const struct rf_delivery *delivery)
{
    const struct rf_delivery_route *takes;
    if (delivery->takes == RF_NONE) {
        return true;
    }
    if (delivery->takes >= proof->all->n_routes) {
        return false;
    }
    takes = rf_takes_of(proof->all, delivery);
    return takes->kind == RF_ROUTE_TAKES && takes->from == delivery->route &&
           delivery->op.src_mem == RF_MEM_STAGE &&
           delivery->op.dst_mem == RF_MEM_STAGE &&
           rf_form_equal(delivery->take, rf_plan_form(proof->of->plan, RF_INFER,
                                                      delivery->op.family));
}

/* Whether ids and rounds stay below the schedule's. */
static bool fits(const struct delivery_proof *proof,
                 const struct rf_delivery *delivery)
{
    const struct rf_schedule *schedule = proof->of->schedule;
    const uint32_t round = delivery->op.round;
    uint64_t chunks = rf_delivery_chunks(delivery), rounds;
    return chunks - 1 <= UINT32_MAX - delivery->op.task &&
           rf_delivery_ops(proof->all, delivery) <=
               schedule->n_world_ops - proof->next_id &&
           round < schedule->n_rounds &&
           rf_mul_u64(chunks, delivery->pace, &rounds) &&
           rounds <= UINT32_MAX &&
           rf_delivery_rounds(proof->all, delivery) <=
               schedule->n_rounds - round;
}

/* Whether two deliveries cut the same box into the same chunks. */
static bool same_chunks(const struct rf_delivery *a,
                        const struct rf_delivery *b)
{
    const struct rf_chunking *x = &a->chunking[1], *y = &b->chunking[1];
    return rf_box_compare(&a->op.box, &b->op.box) == 0 && a->split.parts == 1 &&
           b->split.parts == 1 && x->dim == y->dim && x->step == y->step &&
           x->count == y->count;
}

/* Whether every chunk of `later` comes in a later round than `earlier`'s. */
static bool is_after(const struct rf_delivery *later,
                     const struct rf_delivery *earlier)
{
    const uint64_t last = rf_delivery_chunks(later) - 1;
    return later->op.round > earlier->op.round &&
           later->op.round + last * later->pace >
               earlier->op.round + last * earlier->pace;
}

/* Checks that a delivery reads what the one stop of an earlier one holds. */
static enum rf_status check_dep(const struct delivery_proof *proof,
                                const struct rf_delivery *delivery)
{
    const struct rf_op *op = &delivery->op;
    struct rf_deliveries earlier = *proof->all;
    const struct rf_delivery *dep;
    struct rf_op wrote;
    earlier.n = (size_t)(delivery - proof->all->of);
    dep = rf_delivery_find(&earlier, op->dep);
    if (dep == NULL || dep->op.id != op->dep) {
        return fault(proof, delivery, "reads what no earlier op wrote");
    }
    if (rf_route_of(proof->all, dep)->n != 1 || dep->takes != RF_NONE ||
        !same_chunks(delivery, dep) || !is_after(delivery, dep)) {
        return fault(proof, delivery, "is not after its dep");
    }
    rf_delivery_op(proof->all, dep, &(struct rf_delivery_step){0, 0, 0},
                   &wrote);
    wrote.box = dep->op.box; /* with the first chunk's place */
    return rf_schedule_proof_reads(proof->of, op, &wrote);
}

static enum rf_status check_source(const struct delivery_proof *proof,
                                   const struct rf_delivery *delivery)
{
    const struct rf_op *op = &delivery->op;
    if (!rf_schedule_proof_forms(proof->of->plan, op)) {
        return fault(proof, delivery,
                     "has elements of the wrong size or another cast");
    }
    if (op->src_mem != RF_MEM_TRAIN) {
        return check_dep(proof, delivery);
    }
    return op->dep == RF_NO_OP &&
                   rf_schedule_proof_held(
                       rf_plan_layout(proof->of->plan, RF_TRAIN, op->src), op)
               ? RF_OK
               : fault(proof, delivery, "reads what its rank does not hold");
}

static enum rf_status make_room(struct delivery_proof *proof, uint64_t boxes)
{
    uint64_t bytes = UINT64_MAX;
    if (boxes > proof->boxes_capacity) {
        (void)rf_mul_u64(boxes, sizeof(*proof->boxes), &bytes);
        RF_TRY(
            rf_memory_admit(bytes, "the proof of a delivery", proof->of->err));
        free(proof->boxes);
        proof->boxes = rf_xcalloc(boxes, sizeof(*proof->boxes));
        proof->boxes_capacity = boxes;
    }
    return RF_OK;
}

/* Checks that the parts and chunks make up the box, exactly once. */
static enum rf_status check_boxes(struct delivery_proof *proof,
                                  const struct rf_delivery *delivery)
{
    uint64_t left = rf_box_elements(&delivery->op.box);
    struct rf_box *boxes;
    bool holds = true;
    size_t n = 0;
    RF_TRY(make_room(proof, rf_delivery_boxes(delivery)));
    boxes = proof->boxes;
    assert(boxes != NULL); /* a delivery has a box */
    for (uint32_t p = 0; p < delivery->split.parts; p++) {
        const uint64_t chunks = rf_delivery_part_chunks(delivery, p);
        for (uint64_t k = 0; k < chunks; k++) {
            boxes[n] = rf_delivery_box(delivery, p, k);
            holds &= rf_box_contains(&delivery->op.box, &boxes[n]);
            left -= rf_box_elements(&boxes[n++]);
        }
    }
    holds = holds && left == 0 && rf_boxes_disjoint(boxes, n);
    return holds ? RF_OK : fault(proof, delivery, "loses or repeats elements");
}

/* Checks the writes: to pieces by the box, to staging memory by the place. */
static enum rf_status check_places(struct delivery_proof *proof,
                                   const struct rf_delivery *delivery)
{
    const struct rf_deliveries *all = proof->all;
    const struct rf_op *op = &delivery->op;
    const struct rf_delivery_route *route = rf_route_of(all, delivery);
    const bool staged = op->dst_mem == RF_MEM_STAGE;
    const uint32_t brings =
        delivery->takes != RF_NONE ? delivery->takes : delivery->route;
    if (staged != stages(all, route)) {
        return fault(proof, delivery, "writes where its route does not go");
    }
    if (!staged || delivery->takes != RF_NONE) {
        const struct rf_delivery_route *of = &all->routes[brings];
        if (of->family != op->family || !rf_box_contains(&of->box, &op->box)) {
            return fault(proof, delivery,
                         "a receiver has no place for its box");
        }
        proof->brought[proof->n_brought++] =
            (struct rf_box_in){brings, &op->box};
    }
    if (staged && route->n > 0) {
        const uint32_t first = rf_route_stops(all, route)->at.rank;
        RF_TRY(rf_schedule_proof_stages(proof->of, op, first));
    }
    return RF_OK;
}

/* --- Tasks ---------------------------------------------------------------- */

/* The round in which the last chunk leaves the source. */
static uint64_t last_begin(const struct rf_delivery *delivery)
{
    return delivery->op.round +
           (rf_delivery_chunks(delivery) - 1) * delivery->pace;
}

/* Whether `b` continues the task of `a` over the same tree, from its beginning
 * to its end no earlier. */
static bool same_task(const struct delivery_proof *proof,
                      const struct rf_delivery *a, const struct rf_delivery *b)
{
    return a->route == b->route &&
           rf_route_of(proof->all, a)->kind == RF_ROUTE_TREE &&
           a->op.task == b->op.task && a->tasks == 0 && b->tasks == 0 &&
           a->op.round <= b->op.round && last_begin(a) <= last_begin(b);
}

/* Checks rule 3 at a rank that is busy in rounds [first, end) of the tasks
 * [task, last]. */
static bool follows(struct rf_rank_state *rank, uint32_t task, uint32_t last,
                    uint64_t first, uint64_t end)
{
    if ((rank->busy && task <= rank->task) || first < rank->end_round) {
        return false;
    }
    rank->busy = true;
    rank->task = last;
    rank->end_round = (uint32_t)end;
    return true;
}

/* Checks rule 3 for the deliveries of a task, which ends here. */
static enum rf_status end_task(struct delivery_proof *proof)
{
    const struct rf_deliveries *all = proof->all;
    const struct rf_delivery *begun = proof->first, *last = proof->last;
    const struct rf_delivery_route *route;
    uint64_t first, end, unused, more;
    uint32_t until;
    bool good;
    proof->first = NULL;
    if (begun == NULL || rf_route_is_local(all, rf_route_of(all, begun))) {
        return RF_OK;
    }
    route = rf_route_of(all, begun);
    more = rf_delivery_chunks(begun) - 1;
    until = begun->op.task + (uint32_t)more * begun->tasks;
    /* Tasks of several chunks are one after the other. */
    good = begun->tasks == 0 || begun->pace > 0 || more == 0;
    for (uint32_t i = 0; i < route->n && good; i++) {
        const uint32_t rank = rf_route_stops(all, route)[i].at.rank;
        rf_delivery_busy(all, begun, i, &first, &unused);
        rf_delivery_busy(all, last, i, &unused, &end);
        good = follows(&proof->of->ranks[rank], begun->op.task, until,
                       begun->op.round + first, last->op.round + end);
    }
    good = good && follows(&proof->of->ranks[route->from], begun->op.task,
                           until, begun->op.round, last_begin(last) + 1);
    return good
               ? RF_OK
               : fault(proof, begun, "comes before the end of an earlier task");
}

static enum rf_status follows_tasks(struct delivery_proof *proof,
                                    const struct rf_delivery *delivery)
{
    if (!proof->of->plan->spec->serialize) {
        return RF_OK;
    }
    if (proof->first == NULL || !same_task(proof, proof->last, delivery)) {
        RF_TRY(end_task(proof));
        proof->first = delivery;
    }
    proof->last = delivery;
    return RF_OK;
}

/* --- All together --------------------------------------------------------- */

static enum rf_status check_delivery(struct delivery_proof *proof,
                                     const struct rf_delivery *delivery)
{
    enum rf_status status;
    if (!is_sound(proof, delivery) || !has_takes(proof, delivery) ||
        !fits(proof, delivery)) {
        return fault(proof, delivery, "has a number out of range");
    }
    status = rf_schedule_proof_enter(
        proof->of, &delivery->op,
        delivery->op.round + rf_delivery_rounds(proof->all, delivery));
    RF_THEN(status, check_source(proof, delivery));
    RF_THEN(status, check_boxes(proof, delivery));
    RF_THEN(status, check_places(proof, delivery));
    RF_THEN(status, follows_tasks(proof, delivery));
    proof->next_id +=
        status == RF_OK ? rf_delivery_ops(proof->all, delivery) : 0;
    return status;
}

/* Checks that every route brings its box once. */
static enum rf_status check_brought(const struct delivery_proof *proof)
{
    const struct rf_deliveries *all = proof->all;
    uint64_t *elements = rf_xcalloc(all->n_routes, sizeof(*elements));
    const struct rf_boxes_in boxes = {proof->brought, proof->n_brought,
                                      elements, all->n_routes};
    size_t bad = 0;
    bool filled;
    for (size_t i = 0; i < all->n_routes; i++) {
        const struct rf_delivery_route *route = &all->routes[i];
        if (!is_staging_tree(all, route)) {
            elements[i] = rf_box_elements(&route->box);
        }
    }
    filled = rf_schedule_proof_fill(&boxes, &bad);
    free(elements);
    return filled
               ? RF_OK
               : route_fault(proof, bad, "its box is not brought exactly once");
}

enum rf_status rf_deliveries_prove(struct rf_schedule_proof *of)
{
    struct delivery_proof proof = {.of = of, .all = of->schedule->deliveries};
    enum rf_status status = check_routes(&proof);
    proof.brought = rf_xcalloc(proof.all->n, sizeof(*proof.brought));
    for (size_t i = 0; status == RF_OK && i < proof.all->n; i++) {
        status = check_delivery(&proof, &proof.all->of[i]);
    }
    RF_THEN(status, end_task(&proof));
    if (status == RF_OK && proof.next_id != of->schedule->n_world_ops) {
        status = rf_err_set(of->err, RF_ERR_INTERNAL,
                            "schedule: has lost or gained ops");
    }
    RF_THEN(status, check_brought(&proof));
    free(proof.brought);
    free(proof.boxes);
    return status;
}

void rf_deliveries_prove_alike(struct rf_schedule_proof *of)
{
    const struct rf_deliveries *all = of->schedule->deliveries;
    for (size_t i = 0; i < all->n_routes; i++) {
        const struct rf_delivery_route *route = &all->routes[i];
        const struct rf_stop *stops = rf_route_stops(all, route);
        for (uint32_t k = 1; is_staging_tree(all, route) && k < route->n; k++) {
            memcpy(of->ranks[stops[k].at.rank].used,
                   of->ranks[stops[0].at.rank].used, sizeof(of->ranks->used));
        }
    }
}
