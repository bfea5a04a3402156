/* Forms groups of tensors. See tensor_groups.h. */
#include "planner/plan/tensor_groups.h"

#include <assert.h>
#include <stdlib.h>

#include "common/mem.h"
#include "planner/layout/box.h"
#include "planner/plan/plan_internal.h"

/* The places of tensors before and after the decoder's layers. */
#define BEFORE 0
#define BEHIND UINT32_MAX

/* The tensors of a family in one layer. */
struct item {
    uint32_t stage, place; /* layer + 1, BEFORE or BEHIND */
    uint32_t family, layer;
};

struct making {
    const struct rf_plan *plan;
    struct rf_tensor_groups *out;
    uint32_t group; /* now being filled */
    uint64_t used;  /* by it: layers or bytes */
    uint32_t place; /* of the last item */
};

static int by_order(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int order = RF_COMPARE(x->stage, y->stage);
    order = RF_THEN_BY(order, RF_COMPARE(x->place, y->place));
    order = RF_THEN_BY(order, RF_COMPARE(x->family, y->family));
    return RF_THEN_BY(order, RF_COMPARE(x->layer, y->layer));
}

static int by_group(const void *a, const void *b)
{
    const struct rf_group_slice *x = a, *y = b;
    int order = RF_COMPARE(x->group, y->group);
    order = RF_THEN_BY(order, RF_COMPARE(x->family, y->family));
    return RF_THEN_BY(order, rf_box_compare(&x->box, &y->box));
}

static uint32_t place_of(const struct rf_family *family, uint32_t layer)
{
    if (family->layers != NULL && !family->own_layers) {
        return family->layers[layer] + 1;
    }
    return family->stage == RF_STAGE_LAST ? BEHIND : BEFORE;
}

/* Sets the training stage of each item: the first one that holds some of it. */
static void find_stages(const struct rf_plan *plan, const size_t *first_item,
                        struct item *items)
{
    const struct rf_layouts *layouts = &plan->priv->layouts[RF_TRAIN];
    const uint32_t size = plan->world->size[RF_TRAIN];
    for (uint32_t i = 0; i < size; i++) {
        const struct rf_rank_layout *layout =
            &layouts->layouts[layouts->of_index[i]];
        const uint32_t stage = rf_coord_of(&plan->spec->train, size, i).pp;
        for (size_t p = 0; p < layout->n_pieces; p++) {
            const struct rf_piece *piece = &layout->pieces[p];
            const uint64_t first = piece->box.start[RF_DIM_LAYER];
            for (uint64_t l = 0; l < piece->box.extent[RF_DIM_LAYER]; l++) {
                struct item *item =
                    &items[first_item[piece->family] + first + l];
                item->stage = RF_MIN(item->stage, stage);
            }
        }
    }
}

/* All items, in order. */
static struct item *list_items(const struct rf_plan *plan, size_t *n)
{
    const struct rf_model *model = plan->model;
    size_t *first = rf_xcalloc(model->n_families + 1, sizeof(*first));
    for (uint32_t f = 0; f < model->n_families; f++) {
        first[f + 1] = first[f] + model->families[f].n_layers;
    }
    *n = first[model->n_families];
    struct item *items = rf_xcalloc(*n, sizeof(*items));
    for (uint32_t f = 0; f < model->n_families; f++) {
        for (uint32_t l = 0; l < model->families[f].n_layers; l++) {
            items[first[f] + l] =
                (struct item){.stage = UINT32_MAX,
                              .place = place_of(&model->families[f], l),
                              .family = f,
                              .layer = l};
        }
    }
    find_stages(plan, first, items);
    free(first);
    qsort(items, *n, sizeof(*items), by_order);
    return items;
}

static struct rf_box tensors_of(const struct rf_plan *plan,
                                const struct item *item, uint64_t first,
                                uint64_t n)
{
    struct rf_box box = rf_box_whole(&plan->model->families[item->family]);
    box.start[RF_DIM_LAYER] = item->layer;
    box.extent[RF_DIM_LAYER] = 1;
    box.start[RF_DIM_EXPERT] = first;
    box.extent[RF_DIM_EXPERT] = n;
    return box;
}

static void add(struct making *making, const struct item *item, uint64_t first,
                uint64_t n)
{
    struct rf_tensor_groups *out = making->out;
    RF_PUSH(
        out->slices, out->n_slices, out->capacity,
        ((struct rf_group_slice){making->group, item->family,
                                 tensors_of(making->plan, item, first, n)}));
    out->n = RF_MAX(out->n, making->group + 1);
}

static void next_group(struct making *making)
{
    making->group++;
    making->used = 0;
}

static void add_by_layers(struct making *making, const struct item *item)
{
    const uint64_t size = making->plan->spec->group.size;
    if (item->place != making->place) {
        const bool apart = item->place == BEHIND || making->place == BEFORE;
        if (making->used > 0 && (apart || making->used == size)) {
            next_group(making);
        }
        making->used++;
    }
    making->place = item->place;
    add(making, item, 0, making->plan->model->families[item->family].n_experts);
}

static void add_by_bytes(struct making *making, const struct item *item)
{
    const struct rf_plan *plan = making->plan;
    const uint64_t n = plan->model->families[item->family].n_experts;
    const struct rf_box tensor = tensors_of(plan, item, 0, 1);
    const uint64_t size = plan->spec->group.size;
    const uint64_t bytes =
        rf_form_bytes(rf_plan_wire(plan, item->family), &tensor);
    assert(bytes > 0);
    for (uint64_t e = 0, count; e < n; e += count) {
        if (making->used > 0 && bytes > size - RF_MIN(size, making->used)) {
            next_group(making);
        }
        count = RF_MAX((size - RF_MIN(size, making->used)) / bytes, 1);
        count = RF_MIN(count, n - e);
        add(making, item, e, count);
        making->used += count * bytes;
    }
}

/* Joins slices that differ in their layers alone. */
static void join_slices(struct rf_tensor_groups *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < out->n_slices; i++) {
        const struct rf_group_slice *next = &out->slices[i];
        struct rf_group_slice *last = &out->slices[kept - (kept > 0)];
        if (kept > 0 && last->group == next->group &&
            last->family == next->family &&
            last->box.start[RF_DIM_EXPERT] == next->box.start[RF_DIM_EXPERT] &&
            last->box.extent[RF_DIM_EXPERT] ==
                next->box.extent[RF_DIM_EXPERT] &&
            last->box.start[RF_DIM_LAYER] + last->box.extent[RF_DIM_LAYER] ==
                next->box.start[RF_DIM_LAYER]) {
            last->box.extent[RF_DIM_LAYER]++;
        } else {
            out->slices[kept++] = *next;
        }
    }
    out->n_slices = kept;
}

static void list_groups(struct rf_tensor_groups *out)
{
    size_t slice = 0;
    out->first = rf_xcalloc((size_t)out->n + 1, sizeof(*out->first));
    for (uint32_t g = 0; g <= out->n; g++) {
        while (slice < out->n_slices && out->slices[slice].group < g) {
            slice++;
        }
        out->first[g] = slice;
    }
}

void rf_tensor_groups_make(const struct rf_plan *plan,
                           struct rf_tensor_groups *out)
{
    const struct rf_group_spec *spec = &plan->spec->group;
    struct making making = {.plan = plan, .out = out};
    size_t n;
    *out = (struct rf_tensor_groups){.n = 0};
    if (spec->by == RF_GROUP_NOTHING) {
        return;
    }
    struct item *items = list_items(plan, &n);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || items[i].stage != items[i - 1].stage) {
            making.group = spec->serial_pp ? out->n : 0;
            making.used = 0;
            making.place = BEHIND; /* none: no stage begins with it twice */
        }
        if (spec->by == RF_GROUP_LAYERS) {
            add_by_layers(&making, &items[i]);
        } else {
            add_by_bytes(&making, &items[i]);
        }
    }
    free(items);
    qsort(out->slices, out->n_slices, sizeof(*out->slices), by_group);
    join_slices(out);
    list_groups(out);
}

void rf_tensor_groups_free(struct rf_tensor_groups *groups)
{
    free(groups->slices);
    free(groups->first);
    *groups = (struct rf_tensor_groups){.n = 0};
}

uint64_t rf_tensor_groups_largest(const struct rf_plan *plan,
                                  const struct rf_tensor_groups *groups)
{
    uint64_t largest = 0;
    for (uint32_t g = 0; g < groups->n; g++) {
        uint64_t bytes = 0;
        for (size_t s = groups->first[g]; s < groups->first[g + 1]; s++) {
            const struct rf_group_slice *slice = &groups->slices[s];
            bytes +=
                rf_form_bytes(rf_plan_wire(plan, slice->family), &slice->box);
        }
        largest = RF_MAX(largest, bytes);
    }
    return largest;
}

bool rf_tensor_groups_have(const struct rf_tensor_groups *groups,
                           uint32_t group, uint32_t family)
{
    size_t slice = groups->n > 0 ? groups->first[group] : 0;
    const size_t end = groups->n > 0 ? groups->first[group + 1] : 0;
    while (slice < end && groups->slices[slice].family != family) {
        slice++;
    }
    return groups->n == 0 || slice < end;
}

bool rf_tensor_groups_part(const struct rf_tensor_groups *groups,
                           uint32_t group, uint32_t family,
                           const struct rf_box *box, size_t *at,
                           struct rf_box *out)
{
    if (groups->n == 0) {
        *out = *box;
        return (*at)++ == 0;
    }
    for (size_t slice = RF_MAX(groups->first[group], *at);
         slice < groups->first[group + 1]; slice++) {
        if (groups->slices[slice].family == family &&
            rf_box_intersect(&groups->slices[slice].box, box, out)) {
            *at = slice + 1;
            return true;
        }
    }
    return false;
}
