# Method ucx on this machine: shared memory and TCP on the loopback.
# limit: 120
# shellcheck shell=bash disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base=$(jq '.launch.env = {UCX_NET_DEVICES: "lo"} | . + {scenarios: [
    {"name": "split", "mode": "disaggregated", "train": {"tp": 2},
     "infer": {"tp": 2, "layout": "hf"}, "method": "ucx", "warmup": 0,
     "iterations": 2}]}' <<<"$four_slots")

test_ucx_moves_and_says_what_it_chose() {
    local way file
    [ -e "$RF_BUILD_DIR/refit-ucx.so" ] || return 0
    cluster
    run_coord cluster.json
    expect_exit 0
    expect_verified "$(result split)"
    expect_json "$(result split)" '.setup.registration |
        test("^UCX [0-9.]+; 12 mapped by posix/memory$")'
    cluster '.launch.env = {UCX_NET_DEVICES: "lo", UCX_TLS: "tcp,self",
        REFIT_UCX_RMA: "always"} |
        .scenarios[0].ucx.direction = ["put", "get"]'
    run_coord cluster.json -o rma
    expect_exit 0
    for way in put get; do
        file=$(echo rma/*/"split-ucx.direction=$way.json")
        expect_verified "$file"
        expect_json "$file" ".setup.registration | test(\"; [0-9]+ ${way}s by tcp/lo\")"
    done
    cluster '.launch.env.UCX_TLS = "tcp"'
    run_coord cluster.json -o tcp
    expect_exit 0
    expect_json "$(echo tcp/*/split.json)" '.setup.registration |
        test("^UCX [0-9.]+; [0-9]+ messages by tcp/lo$")'
    expect_text out '^UCX took TCP: split \([0-9]+ messages by tcp/lo\)$'
}

test_without_the_module_ucx_is_refused_with_the_reason() {
    mkdir bin
    cp "$RF_BUILD_DIR"/refit-{coord,worker} bin
    cluster '.launch.worker = "bin/refit-worker"'
    coord=bin/refit-coord LD_LIBRARY_PATH='' run_coord cluster.json
    expect_exit 4
    expect_text err 'method ucx cannot be used on localhost: refit-ucx.so'
}

run_tests
