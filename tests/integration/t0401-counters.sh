#!/bin/bash
# What hosts of a test bed count at their interfaces, beside the plan's bytes.
# waits
# limit: 120
# shellcheck source=../lib/testbed.sh disable=SC2034
. "$(dirname "$0")/../lib/testbed.sh"

bed_up --hosts 2 --slots 2 --worker "$worker"

# 60 MB and more to move: long beside control messages.
base=$(jq '. + {
  name: "t",
  model: {megatron: {num_layers: 2, hidden_size: 1024, num_attention_heads: 16,
    num_query_groups: 8, ffn_hidden_size: 3072, vocab_size: 8192,
    swiglu: true}},
  scenarios: [{name: "split", mode: "disaggregated",
    train: {nodes: [.nodes[0].host], tp: 2},
    infer: {nodes: [.nodes[1].host], tp: 2}, yardstick: false, warmup: 0,
    iterations: 2}]}' <<<"$part")

# The plan's bytes, and at most 2 % for headers and control messages.
expect_planned() { # FILE...
    expect_verified "$@" # and with that, as their schema says
    expect_json_of_all '.summary.network | length == 2 and all(
        .planned_sent_bytes + .planned_received_bytes > 3e6 and
        .sent_bytes >= .planned_sent_bytes and
        .received_bytes >= .planned_received_bytes and .ratio < 1.02 and
        .nics_used == ["eth0"] and .nics_idle == [])' "$@"
    expect_json_of_all '.flags | contains(["other_traffic"]) or
        contains(["idle_nics"]) | not' "$@"
}

test_counters_agree_with_the_plan_for_every_method_across_hosts() {
    cluster '.scenarios[0].method = ["host", "tcp"]'
    coord_exits 0 cluster.json
    expect_planned results/*/split*.json
    expect_json "$(result split-method=tcp)" '
        (.iterations[0].network | map({(.host): .}) | add) as $of |
        (.schedule.links | length == 2 and all($of[.host].planned_sent_bytes ==
            .sent_bytes and $of[.host].planned_received_bytes ==
            .received_bytes)) and ($of | all(.segments > 100))'
    [ -e "$RF_BUILD_DIR/refit-ucx.so" ] || return 0
    cluster '.scenarios[0].method = "ucx"'
    coord_exits 0 cluster.json -o ucx
    expect_planned ucx/*/split.json
}

# Ranks on both hosts send to each other, also inside a host: only what crosses
# counts.
test_counters_agree_with_what_an_encoding_left() {
    cluster '.scenarios[0] |= (del(.train.nodes, .infer.nodes) +
        {mode: "colocated", train: {tp: 2, pp: 2}, infer: {tp: 4},
         method: "tcp", update: {density: 0.1}, encoding: "auto"})'
    coord_exits 0 cluster.json
    expect_planned "$(result split)"
    expect_json "$(result split)" '
        (.schedule.links | map(.sent_bytes) | add) as $whole |
        (.summary.network | map(.planned_sent_bytes) | add) as $left |
        .summary.sent_bytes > $left and $left < $whole / 2'
}

test_a_host_that_uses_one_of_two_interfaces_is_flagged() {
    ip link add "${ns[0]}b" type veth peer name eth1 netns "${ns[0]}"
    ip link set "${ns[0]}b" addrgenmode none up
    ip -n "${ns[0]}" link set eth1 addrgenmode none up
    cluster '.scenarios[0].iterations = 1'
    coord_exits 0 cluster.json
    ip link delete "${ns[0]}b"
    expect_json "$(result split)" '(.flags | contains(["idle_nics"])) and
        .summary.network[0].nics_idle == ["eth1"] and
        .summary.network[1].nics_idle == []'
    expect_text out "^idle NICs .*: split \(1 of 2 used on ${host[0]}\)$"
}

test_other_traffic_is_flagged() {
    local pid
    setsid ip netns exec "${ns[1]}" python3 -c '
import socket, sys
with socket.create_server((sys.argv[1], 0)) as server:
    print(server.getsockname()[1], flush=True)
    taker = server.accept()[0]
    while taker.recv(1 << 20): pass' "${host[1]}" >port &
    wait_until 10 "another program listens" test -s port
    ip netns exec "${ns[0]}" bash -c \
        'exec cat /dev/zero >"/dev/tcp/$0/$1"' "${host[1]}" "$(<port)" &
    pid=$!
    cluster '.scenarios[0].iterations = 1'
    run_coord cluster.json
    kill "$pid"
    expect_exit 0
    expect_json "$(result split)" '.flags | contains(["other_traffic"])'
    expect_text out '^other traffic on the network.*: split \([0-9.]+ times the'
}

run_tests
