#!/bin/bash
# What `check` says of GPUs, over the fakes: who else uses them, errors, clocks,
# MIG, and of drivers.
# limit: 120
# shellcheck source=../lib/fakes.sh
. "$(dirname "$0")/../lib/fakes.sh"

test_healthy_devices_give_no_warning() {
    cluster
    coord_exits 0 check cluster.json
    expect_no_text out '^[EW] '
}

test_devices_that_others_use_are_a_warning() {
    cluster '.launch.env.FAKE_NVML_FOREIGN = "1000000000" |
        .scenarios[0].method = ["nccl", "ipc"]'
    coord_exits 0 check cluster.json
    expect_text out '^W s-method=nccl, s-method=ipc: GPUs 0, 1, 2, 3, 4, 5 of localhost: used by other processes \(6 processes, 6\.00 GB\)'
    cluster '.launch.env.FAKE_NVML_FOREIGN = "1000000000" |
        .scenarios[0].method = "host"'
    run_coord check cluster.json
    expect_no_text out 'used by other processes'
}

test_errors_and_low_clocks_are_warnings() {
    cluster '.nodes[0].slots = 4 |
        .launch.env += {FAKE_NVML_ECC: "2", FAKE_NVML_SLOWED: "193"} |
        .scenarios[0].infer.dp = 1'
    coord_exits 0 check cluster.json
    expect_text out '^W s: GPUs 0, 1, 2, 3 of localhost: 8 uncorrectable ECC errors'
    expect_text out '^W s: .*clocks are throttled \(thermal slowdown \(hardware\), power brake\)'
}

# Idling, capped power and clocks that somebody has set are normal.
test_usual_reasons_for_low_clocks_are_no_warning() {
    cluster '.launch.env.FAKE_NVML_SLOWED = "7"'
    coord_exits 0 check cluster.json
    expect_no_text out 'clocks'
}

test_devices_split_by_mig_are_an_error() {
    cluster '.launch.env.FAKE_NVML_MIG = "1"'
    coord_exits 4 check cluster.json
    expect_text out '^E s: .*GPU 0 is split by MIG.*use whole GPUs'
}

test_driver_that_tells_nothing_gives_no_warning() {
    cluster '.launch.env += {FAKE_NVML_FOREIGN: "1000000000",
        FAKE_NVML_PROCESSES: "0"}'
    coord_exits 0 check cluster.json
    expect_no_text out 'used by other processes'
}

# Limits and adapters are those of the process that looks for them.
test_facts_say_what_adapters_need() {
    (ulimit -l 64 && FAKE_CUDA_DMABUF=1 "$worker" --probe >probe.json) ||
        fail "probe failed"
    expect_json probe.json '.rdma.adapters >= 0 and
        (.gpus | length == 8 and all(.dmabuf and .processes == 0 and
            .ecc_errors == 0 and .slowed == null))'
    if ! grep -q '^CapEff:.*[4567cdef][0-9a-f]\{3\}$' /proc/self/status; then
        expect_json probe.json '.memlock_bytes == 65536'
    fi
}

run_tests
