#!/bin/bash
# A result file alone is enough to run its scenario again.
# limit: 240
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

small='{"model_type": "qwen3", "hidden_size": 256, "num_hidden_layers": 4,
  "intermediate_size": 512, "num_attention_heads": 8, "num_key_value_heads": 4,
  "head_dim": 32, "vocab_size": 4096, "tie_word_embeddings": false}'

base=$(jq '. + {model: {config: "models/small.json", num_layers: 2},
  scenarios: [
    {"name": "s", "mode": "disaggregated", "train": {"tp": 2},
     "infer": {"tp": 2, "layout": "vllm"}, "method": ["host", "shm"],
     "warmup": 0, "iterations": 3}]}' <<<"$four_slots")

# Runs the scenario that the others start from, in a folder that is gone
# afterwards; its result is old.json.
first_run() { # [JQ_PROGRAM]
    mkdir -p gone/models
    echo "$small" >gone/models/small.json
    cluster "${1-.}"
    mv cluster.json gone
    coord_exits 0 gone/cluster.json -s 's-method=host' -o gone/results
    mv gone/results/*/'s-method=host.json' old.json
    mv gone/results/*/run.json .
    rm -r gone
}

test_rerun_says_whether_the_ratio_agrees() {
    first_run
    again 0 old.json --set 'scenarios.*.iterations=5'
    mv new/*/'s-method=host.json' five.json
    rm -r new
    # whatever the machine does, a rerun lies between 0.001 and 1000 yardsticks
    jq '.summary.yardstick_ratio.median = 1 | .iterations |= (to_entries |
        map(.value.yardstick_ratio = [0.001, 0.5, 1, 999, 1000][.key] | .value))' \
        five.json >wide.json
    again 0 wide.json
    expect_text out '^vs contiguous: 1 of 1 changed no more than between reruns$'
    rm -r new
    jq '.summary.yardstick_ratio.median = 1e6 | .iterations[].yardstick_ratio =
        1e6' five.json >far.json
    again 0 far.json --json
    expect_json out '.comparisons[0] | .agrees == false and
        .reference.yardstick_ratio_rerun95 == [1e6, 1e6]'
}

test_cluster_of_a_result_is_a_cluster_file() {
    first_run
    jq .cluster old.json | "$coord" plan - --json >plan.json ||
        fail "its cluster is not valid"
    [ "$(jq -r '.scenarios[0].plan.digest' plan.json)" = \
        "$(jq -r .plan.digest old.json)" ] || fail "another plan"
    jq .cluster old.json | "$coord" run - -o again >out 2>err ||
        fail "its cluster does not run: $(cat err)"
    expect_json again/*/'s-method=host.json' '.status == "ok"'
}

again() { # EXIT_CODE [FILE [OPTION...]]
    local code=$1 file=${2-old.json}
    shift 2 2>/dev/null || shift
    coord_exits "$code" rerun "$file" -o new --threshold 100 "$@"
}

# Nothing was launched, and the message says so much.
refused() { # JQ_PROGRAM REGEX...
    local regex
    jq "$1" old.json >edited.json
    again 2 edited.json
    [ ! -e new ] || fail "there are results"
    for regex in "${@:2}"; do
        expect_text err "$regex"
    done
}

test_rerun_makes_the_same_plan_and_compares() {
    first_run
    again 0
    expect_text out '^s-method=host +(same|faster|unclear) '
    # three iterations have no interval
    expect_no_text out 'no more than between reruns'
    local new
    new=$(echo new/*/'s-method=host.json')
    expect_json "$new" '.status == "ok" and .file == "old.json"'
    [ "$(jq -S '[.plan, .schedule | .digest], .scenario, .cluster' "$new")" = \
        "$(jq -S '[.plan, .schedule | .digest], .scenario, .cluster' \
            old.json)" ] || fail "not what was run before"
    mv "$new" second.json
    rm -r new
    again 0 second.json --json
    expect_json out '.comparisons | length == 1 and
        .[0].scenario == "s-method=host" and .[0].judged == "yardstick_ratio"'
}

test_each_result_has_the_command_that_runs_it_again() {
    local file command
    mkdir -p 'else where/models'
    echo "$small" >'else where/models/small.json'
    (cd 'else where' && cluster && "$coord" cluster.json -s 's-method=host' \
        -o "r's" --repeat 2 >out 2>err) ||
        fail "no run: $(cat 'else where/err')"
    file=$(echo 'else where'/"r's"/*/'s-method=host.json')
    command=$(jq -r .replay "$file")
    bash -c "$command --threshold 100 -o again" >out 2>err ||
        fail "$command: $(cat err)"
    expect_text out '^s-method=host '
    expect_json again/*/'s-method=host.json' '(.repeats | length) == 2'
    mv 'else where' moved
    coord_exits 0 report -v moved/"r's"
    expect_text out '^to run a scenario again:$'
    command=$(grep '^  .* rerun ' out)
    bash -c "$command --threshold 100 -o third" >out 2>err ||
        fail "not from where it is: $(cat err)"
    expect_json third/*/'s-method=host.json' '.status == "ok"'
    run_coord report moved/"r's"
    expect_no_text out 'rerun'
}

test_rerun_keeps_a_checkpoint_where_it_is() {
    local tensor='"w": {"dtype": "F32", "shape": [64, 8], "data_offsets": [0, 2048]}'
    mkdir -p gone/weights
    # A header of 80 bytes, its length before it in little endian.
    printf 'P\0\0\0\0\0\0\0%-80s' "{$tensor}" >weights.safetensors
    head -c 2048 /dev/urandom >>weights.safetensors
    mkdir weights
    mv weights.safetensors weights
    jq '. + {model: {checkpoint: "../weights", unknown_tensors: "replicate"},
        scenarios: [{name: "s-method=host", train: {tp: 2}, infer: {tp: 4},
            warmup: 0, iterations: 1}]}' <<<"$four_slots" >gone/cluster.json
    coord_exits 0 gone/cluster.json -o gone/results
    mv gone/results/*/s*.json old.json
    rm -r gone
    again 0
}

test_rerun_refuses_another_plan_and_says_what_differs() {
    first_run
    refused '.cluster.model.num_layers = 3' 'plan would differ' \
        'model\.[a-z]+ is .* in the file and .* now'
    refused '.cluster.scenarios[0].infer.layout = "hf"' \
        'scenario\.infer\.layout is "vllm" in the file and "hf" now'
    refused '.cluster.scenarios[0].infer |= (.tp = 1 | .etp = 1)' \
        'scenario\.infer\..* 2 in the file and 1 now' \
        'world has 4 ranks in the file and 3 now'
    refused '.plan.digest = "00"' 'digest 00 in the file, [0-9a-f]+ now' \
        'nothing else differs'
}

test_rerun_refuses_what_is_no_result() {
    first_run
    head -c 3000 old.json >cut.json
    again 2 cut.json
    expect_text err 'cut\.json:[0-9]+:[0-9]+: '
    echo '{"a": 1}' >foreign.json
    again 2 foreign.json
    expect_text err 'not a record of a scenario'
    cluster
    coord_exits 2 rerun cluster.json
    expect_text err 'cluster.json: not a record of a scenario'
    coord_exits 2 rerun .
    expect_text err '^error: \.: is a folder; name the result of one scenario in it'
    again 2 absent.json
    expect_text err 'absent.json: cannot open'
    refused '.schema_version = 99' 'schema_version 99'
    refused 'del(.cluster.scenarios) | .file = "c.json"' \
        'cluster: incomplete: build .* c\.json again instead'
    refused '.plan = null' 'plan\.digest: is missing'
    refused '.cluster.nodes[0].slots = "x"' '\$\.nodes\[0\]\.slots'
    coord_exits 2 rerun
    expect_text err 'missing argument: "rerun" takes RESULT.json'
}

test_rerun_refuses_to_become_several() {
    first_run
    again 2 old.json --set 'scenarios.*.method=["host","tcp"]'
    [ ! -e new ] || fail "there are results"
    expect_text err '--set makes 2 scenarios, but rerun compares one'
}

test_rerun_refuses_the_record_of_a_whole_run() {
    first_run
    again 2 run.json
    expect_text err 'describes a whole run; name the file of one'
}

test_rerun_takes_secrets_from_the_environment() {
    first_run '.launch.env = {"MY_TOKEN": "hunter2", "NCCL_DEBUG": "WARN"}'
    expect_no_text old.json hunter2
    again 2
    expect_text err 'launch\.env\.MY_TOKEN: is a secret.*; set MY_TOKEN in'
    MY_TOKEN=hunter3 again 0
    [ "$(grep -rl hunter new)" = "" ] || fail "a secret in the results"
}

test_rerun_on_other_nodes() {
    first_run '.nodes = [{host: "a", slots: 2}, {host: "b", slots: 2}]
        | .scenarios[0].train.nodes = ["a"] | .scenarios[0].infer.nodes = ["b"]
        | .links = {nodes: {b: {nic_gbytes_per_s: 1}},
                    methods: {tcp: {nodes: {a: {link_gbytes_per_s: 2}}}}}'
    again 0 old.json --nodes c,d
    local new
    new=$(echo new/*/'s-method=host.json')
    expect_json "$new" '.scenario.train.nodes == ["c"] and
        .scenario.infer.nodes == ["d"] and
        ([.environment[].host] == ["c", "d"]) and
        .cluster.links == {methods: {tcp: {}}}'
    again 2 old.json --nodes c
    expect_text err '1 hosts given for the 2 nodes of old.json'
    again 2 old.json --nodes c,c
    expect_text err '--nodes: host c is listed twice'
    again 2 old.json --nodes 'c[1-2]:3'
    expect_text err 'host c1 has 3 slots, but replaces a with 2'
    rm -r new
    printf 'e slots=2\nf\n' >hosts
    again 0 old.json --hostfile hosts --set 'scenarios.*.iterations=4'
    new=$(echo new/*/'s-method=host.json')
    expect_json "$new" '([.environment[].host] == ["e", "f"]) and
        (.iterations | length == 4)'
}

run_tests
