#!/bin/bash
# --trace writes what every rank did in one more iteration.
# limit: 240
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

command -v python3 >/dev/null || skip_all "no python3 to check the format"

base=$(jq '. + {nodes: [{host: "a", slots: 2}, {host: "b", slots: 2}],
  scenarios: [
    {"name": "s", "mode": "disaggregated", "train": {"nodes": ["a"], "tp": 2},
     "infer": {"nodes": ["b"], "tp": 2, "layout": "vllm"}, "warmup": 1,
     "iterations": 3}]}' <<<"$four_slots")

check_trace() { # FILE; leaves the number of each kind in counts
    "$RF_TOP/tests/lib/check-trace" "$1" >counts || fail "$1 is not a trace"
}

test_a_trace_shows_operations_and_waits() {
    cluster
    coord_exits 0 cluster.json --trace t.json
    expect_verified "$(result s)" # without the traced iteration
    check_trace t.json
    expect_json counts '.refit | .tracks == 4 and .refit == 4 and .send > 0 and
        .receive > 0 and .arrows > 0'
    expect_json t.json '[.traceEvents[] |
        select(.cat == "refit" and .name == "send") | .args | select(.tensor)] |
        length > 0 and all(.[]; .bytes >= 0 and .peer >= 2 and .from < 2)'
}

test_a_trace_has_the_yardstick_beside_the_refit() {
    cluster
    coord_exits 0 cluster.json --trace t.json
    check_trace t.json
    expect_json counts '.yardstick | .tracks == 4 and .yardstick == 4 and
        .send > 0 and .receive > 0 and .arrows > 0'
    expect_json t.json '[.traceEvents[] | select(.name == "process_name")
        .args.name] == ["s: refit, a", "s: refit, b", "s: yardstick, a",
            "s: yardstick, b"]'
    # Each stands for all that its two ranks exchange.
    expect_json t.json '[.traceEvents[] |
        select(.cat == "yardstick" and .name == "send") | .args |
        select(.operation)] | length > 0 and
        all(.[]; .peer >= 2 and .from < 2 and .tensor == null)'
    # The first rank of each begins at 0.
    expect_json t.json '[.traceEvents[] | select(.name == .cat)] |
        group_by(.cat) | map(map(.ts) | min) == [0, 0]'
    expect_json t.json '.otherData.scenarios |
        map(.what) == ["refit", "yardstick"] and
        all(.[]; .traced_ms > 0 and .untraced_median_ms > 0)'
    jq -e --slurpfile result "$(result s)" '.otherData.scenarios |
        map(.untraced_median_ms) ==
        ($result[0].iterations | [map(.refit_ms), map(.yardstick_ms)] |
            map(sort[1]))' t.json >/dev/null || fail "other medians"
    cluster '.scenarios[0].yardstick = false'
    coord_exits 0 cluster.json --trace t.json -o none
    check_trace t.json
    expect_json counts 'keys == ["refit"]'
}

test_operations_that_repeat_over_ranks_are_named() {
    cluster '.scenarios[0] += {strategy: "gather_broadcast", serialize: true,
        chunk_bytes: 16384}'
    coord_exits 0 cluster.json --trace t.json
    check_trace t.json
    expect_json t.json '[.traceEvents[] |
        select(.cat == "refit" and (.name | IN("send", "copy"))) | .args] |
        length > 0 and all(.[]; .tensor and .from < 4 and .to < 4)'
    expect_json counts '.refit.wait > 0' # for their turn
}

test_the_bytes_of_a_trace_are_those_of_the_refit() {
    cluster '.scenarios[0].method = "tcp"'
    coord_exits 0 cluster.json --trace t.json
    check_trace t.json
    # Headers, of 64 bytes, are sent along.
    jq -e --slurpfile result "$(result s)" '
        ([.traceEvents[] | select(.cat == "refit" and .name == "send") |
            .args.bytes] | add) - 64 * $result[0].schedule.operations
            == $result[0].schedule.wire_bytes' t.json >/dev/null ||
        fail "the trace has other bytes"
}

test_every_host_method_has_a_trace() {
    local method
    cluster '.nodes = [{host: "a", slots: 4}] |
        del(.scenarios[0] | .train.nodes, .infer.nodes) |
        .scenarios[0] += {method: ["host", "tcp", "shm", "disk", "null"],
            disk: {folder: "."}}'
    coord_exits 0 cluster.json --trace t.json
    check_trace t.json
    expect_json counts '.refit | .tracks == 20 and .copy > 0 and .send > 0 and
        .read > 0 and .write > 0'
    expect_json counts '.yardstick | .copy > 0 and .send > 0 and .read > 0 and
        .write > 0'
    expect_json t.json '.otherData.scenarios |
        (map(select(.what == "refit")) | length == 5) and all(.[]; .traced_ms > 0 and .untraced_median_ms > 0 and
            .dropped_events == 0)'
    # The slowest rank of each is what the file says of the iteration.
    expect_json t.json '([.traceEvents[] | select(.name == .cat) | .dur]
        | max / 1000) as $longest | [.otherData.scenarios[].traced_ms] | max
        | . > $longest * 0.98 and . < $longest * 1.02'
}

test_quantising_is_in_the_trace() {
    cluster '.scenarios[0].infer.quantize = true | .model.megatron
        |= (.hidden_size = 512 | .vocab_size = 2048)'
    coord_exits 0 cluster.json --trace t.json
    check_trace t.json
    expect_json counts '.refit.quantize == 2 and .yardstick.quantize == null'
}

test_without_it_no_iteration_is_added() {
    cluster '.scenarios[0] += {warmup: 0, iterations: 1}'
    REFIT_TEST_EXIT=0:1 coord_exits 0 cluster.json
    REFIT_TEST_EXIT=0:1 coord_exits 1 cluster.json --trace t.json -o failed
    expect_json t.json '.traceEvents == [] and .otherData.scenarios == []'
}

test_a_trace_that_cannot_be_written_is_an_error() {
    cluster
    coord_exits 2 cluster.json --trace absent/t.json
    expect_text err '--trace: name a file .*: absent/t\.json: No such file'
    [ ! -e results ] || fail "it ran"
    coord_exits 2 cluster.json --trace t.json -n
    expect_text err '--trace and --dry-run cannot be combined'
}

test_a_run_fails_when_the_trace_s_folder_is_gone() {
    cluster '.scenarios[0].iterations = 20'
    mkdir there
    start_coord cluster.json --trace there/t.json
    wait_until 20 "it runs" compgen -G 'results/*'
    rmdir there
    finish_coord
    expect_exit 1
    expect_text err 'there/t\.json.*: No such file'
    expect_verified "$(result s)"
}

test_a_link_that_a_trace_is_named_by_is_kept() {
    cluster
    ln -s there t.json
    coord_exits 0 cluster.json --trace t.json
    [ -L t.json ] || fail "the link is gone"
    check_trace there
}

test_a_trace_may_go_to_standard_output() {
    cluster
    coord_exits 0 cluster.json --trace -
    check_trace out
}

run_tests
