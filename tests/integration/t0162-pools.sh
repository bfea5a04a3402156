#!/bin/bash
# "infer" as a list: one refit serves several pools of inference ranks.
# limit: 300
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

# Prefill with TP, decode with DP and experts, on nodes of their own.
base=$(jq '. + {nodes: [{host: "a", slots: 2}, {host: "b", slots: 2},
        {host: "c", slots: 2}],
    model: {megatron: {num_layers: 2, hidden_size: 256, num_attention_heads: 4,
        vocab_size: 512, num_experts: 4, moe_ffn_hidden_size: 128,
        swiglu: true}},
    scenarios: [{name: "s", mode: "disaggregated",
        train: {nodes: ["a"], tp: 2},
        infer: [{nodes: ["b"], layout: "vllm", tp: 2},
            {nodes: ["c"], layout: "vllm", dp: 2, ep: 2}],
        warmup: 0, iterations: 2}]}' <<<"$four_slots")

every_strategy='["send_recv", "broadcast", "hierarchical", "allgather",
    "allgather_global", "gather_broadcast"]'

test_all_strategies_and_methods_serve_both_pools() {
    cluster ".scenarios[0] += {strategy: $every_strategy,
        method: [\"host\", \"tcp\", \"shm\", \"disk\"],
        disk: {folder: \"$PWD\"}, yardstick: false}
        | .nodes |= [{host: \"a\", slots: 6}]
        | .scenarios[0] |= (del(.train.nodes) | .infer |= map(del(.nodes))
            | .infer[1].dp = 2)"
    coord_exits 0 cluster.json
    [ "$(find results -name 's-*.json' | wc -l)" = 24 ] || fail "not 24 results"
    expect_verified results/*/s-*.json
}

test_results_have_the_time_of_each_pool() {
    local pool
    cluster '.'
    coord_exits 0 cluster.json
    expect_verified "$(result s)"
    expect_text out 'infer\[0\] ms +infer\[1\] ms'
    expect_json "$(result s)" '.plan.pools == [{first_rank: 2, ranks: 2},
        {first_rank: 4, ranks: 2}] and (.scenario.infer | length) == 2'
    # Of two iterations, the median is the mean.
    expect_json "$(result s)" '. as $it | ([2, 4] | map(. as $r |
            $it.iterations | map([.ranks[$r, $r + 1].ms] | max) | add / 2)) as
        $want | .summary.pools | map(.median_ms) | length == 2 and
        ([.[0] - $want[0], .[1] - $want[1]] | all(fabs < 1e-6))'
    for pool in 0 1; do
        expect_json "$(result s)" "(.summary.pools[$pool].median_ms -
            $(csv_column results/*/summary.csv "infer${pool}_ms") | fabs) < 1e-6"
    done
}

test_a_wrong_byte_in_any_pool_is_found() {
    local rank
    cluster '.scenarios[0].yardstick = false'
    for rank in 2 5; do
        REFIT_TEST_FLIP=$rank:1 coord_exits 3 cluster.json
        expect_json "$(result s)" ".status == \"mismatch\" and
            .verification.first_mismatch.rank == $rank"
        rm -r results
    done
}

# What both pools need crosses the link of training only once, if it is forwarded.
test_pools_share_what_is_forwarded() {
    local one all
    cluster '.scenarios[0] |= (.strategy = "hierarchical" |
        .infer[1] = (.infer[0] | .nodes = ["c"]))'
    coord_exits 0 plan cluster.json --json
    all=$(jq '.scenarios[0].traffic | map(select(.[0] < 2)[2]) | add' out)
    coord_exits 0 plan cluster.json --json \
        --set 'scenarios.s.infer={"nodes": ["b"], "layout": "vllm", "tp": 2}'
    one=$(jq '.scenarios[0].traffic | map(select(.[0] < 2)[2]) | add' out)
    [ "$all" = "$one" ] || fail "$all bytes for two pools, $one for one"
}

test_pools_have_formats_of_their_own() {
    cluster '.scenarios[0] |= (.infer[0].quantize = "mxfp8" |
        .infer[1].quantize = "fp8_tensor" | .infer[2] = {tp: 1} |
        .infer[2].layout = "vllm" | .yardstick = false)
        | .nodes[3] = {host: "d", slots: 1}'
    coord_exits 0 cluster.json
    expect_verified "$(result s)"
    expect_json "$(result s)" '.verification.quantized_bytes > 0 and
        .summary.conversion.name == "mxfp8/fp8_tensor/none@receiver" and
        (.summary.pools | map(has("quantize_ms"))) == [true, true, false]'
}

test_senders_convert_to_one_format_for_all_pools() {
    cluster '.scenarios[0] += {quantize: {format: "mxfp8", at: "sender"}}'
    coord_exits 0 cluster.json
    expect_verified "$(result s)"
    coord_exits 2 plan cluster.json --set scenarios.s.infer[1].quantize=nvfp4
    expect_text err 'infer\[1\] \(s\): senders convert to one format, mxfp8'
}

test_one_pool_shares_the_slots_of_training() {
    cluster ".scenarios[0] |= (.mode = \"colocated\" |
        .infer[0].nodes = [\"a\"] | .strategy = $every_strategy)"
    coord_exits 0 cluster.json
    [ "$(find results -name 's-*.json' | wc -l)" = 6 ] || fail "not 6 results"
    expect_verified results/*/s-*.json
    expect_json_of_all '.plan.pools[0].first_rank == 0 and
        .plan.bytes_local > 0' results/*/s-*.json
}

test_changes_and_restarts_reach_all_pools() {
    cluster '.scenarios[0] += {update: {density: 0.05, restart_every: 2},
        encoding: "auto", iterations: 4, yardstick: false}'
    coord_exits 0 cluster.json
    expect_verified "$(result s)"
    # The last replicas: both ranks of the first pool, one of the second.
    expect_json "$(result s)" '[.iterations[].resyncs] == [null, 3, null, 3]'
}

test_axes_inside_pools_make_a_matrix() {
    cluster '.scenarios[0].infer[1].dp = [1, 2] |
        .scenarios[0].infer[1].ep = 1'
    coord_exits 0 plan cluster.json --json
    expect_json out '[.scenarios[].scenario.name] ==
        ["s-infer.1.dp=1", "s-infer.1.dp=2"] and
        [.scenarios[].meshes.infer[1].dp] == [1, 2]'
}

test_each_pool_has_the_defaults() {
    cluster '.defaults = {infer: {layout: "vllm", tp: 2}} |
        .scenarios[0].infer = [{nodes: ["b"]}, {nodes: ["c"], tp: 1}]'
    coord_exits 0 plan cluster.json --json
    expect_json out '[.scenarios[0].meshes.infer[] | [.layout, .tp]] ==
        [["vllm", 2], ["vllm", 1]]'
    cluster '.defaults = {infer: [{layout: "vllm"}, {layout: "sglang", tp: 2}]} |
        .scenarios[0].infer = [{nodes: ["b"]}, {nodes: ["c"]}]'
    coord_exits 0 plan cluster.json --json
    expect_json out '[.scenarios[0].meshes.infer[] | [.layout, .tp]] ==
        [["vllm", 1], ["sglang", 2]]'
}

test_advice_is_for_every_pool() {
    cluster '.timeline = {memory_gbytes: 0.001}'
    coord_exits 0 advise cluster.json
    expect_text out 'infer\[0\]: weights of [0-9.e-]+ GB a GPU do not fit'
    { echo '{' && sed -n '/^  "/p' out && echo '}'; } >pasted
    expect_json pasted '(.infer | length) == 2 and .infer[1].ep == 2'
}

test_bad_pools_are_named() {
    local infer text
    while read -r infer text; do
        cluster ".scenarios[0].infer = $infer"
        coord_exits 2 plan cluster.json
        expect_text err "$text"
    done <<'POOLS'
[] scenarios\[0\].infer.*has.0.pools
[{},{},{},{},{}] scenarios\[0\].infer.*has.5.pools
[{},3] infer\[1\] \(s\): must be an object
[{"tq":2},{}] infer\[0\].*"tq"
[{"nodes":["b"]},{"nodes":["b"]}] infer\[1\]: .*lists a node of infer\[0\]
[{"nodes":["b"],"tp":3},{}] infer\[0\]: tp 3 is impossible
[{"nodes":["b"]},{"dtype":"float32"}] infer\[1\] \(s\): all pools must have the same "dtype"
POOLS
    cluster '.'
    mkdir there
    coord_exits 2 cluster.json --export there
    expect_text err 'export: writes the model of one pool, and the scenario has 2'
}

run_tests
