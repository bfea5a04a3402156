/* Quotas of processor time, of both versions of control groups. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/cgroup.h"
#include "tests/unit/unit.h"

static char folder[] = "/tmp/cgroup-XXXXXX";

static void put(const char *name, const char *text)
{
    char path[64];
    FILE *file;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static void make_folder(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
    static const char *const names[] = {"cpu.max", "cpu.cfs_quota_us",
                                        "cpu.cfs_period_us"};
    char path[64];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    ck_assert_int_eq(rmdir(folder), 0);
}

static const struct {
    const char *max;
    uint32_t processors;
} unified[] = {
    {"200000 100000\n", 2}, {"150000 100000\n", 2},
    {"1000 100000\n", 1},   {"max 100000\n", UINT32_MAX},
    {"\n", UINT32_MAX},     {"100000 0\n", UINT32_MAX},
};

FIXTURE(make_folder, remove_folder)

LOOP_TEST(test_a_quota_counts_as_processors, RF_ARRAY_SIZE(unified))
{
    put("cpu.max", unified[_i].max);
    ck_assert_uint_eq(rf_cgroup_processors_in(folder, true),
                      unified[_i].processors);
}

TEST(test_a_quota_of_version_1_counts_as_processors)
{
    ck_assert_uint_eq(rf_cgroup_processors_in(folder, false), UINT32_MAX);
    put("cpu.cfs_period_us", "100000\n");
    put("cpu.cfs_quota_us", "-1\n");
    ck_assert_uint_eq(rf_cgroup_processors_in(folder, false), UINT32_MAX);
    put("cpu.cfs_quota_us", "250000\n");
    ck_assert_uint_eq(rf_cgroup_processors_in(folder, false), 3);
}
