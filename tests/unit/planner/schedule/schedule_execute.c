/*
 * Runs a schedule on real bytes. Every element's content is a hash of its
 * family and place; ops are copied element by element, casts by keeping or
 * adding the low half. The next op is picked at random among all that rules 1
 * to 3 of planner/schedule/schedule.h allow, so an order that only happens to
 * work is found out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "planner/layout/box.h"
#include "tests/lib/places.h"
#include "tests/unit/planner/schedule/schedule_lab.h"

struct machine {
    const struct planned *lab;
    uint8_t **memory; /* by rank and kind of memory */
    bool *done;
    size_t *waiting; /* indices of the `left` ops that are not done */
    size_t left;
    /* Of what waits, the lowest at each rank: task of an op between ranks, and
     * group, by its remainder modulo in_flight. */
    uint32_t *task, *group;
    uint64_t seed;
};

static char fault[256];

static uint64_t next_random(struct machine *machine)
{
    machine->seed += 0x9E3779B97F4A7C15u;
    return rf_mix64(machine->seed);
}

static uint8_t *memory_of(const struct machine *machine, uint32_t rank,
                          unsigned kind)
{
    return machine->memory[rank * RF_MEM_COUNT + kind];
}

static void content(uint32_t family, const uint64_t *at, uint32_t item,
                    uint8_t *out)
{
    uint64_t place = family + 1;
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        place = place * RF_PATTERN_STEP + at[d];
    }
    place = rf_mix64(place);
    memcpy(out, &place, item);
}

/* As wide formats to narrow ones and back: the high half counts. */
static void convert(const uint8_t *in, uint32_t in_item, uint8_t *out,
                    uint32_t out_item)
{
    memset(out, 0, out_item);
    if (in_item > out_item) {
        memcpy(out, in + (in_item - out_item), out_item);
    } else {
        memcpy(out + (out_item - in_item), in, in_item);
    }
}

static void run_op(struct machine *machine, const struct rf_op *op)
{
    const uint8_t *src = memory_of(machine, op->src, op->src_mem);
    uint8_t *dst = memory_of(machine, op->dst, op->dst_mem);
    const uint32_t row = place_row(&op->box);
    const uint32_t in = rf_form_item(op->from), out = rf_form_item(op->to);
    uint64_t at[RF_BOX_DIMS];
    memcpy(at, op->box.start, sizeof(at));
    do {
        const uint8_t *from =
            src + place_address(&op->box, at, op->src_offset, op->src_stride);
        uint8_t *to =
            dst + place_address(&op->box, at, op->dst_offset, op->dst_stride);
        for (uint64_t i = 0; i < op->box.extent[row]; i++) {
            convert(from + i * op->src_stride[row], in,
                    to + i * op->dst_stride[row], out);
        }
    } while (place_next_of(&op->box, row, at));
}

/* Calls `element` for each element of a rank's pieces, in memory from `base`
 * on. Returns the piece where it first returned false, or NULL. */
static const struct rf_piece *
each_element(const struct machine *machine, enum rf_side side, uint32_t rank,
             uint8_t *base,
             bool (*element)(const struct rf_plan *plan, uint32_t family,
                             const uint64_t *at, uint8_t *place))
{
    const struct rf_plan *plan = machine->lab->plan;
    const struct rf_rank_layout *layout = rf_plan_layout(plan, side, rank);
    for (size_t p = 0; p < layout->n_pieces; p++) {
        const struct rf_piece *piece = &layout->pieces[p];
        const uint32_t row = place_row(&piece->box);
        uint64_t at[RF_BOX_DIMS];
        memcpy(at, piece->box.start, sizeof(at));
        do {
            uint8_t *place = base + rf_piece_offset(piece, at);
            for (uint64_t i = 0; i < piece->box.extent[row]; i++) {
                at[row] = piece->box.start[row] + i;
                if (!element(plan, piece->family, at,
                             place + i * piece->stride[row])) {
                    return piece;
                }
            }
            at[row] = piece->box.start[row];
        } while (place_next_of(&piece->box, row, at));
    }
    return NULL;
}

static bool fill_element(const struct rf_plan *plan, uint32_t family,
                         const uint64_t *at, uint8_t *place)
{
    content(family, at, rf_form_item(rf_plan_form(plan, RF_TRAIN, family)),
            place);
    return true;
}

static void fill(struct machine *machine, uint32_t rank)
{
    each_element(machine, RF_TRAIN, rank,
                 memory_of(machine, rank, RF_MEM_TRAIN), fill_element);
}

static bool check_element(const struct rf_plan *plan, uint32_t family,
                          const uint64_t *at, uint8_t *place)
{
    const uint32_t from = rf_form_item(rf_plan_form(plan, RF_TRAIN, family));
    const uint32_t to = rf_form_item(rf_plan_form(plan, RF_INFER, family));
    uint8_t source[8], expected[8];
    content(family, at, from, source);
    convert(source, from, expected, to);
    return memcmp(expected, place, to) == 0;
}

static bool check(struct machine *machine, uint32_t rank)
{
    const struct rf_piece *wrong =
        each_element(machine, RF_INFER, rank,
                     memory_of(machine, rank, RF_MEM_INFER), check_element);
    if (wrong != NULL) {
        snprintf(fault, sizeof(fault), "rank %u: wrong bytes in %s", rank,
                 machine->lab->plan->model->families[wrong->family].name);
    }
    return wrong == NULL;
}

static uint32_t *group_at(const struct machine *machine, uint32_t rank,
                          uint32_t group)
{
    const uint32_t n = machine->lab->schedule->in_flight;
    return &machine->group[rank * n + group % n];
}

static void find_lowest(struct machine *machine)
{
    const struct rf_schedule *schedule = machine->lab->schedule;
    const uint32_t n = machine->lab->world->n_ranks;
    const uint32_t in_flight = schedule->in_flight;
    memset(machine->task, 0xFF, n * sizeof(*machine->task));
    memset(machine->group, 0xFF, n * in_flight * sizeof(*machine->group));
    for (size_t i = 0; i < machine->left; i++) {
        const struct rf_op *op = &schedule->ops[machine->waiting[i]];
        const uint32_t ends[] = {op->src, op->dst};
        for (size_t e = 0; e < RF_ARRAY_SIZE(ends); e++) {
            uint32_t *task = &machine->task[ends[e]];
            uint32_t *group = group_at(machine, ends[e], op->group);
            *task = op->src != op->dst ? RF_MIN(*task, op->task) : *task;
            *group = RF_MIN(*group, op->group);
        }
    }
}

/* Whether rules 2 and 3 let an op start whose dep is complete. */
static bool may_start(const struct machine *machine, const struct rf_op *op)
{
    const bool serial = machine->lab->spec->serialize && op->src != op->dst;
    const bool waits = op->group != RF_NO_GROUP;
    return !(serial && (machine->task[op->src] < op->task ||
                        machine->task[op->dst] < op->task)) &&
           !(waits && (*group_at(machine, op->src, op->group) < op->group ||
                       *group_at(machine, op->dst, op->group) < op->group));
}

static bool run_some_op(struct machine *machine)
{
    const struct rf_schedule *schedule = machine->lab->schedule;
    const size_t start = next_random(machine) % machine->left;
    find_lowest(machine);
    for (size_t i = 0; i < machine->left; i++) {
        const size_t at = (start + i) % machine->left;
        const size_t next = machine->waiting[at];
        const struct rf_op *op = &schedule->ops[next];
        if ((op->dep == RF_NO_OP || machine->done[op->dep]) &&
            may_start(machine, op)) {
            run_op(machine, op);
            machine->done[next] = true;
            machine->waiting[at] = machine->waiting[--machine->left];
            return true;
        }
    }
    snprintf(fault, sizeof(fault), "%zu ops wait for each other",
             machine->left);
    return false;
}

static void make_memory(struct machine *machine)
{
    const struct planned *lab = machine->lab;
    uint32_t n = lab->world->n_ranks;
    machine->memory = rf_xcalloc((size_t)n * RF_MEM_COUNT, sizeof(uint8_t *));
    for (uint32_t r = 0; r < n; r++) {
        uint64_t bytes[RF_MEM_COUNT] = {
            rf_plan_layout(lab->plan, RF_TRAIN, r)->arena_bytes,
            rf_plan_layout(lab->plan, RF_INFER, r)->arena_bytes,
            lab->schedule->stage_bytes ? lab->schedule->stage_bytes[r] : 0};
        for (unsigned kind = 0; kind < RF_MEM_COUNT; kind++) {
            machine->memory[r * RF_MEM_COUNT + kind] = rf_xmalloc(bytes[kind]);
            memset(memory_of(machine, r, kind), 0xA5, bytes[kind]);
        }
        fill(machine, r);
    }
}

const char *lab_execute(const struct planned *lab, unsigned seed)
{
    struct machine machine = {
        .lab = lab, .seed = seed, .left = lab->schedule->n_ops};
    bool fine = true;
    make_memory(&machine);
    machine.done = rf_xcalloc(lab->schedule->n_ops, sizeof(bool));
    machine.waiting =
        rf_xcalloc(lab->schedule->n_ops, sizeof(*machine.waiting));
    for (size_t i = 0; i < lab->schedule->n_ops; i++) {
        machine.waiting[i] = i;
    }
    machine.task = rf_xcalloc(lab->world->n_ranks, sizeof(*machine.task));
    machine.group =
        rf_xcalloc((size_t)lab->world->n_ranks * lab->schedule->in_flight,
                   sizeof(*machine.group));
    while (fine && machine.left > 0) {
        fine = run_some_op(&machine);
    }
    for (uint32_t r = 0; fine && r < lab->world->n_ranks; r++) {
        fine = check(&machine, r);
    }
    for (uint32_t i = 0; i < lab->world->n_ranks * RF_MEM_COUNT; i++) {
        free(machine.memory[i]);
    }
    free(machine.memory);
    free(machine.done);
    free(machine.waiting);
    free(machine.task);
    free(machine.group);
    return fine ? NULL : fault;
}
