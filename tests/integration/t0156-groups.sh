#!/bin/bash
# "group": tensors move group after group, few at a time.
# limit: 240
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base=$(jq '. + {nodes: [{host: "a", slots: 4}, {host: "b", slots: 2}],
  model: {megatron: {num_layers: 8, hidden_size: 64, num_attention_heads: 4,
      vocab_size: 512, untie_embeddings_and_output_weights: true}},
  scenarios: [{name: "s", mode: "disaggregated", method: "tcp",
      train: {nodes: ["a"], tp: 2, pp: 2}, infer: {nodes: ["b"], tp: 2},
      group: {by: "layer"}, warmup: 0, iterations: 2}]}' <<<"$four_slots")

# What of t.json shows in which order ranks take groups: for each rank and group
# the first start and the last end of its own operations.
spans='[.traceEvents[] | select(.cat == "refit" and .args.group != null and
        (.tid == .args.from or .tid == .args.to)) |
        {rank: .tid, group: .args.group, ts, end: (.ts + .dur)}] |
    group_by([.rank, .group]) |
    map({rank: .[0].rank, group: .[0].group, ts: (map(.ts) | min),
         end: (map(.end) | max)})'

# Groups that began at a rank before those that they wait for ended there.
hasty() { # IN_FLIGHT
    jq "$spans | . as \$all | map(. as \$late | \$all[] |
        select(.rank == \$late.rank and .group < \$late.group and
            (\$late.group - .group) % $1 == 0 and .end > \$late.ts)) |
        length" t.json
}

test_groups_wait_for_those_before_them_in_their_slot() {
    for in_flight in 1 2 3; do
        cluster ".scenarios[0].group.in_flight = $in_flight"
        coord_exits 0 cluster.json --trace t.json
        expect_verified "$(result s)"
        rm -r results
        # Both stages begin with group 0: the embedding, or a layer.
        expect_json t.json "$spans | map(select(.rank >= 4).group) |
            . == [range(5), range(5)]"
        [ "$(hasty "$in_flight")" = 0 ] ||
            fail "$in_flight: $(hasty "$in_flight") began early"
    done
}

test_serial_groups_take_stage_after_stage() {
    cluster '.scenarios[0].group.serial_pp = true'
    coord_exits 0 cluster.json --trace t.json
    expect_verified "$(result s)"
    [ "$(hasty 2)" = 0 ] || fail "groups began early"
    # The second stage is on ranks 2 and 3.
    expect_json t.json '[.traceEvents[] |
        select(.cat == "refit" and .args.group != null) | .args] |
        [map(select(.from < 2).group), map(select(.from >= 2).group)] |
        all(.[]; length > 0) and (.[0] | max) < (.[1] | min)'
}

# Each replica sends some of the values and the scales, which are in other groups.
# What it does not send is converted after the window: sources are verified whole.
test_groups_are_converted_while_others_move() {
    cluster '.model.megatron |= (.hidden_size = 256)
        | .scenarios[0] += {train: {nodes: ["a"], tp: 1, dp: 4},
            group: {by: ["layer", "bytes:32KiB"]},
            quantize: {format: "mxfp8", at: ["sender", "receiver"],
                overlap: [true, false]}, yardstick: false}'
    coord_exits 0 cluster.json
    expect_text out '^scenario .* quantize .* convert ms +wire ms '
    [ "$(csv_column results/*/summary.csv quantize | sort -u | xargs)" = \
        "mxfp8@receiver mxfp8@receiver+overlap mxfp8@sender mxfp8@sender+overlap" ] ||
        fail "summary.csv does not tell conversions apart"
    for result in results/*/s*.json; do
        expect_verified "$result"
        expect_json "$result" '[.iterations[].ranks[] | select(.quantize_ms) |
            .quantize_ms <= ([.pack_ms, .unpack_ms] | max) + 0.001] |
            length > 0 and all'
    done
}

# Rank 0 sends, rank 4 receives.
test_a_rank_that_dies_inside_a_conversion_is_named() {
    local at overlap rank
    for at in sender receiver; do
        [ "$at" = sender ] && rank=0 || rank=4
        for overlap in true false; do
            cluster ".scenarios[0] += {quantize: {format: \"mxfp8\",
                at: \"$at\", overlap: $overlap}}"
            REFIT_TEST_EXIT=$rank:1:quantize coord_exits 1 cluster.json
            expect_json "$(result s)" ".errors[0] | .rank == $rank and
                .host == if $rank == 0 then \"a\" else \"b\" end and
                (.phase | startswith(\"run iteration 2\")) and
                (.text | test(\"signal 9\"))"
            expect_json "$(result s)" '.iterations | length == 1'
            rm -r results
        done
    done
}

test_conversions_that_cannot_overlap_are_refused() {
    cluster '.scenarios[0] += {method: "disk", disk: {folder: "."},
        quantize: {format: "mxfp8", at: "sender", overlap: true}}'
    coord_exits 2 cluster.json
    expect_text err 'method disk writes all that its senders hold'
}

test_all_strategies_and_methods_move_groups() {
    cluster ".scenarios[0] |= (.mode = \"colocated\" |
        .train = {tp: 2, dp: 3} | .infer = {tp: 1} |
        .method = [\"host\", \"tcp\", \"disk\"] | .disk.folder = \"$PWD\" |
        .strategy = [\"send_recv\", \"broadcast\", \"hierarchical\",
            \"allgather\", \"allgather_global\", \"gather_broadcast\"] |
        .group = {by: \"bytes:40kB\"})"
    coord_exits 0 cluster.json
    [ "$(cat results/*/s*.json | jq -s 'map(select(
        .verification.mismatched_bytes == 0 and .status == "ok")) | length')" = 18 ] ||
        fail "not all verified"
}

test_staging_has_room_for_the_groups_in_flight() {
    local bytes of
    cluster '.scenarios[0].strategy = "gather_broadcast"'
    for in_flight in 1 2 5; do
        coord_exits 0 plan cluster.json --json \
            --set "scenarios.s.group.in_flight=$in_flight"
        bytes[in_flight]=$(jq '[.. | objects | .stage_bytes? // empty] | max' out)
    done
    of=$(jq '[.. | objects | .infer_bytes? // empty] | max' out)
    if [ "${bytes[*]}" != "${bytes[1]} $((2 * bytes[1])) $((5 * bytes[1]))" ] ||
        [ "${bytes[1]}" -ge "$of" ]; then
        fail "${bytes[*]} of $of"
    fi
    coord_exits 0 cluster.json
    expect_verified "$(result s)"
}

test_names_are_what_systems_ship() {
    cluster '.scenarios[0].group = ["rdt", "nemo-rl", "slime", "verl",
        "vllm-nccl"]'
    coord_exits 0 plan cluster.json --json
    expect_json out '[.. | objects | select(has("by")) ] | unique == [
        {by: "bytes:1073741824", in_flight: 2, serial_pp: false},
        {by: "bytes:1717986918", in_flight: 2, serial_pp: false},
        {by: "bytes:2147483648", in_flight: 1, serial_pp: false},
        {by: "bytes:536870912", in_flight: 1, serial_pp: true},
        {by: "layer", in_flight: 2, serial_pp: false}]'
}

test_bad_groups_are_named() {
    local group text
    while read -r group text; do
        cluster ".scenarios[0].group = $group"
        coord_exits 2 plan cluster.json
        expect_text err "$text"
    done <<'GROUPS'
"rtd" scenarios\[0\].group.*must be an object.*"rdt"
{} scenarios\[0\].group.*"by"
{"by":"tensor"} group.by.*must be "layer"
{"by":"layers:0"} group.by.*must be "layer"
{"by":"bytes:12"} group.by.*4 KiB to 1 PiB
{"by":"bytes:1PB"} group.by.*must be "layer"
{"by":"bytes:-1"} group.by.*must be "layer"
{"by":"layer","in_flight":0} group.in_flight.*1 to 16
{"by":"layer","in_flite":1} "in_flight"
GROUPS
}

run_tests
