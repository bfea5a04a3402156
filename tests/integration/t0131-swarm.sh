#!/bin/bash
# Many nodes: a real coordinator and the agents of a whole cluster in one
# process. Speed and memory at a thousand nodes: make bench-swarm.
# limit: 120
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base='{
  "name": "t", "launch": {"method": "manual"},
  "control": {"address": "127.0.0.1"},
  "nodes": [range(32) | {"host": "node-\(.)", "slots": 8}],
  "model": {"megatron": {"num_layers": 2, "hidden_size": 64,
    "num_attention_heads": 8, "vocab_size": 128}},
  "scenarios": [{"name": "s", "mode": "disaggregated", "method": "null",
    "train": {"tp": 8, "dp": 16}, "infer": {"tp": 8, "dp": 16}, "warmup": 0,
    "iterations": 5}]}'

test_a_swarm_of_agents_runs_a_scenario_to_its_end() {
    export XDG_CACHE_HOME=$PWD/cache
    jq -n "$base" >cluster.json
    "$RF_BUILD_DIR/swarm" "$coord" cluster.json results >figures 2>err || {
        sed 's/^/  err: /' err >&2
        fail "the swarm did not come to its end"
    }
    expect_json figures '.nodes == 32 and .ranks == 256'
    expect_json figures '.fill_rounds == 5 and .run_rounds == 5'
    # Each mark was reached, in order.
    expect_json figures '[.join_ms, .start_ms, .exchange_ms, .fill_p99_ms,
        .store_ms] | all(. > 0) and add < 60000'
    expect_json "$(result s)" '.status == "ok" and
        (.iterations | length == 5 and all(.ranks | length == 256))'
    [ -z "$(find cache -type f)" ] || fail "keys are left"
}

run_tests
