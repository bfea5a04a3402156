/* Conversions that ops need. See conversions.h. */
#include "planner/schedule/conversions.h"

#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/box.h"

#define ROW RF_DIM_TENSOR

/* What ops need of a matrix. */
struct rows_needed {
    uint32_t group;      /* RF_NO_GROUP: nothing */
    uint64_t first, end; /* rows */
};

struct finding {
    const struct rf_plan *plan;
    const struct rf_converted *converted;
    const struct rf_quantize *what;
    uint32_t *order; /* matrices by tensor */
    struct rows_needed *needs;
};

/* Part `k` of a matrix. */
static const struct rf_piece *part_of(const struct finding *finding,
                                      uint32_t matrix, uint32_t k)
{
    return &finding->what->result
                .pieces[matrix * finding->converted->format->n_parts + k];
}

/* Its family before conversion. */
static uint32_t family_of(const struct finding *finding, uint32_t matrix)
{
    const uint32_t values = part_of(finding, matrix, 0)->family;
    return finding->converted->from[values].family;
}

static int compare_tensors(const void *a, const void *b, void *data)
{
    const struct finding *finding = data;
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const uint64_t *at = finding->what->matrices[x].box.start;
    const uint64_t *other = finding->what->matrices[y].box.start;
    int order = RF_COMPARE(family_of(finding, x), family_of(finding, y));
    order =
        RF_THEN_BY(order, RF_COMPARE(at[RF_DIM_LAYER], other[RF_DIM_LAYER]));
    order =
        RF_THEN_BY(order, RF_COMPARE(at[RF_DIM_EXPERT], other[RF_DIM_EXPERT]));
    return RF_THEN_BY(order, RF_COMPARE(x, y));
}

/* The first place in the order of a family's matrices from a layer and expert
 * on. */
static size_t find(const struct finding *finding, uint32_t family,
                   uint64_t layer, uint64_t expert)
{
    size_t low = 0, high = finding->what->n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const uint32_t matrix = finding->order[middle];
        const uint64_t *at = finding->what->matrices[matrix].box.start;
        int order = RF_COMPARE(family_of(finding, matrix), family);
        order = RF_THEN_BY(order, RF_COMPARE(at[RF_DIM_LAYER], layer));
        order = RF_THEN_BY(order, RF_COMPARE(at[RF_DIM_EXPERT], expert));
        *(order < 0 ? &low : &high) = order < 0 ? middle + 1 : middle;
    }
    return low;
}

/* Adds what an op reads of part `k` of a sender's matrix. Several matrices of a
 * tensor each have its scale. */
static void add_sent(struct finding *finding, uint32_t matrix, uint32_t k,
                     const struct rf_op *op, uint32_t group)
{
    const uint64_t rows = finding->converted->format->parts[k].rows;
    const struct rf_box *all = &finding->what->matrices[matrix].box;
    const struct rf_piece *part = part_of(finding, matrix, k);
    struct rows_needed *need = &finding->needs[matrix];
    struct rf_box sent;
    if (!rf_box_intersect(&part->box, &op->box, &sent) ||
        rf_piece_offset(part, sent.start) !=
            rf_box_offset(op->box.start, op->src_offset, op->src_stride,
                          sent.start)) {
        return;
    }
    need->group = RF_MIN(need->group, group);
    if (rows > 0) {
        const uint64_t first = sent.start[ROW] * rows - all->start[ROW];
        const uint64_t end = first + sent.extent[ROW] * rows;
        need->first = RF_MIN(need->first, first);
        need->end = RF_MAX(need->end, RF_MIN(end, all->extent[ROW]));
    }
}

/* Adds the whole of a receiver's matrix, if an op writes some of it. */
static void add_arrived(struct finding *finding, uint32_t matrix,
                        const struct rf_box *box, uint32_t group)
{
    const struct rf_box *all = &finding->what->matrices[matrix].box;
    struct rf_box arrived;
    if (rf_box_intersect(all, box, &arrived)) {
        finding->needs[matrix] = (struct rows_needed){
            RF_MIN(finding->needs[matrix].group, group), 0, all->extent[ROW]};
    }
}

static void add_op(struct finding *finding, const struct rf_op *op)
{
    const bool sends = rf_plan_is_converted(finding->plan);
    const struct rf_converted_from from =
        sends ? finding->converted->from[op->family]
              : (struct rf_converted_from){.family = op->family};
    const uint64_t *start = op->box.start, *extent = op->box.extent;
    const uint32_t group =
        rf_spec_quantize(finding->plan->spec)->overlaps ? op->group : 0;
    for (uint64_t l = start[0]; l < start[0] + extent[0]; l++) {
        for (uint64_t e = start[1]; e < start[1] + extent[1]; e++) {
            const size_t end = find(finding, from.family, l, e + 1);
            for (size_t i = find(finding, from.family, l, e); i < end; i++) {
                const uint32_t matrix = finding->order[i];
                if (sends) {
                    add_sent(finding, matrix, from.part, op, group);
                } else {
                    add_arrived(finding, matrix, &op->box, group);
                }
            }
        }
    }
}

uint32_t rf_conversion_rank(const struct rf_plan *plan, const struct rf_op *op)
{
    const struct rf_family *family;
    if (op->family == RF_NONE) {
        return RF_NONE;
    }
    family = &plan->model->families[op->family];
    if (rf_plan_is_converted(plan)) {
        return op->src_mem == RF_MEM_TRAIN && family->is_result ? op->src
                                                                : RF_NONE;
    }
    return op->dst_mem == RF_MEM_INFER && rf_family_converted(family) > 0 &&
                   rf_plan_converted(plan, op->dst) != NULL
               ? op->dst
               : RF_NONE;
}

static void add(struct rf_conversion *list, size_t *n, uint32_t group,
                uint32_t matrix, uint64_t first, uint64_t end)
{
    if (first < end) {
        list[(*n)++] = (struct rf_conversion){.group = group,
                                              .matrix = matrix,
                                              .row = first,
                                              .rows = end - first};
    }
}

static int compare_conversions(const void *a, const void *b)
{
    const struct rf_conversion *x = a, *y = b;
    return RF_THEN_BY(RF_COMPARE(x->group, y->group),
                      RF_THEN_BY(RF_COMPARE(x->matrix, y->matrix),
                                 RF_COMPARE(x->row, y->row)));
}

static struct rf_conversion *list_needs(const struct finding *finding,
                                        size_t *n)
{
    struct rf_conversion *list =
        rf_xcalloc(3 * finding->what->n, sizeof(*list));
    *n = 0;
    for (uint32_t m = 0; m < finding->what->n; m++) {
        const struct rows_needed *need = &finding->needs[m];
        const uint64_t rows = finding->what->matrices[m].box.extent[ROW];
        /* The scale of a tensor needs no row, but comes with some. */
        uint64_t first = RF_MIN(need->first, need->end);
        uint64_t end = RF_MAX(need->end, 1);
        first = first / RF_CONVERSION_ROWS * RF_CONVERSION_ROWS;
        end = RF_MIN(rf_align_up(end, RF_CONVERSION_ROWS), rows);
        if (need->group == RF_NO_GROUP) {
            first = end = rows;
        }
        add(list, n, RF_NO_GROUP, m, 0, first);
        add(list, n, need->group, m, first, end);
        add(list, n, RF_NO_GROUP, m, end, rows);
    }
    qsort(list, *n, sizeof(*list), compare_conversions);
    return list;
}

struct rf_conversion *rf_conversions_make(const struct rf_plan *plan,
                                          const struct rf_schedule *schedule,
                                          uint32_t rank,
                                          const struct rf_quantize *what,
                                          size_t *n)
{
    struct finding finding = {
        .plan = plan,
        .converted = rf_plan_converted(plan, rank),
        .what = what,
        .order = rf_xcalloc(what->n, sizeof(*finding.order)),
        .needs = rf_xcalloc(what->n, sizeof(*finding.needs))};
    struct rf_conversion *list;
    for (uint32_t m = 0; m < what->n; m++) {
        finding.order[m] = m;
        finding.needs[m] =
            (struct rows_needed){.group = RF_NO_GROUP, .first = UINT64_MAX};
    }
    qsort_r(finding.order, what->n, sizeof(*finding.order), compare_tensors,
            &finding);
    for (size_t i = 0; i < schedule->n_ops; i++) {
        if (rf_conversion_rank(plan, &schedule->ops[i]) == rank) {
            add_op(&finding, &schedule->ops[i]);
        }
    }
    list = list_needs(&finding, n);
    free(finding.order);
    free(finding.needs);
    return list;
}
