#!/bin/bash
# limit: 60
# The forms of `report` for other programs.
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"
command -v python3 >/dev/null || skip_all "no python3 to read what is printed"

# A run with an ok scenario, one that failed and one with an odd name.
run_folder() { # FOLDER
    mkdir "$1"
    echo '{"scenarios": [{"name": "good"}, {"name": "bad"}]}' >"$1/run.json"
    jq -n '{schema_version: 1, name: "good", status: "ok", run_id: "1f",
        model: {name: "m"}, tool: {version: "9"}, flags: ["drift"],
        environment: [{host: "a", cpu: "C", cpus: 4, gpus: []}],
        scenario: {mode: "colocated", method: "host", strategy: "send_recv"},
        plan: {bytes_total: 1000000000},
        bound: {ms: 86.5, valid: true, efficiency: 0.86},
        summary: {count: 5, median_ms: 100, algbw_gbytes_per_s: 10},
        verification: {checked_bytes: 1, mismatched_bytes: 0},
        iterations: [99, 99, 100, 100, 103 | {refit_ms: .}]}' \
        >"$1/good.json"
    jq '{schema_version, name: "bad", status: "failed", summary: {}}' \
        "$1/good.json" >"$1/bad.json"
    jq '.name = "a, \"b\"; c" | .bound.valid = false' "$1/good.json" \
        >"$1/odd.json"
}

# With pandas where it is installed, else by the rules it goes by: one head,
# every row as long, numbers and truths plain.
test_csv_is_a_table_for_any_reader() {
    run_folder run
    coord_exits 0 report run --csv
    python3 - out >&2 <<'END' || fail "not a table"
import csv
import sys

rows = list(csv.reader(open(sys.argv[1], encoding="utf-8")))
head, body = rows[0], rows[1:]
assert len(set(head)) == len(head), head
assert all(len(row) == len(head) for row in body), rows
table = [dict(zip(head, row)) for row in body]
assert [row["scenario"] for row in table] == ["good", "bad", 'a, "b"; c']
assert float(table[0]["median_low_ms"]) == 99, table[0]
assert table[1]["median_ms"] == "" and table[2]["bound_valid"] == "false"
try:
    import pandas
except ImportError:
    sys.exit(0)
frame = pandas.read_csv(sys.argv[1])
assert list(frame.columns) == head and len(frame) == 3
assert frame["median_ms"].dtype == float, frame.dtypes
END
}

test_columns_that_say_the_same_in_all_rows_are_named_once() {
    run_folder run
    rm run/bad.json
    echo '{"scenarios": [{"name": "good"}]}' >run/run.json
    coord_exits 0 report run --drop-constant
    expect_text out '^scenario +eff\. \(best\)$'
    expect_text out '^good +0\.86$'
    expect_text out '^the same in all rows: method host; strategy send_recv; bytes 1\.00 GB; .*; verified yes; not measured: on links, '
    coord_exits 0 report run --drop-constant --csv
    [ "$(head -n 1 out | tr , '\n' | sort | paste -sd ' ')" = \
        "bound_valid scenario" ] || fail "other columns"
    [ "$(csv_column out bound_valid | head -n 1)" = true ] || fail "another cell"
    [ "$(wc -l <out)" = 3 ] || fail "more than rows"
    expect_text err 'the same in all rows: status ok; model m; '
    run_coord report run --drop-constant --markdown
    expect_text out '^\| scenario \| eff\. \(best\) \|$'
    expect_text out '^<!-- the same in all rows: method host; .* -->$'
    run_coord report run --drop-constant --latex
    expect_text out '^% the same in all rows: method host; '
    cp -r run other
    run_coord report run other --drop-constant
    expect_text out '^run +scenario +eff\. \(best\)$'
    rm -r run/odd.json other
    run_coord report run --drop-constant
    expect_text out '^scenario +method '
    expect_no_text out 'the same'
}

test_json_has_typed_figures_and_says_once_what_runs_share() {
    run_folder run
    coord_exits 0 report run --json
    expect_json out '.schema_version == 1 and (.runs | length) == 1'
    expect_json out '.runs[0] | .model == "m" and .ok == 2 and .not_ok == 1 and
        .nodes == [{host: "a", cpu: "C", cpus: 4, memory_bytes: null, gpus: []}]'
    expect_json out '.results[0] | .median_ms == 100 and .median_high_ms == 103
        and .bound_valid == true and .flags == ["drift"] and .run == "run"'
    expect_json out '.results[1] | .status == "failed" and .median_ms == null'
}

test_every_form_has_the_memory_of_the_rank_that_needed_most() {
    local form
    run_folder run
    jq '.summary.memory = {peak_bytes: 1500000000, predicted_bytes: 1400000000,
            host_peak_bytes: 1500000000, device_peak_bytes: 0,
            foreign_bytes: null} |
        .memory = [{rank: 0, host: "a", host_peak_bytes: 1500000000}]' \
        run/good.json >with
    mv with run/good.json
    for form in "" --markdown --latex "--html -"; do
        # shellcheck disable=SC2086 # an option and its value
        coord_exits 0 report run $form
        expect_text out 'peak memory.*predicted'
        expect_text out '1\.50 GB.*1\.40 GB'
    done
    run_coord report run --json
    expect_json out '.results[0] | .memory_peak_bytes == 1500000000 and
        .memory_predicted_bytes == 1400000000 and
        .memory_device_peak_bytes == 0 and .memory_foreign_bytes == null and
        .memory == [{rank: 0, host: "a", host_peak_bytes: 1500000000}]'
    expect_json out '.results[1] | .memory_peak_bytes == null and .memory == []'
    run_coord report run --csv
    for cell in scenario=good memory_peak_bytes=1500000000 \
        memory_predicted_bytes=1400000000 memory_host_peak_bytes=1500000000 \
        memory_device_peak_bytes=0 memory_foreign_bytes=; do
        csv_column out "${cell%=*}" >column || fail "no column ${cell%=*}"
        [ "$(head -n 1 column)" = "${cell#*=}" ] || fail "not $cell"
    done
}

test_alpa_gets_what_it_could_have_measured() {
    base='{"name": "t", "launch": {"method": "local"},
        "nodes": [{"host": "localhost", "slots": 4}],
        "model": {"tensor": {"name": "x", "shape": [8, 64], "dtype": "int32"}},
        "scenarios": [{"name": "s", "strategy": ["send_recv", "hierarchical"],
            "balance": ["normal", "loadbalance_order"],
            "train": {"layout": "spec", "mesh": [1, 4], "spec": "S1R"},
            "infer": {"layout": "spec", "mesh": [2, 2], "spec": "RS0"},
            "warmup": 0, "iterations": 3}]}'
    command jq . <<<"$base" >cluster.json
    coord_exits 0 cluster.json
    expect_text err 'balance "loadbalance_order" is Alpa.s word for "order"$'
    expect_text err 'balance "normal" is Alpa.s word for "size"$'
    [ "$(grep -c "Alpa's word" err)" = 2 ] || fail "said more than once"
    expect_json results/*/s-strategy=send_recv-balance=loadbalance_order.json \
        '.scenario.balance == "order"'
    coord_exits 0 report --alpa results
    expect_text err 's-strategy=hierarchical-balance=normal is left out: Alpa has no strategy'
    expect_json out 'map(.name) == ["s-strategy=send_recv-balance=normal",
        "s-strategy=send_recv-balance=loadbalance_order"]'
    coord_exits 0 report --alpa=1_to_m_result.json results
    expect_text 1_to_m_result.json '^    [{]$'
    cp 1_to_m_result.json out
    expect_json out 'length == 2 and (.[0] | .src_mesh_shape == [1, 4] and
        .tensor_shape == [8, 64] and .exec_time_mean > 0 and
        .dst_sharding_spec == "ShardingSpec((NoSharding(), Chunked(2)), " +
            "(ShardedAxis(axis=0), Replicated(replicas=2)))")'
    command jq -e '.[0] | keys_unsorted == ["src_mesh_shape",
        "dst_mesh_shape", "src_sharding_spec", "dst_sharding_spec",
        "tensor_shape", "resharding_mode", "use_local_allgather",
        "resharding_loadbalance_mode", "exec_time_mean", "exec_time_var",
        "name"]' out >&2 || fail "keys in another order"
}

test_alpa_is_not_given_an_empty_list() {
    run_folder run
    coord_exits 2 report --alpa run
    [ ! -s out ] || fail "printed $(cat out)"
    expect_text err 'good is left out: is not of one tensor between two'
    expect_text err '^error: --alpa: no result is comparable with Alpa'
}

# A record may lack its model; then there are not several.
test_a_model_that_is_not_known_is_not_several() {
    run_folder run
    rm run/odd.json
    jq 'del(.model)' run/good.json >good.json
    mv good.json run/
    coord_exits 0 report --latex run
    expect_text out '^% run run$'
    jq '.model = {name: "a"}' run/good.json >good.json
    jq '.model = {name: "b"}' run/bad.json >bad.json
    mv good.json bad.json run/
    run_coord report --latex run
    expect_text out '^% run run, several models$'
}

test_fits_find_latency_and_bandwidth() {
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$RF_TOP/scripts python3 - >&2 <<'END' ||
from refit_figures import fit

sizes = [1e6, 1e7, 1e8, 1e9]
line = fit.line(sizes, [2 + size / 5e6 for size in sizes])
assert abs(line.latency_ms - 2) < 1e-6, line
assert abs(line.gbytes_per_s - 5) < 1e-6, line
assert abs(line.ms(1e7) - 4) < 1e-6, line
below = fit.line([1e6, 2e6, 3e6], [1.0, 2.1, 3.2])
assert below.latency_ms == 0 and 0.9 < below.gbytes_per_s < 1, below
assert fit.line([1e6, 1e7], [1, 2]) is None
assert fit.line([1e6, 1e6, 1e7], [1, 1, 2]) is None
falling = fit.line([1e6, 1e7, 1e8], [3.0, 2.0, 1.0])
assert falling is None, falling
END
        fail "a bad fit"
}

test_what_is_missing_for_figures_is_named() {
    export REFIT_SHARE=$RF_TOP
    run_folder run
    env PATH=/nowhere "$coord" report --figures f run >out 2>err
    status=$?
    expect_exit 1
    expect_text err 'no figures: python3: .*install .*python3-matplotlib'
    mkdir without
    echo 'raise ImportError("none here")' >without/matplotlib.py
    PYTHONPATH=$PWD/without coord_exits 1 report --figures f run
    expect_text err 'has no matplotlib; install the package python3-matplotlib'
    REFIT_SHARE=$PWD coord_exits 1 report --figures f run
    expect_text err 'scripts/figures is not installed .*REFIT_SHARE'
    [ ! -e f ] || fail "a folder without figures"
}

run_tests
