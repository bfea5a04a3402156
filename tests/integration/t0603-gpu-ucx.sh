#!/bin/bash
# Method ucx in device memory: the shipped object code of refit-cuda.so and
# refit-ucx.so over the fake of CUDA's runtime and the real UCX, which a preload
# lets reach the fake's memory.
# limit: 360
# shellcheck source=../lib/fakes.sh
. "$(dirname "$0")/../lib/fakes.sh"

[ -e "$RF_BUILD_DIR/refit-ucx.so" ] || skip_all "refit-ucx.so is not built"
cuda_ucx=$work/cuda_ucx.so
"${CC:-cc}" -D_GNU_SOURCE ${UCX_HOME:+-isystem "$UCX_HOME/include"} \
    -shared -fPIC -o "$cuda_ucx" "$RF_TOP/tests/fake/cuda_ucx.c" -ldl ||
    skip_all "cannot build cuda_ucx.so"
# The address sanitizer wants to be the first library, or to be told.
base=$(jq --arg preload "$cuda_ucx" '
    .launch.env += {LD_PRELOAD: $preload, UCX_NET_DEVICES: "lo",
        ASAN_OPTIONS: "verify_asan_link_order=0"} |
    .scenarios[0] += {method: "ucx", memory: "cuda"}' <<<"$base")
test_every_strategy_runs_on_ucx_in_device_memory() {
    verifies "$every_n" ".scenarios[0].strategy = $every"
    expect_json_of_all '.scenario.method == "ucx-cuda" and
        (.setup.registration |
            test("^UCX [0-9.]+; [0-9]+ messages by posix/memory$")) and
        ([.iterations[].ranks[]] | length > 0 and all(.device_ms > 0 and
            .device_ms <= .ms and .wire_ms > 0 and .wire_ms <= .ms))' \
        results/*/s*.json
    all_beside_yardsticks
}

# The runs of the small model go from arena to arena, in buckets of few waves and
# of many, with each of the streams slow (packing, unpacking).
test_long_runs_go_without_packing_and_steps_keep_their_order() {
    local stream
    for stream in 0 1; do
        cluster '.launch.env += {REFIT_DIRECT_BYTES: "512",
                FAKE_CUDA_SLOW: "'"$stream"':300"} |
            .scenarios[0] += {bucket_bytes: [16384, 1048576],
                yardstick: false,
                infer: {dp: 2, layout: "vllm"},
                strategy: ["send_recv", "hierarchical"]}'
        coord_exits 0 cluster.json -o "slow-$stream"
        cluster '.launch.env += {REFIT_DIRECT_BYTES: "0",
                FAKE_CUDA_SLOW: "'"$stream"':1500"} |
            .scenarios[0] += {bucket_bytes: 16384, yardstick: false,
                strategy: "gather_broadcast"}'
        coord_exits 0 cluster.json -o "packed-$stream"
    done
    expect_verified slow-*/*/s*.json packed-*/*/s*.json
}

test_ucx_in_device_memory_runs_colocated_separate_with_casts_and_fp8() {
    verifies 6 '.nodes[0].slots = 4 | .scenarios = [
        {"name": "s-colocated", "mode": "colocated",
         "train": {"tp": 2, "pp": 2}, "infer": {"tp": 4, "layout": "vllm"},
         "serialize": [true, false]},
        {"name": "s-separate", "mode": "colocated",
         "colocated_processes": "separate", "train": {"tp": 4},
         "infer": {"tp": 2, "dp": 2, "layout": "vllm"}},
        {"name": "s-cast", "mode": "colocated",
         "train": {"tp": 4, "dtype": "float32"},
         "infer": {"tp": 2, "dp": 2, "dtype": "bfloat16", "layout": "hf"},
         "cast": ["source", "destination"]},
        {"name": "s-alone", "mode": "colocated", "train": {},
         "infer": {"layout": "vllm"}}] |
        .scenarios[] += {method: "ucx-cuda", warmup: 0, iterations: 2}'
    cluster '.model.megatron += {hidden_size: 256, ffn_hidden_size: 512,
            num_attention_heads: 4, num_query_groups: 4} |
        .scenarios[0].infer += {quantize: true}'
    coord_exits 0 cluster.json -o fp8
    expect_json "$(echo fp8/*/s.json)" '.verification.quantized_bytes > 0'
}

test_ucx_moves_device_memory_between_nodes() {
    cluster "$two_nodes_cluster"' | .scenarios[0] += {method: "ucx",
        memory: "cuda", strategy: ["send_recv", "broadcast", "allgather",
            "hierarchical", "gather_broadcast"]}'
    two_nodes A=1
    expect_exit 0
    all_verified 5
    all_beside_yardsticks
    expect_json_of_all '.setup.registration | test("by tcp/lo")' \
        results/*/s*.json
    expect_text out '^UCX took TCP: .*s-strategy=send_recv'
}

test_long_runs_go_between_nodes_without_packing() {
    cluster "$two_nodes_cluster"' | .scenarios[0] += {method: "ucx",
        memory: "cuda"} | .launch.env += {REFIT_DIRECT_BYTES: "512"}'
    two_nodes A=1
    expect_exit 0
    all_verified 2
}

test_memory_is_an_axis_and_names_the_method() {
    verifies 2 '.scenarios[0] += {memory: ["host", "cuda"]}'
    expect_json "$(result s-memory=host)" '.scenario.method == "ucx"'
    expect_json "$(result s-memory=cuda)" '.scenario.method == "ucx-cuda"'
}

test_memory_that_the_method_does_not_use_is_refused() {
    run_fails 2 '.scenarios[0].method = "nccl" | .scenarios[0].memory = "host"' \
        'memory \(s\): method nccl keeps weights in GPU memory: remove the key, or use a method for host memory: host, tcp, '
    run_fails 2 '.scenarios[0].method = "tcp"' \
        'method tcp keeps weights in host memory: .*: nccl, '
}

test_a_ucx_without_cuda_is_refused() {
    run_fails 4 'del(.launch.env.LD_PRELOAD)' \
        'method ucx-cuda cannot be used on localhost: UCX [0-9.]+ does not support CUDA memory: install one built with CUDA'
}

test_without_the_module_of_ucx_device_memory_is_refused() {
    mkdir build
    cp "$fakes"/* build
    rm build/refit-ucx.so
    cluster ".launch.env.LD_LIBRARY_PATH = \"$PWD/build\""
    coord=$PWD/build/refit-coord LD_LIBRARY_PATH=$PWD/build run_coord cluster.json
    expect_exit 4
    expect_text err 'method ucx-cuda cannot be used on localhost: refit-ucx\.so'
}

test_device_memory_that_cannot_be_registered_is_an_error_of_a_rank() {
    run_fails 1 '.launch.env.FAKE_UCX_REGISTERS = "1"' \
        'rank [0-9]: method ucx-cuda: UCX cannot register .* of device memory: Out of memory .*BAR1'
}

test_a_device_that_fails_is_named() {
    run_fails 1 '.launch.env.FAKE_CUDA_FAIL = "cudaMalloc:3:2"' \
        'rank [0-9].*cudaMalloc: '
}

test_a_stuck_exchange_ends_at_its_deadline_and_says_where() {
    cluster '.scenarios[0] += {timeout_s: 2, iterations: 3}'
    REFIT_TEST_STALL=1:1 coord_exits 1 cluster.json
    expect_json "$(result s)" '.status == "failed"'
    expect_text err 'localhost:[0-9]: warning: stopped in step [0-9]+ of [0-9]+, an exchange with rank .*1'
}

# What is to be run on a GPU, here with the preload.
test_checks_for_a_gpu_run_it() {
    local env
    export FAKE_CUDA_DEVICES=1
    mkdir bin
    ln -s "$fakes"/* bin
    rm bin/refit-worker
    cat >bin/refit-worker <<EOF
#!/bin/sh
export ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=$cuda_ucx
exec "$fakes/refit-worker" "\$@"
EOF
    chmod +x bin/refit-worker
    env="\"LD_PRELOAD\": \"$cuda_ucx\""
    env+=', "ASAN_OPTIONS": "verify_asan_link_order=0"'
    sed "s|\"REFIT_SHARE_GPU\": \"1\"|&, $env|" \
        "$RF_TOP/tests/gpu/check-gpu" >check-gpu
    bash check-gpu bin two-ranks-ucx-cuda two-nodes-ucx-cuda-send_recv \
        killed-rank-ends-ucx-cuda >out 2>&1
    status=$?
    cat out >&2
    expect_exit 0
    expect_text out '^3 passed, 0 failed'
    bash check-gpu "$fakes" none >out 2>&1
    expect_text out '^skipped: ucx-cuda: UCX .* does not support CUDA memory'
}

has_result() {
    compgen -G "results/*/s.json" >/dev/null
}
iteration_kept() {
    grep -q -- "verifying -> filling\$" err
}
in_the_exchange() {
    tail -n 1 err | grep -q -- "-> running\$"
}

# One of the ranks, while messages are under way.
kill_one() { # NUMBER CLUSTER
    local all victim file
    rm -rf results err
    cluster "$2 | .launch.worker = \"$worker\" |
        .scenarios[0].iterations = 1000000"
    start_coord cluster.json -vv
    wait_until 60 "an iteration" iteration_kept
    wait_until 60 "an exchange" in_the_exchange
    mapfile -t all < <(ranks)
    victim=${all[$1]}
    kill -KILL "${victim%:*}"
    wait_until 15 "the scenario's end" has_result
    finish_coord
    expect_exit 1
    file=$(result s)
    expect_json "$file" '.status == "failed" and (.iterations | length > 0)'
    expect_json "$file" ".errors[0] | (.rank | type == \"number\") and
        (tostring | test(\"process ${victim%:*}\\\\b\") and test(\"signal 9\"))"
    wait_until 20 "no process is left" no_workers
}

test_a_killed_rank_is_named_within_a_node_and_between_nodes() {
    local number
    own_worker
    cp "$fakes"/refit-{cuda,ucx}.so "$fakes"/lib*.so* .
    for ((number = 0; number < ${UCX_KILLS:-2}; number++)); do
        kill_one $((number % 6)) .
        kill_one $((number % 4)) '.launch.env.REFIT_SHARE_GPU = "1" |
            .nodes = [{host: "a", slots: 2}, {host: "b", slots: 2}] |
            .scenarios[0].infer = {tp: 2, layout: "vllm"}'
    done
}

run_tests
