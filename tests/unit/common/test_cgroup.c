/* Quotas of processor time, of both versions of control groups. */
#include "common/cgroup.h"
#include "tests/lib/fake_root.h"
#include "tests/unit/unit.h"

static const struct {
    const char *max;
    uint32_t processors;
} unified[] = {
    {"200000 100000\n", 2}, {"150000 100000\n", 2},
    {"1000 100000\n", 1},   {"max 100000\n", UINT32_MAX},
    {"\n", UINT32_MAX},     {"100000 0\n", UINT32_MAX},
};

FIXTURE(fake_root_make, fake_root_remove)

LOOP_TEST(test_a_quota_counts_as_processors, RF_ARRAY_SIZE(unified))
{
    fake_root_write("cpu.max", unified[_i].max);
    ck_assert_uint_eq(rf_cgroup_processors_in(fake_root, true),
                      unified[_i].processors);
}

TEST(test_a_quota_of_version_1_counts_as_processors)
{
    ck_assert_uint_eq(rf_cgroup_processors_in(fake_root, false), UINT32_MAX);
    fake_root_write("cpu.cfs_period_us", "100000\n");
    fake_root_write("cpu.cfs_quota_us", "-1\n");
    ck_assert_uint_eq(rf_cgroup_processors_in(fake_root, false), UINT32_MAX);
    fake_root_write("cpu.cfs_quota_us", "250000\n");
    ck_assert_uint_eq(rf_cgroup_processors_in(fake_root, false), 3);
}
