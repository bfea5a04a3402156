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

enum rf_status rf_world_fail(const struct rf_spec *spec, enum rf_side side,
                             struct rf_err *err, const char *fmt, ...)
{
    char text[768];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return rf_err_set(err, RF_ERR_CONFIG, "%s: %s",
                      rf_spec_side_name(spec, side), text);
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
        spec, which, err,
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
            spec, which, err,
            "%u slots do not divide into dp_replicate = %u "
            "groups; nearest numbers of slots that work: "
            "%s%llu (an explicit dp uses the first slots only)",
            slots, side->dp_replicate, also,
            (unsigned long long)(below + step));
    }
    return rf_world_fail(
        spec, which, err,
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
    return rf_world_fail(
        spec, which, err, "needs at least %llu slots but has %u%s%s",
        (unsigned long long)needed, slots, why,
        spec->mode == RF_DISAGGREGATED ? "; disaggregated sides share no slots"
        : spec->n_sides > RF_SIDES     ? "; pools share no slots"
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
        return rf_world_fail(spec, which, err,
                             "these sizes need more than %u ranks",
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

/* Appends the slots of the nodes that `side` names. */
static void add_named(struct seats *seats, const struct rf_side_spec *side,
                      const uint32_t *slots)
{
    for (uint32_t i = 0; i < side->n_nodes; i++) {
        for (uint32_t slot = 0; slot < slots[side->nodes[i]]; slot++) {
            seats->places[seats->n_places++] =
                (struct slot_place){side->nodes[i], slot};
        }
    }
}

/* Refuses nodes that two sides name, unless both share them. */
static enum rf_status check_named(const struct rf_spec *spec,
                                  enum rf_side which, struct rf_err *err)
{
    const struct rf_side_spec *side = &spec->side[which];
    for (uint32_t i = 0; i < (uint32_t)which; i++) {
        const struct rf_side_spec *other = &spec->side[i];
        const bool share = rf_spec_share_slots(spec, which, (enum rf_side)i);
        if (share && side->nodes != NULL && other->nodes != NULL &&
            (side->n_nodes != other->n_nodes ||
             memcmp(side->nodes, other->nodes,
                    side->n_nodes * sizeof(*side->nodes)) != 0)) {
            return rf_world_fail(spec, which, err,
                                 "colocated sides share their slots: \"nodes\" "
                                 "must equal those of the training side");
        }
        for (uint32_t n = 0; !share && n < side->n_nodes; n++) {
            if (rf_side_names(other, side->nodes[n])) {
                return rf_world_fail(
                    spec, which, err,
                    "%s must not share nodes: \"nodes\" lists a node of %s",
                    spec->n_sides == RF_SIDES ? "disaggregated sides"
                                              : "sides with slots of their own",
                    i == RF_TRAIN ? "the training side"
                                  : rf_spec_side_name(spec, (enum rf_side)i));
            }
        }
    }
    return RF_OK;
}

/* Seats a side without nodes on at most `wanted` slots of nodes that no side
 * names, behind the `taken` first ones. */
static void add_free(struct seats *seats, const struct rf_spec *spec,
                     uint64_t taken, uint64_t wanted, const uint32_t *slots,
                     uint32_t n_nodes)
{
    for (uint32_t node = 0; node < n_nodes; node++) {
        uint32_t by = 0;
        while (by < spec->n_sides && !rf_side_names(&spec->side[by], node)) {
            by++;
        }
        for (uint32_t slot = 0; by == spec->n_sides && slot < slots[node];
             slot++) {
            if (taken > 0) {
                taken--;
            } else if (seats->n_places < wanted) {
                seats->places[seats->n_places++] =
                    (struct slot_place){node, slot};
            }
        }
    }
}

/* The slots that training and the first pool leave to pools without nodes. */
static uint64_t left_to_pools(const struct rf_spec *spec)
{
    uint64_t slots = 0;
    for (uint32_t i = RF_SIDES; i < spec->n_sides; i++) {
        slots +=
            spec->side[i].nodes == NULL ? smallest_size(&spec->side[i]) : 0;
    }
    return slots;
}

/* Seats a side; *taken counts the slots of nodes without a name that the sides
 * before it have. */
static enum rf_status seat_side(const struct rf_spec *spec, enum rf_side which,
                                const uint32_t *slots, uint32_t n_nodes,
                                uint32_t *taken, struct seats *seats,
                                struct rf_err *err)
{
    const struct rf_side_spec *side = &spec->side[which];
    const bool shares = rf_spec_share_slots(spec, which, RF_TRAIN);
    RF_TRY(check_named(spec, which, err));
    if (shares && side->nodes == NULL) {
        side = &spec->side[RF_TRAIN + RF_INFER - which];
    }
    if (side->nodes != NULL) {
        add_named(seats, side, slots);
    } else if (shares) {
        const uint64_t left = left_to_pools(spec);
        add_free(seats, spec, 0, UINT64_MAX, slots, n_nodes);
        seats->n_places -= (uint32_t)RF_MIN(left, seats->n_places);
        *taken = seats->n_places;
    } else {
        add_free(seats, spec, *taken, smallest_size(side), slots, n_nodes);
        *taken += seats->n_places;
    }
    return size_of_side(spec, which, seats, err);
}

uint64_t rf_world_smallest(const struct rf_spec *spec)
{
    uint64_t all = 0, shared = 1;
    for (uint32_t i = 0; i < spec->n_sides; i++) {
        uint64_t size = smallest_size(&spec->side[i]);
        if (rf_spec_share_slots(spec, (enum rf_side)i, RF_TRAIN)) {
            size = shared = lcm(shared, size);
            all = 0;
        }
        if (size == 0) {
            return 0;
        }
        all += size;
    }
    return all;
}

static void place_ranks(const struct rf_spec *spec,
                        struct seats seats[RF_SIDES_MAX],
                        struct rf_world *world)
{
    bool shared = spec->mode == RF_COLOCATED && !spec->separate_processes;
    uint32_t next = 0; /* world rank */
    for (uint32_t i = 0; i < spec->n_sides; i++) {
        const enum rf_side side = i == RF_TRAIN ? RF_TRAIN : RF_INFER;
        const uint32_t base = i == RF_INFER && shared ? 0 : next;
        struct rf_world_mesh *mesh = &world->mesh[i];
        mesh->first = world->size[side];
        mesh->size = seats[i].size;
        mesh->edp = (uint32_t)(seats[i].size / expert_group(&spec->side[i]));
        for (uint32_t n = 0; n < seats[i].size; n++) {
            struct rf_rank *rank = &world->ranks[base + n];
            rank->node = seats[i].places[n].node;
            rank->slot = seats[i].places[n].slot;
            rank->index[side] = mesh->first + n;
            world->rank_of[side][mesh->first + n] = base + n;
        }
        world->size[side] += seats[i].size;
        next = RF_MAX(next, base + seats[i].size);
    }
    world->n_ranks = next;
}

static struct rf_world *make_world(const struct rf_spec *spec,
                                   struct seats seats[RF_SIDES_MAX],
                                   uint32_t n_nodes)
{
    struct rf_world *world = rf_xcalloc(1, sizeof(*world));
    size_t most = 0;
    for (uint32_t i = 0; i < spec->n_sides; i++) {
        most += seats[i].size;
    }
    world->n_nodes = n_nodes;
    world->n_meshes = spec->n_sides;
    world->ranks = rf_xcalloc(most, sizeof(*world->ranks));
    world->rank_of[RF_TRAIN] = rf_xcalloc(most, sizeof(uint32_t));
    world->rank_of[RF_INFER] = rf_xcalloc(most, sizeof(uint32_t));
    for (size_t r = 0; r < most; r++) {
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
    for (uint32_t i = 0; i < spec->n_sides; i++) {
        const struct rf_side_spec *side = &spec->side[i];
        for (uint32_t j = 0; j < side->n_nodes; j++) {
            if (side->nodes[j] >= n_nodes) {
                return rf_world_fail(spec, (enum rf_side)i, err,
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
                                 struct seats seats[RF_SIDES_MAX],
                                 struct rf_err *err)
{
    uint32_t total = 0, taken = 0;
    RF_TRY(count_slots(slots, n_nodes, &total, err));
    for (uint32_t i = 0; i < spec->n_sides; i++) {
        seats[i].places = rf_xcalloc(total, sizeof(*seats[i].places));
        RF_TRY(seat_side(spec, (enum rf_side)i, slots, n_nodes, &taken,
                         &seats[i], err));
    }
    return RF_OK;
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
    struct seats seats[RF_SIDES_MAX] = {{0}};
    uint32_t imaginary = 0;
    enum rf_status status;
    RF_TRY(check_nodes(spec, n_nodes, err));
    if (n_nodes == 0) {
        imaginary = (uint32_t)rf_world_smallest(spec);
        if (imaginary == 0) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "all sides need more than %u ranks together",
                              RF_WORLD_MAX_RANKS);
        }
        slots = &imaginary;
        n_nodes = 1;
    }
    status = seat_sides(spec, slots, n_nodes, seats, err);
    if (status == RF_OK) {
        *out = make_world(spec, seats, n_nodes);
    }
    for (uint32_t i = 0; i < spec->n_sides; i++) {
        if (status == RF_OK) {
            fill_in_dp(&spec->side[i], seats[i].size);
        }
        free(seats[i].places);
    }
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

enum rf_side rf_world_side(const struct rf_world *world, enum rf_side side,
                           uint32_t index)
{
    uint32_t i = side;
    while (side == RF_INFER && i + 1 < world->n_meshes &&
           index >= world->mesh[i + 1].first) {
        i++;
    }
    return (enum rf_side)i;
}

enum rf_side rf_world_pool(const struct rf_world *world, uint32_t rank)
{
    const uint32_t index = world->ranks[rank].index[RF_INFER];
    return index == RF_NONE ? RF_TRAIN : rf_world_side(world, RF_INFER, index);
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
    uint32_t *ranks = rf_xcalloc(world->n_ranks, sizeof(*ranks));
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        first[world->ranks[r].node + 1] += rf_world_loads(world, load, r);
    }
    for (size_t i = 0; i < n_nodes; i++) {
        first[i + 1] += first[i];
    }
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        const uint32_t node = world->ranks[r].node;
        if (rf_world_loads(world, load, r)) {
            ranks[first[node] + n_of_node[node]++] = r;
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
    free(ranks);
    return peers;
}
