/* How packing shares a device with NCCL. */
#include "cuda/device/sm_share.h"

#include "common/compiler.h"
#include "tests/unit/unit.h"

static const struct {
    uint32_t processors;
    const char *wish;
    uint32_t blocks;
} good[] = {
    {132, NULL, 34}, /* H100, H200: 68 of 132 */
    {148, NULL, 42}, /* B200 */
    {108, NULL, 27}, /* A100: half */
    {2, NULL, 1},    {1, NULL, 1},  {132, "132", 66},
    {132, "80", 40}, {132, "2", 1},
};

LOOP_TEST(test_share_leaves_multiprocessors_to_nccl, RF_ARRAY_SIZE(good))
{
    struct rf_err err;
    uint32_t blocks = 0;
    assert_ok(
        rf_sm_share_blocks(good[_i].processors, good[_i].wish, &blocks, &err),
        err);
    ck_assert_uint_eq(blocks, good[_i].blocks);
}

static const char *const bad[] = {"", "1", "133", "-4", "many", "8x"};

LOOP_TEST(test_share_refuses_what_the_device_does_not_have, RF_ARRAY_SIZE(bad))
{
    struct rf_err err;
    uint32_t blocks = 7;
    assert_fails(rf_sm_share_blocks(132, bad[_i], &blocks, &err), RF_ERR_CONFIG,
                 err, "REFIT_PACK_SMS");
    assert_says(err.text, "from 2 to 132");
    ck_assert_uint_eq(blocks, 7);
}
