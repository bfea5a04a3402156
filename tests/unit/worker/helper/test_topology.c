/* Places of NICs and GPUs in /sys of other machines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "tests/lib/fake_root.h"
#include "tests/unit/unit.h"
#include "worker/helper/topology.h"

static struct rf_msg_topology *found;

/* With GPUs at these addresses, as CUDA or NVML write them. */
static void find(const char *machine, const char *const *addresses, size_t n)
{
    struct rf_msg_gpu gpus[8] = {0};
    for (size_t i = 0; i < n; i++) {
        gpus[i].index = (uint32_t)i;
        gpus[i].pci_bus_id = (char *)(uintptr_t)addresses[i];
    }
    found = rf_topology_find(fake_root_machine(machine), gpus, n);
}

static void teardown(void)
{
    fake_root_remove();
    if (found != NULL) {
        rf_schema_free(&rf_msg_topology_schema, found);
        free(found);
    }
}

static const struct rf_msg_topology_nic *nic(const char *name)
{
    for (size_t i = 0; i < found->n_nics; i++) {
        if (strcmp(found->nics[i].name, name) == 0) {
            return &found->nics[i];
        }
    }
    ck_abort_msg("no NIC %s", name);
    return NULL;
}

/* "a b" */
static void assert_texts(const struct rf_texts *texts, const char *wanted)
{
    char shown[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < texts->n; i++) {
        used += (size_t)snprintf(shown + used, sizeof(shown) - used, "%s%s",
                                 i > 0 ? " " : "", texts->list[i]);
    }
    ck_assert_str_eq(shown, wanted);
}

#define ASSERT_NEAR(number, wanted)                                            \
    do {                                                                       \
        ck_assert_double_gt(number, (wanted)-1e-9);                            \
        ck_assert_double_lt(number, (wanted) + 1e-9);                          \
    } while (0)

FIXTURE(NULL, teardown)

static const char *const hgx[] = {
    "0000:AB:00.0", "0000:AB:01.0", "00000000:AB:02.0", "0000:ab:03.0",
    "0000:AB:04.0", "0000:AB:05.0", "0000:AB:06.0",     "0000:AB:07.0"};

TEST(test_each_gpu_of_a_dgx_is_nearest_to_its_own_nic)
{
    static const char *const nearest[] = {"mlx5_0", "mlx5_1", "mlx5_2",
                                          "mlx5_3", "mlx5_4", "mlx5_5 mlx5_8",
                                          "mlx5_6", "mlx5_7"};
    find("dgx", hgx, RF_ARRAY_SIZE(hgx));
    ck_assert_uint_eq(found->n_gpus, 8);
    for (uint32_t i = 0; i < 8; i++) {
        const struct rf_msg_topology_gpu *gpu = &found->gpus[i];
        ck_assert_uint_eq(gpu->index, i);
        ck_assert_uint_eq(gpu->pci.numa_node, i / 4);
        ASSERT_NEAR(gpu->pci.gtransfers_per_s, 2.5);
        ck_assert_uint_eq(gpu->pci.lanes, 16);
        assert_texts(&gpu->nearest_nics, nearest[i]);
    }
    ck_assert_str_eq(
        found->gpus[1].pci.path,
        "pci0000:38/0000:38:01.0/0000:38:02.0/0000:38:04.0/0000:ab:01.0");
}

TEST(test_nics_of_a_dgx_are_listed_once_with_all_their_names)
{
    find("dgx", hgx, 0);
    ck_assert_uint_eq(found->n_gpus, 0);
    ck_assert_uint_eq(found->n_nics, 11);
    assert_texts(&nic("mlx5_0")->interfaces, "ibs0");
    assert_texts(&nic("mlx5_1")->interfaces, "");
    assert_texts(&nic("eno1")->interfaces, "eno1");
    ck_assert_str_eq(
        nic("mlx5_7")->pci.path,
        "pci0000:b9/0000:b9:01.0/0000:b9:02.0/0000:b9:03.0/0000:17:00.0");
    ASSERT_NEAR(nic("mlx5_7")->pci.gtransfers_per_s, 32);
    ck_assert_uint_eq(nic("mlx5_9")->pci.numa_node, 1);
    ck_assert_uint_eq(nic("mlx5_9")->pci.lanes, 8);
    ck_assert_int_eq(nic("mlx5_7")->speed_mbit, 400000);
    ck_assert_int_eq(nic("mlx5_8")->speed_mbit, 200000);
    ck_assert_int_eq(nic("mlx5_9")->speed_mbit, RF_ABSENT_I64);
    ck_assert_int_eq(nic("eno1")->speed_mbit, 1000);
    ck_assert_uint_eq(nic("eno1")->pci.lanes, RF_ABSENT_U32);
}

TEST(test_nics_of_a_laptop_are_as_near_as_each_other)
{
    static const char *const address = "0000:01:00.0";
    find("laptop", &address, 1);
    ck_assert_uint_eq(found->n_nics, 2);
    ck_assert_uint_eq(found->gpus[0].pci.numa_node, RF_ABSENT_U32);
    ck_assert_int_eq(nic("wlan0")->speed_mbit, RF_ABSENT_I64);
    assert_texts(&found->gpus[0].nearest_nics, "eth0 wlan0");
}

/* What the machine does not say is unknown, what it does not have left out. */
TEST(test_devices_of_a_virtual_machine_have_no_node)
{
    static const char *const addresses[] = {"0000:00:05.0", "0000:00:06.0",
                                            "?"};
    find("vm", addresses, RF_ARRAY_SIZE(addresses));
    ck_assert_uint_eq(found->n_numa_nodes, 0);
    ck_assert_uint_eq(found->n_nics, 1);
    ck_assert_str_eq(found->nics[0].pci.path, "pci0000:00/0000:00:03.0");
    ck_assert_uint_eq(found->nics[0].pci.numa_node, RF_ABSENT_U32);
    ck_assert_uint_eq(found->n_gpus, 1);
    ck_assert(isnan(found->gpus[0].pci.gtransfers_per_s));
    ck_assert_uint_eq(found->gpus[0].pci.lanes, RF_ABSENT_U32);
    assert_texts(&found->gpus[0].nearest_nics, "eth0");
}

/* All of it fits into HELLO. */
TEST(test_a_topology_can_be_sent)
{
    json_t *object;
    struct rf_msg_topology copy;
    struct rf_err err = {.text = ""};
    find("dgx", hgx, RF_ARRAY_SIZE(hgx));
    object = rf_schema_encode(&rf_msg_topology_schema, found);
    assert_ok(
        rf_schema_decode(&rf_msg_topology_schema, object, "HELLO", &copy, &err),
        err);
    ck_assert_uint_eq(copy.n_gpus, 8);
    rf_schema_free(&rf_msg_topology_schema, &copy);
    json_decref(object);
}
