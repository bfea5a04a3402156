/* How large the messages of the GPU examples are and how many groups a rank
 * issues, counted from their schedules: a group costs the host 50 to 100 us,
 * so the wire should take longer than that. And how large the tables are by
 * which a rank casts, and fills and verifies its arenas. */
#include "common/mem.h"
#include "cuda/lockstep/steps_build.h"
#include "planner/strategy/schedule_build.h"
#include "tests/lib/gpu_example.h"
#include "tests/unit/unit.h"

#define MESSAGE_MIN (UINT64_C(16) << 20)
#define GROUPS_MAX 64u
/* Where chunks are forwarded, round by round. */
#define RELAYED_GROUPS_MAX 256u

struct sizes {
    size_t groups; /* of the rank that has most */
    uint64_t messages, bytes;
};

static struct sizes sizes_of(const struct planned *planned)
{
    const uint32_t n = planned->world->n_ranks;
    AUTO_FREE struct rf_waves *waves = rf_xcalloc(n, sizeof(*waves));
    struct sizes sizes = {0};
    struct rf_steps_of of = {.bucket_bytes = planned->spec->bucket_bytes,
                             .waves = waves};
    struct rf_schedule *schedule;
    struct rf_err err;
    assert_ok(rf_schedule_build(planned->plan, RF_NONE, &schedule, &err), err);
    of.schedule = schedule;
    for (of.rank = 0; of.rank < n; of.rank++) {
        rf_waves_count(&of, &waves[of.rank]);
    }
    for (of.rank = 0; of.rank < n; of.rank++) {
        struct rf_steps steps;
        assert_ok(rf_steps_build(&of, &steps, &err), err);
        sizes.groups = RF_MAX(sizes.groups, steps.n);
        for (size_t s = 0; s < steps.n; s++) {
            sizes.messages += steps.at[s].n_sends;
        }
        sizes.bytes += steps.sent_bytes;
        ck_assert_uint_le(steps.send_slot_bytes, of.bucket_bytes);
        ck_assert_uint_le(steps.recv_slot_bytes, of.bucket_bytes);
        rf_steps_free(&steps);
    }
    for (uint32_t r = 0; r < n; r++) {
        rf_waves_free(&waves[r]);
    }
    rf_schedule_destroy(schedule);
    return sizes;
}

static const struct {
    const char *file, *scenario, *strategy;
    size_t most;
} examples[] = {
    {"gpu-8", "colocated", "send_recv", GROUPS_MAX},
    {"gpu-8", "split", "send_recv", GROUPS_MAX},
    {"gpu-8", "split", "broadcast", RELAYED_GROUPS_MAX},
    {"gpu-2x8", "split", "send_recv", GROUPS_MAX},
    {"gpu-2x8", "split", "broadcast", RELAYED_GROUPS_MAX},
    {"gpu-2x8", "colocated", "send_recv", GROUPS_MAX},
};

LIMIT(120)

LOOP_TEST(test_gpu_examples_send_large_messages_in_few_groups,
          RF_ARRAY_SIZE(examples))
{
    struct planned planned;
    struct sizes sizes;
    gpu_example_make(&planned, examples[_i].file, examples[_i].scenario,
                     examples[_i].strategy);
    sizes = sizes_of(&planned);
    ck_assert_msg(sizes.groups < examples[_i].most, "%zu groups", sizes.groups);
    ck_assert_msg(sizes.bytes >= sizes.messages * MESSAGE_MIN,
                  "%.1f MB per message",
                  (double)sizes.bytes / 1e6 / (double)sizes.messages);
    planned_free(&planned);
}

/* What tiles take on the device. */
static uint64_t tile_bytes(const struct rf_tiles *tiles)
{
    uint64_t bytes = 0;
    for (size_t c = 0; c < RF_UNIT_CLASSES; c++) {
        bytes += tiles->n[c] * sizeof(*tiles->tiles[c]);
    }
    return bytes;
}

/* Bytes that tiles cover. */
static uint64_t covered_bytes(const struct rf_tiles *tiles)
{
    uint64_t bytes = 0;
    for (size_t c = 0; c < RF_UNIT_CLASSES; c++) {
        for (size_t t = 0; t < tiles->n[c]; t++) {
            const struct rf_tile *tile = &tiles->tiles[c][t];
            bytes += ((uint64_t)tile->rows * tile->units) << c;
        }
    }
    return bytes;
}

/* Adds what the tables of content of a rank's arenas take, and the arenas. */
static void add_content(const struct planned *planned, uint32_t rank,
                        uint32_t cast, uint64_t *table, uint64_t *arena)
{
    for (int side = RF_TRAIN; side <= RF_INFER; side++) {
        const struct rf_content_job content = {
            .plan = planned->plan, .side = (enum rf_side)side, .rank = rank};
        struct rf_content_slices slices = {0};
        rf_content_slices_add_side(&slices, &content, cast);
        *table += slices.n * sizeof(*slices.at) + tile_bytes(&slices.tiles);
        ck_assert_uint_eq(covered_bytes(&slices.tiles), slices.bytes);
        *arena += slices.bytes;
        rf_content_slices_free(&slices);
    }
}

TEST(test_gpu_8_has_small_tables_of_content)
{
    struct planned planned;
    gpu_example_make(&planned, "gpu-8", "colocated", "send_recv");
    for (uint32_t r = 0; r < planned.world->n_ranks; r++) {
        uint64_t table = 0, arena = 0;
        add_content(&planned, r, RF_KERNEL_CAST_NONE, &table, &arena);
        ck_assert_uint_gt(arena, UINT64_C(20) << 30);
        ck_assert_msg(table < (UINT64_C(4) << 20), "rank %u: %.1f MB", r,
                      (double)table / 1e6);
    }
    planned_free(&planned);
}

/* Matrices of 4096 by 12288 in 36 layers, from float32. */
TEST(test_casts_have_small_tables)
{
    static const uint32_t slots[] = {1};
    const struct rf_waves waves[1] = {{NULL, 0, 0}};
    struct planned planned;
    struct rf_steps_of of = {.bucket_bytes = 1 << 30, .waves = waves};
    struct rf_schedule *schedule;
    struct rf_steps steps;
    struct rf_err err;
    uint64_t table = 0, arena = 0;
    ck_assert_msg(
        planned_make(
            &planned,
            "{\"megatron\": {\"num_layers\": 36, \"hidden_size\": 4096, "
            "\"num_attention_heads\": 32, \"num_query_groups\": 8, "
            "\"ffn_hidden_size\": 12288, \"vocab_size\": 1000, "
            "\"swiglu\": true}}",
            "{\"mode\": \"colocated\", \"train\": {\"tp\": 1, \"dtype\": "
            "\"float32\"}, \"infer\": {\"layout\": \"vllm\", \"tp\": 1, "
            "\"dtype\": \"bfloat16\"}}",
            slots, 1) == RF_OK,
        "%s", planned.err.text);
    assert_ok(rf_schedule_build(planned.plan, RF_NONE, &schedule, &err), err);
    of.schedule = schedule;
    assert_ok(rf_steps_build(&of, &steps, &err), err);
    ck_assert_uint_eq(steps.n, 1);
    ck_assert_uint_gt(steps.at[0].pack.cast.bytes, UINT64_C(20) << 30);
    table = tile_bytes(&steps.at[0].pack.cast.tiles);
    ck_assert_msg(table * 1000 < steps.at[0].pack.cast.bytes, "%.1f MB",
                  (double)table / 1e6);
    table = 0;
    add_content(&planned, 0, RF_KERNEL_CAST_F32_BF16, &table, &arena);
    ck_assert_msg(table * 4000 < arena, "%.1f MB", (double)table / 1e6);
    rf_steps_free(&steps);
    rf_schedule_destroy(schedule);
    planned_free(&planned);
}
