#!/bin/bash
# Strategy auto: what runs and is recorded is one of the other strategies.
# limit: 240
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

# Links so slow that passing on inside b pays, or memory so slow that it does
# not.
base='{"launch": {"method": "local"},
  "nodes": [{"host": "a", "slots": 2}, {"host": "b", "slots": 2}],
  "model": {"megatron": {"num_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "vocab_size": 512}},
  "links": {"link_gbytes_per_s": 0.01, "copy_gbytes_per_s": 1},
  "scenarios": [{"name": "s", "mode": "disaggregated", "strategy": "auto",
    "train": {"tp": 1, "nodes": ["a"]},
    "infer": {"tp": 1, "dp": 2, "nodes": ["b"]},
    "warmup": 0, "iterations": 2}]}'
swap='.links = {"link_gbytes_per_s": 1, "copy_gbytes_per_s": 0.01}'

test_auto_runs_what_it_recorded() {
    cluster
    coord_exits 0 cluster.json
    local file
    file=$(result s)
    expect_verified "$file"
    expect_json "$file" '.scenario.strategy == .strategy_choice.taken and
        .scenario.strategy != "send_recv" and .strategy_choice.asked == "auto"'
    "$coord" plan cluster.json --set 'scenarios.*.strategy=x' 2>err && fail "ran"
    expect_json "$file" "[.strategy_choice.candidates[].predicted_ms] |
        length == $(sed 's/.* one of //; s/, "auto".*//' err | wc -w) and
        min * 1.01 >= .[1]"
    # Every command comes to the same operations.
    jq '.scenarios[].strategy = $s' --arg s "$(jq -r .scenario.strategy "$file")" \
        cluster.json >named.json
    coord_exits 0 predict cluster.json "$(dirname "$file")" --json
    expect_json out '.predictions[0] | .measured_ms > 0 and
        .strategy != "auto"'
    run_coord predict named.json "$(dirname "$file")" --json
    expect_json out '.predictions[0].measured_ms > 0'
    coord_exits 0 rerun "$file" -o again --threshold 100
    [ "$(jq .schedule.digest "$file")" = \
        "$(jq .schedule.digest again/*/s.json)" ] || fail "another schedule"
    expect_json again/*/s.json '.strategy_choice == null'
    coord_exits 0 cluster.json --resume "$(dirname "$file")"
}

test_auto_follows_the_figures_and_says_why() {
    cluster
    coord_exits 0 plan cluster.json
    expect_text out 'strategy broadcast \(auto\)'
    expect_text out '^  broadcast \(taken\) .* link a out'
    expect_text out '^  send_recv .* link a out'
    coord_exits 0 check cluster.json
    cluster "$swap"
    coord_exits 0 plan cluster.json --json
    expect_json out '.scenarios[0] | .scenario.strategy == "send_recv" and
        .strategy_choice.links_assumed == false'
    cluster 'del(.links)'
    coord_exits 0 plan cluster.json
    expect_text out 'assumed +links without figures'
}

test_serialized_gather_broadcast_is_compared() {
    cluster '.scenarios[0].serialize = true'
    coord_exits 0 plan cluster.json --json
    expect_json out '.scenarios[0].strategy_choice.candidates[] |
        select(.strategy == "gather_broadcast") |
        .predicted_ms > 0 and .note == null'
    cluster '.scenarios[0] += {serialize: true, strategy: "gather_broadcast"}'
    coord_exits 0 predict cluster.json
    expect_text out '^s +host +gather_broadcast +[0-9]'
}

run_tests
