#!/bin/bash
# Megatron-LM's refit benchmark under its own flags: the examples of its README
# run, verified, and print its lines.
# limit: 240
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

# The benchmark's example output; "..." stands for more iterations, and the
# empty line and the table are ours.
form='================================================================================
COLLOCATED MODE REFIT BENCHMARK
================================================================================
World size: 4
Source (training): TP=2, PP=2, EP=1, DP=1
Destination (inference): TP=4, PP=1, EP=1, DP=1
Model: 4 layers, 1024 hidden, 8 heads
Refit backend: nccl
================================================================================

Building models...
Source model size on rank 0: 45.23 MB
Destination model size on rank 0: 45.23 MB

Warmup: 2 iterations...

Benchmarking: 10 iterations...
  Iteration 1/10: 123.45 ms
  Iteration 2/10: 121.34 ms
  ...

================================================================================
RESULTS
================================================================================
Mean refit time: 122.15 ms
Min refit time:  119.87 ms
Max refit time:  125.43 ms
================================================================================'

# What differs from run to run, and between scenarios, masked; iterations
# beyond the second folded.
masked() {
    sed -E 's/^NON-//; s/^(  Iteration) [3-9]\/.*/  .../
        s/^(  Iteration) [1-9][0-9]\/.*/  .../
        /^MoE: /d; s/(rank) [0-9]+/\1 N/; s/[0-9]+[.][0-9]+/N.NN/
        s/[0-9]+/N/g; s/(backend:) [a-z]+/\1 X/' | uniq
}

# Small enough for any machine, with the proportions of the README's.
small=(--hidden-size 64 --num-attention-heads 8 --seq-length 32
    --max-position-embeddings 32 --micro-batch-size 1 --vocab-size 512
    --refit-method gloo)

megatron() { # FLAG...
    coord_exits 0 megatron "$@" "${small[@]}"
    sed '/^scenario /,$d' out >block
    [ "$(masked <block)" = "$(masked <<<"$form")" ] || {
        diff <(masked <<<"$form") <(masked <block) >&2
        fail "not the benchmark's lines"
    }
    expect_text out '^scenario .* vs contiguous .* verified$'
    expect_text out '^tp[^ ]+ +host .* yes$'
    expect_text err 'no effect on a refit: --micro-batch-size, --seq-length$'
    record=$(echo results/*/tp*.json)
    expect_verified "$record"
}

test_collocated_tp2_to_tp1() {
    megatron --tensor-model-parallel-size 2 \
        --rl-inference-tensor-model-parallel-size 1 --refit-mode collocated \
        --num-layers 4 --num-benchmark-iterations 20
    expect_text out '^World size: 2$'
    expect_text out '^Source \(training\): TP=2, PP=1, EP=1, DP=1$'
    expect_text out '^Destination \(inference\): TP=1, PP=1, EP=1, DP=2$'
    expect_text out '^  Iteration 20/20: [0-9]+[.][0-9]{2} ms$'
    expect_json "$record" '.scenario | .warmup == 2 and .iterations == 20'
    [ "$(sed -n 's/^Mean refit time: \(.*\) ms$/\1/p' out)" = \
        "$(printf %.2f "$(jq .summary.mean_ms "$record")")" ] ||
        fail "another mean than the result's"
}

test_collocated_tp2_pp2_to_tp4() {
    megatron --tensor-model-parallel-size 2 \
        --pipeline-model-parallel-size 2 \
        --rl-inference-tensor-model-parallel-size 4 \
        --rl-inference-pipeline-model-parallel-size 1 \
        --refit-mode collocated --num-layers 8
    expect_text out '^World size: 4$'
    expect_text out '^Model: 8 layers, 64 hidden, 8 heads$'
}

test_non_collocated_tp2_to_tp4() {
    megatron --tensor-model-parallel-size 2 \
        --rl-inference-tensor-model-parallel-size 4 \
        --refit-mode non-collocated --num-layers 4
    expect_text out '^NON-COLLOCATED MODE REFIT BENCHMARK$'
    expect_text out '^World size: 6$'
    expect_text out '^Destination model size on rank 2: '
}

test_experts_ep2_to_ep4() {
    megatron --tensor-model-parallel-size 1 \
        --expert-model-parallel-size 2 \
        --rl-inference-tensor-model-parallel-size 1 \
        --rl-inference-expert-model-parallel-size 4 --num-experts 8 \
        --refit-mode collocated --num-layers 4 --ffn-hidden-size 256
    expect_text out '^World size: 4$'
    expect_text out '^MoE: 8 experts$'
    expect_text out 'EP=2, DP=2$'
    expect_text out 'EP=4, DP=1$'
}

test_large_model_configuration() {
    megatron --tensor-model-parallel-size 2 \
        --pipeline-model-parallel-size 4 \
        --rl-inference-tensor-model-parallel-size 8 \
        --rl-inference-pipeline-model-parallel-size 1 \
        --refit-mode collocated --num-layers 4 --num-benchmark-warmup 1 \
        --num-benchmark-iterations 5
    expect_text out '^World size: 8$'
    expect_text out '^Warmup: 1 iterations[.]{3}$'
}

test_printed_cluster_file_is_what_would_run() {
    coord_exits 0 megatron --refit-mode collocated --num-layers 2 "${small[@]}" \
        --tensor-model-parallel-size 2 --print
    [ ! -e results ] || fail "something was run"
    cp out printed.json
    coord_exits 0 printed.json
    expect_verified "$(result tp2-to-tp1)"
}

test_json_is_the_result() {
    coord_exits 0 megatron --refit-mode collocated --num-layers 2 "${small[@]}" \
        --num-benchmark-iterations 3 --json -o elsewhere
    expect_json out '.status == "ok" and (.iterations | length) == 3'
    [ -d elsewhere ] || fail "results are not elsewhere"
}

test_a_slip_of_a_flag_runs_nothing() {
    coord_exits 2 megatron --refit-mode collocated --num-layer 2 "${small[@]}"
    expect_text err 'unknown option --num-layer \(did you mean --num-layers\?\)'
    coord_exits 2 megatron --refit-mode collocated "${small[@]}"
    expect_text err 'missing --num-layers; '
    coord_exits 2 megatron --refit-mode collocated --num-layers 3 "${small[@]}" \
        --pipeline-model-parallel-size 2
    expect_text err '3 layers'
    [ ! -e results ] || fail "there are results"
}

# It has no --resume, so that is not what to try.
test_an_interrupted_run_is_not_to_be_continued() {
    start_coord megatron --refit-mode collocated --refit-method gloo \
        --num-layers 16 --hidden-size 1024 --num-attention-heads 8 \
        --seq-length 512 --max-position-embeddings 512
    wait_until 60 "the scenario begins" grep -q '^scenario 1' err
    kill -INT "$coord_pid"
    finish_coord
    expect_exit 130
    expect_text err '^results in results/'
    expect_no_text err 'to continue'
}

run_tests
