#!/bin/bash
# advise: meshes for the slots of a cluster file, without reaching a node.
# limit: 120
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

# Hosts that do not exist.
base='{"nodes": [{"host": "no.invalid", "slots": 4},
    {"host": "none.invalid", "slots": 4}],
  "model": {"megatron": {"num_layers": 4, "hidden_size": 64,
    "num_attention_heads": 4, "vocab_size": 512, "num_experts": 8,
    "moe_ffn_hidden_size": 32}},
  "scenarios": [{"name": "s", "method": "nccl", "train": {"tp": 2},
    "infer": {"tp": 4}}]}'

test_choices_are_ranked_and_explained() {
    cluster
    coord_exits 0 advise cluster.json
    expect_text out 'training and .* inference meshes are possible'
    expect_text out '^4b-a-gpu: .*\(ChatLearn'
    expect_text out 'Assumed: 80 GB a GPU'
    expect_text out '^First choice, to paste into the scenario:$'
    { echo '{' && sed -n '/^  "/p' out && echo '}'; } >pasted
    expect_json pasted '.train.dp >= 1 and .infer.tp >= 1'
}

# A rule says what it found with GPUs, which is how the meshes were judged.
test_each_broken_rule_says_why() {
    cluster '.scenarios[0].method = "host"'
    coord_exits 0 advise cluster.json
    expect_text out '^4b-a-gpu: training: [0-9.]+ billion parameters'
}

# Micro-batches of 2, which no mesh is to blame for.
test_a_rule_without_weight_is_a_hint() {
    cluster '.timeline = {"global_batch": 64, "micro_batch": 2}'
    coord_exits 0 advise cluster.json
    expect_text out '^hint micro-batch-1: training: micro-batches of 2'
    expect_text out '^train .* rules broken$'
    expect_text out '^B/GPU: billion parameters'
    expect_no_text out '^(TP|CP|PP|EP|ETP|DP|one rank).*micro-batch-1'
}

# A slot is a GPU of the cluster to be, whatever memory a method takes here.
test_the_method_does_not_change_the_meshes() {
    local method
    for method in nccl host; do
        cluster ".scenarios[0].method = \"$method\""
        coord_exits 0 advise cluster.json --json
        jq '[.scenarios[0].choices[] | {train, parameters_per_gpu, weight}] |
            sort' out >"meshes-$method"
    done
    expect_json meshes-host 'length > 8 and all(.parameters_per_gpu > 0)'
    diff meshes-nccl meshes-host || fail "other meshes with method host"
}

test_a_choice_runs_as_a_scenario() {
    cluster '.nodes = [{"host": "a", "slots": 4}] | .launch.method = "local" |
        .scenarios[0].method = "host"'
    coord_exits 0 advise cluster.json --json
    expect_json out '.scenarios[0].choices | length > 8 and
        ([.[].weight] | . == sort)'
    jq --slurpfile advised out '.scenarios = [$advised[0].scenarios[0].choices
        | .[0], .[-1] | .scenario] | .scenarios[0].name = "first" |
        .scenarios[].iterations = 1' cluster.json >chosen.json
    coord_exits 0 chosen.json
    expect_verified "$(result first)"
    expect_verified "$(result s)"
}

test_rules_follow_the_timeline() {
    cluster '.timeline = {"memory_gbytes": 0.000001, "sequence_length": 9000}'
    coord_exits 0 advise cluster.json
    expect_text out '^Assumed: flash attention, which keeps no scores'
    expect_text out '^fits-training: .*; a GPU has 1e-06 GB'
    expect_text out '^None of these fits; the nearest, to paste into the scenario:$'
    expect_no_text out 'Assumed: 80 GB'
    cluster '.timeline = {"recompute": "some"}'
    coord_exits 2 advise cluster.json
    expect_text err 'timeline.recompute'
}

test_check_and_advise_assume_the_same_and_say_so() {
    cluster '.nodes = [{"host": "a", "slots": 4}] | .launch.method = "local" |
        .scenarios[0].method = "host" | .timeline = {"sequence_length": 4096}'
    coord_exits 0 check cluster.json
    expect_text out '^I s: assumed: 80 GB a GPU .*; flash attention'
    run_coord advise cluster.json
    expect_text out '^Assumed: 80 GB a GPU .*; flash attention'
    cluster '.timeline = {"train_global_batch_size": 512}'
    coord_exits 2 advise cluster.json
    expect_text err 'unknown key "train_global_batch_size"; .*timeline.global_batch'
}

# Strategies differ in what a refit takes, not in which meshes there are.
test_meshes_are_listed_once_for_several_strategies() {
    cluster '.scenarios[0].strategy = ["send_recv", "broadcast"] |
        .scenarios += [.scenarios[0] | .name = "cp" | .train.cp = 2 |
            .strategy = "broadcast"]'
    coord_exits 0 advise cluster.json
    [ "$(grep -c 'meshes are possible' out)" = 2 ] || fail "not twice"
    expect_text out "^s-strategy=broadcast: the meshes of s-strategy=send_recv; -s 's-strategy=broadcast' predicts"
    coord_exits 0 advise cluster.json -s s-strategy=broadcast
    expect_text out '^s-strategy=broadcast: .* billion parameters'
    run_coord advise cluster.json --json
    expect_json out '.scenarios | length == 3 and all(.[]; .choices != [])'
}

test_explicit_meshes_get_no_advice() {
    cluster '.model = {tensor: {shape: [64, 64]}} | .scenarios[0] |=
        (.train = {layout: "spec", mesh: [1, 4], spec: "S1R"} |
         .infer = {layout: "spec", mesh: [1, 4], spec: "RS1"})'
    coord_exits 0 advise cluster.json
    [ ! -s out ] || fail "printed $(cat out)"
    expect_text err 's: layout spec has a mesh of its own: no advice'
}

# Infeasible batches come last, however fast their refit is.
test_meshes_that_the_batch_does_not_fill_come_last() {
    cluster '.timeline = {"global_batch": 2, "micro_batch": 1}'
    coord_exits 0 advise cluster.json --json
    expect_json out '.scenarios[0].choices | (.[0].train.dp <= 2) and
        all(.[]; ([.broken[].rule] | index("batch-divides") != null) ==
            (.train.dp > 2))'
}

test_assumed_figures_are_named() {
    cluster
    coord_exits 0 advise cluster.json
    expect_text out '^Assumed: copy_gbytes_per_s 100, link_gbytes_per_s 10, link_latency_us 50, per_op_us 2; give '
    coord_exits 0 advise cluster.json --json
    expect_json out '.scenarios[0] | .links_assumed and .assumed ==
        {copy_gbytes_per_s: 100, link_gbytes_per_s: 10, link_latency_us: 50, per_op_us: 2}'
    cluster '.links = {copy_gbytes_per_s: 50, nic_gbytes_per_s: 3, link_latency_us: 5}'
    coord_exits 0 advise cluster.json
    expect_text out '^Assumed: per_op_us 2; give '
    cluster '.links = {copy_gbytes_per_s: 50, nic_gbytes_per_s: 3, link_latency_us: 5,
        per_op_us: 1}'
    coord_exits 0 advise cluster.json
    expect_no_text out 'per_op_us|gbytes_per_s'
    run_coord advise cluster.json --json
    expect_json out '.scenarios[0] | (.links_assumed | not) and .assumed == {}'
}

# On a busy machine ranks may miss the few milliseconds in which they are to copy.
has_been_probed() {
    rm -rf results
    coord_exits 0 cluster.json
    jq -e '.bound.probe.before.nodes | length > 0' "$(result s)"
}

test_advise_takes_figures_from_results() {
    cluster '.nodes = [{"host": "a", "slots": 4}] | .launch.method = "local" |
        .scenarios[0] += {method: "host", iterations: 2}'
    wait_until 30 'a probe' has_been_probed
    jq '[.bound.probe.before, .bound.probe.after | .nodes[]?.copy_gbytes_per_s] | max' \
        "$(result s)" >probed
    coord_exits 0 advise cluster.json results
    expect_text out '^Assumed: per_op_us 2; give "links" or results '
    run_coord advise cluster.json results --json
    expect_json out '.scenarios[0] | .links_assumed == false and .assumed == {per_op_us: 2}'
    jq '[.scenarios[0].choices[].predicted_ms]' out >measured
    run_coord advise cluster.json --json \
        --set "links.copy_gbytes_per_s=$(cat probed)" \
        --set "links.single_copy_gbytes_per_s=$(jq '[.bound.probe.before,
            .bound.probe.after | .nodes[]?.single_copy_gbytes_per_s] | max' "$(result s)")"
    jq '[.scenarios[0].choices[].predicted_ms]' out | diff measured - ||
        fail "other times than with the same figures"
    coord_exits 2 advise cluster.json nowhere
    expect_text err nowhere
    cluster '.scenarios[0].method = "host"'
    coord_exits 2 advise cluster.json results
    expect_text err 'no result has probes of its nodes'
}

test_advise_needs_nodes() {
    cluster 'del(.nodes)'
    coord_exits 2 advise cluster.json
    expect_text err 'nodes'
}

test_the_demo_needs_no_file() {
    coord_exits 0 predict --demo 140GB
    expect_text out 'InfiniBand NDR.* 2.85 .* 7.11 %'
    expect_text out 'gather and broadcast.* 9.8 '
    coord_exits 2 predict --demo 1GB cluster.json
    expect_text err 'remove "cluster.json"'
    coord_exits 2 predict --demo cluster.json
    expect_text err '140GB .*70B'
}

test_the_demo_shows_a_disk_as_one_pass_too_and_says_what_times_are_worth() {
    coord_exits 0 predict --demo
    expect_text out '  >?s +one pass  verdict'
    expect_text out 'NVMe.* 40.1 +20.10 s +acceptable'
    expect_text out 'Hard disk.* 1400 +11.7 min +slow'
    cp out whole
    for size in 140 140gb 70B =140GB; do
        # shellcheck disable=SC2086 # two words
        case $size in =*) run_coord predict --demo$size ;; *) run_coord predict --demo $size ;; esac
        expect_exit 0
        diff whole out || fail "$size is not 140 GB"
    done
}

test_the_demo_shows_parts_beside_their_sums() {
    run_coord predict --demo
    expect_text out 'gather 2.10 s \+ transfer 5.60 s \+ broadcast 2.10 s = 9.80 s'
    expect_text out 'handle 1.0 ms \+ serialise it 1.0 ms \+ .* 1.0 ms = 3.0 ms'
    expect_no_text out '^handles$'
    run_coord predict --demo --explain
    expect_text out '^handles$'
    expect_text out '^gather for inference$'
    run_coord predict --demo --json
    expect_json out '([.architectures[].ways[] | select(.fabric == "ipc")] |
        length == 2 and all(.predicted_ms == 1)) and
        ([.parts[] | select(.fabric == "demo-gather").ms | round] ==
            [2100, 5600, 2100]) and (.parts | length == 6)'
}

test_options_of_the_demo_are_honoured_or_refused() {
    coord_exits 0 predict --demo --set timeline.rollout_s=60 --set timeline.other_s=5 --json
    expect_json out '.rollout_s == 60 and .other_s == 5 and
        (.architectures[0].ways[0].step_s - 165.2 | fabs < 0.001)'
    for option in "-s x" --slow "--nodes a" "--hostfile f" \
        "--set model.num_layers=2" "--set timeline.refits=2" "--explain --json"; do
        # shellcheck disable=SC2086 # several words
        coord_exits 2 predict --demo $option
    done
    coord_exits 2 predict --explain cluster.json
    expect_text err 'explain.*demo'
}

test_a_fabric_predicts_copies_of_gpus_alone() {
    cluster '.links.fabric = "h100" | .nodes |= .[:1] |
        .scenarios[0].method = ["host", "nccl"] | .scenarios[0].train.tp = 4'
    coord_exits 0 predict cluster.json --json
    expect_json out '.predictions | .[1].predicted_ms > 0 and
        (.[0] | .predicted_ms == null and (.note | test("no figures for copying")))'
    coord_exits 0 predict cluster.json --json --set links.copy_gbytes_per_s=20
    expect_json out '.predictions | all(.predicted_ms > 0)'
}

test_nominal_rates_of_nics_are_noted_for_tcp() {
    cluster '.links = {fabric: "ib-ndr", copy_gbytes_per_s: 20} |
        .scenarios[0] += {mode: "disaggregated", method: ["host", "ucx"]} |
        .scenarios[0].train.tp = 4'
    coord_exits 0 predict cluster.json
    expect_text out '^s-method=host +host +send_recv +[0-9.e-]+ \[1\] +figures'
    expect_text out '^s-method=ucx +ucx +send_recv +[0-9.e-]+ +figures'
    expect_text out '^\[1\] .*nic_gbytes_per_s.*nominal.*TCP'
    coord_exits 0 predict cluster.json --json
    expect_json out '.predictions | .[1].note == null and
        (.[0] | .predicted_ms > 0 and (.note | test("TCP")))'
    coord_exits 0 predict cluster.json --json --set links.methods.host.nic_gbytes_per_s=5
    expect_json out '.predictions[0].note == null'
    coord_exits 0 predict cluster.json --json --set links.nic_gbytes_per_s=5
    expect_json out '.predictions[0].note == null'
}

test_every_fabric_is_documented() {
    local docs=$RF_TOP/docs/FABRICS.md name
    sed -n 's/^| `\([a-z0-9-]*\)` .*/\1/p' "$docs" | sort >documented
    cluster '.links.fabric = "none"'
    while read -r name; do
        jq --arg name "$name" '.links.fabric = $name' cluster.json >named.json
        coord_exits 0 plan named.json
    done <documented
    sed -n 's/^    {"\([a-z0-9-]*\)".*/\1/p' \
        "$RF_TOP/coordinator/config/links/links.c" | sort | diff - documented
}

run_tests
