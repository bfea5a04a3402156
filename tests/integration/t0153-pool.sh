#!/bin/bash
# `report --pool`: several runs of the same scenarios as one with repeats.
# limit: 180
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base=$(jq '. + {scenarios: [
    {"name": "first", "mode": "colocated", "train": {"tp": 2, "pp": 2},
     "infer": {"tp": 4}, "warmup": 1, "iterations": 4},
    {"name": "second", "mode": "disaggregated", "train": {"tp": 2},
     "infer": {"tp": 2}, "warmup": 0, "iterations": 3}]}' <<<"$four_slots")

run() { # FOLDER OPTION...
    local folder=$1
    shift
    coord_exits 0 cluster.json -o "$folder" "$@"
}

# The second is of two repeats.
two_runs() {
    cluster
    run a
    run b --repeat 2
}

test_two_runs_are_pooled_like_repeats() {
    two_runs
    coord_exits 0 report --pool a b --json
    expect_json out '(.runs | length) == 1 and
        [.results[].scenario] == ["first", "second"]'
    jq -s '.' a/*/first.json b/*/first.json >files
    # shellcheck disable=SC2016 # for jq
    jq -e --slurpfile report out 'def mean: add / length;
        def median: sort | ((length - 1) / 2) as $at |
            (.[$at | floor] + .[$at | ceil]) / 2;
        ([.[0].iterations] + (.[1].iterations | group_by(.repeat))
            | map(map(.refit_ms))) as $repeats |
        ($repeats | add) as $all | $report[0].results[0] as $row |
        ([$repeats[] | mean as $own | .[] | pow(. - $own; 2)] | add /
            (($all | length) - 3)) as $within |
        $row.iterations == 12 and $row.repeats == 3 and
        ($row.median_ms - ($all | median) | fabs) < 1e-6 and
        (($within | sqrt) / ($all | mean) * 100 - $row.within_percent | fabs)
            < 1e-4 * $row.within_percent and
        $row.between_percent >= 0 and $row.median_low_ms <= $row.median_ms and
        ($row.pooled | map(.repeats)) == [1, 2] and
        ($row.pooled[1].differs == null) and
        ($row.pooled | map(.run_id)) == map(.run_id)' files >&2 ||
        fail "other figures than those of the samples"
}

test_every_form_says_what_was_pooled() {
    local form
    two_runs
    for form in "" --markdown --latex "--html -"; do
        # shellcheck disable=SC2086 # an option and its value
        coord_exits 0 report --pool a b $form
        expect_text out 'pooled: first: 12 iterations of 3 repeats in 2 runs'
        expect_text out 'pooled: second: 9 iterations of 3 repeats in 2 runs'
    done
    coord_exits 0 report --pool a b --csv
    [ "$(csv_column out scenario | sort | paste -sd ' ')" = "first second" ] ||
        fail "not one row for each scenario"
}

test_other_refits_and_copies_are_named_and_kept_apart() {
    cluster
    run a -s second
    run b -s second --set scenarios.second.strategy=broadcast
    run c -s second
    cp -r c d
    coord_exits 1 report --pool a b c d
    expect_text err 'scenario second of run .* is not pooled with that of run .*: they differ in scenario\.strategy'
    expect_text err 'scenario second of run .* is not pooled .* so one is a copy'
    expect_text out 'pooled: second: 6 iterations of 2 repeats in 2 runs'
    coord_exits 2 report --pool a b
    expect_text err 'no scenario has comparable records in two runs'
    coord_exits 2 report --pool a
    expect_text err '--pool needs two runs: name several run folders'
}

test_runs_before_are_compared_with_runs_after() {
    two_runs
    mkdir old
    mv a/* old/1
    mv b/* old/2
    run new
    coord_exits 2 compare old new --threshold 100
    expect_text err 'is in several runs .*--pool'
    coord_exits 0 compare old new --pool --threshold 100 --json
    expect_json out '[.comparisons[].reference.samples] == [12, 9] and
        [.comparisons[].new.samples] == [4, 3]'
}

run_tests
