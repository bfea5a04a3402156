#!/bin/bash
# Yardsticks: measured beside every iteration, in turn before and after it, and
# no help to a refit that leaves out bytes.
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

cluster() { # MEMBERS of both scenarios
    cat >cluster.json <<EOF
{"name": "t", "launch": {"method": "local"},
 "nodes": [{"host": "localhost", "slots": 4}],
 "model": {"megatron": {"num_layers": 4, "hidden_size": 128,
           "num_attention_heads": 8, "vocab_size": 1000, "swiglu": true}},
 "scenarios": [
   {"name": "together", "train": {"tp": 2, "pp": 2}, "infer": {"tp": 4}, $1},
   {"name": "apart", "mode": "disaggregated", "train": {"tp": 2},
    "infer": {"tp": 2}, $1}]}
EOF
}

test_every_iteration_has_a_yardstick() {
    cluster '"warmup": 1, "iterations": 5, "method": ["host", "tcp", "disk"],
             "disk": {"folder": "'"$PWD"'"}'
    coord_exits 0 cluster.json
    for file in results/*/*-method=*.json; do
        expect_json "$file" '.status == "ok" and .verification.rounds == 5'
        expect_json "$file" '[.iterations[], .warmup_iterations[]] |
            all(.yardstick_ms > 0 and
                (.refit_ms / .yardstick_ms / .yardstick_ratio - 1 | fabs) <
                    1e-6)'
        expect_json "$file" '.summary.yardstick_ratio |
            .count == 5 and .low <= .median and .median <= .high and
            .rerun_low <= .low and .high <= .rerun_high and
            (.rerun_low * .rerun_high / (.median * .median) - 1 | fabs) < 1e-6'
        expect_json "$file" '.bound.yardstick.nodes[0].copy_gbytes_per_s > 0'
        expect_json "$file" '.schedule_bound.ms >= .bound.ms'
    done
    expect_text out '^scenario .* vs contiguous +eff\. \(strategy\) +eff\. \(best\) '
    expect_text out '^together-method=tcp .*\[[0-9.]+, [0-9.]+\]'
}

test_what_stays_in_place_is_not_charged() {
    cluster '"iterations": 2, "method": "shm"'
    coord_exits 0 cluster.json -s together
    expect_json results/*/together.json '.status == "ok"'
    # the same layout on both sides: handles are all that moves
    sed -i 's/"tp": 2, "pp": 2/"tp": 4/' cluster.json
    coord_exits 0 cluster.json -s together -o same
    expect_json same/*/together.json '.bound.yardstick == null and
        ([.iterations[].yardstick_ms] | all(. == null)) and
        .summary.yardstick_ratio.count == 0'
}

test_a_scenario_may_do_without() {
    cluster '"iterations": 3, "yardstick": false'
    coord_exits 0 cluster.json
    for name in together apart; do
        expect_json results/*/"$name".json '.scenario.yardstick == false and
            .summary.yardstick_ratio.median == null and
            .bound.yardstick == null and .bound.efficiency > 0 and
            ([.iterations[].yardstick_ratio] | all(. == null))'
    done
    cluster '"iterations": 3, "yardstick": "no"'
    coord_exits 2 cluster.json -n
    expect_text err '\$\.scenarios\[0\]\.yardstick'
}

test_a_wrong_byte_behind_a_yardstick_is_found() {
    cluster '"warmup": 0, "iterations": 3'
    REFIT_TEST_FLIP=1:1 coord_exits 3 cluster.json -s together
    expect_json results/*/together.json '.status == "mismatch" and
        .verification.first_mismatch.iteration == 1'
}

test_results_without_yardsticks_can_be_read() {
    cluster '"iterations": 3'
    coord_exits 0 cluster.json -s apart -o old
    old=$(echo old/*/apart.json)
    jq 'del(.summary.yardstick_ratio, .schedule_bound, .flags,
            .scenario.yardstick, .bound.valid, .bound.yardstick) |
        .iterations |= map(del(.yardstick_ms, .yardstick_ratio))' \
        "$old" >t.json
    mkdir older
    cp -r old/* older/
    cp t.json older/*/apart.json
    coord_exits 0 report --csv older/*
    coord_exits 0 report --html page.html older/*
    expect_text page.html 'apart'
    run_coord report older
    expect_text out '^apart .* yes$'
    coord_exits 0 compare --threshold 10 older old
    expect_text out '^apart +same '
    expect_no_text out 'yardstick,'
}

run_tests
