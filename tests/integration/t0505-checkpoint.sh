# Real weights: read from a folder of safetensors, refitted, compared with the
# files and written again.
# limit: 240
# shellcheck shell=bash source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base=$(jq '.model = {checkpoint: "model"} | .scenarios = [{name: "s",
    train: {tp: 2, pp: 2}, infer: {tp: 4, layout: "vllm"}, warmup: 1,
    iterations: 2}]' <<<"$four_slots")

make_checkpoint() { # [OPTION...]
    "$RF_TOP/tests/lib/make-checkpoint" model "$@" >total ||
        fail "make-checkpoint failed"
}

test_the_result_says_how_fast_a_checkpoint_was_read() {
    make_checkpoint
    cluster
    run_coord cluster.json
    expect_exit 0
    expect_verified "$(result s)"
    # Each half of the ranks holds the embedding, which is tied; norms are on
    # all ranks of a stage.
    expect_json "$(result s)" '.setup.checkpoint | .bytes > '"$(cat total)"' and
        .read_bytes >= .bytes and .read_ms > 0 and .gbytes_per_s > 0'
}

test_a_wrong_byte_of_a_checkpoint_is_named() {
    make_checkpoint --shards 1
    cluster
    REFIT_TEST_FLIP=1:0 run_coord cluster.json
    expect_exit 3
    expect_json "$(result s)" '.verification | .mismatched_bytes == 1 and
        (.first_mismatch.tensor | startswith("model."))'
}

run_tests
