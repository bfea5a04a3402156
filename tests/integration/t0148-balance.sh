#!/bin/bash
# Balance time: sources by what the nodes' links can send.
# limit: 240
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

# Replicas on a, with one NIC, and on b, with three.
base='{"launch": {"method": "local"},
  "nodes": [{"host": "a", "slots": 3}, {"host": "b", "slots": 3},
            {"host": "c", "slots": 2}],
  "model": {"megatron": {"num_layers": 2, "hidden_size": 256,
    "num_attention_heads": 4, "vocab_size": 2048}},
  "links": {"nic_gbytes_per_s": 0.1, "nodes": {"b": {"nics_per_node": 3},
    "c": {"nic_gbytes_per_s": 10}}},
  "scenarios": [{"name": "s", "mode": "disaggregated", "balance": "time",
    "train": {"tp": 1, "dp": 6, "nodes": ["a", "b"]},
    "infer": {"tp": 2, "nodes": ["c"]}, "warmup": 0, "iterations": 2}]}'

test_time_runs_on_every_rank_as_it_was_planned() {
    cluster
    coord_exits 0 plan cluster.json --json
    local planned file
    planned=$(jq -r '.scenarios[0].plan.digest' out)
    coord_exits 0 cluster.json
    file=$(result s)
    expect_verified "$file"
    [ "$(jq -r .plan.digest "$file")" = "$planned" ] || fail "another plan"
    expect_json "$file" '.scenario.balance == "time" and
        .scenario.balance_links == [{nics: 1, weight: 1},
            {nics: 3, weight: 1}, {nics: 1, weight: 100}]'
    expect_json "$file" '.balance_choice | .asked == "time" and
        .taken == "time" and (.why | test("by size")) and
        ([.candidates[].balance] == ["size", "time"]) and
        .candidates[1].predicted_ms < 0.7 * .candidates[0].predicted_ms'
    # The weights are in the file, the figures are not needed any more.
    jq 'del(.cluster.links)' "$file" >bare.json
    coord_exits 0 rerun bare.json -o again --threshold 100
    expect_json again/*/s.json ".plan.digest == \"$planned\" and
        .balance_choice == null and .scenario.balance == \"time\""
    coord_exits 0 cluster.json --resume "$(dirname "$file")"
}

test_time_says_what_it_took_and_why() {
    cluster
    coord_exits 0 plan cluster.json
    expect_text out 'balance time \(of time\)'
    expect_text out '^  balance +time: predicted .* ms, by size .* ms'
    expect_text out '^  NIC weights a 1 x 1, b 3 x 1, c 1 x 100'
    cluster 'del(.links.nodes.b)'
    coord_exits 0 plan cluster.json
    expect_text out '^  balance +size: .* by time [0-9.]* ms, no less'
    cluster 'del(.links)'
    coord_exits 0 plan cluster.json --json
    expect_json out '.scenarios[0] | .scenario.balance == "size" and
        (.balance_choice.why | test("no figures of links")) and
        .balance_choice.candidates == []'
}

# With auto, the better of both with the strategy that is fastest for it.
test_time_and_auto_are_chosen_together() {
    cluster '.scenarios[0].strategy = "auto"'
    coord_exits 0 plan cluster.json --json
    expect_json out '.scenarios[0] | .strategy_choice.taken as $taken |
        .scenario.strategy == $taken and
        ([.balance_choice.candidates[] |
            select(.balance == "time")][0].strategy == $taken)'
    coord_exits 0 predict cluster.json --json
}

test_bad_weights_and_figures_are_refused() {
    cluster '.scenarios[0].balance = "speed"'
    coord_exits 2 plan cluster.json
    expect_text err 'balance \(s\): must be one of .*"time"'
    cluster '.scenarios[0].balance_links = [{weight: 1}]'
    coord_exits 2 plan cluster.json
    expect_text err 'balance_links \(s\): must be a list of 3 objects, one per node'
    cluster '.links.nodes.d = {}'
    coord_exits 2 plan cluster.json
    expect_text err 'links\.nodes: unknown key "d"'
}

run_tests
