#!/bin/bash
# Iterations until the median is known: what ends them, and what says that they
# were too few.
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

cluster() { # ITERATIONS
    cat >cluster.json <<EOF
{"name": "t", "launch": {"method": "local"},
 "nodes": [{"host": "localhost", "slots": 4}],
 "model": {"megatron": {"num_layers": 4, "hidden_size": 128,
           "num_attention_heads": 8, "vocab_size": 1000, "swiglu": true}},
 "scenarios": [{"name": "x", "train": {"tp": 2, "pp": 2}, "infer": {"tp": 4},
                "iterations": $1}]}
EOF
}

half_widths='def wide(p): .summary.yardstick_ratio |
    (.high - .low) / 2 / .median * 100 >= p;'

test_a_narrow_interval_ends_them() {
    cluster '{"min": 5, "max": 2000, "ci_percent": 60}'
    coord_exits 0 cluster.json
    expect_json results/*/x.json "$half_widths"'
        .iterations_ended_by == "ci" and (wide(60) | not) and
        .summary.count >= 5 and .summary.count < 2000 and
        .verification.rounds == .summary.count and
        (.flags | index("wide_interval")) == null'
}

test_the_most_ends_them_and_a_wide_interval_is_a_flag() {
    cluster '{"min": 5, "max": 6, "ci_percent": 0.01}'
    coord_exits 0 cluster.json
    expect_json results/*/x.json '.iterations_ended_by == "max" and
        .summary.count == 6 and
        (.flags | index("wide_interval") != null and .[-1] == "unstable")'
    expect_text out '^unstable, .*x \(.*wide_interval'
    run_coord report results
    expect_text out '^unstable, .*x \(.*wide_interval'
}

test_the_time_ends_them() {
    cluster '{"min": 5, "max": 10000, "ci_percent": 0.01, "max_s": 1}'
    coord_exits 0 cluster.json
    expect_json results/*/x.json '.iterations_ended_by == "max_s" and
        .summary.count < 10000'
    expect_text out '^stopped at iterations.max_s: x \([0-9]+ iterations\)$'
}

test_a_number_is_a_number() {
    cluster 3
    coord_exits 0 cluster.json
    expect_json results/*/x.json '.iterations_ended_by == "max" and
        .summary.count == 3 and .scenario.iterations == 3'
}

test_a_bad_rule_is_named_by_its_path() {
    cluster '{"min": 9, "max": 6, "ci_percent": 2}'
    coord_exits 2 cluster.json -n
    expect_text err '\$\.scenarios\[0\]\.iterations\.max \(x\): '
}

run_tests
