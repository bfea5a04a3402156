/* How large the messages of the GPU examples are and how many groups a rank
 * issues, counted from their schedules: a group costs the host 50 to 100 us,
 * so the wire should take longer than that. And how large the tables are by
 * which a rank fills and verifies its arenas. */
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
    struct rf_schedule *schedule;
    struct rf_err err;
    assert_ok(rf_schedule_build(planned->plan, RF_NONE, &schedule, &err), err);
    for (uint32_t r = 0; r < n; r++) {
        rf_waves_count(schedule, r, planned->spec->bucket_bytes, &waves[r]);
    }
    for (uint32_t r = 0; r < n; r++) {
        const struct rf_steps_of of = {.schedule = schedule,
                                       .rank = r,
                                       .bucket_bytes =
                                           planned->spec->bucket_bytes,
                                       .waves = waves};
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

/* What slices and tiles take on the device. */
static uint64_t table_bytes(const struct rf_content_slices *slices)
{
    uint64_t bytes = slices->n * sizeof(*slices->at);
    for (size_t c = 0; c < RF_UNIT_CLASSES; c++) {
        bytes += slices->tiles.n[c] * sizeof(*slices->tiles.tiles[c]);
    }
    return bytes;
}

TEST(test_gpu_8_has_small_tables_of_content)
{
    struct planned planned;
    gpu_example_make(&planned, "gpu-8", "colocated", "send_recv");
    for (uint32_t r = 0; r < planned.world->n_ranks; r++) {
        uint64_t table = 0, arena = 0;
        for (int side = RF_TRAIN; side <= RF_INFER; side++) {
            const struct rf_content_job content = {
                .plan = planned.plan, .side = (enum rf_side)side, .rank = r};
            struct rf_content_slices slices = {0};
            rf_content_slices_add_side(&slices, &content, RF_KERNEL_CAST_NONE);
            table += table_bytes(&slices);
            arena += slices.bytes;
            rf_content_slices_free(&slices);
        }
        ck_assert_uint_gt(arena, UINT64_C(20) << 30);
        ck_assert_msg(table < (UINT64_C(4) << 20), "rank %u: %.1f MB", r,
                      (double)table / 1e6);
    }
    planned_free(&planned);
}
