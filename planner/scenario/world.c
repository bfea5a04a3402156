/*
 * Worlds: the number of ranks of each side and the slot of each rank.
 *
 * A side's ranks take the first `size` entries of its list of places; mesh rank
 * i sits at place i. Everything is computed and checked before anything is
 * kept, so a failure leaves `spec` unchanged.
 */
#include "planner/scenario/world.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

enum rf_status rf_world_fail(enum rf_side side, struct rf_err *err,
                             const char *fmt, ...)
{
    char text[768];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return rf_err_set(err, RF_ERR_CONFIG, "%s: %s",
                      side == RF_TRAIN ? "train" : "infer", text);
}

struct slot_place {
    uint32_t node, slot;
};

/* The slots available to a side, in order, and how many of them it uses. */
struct seats {
    struct slot_place *places;
    uint32_t n_places;
    uint32_t size;
};

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Least common multiple; 0 when larger than any world. */
static uint64_t lcm(uint64_t a, uint64_t b)
{
    uint64_t result;
    if (a == 0 || b == 0 || !rf_mul_u64(a / gcd(a, b), b, &result) ||
        result > RF_WORLD_MAX_RANKS) {
        return 0;
    }
    return result;
}

/* Sizes are at most 65536 each, so three of them fit 64 bits. */
static uint64_t dense_group(const struct rf_side_spec *side)
{
    return (uint64_t)side->tp * side->cp * side->pp;
}

static uint64_t expert_group(const struct rf_side_spec *side)
{
    return (uint64_t)side->etp * side->ep * side->pp;
}

/* Ranks of the smallest mesh with these sizes; 0: too many. */
static uint64_t smallest_size(const struct rf_side_spec *side)
{
    uint64_t dense;
    if (!rf_mul_u64(dense_group(side),
                    side->dp_given ? side->dp : side->dp_replicate, &dense)) {
        return 0;
    }
    return lcm(dense, expert_group(side));
}

static enum rf_status fail_dp(const struct rf_spec *spec, enum rf_side which,
                              struct rf_err *err)
{
    const struct rf_side_spec *side = &spec->side[which];
    const uint64_t group = dense_group(side);
    uint64_t step, below;
    char also[32] = "";
    assert(group > 0); /* sizes are 1 or more */
    step = lcm(group, expert_group(side)) / group;
    assert(step > 0); /* otherwise size_of_side() fails */
    below = side->dp / step * step;
    if (below > 0) {
        snprintf(also, sizeof(also), "%llu, ", (unsigned long long)below);
    }
    return rf_world_fail(
        which, err,
        "tp·cp·pp·dp = %llu ranks do not divide into groups of etp·ep·pp = "
        "%u·%u·%u = %llu; nearest values of dp that work: %s%llu",
        (unsigned long long)(dense_group(side) * side->dp), side->etp, side->ep,
        side->pp, (unsigned long long)expert_group(side), also,
        (unsigned long long)(below + step));
}

static enum rf_status fail_division(const struct rf_spec *spec,
                                    enum rf_side which, uint32_t slots,
                                    struct rf_err *err)
{
    const struct rf_side_spec *side = &spec->side[which];
    uint64_t step = smallest_size(side);
    uint64_t below;
    bool dense = slots % dense_group(side) != 0;
    char also[32] = "";
    assert(step > 0); /* otherwise size_of_side() fails */
    below = slots / step * step;
    if (below > 0) {
        snprintf(also, sizeof(also), "%llu, ", (unsigned long long)below);
    }
    if (side->dp_replicate > 1) {
        return rf_world_fail(
            which, err,
            "%u slots do not divide into dp_replicate = %u "
            "groups; nearest numbers of slots that work: "
            "%s%llu (an explicit dp uses the first slots only)",
            slots, side->dp_replicate, also,
            (unsigned long long)(below + step));
    }
    return rf_world_fail(
        which, err,
        "%u slots do not divide into groups of %s = %u·%u·%u = %llu ranks; "
        "nearest numbers of slots that work: %s%llu (an explicit dp uses the "
        "first slots only)",
        slots, dense ? "tp·cp·pp" : "etp·ep·pp", dense ? side->tp : side->etp,
        dense ? side->cp : side->ep, side->pp,
        (unsigned long long)(dense ? dense_group(side) : expert_group(side)),
        also, (unsigned long long)(below + step));
}

/* Megatron splits each expert over etp ranks, by default over tp. */
static enum rf_status fail_size(const struct rf_spec *spec, enum rf_side which,
                                uint64_t needed, uint32_t slots,
                                struct rf_err *err)
{
    const struct rf_side_spec *side = &spec->side[which];
    const uint32_t dp = side->dp_given ? side->dp : side->dp_replicate;
    struct rf_side_spec whole = *side;
    uint64_t enough;
    char why[160] = "";
    whole.etp = 1;
    enough = smallest_size(&whole);
    if (side->layout == RF_LAYOUT_MEGATRON && enough < needed) {
        snprintf(why, sizeof(why),
                 ": etp·ep·pp = %u·%u·%u (\"etp\" defaults to tp); with "
                 "\"etp\": 1 it needs %llu",
                 side->etp, side->ep, side->pp, (unsigned long long)enough);
    } else if (needed == dense_group(side) * dp) {
        snprintf(why, sizeof(why), ": tp·cp·pp·dp = %u·%u·%u·%u", side->tp,
                 side->cp, side->pp, dp);
    }
    return rf_world_fail(which, err, "needs at least %llu slots but has %u%s%s",
                         (unsigned long long)needed, slots, why,
                         spec->mode == RF_DISAGGREGATED
                             ? "; disaggregated sides share no slots"
                             : "");
}

/* Sets the number of places that a side uses: all, or what an explicit dp
 * needs. */
static enum rf_status size_of_side(const struct rf_spec *spec,
                                   enum rf_side which, struct seats *seats,
                                   struct rf_err *err)
{
    const struct rf_side_spec *side = &spec->side[which];
    uint64_t needed = smallest_size(side);
    if (needed == 0) {
        return rf_world_fail(which, err, "these sizes need more than %u ranks",
                             RF_WORLD_MAX_RANKS);
    }
    if (side->dp_given && needed != dense_group(side) * side->dp) {
        return fail_dp(spec, which, err);
    }
    if (needed > seats->n_places) {
        return fail_size(spec, which, needed, seats->n_places, err);
    }
    seats->size = side->dp_given ? (uint32_t)needed : seats->n_places;
    if (seats->size % needed != 0) {
        return fail_division(spec, which, seats->size, err);
    }
    return RF_OK;
}

/* Appends the slots of a node. */
static void add_places(struct seats *seats, uint32_t node, uint32_t n_slots)
{
    for (uint32_t slot = 0; slot < n_slots; slot++) {
        seats->places[seats->n_places++] = (struct slot_place){node, slot};
    }
}

/* Appends the slots of the nodes that `side` names, or of all nodes. */
static void add_named(struct seats *seats, const struct rf_side_spec *side,
                      const uint32_t *slots, uint32_t n_nodes)
{
    if (side->nodes == NULL) {
        for (uint32_t node = 0; node < n_nodes; node++) {
            add_places(seats, node, slots[node]);
        }
        return;
    }
    for (uint32_t i = 0; i < side->n_nodes; i++) {
        add_places(seats, side->nodes[i], slots[side->nodes[i]]);
    }
}

static bool names_node(const struct rf_side_spec *side, uint32_t node)
{
    for (uint32_t i = 0; i < side->n_nodes; i++) {
        if (side->nodes[i] == node) {
            return true;
        }
    }
    return false;
}

static enum rf_status seat_colocated(const struct rf_spec *spec,
                                     const uint32_t *slots, uint32_t n_nodes,
                                     struct seats seats[RF_SIDES],
                                     struct rf_err *err)
{
    const struct rf_side_spec *train = &spec->train, *infer = &spec->infer;
    const struct rf_side_spec *named = train->nodes != NULL ? train : infer;
    if (train->nodes != NULL && infer->nodes != NULL &&
        (train->n_nodes != infer->n_nodes ||
         memcmp(train->nodes, infer->nodes,
                train->n_nodes * sizeof(*train->nodes)) != 0)) {
        return rf_world_fail(RF_INFER, err,
                             "colocated sides share their slots: \"nodes\" "
                             "must equal those of the training side");
    }
    add_named(&seats[RF_TRAIN], named, slots, n_nodes);
    add_named(&seats[RF_INFER], named, slots, n_nodes);
    RF_TRY(size_of_side(spec, RF_TRAIN, &seats[RF_TRAIN], err));
    return size_of_side(spec, RF_INFER, &seats[RF_INFER], err);
}

/* Seats a side without nodes: its smallest world on the first slots outside the
 * nodes that `other` names, after the first `taken` ones. */
static void add_free(struct seats *seats, const struct rf_side_spec *other,
                     uint32_t taken, uint64_t wanted, const uint32_t *slots,
                     uint32_t n_nodes)
{
    for (uint32_t node = 0; node < n_nodes; node++) {
        if (names_node(other, node)) {
            continue;
        }
        for (uint32_t slot = 0; slot < slots[node]; slot++) {
            if (taken > 0) {
                taken--;
            } else if (seats->n_places < wanted) {
                seats->places[seats->n_places++] =
                    (struct slot_place){node, slot};
            }
        }
    }
}

static enum rf_status seat_disaggregated(const struct rf_spec *spec,
                                         const uint32_t *slots,
                                         uint32_t n_nodes,
                                         struct seats seats[RF_SIDES],
                                         struct rf_err *err)
{
    uint32_t taken = 0; /* free slots used by the training side */
    for (uint32_t i = 0; i < spec->train.n_nodes; i++) {
        if (names_node(&spec->infer, spec->train.nodes[i])) {
            return rf_world_fail(RF_INFER, err,
                                 "disaggregated sides must not share nodes: "
                                 "\"nodes\" lists a node of the training side");
        }
    }
    for (int i = 0; i < RF_SIDES; i++) {
        enum rf_side which = (enum rf_side)i;
        const struct rf_side_spec *side = &spec->side[which];
        const struct rf_side_spec *other =
            &spec->side[which == RF_TRAIN ? RF_INFER : RF_TRAIN];
        if (side->nodes != NULL) {
            add_named(&seats[i], side, slots, n_nodes);
        } else {
            add_free(&seats[i], other, taken, smallest_size(side), slots,
                     n_nodes);
            taken = seats[i].n_places;
        }
        RF_TRY(size_of_side(spec, which, &seats[i], err));
    }
    return RF_OK;
}

uint64_t rf_world_smallest(const struct rf_spec *spec)
{
    uint64_t train = smallest_size(&spec->train);
    uint64_t infer = smallest_size(&spec->infer);
    if (spec->mode == RF_COLOCATED) {
        return lcm(train, infer);
    }
    return train == 0 || infer == 0 ? 0 : train + infer;
}

static void place_ranks(const struct rf_spec *spec,
                        struct seats seats[RF_SIDES], struct rf_world *world)
{
    bool shared = spec->mode == RF_COLOCATED && !spec->separate_processes;
    for (int i = 0; i < RF_SIDES; i++) {
        const struct rf_side_spec *side = &spec->side[i];
        uint32_t base = i == RF_TRAIN || shared ? 0 : seats[RF_TRAIN].size;
        world->size[i] = seats[i].size;
        world->edp[i] = (uint32_t)(seats[i].size / expert_group(side));
        for (uint32_t index = 0; index < seats[i].size; index++) {
            struct rf_rank *rank = &world->ranks[base + index];
            rank->node = seats[i].places[index].node;
            rank->slot = seats[i].places[index].slot;
            rank->index[i] = index;
            world->rank_of[i][index] = base + index;
        }
    }
}

static struct rf_world *make_world(const struct rf_spec *spec,
                                   struct seats seats[RF_SIDES],
                                   uint32_t n_nodes)
{
    bool shared = spec->mode == RF_COLOCATED && !spec->separate_processes;
    struct rf_world *world = rf_xcalloc(1, sizeof(*world));
    uint32_t train = seats[RF_TRAIN].size, infer = seats[RF_INFER].size;
    world->n_ranks = shared ? RF_MAX(train, infer) : train + infer;
    world->n_nodes = n_nodes;
    world->ranks = rf_xcalloc(world->n_ranks, sizeof(*world->ranks));
    world->rank_of[RF_TRAIN] = rf_xcalloc(train, sizeof(uint32_t));
    world->rank_of[RF_INFER] = rf_xcalloc(infer, sizeof(uint32_t));
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        world->ranks[r].index[RF_TRAIN] = RF_NONE;
        world->ranks[r].index[RF_INFER] = RF_NONE;
    }
    place_ranks(spec, seats, world);
    return world;
}

/* Counts and checks the slots of the whole cluster. */
static enum rf_status count_slots(const uint32_t *slots, uint32_t n_nodes,
                                  uint32_t *total, struct rf_err *err)
{
    uint64_t sum = 0;
    for (uint32_t node = 0; node < n_nodes; node++) {
        sum += slots[node];
    }
    if (sum > RF_WORLD_MAX_RANKS) {
        return rf_err_set(err, RF_ERR_CONFIG, "%llu slots, the limit is %u",
                          (unsigned long long)sum, RF_WORLD_MAX_RANKS);
    }
    *total = (uint32_t)sum;
    return RF_OK;
}

/* Checks node numbers, which refer to the cluster that the scenario was read
 * for. */
static enum rf_status check_nodes(const struct rf_spec *spec, uint32_t n_nodes,
                                  struct rf_err *err)
{
    for (int i = 0; i < RF_SIDES; i++) {
        const struct rf_side_spec *side = &spec->side[i];
        for (uint32_t j = 0; j < side->n_nodes; j++) {
            if (side->nodes[j] >= n_nodes) {
                return rf_world_fail((enum rf_side)i, err,
                                     "\"nodes\" refers to a node outside of "
                                     "the %u of the cluster",
                                     n_nodes);
            }
        }
    }
    return RF_OK;
}

static enum rf_status seat_sides(const struct rf_spec *spec,
                                 const uint32_t *slots, uint32_t n_nodes,
                                 struct seats seats[RF_SIDES],
                                 struct rf_err *err)
{
    uint32_t total = 0;
    RF_TRY(count_slots(slots, n_nodes, &total, err));
    for (int i = 0; i < RF_SIDES; i++) {
        seats[i].places = rf_xcalloc(total, sizeof(*seats[i].places));
    }
    return spec->mode == RF_COLOCATED
               ? seat_colocated(spec, slots, n_nodes, seats, err)
               : seat_disaggregated(spec, slots, n_nodes, seats, err);
}

/* Sets dp, and without an explicit one the number of vLLM engines with EP: each
 * has etp·ep·pp ranks. */
static void fill_in_dp(struct rf_side_spec *side, uint32_t size)
{
    side->dp = (uint32_t)(size / dense_group(side));
    if (side->layout == RF_LAYOUT_VLLM && side->ep > 1 && !side->dp_given) {
        side->dp_replicate =
            RF_MAX(size / (side->ep * side->etp * side->pp), 1);
    }
}

enum rf_status rf_world_place(struct rf_spec *spec, const uint32_t *slots,
                              uint32_t n_nodes, struct rf_world **out,
                              struct rf_err *err)
{
    struct seats seats[RF_SIDES] = {{0}};
    uint32_t imaginary = 0;
    enum rf_status status;
    RF_TRY(check_nodes(spec, n_nodes, err));
    if (n_nodes == 0) {
        imaginary = (uint32_t)rf_world_smallest(spec);
        if (imaginary == 0) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "both sides need more than %u ranks together",
                              RF_WORLD_MAX_RANKS);
        }
        slots = &imaginary;
        n_nodes = 1;
    }
    status = seat_sides(spec, slots, n_nodes, seats, err);
    if (status == RF_OK) {
        *out = make_world(spec, seats, n_nodes);
        fill_in_dp(&spec->train, (*out)->size[RF_TRAIN]);
        fill_in_dp(&spec->infer, (*out)->size[RF_INFER]);
    }
    free(seats[RF_TRAIN].places);
    free(seats[RF_INFER].places);
    return status;
}

void rf_world_destroy(struct rf_world *world)
{
    if (world == NULL) {
        return;
    }
    free(world->ranks);
    free(world->rank_of[RF_TRAIN]);
    free(world->rank_of[RF_INFER]);
    free(world);
}

struct rf_coord rf_coord_of(const struct rf_side_spec *side, uint32_t size,
                            uint32_t index)
{
    uint32_t stage = size / side->pp;
    uint32_t s = index % stage;
    return (struct rf_coord){
        .tp = s % side->tp,
        .cp = s / side->tp % side->cp,
        .dp = s / (side->tp * side->cp),
        .pp = index / stage,
        .etp = s % side->etp,
        .ep = s / side->etp % side->ep,
        .edp = s / (side->etp * side->ep),
    };
}

bool rf_same_slot(const struct rf_world *world, uint32_t a, uint32_t b)
{
    return world->ranks[a].node == world->ranks[b].node &&
           world->ranks[a].slot == world->ranks[b].slot;
}

bool rf_world_loads(const struct rf_world *world,
                    const struct rf_load_spec *load, uint32_t rank)
{
    const uint32_t *index = world->ranks[rank].index;
    return load->given &&
           (load->on == RF_LOAD_ON_ALL ||
            index[load->on == RF_LOAD_ON_TRAIN ? RF_TRAIN : RF_INFER] !=
                RF_NONE);
}

/* The next node after `node`, in a circle, with ranks that have a load. */
static uint32_t next_loaded_node(const struct rf_world *world,
                                 const uint32_t *n_of_node, uint32_t node)
{
    do {
        node = node + 1 < world->n_nodes ? node + 1 : 0;
    } while (n_of_node[node] == 0);
    return node;
}

uint32_t *rf_world_load_peers(const struct rf_world *world,
                              const struct rf_load_spec *load)
{
    const size_t n_nodes = world->n_nodes;
    uint32_t *peers = rf_xcalloc(world->n_ranks, sizeof(*peers));
    uint32_t *n_of_node = rf_xcalloc(n_nodes, sizeof(*n_of_node));
    uint32_t *first = rf_xcalloc(n_nodes + 1, sizeof(*first));
    uint32_t *at = rf_xcalloc(n_nodes, sizeof(*at));
    uint32_t *ranks = rf_xcalloc(world->n_ranks, sizeof(*ranks));
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        n_of_node[world->ranks[r].node] += rf_world_loads(world, load, r);
    }
    for (size_t i = 0; i < n_nodes; i++) {
        first[i + 1] = first[i] + n_of_node[i];
    }
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        const uint32_t node = world->ranks[r].node;
        if (rf_world_loads(world, load, r)) {
            ranks[first[node] + at[node]++] = r;
        }
        peers[r] = RF_NONE;
    }
    for (uint32_t i = 0; i < first[n_nodes]; i++) {
        const uint32_t node = world->ranks[ranks[i]].node;
        const uint32_t next = next_loaded_node(world, n_of_node, node);
        if (next != node) {
            peers[ranks[i]] =
                ranks[first[next] + (i - first[node]) % n_of_node[next]];
        }
    }
    free(n_of_node);
    free(first);
    free(at);
    free(ranks);
    return peers;
}
