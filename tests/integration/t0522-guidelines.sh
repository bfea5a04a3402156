#!/bin/bash
# Performance guidelines: measured on this machine, found in results, violated
# only where intervals say so.
# long
# limit: 240
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"
export BUILD=$RF_BUILD_DIR

suite() {
    "$RF_TOP/scripts/refit-suite" guidelines "$@" >out 2>err
    status=$?
    show_output
}

guidelines() {
    "$RF_TOP/scripts/guidelines" "$@" >out 2>err
    status=$?
    show_output
}

# A record of a run that took these milliseconds. ASKED is "auto" or null.
record() { # NAME ASKED STRATEGY DP BYTES MS...
    mkdir -p run
    echo '{"scenarios": []}' >run/run.json
    jq -n '[$ARGS.positional[5:][] | tonumber] as $ms
        | $ARGS.positional as [$name, $asked, $strategy, $dp, $bytes]
        | {schema_version: 1, run_id: "r", name: $name, status: "ok",
           strategy_choice: (if $asked == "null" then null
               else {asked: $asked} end),
           model: {name: "m", bytes: ($bytes | tonumber)},
           scenario: {name: $name, method: "host", strategy: $strategy,
               infer: {tp: 1, dp: ($dp | tonumber)}},
           memory: [{host: "a"}, {host: "a"}],
           plan: {bytes_total: ($bytes | tonumber)},
           summary: {count: ($ms | length), median_ms: ($ms | sort
               | .[length / 2 | floor])},
           iterations: [$ms[] | {refit_ms: .}]}' --args "$@" >"run/$1.json"
}

test_a_violated_guideline_is_reported_with_its_interval() {
    record auto auto broadcast 2 1000 120 121 122 123 124 125 126
    record named null broadcast 2 1000 100 101 102 103 104 105 106
    record send null send_recv 2 1000 130 131 132 133 134 135 136
    guidelines run
    expect_exit 1
    expect_text out '^violated +auto <= broadcast +1\.194 +\[1\.1[0-9]*, 1\.2[0-9]*\] +auto, named$'
    expect_text out '^holds +auto <= send_recv +0\.925 +\[0\.[0-9]+, 0\.[0-9]+\] '
    expect_text out '^1 of 2 guidelines violated$'
    [ "$(head -c 8 out)" = violated ] || fail "not first"
}

test_scenarios_with_several_pools_have_guidelines() {
    local name
    record half null send_recv 1 1000 130 131 132 133 134 135 136
    record all null send_recv 2 2000 100 101 102 103 104 105 106
    record other null send_recv 3 3000 100 101 102 103 104 105 106
    for name in half all other; do
        jq '.model.bytes = 1000 | .scenario.infer |= [., {tp: 2, dp: (2 * .dp)}]' \
            "run/$name.json" >x && mv x "run/$name.json"
    done
    guidelines run
    expect_exit 1
    expect_text out '^violated +half the replicas <= all .* half, all$'
    expect_text out '^1 of 1 guidelines violated$'
}

test_noise_violates_nothing() {
    record auto auto broadcast 2 1000 90 150 95 140 112 108 100
    record named null broadcast 2 1000 85 145 90 135 103 104 95
    guidelines run
    expect_exit 0
    expect_text out '^holds +auto <= broadcast +1\.049 +\[0\.[0-9]+, 1\.[0-9]+\] '
    expect_text out '^0 of 1 guidelines violated$'
}

# Five repeats of two iterations each.
in_repeats() { # NAME...
    local name
    for name in "$@"; do
        jq '.iterations |= [to_entries[] | .value + {repeat: (.key / 2 | floor)}]' \
            "run/$name.json" >x && mv x "run/$name.json"
    done
}

test_few_repeats_need_a_larger_difference() {
    record auto auto broadcast 2 1000 114 115 118 119 120 121 122 123 126 127
    record named null broadcast 2 1000 100 101 104 105 106 107 108 109 112 113
    guidelines run
    expect_exit 1
    in_repeats auto named
    guidelines run
    expect_exit 0
    expect_text out '^holds +auto <= broadcast +1\.1[0-9]+ +\[0\.9[0-9]+, 1\.3[0-9]+\] '
    record auto auto broadcast 2 1000 140 141 144 145 146 147 148 149 152 153
    in_repeats auto
    guidelines run
    expect_exit 1
    expect_text out '^violated +auto <= broadcast +1\.3[0-9]+ '
}

test_few_samples_decide_nothing() {
    record auto auto broadcast 2 1000 200 201 202
    record named null broadcast 2 1000 100 101 102
    guidelines run
    expect_exit 0
    expect_text out '^unknown +auto <= broadcast +1\.99 +too few samples '
}

test_each_guideline_has_its_pairs() {
    record h null hierarchical 2 1000 120 121 122 123 124
    record b null broadcast 2 1000 100 101 102 103 104
    record s1 null send_recv 1 500 120 121 122 123 124
    record s2 null send_recv 2 1000 100 101 102 103 104
    record wide null send_recv 2 2000 80 81 82 83 84
    jq '.model.bytes = 1000' run/s1.json >x && mv x run/s1.json
    guidelines run
    expect_exit 1
    expect_text out '^violated +hierarchical <= broadcast .* h, b$'
    expect_text out '^violated +half the replicas <= all .* s1, s2$'
    expect_text out '^violated +half the bytes <= all .* s2, wide$'
    expect_text out '^3 of 3 guidelines violated$'
    # not on nodes of one rank; not between runs
    jq '.memory = [{host: "a"}, {host: "b"}]' run/h.json >x && mv x run/h.json
    jq '.run_id = "other"' run/wide.json >x && mv x run/wide.json
    guidelines run
    expect_text out '^1 of 1 guidelines violated$'
}

test_results_without_pairs_are_an_error() {
    record b null broadcast 2 1000 100 101 102 103 104
    guidelines run
    expect_exit 2
    expect_text err 'no two scenarios of a run'
    guidelines
    expect_exit 2
    mkdir empty
    guidelines empty
    expect_exit 2
    expect_text err 'no results in empty'
}

# Some machines may violate a guideline.
test_the_suite_measures_on_the_nodes_of_a_cluster_file() {
    mkdir mine
    jq '.nodes[0].slots = 6' <<<"$four_slots" >mine/cluster.json
    suite --cluster mine/cluster.json -o results \
        --set 'scenarios.*.iterations=3' -- --repeat 2
    [ "$status" -le 1 ] || fail "exit code $status"
    [ "$(grep -cE '^(holds|violated) +auto <= ' out)" = 12 ] || fail "no auto"
    [ "$(grep -cE '^(holds|violated) +hierarchical <= broadcast ' out)" = 2 ] ||
        fail "no hierarchical"
    [ "$(grep -cE '^(holds|violated) +half the replicas <= all ' out)" = 2 ] ||
        fail "no replicas"
    expect_text out '^(holds|violated) +half the bytes <= all .* strategies-infer\.dp=2-strategy=send_recv, twice-the-bytes$'
    expect_text out "^$(grep -c '^violated' out) of 17 guidelines violated$"
    expect_json_of_all '.repeats | length == 2' results/*/strategies-*.json
    expect_json results/*/one-replica.json \
        '.cluster.model.megatron.hidden_size == 128'
}

test_four_slots_leave_out_what_needs_six() {
    mkdir mine
    echo "$four_slots" >mine/cluster.json
    suite --cluster mine/cluster.json -- -n --json
    expect_exit 0
    expect_json out '[.scenarios[].scenario.infer.dp] | unique == [1, 2]'
    suite --cluster mine/cluster.json --testbed
    expect_exit 2
    expect_text err 'remove --cluster'
}

run_tests
