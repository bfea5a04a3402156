# Parameter totals of real models, against their published checkpoints; and what
# the plan prints for them.
# shellcheck shell=bash source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

total() { # MODEL PARAMETERS
    run_coord plan "$RF_TOP/models/$1.json" --json
    expect_exit 0
    expect_json out "[.. | .parameters? // empty] | index($2) != null"
    run_coord plan "$RF_TOP/models/$1.json"
    expect_exit 0
    tr -d ",'_ " <out | grep -q "$2" || fail "plan does not print $2"
}

test_llama_3_1_8b() { total llama-3.1-8b 8030261248; }
test_llama_3_2_3b() { total llama-3.2-3b 3212749824; }
test_qwen2_5_7b() { total qwen2.5-7b 7615616512; }
test_qwen3_0_6b() { total qwen3-0.6b 596049920; }
test_qwen3_8b() { total qwen3-8b 8190735360; }
test_qwen3_30b_a3b() { total qwen3-30b-a3b 30532122624; }
test_qwen3_235b_a22b() { total qwen3-235b-a22b 235093634560; }
test_deepseek_v3() { total deepseek-v3 671026419200; }

test_sizes_are_told_rounded_and_exactly() {
    run_coord plan "$RF_TOP/models/qwen3-0.6b.json"
    expect_text out '^  parameters  596\.05 M \(596,049,920\)$'
    expect_text out '^  bytes       1\.19 GB \(1,192,099,840\), bfloat16$'
}

test_cluster_file_of_the_project_is_valid() {
    run_coord plan "$RF_TOP/cluster.json"
    expect_exit 0
    expect_text out colocated
    expect_text out disaggregated
    expect_no_text err 'error'
}

test_every_example_can_be_planned() {
    local file
    for file in "$RF_TOP"/examples/*.json; do
        [ -f "$file" ] || continue
        run_coord plan "$file"
        expect_exit 0
    done
}

run_tests
