/* How packing shares a device with NCCL. */
#include "cuda/device/sm_share.h"

#include "common/compiler.h"
#include "tests/unit/unit.h"

static const struct {
    uint32_t processors;
    bool both;
    const char *wish;
    uint32_t blocks;
} good[] = {
    /* H100, H200: 68 of 132 */
    {132, true, NULL, 34},
    {132, false, NULL, 68},
    /* B200 */
    {148, true, NULL, 42},
    /* A100: half */
    {108, true, NULL, 27},
    {108, false, NULL, 54},
    {2, true, NULL, 1},
    {1, true, NULL, 1},
    {1, false, NULL, 1},
    {132, true, "132", 66},
    {132, false, "132", 132},
    {132, true, "80", 40},
    {132, true, "2", 1},
};

LOOP_TEST(test_share_leaves_multiprocessors_to_nccl, RF_ARRAY_SIZE(good))
{
    struct rf_err err;
    uint32_t blocks = 0;
    assert_ok(rf_sm_share_blocks(good[_i].processors, good[_i].both,
                                 good[_i].wish, &blocks, &err),
              err);
    ck_assert_uint_eq(blocks, good[_i].blocks);
}

static const char *const bad[] = {"", "1", "133", "-4", "many", "8x"};

LOOP_TEST(test_share_refuses_what_the_device_does_not_have, RF_ARRAY_SIZE(bad))
{
    struct rf_err err;
    uint32_t blocks = 7;
    assert_fails(rf_sm_share_blocks(132, true, bad[_i], &blocks, &err),
                 RF_ERR_CONFIG, err, "REFIT_PACK_SMS");
    assert_says(err.text, "from 2 to 132");
    ck_assert_uint_eq(blocks, 7);
}
