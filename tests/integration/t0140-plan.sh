#!/bin/bash
# What `plan` prints for people about meshes, nodes and memory.
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base='{
  "name": "t", "launch": {"method": "local"},
  "nodes": [{"host": "a", "slots": 1}, {"host": "b", "slots": 1},
    {"host": "c", "slots": 1}, {"host": "d", "slots": 1},
    {"host": "e", "slots": 1}, {"host": "f", "slots": 2},
    {"host": "g", "slots": 1}],
  "model": {"megatron": {"num_layers": 4, "hidden_size": 256,
    "num_attention_heads": 8, "vocab_size": 4096}},
  "scenarios": [{"name": "s", "train": {"tp": 8}, "infer": {"tp": 8}}]}'

test_memory_names_the_nodes_that_need_most() {
    cluster
    coord_exits 0 plan cluster.json
    expect_text out '^  memory .*\(host\), f [0-9.]+ MB, a .* and 2 more nodes, none above these$'
}

test_equal_memory_is_one_figure() {
    cluster
    run_coord plan cluster.json
    expect_text out '^  memory      [0-9.]+ MB per rank'
    cluster '.scenarios[0].train = {"pp": 4, "tp": 2}'
    run_coord plan cluster.json
    expect_text out '^  memory      [0-9.]+ MB to [0-9.]+ MB per rank'
}

test_a_prediction_is_printed_once() {
    cluster '.scenarios[0].method = ["host", "tcp"] | .links = {
        copy_gbytes_per_s: 20, link_gbytes_per_s: 1,
        methods: {tcp: {link_gbytes_per_s: 2, copy_gbytes_per_s: 2},
            nccl: {link_gbytes_per_s: 9, copy_gbytes_per_s: 99}}}'
    coord_exits 0 predict cluster.json --json
    expect_json out '[.predictions[] | "\(.scenario) \(.method)"] ==
        ["s-method=host host", "s-method=host nccl", "s-method=tcp tcp"]'
}

test_no_host_is_named_where_there_are_no_nodes() {
    cluster 'del(.nodes) | .scenarios[0].train = {"tp": 1, "dp": 1}
        | .scenarios[0].infer = {"tp": 1, "dp": 1}'
    coord_exits 0 plan cluster.json
    expect_text out 'rank 0  '
    expect_text out '\(host\)$'
    expect_text out 'dp 1: 1 rank$'
    expect_no_text out ' -( |$)'
}

test_dtype_changes_are_shown_with_the_meshes() {
    cluster
    run_coord plan cluster.json
    expect_no_text out 'dtype|cast|quantized'
    cluster '.scenarios[0].train.dtype = "float32"'
    run_coord plan cluster.json
    expect_text out '^  training .*, dtype float32: 8 ranks$'
    expect_text out '^  inference .*, cast at the (source|destination): 8 ranks$'
    cluster '.scenarios[0].train = {"tp": 1}
        | .scenarios[0].infer = {"tp": 1, "layout": "hf", "quantize": true}'
    run_coord plan cluster.json
    expect_text out '^  inference .*, then quantized to fp8_block128: 8 ranks$'
    cluster '.scenarios[0] += {infer: {"tp": 1, "layout": "hf"},
        quantize: ["fp8_tensor", "fp8_block128_ue8m0"]}'
    run_coord plan cluster.json
    expect_text out '^  inference .*, then quantized to fp8_tensor: 8 ranks$'
    expect_text out '^  inference .*, then quantized to fp8_block128_ue8m0: 8 ranks$'
}

test_groups_load_and_pools_have_a_line() {
    cluster
    coord_exits 0 plan cluster.json
    expect_no_text out '^  (groups|load) |ranks?, receive'
    cluster '.scenarios[0] += {train: {pp: 2, tp: 4}, group: [{by: "layer"},
            {by: "bytes:1GB", in_flight: 1, serial_pp: true}],
        load: {memory_gbytes_per_s: 1.5, cores: 2}}'
    coord_exits 0 plan cluster.json
    expect_text out '^  groups      3 of up to 1 layer of each training stage; largest [0-9.]+ MB, 2 in flight$'
    expect_text out '^  groups      2 of up to 1.00 GB, stage after stage; largest [0-9.]+ MB, 1 in flight$'
    expect_text out '^  load        each inference rank reads 1.5 GB/s from memory, by 2 cores$'
    [ "$(grep -o 'schedule [0-9a-f]\{32\}' out | sort -u | wc -l)" = 2 ] ||
        fail "schedules of different groups have one digest"
    cluster '.scenarios[0] += {strategy: "gather_broadcast", group: "rdt",
        load: {network_gbytes_per_s: "max", on: "all"}}'
    coord_exits 0 plan cluster.json
    expect_text out '^  groups .* in flight, staging up to [0-9.]+ MB per rank$'
    expect_text out '^  load        each rank sends as much as it can to other nodes, by 1 core$'
    cluster '.scenarios[0] += {mode: "disaggregated", train: {tp: 1, dp: 1},
        infer: [{tp: 2, dp: 1}, {tp: 1, dp: 1}]}'
    coord_exits 0 plan cluster.json
    expect_text out '^  infer\[0\]    .*: 2 ranks, receive [0-9.]+ MB$'
    expect_text out '^  infer\[1\]    .*: 1 rank, receives [0-9.]+ MB$'
}

# Flat shards: a rank may hold a tensor whole and slivers of its neighbours.
test_the_largest_share_of_a_tensor_is_shown() {
    cluster '.scenarios[0].train = {"layout": "fsdp1", "dp": 8}
        | .scenarios[0].infer = {"layout": "fsdp", "dp": 8}'
    coord_exits 0 plan -v cluster.json
    expect_text out 'embed_tokens\.weight +\[4096, 256\] +1  embedding +up to [0-9]+ of 1048576 elements +\[512, 256\] +llama: model\.embed_tokens\.weight$'
    expect_text out 'layers\.\{L\}\.input_layernorm\.weight +\[256\] +4  norm or row bias +whole +\[32\] +llama: '
    cluster '.scenarios[0].train = {"layout": "fsdp", "dp": 8}
        | .model.megatron.vocab_size = 4090'
    run_coord plan -v cluster.json
    expect_text out 'embed_tokens\.weight +\[4090, 256\] +1  embedding +up to \[512, 256\] '
}

test_errors_and_notes_follow_what_is_printed_before_them() {
    cluster '.scenarios[0].train.tp = [8, 3]'
    "$coord" plan cluster.json >both 2>&1 && fail "not refused"
    head -n 1 both >first
    tail -n 1 both >last
    expect_text first '^model '
    expect_text last '^error: .*tp 3'
    cluster '.scenarios[0] += {impossible: "skip", train: {tp: [8, 3]}}'
    "$coord" plan cluster.json >both 2>&1 || fail "exit $?"
    tail -n 2 both >last
    expect_text last '^1 of 2 scenarios, '
    expect_text last '^skipped: .*tp 3'
}

test_files_that_are_no_cluster_files_are_named_as_what_they_are() {
    mkdir folder
    coord_exits 2 plan folder
    expect_text err 'folder: is a folder; .*"checkpoint": "folder"'
    coord_exits 2 "$RF_TOP/models/qwen3-8b.json"
    expect_text err "is a model's config.json, .*refit-coord plan"
}

test_numbers_of_python_are_for_config_json_alone() {
    jq -c '.rope_theta = 7777' "$RF_TOP/models/qwen3-8b.json" |
        sed 's/7777/Infinity/' >model.json
    coord_exits 0 plan model.json
    expect_text out 'parameters  8.19 B'
    echo '{"name": NaN, "scenarios": []}' >cluster.json
    coord_exits 2 plan cluster.json
    expect_text err "invalid token near 'NaN'"
}

run_tests
