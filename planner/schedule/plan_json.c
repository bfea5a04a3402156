/*
 * The plan as JSON for checks by other programs: complete for each rank, layer
 * and expert, and for each hop of the schedule. docs/RESULTS.md defines the
 * fields.
 */
#include "planner/schedule/plan_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "planner/layout/unknown_tensors.h"
#include "planner/model/shape_json.h"
#include "planner/plan/plan_internal.h"
#include "planner/plan/tensor_groups.h"

static void set_u64(json_t *object, const char *key, uint64_t value)
{
    json_object_set_new(object, key, json_integer((json_int_t)value));
}

/* The tensors that every rank holds whole because no rule shards them. */
static json_t *unknown_json(const struct rf_plan *plan)
{
    struct rf_unknown unknown =
        rf_unknown_tensors_count(plan->model, plan->spec);
    json_t *out = json_object();
    set_u64(out, "families", unknown.families);
    set_u64(out, "tensors", unknown.tensors);
    set_u64(out, "bytes", unknown.bytes);
    return out;
}

/* The world ranks of each pool, which follow each other. */
static json_t *pool_ranks_json(const struct rf_plan *plan)
{
    const struct rf_world *world = plan->world;
    json_t *list = json_array();
    for (uint32_t i = RF_INFER; i < world->n_meshes; i++) {
        const struct rf_world_mesh *mesh = &world->mesh[i];
        json_t *pool = json_object();
        set_u64(pool, "first_rank", world->rank_of[RF_INFER][mesh->first]);
        set_u64(pool, "ranks", mesh->size);
        json_array_append_new(list, pool);
    }
    return list;
}

json_t *rf_plan_summary_json(const struct rf_plan *plan)
{
    const struct rf_plan_totals *totals = &plan->totals;
    char digest[RF_HASH_TEXT_SIZE];
    json_t *out = json_object();
    rf_hash_text(&plan->digest, digest);
    json_object_set_new(out, "digest", json_string(digest));
    set_u64(out, "transfers", totals->transfers);
    set_u64(out, "bytes_total", totals->bytes_total);
    set_u64(out, "bytes_local", totals->bytes_local);
    set_u64(out, "bytes_intra_node", totals->bytes_intra_node);
    set_u64(out, "bytes_inter_node", totals->bytes_inter_node);
    set_u64(out, "max_send_bytes", totals->max_send_bytes);
    set_u64(out, "max_recv_bytes", totals->max_recv_bytes);
    set_u64(out, "bound_send_bytes", totals->bound_send_bytes);
    set_u64(out, "bound_recv_bytes", totals->bound_recv_bytes);
    set_u64(out, "max_node_send_bytes", totals->max_node_send_bytes);
    set_u64(out, "max_node_recv_bytes", totals->max_node_recv_bytes);
    set_u64(out, "bound_node_send_bytes", totals->bound_node_send_bytes);
    set_u64(out, "bound_node_recv_bytes", totals->bound_node_recv_bytes);
    json_object_set_new(out, "unknown", unknown_json(plan));
    if (plan->spec->n_sides > RF_SIDES) {
        json_object_set_new(out, "pools", pool_ranks_json(plan));
    }
    json_object_set_new(
        out, "plan_ms",
        json_real((double)plan->plan_ns / (double)RF_NS_PER_MS));
    return out;
}

static json_t *mesh_json(const struct rf_plan *plan, enum rf_side which)
{
    const struct rf_side_spec *side = &plan->spec->side[which];
    const struct rf_world_mesh *mesh = &plan->world->mesh[which];
    const enum rf_side of = RF_MIN(which, RF_INFER);
    const uint32_t *layout_of = plan->priv->layouts[of].of_index + mesh->first;
    const uint32_t *rank_of = plan->world->rank_of[of] + mesh->first;
    uint32_t least = UINT32_MAX, most = 0;
    json_t *out = json_object(), *ranks = json_array();
    for (uint32_t i = 0; i < mesh->size; i++) {
        json_array_append_new(ranks, json_integer(rank_of[i]));
        least = RF_MIN(least, layout_of[i]);
        most = RF_MAX(most, layout_of[i]);
    }
    json_object_set_new(out, "layout",
                        json_string(rf_layout_kind_name(side->layout)));
    set_u64(out, "ranks", mesh->size);
    set_u64(out, "tp", side->tp);
    set_u64(out, "cp", side->cp);
    set_u64(out, "dp", side->dp);
    set_u64(out, "pp", side->pp);
    set_u64(out, "vpp", side->vpp);
    set_u64(out, "ep", side->ep);
    set_u64(out, "etp", side->etp);
    set_u64(out, "edp", mesh->edp);
    set_u64(out, "layouts", most - least + 1);
    json_object_set_new(out, "world_ranks", ranks);
    return out;
}

/* As the scenario has "infer": an object, or a list. */
static json_t *pools_json(const struct rf_plan *plan)
{
    json_t *list = json_array();
    if (plan->spec->n_sides == RF_SIDES) {
        json_decref(list);
        return mesh_json(plan, RF_INFER);
    }
    for (uint32_t i = RF_INFER; i < plan->spec->n_sides; i++) {
        json_array_append_new(list, mesh_json(plan, (enum rf_side)i));
    }
    return list;
}

static json_t *memory_json(const struct rf_plan *plan,
                           const struct rf_schedule *schedule,
                           const char *const *node_names)
{
    json_t *out = json_array();
    for (uint32_t r = 0; r < plan->world->n_ranks; r++) {
        const struct rf_rank *rank = &plan->world->ranks[r];
        json_t *entry = json_object();
        set_u64(entry, "rank", r);
        json_object_set_new(entry, "host", json_string(node_names[rank->node]));
        set_u64(entry, "slot", rank->slot);
        set_u64(entry, "train_bytes",
                rf_plan_layout(plan, RF_TRAIN, r)->arena_bytes);
        set_u64(entry, "infer_bytes",
                rf_plan_layout(plan, RF_INFER, r)->arena_bytes);
        set_u64(entry, "stage_bytes",
                rf_schedule_arena_bytes(plan, schedule, r, RF_MEM_STAGE));
        json_array_append_new(out, entry);
    }
    return out;
}

/* {"tensor", "start", "shape"} of one tensor of a box. */
static json_t *part_json(const struct rf_family *family,
                         const struct rf_box *box, uint64_t layer,
                         uint64_t expert)
{
    char name[512];
    json_t *out = json_object();
    rf_family_tensor_name(family, (uint32_t)layer, (uint32_t)expert, name,
                          sizeof(name));
    json_object_set_new(out, "tensor", json_string(name));
    json_object_set_new(
        out, "start",
        rf_shape_to_json(family, expert, &box->start[RF_DIM_TENSOR]));
    json_object_set_new(
        out, "shape", rf_shape_to_json(family, 1, &box->extent[RF_DIM_TENSOR]));
    return out;
}

/* Adds one instance of a piece to the entry of the parameter it lies in. */
static void list_piece(const struct rf_plan *plan, const struct rf_param *param,
                       const struct rf_piece *piece, uint64_t layer,
                       uint64_t expert, json_t **entries)
{
    const struct rf_family *family = &plan->model->families[piece->family];
    uint64_t offset =
        piece->offset +
        (layer - piece->box.start[RF_DIM_LAYER]) * piece->stride[RF_DIM_LAYER] +
        (expert - piece->box.start[RF_DIM_EXPERT]) *
            piece->stride[RF_DIM_EXPERT];
    uint64_t at =
        (offset - param->offset) / rf_align_up(param->bytes, RF_PARAM_ALIGN);
    json_t *item = part_json(family, &piece->box, layer, expert);
    set_u64(item, "offset", offset);
    json_object_set_new(item, "strides",
                        rf_shape_to_json(family, piece->stride[RF_DIM_EXPERT],
                                         &piece->stride[RF_DIM_TENSOR]));
    if (entries[at] == NULL) {
        char name[128];
        rf_model_fill_name(param->name,
                           family->layers ? family->layers[layer] : 0,
                           (int64_t)expert, name, sizeof(name));
        entries[at] = json_pack("{s:s, s:I, s:[]}", "param", name, "bytes",
                                (json_int_t)param->bytes, "pieces");
    }
    json_array_append_new(json_object_get(entries[at], "pieces"), item);
}

/* All parameters of one rank on one side. */
static json_t *holdings_json(const struct rf_plan *plan,
                             const struct rf_rank_layout *layout)
{
    json_t *out = json_array();
    size_t *first = rf_xcalloc(layout->n_params + 1, sizeof(*first));
    json_t **entries;
    for (size_t p = 0; p < layout->n_params; p++) {
        first[p + 1] = first[p] + layout->params[p].n_instances;
    }
    entries = rf_xcalloc(first[layout->n_params], sizeof(*entries));
    for (size_t i = 0; i < layout->n_pieces; i++) {
        const struct rf_piece *piece = &layout->pieces[i];
        const uint64_t *start = piece->box.start, *extent = piece->box.extent;
        for (uint64_t l = 0; l < extent[RF_DIM_LAYER]; l++) {
            for (uint64_t e = 0; e < extent[RF_DIM_EXPERT]; e++) {
                list_piece(plan, &layout->params[piece->param], piece,
                           start[RF_DIM_LAYER] + l, start[RF_DIM_EXPERT] + e,
                           entries + first[piece->param]);
            }
        }
    }
    for (size_t p = 0; p < layout->n_params; p++) {
        const struct rf_param *param = &layout->params[p];
        for (size_t i = first[p]; i < first[p + 1]; i++) {
            json_array_append_new(
                out,
                entries[i]
                    ? entries[i]
                    : json_pack("{s:s, s:I, s:[]}", "param", param->name,
                                "bytes", (json_int_t)param->bytes, "pieces"));
        }
    }
    free(entries);
    free(first);
    return out;
}

static json_t *ranks_json(const struct rf_plan *plan,
                          const char *const *node_names)
{
    json_t *out = json_array();
    for (uint32_t r = 0; r < plan->world->n_ranks; r++) {
        const char *host = node_names[plan->world->ranks[r].node];
        json_t *entry = json_object();
        set_u64(entry, "rank", r);
        json_object_set_new(entry, "host", json_string(host));
        json_object_set_new(
            entry, "train",
            holdings_json(plan, rf_plan_layout(plan, RF_TRAIN, r)));
        json_object_set_new(
            entry, "infer",
            holdings_json(plan, rf_plan_layout(plan, RF_INFER, r)));
        json_array_append_new(out, entry);
    }
    return out;
}

/* Adds the hops of one op, one per tensor, and its step if staged. */
static void list_op(const struct rf_plan *plan, const struct rf_op *op,
                    json_t *transfers, json_t *steps)
{
    static const char *const memories[] = {
        [RF_MEM_TRAIN] = "train",
        [RF_MEM_INFER] = "infer",
        [RF_MEM_STAGE] = "stage",
    };
    const struct rf_family *family = &plan->model->families[op->family];
    const struct rf_box *box = &op->box;
    for (uint64_t l = 0; l < box->extent[RF_DIM_LAYER]; l++) {
        for (uint64_t e = 0; e < box->extent[RF_DIM_EXPERT]; e++) {
            json_t *hop = part_json(family, box, box->start[RF_DIM_LAYER] + l,
                                    box->start[RF_DIM_EXPERT] + e);
            set_u64(hop, "src", op->src);
            set_u64(hop, "dst", op->dst);
            if (op->src_mem == RF_MEM_STAGE || op->dst_mem == RF_MEM_STAGE) {
                json_t *step = json_object();
                set_u64(step, "transfer", json_array_size(transfers));
                json_object_set_new(step, "from",
                                    json_string(memories[op->src_mem]));
                json_object_set_new(step, "to",
                                    json_string(memories[op->dst_mem]));
                set_u64(step, "group", op->group);
                json_array_append_new(steps, step);
            }
            json_array_append_new(transfers, hop);
        }
    }
}

/* Bytes from one rank to another. */
struct traffic {
    uint32_t src, dst;
    uint64_t bytes;
};

struct traffic_list {
    struct traffic *list;
    size_t n, cap;
};

static void list_traffic(uint32_t src, uint32_t dst, uint64_t n_ops,
                         uint64_t bytes, void *data)
{
    struct traffic_list *all = data;
    (void)n_ops;
    RF_PUSH(all->list, all->n, all->cap, ((struct traffic){src, dst, bytes}));
}

static int by_ranks(const void *a, const void *b)
{
    const struct traffic *x = a, *y = b;
    return RF_THEN_BY(RF_COMPARE(x->src, y->src), RF_COMPARE(x->dst, y->dst));
}

/* [from, to, bytes] for each pair of ranks with operations from one to the
 * other. */
static json_t *traffic_json(const struct rf_schedule *schedule)
{
    struct traffic_list all = {0};
    json_t *out = json_array();
    rf_schedule_pairs(schedule, list_traffic, &all);
    if (all.n > 0) {
        qsort(all.list, all.n, sizeof(*all.list), by_ranks);
    }
    for (size_t i = 0; i < all.n; i++) {
        uint64_t bytes = all.list[i].bytes;
        while (i + 1 < all.n && by_ranks(&all.list[i], &all.list[i + 1]) == 0) {
            bytes += all.list[++i].bytes;
        }
        json_array_append_new(out, json_pack("[i, i, I]", (int)all.list[i].src,
                                             (int)all.list[i].dst,
                                             (json_int_t)bytes));
    }
    free(all.list);
    return out;
}

/* Those of the scenario's "group"; adds nothing without it. */
static void add_groups(const struct rf_plan *plan, json_t *out)
{
    struct rf_tensor_groups groups;
    rf_tensor_groups_make(plan, &groups);
    if (groups.n > 0) {
        json_t *object = json_object();
        set_u64(object, "number", groups.n);
        set_u64(object, "largest_bytes",
                rf_tensor_groups_largest(plan, &groups));
        json_object_set_new(out, "groups", object);
    }
    rf_tensor_groups_free(&groups);
}

json_t *rf_plan_json(const struct rf_plan *plan,
                     const struct rf_schedule *schedule,
                     const char *const *node_names, bool full)
{
    json_t *out = json_object(), *meshes = json_object();
    json_object_set_new(out, "scenario",
                        rf_spec_to_json(plan->spec, node_names));
    json_object_set_new(out, "plan", rf_plan_summary_json(plan));
    json_object_set_new(meshes, "train", mesh_json(plan, RF_TRAIN));
    json_object_set_new(meshes, "infer", pools_json(plan));
    json_object_set_new(out, "meshes", meshes);
    json_object_set_new(out, "memory", memory_json(plan, schedule, node_names));
    json_object_set_new(out, "traffic", traffic_json(schedule));
    add_groups(plan, out);
    if (full) {
        json_t *transfers = json_array(), *steps = json_array();
        struct rf_schedule_walk walk;
        const struct rf_op *op;
        json_object_set_new(out, "ranks", ranks_json(plan, node_names));
        rf_schedule_walk_start(&walk, schedule);
        while ((op = rf_schedule_walk_next(&walk)) != NULL) {
            list_op(plan, op, transfers, steps);
        }
        json_object_set_new(out, "transfers", transfers);
        json_object_set_new(out, "steps", steps);
    }
    return out;
}
