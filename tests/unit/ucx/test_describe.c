/* What is read from UCX's description of an endpoint; texts of UCX 1.13, that
 * of InfiniBand made after its format. */

#include "ucx/describe.h"

#include "tests/unit/unit.h"

static struct rf_ucx_lanes lanes_of(const char *info, const char *names)
{
    struct rf_ucx_lanes lanes;
    rf_ucx_describe(info, &lanes);
    ck_assert_str_eq(lanes.all, names);
    return lanes;
}

static void expect_device(const char *info, const char *names)
{
    struct rf_ucx_lanes lanes;
    rf_ucx_describe(info, &lanes);
    ck_assert_str_eq(lanes.device, names);
}

static void expect(const char *info, const char *names, bool rma)
{
    ck_assert_int_eq(lanes_of(info, names).rma, rma);
}

TEST(test_shared_memory_maps_and_does_not_write_to_arenas)
{
    const struct rf_ucx_lanes lanes = lanes_of(
        "#\n# UCP endpoint \n#\n"
        "#               peer: <no debug data>\n"
        "#                 lane[0]:  3:sysv/memory.0 md[2]           -> "
        "md[2]/sysv/sysdev[255] am am_bw#0\n"
        "#                 lane[1]:  4:posix/memory.0 md[3]          -> "
        "md[3]/posix/sysdev[255]\n"
        "#                 lane[2]:  5:cma/memory.0 md[4]            -> "
        "md[4]/cma/sysdev[255] rma_bw#0\n#\n"
        "#                 am_send: 0..<egr/short>..93..<rndv>..(inf)\n"
        "#                  put[0]: 0..<short>..4294967296..<bcopy>..(inf)\n"
        "#                  put[1]: 0..<short>..4294967296..<bcopy>..(inf)\n",
        "sysv/memory,posix/memory,cma/memory");
    ck_assert(!lanes.rma);
    ck_assert(!lanes.tcp);
    ck_assert_str_eq(lanes.mapping, "sysv/memory,posix/memory");
}

TEST(test_tcp_is_named_with_its_devices_once)
{
    expect("#   lane[0]:  0:tcp/lo.0 md[0] -> md[0]/tcp/sysdev[255] am\n"
           "#   lane[1]:  1:tcp/eth0.0 md[0] -> md[0]/tcp wireup\n"
           "#   lane[2]:  1:tcp/eth0.1 md[0] -> md[0]/tcp rma_bw#1\n",
           "tcp/lo,tcp/eth0", false);
}

TEST(test_only_tcp_alone_is_tcp)
{
    ck_assert(lanes_of("# lane[0]: 0:tcp/lo.0 md[0]\n"
                       "# lane[1]: 1:tcp/eth0.0 md[0]\n",
                       "tcp/lo,tcp/eth0")
                  .tcp);
    ck_assert(!lanes_of("# lane[0]: 0:tcp/lo.0 md[0]\n"
                        "# lane[1]: 1:ud_mlx5/mlx5_0:1.0 md[1]\n",
                        "tcp/lo,ud_mlx5/mlx5_0:1")
                   .tcp);
    ck_assert(!lanes_of("# lane[0]: 1:ud_mlx5/mlx5_0:1.0 md[1]\n"
                        "# lane[1]: 0:tcp/lo.0 md[0]\n",
                        "ud_mlx5/mlx5_0:1,tcp/lo")
                   .tcp);
}

/* It carries memory of devices where nothing else does. */
TEST(test_tcp_beside_others_is_not_for_devices)
{
    expect_device("# lane[0]: 0:tcp/lo.0 md[0]\n"
                  "# lane[1]: 1:tcp/eth0.0 md[0]\n",
                  "tcp/lo,tcp/eth0");
    expect_device("# lane[0]: 0:tcp/lo.0 md[0]\n"
                  "# lane[1]: 1:rc_mlx5/mlx5_0:1.0 md[1]\n"
                  "# lane[2]: 1:tcp/eth0.0 md[0]\n",
                  "rc_mlx5/mlx5_0:1");
    expect_device("# lane[0]: 4:posix/memory.0 md[0]\n"
                  "# lane[1]: 5:cuda_ipc/cuda.0 md[1]\n"
                  "# lane[2]: 1:tcp/eth0.0 md[2]\n",
                  "posix/memory,cuda_ipc/cuda");
}

TEST(test_rdma_writes)
{
    expect("#   lane[0]:  2:rc_mlx5/mlx5_0:1.0 md[1] -> md[1]/ib/sysdev[0] rma "
           "am\n"
           "#    put[0]: 0..<short>..220..<bcopy>..8192..<zcopy>..(inf)\n",
           "rc_mlx5/mlx5_0:1", true);
}

TEST(test_what_is_not_understood_writes_nothing)
{
    expect("", "", false);
    expect("put[3]: 0\nlane[99999]: 0:x/y.0\nlane[1\nput[\n", "", false);
    expect("#  lane[0]: 0:a-name-that-is-much-longer-than-what-there-is-room-"
           "for-in-a-result.0\n",
           "a-name-that-is-much-longer-than-what-there-is-room-for-in-a-res",
           false);
}
