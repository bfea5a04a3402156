/* What is found of adapters in a tree that looks like a machine's. */
#include <sys/resource.h>
#include <unistd.h>

#include "tests/lib/fake_root.h"
#include "tests/unit/unit.h"
#include "worker/helper/rdma.h"

FIXTURE(fake_root_make, fake_root_remove)

TEST(test_machine_without_adapters_has_nothing)
{
    struct rf_msg_rdma found = {.verbs = true, .peermem = true};
    rf_rdma_find(fake_root, &found);
    ck_assert_uint_eq(found.adapters, 0);
    ck_assert(!found.verbs && !found.peermem);
}

/* As in a container: its kernel's adapters, none of its device files. */
TEST(test_adapters_without_device_files_have_no_verbs)
{
    struct rf_msg_rdma found;
    fake_root_run(
        "mkdir -p sys/class/infiniband/mlx5_0 sys/class/infiniband/mlx5_1");
    rf_rdma_find(fake_root, &found);
    ck_assert_uint_eq(found.adapters, 2);
    ck_assert(!found.verbs && !found.peermem);
}

LOOP_TEST(test_device_files_and_either_module_are_found, 2)
{
    struct rf_msg_rdma found;
    fake_root_run(
        "mkdir -p sys/class/infiniband/mlx5_0 dev/infiniband sys/module/");
    fake_root_run("mkdir sys/module/%s",
                  _i == 0 ? "nvidia_peermem" : "nv_peer_mem");
    fake_root_run("touch dev/infiniband/uverbs0");
    rf_rdma_find(fake_root, &found);
    ck_assert_uint_eq(found.adapters, 1);
    ck_assert(found.verbs && found.peermem);
}

CASE("limits")

TEST(test_dmabuf_needs_a_kernel_of_5_12)
{
    static const struct {
        const char *release;
        bool takes;
    } cases[] = {{"5.12.0", true},
                 {"5.4.0-150-generic", false},
                 {"6.1.0-18-amd64", true},
                 {"4.18.0-553.el8", false},
                 {"5.11.99", false},
                 {"5.120", true},
                 {"5", false},
                 {"7", true},
                 {"unknown", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_msg(rf_rdma_kernel_takes_dmabuf(cases[i].release) ==
                          cases[i].takes,
                      "%s", cases[i].release);
    }
}

/* A process that may lock all memory has no limit whatever its number says. */
TEST(test_limit_of_locked_memory_is_told_where_it_binds)
{
    struct rlimit limit;
    uint64_t found;
    ck_assert_int_eq(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
    limit.rlim_cur = 65536;
    ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    found = rf_rdma_memlock();
    ck_assert(found == 65536 || (found == RF_ABSENT_U64 && getuid() == 0));
    if (getuid() == 0) {
        ck_assert_int_eq(setuid(65534), 0); /* and with it all capabilities */
        ck_assert_uint_eq(rf_rdma_memlock(), 65536);
    }
}
