/*
 * Plays a plan on memory: every rank's training memory is filled with the
 * numbers of the elements that the definitions put there, all transfers are
 * done, and every rank's inference memory must then be what the definitions
 * want. Byte counts are added up from the elements as well.
 */
#include "tests/unit/planner/oracle/oracle.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/layout/mesh_rules.h"
#include "planner/plan/plan_walk.h"
#include "tests/lib/places.h"
#include "tests/lib/quoted.h"

const char *oracle_case = "";

static void number_elements(struct oracle *o, const struct rf_model *model,
                            const struct rf_spec *spec,
                            const struct rf_world *world)
{
    *o = (struct oracle){.model = model, .spec = spec, .world = world};
    o->base = rf_xcalloc(model->n_families, sizeof(*o->base));
    for (uint32_t f = 0; f < model->n_families; f++) {
        uint64_t n = (uint64_t)model->families[f].n_layers *
                     model->families[f].n_experts;
        o->base[f] = o->n_elements;
        for (uint32_t d = 0; d < model->families[f].ndim; d++) {
            n *= model->families[f].shape[d];
        }
        o->n_elements += n;
    }
}

static void free_rank(struct oracle_rank *rank)
{
    for (size_t i = 0; i < rank->n; i++) {
        free(rank->params[i].ids);
    }
    free(rank->params);
}

/* One rank's memory on one side, one entry per element. */
struct memory {
    uint64_t *cells;
    size_t n;
    uint32_t item;
    struct oracle_rank wanted;
};

static size_t cell_of(const struct memory *memory, uint64_t offset)
{
    const size_t cell = offset / memory->item;
    oracle_assert(cell * memory->item == offset && cell < memory->n,
                  "offset %llu is not in memory", (unsigned long long)offset);
    return cell;
}

/* The id of an element of a family. */
static uint64_t id_of(const struct oracle *o, uint32_t f, const uint64_t *at)
{
    const struct rf_family *family = &o->model->families[f];
    uint64_t id = at[0] * family->n_experts + at[1];
    for (uint32_t d = 0; d < family->ndim; d++) {
        id = id * family->shape[d] + at[2 + d];
    }
    return o->base[f] + id;
}

/* How far the ids of neighbours in a dimension are apart. */
static uint64_t id_step(const struct oracle *o, uint32_t f, uint32_t dim)
{
    const struct rf_family *family = &o->model->families[f];
    uint64_t step = 1;
    for (uint32_t d = dim + 1; d < RF_DIM_TENSOR + family->ndim; d++) {
        step *= d == RF_DIM_EXPERT ? family->n_experts
                                   : family->shape[d - RF_DIM_TENSOR];
    }
    return step;
}

/* Writes the ids of a rank's pieces to where the pieces say. */
static void write_pieces(const struct oracle *o,
                         const struct rf_rank_layout *layout,
                         struct memory *memory)
{
    for (size_t i = 0; i < layout->n_pieces; i++) {
        const struct rf_piece *piece = &layout->pieces[i];
        const uint32_t row = place_row(&piece->box);
        const uint64_t step = id_step(o, piece->family, row);
        uint64_t at[RF_BOX_DIMS];
        memcpy(at, piece->box.start, sizeof(at));
        do {
            const uint64_t offset =
                place_address(&piece->box, at, piece->offset, piece->stride);
            uint64_t id = id_of(o, piece->family, at);
            for (uint64_t k = 0; k < piece->box.extent[row]; k++, id += step) {
                size_t cell = cell_of(memory, offset + k * piece->stride[row]);
                oracle_assert(memory->cells[cell] == ORACLE_POISON,
                              "pieces overlap");
                memory->cells[cell] = id;
            }
        } while (place_next_of(&piece->box, row, at));
    }
}

static int compare_params(const void *a, const void *b)
{
    const struct oracle_param *x = a, *y = b;
    if (x->n != y->n) {
        return x->n < y->n ? -1 : 1;
    }
    return memcmp(x->ids, y->ids, x->n * sizeof(*x->ids));
}

static void sort_params(struct oracle_rank *rank)
{
    if (rank->n > 0) {
        qsort(rank->params, rank->n, sizeof(*rank->params), compare_params);
    }
}

/* The instances of the layout's parameters, as they are in memory. */
static void read_params(const struct rf_rank_layout *layout,
                        const struct memory *memory, struct oracle_rank *out)
{
    *out = (struct oracle_rank){.params = NULL};
    for (size_t p = 0; p < layout->n_params; p++) {
        const struct rf_param *param = &layout->params[p];
        uint64_t stride = (param->bytes + 255) / 256 * 256;
        for (uint32_t i = 0; i < param->n_instances; i++) {
            size_t n = param->bytes / memory->item;
            struct oracle_param *copy = oracle_push(out, n);
            size_t first = cell_of(memory, param->offset + i * stride);
            oracle_assert(first + n <= memory->n, "parameter %zu overflows", p);
            for (size_t k = 0; k < n; k++) {
                uint64_t id = memory->cells[first + k];
                copy->ids[k] = id == ORACLE_POISON ? ORACLE_PAD : id;
            }
        }
    }
}

/* A rank's memory must consist of exactly the wanted parameters. */
static void assert_params(const struct rf_rank_layout *layout,
                          struct memory *memory, const char *what,
                          uint32_t rank)
{
    struct oracle_rank found;
    read_params(layout, memory, &found);
    sort_params(&found);
    sort_params(&memory->wanted);
    oracle_assert(found.n == memory->wanted.n,
                  "%s rank %u: %zu parameters, want %zu", what, rank, found.n,
                  memory->wanted.n);
    for (size_t i = 0; i < found.n; i++) {
        oracle_assert(
            compare_params(&found.params[i], &memory->wanted.params[i]) == 0,
            "%s rank %u: parameter of %zu elements differs", what, rank,
            found.params[i].n);
    }
    free_rank(&found);
}

static void open_memory(const struct rf_plan *plan, const struct oracle *o,
                        enum rf_side side, uint32_t rank, struct memory *out)
{
    uint32_t index = plan->world->ranks[rank].index[side];
    *out = (struct memory){.item = rf_form_item(rf_plan_form(plan, side, 0))};
    if (index == RF_NONE) {
        return;
    }
    out->n = rf_plan_layout(plan, side, rank)->arena_bytes / out->item;
    out->cells = rf_xcalloc(out->n + 1, sizeof(*out->cells));
    for (size_t i = 0; i < out->n; i++) {
        out->cells[i] = ORACLE_POISON;
    }
    oracle_holdings(o, side, index, &out->wanted);
}

static void close_memory(struct memory *memory)
{
    free(memory->cells);
    free_rank(&memory->wanted);
}

static void play(const struct rf_plan *plan, const struct oracle *o,
                 struct memory *train, struct memory *infer)
{
    AUTO(rf_plan_walk) walk;
    size_t i = 0;
    rf_plan_walk_start(&walk, plan);
    for (; rf_plan_walk_step(&walk); i++) {
        const struct rf_transfer *t = rf_plan_walk_transfer(&walk);
        const uint32_t row = place_row(&t->box);
        const uint64_t step = id_step(o, t->family, row);
        const struct memory *from = &train[t->src];
        struct memory *to = &infer[t->dst];
        uint64_t at[RF_BOX_DIMS];
        memcpy(at, t->box.start, sizeof(at));
        do {
            const uint64_t source =
                place_address(&t->box, at, t->src_offset, t->src_stride);
            const uint64_t target =
                place_address(&t->box, at, t->dst_offset, t->dst_stride);
            uint64_t id = id_of(o, t->family, at);
            for (uint64_t k = 0; k < t->box.extent[row]; k++, id += step) {
                size_t read = cell_of(from, source + k * t->src_stride[row]);
                size_t written = cell_of(to, target + k * t->dst_stride[row]);
                oracle_assert(from->cells[read] == id,
                              "transfer %zu reads something else", i);
                oracle_assert(to->cells[written] == ORACLE_POISON,
                              "transfer %zu writes an element again", i);
                to->cells[written] = id;
            }
        } while (place_next_of(&t->box, row, at));
    }
}

/* Which elements some ranks hold, a bit each. */
static uint8_t *mark(const struct oracle *o, const struct memory *memory,
                     uint8_t *bits)
{
    for (size_t i = 0; i < memory->n; i++) {
        if (memory->cells[i] < o->n_elements) {
            bits[memory->cells[i] / 8] |=
                (uint8_t)(1u << (memory->cells[i] % 8));
        }
    }
    return bits;
}

static bool marked(const uint8_t *bits, uint64_t id)
{
    return bits[id / 8] >> (id % 8) & 1;
}

/* Counts what must be local, inside nodes and between them. */
static void assert_distances(const struct rf_plan *plan, const struct oracle *o,
                             const struct memory *train,
                             const struct memory *infer)
{
    const struct rf_world *world = plan->world;
    uint64_t local = 0, near = 0, far = 0, most = 0;
    size_t bytes = o->n_elements / 8 + 1;
    AUTO_FREE uint8_t *own = rf_xcalloc(bytes, 1);
    AUTO_FREE uint8_t **node = rf_xcalloc(world->n_nodes + 1, sizeof(*node));
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        uint32_t n = world->ranks[r].node;
        node[n] = node[n] ? node[n] : rf_xcalloc(bytes, 1);
        mark(o, &train[r], node[n]);
    }
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        uint64_t received = 0;
        memset(own, 0, bytes);
        mark(o, &train[r], own);
        for (size_t i = 0; i < infer[r].n; i++) {
            uint64_t id = infer[r].cells[i];
            if (id >= o->n_elements) {
                continue;
            }
            if (marked(own, id)) {
                local += infer[r].item;
                continue;
            }
            received += infer[r].item;
            if (marked(node[world->ranks[r].node], id)) {
                near += infer[r].item;
            } else {
                far += infer[r].item;
            }
        }
        most = received > most ? received : most;
    }
    ck_assert_uint_eq(plan->totals.bytes_total, local + near + far);
    ck_assert_uint_eq(plan->totals.bound_recv_bytes, most);
    if (plan->spec->balance != RF_BALANCE_NONE) {
        ck_assert_uint_eq(plan->totals.bytes_local, local);
        ck_assert_uint_eq(plan->totals.bytes_intra_node, near);
        ck_assert_uint_eq(plan->totals.bytes_inter_node, far);
        ck_assert_uint_eq(plan->totals.max_recv_bytes, most);
    }
    for (uint32_t n = 0; n < world->n_nodes; n++) {
        free(node[n]);
    }
}

void oracle_check(const struct rf_plan *plan)
{
    uint32_t n = plan->world->n_ranks;
    AUTO_FREE struct memory *train = rf_xcalloc(n, sizeof(*train));
    AUTO_FREE struct memory *infer = rf_xcalloc(n, sizeof(*infer));
    const struct rf_plan_totals *totals = &plan->totals;
    struct oracle o;
    number_elements(&o, plan->model, plan->spec, plan->world);
    for (uint32_t r = 0; r < n; r++) {
        open_memory(plan, &o, RF_TRAIN, r, &train[r]);
        open_memory(plan, &o, RF_INFER, r, &infer[r]);
        write_pieces(&o, rf_plan_layout(plan, RF_TRAIN, r), &train[r]);
        assert_params(rf_plan_layout(plan, RF_TRAIN, r), &train[r], "train", r);
    }
    play(plan, &o, train, infer);
    for (uint32_t r = 0; r < n; r++) {
        assert_params(rf_plan_layout(plan, RF_INFER, r), &infer[r], "infer", r);
    }
    if (!plan->spec->separate_processes) {
        assert_distances(plan, &o, train, infer);
    }
    ck_assert_uint_ge(totals->max_send_bytes, totals->bound_send_bytes);
    ck_assert_uint_ge(totals->max_node_send_bytes,
                      plan->spec->balance != RF_BALANCE_NONE
                          ? totals->bound_node_send_bytes
                          : 0);
    for (uint32_t r = 0; r < n; r++) {
        close_memory(&train[r]);
        close_memory(&infer[r]);
    }
    free(o.base);
}

struct rf_plan_totals oracle_plan(const struct rf_model *model,
                                  const uint32_t *slots, uint32_t n_nodes,
                                  const char *fmt, ...)
{
    char text[1024];
    struct rf_err err = {0};
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    AUTO(rf_spec) *spec = quoted_spec("%s", text);
    AUTO(rf_world) *world = NULL;
    AUTO(rf_plan) *plan = NULL;
    oracle_case = text;
    ck_assert_msg(
        rf_mesh_rules_place(spec, model, slots, n_nodes, &world, &err) == RF_OK,
        "%s: %s", text, err.text);
    ck_assert_msg(rf_plan_build(model, world, spec, &plan, &err) == RF_OK,
                  "%s: %s", text, err.text);
    oracle_check(plan);
    return plan->totals;
}

void oracle_plan_sides(const struct rf_model *model,
                       const struct oracle_held *held, const char *const *sides,
                       size_t n)
{
    size_t partners = getenv("RF_ORACLE_PAIRS") != NULL || n < 6 ? n : 6;
    const struct oracle_held *before = oracle_held;
    oracle_held = held;
    for (size_t a = 0; a < n; a++) {
        for (size_t b = a; b < a + partners; b++) {
            oracle_plan(model, NULL, 0,
                        "'mode': 'disaggregated', 'train': {%s}, "
                        "'infer': {%s}",
                        sides[a], sides[b % n]);
        }
    }
    oracle_held = before;
}
