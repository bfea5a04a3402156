/* How packing shares a device with NCCL. */
#include "cuda/device/sm_share.h"

#include <check.h>
#include <string.h>

#include "common/compiler.h"

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

START_TEST(test_share_leaves_multiprocessors_to_nccl)
{
    struct rf_err err;
    uint32_t blocks = 0;
    ck_assert_int_eq(
        rf_sm_share_blocks(good[_i].processors, good[_i].wish, &blocks, &err),
        RF_OK);
    ck_assert_uint_eq(blocks, good[_i].blocks);
}
END_TEST

static const char *const bad[] = {"", "1", "133", "-4", "many", "8x"};

START_TEST(test_share_refuses_what_the_device_does_not_have)
{
    struct rf_err err;
    uint32_t blocks = 7;
    ck_assert_int_eq(rf_sm_share_blocks(132, bad[_i], &blocks, &err),
                     RF_ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "REFIT_PACK_SMS"));
    ck_assert_ptr_nonnull(strstr(err.text, "from 2 to 132"));
    ck_assert_uint_eq(blocks, 7);
}
END_TEST

Suite *test_sm_share_suite(void);
Suite *test_sm_share_suite(void)
{
    Suite *suite = suite_create("sm_share");
    TCase *tests = tcase_create("sm_share");
    tcase_add_loop_test(tests, test_share_leaves_multiprocessors_to_nccl, 0,
                        (int)RF_ARRAY_SIZE(good));
    tcase_add_loop_test(tests, test_share_refuses_what_the_device_does_not_have,
                        0, (int)RF_ARRAY_SIZE(bad));
    suite_add_tcase(suite, tests);
    return suite;
}
