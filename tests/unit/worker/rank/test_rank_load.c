/* A rank's load: its pace by a clock of the test's own, and its counters. */
#include "common/clock.h"
#include "tests/unit/unit.h"
#include "worker/content/memory_host.h"
#include "worker/rank/load_memory.h"

#define BLOCK_NS 1000

/* Blocks within `ns` of a thread that wakes `late_ns` after a block is due. */
static int64_t blocks_within(int64_t ns, int64_t late_ns)
{
    int64_t now = 0, due = 0, blocks = 0;
    while (now < ns) {
        if (due > now) {
            now = due + late_ns;
        } else {
            due = rf_rank_load_due(due, now, BLOCK_NS);
            blocks++;
        }
    }
    return blocks;
}

LOOP_TEST(test_load_keeps_its_rate_though_its_sleeps_are_too_long, 3)
{
    static const int64_t late_ns[] = {0, 50 * BLOCK_NS,
                                      RF_LOAD_CATCH_UP_NS - BLOCK_NS};
    const int64_t ns = 100 * RF_LOAD_CATCH_UP_NS;
    const int64_t blocks = blocks_within(ns, late_ns[_i]);
    ck_assert_int_le(blocks, ns / BLOCK_NS + 1);
    ck_assert_int_ge(blocks, (ns - late_ns[_i]) / BLOCK_NS);
}

/* Of every ten spans in which it may catch up it sleeps through nine. */
TEST(test_load_does_not_make_up_for_a_long_delay)
{
    const int64_t ns = 1000 * RF_LOAD_CATCH_UP_NS;
    const int64_t blocks = blocks_within(ns, 9 * RF_LOAD_CATCH_UP_NS);
    ck_assert_int_le(blocks, ns / BLOCK_NS / 8);
    ck_assert_int_ge(blocks, ns / BLOCK_NS / 10);
}

static void wait_for_more(const struct rf_rank_load *load, uint64_t bytes)
{
    while (rf_rank_load_bytes(load) <= bytes) {
        rf_sleep_until_ns(rf_now_ns() + RF_NS_PER_MS);
    }
}

LOOP_TEST(test_load_reads_whole_blocks_from_its_start_to_its_stop, 2)
{
    static const double rates[] = {0, 1}; /* as fast as it can, and paced */
    const struct rf_load_spec spec = {
        .given = true, .gbytes_per_s = rates[_i], .cores = 2};
    struct rf_rank_load *load;
    struct rf_err err;
    assert_ok(rf_rank_load_reads(&spec, &rf_memory_host, 1, &load, &err), err);
    for (uint64_t bytes = 0, turn = 0; turn < 2; turn++) {
        assert_ok(rf_rank_load_start(load, &err), err);
        wait_for_more(load, bytes);
        assert_ok(rf_rank_load_stop(load, &err), err);
        bytes = rf_rank_load_bytes(load);
        ck_assert_uint_eq(bytes % RF_LOAD_BLOCK_BYTES, 0);
        rf_sleep_until_ns(rf_now_ns() + RF_NS_PER_MS);
        ck_assert_uint_eq(rf_rank_load_bytes(load), bytes);
    }
    rf_rank_load_destroy(load);
}
