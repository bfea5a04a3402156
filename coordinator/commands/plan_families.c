/*
 * Lists families. A rank's holding is computed from the pieces of its layout,
 * which the plan moves, not from the rules that made them.
 */
#include "coordinator/commands/plan_families.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/text.h"
#include "coordinator/table/table.h"

/* A rank's part of one tensor of a family, and its number of experts. */
struct holding {
    uint64_t shape[RF_TENSOR_MAX_DIMS]; /* the pieces joined along rows */
    bool joined;                        /* they can be joined */
    uint64_t elements;
    uint64_t experts;
    bool varies; /* other ranks or tensors have less */
};

static bool same_tensor(const struct rf_box *a, const struct rf_box *b)
{
    return a->start[RF_DIM_LAYER] == b->start[RF_DIM_LAYER] &&
           a->start[RF_DIM_EXPERT] == b->start[RF_DIM_EXPERT];
}

static bool same_columns(const struct rf_box *a, const struct rf_box *b)
{
    const size_t from = RF_DIM_TENSOR + 1;
    const size_t bytes = (RF_BOX_DIMS - from) * sizeof(a->start[0]);
    return memcmp(a->start + from, b->start + from, bytes) == 0 &&
           memcmp(a->extent + from, b->extent + from, bytes) == 0;
}

static void add_piece(struct holding *holding, const struct rf_box *first,
                      const struct rf_box *box)
{
    uint64_t elements = 1;
    for (uint32_t d = 0; d < RF_TENSOR_MAX_DIMS; d++) {
        uint64_t extent = box->extent[RF_DIM_TENSOR + d];
        elements *= extent;
        holding->shape[d] = d == 0 ? holding->shape[0] + extent : extent;
    }
    holding->elements += elements;
    holding->joined = holding->joined && same_columns(first, box);
}

/* Keeps the larger of the two. An empty holding is ignored: its tensors are
 * another rank's. */
static void keep_largest(struct holding *largest, const struct holding *other)
{
    bool varies = largest->varies;
    if (other->elements == 0) {
        return;
    }
    varies |= largest->elements > 0 && largest->elements != other->elements;
    if (other->elements > largest->elements) {
        *largest = *other;
    }
    largest->varies = varies;
}

/* Adds a rank's part of each tensor, and its number of experts. */
static void add_rank(const struct rf_rank_layout *layout, uint32_t family,
                     struct holding *largest)
{
    struct holding now = {.joined = true};
    const struct rf_box *first = NULL;
    uint64_t begin = UINT64_MAX, end = 0;
    for (size_t p = 0; p < layout->n_pieces; p++) {
        const struct rf_box *box = &layout->pieces[p].box;
        if (layout->pieces[p].family != family) {
            continue;
        }
        if (first == NULL || !same_tensor(first, box)) {
            keep_largest(largest, &now);
            now = (struct holding){.joined = true};
            first = box;
        }
        add_piece(&now, first, box);
        begin = RF_MIN(begin, box->start[RF_DIM_EXPERT]);
        end =
            RF_MAX(end, box->start[RF_DIM_EXPERT] + box->extent[RF_DIM_EXPERT]);
    }
    keep_largest(largest, &now);
    if (first != NULL) {
        largest->varies |=
            largest->experts > 0 && largest->experts != end - begin;
        largest->experts = RF_MAX(largest->experts, end - begin);
    }
}

/* The largest over the ranks of the mesh. */
static struct holding find_holding(const struct rf_plan *plan,
                                   enum rf_side side, uint32_t family)
{
    struct holding largest = {0};
    for (uint32_t i = 0; i < plan->world->size[side]; i++) {
        add_rank(rf_plan_layout(plan, side, plan->world->rank_of[side][i]),
                 family, &largest);
    }
    return largest;
}

static void holding_cell(struct rf_table *table, const struct rf_plan *plan,
                         enum rf_side side, uint32_t family)
{
    const struct rf_family *of = &plan->model->families[family];
    uint64_t tensor = rf_family_tensor_elements(of);
    char text[RF_SHAPE_TEXT_SIZE], experts[64] = "";
    struct holding holding = find_holding(plan, side, family);
    const char *most = holding.varies ? "up to " : "";
    if (holding.elements == 0) {
        rf_table_cell(table, "nothing");
        return;
    }
    if (holding.experts < of->n_experts) {
        snprintf(experts, sizeof(experts), ", %" PRIu64 " of %u experts",
                 holding.experts, of->n_experts);
    }
    if (holding.elements == tensor) {
        rf_table_cell(table, "%swhole%s", most, experts);
    } else if (holding.joined) {
        rf_table_cell(table, "%s%s%s", most,
                      rf_shape_text(holding.shape, of->ndim, text), experts);
    } else {
        rf_table_cell(table, "%s%" PRIu64 " of %" PRIu64 " elements%s", most,
                      holding.elements, tensor, experts);
    }
}

/* The shape on disk. */
static void shape_cell(struct rf_table *table, const struct rf_family *family)
{
    char text[RF_SHAPE_TEXT_SIZE];
    rf_shape_text(family->shape, family->ndim, text);
    if (family->stacked) {
        rf_table_cell(table, "[%u, %s", family->n_experts, text + 1);
    } else {
        rf_table_cell(table, "%s", text);
    }
}

/* "query 64, key 32, value 32": the difference from a plain tensor. */
static void role_cell(struct rf_table *table, const struct rf_family *family)
{
    char *text = NULL;
    for (uint32_t p = 0; p < family->n_parts; p++) {
        const struct rf_part *part = &family->parts[p];
        rf_text_add(&text, ", ", "%s", rf_role_name(part->role));
        if (family->n_parts > 1) {
            rf_text_add(&text, " ", "%" PRIu64, part->size);
        }
    }
    rf_table_cell(table, "%s%s%s%s%s", text != NULL ? text : "",
                  family->whole_in == RF_IN_EVERY_LAYOUT ? ", whole" : "",
                  family->interleaved ? ", in turns" : "",
                  family->transposed ? ", transposed" : "",
                  family->stacked ? ", stacked" : "");
    free(text);
}

void rf_plan_families_print(const struct rf_model *model,
                            const struct rf_plan *plan)
{
    static const char *const heads[] = {
        "=family",           "shape", ">tensors", "role", "a training rank",
        "an inference rank", "rule",  NULL};
    static const char *const model_heads[] = {"=family", "shape", ">tensors",
                                              "role",    "rule",  NULL};
    static const char *const drops[] = {"rule", "an inference rank",
                                        "a training rank", "shape", NULL};
    static const char *const model_drops[] = {"rule", "shape", NULL};
    struct rf_table *table =
        rf_table_create(plan != NULL ? heads : model_heads);
    rf_table_set_drops(table, plan != NULL ? drops : model_drops,
                       "refit-coord plan -v ... | less -S");
    for (uint32_t f = 0; f < model->n_families; f++) {
        const struct rf_family *family = &model->families[f];
        rf_table_cell(table, "%s", family->name);
        shape_cell(table, family);
        rf_table_cell(table, "%" PRIu64, rf_family_tensors(family));
        role_cell(table, family);
        if (plan != NULL) {
            holding_cell(table, plan, RF_TRAIN, f);
            holding_cell(table, plan, RF_INFER, f);
        }
        rf_table_cell(table, "%s",
                      family->rule != NULL ? family->rule : "none");
    }
    rf_table_print(table, stdout, RF_REPORT_TABLE, 2);
    rf_table_destroy(table);
}
