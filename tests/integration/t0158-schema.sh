#!/bin/bash
# The JSON Schemas, as jsonschema, a validator by others, understands them.
# limit: 240
# long
# shellcheck source=../lib/recorded.sh
. "$(dirname "$0")/../lib/recorded.sh"
python3 -c 'import jsonschema' 2>/dev/null || skip_all "no python3-jsonschema"

base='{
  "name": "t", "launch": {"method": "local"},
  "nodes": [{"host": "localhost", "slots": 4}],
  "model": {"config": "'$RF_TOP'/models/qwen3-0.6b.json", "num_layers": 1},
  "scenarios": [{"name": "one", "train": {"tp": 2}, "infer": {"tp": 2}}]}'

test_all_examples_validate() {
    "$coord" schema cluster >cluster.schema
    "$schema" validate cluster.schema "$RF_TOP"/cluster.json \
        "$RF_TOP"/examples/*.json || fail "an example does not validate"
}

test_the_reader_and_the_schema_know_the_same_keys() {
    "$coord" schema cluster >cluster.schema
    cluster
    "$schema" keys cluster.schema cluster.json "$coord" ||
        fail "the reader and the schema differ"
}

all_refused() { # SCHEMA FILE...
    "$schema" validate "$@" >said
    cat said
    [ "$(wc -l <said)" = $(($# - 1)) ] ||
        fail "the schema takes some of: ${*:2}"
}

# Plans the file as each filter changes it. FOLDER keeps what it was then.
plan_each() { # EXIT_CODE FOLDER FILTER...
    local filter expected=$1 folder=$2 n=0
    shift 2
    mkdir "$folder"
    for filter; do
        cluster "$filter"
        coord_exits "$expected" plan --json cluster.json
        n=$((n + 1))
        cp cluster.json "$folder/$n.json"
    done
}

test_lists_and_variables_are_taken_where_the_reader_takes_them() {
    plan_each 0 taken '.["$schema"] = "cluster.schema"' \
        '.scenarios[0].train.tp = [1, 2]' \
        '.scenarios[0].strategy = ["auto", "broadcast"]' \
        '.scenarios[0].method = ["tcp", "gloo"]' \
        '.scenarios[0].group = ["rdt", "slime"]' \
        '.scenarios[0].group = {by: ["layer", "bytes:1GB"]}' \
        '.scenarios[0].iterations = {min: 6, max: [10, 20], ci_percent: 2}' \
        '.scenarios[0].iterations = [5, 6]' \
        '.scenarios[0].iterations = [{max: 10, ci_percent: 2}]' \
        '.scenarios[0].train = [{tp: 1}, {tp: 2}]' \
        '.scenarios[0].group = ["rdt", {by: "layer"}]' \
        '.scenarios[0].model = {num_layers: [1, 2]}' \
        '.scenarios[0].model = [{name: "a", num_layers: 1}, .model]' \
        '.scenarios[0].train = {pp_layers: [1]}' \
        '.scenarios[0].train.nodes = ["localhost"]' \
        '.scenarios[0].train.dtype = ["bfloat16", "F32"]' \
        '.variables = {a: [1, 2]} | .scenarios[0].train.tp = "$a"' \
        '.variables = {a: 1} | .scenarios[0].train.tp = ["$a", 2]' \
        '.variables = {a: {tp: 1}} | .defaults = {train: "$a"}' \
        '.defaults = {train: {tp: [1, 2]}} | del(.scenarios[0].train)'
    plan_each 2 refused '.scenarios[0].train.tp = []' \
        '.scenarios[0].train.tp = [1, 1]' '.scenarios[0].train.tp = [[1]]' \
        '.scenarios[0].train = [{tp: [1, 2]}]' \
        '.scenarios[0].infer = [[{tp: 1}]]' '.scenarios[0].load = [[]]' \
        '.scenarios[0].group = ["rdt", null]' \
        '.scenarios[0] += {method: "ucx", memory: "gpu"}' \
        '.scenarios[0].slow = [true, false]' '.scenarios[0].name = ["a"]' \
        '.model.num_layers = [1, 2]' '.defaults = {name: "x"}' \
        '.["$schema"] = 1' 'del(.scenarios)' 'del(.scenarios[0].name)' \
        'del(.nodes[0].slots)' '.scenarios[0].train.tp = 0' \
        '.scenarios[0].train.tp = 65537' '.scenarios[0].method = "nonesuch"' \
        '.scenarios[0].train.pp_layers = [[1], [1]]' \
        '.links = {link_gbytes_per_s: 0}' '.links = {fabric: "nonesuch"}' \
        '.timeline = {train_s: -1}' '.nodes = []' '.launch.method = "rsh"'
    "$coord" schema cluster >cluster.schema
    "$schema" validate cluster.schema taken/*.json ||
        fail "the schema refuses what the reader takes"
    all_refused cluster.schema refused/*.json
}

# Objects of this schema have no other keys than it says.
test_plans_have_what_the_schema_says() {
    "$coord" schema plan >plan.schema
    cluster '.nodes = [{host: "a", slots: 2}, {host: "b", slots: 2},
            {host: "c", slots: 2}]
        | .links = {link_gbytes_per_s: 1, nic_gbytes_per_s: 1,
            nodes: {b: {nics_per_node: 2}}} | .model.revision = "main"
        | .scenarios[0] += {mode: "disaggregated", train: {tp: 2, dp: 2},
            strategy: "auto", balance: "time", model: {num_layers: [1, 2]}}'
    "$coord" plan --full cluster.json >own-models.json || fail "own models"
    cluster '.nodes = [{host: "a", slots: 2}, {host: "b", slots: 2}]
        | .scenarios[0] += {strategy: "gather_broadcast", infer: {tp: 2, pp: 1},
            mode: "disaggregated", group: "rdt"}'
    "$coord" plan --full cluster.json >relays.json || fail "relays"
    cluster '.scenarios[0] += {infer: [{tp: 2}, {tp: 1, pp: 1}],
        mode: "disaggregated", train: {}}'
    "$coord" plan --full cluster.json >pools.json || fail "pools"
    "$coord" plan --json "$RF_TOP/models/qwen3-0.6b.json" >model.json ||
        fail "a model"
    "$coord" plan --json "$RF_TOP/examples/sweep.json" >sweep.json ||
        fail "sweep"
    set -- own-models.json relays.json pools.json model.json sweep.json
    "$schema" validate plan.schema "$@" || fail "a plan does not validate"
    # Only a plan that fails has candidates without a time.
    "$schema" seen plan.schema "$@" |
        grep -vE "^no file has .* at .*'candidates'" >differs
    expect_no_text differs '^(no|every) file'
}

test_a_changed_plan_does_not_validate() {
    local change n=0
    "$coord" schema plan >plan.schema
    cluster
    "$coord" plan --full cluster.json >full.json || fail "full"
    for change in 'del(.model.bytes)' '.model.more = 1' '.scenarios[0].more = 1' \
        'del(.scenarios[0].traffic)' '.scenarios[0].plan.plan_ms = "1"' \
        '.scenarios[0].memory[0].rank = -1' '.scenarios[0].memory[0].host = 1' \
        'del(.scenarios[0].ranks[0].train[0].pieces[0].offset)' \
        '.scenarios[0].transfers[0].src = 0.5' \
        '.scenarios[0].scenario.more = 1' '.scenarios[0].traffic = [[0, 1]]'; do
        n=$((n + 1))
        jq "$change" full.json >"changed-$n.json"
    done
    all_refused plan.schema changed-*.json
}

test_other_names_are_refused() {
    coord_exits 2 schema clutser
    expect_text err 'error: no schema "clutser" \(did you mean "cluster"\?\)'
}

# Devices, and ways around them, are not everywhere.
test_schemas_of_results_describe_every_field() {
    local unseen="'(device|device_ms|gpus|copies|over_tcp|unmapped|registration|"
    unseen+="rdma|network)'" # t0401 has nodes with networks of their own
    record_everything
    expect_described "$unseen"
}

run_tests
