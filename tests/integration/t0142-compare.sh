#!/bin/bash
# limit: 60
# What `compare` says of two result folders, and its exit code.
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

# A run folder with one scenario that took these milliseconds, one iteration
# each; the median is the middle one of an odd number.
run_folder() { # FOLDER EFFICIENCY MS...
    local folder=$1 efficiency=$2
    shift 2
    mkdir "$folder"
    echo '{"scenarios": [{"name": "s", "status": "ok"}]}' >"$folder/run.json"
    jq -n --argjson efficiency "$efficiency" '[$ARGS.positional[] | tonumber]
        | {schema_version: 1, name: "s", status: "ok",
            summary: {count: length, median_ms: (sort | .[length / 2 | floor])},
            bound: {efficiency: $efficiency},
            iterations: [.[] | {refit_ms: .}]}' --args "$@" >"$folder/s.json"
}

compare() { # EXIT_CODE VERDICT
    coord_exits "$1" compare old new --json
    expect_json out ".comparisons | length == 1 and .[0].verdict == \"$2\""
    coord_exits "$1" compare old new
    expect_text out "^s +$2 "
}

test_an_unclear_median_is_said_to_be_so_and_why() {
    run_folder old 0.9 100 90 150 95 140 99 130
    run_folder new 0.8 120 92 160 94 150 98 140
    compare 0 unclear
    expect_text out '\+20\.0 %'
    expect_text out '^1 unclear: .*overlap'
    rm -r old new
    run_folder old 0.9 100 100 100 100
    run_folder new 0.9 300 300 300 300
    compare 0 unclear
    expect_text out 'too few samples'
    expect_text out '^1 unclear: .*5 iterations'
    run_coord compare old new --json
    expect_json out '.unclear == 1 and .regressions == 0 and
        (.comparisons[0].reference | .samples == 4 and .median_ci95_ms == null)'
}

test_a_slower_median_with_an_interval_of_its_own_is_a_regression() {
    run_folder old 0.9 100 101 102 99 98 100 101
    run_folder new 0.5 120 121 122 119 118 120 121
    compare 1 slower
    expect_text out '^1 regression, 1 slower by more than 10 %$'
    coord_exits 0 compare old new --threshold 0.25
    expect_text out '^s +same '
    coord_exits 0 compare new old
    expect_text out '^s +faster .*-16\.7 % .* 0\.50 -> 0\.90'
    expect_text out '^0 regressions'
}

test_only_a_failure_that_is_new_is_a_regression() {
    run_folder old 0.9 100 101 102 99 98 100 101
    run_folder new 0.9 100 101 102 99 98 100 101
    cp new/s.json ok
    jq '.status = "failed"' ok >new/s.json
    compare 1 broken
    expect_text out '^1 regression$'
    mv new/s.json old
    mv ok new/s.json
    compare 0 mended
    expect_text out '^1 not compared: failed in the reference$'
    cp old/s.json new
    compare 0 'not ok'
    expect_text out '^1 not compared: failed in both$'
}

# A run folder with these bytes in the model of its scenario.
of_model() { # FOLDER BYTES
    jq --argjson bytes "$2" '.model = {bytes: $bytes}' "$1/s.json" >with
    mv with "$1/s.json"
}

test_results_of_other_models_are_not_compared() {
    run_folder old 0.9 100 101 102 99 98 100 101
    run_folder new 0.9 20 21 22 19 18 20 21
    of_model old 5000
    of_model new 1000
    compare 2 'other model'
    expect_text out '^1 not compared: of another model$'
    expect_text err '^error: nothing is comparable: old and new '
    run_coord compare old new --json
    expect_json out '.regressions == 0 and
        (.comparisons[0] | .change == null and .new.median_ms == 20)'
    jq '.name = "t"' new/s.json | tee old/t.json >new/t.json
    jq '.scenarios += [{name: "t", status: "ok"}]' new/run.json |
        tee old/run.json >with && mv with new/run.json
    coord_exits 0 compare old new
    expect_text out '^s +other model '
    expect_text out '^t +same '
    expect_no_text err 'nothing is comparable'
}

test_two_scenarios_of_one_run_are_compared_by_their_files() {
    run_folder run 0.9 100 101 102 99 98 100 101
    jq '.name = "t" | .iterations[].refit_ms *= 2 |
        .summary.median_ms *= 2' run/s.json >run/t.json
    echo '{"scenarios": [{"name": "s"}, {"name": "t"}]}' >run/run.json
    coord_exits 1 compare run/s.json run/t.json
    expect_text out '^s -> t +slower .* \+100\.0 %'
    coord_exits 0 compare run/t.json run/t.json
    expect_text out '^t +same '
    mkdir other
    cp run/run.json run/t.json other
    rm run/t.json
    echo '{"scenarios": [{"name": "s"}]}' >run/run.json
    echo '{"scenarios": [{"name": "t"}]}' >other/run.json
    coord_exits 2 compare run other
    expect_text err 'no scenario is in both run and other; .* their files, RUN/NAME\.json$'
}

test_times_above_ten_seconds_have_no_exponent() {
    run_folder old 0.9 12345 12346 12347 12344 12343 12345 12346
    run_folder new 0.9 12345 12346 12347 12344 12343 12345 12346
    compare 0 same
    expect_text out '^s +same +12345\.0 '
    expect_no_text out 'e\+0'
}

# The same file with ratios around this one beside its times.
add_ratios() { # FOLDER RATIO
    jq --argjson ratio "$2" '.summary.yardstick_ratio.median = $ratio |
        .iterations |= (to_entries | map(.value.yardstick_ratio =
            $ratio + (.key % 3 - 1) / 100 | .value))' "$1/s.json" >with
    mv with "$1/s.json"
}

test_a_machine_at_half_speed_is_no_regression() {
    run_folder old 0.9 100 101 102 99 98 100 101
    run_folder new 0.9 200 201 202 199 198 200 201
    compare 1 slower
    add_ratios old 1.00
    compare 1 slower
    add_ratios new 1.02
    compare 0 same
    expect_text out '^s .* \+100\.0 % +vs contiguous +\+2\.0 % +1\.00 \[0\.99, 1\.01\] -> 1\.02 \['
    expect_text out '^1 with a time beyond 10 %, yardstick too'
    run_coord compare old new --json
    expect_json out '.comparisons[0] | .judged == "yardstick_ratio" and
        (.change - 0.02 | fabs) < 1e-6 and (.time_change - 1 | fabs) < 1e-6 and
        .new.yardsticks == 7 and .new.yardstick_ratio_ci95[1] <= 1.0301'
}

add_memory() { # FOLDER BYTES
    jq --argjson bytes "$2" '.summary.memory =
        {peak_bytes: $bytes, predicted_bytes: 1000000}' "$1/s.json" >with
    mv with "$1/s.json"
}

test_more_memory_is_a_regression_and_less_is_none() {
    run_folder old 0.9 100 101 102 99 98 100 101
    run_folder new 0.9 100 101 102 99 98 100 101
    add_memory new 1200000
    compare 0 same
    add_memory old 1000000
    compare 1 larger
    expect_text out '1\.00 MB -> 1\.20 MB \(\+20\.0 %\) +1\.00 MB -> 1\.00 MB '
    expect_text out '^1 regression, 1 larger by more than 10 %$'
    add_memory new 700000
    compare 0 smaller
}

test_metrics_have_limits_of_their_own() {
    run_folder old 0.9 100 101 102 99 98 100 101
    run_folder new 0.9 107 108 109 106 105 107 108
    add_memory old 1000000
    add_memory new 1200000
    coord_exits 1 compare old new --threshold time=5%,memory=25%
    expect_text out '^s +slower '
    expect_text out '^1 regression, 1 slower by more than 5 %$'
    run_coord compare old new --threshold 25%,time=+5%-50%
    expect_text out '^s +slower '
    run_coord compare old new --threshold time=+10%-1% --json
    expect_json out '.thresholds == {ratio: {worse: 0.1, better: 0.1},
        time: {worse: 0.1, better: 0.01}, memory: {worse: 0.1, better: 0.1}}'
    expect_json out '.comparisons[0] | .verdict == "larger" and
        .judgements.time.verdict == "same" and
        (.judgements.memory.change - 0.2 | fabs) < 1e-9 and
        .new.memory_peak_bytes == 1200000'
    coord_exits 2 compare old new --threshold time=5%,speed=3%
    expect_text err 'unknown metric "speed"; known: time, ratio, memory'
}

test_outliers_are_written_with_what_differs() {
    run_folder old 0.9 100 101 102 99 98 100 101
    run_folder new 0.9 120 121 122 119 118 120 121
    jq '.tool.build = "b1"' old/s.json >with && mv with old/s.json
    jq '.tool.build = "b2"' new/s.json >with && mv with new/s.json
    coord_exits 1 compare old new --outliers outliers.csv
    expect_text out '^s +slower '
    expect_text outliers.csv '^scenario,verdict,.*,reference\.tool\.build,new\.tool\.build$'
    expect_text outliers.csv '^s,slower,refit_ms,0\.2,0\.2,true,.*,b1,b2$'
    coord_exits 1 compare old new --outliers -
    cmp out outliers.csv || fail "other text on standard output"
    coord_exits 1 compare old new --outliers none/outliers.csv
    expect_text err '^error: --outliers: none/outliers.csv: No such file'
}

run_tests
