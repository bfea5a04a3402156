#!/bin/bash
# The shipped object code of refit-cuda.so over the fake of NVSHMEM.
# limit: 240
# shellcheck source=../lib/fakes.sh
. "$(dirname "$0")/../lib/fakes.sh"

test_every_strategy_runs_on_nvshmem() {
    verifies "$every_n" '.scenarios[0].method = "nvshmem" |
        .scenarios[0].strategy = '"$every"
    expect_json_of_all '[.iterations[].ranks[]] | length > 0 and
        all(.device_ms > 0 and .device_ms <= .ms)' results/*/s*.json
    all_beside_yardsticks
}

# The runs of the small model are put from where they are, in buckets of few
# waves and of many, with each of the streams slow (puts, packing, unpacking).
long_runs_are_put() { # STREAM STRATEGY...
    verifies 4 '.launch.env += {REFIT_DIRECT_BYTES: "512",
            FAKE_CUDA_SLOW: "'"$1"':300", FAKE_CUDA_TRACE: "'"$PWD/trace"'"} |
        .scenarios[0] += {method: "nvshmem", bucket_bytes: [16384, 1048576],
        strategy: ["'"$2"'", "'"$3"'"]}'
    expect_text trace ' put_registered [0-9]+ [0-9]+$'
    expect_text trace ' put [0-9]+ [0-9]+$'
    expect_json_of_all '.setup.registration == "arenas"' results/*/s*.json
}
test_long_runs_are_put_without_packing_when_packing_is_slow() {
    long_runs_are_put 1 send_recv broadcast
}
test_long_runs_are_put_without_packing_when_puts_are_slow() {
    long_runs_are_put 0 broadcast hierarchical
}
test_long_runs_are_put_without_packing_when_unpacking_is_slow() {
    long_runs_are_put 2 hierarchical send_recv
}

# Of each opening's streams (puts, packing, unpacking) puts have the device's
# highest priority, so that the library's small kernels need not wait for packing.
test_puts_have_priority_over_packing() {
    cluster '.scenarios[0].method = "nvshmem" |
        .launch.env.FAKE_CUDA_TRACE = "'"$PWD/trace"'"'
    coord_exits 0 cluster.json
    awk '$2 == "stream" { n++; bad += ($3 % 3 == 1) != ($4 < 0) }
        END { exit bad || n == 0 || n % 3 }' trace ||
        fail "priorities: $(grep ' stream ' trace)"
}

# The third arena that anybody registers is refused, on whichever rank: then all
# ranks pack.
test_all_is_packed_where_arenas_cannot_be_registered() {
    verifies 2 '.launch.env += {REFIT_DIRECT_BYTES: "512",
            FAKE_NVSHMEM_FAIL: "nvshmemx_buffer_register:1:3",
            FAKE_CUDA_TRACE: "'"$PWD/trace"'"} |
        .scenarios[0] += {method: "nvshmem", strategy: ["send_recv",
            "broadcast"]}'
    expect_no_text trace put_registered
    expect_json_of_all '.setup.registration ==
        "none: rank 0: nvshmemx_buffer_register: error 3"' results/*/s*.json
}

test_nvshmem_runs_colocated_separate_and_with_casts() {
    verifies 4 '.nodes[0].slots = 4 | .scenarios = [
        {"name": "s-colocated", "mode": "colocated",
         "train": {"tp": 2, "pp": 2}, "infer": {"tp": 4, "layout": "vllm"},
         "method": "nvshmem", "warmup": 0, "iterations": 2},
        {"name": "s-separate", "mode": "colocated",
         "colocated_processes": "separate", "train": {"tp": 4},
         "infer": {"tp": 2, "dp": 2, "layout": "vllm"}, "method": "nvshmem",
         "warmup": 0, "iterations": 2},
        {"name": "s-cast", "mode": "colocated",
         "train": {"tp": 4, "dtype": "float32"},
         "infer": {"tp": 2, "dp": 2, "dtype": "bfloat16", "layout": "hf"},
         "method": "nvshmem", "cast": ["source", "destination"],
         "warmup": 0, "iterations": 2}]'
}

test_missing_nvshmem_is_refused_by_name() {
    mkdir build
    cp "$fakes"/* build
    rm build/libnvshmem_host.so.3
    cluster ".scenarios[0].method = \"nvshmem\" |
        .launch.env.LD_LIBRARY_PATH = \"$PWD/build\""
    coord=$PWD/build/refit-coord run_coord cluster.json
    expect_exit 4
    expect_text err 'method nvshmem cannot be used on localhost: libnvshmem_host'
}

test_small_symmetric_heap_is_named() {
    run_fails 1 '.scenarios[0].method = "nvshmem" |
        .launch.env.NVSHMEM_SYMMETRIC_SIZE = "256"' \
        'symmetric heap cannot hold [0-9]+ bytes; raise NVSHMEM'
}

# Two slots each way, of the refit and of its yardstick.
test_symmetric_heap_of_eight_buckets_is_enough() {
    verifies 1 '.scenarios[0] += {method: "nvshmem", bucket_bytes: 16384} |
        .launch.env.NVSHMEM_SYMMETRIC_SIZE = "139264"'
    cluster '.scenarios[0] += {method: "nvshmem", bucket_bytes: 16384,
            yardstick: true} | .launch.env.NVSHMEM_SYMMETRIC_SIZE = "81920"'
    coord_exits 1 cluster.json -o small
    expect_text err 'for the yardstick.*symmetric heap cannot hold [0-9]+ bytes'
}

test_symmetric_heap_is_sized_for_the_buckets() {
    verifies 1 '.scenarios[0] += {method: "nvshmem", bucket_bytes: 268435456} |
        .launch.env.FAKE_CUDA_TRACE = "'"$PWD/trace"'"'
    awk '$2 == "heap" { n++; bad += $4 < 8 * 268435456 }
        END { exit bad || n == 0 }' trace || fail "$(grep ' heap ' trace)"
}

test_nvshmem_that_does_not_start_is_named() {
    run_fails 1 '.scenarios[0].method = "nvshmem" | .launch.env.FAKE_NVSHMEM_FAIL =
        "nvshmemx_hostlib_init_attr:1:7"' \
        'rank [0-9]: method nvshmem: NVSHMEM did not start'
}

# Steps are ordered by signals alone: with one of the streams of each rank slow
# (puts, packing, unpacking) a wait that is missing would show in the bytes.
steps_keep_their_order() { # STREAM
    verifies 3 '.scenarios[0] += {method: "nvshmem", bucket_bytes: 16384,
            strategy: ["send_recv", "broadcast", "gather_broadcast"]} |
        .launch.env += {FAKE_CUDA_SLOW: "'"$1"':1500",
            FAKE_NVSHMEM_FAIL: "nvshmemx_barrier_all_on_stream:1:7"}'
}
test_signals_order_steps_when_packing_is_slow() {
    steps_keep_their_order 1
}
test_signals_order_steps_when_puts_are_slow() {
    steps_keep_their_order 0
}
test_signals_order_steps_when_unpacking_is_slow() {
    steps_keep_their_order 2
}

# Without MPS the library cannot wait for signals there; barriers do instead.
test_ranks_of_one_device_use_barriers() {
    for stream in 0 1 2; do
        cluster '.launch.env += {REFIT_SHARE_GPU: "1", FAKE_CUDA_DEVICES: "1",
                REFIT_DIRECT_BYTES: (if '"$stream"' != 1 then "512" else "0" end),
                FAKE_CUDA_SLOW: "'"$stream"':1000"} |
            .scenarios[0] += {method: "nvshmem", bucket_bytes: 16384,
                strategy: ["send_recv", "broadcast"], iterations: 1}'
        FAKE_CUDA_DEVICES=1 coord_exits 0 cluster.json
    done
    all_verified 6
}

# The others wait for it inside the library's barrier, on the host.
test_rank_that_never_meets_the_others_of_its_device_is_named_by_them() {
    cluster '.launch.env += {REFIT_SHARE_GPU: "1", FAKE_CUDA_DEVICES: "1"} |
        .scenarios[0] += {method: "nvshmem", timeout_s: 3}'
    FAKE_CUDA_DEVICES=1 REFIT_TEST_STALL=1:1 coord_exits 1 cluster.json
    expect_text err 'localhost:0: warning: stopped in step 1 of [0-9]+, an exchange with rank '
    expect_no_text err 'localhost:[02-5]: error: the rank could not stop its transfers'
}

# The library ends the process on its own errors.
test_nvshmem_error_is_reported_with_the_last_words() {
    cluster '.scenarios[0].method = "nvshmem" | .launch.env.FAKE_NVSHMEM_FAIL =
        "nvshmemx_putmem_signal_on_stream:5:7"'
    coord_exits 1 cluster.json
    expect_json "$(result s)" '.errors[0] | (.rank | type == "number") and
        (.phase | startswith("run iteration 1 of ")) and
        (.stderr | any(test("nvshmemx_putmem_signal_on_stream: injected")))'
    expect_no_text err 'the rank could not stop its transfers'
}

test_stuck_nvshmem_wait_ends_at_its_deadline_and_says_where() {
    cluster '.launch.env.FAKE_NVSHMEM_HANG = "3:2" |
        .scenarios = [.scenarios[0] + {method: "nvshmem", timeout_s: 3},
            .scenarios[0] + {name: "s-next"}]'
    coord_exits 1 cluster.json
    expect_json "$(result s)" '.status == "failed"'
    expect_text err 'localhost:[0-9]: warning: stopped in step [0-9]+ of [0-9]+, an exchange with rank '
    expect_no_text err 'the rank could not stop its transfers'
    expect_verified "$(result s-next)"
}

test_nvshmem_puts_across_nodes() {
    cluster "$two_nodes_cluster | .scenarios[0].method = \"nvshmem\""
    two_nodes A=1
    expect_exit 0
    all_verified 2
}

run_tests
