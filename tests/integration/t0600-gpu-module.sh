#!/bin/bash
# The shipped object code of refit-cuda.so over the fakes of CUDA's runtime and
# NCCL: every strategy with every method, and what happens when calls fail. See
# t0601 for NVSHMEM.
# limit: 480
# shellcheck source=../lib/fakes.sh
. "$(dirname "$0")/../lib/fakes.sh"

test_every_strategy_runs_on_nccl() {
    verifies "$every_n" '.scenarios[0].strategy = '"$every"
    all_beside_yardsticks
}

# Packing leaves multiprocessors to NCCL, but not in a rank that has no message
# for anybody. Fills and verification are on the stream 0.
blocks_of_packing() { # SLOTS
    rm -f trace
    cluster ".nodes[0].slots = $1 | .launch.env.FAKE_CUDA_TRACE = \"$PWD/trace\" |
        .scenarios[0] += {mode: \"colocated\", train: {pp: $1},
            infer: {tp: $1, layout: \"vllm\"}, bucket_bytes: 1048576}"
    coord_exits 0 cluster.json
    awk '$2 == "launch" && $3 > 0 { if ($4 > most) most = $4 } END { print most }' \
        trace
}
test_packing_shares_the_device_with_messages_alone() {
    [ "$(blocks_of_packing 1)" -gt 1 ] || fail "one rank packs with one block"
    [ "$(blocks_of_packing 2)" = 1 ] || fail "two ranks leave NCCL no room"
}

# The runs of the small model go from arena to arena, in buckets of few waves and
# of many.
test_nccl_sends_long_runs_without_packing() {
    verifies 8 '.launch.env += {REFIT_DIRECT_BYTES: "512", REFIT_PACK_SMS: "2"} |
        .scenarios[0] += {bucket_bytes: [65536, 1048576],
        strategy: ["send_recv", "broadcast", "hierarchical", "gather_broadcast"]}'
}

test_a_network_load_runs_beside_nccl() {
    verifies 1 '.launch.env.REFIT_SHARE_GPU = "1" | .nodes = [
            {host: "a", slots: 2}, {host: "b", slots: 2},
            {host: "c", slots: 2}]
        | .scenarios[0] += {train: {tp: 2, nodes: ["a"]}, iterations: 5,
            infer: {tp: 2, dp: 2, layout: "vllm", nodes: ["b", "c"]},
            load: {network_gbytes_per_s: "max"}}'
    expect_json "$(result s)" '.summary.load | .load_slowdown.count == 5 and
        .alone_gbytes_per_s > 0.001'
}

# One rank of each side; a step copies 32 MiB.
test_a_load_copies_inside_the_device() {
    verifies 1 '.nodes[0].slots = 2 | .scenarios[0] += {train: {tp: 1},
        infer: {tp: 1, layout: "vllm"}, iterations: 5, warmup: 0,
        load: {memory_gbytes_per_s: 1}}'
    expect_json "$(result s)" '.summary.load.load_slowdown.count == 5 and
        ([.iterations[].loaded_ranks[1] | .load_alone_bytes + .load_bytes] |
            add >= 33554432 and all(. % 33554432 == 0))'
    run_fails 1 '.launch.env.FAKE_CUDA_FAIL = "cudaEventCreateWithFlags:1:1"
        | .scenarios[0].load = {memory_gbytes_per_s: "max"}' \
        'rank [2-5]: a load in device memory: cudaEventCreateWithFlags: '
}

test_registration_and_why_there_is_none_are_in_the_result() {
    cluster
    coord_exits 0 cluster.json
    expect_json "$(result s)" '.setup.registration == "buffers"'
    cluster '.launch.env.FAKE_NCCL_FAIL = "ncclCommRegister:3:5"'
    coord_exits 0 cluster.json -o refused
    expect_json "$(echo refused/*/s.json)" '.setup.registration |
        startswith("none: rank 0: ncclCommRegister: ")'
    expect_verified "$(echo refused/*/s.json)"
    cluster '.launch.env.FAKE_NCCL_FAIL = "ncclMemAlloc:1:1"'
    coord_exits 0 cluster.json -o plain
    expect_json "$(echo plain/*/s.json)" '.setup.registration | startswith(
        "buffers, but rank 0: cudaMalloc buffers: ncclMemAlloc: ")'
    expect_verified "$(echo plain/*/s.json)"
}

test_direct_bytes_that_are_no_number_are_refused() {
    run_fails 1 '.launch.env.REFIT_DIRECT_BYTES = "4 MiB"' \
        'REFIT_DIRECT_BYTES is "4 MiB", must be a number of bytes'
}

test_every_strategy_runs_on_ipc() {
    verifies "$every_n" '.scenarios[0].method = "ipc" |
        .scenarios[0].strategy = '"$every"
    all_beside_yardsticks
}

# With a fault where legacy handles would be opened: nobody opens one.
test_ipc_opens_descriptors_for_handles() {
    verifies 2 '.scenarios[0].method = "ipc" | .launch.env += {REFIT_IPC: "vmm",
            FAKE_CUDA_FAIL: "cudaIpcOpenMemHandle:1:201"} |
        .scenarios[0].strategy = ["broadcast", "hierarchical"]'
}

# All plain copies between ranks by copy engines, whatever their length, while
# each of the streams in turn (kernels, local copies, engines) is slow.
test_strategies_run_on_ipc_by_copy_engines() {
    local stream results
    for stream in 0 1 2; do
        cluster '.scenarios[0] += {method: "ipc", iterations: 1,
                strategy: ["broadcast", "hierarchical"]} |
            .launch.env += {REFIT_IPC_COPY: "engine",
                FAKE_CUDA_SLOW: "'"$stream"':2000"}'
        coord_exits 0 cluster.json
    done
    all_verified 6
    results=(results/*/s-strategy=broadcast.json)
    expect_json "${results[0]}" \
        '.setup.copies | length == 6 and all(.rule == "engine" and
        .engine_from_bytes == 0) and any(.engine_bytes > 0)'
}

# The first batch is the question whether the driver takes any.
test_ipc_without_copy_engines_uses_kernels_alone() {
    verifies 1 '.scenarios[0].method = "ipc" | .launch.env += {
        REFIT_IPC_COPY: "kernel", FAKE_CUDA_FAIL: "cudaMemcpyBatchAsync:1:1"}'
    expect_json "$(result s)" '.setup.copies | all(.rule == "kernel" and
        .engine_from_bytes == null and .engine_bytes == 0) and
        any(.kernel_bytes > 0)'
}

test_ipc_copies_one_by_one_where_the_driver_has_no_batches() {
    verifies 1 '.scenarios[0].method = "ipc" | .launch.env += {
        REFIT_IPC_COPY: "engine", FAKE_CUDA_DRIVER: "12070",
        FAKE_CUDA_RUNTIME: "12090"}'
    expect_json "$(result s)" '.setup.copies | any(.engine_bytes > 0)'
}

# One rank measures for all; what is shorter than what it found goes by kernel,
# and no byte goes both ways.
test_ipc_measures_which_way_to_copy_and_records_it() {
    verifies 1 '.model.megatron += {hidden_size: 256, ffn_hidden_size: 1024,
            vocab_size: 4096} | .scenarios[0].method = "ipc"'
    expect_json "$(result s)" '.setup.copies as $copies | $copies |
        length == 6 and all(.rule == "measured" and
            .engine_from_bytes == $copies[0].engine_from_bytes and
            (.engine_from_bytes != null or .engine_bytes == 0))'
    expect_json "$(result s)" '(.setup.copies |
        map(.engine_bytes + .kernel_bytes) | add) ==
        ([.iterations[0].ranks[].sent_bytes] | add)'
}

# The driver is asked once, by the refit: the second call is the first batch.
test_yardstick_of_ipc_copies_by_the_ways_of_the_refit() {
    run_fails 1 '.scenarios[0].method = "ipc" | .launch.env += {
        REFIT_IPC_COPY: "engine", FAKE_CUDA_FAIL: "cudaMemcpyBatchAsync:2:1"}' \
        'scenario s failed \(run '
}

test_unknown_way_to_copy_is_named() {
    run_fails 1 '.scenarios[0].method = "ipc" |
        .launch.env.REFIT_IPC_COPY = "both"' \
        'REFIT_IPC_COPY is "both", must be auto, engine or kernel'
}

test_ipc_by_descriptor_views_separate_processes_and_casts() {
    verifies 4 '.nodes[0].slots = 2 | .launch.env.REFIT_IPC = "vmm" |
        .scenarios = [
        {"name": "s-separate", "mode": "colocated",
         "colocated_processes": "separate",
         "train": {"tp": 2}, "infer": {"tp": 2, "layout": "vllm"},
         "method": "ipc", "warmup": 0, "iterations": 2},
        {"name": "s-view", "mode": "colocated",
         "colocated_processes": "separate", "train": {"tp": 2},
         "infer": {"tp": 2}, "method": "ipc", "warmup": 0, "iterations": 2},
        {"name": "s-cast", "mode": "colocated",
         "train": {"tp": 2, "dtype": "float32"},
         "infer": {"dp": 2, "dtype": "bfloat16", "layout": "hf"},
         "method": ["ipc", "nccl"], "warmup": 0, "iterations": 2}]'
    expect_json "$(result s-view)" '[.iterations[].ranks[].sent_bytes] |
        add == 0'
}

# The first handle that each rank asks for is refused: that arena goes by
# descriptor, the other ones stay as they are.
test_refused_handles_are_replaced_by_descriptors() {
    verifies 2 '.nodes[0].slots = 4 | .scenarios = [
        {"name": "s", "mode": "colocated", "train": {"tp": 2, "pp": 2},
         "infer": {"tp": 4, "layout": "vllm"}, "method": "ipc",
         "strategy": ["send_recv", "broadcast"], "warmup": 0,
         "iterations": 2}] |
        .launch.env.FAKE_CUDA_FAIL = "cudaIpcGetMemHandle:1:801"'
}

test_descriptors_that_cannot_be_used_explain_themselves() {
    run_fails 1 '.scenarios[0].method = "ipc" | .launch.env += {REFIT_IPC: "vmm",
        FAKE_CUDA_VMM: "0"}' \
        'device [0-9] cannot share memory by file descriptor'
    cluster '.scenarios[0].method = "ipc" | .launch.env += {REFIT_IPC: "vmm",
        FAKE_CUDA_FAIL: "cuMemImportFromShareableHandle:1:1"}'
    coord_exits 1 cluster.json -o import
    expect_text err 'mapping the device memory of rank [0-9], shared by file'
    expect_text err 'cuMemImportFromShareableHandle: CUDA_ERROR_INVALID_VALUE'
    cluster '.scenarios[0].method = "ipc" | .launch.env.REFIT_IPC = "both"'
    coord_exits 1 cluster.json -o unknown
    expect_text err 'REFIT_IPC is "both", must be auto, legacy or vmm'
}

test_colocated_meshes_and_casts() {
    verifies 7 '.nodes[0].slots = 4 | .scenarios = [
        {"name": "s-colocated", "mode": "colocated",
         "train": {"tp": 2, "pp": 2}, "infer": {"tp": 4, "layout": "vllm"},
         "method": ["nccl", "ipc"], "warmup": 0, "iterations": 2},
        {"name": "s-same", "mode": "colocated", "train": {"tp": 2, "dp": 2},
         "infer": {"tp": 2, "dp": 2}, "method": "ipc", "iterations": 2},
        {"name": "s-cast", "mode": "colocated",
         "train": {"tp": 4, "dtype": "float32"},
         "infer": {"tp": 2, "dp": 2, "dtype": "bfloat16", "layout": "hf"},
         "method": ["nccl", "ipc"], "cast": ["source", "destination"],
         "warmup": 0, "iterations": 2}]'
}

test_flipped_byte_on_the_device_is_found() {
    cluster
    REFIT_TEST_FLIP=3:1 coord_exits 3 cluster.json
    expect_json "$(result s)" '.status == "mismatch"'
    expect_json "$(result s)" '.verification.mismatched_bytes == 1'
}

test_out_of_device_memory_is_named() {
    cluster '.launch.env.FAKE_CUDA_MEMORY = "100000"'
    coord_exits 1 cluster.json
    expect_json "$(result s)" '.status == "failed"'
    expect_text err 'device memory: .* wanted, .* free'
}

test_asynchronous_nccl_error_ends_the_scenario() {
    cluster '.launch.env.FAKE_NCCL_ASYNC = "2:4:6"'
    coord_exits 1 cluster.json
    expect_json "$(result s)" '.status == "failed"'
    expect_text err 'rank 2'
    expect_text err 'remote process exited'
}

# The first group is the exchange that makes connections, the next one moves
# weights.
test_first_exchange_that_nccl_gives_up_names_its_ranks() {
    cluster '.launch.env += {FAKE_NCCL_HANG: "1:1", FAKE_NCCL_STALL_S: "2"} |
        .scenarios += [.scenarios[0] + {name: "s-next", method: "ipc"}]'
    coord_exits 1 cluster.json
    expect_json "$(result s)" '.status == "failed" and
        (.errors[0] | .host == "localhost" and .phase == "prepare" and
            (.text | test("method nccl: first exchange with rank .*1")))'
    expect_verified "$(result s-next)"
}

# Rank 1's group hangs, so the ranks that it exchanges with do: those are named,
# with whom they wait for.
test_stuck_collective_names_its_ranks() {
    cluster '.launch.env.FAKE_NCCL_HANG = "1:2" |
        .scenarios = [.scenarios[0] + {timeout_s: 3},
            .scenarios[0] + {name: "s-next", method: "ipc"}]'
    coord_exits 1 cluster.json
    expect_verified "$(result s-next)"
    expect_json "$(result s)" '.errors[0] | .host == "localhost" and
        (.phase | startswith("running iteration 1 of ")) and
        (.text | test("no answer from ranks [0-9, -]+ of localhost"))'
    expect_json "$(result s)" '.errors | any(.rank == 1 and
        .host == "localhost" and
        (.phase | startswith("running iteration 1 of ")) and
        (.stderr | any(test("stopped in step 1 of [0-9]+, an exchange with"))))'
    expect_text err 'no answer from ranks [0-9, -]+ of localhost'
    expect_no_text err 'deregisters what is in use'
}

# An abort frees memory, which waits for kernels of other communicators: those of
# the yardstick, and across nodes the second one. Both nodes have a stuck pair.
says_where_it_is_stuck() { # and no rank has to be ended
    expect_json "$(result s)" '.status == "failed" and (.errors |
        any(.stderr | any(test("stopped in step [0-9]+ of [0-9]+, an exchange"))))'
    expect_no_text err 'could not stop its transfers'
}
test_old_nccl_stuck_beside_its_yardstick_says_where() {
    cluster '.launch.env += {FAKE_NCCL_HANG: "1:2", NCCL_FAKE_VERSION: "22105"} |
        .scenarios[0].timeout_s = 3'
    coord_exits 1 cluster.json
    says_where_it_is_stuck
}
test_two_stuck_communicators_are_aborted_together() {
    cluster "$two_nodes_cluster | .launch.env.FAKE_NCCL_HANG = \"1:2\" |
        .scenarios[0] += {timeout_s: 3, strategy: \"send_recv\"}"
    two_nodes A=1
    expect_exit 1
    says_where_it_is_stuck
}

test_stuck_rank_of_ipc_is_named_by_the_others() {
    cluster '.scenarios[0] += {method: "ipc", timeout_s: 3}'
    REFIT_TEST_STALL=1:1 coord_exits 1 cluster.json
    expect_json "$(result s)" '.errors | any(.rank == 0 and (.stderr |
        any(test("stopped after round 1 of 1, waiting for rank 1$"))))'
}

# Its streams never come to the end: the rank leaves the device as it is.
test_stuck_device_does_not_stop_a_rank_of_ipc_from_ending() {
    cluster '.scenarios[0] += {method: "ipc", timeout_s: 3} |
        .launch.env += {REFIT_IPC_COPY: "kernel", FAKE_CUDA_SLOW: "0:90000000"}'
    coord_exits 1 cluster.json
    expect_text err 'warning: stopped after round 1 of [0-9]+, waiting for '
    expect_no_text err 'could not stop its transfers'
}

test_failing_calls_are_reported_by_name() {
    run_fails 1 '.launch.env.FAKE_CUDA_FAIL = "cudaLaunchKernel:3:700"' \
        'cudaLaunchKernel: .*700'
}

test_failing_send_inside_a_group_ends_the_scenario() {
    cluster '.launch.env.FAKE_NCCL_FAIL = "ncclSend:2:5"'
    coord_exits 1 cluster.json
    expect_json "$(result s)" '.status == "failed"'
    expect_text err 'Send.*invalid usage'
}

test_probe_without_a_driver_says_so() {
    FAKE_CUDA_DEVICES=0 "$worker" --probe >probe.json || fail "probe failed"
    for method in nccl ipc nvshmem; do
        expect_json probe.json ".methods.$method ==
            \"no NVIDIA driver (libcuda.so.1 not found)\""
    done
}

test_driver_too_old_for_the_toolkit_is_named_with_both_versions() {
    run_fails 4 '.launch.env += {FAKE_CUDA_DRIVER: "12020",
        FAKE_NVML_DRIVER: "535.129.03"}' \
        'localhost: driver 535\.129\.03 supports CUDA 12\.2; '
    expect_text err 'built with CUDA 13\.0, which needs driver 580 or later'
    expect_text err 'build the module with a CUDA 12 toolkit'
    cluster '.launch.env += {FAKE_CUDA_DRIVER: "11080",
        FAKE_CUDA_RUNTIME: "12090", FAKE_NVML_DRIVER: "520.61.05"}'
    coord_exits 4 cluster.json -o older
    expect_text err 'CUDA 12\.9, which needs driver 525 or later: update it(;|$)'
}

# Whatever driver of the same major version: also where the module asks it for
# functions.
test_driver_older_than_the_toolkit_of_its_major_version_works() {
    verifies 2 '.launch.env += {FAKE_CUDA_DRIVER: "12000",
            FAKE_CUDA_RUNTIME: "12090", FAKE_NVML_DRIVER: "525.60.13",
            REFIT_IPC: "vmm"} | .scenarios[0].method = ["nccl", "ipc"]'
}

test_missing_driver_is_refused_with_the_method() {
    run_fails 4 '.launch.env.FAKE_CUDA_DEVICES = "0"' 'no NVIDIA driver'
}

test_device_memory_is_the_process_s_own() {
    cluster '.launch.env += {FAKE_NVML_FOREIGN: "1000000000",
        FAKE_NVML_NVLINK: "1"}'
    coord_exits 0 cluster.json
    expect_json "$(result s)" '.memory | all(
        .device_peak_bytes == .device.process_bytes and
        .stages.refit_bytes == .device.process_bytes and
        .stages.before_bytes < .stages.prepared_bytes and
        .device_peak_bytes >= .device.arena_bytes + 300 * 1048576 and
        .device.arena_bytes >= .predicted_device_bytes and
        .device.foreign_bytes == 1000000000 and
        .device.nvlink_sent_bytes == 1000 * 1024 and
        .device.nvlink_received_bytes == 3000 * 1024)'
    expect_json "$(result s)" '.bound.resource | test("GPU")'
}

# Four buffers of a bucket; with the yardstick eight.
test_memory_of_the_yardstick_is_told_from_the_refit_s() {
    cluster '.scenarios[0] += {yardstick: true, name: "s-with"} |
        .scenarios += [.scenarios[0] + {yardstick: false, name: "s-without"}]'
    [ -n "${RF_TSAN-}" ] && return
    coord_exits 0 cluster.json
    expect_json "$(result s-with)" '.memory |
        all(.stages | .prepared_bytes > .opened_bytes + 16384)'
    expect_json "$(result s-without)" '.memory |
        all(.stages | .prepared_bytes == .opened_bytes)'
}

test_device_memory_without_process_figures_is_the_difference() {
    cluster '.launch.env += {FAKE_NVML_FOREIGN: "1000000000",
        FAKE_NVML_PROCESSES: "0"}'
    coord_exits 0 cluster.json
    expect_json "$(result s)" '.memory | all(
        .device_peak_bytes == .device.device_bytes and
        .device.process_bytes == 0 and
        .device_peak_bytes >= .device.arena_bytes + 300 * 1048576 and
        .device_peak_bytes < 1000000000)'
}

test_environment_names_devices_driver_and_library() {
    cluster
    coord_exits 0 cluster.json
    local file hash
    file=$(result s)
    hash=$(sha256sum "$fakes/libnccl.so.2" | cut -d' ' -f1)
    expect_json "$file" '.environment[0].gpus | length == 8 and
        all(.uuid | startswith("GPU-"))'
    expect_json "$file" '.environment[0].cuda.driver_version == "580.00.00"'
    expect_json "$file" ".environment[0].nccl.sha256 == \"$hash\""
    expect_json "$file" '.environment[0].env.NCCL_LAUNCH_ORDER_IMPLICIT == "1"'
}

test_mig_device_is_refused_before_anything_moves() {
    cluster '.launch.env.FAKE_NVML_MIG = "129"'
    coord_exits 4 cluster.json
    expect_json "$(result s)" '.iterations == []'
    expect_text err 'method nccl cannot be used on localhost: GPU 0 is split by MIG'
}

# Slots 0 to 5 have whole ones.
test_mig_device_that_no_slot_uses_does_not_matter() {
    verifies 1 '.launch.env.FAKE_NVML_MIG = "128"'
    expect_json "$(result s)" '.environment[0].gpus | map(has("why")) ==
        [false, false, false, false, false, false, false, true]'
}

test_busy_device_is_named() {
    run_fails 1 '.launch.env.FAKE_CUDA_FAIL = "cudaSetDevice:1:46"' \
        'GPU [0-9] is busy: another process has it in exclusive'
}

test_too_few_devices_are_refused() {
    run_fails 4 '.launch.env.FAKE_CUDA_DEVICES = "2"' \
        'has 2 GPUs for 6 slots; each needs one'
}

test_handle_that_does_not_open_explains_itself() {
    run_fails 1 '.scenarios[0].method = "ipc" |
        .launch.env.FAKE_CUDA_FAIL = "cudaIpcOpenMemHandle:1:201"' \
        'opening the device memory of rank .* PID namespace'
}

# The next scenario runs after one whose rank was killed in a collective.
test_killed_rank_ends_the_scenario_and_the_next_one_runs() {
    cluster '.scenarios = [.scenarios[0] + {name: "s-nccl", iterations: 3},
        .scenarios[0] + {name: "s-ipc", method: "ipc", iterations: 3}]'
    local started=$SECONDS
    REFIT_TEST_EXIT=1:1 coord_exits 1 cluster.json
    [ $((SECONDS - started)) -le 60 ] || fail "took $((SECONDS - started)) s"
    expect_json "$(result s-nccl)" '.status == "failed"'
    expect_json "$(result s-nccl)" '.errors[0] | .rank == 1'
    expect_json "$(result s-ipc)" '.errors[0] | .rank == 1'
    unset REFIT_TEST_EXIT
    coord_exits 0 cluster.json -o again
}

test_separate_processes_share_their_slot() {
    verifies 3 '.nodes[0].slots = 2 | .scenarios = [
        {"name": "s-separate", "mode": "colocated",
         "colocated_processes": "separate",
         "train": {"tp": 2}, "infer": {"tp": 2, "layout": "vllm"},
         "method": ["nccl", "ipc"], "warmup": 0, "iterations": 2},
        {"name": "s-view", "mode": "colocated",
         "colocated_processes": "separate", "train": {"tp": 2},
         "infer": {"tp": 2}, "method": "ipc", "warmup": 0, "iterations": 2}]'
    expect_json "$(result s-view)" '[.iterations[].ranks[].sent_bytes] |
        add == 0'
}

test_ranks_share_one_device_when_asked() {
    verifies 2 '.launch.env += {REFIT_SHARE_GPU: "1", FAKE_CUDA_DEVICES: "1"} |
        .scenarios[0].method = ["nccl", "ipc"]'
    expect_text err 'shares its GPU with another rank'
}

# One machine under two names, as on a test machine with a single GPU.
test_two_nodes_of_one_machine_share_devices_when_asked() {
    cluster "$two_nodes_cluster | .launch.env.REFIT_SHARE_GPU = \"1\""
    two_nodes CUDA_FAKE_NODE=1
    expect_exit 0
    all_verified 2
    expect_text err 'shares its GPU with another rank'
}

test_two_names_of_one_machine_are_refused() {
    cluster "$two_nodes_cluster"
    two_nodes CUDA_FAKE_NODE=1
    expect_exit 4
    expect_text err 'shares a GPU with [ab]:'
}

# bfloat16 arrives, then each shard becomes fp8 with block scales; both are
# compared. Sizes of 256 and 128: tp 2 cuts where blocks end.
quantized='.model.megatron += {hidden_size: 256, ffn_hidden_size: 512,
        num_attention_heads: 4, num_query_groups: 4} |
    .scenarios[0] += {infer: {tp: 2, dp: 2, layout: "vllm",
        quantize: true}}'

# Every rank has the device's own time, too, which lies within the host's and holds
# each phase, quantising included; in host memory there is none.
test_arrived_weights_are_quantized_to_fp8_and_timed() {
    verifies 6 "$quantized | .scenarios[0].method = [\"nccl\", \"ipc\",
        \"nvshmem\", \"host\", \"tcp\", \"shm\"]"
    expect_json_of_all '.verification.quantized_bytes > 0 and
        .scenario.quantize.format == "fp8_block128"' results/*/s*.json
    expect_json_of_all '[.iterations[].ranks[]] | length > 0 and
        all(.device_ms > 0 and .device_ms <= .ms and
            ([.pack_ms, .wire_ms, .unpack_ms] | max) <= .device_ms + 0.001)' \
        results/*/s-method={nccl,ipc,nvshmem}.json
    expect_json "$(result s-method=host)" '[.iterations[].ranks[] |
        has("device_ms")] | any | not'
}

# Values and scales travel instead.
test_senders_quantize_in_device_memory() {
    verifies 3 "$quantized | del(.scenarios[0].infer.quantize) |
        .model.megatron.hidden_size = 512 | .scenarios[0].train = {tp: 2} |
        .scenarios[0] += {quantize: {format: \"fp8_block128\", at: \"sender\"},
            method: [\"nccl\", \"ipc\", \"nvshmem\"]}"
    expect_json_of_all '.verification.quantized_bytes == null and
        .scenario.quantize.at == "sender" and
        ([.iterations[].ranks[] | select(.quantize_ms != null) |
            .quantize_ms <= .pack_ms] | length > 0 and all)' results/*/s*.json
}

test_quantizing_a_shard_cut_inside_a_block_is_refused() {
    run_fails 2 "$quantized | .scenarios[0].infer.tp = 4 |
        .scenarios[0].infer.dp = 1" \
        'quantize fp8_block128: rank [0-9] holds rows [0-9]+ to [0-9]+ of .*end at multiples of 128'
}

test_formats_that_devices_lack_are_refused_before_launch() {
    run_fails 2 "$quantized | del(.scenarios[0].infer.quantize) |
        .scenarios[0] += {quantize: \"mxfp8\", method: \"nccl\"}" \
        'quantize mxfp8: device kernels convert to fp8_block128 only'
}

test_what_devices_cannot_cast_is_refused_before_launch() {
    run_fails 2 '.scenarios[0] += {train: {tp: 2, dtype: "bfloat16"},
        infer: {tp: 2, dtype: "float8_e4m3fn"}}' \
        'from bfloat16 to float8_e4m3fn; .*infer.quantize'
    run_fails 2 '.scenarios[0] += {train: {tp: 2, dtype: "float32"},
        infer: {tp: 2, dtype: "float16"}}' \
        'cannot cast float32 to float16'
}

test_two_nodes_use_a_communicator_each_and_one_across() {
    cluster "$two_nodes_cluster"
    two_nodes A=1
    expect_exit 0
    all_verified 2
    all_beside_yardsticks
    [ -n "${RF_TSAN-}" ] ||
        expect_json results/*/s-strategy=send_recv.json '.bound.yardstick.nodes |
            all(.sent_gbytes_per_s > 0 and .received_gbytes_per_s > 0)'
}

test_two_nodes_send_long_runs_from_arena_to_arena() {
    cluster "$two_nodes_cluster | .launch.env.REFIT_DIRECT_BYTES = \"512\" |
        .scenarios[0].strategy += [\"hierarchical\", \"allgather\"]"
    two_nodes A=1
    expect_exit 0
    all_verified 4
}

test_other_nccl_on_another_node_is_refused() {
    cluster "$two_nodes_cluster"
    two_nodes NCCL_FAKE_VERSION=22703
    [ "$status" != 0 ] || fail "exit code 0 with two versions"
    expect_text err 'has NCCL 2.27.3, a has 2.28.9: they must be the same'
}

run_tests
