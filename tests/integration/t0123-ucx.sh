#!/bin/bash
# Method ucx on this machine: shared memory and TCP on the loopback.
# limit: 120
# shellcheck disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base=$(jq '.launch.env = {UCX_NET_DEVICES: "lo"} | . + {scenarios: [
    {"name": "split", "mode": "disaggregated", "train": {"tp": 2},
     "infer": {"tp": 2, "layout": "hf"}, "method": "ucx", "warmup": 0,
     "iterations": 2}]}' <<<"$four_slots")

test_ucx_moves_and_says_what_it_chose() {
    local way file
    [ -e "$RF_BUILD_DIR/refit-ucx.so" ] || return 0
    cluster
    coord_exits 0 cluster.json
    expect_verified "$(result split)"
    expect_json "$(result split)" '.setup.registration |
        test("^UCX [0-9.]+; 12 mapped by posix/memory$")'
    expect_json "$(result split)" '.setup | has("over_tcp") or has("unmapped") | not'
    cluster '.launch.env = {UCX_NET_DEVICES: "lo", UCX_TLS: "tcp,self",
        REFIT_UCX_RMA: "always"} |
        .scenarios[0].ucx.direction = ["put", "get"]'
    coord_exits 0 cluster.json -o rma
    for way in put get; do
        file=$(echo rma/*/"split-ucx.direction=$way.json")
        expect_verified "$file"
        expect_json "$file" ".setup.registration | test(\"; [0-9]+ ${way}s by tcp/lo\")"
    done
    cluster '.launch.env.UCX_TLS = "tcp"'
    coord_exits 0 cluster.json -o tcp
    expect_json "$(echo tcp/*/split.json)" '.setup.registration |
        test("^UCX [0-9.]+; [0-9]+ messages by tcp/lo$")'
    expect_json "$(echo tcp/*/split.json)" '.setup | .over_tcp ==
        (.registration | sub("^[^;]*; "; ""))'
    expect_text out '^UCX took TCP: split \([0-9]+ messages by tcp/lo\)$'
}

test_module_that_is_no_file_is_told() {
    own_worker
    mkfifo refit-ucx.so
    cluster ".launch.worker = \"$worker\""
    coord_exits 4 check cluster.json
    expect_text out "^E split: .*$PWD/refit-ucx.so: not a regular file"
}

# Starting UCX takes a node longer than all else that it looks for.
test_ucx_is_started_only_for_scenarios_that_use_it() {
    local expected
    [ -e "$RF_BUILD_DIR/refit-ucx.so" ] || return 0
    for expected in ucx:yes host:no; do
        cluster ".scenarios[0].method = \"${expected%:*}\" |
            .launch.env.LD_DEBUG = \"files\""
        coord_exits 0 check cluster.json -v
        grep -q 'file=libucp' err && found=yes || found=no
        [ "$found" = "${expected#*:}" ] || fail "${expected%:*}: $found"
    done
}

test_private_arenas_are_counted_once() {
    [ -e "$RF_BUILD_DIR/refit-ucx.so" ] || return 0
    cluster '.launch.env.UCX_TLS = "tcp,self" | .model = {config:
        "\(env.RF_TOP)/models/qwen3-0.6b.json", num_hidden_layers: 2,
        vocab_size: 65536}'
    coord_exits 0 cluster.json
    [ -n "${RF_TSAN-}" ] || # its shadow of what ranks touch counts, too
        expect_json "$(result split)" '.summary.memory |
            .peak_bytes < 1.2 * .predicted_bytes'
}

test_where_cma_carries_the_bytes_nothing_is_said_of_tcp() {
    [ -e "$RF_BUILD_DIR/refit-ucx.so" ] || return 0
    cluster '.launch.env.UCX_TLS = "tcp,cma,self"'
    coord_exits 0 cluster.json
    expect_json "$(result split)" '.setup.registration |
        test("messages by tcp/lo,cma/memory$")'
    expect_no_text out 'UCX took TCP'
}

test_other_transports_are_another_measurement() {
    [ -e "$RF_BUILD_DIR/refit-ucx.so" ] || return 0
    cluster '.launch.env.UCX_TLS = "tcp,self"'
    coord_exits 0 cluster.json -o results/messages
    cluster '.launch.env += {UCX_TLS: "tcp,self", REFIT_UCX_RMA: "always"}'
    coord_exits 0 cluster.json -o results/puts
    run_coord compare results/messages results/puts --json
    expect_json out '.comparisons[0] | .judged == "refit_ms" and
        (.differs | test("setup.registration") and
            test("environment\\[0\\].env"))'
    coord_exits 2 report --pool results/messages results/puts
    expect_text err 'is not pooled .* they differ in setup\.registration'
    run_coord predict cluster.json results/messages
    expect_text out 'launch\.env\.REFIT_UCX_RMA is not set there, "always" here'
    run_coord predict cluster.json results/messages results/puts
    expect_text out '^1 of 2 results used'
    expect_text out '^  not measured: .* measures another refit: launch\.env'
}

test_settings_that_cannot_work_are_found_by_check() {
    [ -e "$RF_BUILD_DIR/refit-ucx.so" ] || return 0
    cluster '.launch.env.UCX_TLS = "nosuch"'
    coord_exits 4 check cluster.json
    expect_text out 'method ucx cannot be used on localhost: UCX cannot start .*UCX_TLS'
    cluster '.launch.env.REFIT_UCX_RMA = "sometimes"'
    coord_exits 4 check cluster.json
    expect_text out 'REFIT_UCX_RMA is "sometimes", must be auto, always or never'
}

test_without_tcp_ucx_warns_of_nothing() {
    [ -e "$RF_BUILD_DIR/refit-ucx.so" ] || return 0
    cluster 'del(.launch.env.UCX_NET_DEVICES) | .launch.env.UCX_TLS =
        "posix,self"'
    coord_exits 0 cluster.json
    expect_no_text err 'UCX +WARN'
}

test_directions_multiply_only_method_ucx() {
    cluster '.scenarios[0] += {method: ["host", "ucx"],
        ucx: {direction: ["put", "get"]}}'
    coord_exits 0 plan cluster.json --json
    expect_json out '[.scenarios[].scenario.name] == ["split-method=host",
        "split-method=ucx-ucx.direction=put",
        "split-method=ucx-ucx.direction=get"]'
    expect_text err '^3 scenarios, 1 equal left out$'
    coord_exits 2 plan cluster.json --set 'scenarios.*.method=host'
    expect_text err 'scenarios\[0\]\.ucx \(split\): applies to method ucx in host memory, not to host: remove it'
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
