#!/bin/bash
# --repeat: every scenario several times, with new ranks each time, and one
# result for all of them.
# limit: 300
# waits
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base=$(jq '. + {scenarios: [
    {"name": "first", "mode": "colocated", "train": {"tp": 2, "pp": 2},
     "infer": {"tp": 4}, "warmup": 1, "iterations": 3},
    {"name": "second", "mode": "disaggregated", "train": {"tp": 2},
     "infer": {"tp": 2}, "warmup": 0, "iterations": 3}]}' <<<"$four_slots")

# One scenario that takes a while, run by a private copy of the worker.
start_long() { # OPTION...
    own_worker
    cluster ".scenarios |= [.[0] | .iterations = 40]
        | .launch.worker = \"$worker\""
    start_coord cluster.json -v "$@"
}

# What the file says of all repeats is what its samples say.
expect_pooled() { # RESULT_FILE
    expect_json "$1" 'def median: sort | ((length - 1) / 2) as $at |
            (.[$at | floor] + .[$at | ceil]) / 2;
        # Files have 9 digits. So has the mean, whose error counts most where a
        # square is small.
        def near($x): . - $x | fabs <= 1e-6 * ($x | fabs);
        def near($x; $mean): . - $x | fabs <=
            1e-6 * $x + 1e-7 * $mean * ($x | sqrt) + 1e-14 * $mean * $mean;
        def mean: add / length;
        def split($key): [.iterations | group_by(.repeat)[] | map(.[$key])];
        def random_effects: . as $repeats | add as $all | ($all | mean) as $m |
            ($all | length) as $n | length as $k |
            (($n - ([$repeats[] | length * length] | add) / $n) / ($k - 1))
                as $n0 |
            ([$repeats[] | length * pow((mean - $m); 2)] | add / ($k - 1))
                as $between |
            ([$repeats[] | mean as $own | .[] | pow(. - $own; 2)] | add /
                ($n - $k)) as $within |
            {$between, $within, mean: $m,
                component: ([($between - $within) / $n0, 0] | max)};
        . as $file | .summary.variance as $variance |
        (["refit_ms", "yardstick_ratio"] | all(. as $key |
            ($file | split($key) | random_effects) as $expected |
            ($variance[$key].mean_square_between |
                near($expected.between; $expected.mean)) and
            ($variance[$key].mean_square_within |
                near($expected.within; $expected.mean)) and
            ($variance[$key].within |
                near($expected.within; $expected.mean)) and
            ($expected.between + $expected.within) as $both |
            ($variance[$key].between - $expected.component + $both |
                near($both; $expected.mean)))) and
        (.summary.median_ms | near([$file.iterations[].refit_ms] | median)) and
        (.summary.yardstick_ratio.median |
            near([$file.iterations[].yardstick_ratio] | median)) and
        (.summary.median_ci95_ms[0] <= .summary.median_ms) and
        (.summary.median_ci95_ms[1] >= .summary.median_ms) and
        .summary.repeats == (.repeats | length) and
        .summary.count == (.iterations | length)'
}

test_repeats_run_in_turn_in_new_processes_and_are_pooled() {
    local file
    cluster
    coord_exits 0 cluster.json --repeat 3 -v
    [ "$(sed -n 's/.*attempt [0-9] of 6: //p' err | paste -sd ';')" = \
        "first, repeat 1 of 3;second, repeat 1 of 3;first, repeat 2 of 3;$(
        )second, repeat 2 of 3;first, repeat 3 of 3;second, repeat 3 of 3" ] ||
        fail "another order"
    [ "$(grep -c 'rank [0-3] is process' err)" = 24 ] || fail "not 24 ranks"
    [ "$(sed -n 's/.*rank [0-3] is process //p' err | sort -u | wc -l)" = 24 ] ||
        fail "some ranks are the same process"
    for file in "$(result first)" "$(result second)"; do
        expect_json "$file" '.status == "ok" and .errors == []'
        expect_json "$file" '[.repeats[].repeat] == [0, 1, 2] and
            ([.repeats[].status] | unique) == ["ok"]'
        expect_json "$file" '.scenario.iterations as $n | .iterations |
            group_by(.repeat) | all(map(.index) == [range($n)])'
        expect_json "$file" '.verification.rounds == (.iterations | length) and
            .verification.checked_bytes ==
                .plan.bytes_total * .verification.rounds'
        expect_pooled "$file"
    done
    expect_json "$(result first)" '(.iterations | length) == 9 and
        (.warmup_iterations | length) == 3'
    # agents were launched once
    expect_json "$(result first)" '[.repeats[].setup.launch_ms > 0] ==
        [true, false, false]'
    expect_json "$(echo results/*/run.json)" '.repeat == 3 and .status == "ok"'
    [ "$(csv_column results/*/summary.csv repeats | paste -sd ' ')" = "3 3" ] ||
        fail "summary.csv does not count repeats"
}

second_attempt_has_ranks() {
    [ "$(grep -c 'rank 3 is process' err)" = 2 ]
}

test_a_rank_killed_in_one_repeat_leaves_the_others() {
    local file victim
    start_long --repeat 3
    wait_until 120 "the second repeat" second_attempt_has_ranks
    victim=$(sed -n 's/.*rank 3 is process //p' err | tail -n 1)
    kill -KILL "$victim"
    finish_coord
    expect_exit 1
    expect_text err 'first: repeat 2 of 3 failed, remaining repeats skipped; earlier repeats are kept'
    file=$(result first)
    expect_json "$file" '.status == "failed" and
        [.repeats[].status] == ["ok", "failed"]'
    expect_json "$file" '.errors[0].repeat == 1 and
        (.errors[0].text | test("signal 9"))'
    expect_json "$file" '[.iterations[] | select(.repeat == 0)] |
        length == 40'
    jq '[.iterations[] | select(.repeat == 0)], .repeats[0]' "$file" >kept
    coord_exits 0 cluster.json --resume "$(dirname "$file")"
    expect_no_text err 'repeat 1 of 3$'
    expect_text err 'attempt 1 of 2: first, repeat 2 of 3$'
    expect_text err 'attempt 2 of 2: first, repeat 3 of 3$'
    expect_json "$file" '.status == "ok" and .errors == [] and
        (.iterations | length) == 120'
    expect_pooled "$file"
    jq '[.iterations[] | select(.repeat == 0)], .repeats[0]' "$file" |
        cmp -s - kept || fail "the first repeat is not what it was"
    coord_exits 0 cluster.json --resume "$(dirname "$file")"
    expect_text err 'nothing to do'
    coord_exits 2 cluster.json --resume "$(dirname "$file")" --repeat 2
    expect_text err 'started with --repeat 3'
}

first_is_stored() {
    compgen -G 'results/*/first.json' >/dev/null
}

test_a_killed_coordinator_leaves_the_repeats_that_it_measured() {
    local file
    start_long --repeat 2
    wait_until 120 "a repeat on disk" first_is_stored
    kill -KILL "$coord_pid"
    finish_coord
    expect_exit 137
    wait_until 20 "no process is left" no_workers
    file=$(result first)
    expect_json "$file" '.repeats[0].status == "ok" and
        (.iterations | length) >= 40'
    coord_exits 0 cluster.json --resume "$(dirname "$file")"
    expect_json "$file" '(.repeats | length) == 2 and .status == "ok"'
    expect_pooled "$file"
}

test_an_old_folder_can_be_repeated_more_often() {
    local file
    cluster
    coord_exits 0 cluster.json -s second
    file=$(result second)
    coord_exits 0 cluster.json -s second --resume "$(dirname "$file")" --repeat 2
    expect_json "$file" '[.repeats[].repeat] == [0, 1] and
        (.iterations | length) == 6'
    expect_pooled "$file"
}

test_one_repeat_is_a_run_as_without() {
    local which
    cluster
    coord_exits 0 cluster.json -s second -o without
    coord_exits 0 cluster.json -s second -o with --repeat 1
    expect_text err 'scenario 1 of 1: second$'
    for which in without with; do
        # Other tests bring interfaces of this machine up and down, and on a busy
        # one ranks may not copy at the same time for a probe.
        jq -c 'del(.argv, .flags, .environment, .bound.probe,
            .iterations[].network, .warmup_iterations[].network) | paths' \
            "$which"/*/second.json >"$which.paths"
        jq -c 'keys' "$which"/*/run.json >>"$which.paths"
    done
    diff without.paths with.paths >&2 || fail "the files have other fields"
}

test_report_compare_and_rerun_read_all_repeats() {
    local file
    cluster
    coord_exits 0 cluster.json -s second --repeat 3
    file=$(result second)
    coord_exits 0 report results --csv
    [ "$(csv_column out median_ms) $(csv_column out yardstick_ratio_high)" = \
        "$(jq -r '.summary | "\(.median_ms) \(.yardstick_ratio.high)"' \
            "$file")" ] || fail "report has other figures"
    coord_exits 0 compare "$(dirname "$file")" "$(dirname "$file")" --json
    jq -s '.[0].comparisons[0].new as $new | .[1].summary as $file | $file |
        # Files have 9 digits.
        def near($x): . - $x | fabs <= 1e-7 * $x;
        $new.samples == .count and
        ($new.median_ci95_ms[0] | near($file.median_ci95_ms[0])) and
        ($new.median_ci95_ms[1] | near($file.median_ci95_ms[1])) and
        ($new.yardstick_ratio_ci95[0] | near($file.yardstick_ratio.low))' \
        out "$file" | grep -qx true || fail "another interval than the file's"
    coord_exits 0 rerun "$file" --repeat 2 -o again --threshold 100 --json
    expect_json out '.comparisons[0] | .reference.samples == 9 and
        .new.samples == 6'
    expect_json "$(echo again/*/second.json)" '.repeats | length == 2'
}

test_bad_numbers_of_repeats_are_refused() {
    local bad
    cluster
    for bad in 0 1001 2.5 -1 many ''; do
        coord_exits 2 cluster.json --repeat "$bad"
        expect_text err '^refit-coord: .*--repeat'
        [ ! -e results ] || fail "results/ appeared"
    done
}

run_tests
