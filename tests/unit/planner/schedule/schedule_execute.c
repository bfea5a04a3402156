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
    uint64_t seed;
    size_t left;
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
    uint64_t hash = family + 1;
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        hash = rf_mix64(hash + at[d]);
    }
    memcpy(out, &hash, item);
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
    uint64_t at[RF_BOX_DIMS];
    memcpy(at, op->box.start, sizeof(at));
    do {
        uint64_t from =
            place_address(&op->box, at, op->src_offset, op->src_stride);
        uint64_t to =
            place_address(&op->box, at, op->dst_offset, op->dst_stride);
        convert(src + from, rf_form_item(op->from), dst + to,
                rf_form_item(op->to));
    } while (place_next(&op->box, at));
}

static void fill(struct machine *machine, uint32_t rank)
{
    const struct rf_plan *plan = machine->lab->plan;
    const struct rf_rank_layout *layout = rf_plan_layout(plan, RF_TRAIN, rank);
    uint8_t *base = memory_of(machine, rank, RF_MEM_TRAIN);
    for (size_t p = 0; p < layout->n_pieces; p++) {
        const struct rf_piece *piece = &layout->pieces[p];
        uint64_t at[RF_BOX_DIMS];
        memcpy(at, piece->box.start, sizeof(at));
        do {
            content(piece->family, at,
                    rf_form_item(rf_plan_form(plan, RF_TRAIN, piece->family)),
                    base + rf_piece_offset(piece, at));
        } while (place_next(&piece->box, at));
    }
}

static bool check(struct machine *machine, uint32_t rank)
{
    const struct rf_plan *plan = machine->lab->plan;
    const struct rf_rank_layout *layout = rf_plan_layout(plan, RF_INFER, rank);
    const uint8_t *base = memory_of(machine, rank, RF_MEM_INFER);
    for (size_t p = 0; p < layout->n_pieces; p++) {
        const struct rf_piece *piece = &layout->pieces[p];
        uint32_t from =
            rf_form_item(rf_plan_form(plan, RF_TRAIN, piece->family));
        uint32_t to = rf_form_item(rf_plan_form(plan, RF_INFER, piece->family));
        uint64_t at[RF_BOX_DIMS];
        memcpy(at, piece->box.start, sizeof(at));
        do {
            uint8_t source[8], expected[8];
            content(piece->family, at, from, source);
            convert(source, from, expected, to);
            if (memcmp(expected, base + rf_piece_offset(piece, at), to) != 0) {
                snprintf(fault, sizeof(fault), "rank %u: wrong bytes in %s",
                         rank, plan->model->families[piece->family].name);
                return false;
            }
        } while (place_next(&piece->box, at));
    }
    return true;
}

/* Whether rules 2 and 3 let an op start whose dep is complete. */
static bool may_start(const struct machine *machine, const struct rf_op *op)
{
    const struct rf_schedule *schedule = machine->lab->schedule;
    bool serial = machine->lab->spec->serialize && op->src != op->dst;
    bool waits = op->group != RF_NO_GROUP && op->group >= schedule->in_flight;
    for (size_t i = 0; (serial || waits) && i < schedule->n_ops; i++) {
        const struct rf_op *other = &schedule->ops[i];
        if (machine->done[i]) {
            continue;
        }
        if (other->src != op->src && other->src != op->dst &&
            other->dst != op->src && other->dst != op->dst) {
            continue;
        }
        if ((waits && other->group < op->group &&
             (op->group - other->group) % schedule->in_flight == 0) ||
            (serial && other->src != other->dst && other->task < op->task)) {
            return false;
        }
    }
    return true;
}

static bool run_some_op(struct machine *machine)
{
    const struct rf_schedule *schedule = machine->lab->schedule;
    size_t start = next_random(machine) % schedule->n_ops;
    for (size_t i = 0; i < schedule->n_ops; i++) {
        size_t at = (start + i) % schedule->n_ops;
        const struct rf_op *op = &schedule->ops[at];
        if (!machine->done[at] &&
            (op->dep == RF_NO_OP || machine->done[op->dep]) &&
            may_start(machine, op)) {
            run_op(machine, op);
            machine->done[at] = true;
            machine->left--;
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
    return fine ? NULL : fault;
}
