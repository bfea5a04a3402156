#!/bin/bash
# One destination byte changes after a refit, by a test hook: exit code 3 and a
# result that says where.
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base=$(jq '. + {scenarios: [
    {"name": "colocated", "mode": "colocated", "train": {"tp": 2, "pp": 2},
     "infer": {"tp": 4, "layout": "hf"}, "warmup": 1, "iterations": 3}
  ]}' <<<"$four_slots")

test_a_flipped_byte_is_found_and_named() {
    local file
    cluster
    REFIT_TEST_FLIP=2:2 coord_exits 3 cluster.json # rank 2, the second iteration
    file=$(result colocated)
    expect_json "$file" '.status == "mismatch"'
    expect_json "$file" '.verification.mismatched_bytes == 1'
    expect_json "$file" '.verification.first_mismatch |
        (.tensor | length > 0) and (.index | length > 0) and .rank == 2 and
        .expected != .found'
    local tensor
    tensor=$(jq -r .verification.first_mismatch.tensor "$file")
    grep -qF "$tensor" err || fail "the error does not name the tensor"
}

test_a_flipped_byte_of_a_warm_up_counts_too() {
    cluster
    REFIT_TEST_FLIP=0:0 coord_exits 3 cluster.json
}

run_tests
