#!/bin/bash
# What goes wrong with method ucx ends as with every other method: exit 1 in
# bounded time, the rank is named, nothing is left.
# limit: 300
# shellcheck disable=SC2034 source=../lib/test.sh
. "$(dirname "$0")/../lib/test.sh"
[ -e "$RF_BUILD_DIR/refit-ucx.so" ] || skip_all "refit-ucx.so is not built"

# Two nodes, so that bytes go through endpoints; emulated puts over TCP.
base=$(jq '. + {nodes: [{host: "a", slots: 2}, {host: "b", slots: 2}],
    scenarios: [{name: "split", mode: "disaggregated", train: {tp: 2},
    infer: {tp: 2}, method: "ucx", warmup: 0, iterations: 2}]}
    | .launch.env = {UCX_NET_DEVICES: "lo", REFIT_UCX_RMA: "always"}' \
    <<<"$four_slots")

test_an_unreachable_device_is_an_error_of_a_rank() {
    cluster '.launch.env.UCX_NET_DEVICES = "nosuch0"'
    coord_exits 1 cluster.json
    expect_text err 'rank [0-3].*UCX .*UCX_NET_DEVICES'
    expect_json "$(result split)" '.status == "failed"'
}

test_memory_that_cannot_be_registered_is_an_error_of_a_rank() {
    cluster '.launch.env.UCX_ALLOC_PRIO = "md:nosuch"'
    coord_exits 1 cluster.json
    expect_text err 'rank [0-3].*arena: UCX cannot allocate and register .*ulimit -l'
    expect_json "$(result split)" '.status == "failed"'
}

has_result() {
    compgen -G "results/*/split.json" >/dev/null
}

iteration_kept() {
    grep -q -- "verifying -> filling\$" err
}

in_puts() {
    tail -n 1 err | grep -q -- "-> running\$"
}

# Kills one of the ranks while they write; 15 s is the bound.
kill_one() { # NUMBER DIRECTION
    local all victim file
    rm -rf results err
    cluster ".launch.worker = \"$worker\" | .scenarios[0] +=
        {iterations: 1000000, ucx: {direction: \"$2\"}}"
    start_coord cluster.json -vv
    wait_until 60 "an iteration" iteration_kept
    wait_until 60 "puts" in_puts
    mapfile -t all < <(ranks)
    victim=${all[$1 % ${#all[@]}]}
    kill -KILL "${victim%:*}"
    wait_until 15 "the scenario's end" has_result
    finish_coord
    expect_exit 1
    file=$(result split)
    expect_json "$file" '.status == "failed" and (.iterations | length > 0)'
    # UCX may end the process that served the victim's gets (docs/UCX.md).
    expect_json "$file" ".errors[0] | tostring | test(\"[ab].*rank\") and
        (test(\"process ${victim%:*}\\\\b\") and test(\"signal 9\") or
         \"$2\" == \"get\" and test(\"ucp_get_req_handler\"))"
    wait_until 20 "no process is left" no_workers
}

test_a_rank_killed_during_puts_or_gets_is_named_each_time() {
    local direction=(put get)
    own_worker
    cp "$RF_BUILD_DIR/refit-ucx.so" .
    for ((i = 0; i < ${UCX_KILLS:-4}; i++)); do
        kill_one "$i" "${direction[i % 2]}"
        echo "killed $((i + 1))" >&2
    done
}

run_tests
