/* Which interfaces and RDMA ports count, in trees that look like machines'. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/fake_root.h"
#include "tests/unit/unit.h"
#include "worker/helper/interfaces.h"

static struct rf_msg_hello hello;

static void setup(void)
{
    fake_root_make();
    fake_root_run(
        "mkdir -p proc/net sys/class/net sys/class/infiniband; printf "
        "'Inter-|   Receive |  Transmit\\n face |bytes    packets\\n' "
        ">proc/net/dev");
    rf_schema_init(&rf_msg_hello_schema, &hello);
}

static void teardown(void)
{
    rf_schema_free(&rf_msg_hello_schema, &hello);
    fake_root_remove();
}

/* An Ethernet interface that is up; `more` are commands in its folder. */
static void interface(const char *name, const char *speed, const char *more)
{
    fake_root_run(
        "printf '%%6s: 1 2\\n' %s >>proc/net/dev; mkdir sys/class/net/%s "
        "&& cd sys/class/net/%s && echo 1 >type && echo up >operstate && "
        "echo %s >speed && echo 0 >dev_port; %s",
        name, name, name, speed, more);
}

/* Port 1 of an adapter, whose interfaces are folders of its device. */
static void adapter(const char *name, const char *state, const char *interfaces)
{
    fake_root_run(
        "cd sys/class/infiniband && mkdir -p %s/ports/1/counters "
        "%s/device/net && echo '4: %s' >%s/ports/1/state && echo '400 "
        "Gb/sec (4X NDR)' >%s/ports/1/rate; cd %s/device/net && mkdir -p "
        "x %s",
        name, name, state, name, name, name, interfaces);
}

/* "NAME KIND SPEED RDMA;" for each that is found. */
static const char *found(void)
{
    static char out[600];
    rf_interfaces_find(fake_root, &hello);
    out[0] = '\0';
    for (size_t i = 0; i < hello.n_interfaces; i++) {
        const struct rf_msg_interface *of = &hello.interfaces[i];
        const size_t used = strlen(out);
        snprintf(out + used, sizeof(out) - used, "%s %s %lld %s;", of->name,
                 of->kind,
                 of->speed_mbit != RF_ABSENT_U64 ? (long long)of->speed_mbit
                                                 : -1,
                 of->rdma != NULL ? of->rdma : "-");
    }
    return out;
}

FIXTURE(setup, teardown)

TEST(test_interfaces_have_kind_and_speed)
{
    interface("lo", "-1", "echo 772 >type; echo unknown >operstate");
    interface("eth0", "400000", "mkdir device");
    interface("eth1", "-1", "mkdir device");
    interface("veth0", "10000", "true");
    interface("ib0", "400000", "mkdir device; echo 32 >type");
    ck_assert_str_eq(found(), "eth0 ethernet 400000 -;eth1 ethernet -1 -;"
                              "veth0 virtual 10000 -;ib0 infiniband 400000 -;");
}

TEST(test_interfaces_that_carry_nothing_of_their_own_do_not_count)
{
    interface("down", "1000", "mkdir device; echo down >operstate");
    interface("wg0", "-1", "echo 65534 >type; echo unknown >operstate");
    interface("ib0.8001", "400000",
              "mkdir device; echo 32 >type; echo ib0 >parent");
    ck_assert_str_eq(found(), "");
}

TEST(test_of_stacked_interfaces_the_lowest_count)
{
    interface("eth0", "1000", "mkdir device bonding_slave master upper_bond0");
    interface("veth1", "10000", "mkdir bonding_slave master upper_bond0");
    interface("bond0", "2000", "mkdir lower_eth0 lower_veth1 upper_bond0.7");
    interface("bond0.7", "2000", "mkdir lower_bond0");
    ck_assert_str_eq(found(), "eth0 ethernet 1000 -;veth1 virtual 10000 -;");
}

/* A machine that runs containers, some bridged, some routed. */
TEST(test_virtual_ports_of_a_bridge_do_not_count)
{
    interface("eth0", "1000", "mkdir device master");
    interface("br0", "1000", "mkdir lower_eth0 lower_veth1");
    interface("veth1", "10000", "mkdir master");
    interface("cali2", "10000", "true");
    ck_assert_str_eq(found(), "eth0 ethernet 1000 -;cali2 virtual 10000 -;");
}

/* As where sysfs is of another network namespace than the process. */
TEST(test_interfaces_unknown_to_sysfs_count)
{
    fake_root_run("printf '    lo: 1\\n  eth7: 1\\n' >>proc/net/dev");
    fake_root_run("mkdir -p sys/class/net/eth0/device");
    ck_assert_str_eq(found(), "eth7 virtual -1 -;");
}

/* The first port's interface, whichever comes first. */
LOOP_TEST(test_a_port_and_its_interface_are_one, 2)
{
    interface("eth0", "100000",
              _i == 0 ? "mkdir device" : "mkdir device; echo 1 >dev_port");
    interface("eth1", "100000",
              _i == 1 ? "mkdir device" : "mkdir device; echo 1 >dev_port");
    adapter("mlx5_0", "ACTIVE", "eth0 eth1");
    ck_assert_str_eq(found(), _i == 0 ? "eth0 ethernet 100000 mlx5_0/1;"
                                        "eth1 ethernet 100000 -;"
                                      : "eth0 ethernet 100000 -;"
                                        "eth1 ethernet 100000 mlx5_0/1;");
}

TEST(test_ports_without_an_interface_count_by_themselves)
{
    interface("eth0", "100000", "mkdir device master bonding_slave");
    adapter("mlx5_0", "DOWN", "");
    adapter("mlx5_1", "ACTIVE", "");
    adapter("mlx5_bond_0", "ACTIVE", "eth0");
    ck_assert_str_eq(found(), "eth0 ethernet 100000 -;mlx5_1/1 rdma 400000 "
                              "mlx5_1/1;mlx5_bond_0/1 rdma 400000 "
                              "mlx5_bond_0/1;");
}

/* The counters of InfiniBand's ports include IP's packets. */
TEST(test_a_bonded_port_of_infiniband_and_its_interface_are_one)
{
    interface("ib0", "400000",
              "mkdir device master bonding_slave upper_bond0; echo 32 >type");
    interface("bond0", "400000", "mkdir lower_ib0; echo 32 >type");
    adapter("mlx5_0", "ACTIVE", "ib0");
    ck_assert_str_eq(found(), "ib0 infiniband 400000 mlx5_0/1;");
}

/* Linux allows every byte but blanks, colons and slashes in them. */
TEST(test_names_that_are_not_utf8_are_cleaned)
{
    fake_root_run("printf 'eth\\377: 1 2\\n' >>proc/net/dev");
    interface("eth0", "100000", "mkdir device");
    adapter("mlx\377", "ACTIVE", "");
    ck_assert_str_eq(found(), "eth? virtual -1 -;eth0 ethernet 100000 -;"
                              "mlx?/1 rdma 400000 mlx?/1;");
}

TEST(test_interfaces_beyond_a_message_are_left_out)
{
    fake_root_run("seq -f '%%.0f: 1 2' %d >>proc/net/dev",
                  RF_MSG_INTERFACES_MAX + 1);
    adapter("mlx5_0", "ACTIVE", "");
    rf_interfaces_find(fake_root, &hello);
    ck_assert_uint_eq(hello.n_interfaces, RF_MSG_INTERFACES_MAX);
}

TEST(test_a_machine_without_files_has_none)
{
    fake_root_run("rm -r proc sys");
    ck_assert_str_eq(found(), "");
}
