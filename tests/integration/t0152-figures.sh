#!/bin/bash
# limit: 240
# long
# The figures of `report`: drawn from a real run, whole, the same each time, and
# named where results do not allow them.
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"
export REFIT_SHARE=$RF_TOP
/usr/bin/python3 -c 'import matplotlib' 2>/dev/null ||
    python3 -c 'import matplotlib' 2>/dev/null ||
    skip_all "no matplotlib to draw with; scripts/deps figures installs it"

base=$(jq '. + {scenarios: [
    {"name": "to", "train": {"tp": 2, "dp": 1},
     "infer": {"tp": [1, 4], "dp": 1}, "warmup": 0, "iterations": 3},
    {"name": "by", "train": {"tp": 2}, "infer": {"tp": 4},
     "method": ["tcp", "host"], "warmup": 0, "iterations": 3}]}' \
    <<<"$four_slots")

# A run of a scenario that took these milliseconds.
plain_run() { # FOLDER MS...
    local folder=$1
    shift
    mkdir "$folder"
    echo '{"scenarios": []}' >"$folder/run.json"
    jq -n '[$ARGS.positional[] | tonumber] | {schema_version: 1,
        name: "a$b^{c", status: "ok", model: {name: "m"},
        scenario: {method: "host", strategy: "send_recv"},
        plan: {bytes_total: 1000000},
        summary: {count: length, median_ms: (sort | .[length / 2 | floor])},
        iterations: [.[] | {refit_ms: .}]}' --args "$@" >"$folder/a.json"
}

test_figures_of_a_run_are_whole_and_the_same_each_time() {
    local name
    cluster
    coord_exits 0 cluster.json
    coord_exits 0 report --figures one results
    for name in times-by phases-to-infer.tp-1 matrix-to-infer.tp-1 curve-ranks \
        predicted; do
        expect_text out "^one/$name\.pdf$"
        expect_text out "^one/$name\.svg$"
        expect_text out "^one/$name\.png$"
    done
    # shellcheck disable=SC2046 # names without blanks
    "$RF_TOP/tests/lib/check-figures" $(cat out) >&2 || fail "a bad file"
    expect_text err 'no curve of size: .*"num_layers"'
    expect_text err 'no curve of nodes: .*"nodes"'
    expect_text err 'no reference against new: .*--reference'
    coord_exits 0 report --figures two results -q
    [ ! -s err ] || fail "not quiet"
    diff -r one two >&2 || fail "the same results make other figures"
}

test_bars_of_a_matrix_are_named_by_what_differs() {
    local python
    for python in /usr/bin/python3 python3; do
        "$python" -c 'import matplotlib' 2>/dev/null && break
    done
    PYTHONPATH=$RF_TOP/scripts "$python" >labels -c '
from refit_figures.times import apart
print(apart(["x-encoding=gap8-tp=1-a=b", "x-encoding=idx16-tp=2-a=b"]))
print(apart(["a-b", "c"]), apart(["a", "a"]), apart(["a-tp2", "a-pp=2"]))'
    cmp labels - <<'EOF' || fail "other labels: $(cat labels)"
['gap8, 1', 'idx16, 2']
['a-b', 'c'] ['a', 'a'] ['tp2', 'pp=2']
EOF
}

test_a_reference_is_drawn_beside_the_results() {
    plain_run old 100 101 102
    plain_run new 120 121 122
    coord_exits 0 report --figures f --reference old new
    # shellcheck disable=SC2046 # names without blanks
    "$RF_TOP/tests/lib/check-figures" f/reference.* f/times-* >&2 ||
        fail "a bad file"
    expect_text err 'no phases of a.*b.*c: .*run the scenario again'
    plain_run other 1 2 3
    jq '.name = "else"' other/a.json >x && mv x other/a.json
    coord_exits 2 report --figures f --reference other new
    expect_text err 'no scenario is in both other and new'
}

# A run of dense and auto+raw at 1 and 10 %: each takes so many ms there.
run_of_encodings() { # FOLDER DENSE-1 DENSE-10 AUTO-1 AUTO-10
    local encoding density folder=$1
    mkdir "$folder"
    echo '{"scenarios": []}' >"$folder/run.json"
    shift
    for encoding in dense auto+raw; do
        for density in 0.01 0.1; do
            plain_run one "$1" "$1" "$1" "$1" "$1"
            jq --arg name "$encoding-$density" '.name = $name
                | .scenario += ($name | split("-") | {encoding: .[0],
                    update: {density: .[1] | tonumber}})
                | .memory = [{host: "a"}, {host: "b"}]
                | .bound = {ms: 10, efficiency: 0.1, valid: true, probe:
                    {before: {pairs: [{gbytes_per_s: 0.117}, 7]}}}' \
                one/a.json >"$folder/$encoding-$density.json"
            rm -r one
            shift
        done
    done
}

# Files have the texts of what they draw as comments.
test_time_by_density_marks_where_dense_becomes_as_fast() {
    run_of_encodings crossing 100 100 50 200
    run_of_encodings slower 100 100 200 50
    run_of_encodings faster 100 100 50 50
    coord_exits 0 report --figures one crossing
    "$RF_TOP/tests/lib/check-figures" one/delta.* >&2 || fail "a bad file"
    expect_text one/delta.svg '<!-- auto\+raw 3.16 % -->' # log-log: the mean of logs
    expect_text one/delta.svg '<!-- between hosts at 0.936 Gbit/s -->'
    expect_text one/delta.svg '<!-- bound, dense -->'
    expect_text one/delta.svg '<!-- bound, values -->'
    expect_no_text one/delta.svg '<!-- bound, differences -->'
    coord_exits 0 report --figures two slower faster
    expect_no_text two/delta.svg '<!-- auto.* % -->'
}

test_time_by_density_needs_several_densities() {
    run_of_encodings run 100 100 50 200
    rm run/*-0.1.json
    jq '.bound = null | .memory = 1 | .scenario.update = []' \
        run/auto+raw-0.01.json >x && mv x run/auto+raw-0.01.json
    coord_exits 0 report --figures f run
    expect_text err 'no time by density: .*"density": \[0.01, 0.1\]'
}

test_conversion_is_drawn_beside_the_wire() {
    local at
    mkdir run
    echo '{"scenarios": []}' >run/run.json
    for at in sender receiver; do
        plain_run one 10 11 12
        jq --arg at "$at" '.name = $at | .summary.conversion = {
            name: "mxfp8@\($at)", quantize_ms: 4, wire_ms: 5}' \
            one/a.json >"run/$at.json"
        rm -r one
    done
    coord_exits 0 report --figures f run
    "$RF_TOP/tests/lib/check-figures" f/conversion.* >&2 || fail "a bad file"
    expect_text f/conversion.svg '<!-- mxfp8@sender -->'
    expect_text f/conversion.svg '<!-- mxfp8@receiver -->'
    jq '.summary.conversion.wire_ms = -1' run/sender.json >x && mv x run/sender.json
    rm run/receiver.json
    coord_exits 0 report --figures g run
    expect_text err 'no conversion beside the wire: .*"quantize"'
}

test_results_without_figures_say_so() {
    plain_run run 1 2 3
    jq '.status = "failed"' run/a.json >x && mv x run/a.json
    coord_exits 0 report --figures f run
    expect_text err 'no figures: no result is ok'
    coord_exits 1 report --figures /dev/null/f run
    expect_text err 'no figures: cannot write the figures: .*/dev/null'
}

run_tests
