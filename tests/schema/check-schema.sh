#!/bin/bash
# The JSON Schemas of results beside the files of runs of every kind.
# limit: 1200
# shellcheck source=../lib/recorded.sh
. "$(dirname "$0")/../lib/recorded.sh"
python3 -c 'import jsonschema' 2>/dev/null || skip_all "no python3-jsonschema"

strategies=$("$RF_TOP/tests/lib/strategies" "$coord" | jq -Rn '[inputs]')
fakes=$RF_BUILD_DIR/fake

iteration_kept() {
    grep -q -- "verifying -> filling\$" err
}

record_methods() {
    local ucx=
    [ ! -e "$RF_BUILD_DIR/refit-ucx.so" ] || ucx=', "ucx"'
    mkdir shared
    jq '. + {nodes: [{host: "a", slots: 2}, {host: "b", slots: 2}],
        links: {link_gbytes_per_s: 1}, timeline: {train_s: 20},
        variables: {two: 2}, defaults: {warmup: 1, iterations: 2},
        scenarios: [
            {name: "each", mode: "disaggregated", train: {tp: "$two"},
                infer: {tp: 2}, strategy: '"$strategies"',
                method: ["host", "tcp", "null"'"$ucx"']},
            {name: "inside", train: {tp: 4}, infer: {tp: 2}, method: "shm",
                impossible: "skip"},
            {name: "files", train: {tp: 4}, infer: {tp: 2}, method: "disk",
                disk: {folder: "'"$PWD/shared"'"}},
            {name: "groups", train: {tp: 4}, infer: {tp: 2},
                group: {by: ["layer", "bytes:1MB"]}},
            {name: "changes", train: {tp: 4}, infer: {tp: 2},
                update: {density: [0, 0.1], restart_every: 2},
                encoding: ["dense", "auto", "auto+diff"]},
            {name: "precise", train: {tp: 4}, infer: {tp: 2},
                iterations: {min: 5, max: 6, ci_percent: 90}}]}' \
        <<<"$four_slots" >cluster.json
    coord_exits 0 cluster.json -o methods --logs --trace trace
}

record_ends() {
    jq '. + {scenarios: [{name: "long", train: {tp: 4}, infer: {tp: 2},
        warmup: 0, iterations: 1000000}]}' <<<"$four_slots" >cluster.json
    start_coord cluster.json -vv -o ends
    wait_until 60 "an iteration" iteration_kept
    cp -r ends running
    kill -INT "$coord_pid"
    finish_coord
    expect_exit 130
    jq '.scenarios[0].iterations = 2' cluster.json >short.json
    coord_exits 0 short.json --repeat 2 -o pooled
    coord_exits 0 short.json --repeat 3 --resume pooled/*
}

# Over the fakes of CUDA's runtime and NCCL.
record_devices() {
    jq '.launch.env = {LD_LIBRARY_PATH: "'"$fakes"'", FAKE_CUDA_DEVICES: "8"} |
        . + {scenarios: [{name: "device", train: {tp: 4}, infer: {tp: 2},
            method: ["nccl", "ipc"], iterations: 2}]}' \
        <<<"$four_slots" >cluster.json
    LD_LIBRARY_PATH=$fakes FAKE_CUDA_DEVICES=8 "$fakes/refit-coord" \
        cluster.json -o devices || fail "no run over the fakes"
}

test_results_of_every_kind_have_what_the_schemas_say() {
    # Of GPUs what the fakes do not have, ways of UCX, and nodes with networks of
    # their own, which t0401 has.
    local unseen="'(dmabuf|slowed|why|nvlink_.*|over_tcp|unmapped|rdma|network|topology)'"
    record_methods
    record_ends
    if [ -e "$fakes/refit-cuda.so" ]; then
        record_devices
    else
        unseen+="|'(device|device_ms|gpus|copies|registration)'"
    fi
    (record_everything) || exit
    mv methods ends running pooled "$work/runs"
    [ ! -d devices ] || mv devices "$work/runs"
    cd "$work/runs" || exit
    expect_described "$unseen"
}

run_tests
