#!/bin/bash
# Checkpoints in device memory, over the fakes of CUDA's runtime and NCCL: read
# into host memory, copied to the device, and compared with the files there.
# limit: 240
# shellcheck source=../lib/fakes.sh disable=SC2034
. "$(dirname "$0")/../lib/fakes.sh"

base=$(jq '.model = {checkpoint: "model"}' <<<"$base")

make_checkpoint() { # [OPTION...]
    "$RF_TOP/tests/lib/make-checkpoint" model "$@" >total ||
        fail "make-checkpoint failed"
}

test_checkpoints_go_through_every_device_method() {
    make_checkpoint
    verifies 4 '.scenarios[0] += {method: ["nccl", "ipc"],
        strategy: ["send_recv", "broadcast"]}'
    expect_json "$(echo results/*/s-method=ipc-strategy=send_recv.json)" \
        '.setup.checkpoint.bytes > '"$(cat total)"
}

# Where pieces are read in place, verification follows them there.
test_colocated_device_methods_leave_pieces_of_a_checkpoint_in_place() {
    make_checkpoint
    verifies 2 '.nodes[0].slots = 4 | .scenarios[0] |= (.mode = "colocated" |
        .train = {tp: 2, pp: 2} | .infer = {tp: 4, layout: "vllm"} |
        .method = ["nccl", "ipc"])'
}

# From device memory, also where pieces are left in the source's.
test_exports_from_devices_equal_the_checkpoint() {
    local method
    make_checkpoint
    for method in nccl ipc; do
        cluster '.nodes[0].slots = 4 | .scenarios[0] |= (.mode = "colocated" |
            .train = {tp: 2, pp: 2} | .infer = {tp: 4, layout: "vllm"} |
            .method = "'"$method"'")'
        mkdir "$method"
        coord_exits 0 --export "$method" cluster.json
        "$RF_TOP/tests/lib/same-tensors" model "$method" || fail "not the same"
    done
}

test_exports_of_fp8_from_devices_follow_the_formula() {
    make_checkpoint --finite --layers 2 --hidden 192 --intermediate 256 \
        --heads 2 --kv-heads 2 --head-dim 128 --vocab 128
    cluster '.nodes[0].slots = 4 | .scenarios[0] |= (.mode = "colocated" |
        .train = {tp: 2, pp: 2} | .method = "ipc" |
        .infer = {tp: 2, layout: "vllm", quantize: true})'
    mkdir fp8
    coord_exits 0 --export fp8 cluster.json
    "$RF_TOP/tests/lib/same-tensors" --format fp8_block128 model fp8 || fail "not the formula"
}

test_a_wrong_byte_of_a_checkpoint_on_a_device_is_named() {
    make_checkpoint --shards 1
    cluster
    REFIT_TEST_FLIP=2:0 coord_exits 3 cluster.json
    expect_json "$(result s)" '.verification | .mismatched_bytes == 1 and
        (.first_mismatch.tensor | startswith("model."))'
}

test_a_checkpoint_is_cast_to_what_a_device_trains_in() {
    make_checkpoint
    verifies 1 '.scenarios[0].train.dtype = "float32"'
}

test_a_failed_copy_to_the_device_fails_the_fill() {
    make_checkpoint
    cluster '.launch.env.FAKE_CUDA_FAIL = "cudaMallocHost:1:2"'
    coord_exits 1 cluster.json
    expect_json "$(result s)" '.errors[0] | (.phase | startswith("fill")) and
        (.text | test("checkpoint: cudaMallocHost"))'
}

run_tests
