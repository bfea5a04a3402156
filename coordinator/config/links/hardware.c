/*
 * Named hardware. See hardware.h. GB/s = 1e9 bytes/s, one way. A copy inside a
 * GPU reads and writes its memory, so it has half of its bandwidth. The times
 * to set up are those of the weight update demo.
 */
#include "coordinator/config/links/hardware.h"

#include <string.h>

#include "common/mem.h"

static const struct rf_hardware fabrics[] = {
    {"a100",
     "NVIDIA A100 80 GB: HBM2e, NVLink 3",
     {.copy_gbytes_per_s = 1000, .nvlink_gbytes_per_s = 300}},
    {"h100",
     "NVIDIA H100 SXM: HBM3, NVLink 4",
     {.copy_gbytes_per_s = 1675, .nvlink_gbytes_per_s = 450}},
    {"h200",
     "NVIDIA H200 SXM: HBM3e, NVLink 4",
     {.copy_gbytes_per_s = 2400, .nvlink_gbytes_per_s = 450}},
    {"b200",
     "NVIDIA B200: HBM3e, NVLink 5",
     {.copy_gbytes_per_s = 4000, .nvlink_gbytes_per_s = 900}},
    {"nvlink3", "NVLink 3", {.nvlink_gbytes_per_s = 300}},
    {"nvlink4", "NVLink 4", {.nvlink_gbytes_per_s = 450, .setup_ms = 10}},
    {"nvlink5", "NVLink 5", {.nvlink_gbytes_per_s = 900}},
    {"pcie4", "PCIe 4.0 x16", {.pcie_gbytes_per_s = 32}},
    {"pcie5", "PCIe 5.0 x16", {.pcie_gbytes_per_s = 64}},
    {"ib-hdr", "InfiniBand HDR, 200 Gbit/s", {.nic_gbytes_per_s = 25}},
    {"ib-ndr",
     "InfiniBand NDR, 400 Gbit/s",
     {.nic_gbytes_per_s = 50, .setup_ms = 50}},
    {"ib-xdr", "InfiniBand XDR, 800 Gbit/s", {.nic_gbytes_per_s = 100}},
    {"efa-p5",
     "EFA of p5.48xlarge, 32 times 100 Gbit/s",
     {.nic_gbytes_per_s = 12.5, .nics_per_node = 32}},
    {"ethernet-10g", "Ethernet, 10 Gbit/s", {.nic_gbytes_per_s = 1.25}},
    {"ethernet-100g",
     "Ethernet, 100 Gbit/s",
     {.nic_gbytes_per_s = 12.5, .setup_ms = 100}},
    {"nvme",
     "NVMe over PCIe 4.0",
     {.write_gbytes_per_s = 7, .read_gbytes_per_s = 7, .setup_ms = 100}},
    {"nfs",
     "Hard disk or NFS",
     {.write_gbytes_per_s = 0.2, .read_gbytes_per_s = 0.2, .setup_ms = 500}},
    {"demo-gather",
     "gather and broadcast at 66.7 GB/s, InfiniBand HDR between",
     {.copy_gbytes_per_s = 200.0 / 3, .nic_gbytes_per_s = 25}},
    {"ipc", "CUDA IPC handle", {.setup_ms = 1}},
};

const struct rf_hardware *rf_hardware_find(const char *name)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(fabrics); i++) {
        if (strcmp(fabrics[i].name, name) == 0) {
            return &fabrics[i];
        }
    }
    return NULL;
}

struct rf_hint rf_hardware_did_you_mean(const char *name)
{
    const char *names[RF_ARRAY_SIZE(fabrics) + 1] = {NULL};
    for (size_t i = 0; i < RF_ARRAY_SIZE(fabrics); i++) {
        names[i] = fabrics[i].name;
    }
    return rf_did_you_mean(name, names);
}
