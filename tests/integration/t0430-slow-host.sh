#!/bin/bash
# Balance time on a host that is slower than the others: measured, not only
# predicted, it moves less through that host's link than size does.
# limit: 300
# waits
# shellcheck source=../lib/testbed.sh disable=SC2034
. "$(dirname "$0")/../lib/testbed.sh"

bed_up --hosts 3 --slots 1 --rate 400mbit --worker "$worker"
"$testbed" exec 2 --dir "$bed" -- tc qdisc replace dev eth0 root tbf \
    rate 50mbit burst 128kb latency 50ms

# Replicas on the first host and on the slow second one.
base=$(jq '. + {
  name: "t",
  model: {megatron: {num_layers: 2, hidden_size: 512, num_attention_heads: 8,
    vocab_size: 8192}},
  links: {nic_gbytes_per_s: 0.05,
    nodes: {(.nodes[1].host): {nic_gbytes_per_s: 0.00625}}},
  scenarios: [{name: "s", mode: "disaggregated", balance: ["size", "time"],
    train: {nodes: [.nodes[0].host, .nodes[1].host], tp: 1, dp: 2},
    infer: {nodes: [.nodes[2].host], tp: 1}, warmup: 0, iterations: 3}]
  }' <<<"$part")

test_time_spares_the_slow_host() {
    local size time
    cluster
    coord_exits 0 cluster.json
    size=$(result s-balance=size) time=$(result s-balance=time)
    expect_verified "$size"
    expect_verified "$time"
    expect_json "$time" '.scenario.balance_links[:2] ==
        [{nics: 1, weight: 8}, {nics: 1, weight: 1}] and
        (.balance_choice.candidates |
            .[1].predicted_ms < 0.5 * .[0].predicted_ms)'
    # Size has the slow link carry half of the bytes, time a ninth.
    jq -e -n --slurpfile size "$size" --slurpfile time "$time" '
        $time[0].summary.median_ms < $size[0].summary.median_ms' \
        >/dev/null || fail "$(jq -c .summary.median_ms "$size" "$time")"
}

run_tests
