#!/bin/bash
# "load": each refit again while ranks read memory or send, and what each does to
# the other.
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base=$(jq '. + {scenarios: [{name: "s", train: {tp: 2, pp: 2}, infer: {tp: 4},
    load: {memory_gbytes_per_s: "max"}, warmup: 1, iterations: 6}]}' \
    <<<"$four_slots")

# What an iteration with a load says follows from its ranks' samples.
expect_effects() { # RESULT
    expect_json "$1" 'def close(a; b): (a / b - 1 | fabs) < 1e-6;
        def rate(bytes; ms): ([bytes, 65536] | max) / ms / 1e6;
        [.iterations[], .warmup_iterations[]] | all(
            (.loaded_ranks | map(select(.load_alone_ms))) as $with |
            ($with | map(rate(.load_bytes; .load_ms)) | add) as $beside |
            ($with | map(rate(.load_alone_bytes; .load_alone_ms)) | add)
                as $alone |
            close(.loaded_ms; .loaded_ranks | map(.ms) | max) and
            close(.refit_slowdown; .loaded_ms / .refit_ms) and
            close(.load_gbytes_per_s; $beside) and
            close(.load_alone_gbytes_per_s; $alone) and
            close(.load_slowdown; $alone / $beside) and
            all($with[]; .load_bytes % 65536 == 0 and .load_ms >= .ms))'
    expect_json "$1" 'def median: sort | (.[(length - 1) / 2 | floor] +
            .[length / 2 | floor]) / 2;
        .iterations as $all | .summary.load |
        all(.refit_slowdown, .load_slowdown;
            .count == ($all | length) and .low <= .median and
            .median <= .high) and
        ((.refit_slowdown.median / ($all | map(.refit_slowdown) | median) - 1)
            | fabs) < 1e-6 and
        ((.load_slowdown.median / ($all | map(.load_slowdown) | median) - 1)
            | fabs) < 1e-6 and
        ((.load_ms / ($all | map([.loaded_ranks[].load_ms // 0] | max) |
            median) - 1) | fabs) < 1e-6 and
        ((.alone_gbytes_per_s /
            ($all | map(.load_alone_gbytes_per_s) | median) - 1)
            | fabs) < 1e-6'
}

test_a_refit_is_measured_without_and_under_load() {
    cluster '.scenarios[0] += {mode: "disaggregated", train: {tp: 2},
        infer: {tp: 2}, method: ["host", "tcp", "disk"], disk: {folder: "."}}'
    coord_exits 0 cluster.json
    for file in results/*/s-method=*.json; do
        expect_verified "$file"
        expect_effects "$file"
        # On no rank that trains.
        expect_json "$file" '[.iterations[], .warmup_iterations[]] |
            all(.loaded_ranks | length == 4 and
                all(.[0, 1]; has("load_bytes") | not) and
                all(.[2, 3]; .load_alone_ms >= 20 and has("load_bytes")))'
        # What has no load beside it says nothing of one.
        expect_json "$file" '[.iterations[].ranks[] | has("load_bytes")] |
            any | not'
    done
    expect_text out 'refit slowdown +load GB/s +load alone GB/s +load slowdown'
    [ "$(csv_column results/*/summary.csv load_slowdown | wc -w)" = 3 ] ||
        fail "no load_slowdown in the CSV"
}

# Only this side of the limit: on a busy machine even a slow load may miss its
# rate. test_doubts tests both.
test_a_load_that_cannot_reach_its_rate_is_named() {
    cluster '.scenarios[0] += {yardstick: false, warmup: 0, iterations: 5,
        load: {memory_gbytes_per_s: 1000000}}'
    coord_exits 0 cluster.json
    expect_json "$(result s)" '.summary.load.asked_gbytes_per_s == 4e6 and
        (.flags | any(. == "weak_load"))'
    expect_text out '^load of all ranks too slow even alone .*: s \(.* of 4e\+06 GB/s\)$'
}

test_it_needs_no_yardstick() {
    cluster '.scenarios[0] += {yardstick: false, warmup: 0, iterations: 5}'
    coord_exits 0 cluster.json
    expect_verified "$(result s)"
    expect_effects "$(result s)"
}

test_a_paced_load_reads_no_more_than_it_says() {
    cluster '.scenarios[0].load = {memory_gbytes_per_s: 0.5, on: "all", cores: 2}'
    coord_exits 0 cluster.json
    expect_verified "$(result s)"
    # Four ranks, each with a block and a millisecond to catch up per thread.
    expect_json "$(result s)" 'all(.iterations[]; all(.loaded_ranks[];
        .load_alone_bytes <= 5e5 * (.load_alone_ms + 1) + 4 * 65536 and
        .load_bytes <= 5e5 * (.load_ms + 1) + 4 * 65536))'
    expect_json "$(result s)" '.scenario.load ==
        {memory_gbytes_per_s: 0.5, on: "all", cores: 2}'
}

# Node b's two ranks send to c's only one, and that to the first of them.
test_a_network_load_goes_from_node_to_node() {
    cluster '.nodes = [{host: "a", slots: 2}, {host: "b", slots: 2},
            {host: "c", slots: 1}]
        | .scenarios[0] += {mode: "disaggregated", method: "tcp",
            train: {nodes: ["a"], tp: 1, dp: 2},
            infer: {nodes: ["b", "c"], tp: 1, dp: 3},
            load: {network_gbytes_per_s: ["max", 0.05]}}'
    coord_exits 0 cluster.json
    for file in results/*/s-*.json; do
        expect_verified "$file"
        expect_effects "$file"
        expect_json "$file" '[.iterations[], .warmup_iterations[]] |
            all(.loaded_ranks | map(has("load_bytes")) ==
                [false, false, true, true, true])'
        expect_json "$file" '[.iterations[].loaded_ranks[2:]] | transpose |
            all(map(.load_alone_bytes + .load_bytes) | add > 0)'
    done
    for file in results/*/s-*=0.05*.json; do
        expect_json "$file" 'all(.iterations[].loaded_ranks[2:][];
            .load_alone_bytes <= 5e4 * (.load_alone_ms + 1) + 2 * 65536)'
    done
}

# The second iteration begins under load, so its refit without is not reached.
test_a_wrong_byte_under_load_is_found() {
    cluster '.scenarios[0] += {warmup: 0, iterations: 2}'
    REFIT_TEST_FLIP=1:1 coord_exits 3 cluster.json
    expect_json "$(result s)" '.status == "mismatch" and
        .verification.first_mismatch.iteration == 1 and
        .verification.rounds == 1 and (.iterations | length) == 1'
}

test_an_update_travels_twice() {
    cluster '.scenarios[0] += {update: {density: 0.1, restart_every: 2},
        encoding: ["dense", "auto"], method: "tcp"}'
    coord_exits 0 cluster.json
    for file in results/*/s-*.json; do
        expect_verified "$file"
        expect_effects "$file"
    done
}

test_repeats_and_traces_have_loads() {
    cluster '.scenarios[0].iterations = 3'
    coord_exits 0 cluster.json --repeat 2 --trace t.json
    expect_json "$(result s)" '.status == "ok" and
        .summary.load.load_slowdown.count == 6'
    expect_effects "$(result s)"
}

test_what_no_rank_can_do_is_refused() {
    cluster '.scenarios[0].load.cores = 1024'
    coord_exits 4 cluster.json
    expect_text err 'scenarios\[0\]\.load\.cores \(s\): 1024 for each rank, but localhost has'
    cluster '.scenarios[0].load = {network_gbytes_per_s: "max"}'
    coord_exits 2 plan cluster.json
    expect_text err 'load: network_gbytes_per_s needs ranks on two nodes'
    for load in '{}' '{memory_gbytes_per_s: 0}' '{memory_gbytes_per_s: -1}' \
        '{memory_gbytes_per_s: "most"}' \
        '{memory_gbytes_per_s: 1, cores: 0}' \
        '{memory_gbytes_per_s: 1, on: "both"}' \
        '{memory_gbytes_per_s: 1, network_gbytes_per_s: 1}'; do
        cluster ".scenarios[0].load = $load"
        coord_exits 2 plan cluster.json
        expect_text err '\$\.scenarios\[0\]\.load'
    done
}

run_tests
