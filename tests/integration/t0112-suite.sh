#!/bin/bash
# Keys of cluster.json for many scenarios: defaults, variables, slow ones,
# members that cannot work; and such a run stopped and resumed.
# limit: 300
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

# 2 x 3 x 3 members, of which those with three ranks per replica are impossible,
# and a slow one.
base=$(jq '. + {
    variables: {tp: [1, 2, 3], rounds: 3},
    defaults: {mode: "disaggregated", warmup: 0, iterations: "$rounds",
        method: ["host", "tcp"], impossible: "skip",
        train: {tp: "$tp"}, infer: {tp: 2}},
    scenarios: [
        {name: "m", strategy: ["send_recv", "broadcast", "allgather"]},
        {name: "s", slow: true, method: "host", train: {tp: 1}}]}' \
    <<<"$four_slots")

members() { # the names that should have results, with one rank per replica
    printf '%s\n' m-method={host,tcp}-train.tp=1-strategy={send_recv,broadcast,allgather} |
        sort
}

results_in() { # DIR
    (cd "$1" && ls) | sed -n 's/\.json$//p' | grep -vx run | sort
}

test_suite_says_what_it_leaves_out() {
    cluster
    coord_exits 0 cluster.json -n
    expect_text err '12 of 19 scenarios, 6 skipped, 1 slow left out'
    [ "$(grep -c 'skipped: .*train.tp=3' err)" = 6 ] || fail "$(cat err)"
    run_coord cluster.json -n --slow
    expect_text err '13 of 19 scenarios, 6 skipped$'
    coord_exits 0 cluster.json -n -s s
    expect_text err '^1 of 19 scenarios, 18 not selected$'
    run_coord plan cluster.json --json
    jq -e '.scenarios | length == 12' out >/dev/null || fail "$(cat out)"
}

test_suite_names_ten_of_many_that_it_leaves_out() {
    cluster '.variables.tp = [1, range(3; 40; 2)]'
    coord_exits 0 cluster.json -n
    [ "$(grep -c 'skipped: cluster' err)" = 10 ] || fail "$(cat err)"
    skipped=$(sed -nE 's/.*scenarios, ([0-9]+) skipped.*/\1/p' err)
    expect_text err "^skipped: $((skipped - 10)) more \\(--verbose shows all, run.json lists them\\)$"
    run_coord cluster.json -n -v
    [ "$(grep -c 'skipped: cluster' err)" = "$skipped" ] || fail "not all are told"
}

test_suite_impossible_members_are_errors_unless_skipped() {
    cluster '.defaults.impossible = "error"'
    coord_exits 2 cluster.json -n
    expect_text err 'train.tp=3'
    cluster '.variables.tp = [3]'
    coord_exits 2 cluster.json -n
    expect_text err 'no scenario left: [0-9]+ impossible, the first: .*train'
    cluster '.scenarios |= map(.slow = true)'
    coord_exits 2 cluster.json -n
    expect_text err 'every scenario is slow'
}

# A file with two models, one of them in two sizes.
with_models() {
    cluster '{name, launch, nodes, scenarios: [{
        name: "x", mode: "disaggregated", train: {tp: 2}, infer: {tp: 2},
        warmup: 0, iterations: 2, model: [
            {name: "wide", megatron: .model.megatron},
            {name: "deep",
                megatron: (.model.megatron | .num_layers = 8)}]}]}'
}

test_suite_every_scenario_has_its_own_model() {
    local name layers
    with_models
    coord_exits 0 plan cluster.json
    [ "$(grep '^model' out | paste -sd,)" = \
        "model wide (megatron),model deep (megatron)" ] || fail "$(cat out)"
    coord_exits 0 cluster.json
    expect_text err '^2 scenarios$'
    for name in wide deep; do
        layers=4
        [ "$name" = wide ] || layers=8
        expect_verified "$(result "x-model=$name")"
        expect_json "$(result "x-model=$name")" ".model.name == \"$name\" and
            .cluster.model.megatron.num_layers == $layers"
    done
    [ "$(jq .plan.bytes_total "$(result x-model=deep)")" -gt \
        "$(jq .plan.bytes_total "$(result x-model=wide)")" ] ||
        fail "both moved the same model"
    coord_exits 0 rerun "$(result x-model=deep)" -o again --threshold 100
    coord_exits 0 cluster.json --resume "$(echo results/*)" -s x-model=deep
    cluster "$(jq -c . cluster.json) |
        .scenarios[0].model[1].megatron.num_layers = 6"
    coord_exits 2 cluster.json --resume "$(echo results/*)"
}

# What does not depend on when it ran.
what_moved() { # RESULT
    jq '{scenario, status, iterations: (.iterations | length),
        plan: .plan.digest, schedule: .schedule.digest,
        verification: (.verification | {checked_bytes, mismatched_bytes})}' "$1"
}

has_results() { # NUMBER
    [ "$(results_in "$(echo results/*)" 2>/dev/null | wc -l)" -ge "$1" ]
}

test_suite_stopped_twice_and_resumed_has_the_same_results() {
    local n folder
    cluster '.variables += {tp: [1, 3], rounds: 20}'
    coord_exits 0 cluster.json -o whole
    start_coord cluster.json
    for n in 1 3; do
        wait_until 120 "$n results" has_results "$n"
        kill -INT "$coord_pid"
        finish_coord
        expect_exit 130
        folder=$(echo results/*)
        [ "$(results_in "$folder" | wc -l)" -lt 6 ] || fail "was not stopped"
        start_coord cluster.json --resume "$folder"
    done
    finish_coord
    expect_exit 0
    members >expected
    for folder in whole/* results/*; do
        results_in "$folder" >names
        cmp expected names || fail "$folder has other results: $(cat names)"
        expect_json "$folder/run.json" '.status == "ok" and
            .slow_left_out == 1 and (.skipped | length) == 6 and
            all(.skipped[]; (.name | test("train.tp=3")) and
                (.reason | length) > 20) and
            (.scenarios | length) == 6 and all(.scenarios[]; .status == "ok")'
    done
    while read -r n; do
        what_moved "$(echo whole/*/"$n.json")" >uninterrupted
        what_moved "$folder/$n.json" >resumed
        cmp uninterrupted resumed || fail "$n differs: $(cat resumed)"
    done <expected
}

run_tests
