#!/bin/bash
# Other nodes and other values without editing the cluster file.
# limit: 120
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

# A file for hosts that nobody has.
base=$(jq '. + {nodes: [{host: "gpu-a", slots: 2}, {host: "gpu-b", slots: 2}],
  model: {config: "model.json"},
  scenarios: [
    {"name": "split", "mode": "disaggregated", "train": {"tp": 2},
     "infer": {"tp": 2, "layout": "vllm"}, "warmup": 0, "iterations": 9},
    {"name": "shared", "train": {"tp": 2}, "infer": {"tp": 1, "layout": "vllm"},
     "warmup": 0, "iterations": 9}]}' <<<"$four_slots")

files() { # [JQ_PROGRAM]
    cluster "${1-.}"
    echo '{"model_type": "qwen3", "hidden_size": 256, "num_hidden_layers": 4,
      "intermediate_size": 512, "num_attention_heads": 8, "head_dim": 32,
      "num_key_value_heads": 4, "vocab_size": 4096,
      "tie_word_embeddings": false}' >model.json
}

test_a_run_uses_other_hosts_and_values() {
    files
    printf '# mine\nhere-1 slots=2\nhere-2 slots=2\n' >hosts
    coord_exits 0 cluster.json -o results --hostfile hosts \
        --set model.num_layers=2 --set 'scenarios.*.iterations=3' \
        --set scenarios.shared.method=tcp
    expect_json "$(result split)" '(.iterations | length == 3) and
        .scenario.method == "host" and
        ([.environment[].host] == ["here-1", "here-2"]) and
        .model.name == "model.json (num_layers 2)"'
    expect_json "$(result shared)" '.scenario.method == "tcp"'
}

test_a_result_records_what_was_run() {
    files
    coord_exits 0 cluster.json -o results -s split --nodes 'here-[1-2]' \
        --set model.num_layers=2 --set 'scenarios.*.iterations=3'
    cp "$(result split)" result.json
    cp results/*/run.json .
    rm -r results cluster.json model.json
    expect_json result.json '.argv | index("--nodes") != null and
        index("model.num_layers=2") != null'
    expect_json result.json '[.cluster.nodes[] | .host, .slots] ==
        ["here-1", 2, "here-2", 2]'
    expect_json run.json '.configuration.model.num_layers == 2'
    jq .cluster result.json | "$coord" plan - --json >plan.json ||
        fail "its cluster is not valid"
    [ "$(jq -r '.scenarios[0].plan.digest' plan.json)" = \
        "$(jq -r .plan.digest result.json)" ] || fail "another plan"
}

test_every_reader_of_a_cluster_file_takes_overrides() {
    files
    coord_exits 0 plan cluster.json --set 'scenarios[1].train.tp=4' --json
    expect_json out '.scenarios[1].scenario.train.tp == 4'
    coord_exits 0 check cluster.json --nodes 'x,y,z:2'
    expect_text out ' x'
    coord_exits 0 predict cluster.json --json --set links.copy_gbytes_per_s=10
    expect_json out '.predictions | length == 2'
    "$coord" plan - --set name=piped --set model.config="$PWD/model.json" \
        <cluster.json >out || fail "standard input is not read"
}

test_mistakes_are_those_of_the_file() {
    files
    coord_exits 2 plan cluster.json --set 'scenarios.*.itertions=3'
    cp err set
    jq '.scenarios[].itertions = 3' cluster.json >edited
    mv edited cluster.json
    coord_exits 2 plan cluster.json
    cmp -s err set || fail "not the same error"
    expect_text err 'cluster.json: \$\.scenarios\[0\] \(split\): unknown key "itertions" \(did you mean "iterations"'
    coord_exits 2 plan cluster.json --hostfile none
    expect_text err '--hostfile: none: cannot open'
    [ ! -e results ] || fail "something was run"
}

test_added_hosts_take_the_places_of_dropped_ones_in_scenarios() {
    files '.scenarios[0].train.nodes = ["gpu-a"]
        | .scenarios[0].infer.nodes = ["gpu-b"]'
    coord_exits 0 plan cluster.json --json --nodes 'gpu-b,c'
    expect_json out '.scenarios[0].scenario | .train.nodes == ["c"] and
        .infer.nodes == ["gpu-b"]'
    coord_exits 2 plan cluster.json --nodes 'gpu-b'
    expect_text err '\$\.scenarios\[0\]\.train\.nodes\[0\] \(split\): unknown node "gpu-a"'
    coord_exits 0 plan cluster.json --nodes 'gpu-b,c' \
        --set 'scenarios.0.train.nodes=["c"]'
}

test_counted_nodes_follow_the_hosts() {
    files '.scenarios |= [.[0]] | .scenarios[0].train.nodes = 1
        | .scenarios[0].infer.nodes = 2 | .scenarios[0].iterations = 3
        | .scenarios[0].infer.tp = 4'
    coord_exits 2 cluster.json -o results --nodes 'z[3-1]'
    coord_exits 0 cluster.json -o results --nodes 'z[1-3]:2'
    expect_json "$(result split)" '.scenario.train.nodes == ["z1"] and
        .scenario.infer.nodes == ["z2", "z3"]'
    coord_exits 2 cluster.json --nodes 'z[1-2]'
    expect_text err '\$\.scenarios\[0\]\.infer\.nodes \(split\): needs 2 nodes, but the cluster has 2 and other sides take 1'
}

test_a_model_alone_has_values_but_no_nodes() {
    files
    coord_exits 0 plan model.json --json --set num_hidden_layers=2
    expect_json out '.model.num_layers == 2'
    coord_exits 2 plan model.json --nodes a
    expect_text err 'model.s config.json has no nodes'
}

test_hosts_may_come_through_a_pipe() {
    local pid
    files
    coord_exits 0 plan cluster.json --hostfile <(echo "localhost slots=4")
    expect_no_text err 'waiting'
    mkfifo pipe
    "$coord" plan cluster.json --hostfile pipe >out 2>err &
    pid=$!
    wait_until 20 "a writer is asked for" grep -q '^warning: pipe: waiting for its writer$' err
    echo "localhost slots=4" >pipe
    wait "$pid" || fail "the plan failed: $(cat err)"
}

run_tests
