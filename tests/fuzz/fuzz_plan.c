/*
 * Any bytes as a small model and a pair of meshes: refused with a reason, or
 * planned, proved, and played on real memory, whose every destination byte must
 * then be the content that common/pattern.h gives it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "planner/families/model_read.h"
#include "planner/layout/mesh_rules.h"
#include "planner/plan/plan_walk.h"
#include "tests/lib/places.h"
#include "tests/lib/text_add.h"

#define MOST_RANKS 32
#define MOST_BYTES (UINT64_C(1) << 22) /* of all arenas of a plan */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *data;
    size_t size, used;
};

/* The next byte modulo n; 0 at the end. */
static unsigned next(struct input *in, unsigned n)
{
    return in->used < in->size ? in->data[in->used++] % n : 0;
}

static void add_model(struct input *in, struct text *out)
{
    static const char *const dtypes[] = {"BF16", "F32", "U8"};
    if (next(in, 4) == 0) {
        unsigned n = 1 + next(in, 4), same = next(in, 2);
        text_add(out, "{\"manifest\": {");
        for (unsigned i = 0; i < n; i++) {
            text_add(out,
                     "%s\"model.layers.%u.x\": {\"dtype\": \"%s\", \"shape\": ",
                     i ? ", " : "", i, dtypes[next(in, 3)]);
            text_add(out, "[%u, %u]}", 1 + (same ? 6 : next(in, 9)),
                     1 + (same ? 4 : next(in, 9)));
        }
        text_add(out, "}}");
        return;
    }
    unsigned groups = 1 + next(in, 8);
    text_add(
        out,
        "{\"megatron\": {\"num_layers\": %u, \"hidden_size\": %u, "
        "\"num_attention_heads\": %u, \"num_query_groups\": %u, "
        "\"kv_channels\": %u, \"vocab_size\": %u, \"ffn_hidden_size\": %u, "
        "\"swiglu\": %s, \"untie\": %s",
        1 + next(in, 6), 1 + next(in, 16), groups * (1 + next(in, 3)), groups,
        1 + next(in, 4), 1 + next(in, 255), 1 + next(in, 24),
        next(in, 2) ? "true" : "false", next(in, 2) ? "true" : "false");
    if (next(in, 2)) {
        text_add(out, ", \"num_experts\": %u, \"moe_ffn_hidden_size\": %u",
                 1 + next(in, 8), 1 + next(in, 12));
    }
    text_add(out, "}}");
}

static void add_side(struct input *in, struct text *out)
{
    static const char *const layouts[] = {
        "megatron", "hf", "vllm", "sglang", "fsdp", "fsdp1", "zero3", "spec"};
    unsigned kind = next(in, 8);
    text_add(out, "{\"layout\": \"%s\"", layouts[kind]);
    if (next(in, 4) == 0) {
        text_add(out, ", \"dtype\": \"%s\"",
                 next(in, 2) ? "float32" : "bfloat16");
    }
    if (kind == 7) {
        static const char *const specs[] = {"S0S1", "S1S0", "S01R", "RR",
                                            "RS0"};
        text_add(out, ", \"mesh\": [%u, %u], \"spec\": \"%s\"}",
                 1 + next(in, 4), 1 + next(in, 4), specs[next(in, 5)]);
        return;
    }
    if (kind >= 4) {
        text_add(out, ", \"dp\": %u, \"dp_replicate\": %u}", 1 + next(in, 12),
                 1 + next(in, 3));
        return;
    }
    text_add(out, ", \"tp\": %u, \"pp\": %u, \"cp\": %u", 1 + next(in, 8),
             1 + next(in, 4), 1 + next(in, 2));
    if (next(in, 2)) {
        text_add(out, ", \"ep\": %u, \"etp\": %u", 1 + next(in, 4),
                 1 + next(in, 4));
    }
    if (kind == 3) {
        text_add(out, ", \"attention_dp\": %u", 1 + next(in, 4));
    }
    if (next(in, 4) == 0) {
        text_add(out, ", \"vpp\": %u", 1 + next(in, 3));
    } else if (next(in, 4) == 0) {
        text_add(out, ", \"num_layers_in_first_pipeline_stage\": %u",
                 1 + next(in, 3));
    }
    text_add(out, "}");
}

static json_t *parse(const struct text *text)
{
    json_t *value = NULL;
    if (rf_json_parse(text->text, text->used, "input", &value, NULL) != RF_OK) {
        abort(); /* the text above is JSON */
    }
    return value;
}

static struct rf_model *read_model(struct input *in)
{
    struct text text = {.used = 0};
    struct rf_model *model = NULL;
    json_t *value;
    add_model(in, &text);
    value = parse(&text);
    struct rf_jnode node = rf_jnode_root(value, "model");
    if (rf_model_from_json(&node, &model, NULL) != RF_OK) {
        model = NULL;
    }
    json_decref(value);
    return model;
}

static struct rf_spec *read_spec(struct input *in)
{
    static const char *const balances[] = {"none", "size", "order"};
    struct text text = {.used = 0};
    struct rf_spec *spec = NULL;
    json_t *value;
    text_add(&text, "{\"name\": \"x\", \"mode\": \"%s\", \"balance\": \"%s\", ",
             next(in, 2) ? "colocated" : "disaggregated",
             balances[next(in, 3)]);
    text_add(&text, "\"train\": ");
    add_side(in, &text);
    text_add(&text, ", \"infer\": ");
    add_side(in, &text);
    text_add(&text, "}");
    value = parse(&text);
    struct rf_jnode node = rf_jnode_root(value, "scenario");
    if (rf_spec_from_json(&node, NULL, 0, &spec, NULL) != RF_OK) {
        spec = NULL;
    }
    json_decref(value);
    return spec;
}

/* The first content byte of an element. */
static uint8_t content(const struct rf_model *model, uint32_t f,
                       const uint64_t *at)
{
    const struct rf_family *family = &model->families[f];
    uint64_t index = 0;
    for (uint32_t d = 0; d < family->ndim; d++) {
        index = index * family->shape[d] + at[RF_DIM_TENSOR + d];
    }
    return rf_pattern_byte(rf_pattern_seed(f, at[0], at[1]), 0, index);
}

/* Writes (or compares) the first byte of each element of a rank's pieces. */
static void visit(const struct rf_plan *plan, enum rf_side side, uint32_t rank,
                  uint8_t *arena, bool write)
{
    const struct rf_rank_layout *layout = rf_plan_layout(plan, side, rank);
    for (size_t i = 0; i < layout->n_pieces; i++) {
        const struct rf_piece *piece = &layout->pieces[i];
        uint64_t at[RF_BOX_DIMS];
        memcpy(at, piece->box.start, sizeof(at));
        do {
            uint8_t byte = content(plan->model, piece->family, at);
            uint64_t to =
                place_address(&piece->box, at, piece->offset, piece->stride);
            if (to >= layout->arena_bytes) {
                abort();
            }
            if (write) {
                arena[to] = byte;
            } else if (arena[to] != byte) {
                abort(); /* a destination byte is wrong */
            }
        } while (place_next(&piece->box, at));
    }
}

/* Moves what the plan says; an element's first byte stands for it. */
static void move(const struct rf_plan *plan, uint8_t **train, uint8_t **infer)
{
    struct rf_plan_walk walk;
    rf_plan_walk_start(&walk, plan);
    while (rf_plan_walk_step(&walk)) {
        const struct rf_transfer *t = rf_plan_walk_transfer(&walk);
        uint64_t at[RF_BOX_DIMS];
        memcpy(at, t->box.start, sizeof(at));
        do {
            uint64_t from =
                place_address(&t->box, at, t->src_offset, t->src_stride);
            uint64_t to =
                place_address(&t->box, at, t->dst_offset, t->dst_stride);
            infer[t->dst][to] = train[t->src][from];
        } while (place_next(&t->box, at));
    }
    rf_plan_walk_end(&walk);
}

static void play(const struct rf_plan *plan)
{
    uint8_t *train[MOST_RANKS], *infer[MOST_RANKS];
    uint32_t n = plan->world->n_ranks;
    for (uint32_t r = 0; r < n; r++) {
        train[r] =
            rf_xcalloc(rf_plan_layout(plan, RF_TRAIN, r)->arena_bytes, 1);
        infer[r] =
            rf_xcalloc(rf_plan_layout(plan, RF_INFER, r)->arena_bytes, 1);
        visit(plan, RF_TRAIN, r, train[r], true);
    }
    move(plan, train, infer);
    for (uint32_t r = 0; r < n; r++) {
        visit(plan, RF_INFER, r, infer[r], false);
        free(train[r]);
        free(infer[r]);
    }
}

static uint64_t arena_bytes(const struct rf_plan *plan)
{
    uint64_t sum = 0;
    for (uint32_t r = 0; r < plan->world->n_ranks; r++) {
        sum += rf_plan_layout(plan, RF_TRAIN, r)->arena_bytes;
        sum += rf_plan_layout(plan, RF_INFER, r)->arena_bytes;
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size, 0};
    struct rf_model *model = read_model(&in);
    struct rf_spec *spec = model != NULL ? read_spec(&in) : NULL;
    struct rf_world *world = NULL;
    struct rf_plan *plan = NULL;
    const uint32_t slots[] = {next(&in, 16), next(&in, 16), next(&in, 16)};
    uint32_t n_nodes = next(&in, 2) ? 3 : 0;
    if (spec != NULL &&
        rf_mesh_rules_place(spec, model, slots, n_nodes, &world, NULL) ==
            RF_OK &&
        world->n_ranks <= MOST_RANKS) {
        enum rf_status status = rf_plan_build(model, world, spec, &plan, NULL);
        if (status == RF_ERR_INTERNAL) {
            abort(); /* the plan is not proved */
        }
        if (status == RF_OK && arena_bytes(plan) <= MOST_BYTES) {
            play(plan);
        }
    }
    rf_plan_destroy(plan);
    rf_world_destroy(world);
    rf_spec_destroy(spec);
    rf_model_destroy(model);
    return 0;
}
