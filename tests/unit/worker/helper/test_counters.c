/* What is read of counters, in a tree that looks like a machine's. */

#include "tests/lib/fake_root.h"
#include "tests/unit/unit.h"
#include "worker/helper/counters.h"

static void free_network(struct rf_msg_network *network)
{
    rf_schema_free(&rf_msg_network_schema, network);
}
AUTO_STRUCT(rf_msg_network, free_network)

static char eth0[] = "eth0", ib1[] = "mlx5_1/1", rdma0[] = "mlx5_0/1",
            kind[] = "";
static const struct rf_msg_interface interfaces[] = {{eth0, kind, 1000, rdma0},
                                                     {ib1, kind, 1000, ib1}};

/* Values of the counters: each is `n` times another small number. */
static void count(int n)
{
    fake_root_run(
        "printf 'Inter-|   Receive |  Transmit\\n face |bytes    packets\\n"
        "    lo: 7 1 0 0 0 0 0 0 %d 1 0 0 0 0 0 0\\n"
        "  eth0:%d 9 %d %d 9 9 9 9 %d 9 %d %d 9 9 9 9\\n' >proc/net/dev; "
        "printf 'Ip: Forwarding OutSegs\\nIp: 1 5\\nTcp: RtoMin MaxConn "
        "OutSegs RetransSegs InErrs\\nTcp: 200 -1 %d %d 0\\n' >proc/net/snmp; "
        "for d in 0 1; do echo $((%d * (d + 1))) "
        ">sys/class/infiniband/mlx5_$d/ports/1/counters/port_xmit_data; echo "
        "%d >sys/class/infiniband/mlx5_$d/ports/1/counters/port_rcv_data; done",
        11 * n, 1000 * n, n, n, 2000 * n, n, n, 500 * n, 3 * n, 25 * n, 50 * n);
}

static void setup(void)
{
    fake_root_make();
    fake_root_run(
        "mkdir -p proc/net sys/class/infiniband/mlx5_0/ports/1/counters "
        "sys/class/infiniband/mlx5_1/ports/1/counters");
}

static void read_all(struct rf_msg_network *out)
{
    rf_counters_read(fake_root, interfaces, RF_ARRAY_SIZE(interfaces), out);
}

FIXTURE(setup, fake_root_remove)

TEST(test_counters_of_an_interval_are_differences)
{
    AUTO(rf_msg_network) before, now;
    json_auto_t *found, *wanted;
    count(1);
    read_all(&before);
    count(4);
    read_all(&now);
    rf_counters_since(&before, &now);
    found = rf_schema_encode(&rf_msg_network_schema, &now);
    wanted = json_pack(
        "{s:i, s:i, s:i, s:[{s:s, s:i, s:i, s:i, s:i, s:i}, {s:s, s:i, s:i}]}",
        "loopback_bytes", 33, "segments", 1500, "retransmits", 9, "interfaces",
        "name", "eth0", "sent_bytes", 6000, "received_bytes", 3000,
        "rdma_sent_bytes", 300, "rdma_received_bytes", 600, "dropped", 12,
        "name", "mlx5_1/1", "rdma_sent_bytes", 600, "rdma_received_bytes", 600);
    AUTO_FREE char *shown = json_dumps(found, 0);
    ck_assert_msg(json_equal(found, wanted), "%s", shown);
}

/* Names in /proc/net/dev are not always UTF-8, those of `interfaces` are. */
TEST(test_counters_are_found_by_clean_names)
{
    AUTO(rf_msg_network) now;
    char name[] = "eth?";
    const struct rf_msg_interface odd = {name, kind, 1000, NULL};
    fake_root_run("printf 'eth\\377: 5 1\\n' >proc/net/dev");
    rf_counters_read(fake_root, &odd, 1, &now);
    ck_assert_uint_eq(now.interfaces[0].received_bytes, 5);
}

TEST(test_counters_that_stay_count_nothing)
{
    AUTO(rf_msg_network) before, now;
    count(2);
    read_all(&before);
    read_all(&now);
    rf_counters_since(&before, &now);
    ck_assert_uint_eq(now.interfaces[0].sent_bytes, 0);
    ck_assert_uint_eq(now.interfaces[0].rdma_sent_bytes, 0);
    ck_assert_uint_eq(now.interfaces[0].dropped, 0);
}

static void expect_unknown(const struct rf_msg_counted *counted)
{
    ck_assert_uint_eq(counted->sent_bytes, RF_ABSENT_U64);
    ck_assert_uint_eq(counted->received_bytes, RF_ABSENT_U64);
    ck_assert_uint_eq(counted->rdma_sent_bytes, RF_ABSENT_U64);
    ck_assert_uint_eq(counted->rdma_received_bytes, RF_ABSENT_U64);
}

/* A driver that was loaded again. */
TEST(test_counters_that_were_reset_are_unknown)
{
    AUTO(rf_msg_network) before, now;
    count(2);
    read_all(&before);
    count(1);
    read_all(&now);
    rf_counters_since(&before, &now);
    ck_assert_uint_eq(now.n_interfaces, 2);
    expect_unknown(&now.interfaces[0]);
    expect_unknown(&now.interfaces[1]);
    ck_assert_uint_eq(now.interfaces[0].dropped, RF_ABSENT_U64);
    ck_assert_uint_eq(now.loopback_bytes, RF_ABSENT_U64);
    ck_assert_uint_eq(now.retransmits, RF_ABSENT_U64);
}

/* Adapters without the extended counters stop at the last number. */
static void end_port(const char *counter)
{
    fake_root_run("echo 4294967295 "
                  ">sys/class/infiniband/mlx5_0/ports/1/counters/%s",
                  counter);
}

LOOP_TEST(test_counters_of_a_port_at_their_end_are_unknown, 2)
{
    AUTO(rf_msg_network) before, now;
    count(1);
    if (_i == 0) {
        end_port("port_xmit_data");
    }
    read_all(&before);
    count(2);
    end_port(_i == 0 ? "port_xmit_data" : "port_rcv_data");
    read_all(&now);
    rf_counters_since(&before, &now);
    expect_unknown(&now.interfaces[0]);
    ck_assert_uint_eq(now.interfaces[1].rdma_sent_bytes, 200);
}

TEST(test_counters_that_a_node_lacks_are_left_out)
{
    AUTO(rf_msg_network) before, now;
    count(1);
    fake_root_run("rm -r sys/class/infiniband/mlx5_1");
    read_all(&before);
    read_all(&now);
    rf_counters_since(&before, &now);
    ck_assert_uint_eq(now.n_interfaces, 1);
    ck_assert_str_eq(now.interfaces[0].name, eth0);
}

LOOP_TEST(test_counters_that_come_or_go_are_unknown, 2)
{
    AUTO(rf_msg_network) first, last;
    struct rf_msg_network *const now = _i == 0 ? &last : &first;
    count(1);
    read_all(&first);
    fake_root_run("rm proc/net/dev; rm -r sys/class/infiniband/mlx5_1");
    read_all(&last);
    rf_counters_since(_i == 0 ? &first : &last, now);
    ck_assert_uint_eq(now->n_interfaces, 2);
    expect_unknown(&now->interfaces[0]);
    expect_unknown(&now->interfaces[1]);
    ck_assert_uint_eq(now->loopback_bytes, RF_ABSENT_U64);
    ck_assert_uint_eq(now->segments, 0);
}

TEST(test_counters_of_a_machine_without_files_are_absent)
{
    AUTO(rf_msg_network) before, now;
    fake_root_run("rm -r proc sys");
    read_all(&before);
    read_all(&now);
    rf_counters_since(&before, &now);
    ck_assert_uint_eq(now.n_interfaces, 0);
    ck_assert_uint_eq(now.loopback_bytes, RF_ABSENT_U64);
    ck_assert_uint_eq(now.segments, RF_ABSENT_U64);
    ck_assert_uint_eq(now.retransmits, RF_ABSENT_U64);
}

/* Readings that were never taken: "verify" without "run". */
TEST(test_counters_since_nothing_are_absent)
{
    AUTO(rf_msg_network) now;
    struct rf_msg_network before;
    rf_schema_init(&rf_msg_network_schema, &before);
    count(1);
    read_all(&now);
    rf_counters_since(&before, &now);
    ck_assert_uint_eq(now.n_interfaces, 0);
    ck_assert_uint_eq(now.segments, RF_ABSENT_U64);
}
