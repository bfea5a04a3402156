#!/bin/bash
# Real weights: read from a folder of safetensors, refitted, compared with the
# files and written again.
# limit: 300
# shellcheck source=../lib/test.sh disable=SC2034
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
    coord_exits 0 cluster.json
    expect_verified "$(result s)"
    # Each half of the ranks holds the embedding, which is tied; norms are on
    # all ranks of a stage.
    expect_json "$(result s)" '.setup.checkpoint | .bytes > '"$(cat total)"' and
        .read_bytes >= .bytes and .read_ms > 0 and .gbytes_per_s > 0'
}

# Fills a cache of the Hub as `hf download tiny/model` does.
fill_hub_cache() {
    export HF_HUB_CACHE=$PWD/cache
    make_checkpoint
    mkdir -p cache/models--tiny--model/{refs,snapshots}
    mv model cache/models--tiny--model/snapshots/c0ffee
    printf c0ffee >cache/models--tiny--model/refs/main
}

test_a_model_of_the_hub_comes_from_the_local_cache() {
    fill_hub_cache
    cluster '.model.checkpoint = "tiny/model"'
    coord_exits 0 cluster.json
    expect_verified "$(result s)"
    expect_json "$(result s)" '.model.revision == "c0ffee" and
        .model.name == "model" and .cluster.model.revision == "c0ffee" and
        (.cluster.model.folder | endswith("/snapshots/c0ffee"))'
    run_coord rerun -o again "$(result s)"
    expect_text err 'results in again/'
    cluster '.model = {config: "tiny/model"}'
    coord_exits 0 plan cluster.json --json
    expect_json out '.model.revision == "c0ffee"'
}

test_a_model_that_is_not_in_the_cache_comes_with_the_command_that_fetches_it() {
    fill_hub_cache
    cluster '.model = {config: "tiny/other"}'
    coord_exits 2 plan cluster.json
    expect_text err "[$].model.config: tiny/other: no such file, .*$PWD/cache.*: hf download tiny/other config.json$"
    cluster '.model = {config: "tiny/model", revision: "v2"}'
    coord_exits 2 plan cluster.json
    expect_text err 'hf download tiny/model config.json --revision v2$'
    cluster '.model.checkpoint = "tiny/other"'
    coord_exits 2 plan cluster.json
    expect_text err 'warning: unless nodes have the folder: .*: hf download tiny/other$'
}

test_a_wrong_byte_of_a_checkpoint_is_named() {
    make_checkpoint --shards 1
    cluster
    REFIT_TEST_FLIP=1:0 coord_exits 3 cluster.json
    expect_json "$(result s)" '.verification | .mismatched_bytes == 1 and
        (.first_mismatch.tensor | startswith("model."))'
}

# TP2·PP2 to TP4, several shards, tied embeddings: every tensor comes back.
test_an_export_equals_the_checkpoint_byte_for_byte() {
    make_checkpoint
    mkdir exported
    cluster
    coord_exits 0 --export exported cluster.json
    expect_json "$(result s)" ".export == {folder: \"$PWD/exported\",
        bytes: $(cat total)} and .setup.export_ms > 0"
    "$RF_TOP/tests/lib/same-tensors" model exported || fail "not the same"
    expect_json exported/config.json '.model_type == "qwen3"'
    [ -z "$(find exported -name 'refit-*')" ] || fail "parts are left"
    # What was written is a checkpoint again.
    cluster '.model.checkpoint = "exported"'
    coord_exits 0 plan cluster.json
}

# Replicas, shards over stages and separate heads: each box is written once.
test_exports_of_other_meshes_and_methods_are_the_same() {
    make_checkpoint --untied --shards 1
    cluster '.nodes[0].slots = 6 | .scenarios[0] |= . + {mode:
        "disaggregated", train: {tp: 2}, infer: {tp: 2, dp: 2, layout: "vllm"},
        method: "shm"}'
    mkdir replicas stages
    coord_exits 0 --export replicas cluster.json
    "$RF_TOP/tests/lib/same-tensors" model replicas || fail "not the same"
    cluster '.scenarios[0] |= . + {train: {layout: "fsdp"},
        infer: {tp: 2, pp: 2, layout: "megatron"}, warmup: 0}'
    coord_exits 0 --export stages cluster.json
    "$RF_TOP/tests/lib/same-tensors" model stages || fail "not the same"
}

# All experts of a layer are one tensor, of which each rank holds some.
test_experts_in_one_tensor_are_exported_as_one() {
    make_checkpoint --experts 4 --untied
    mkdir apart cut
    cluster '.scenarios[0] |= . + {mode: "disaggregated", method: "shm",
        train: {tp: 2, ep: 2, etp: 1},
        infer: {tp: 2, ep: 2, etp: 1, layout: "vllm"}}'
    coord_exits 0 --export apart cluster.json
    "$RF_TOP/tests/lib/same-tensors" model apart || fail "not the same"
    cluster '.scenarios[0] |= . + {train: {layout: "fsdp"},
        infer: {tp: 4, layout: "vllm"}}'
    coord_exits 0 --export cut cluster.json
    "$RF_TOP/tests/lib/same-tensors" model cut || fail "not the same"
}

test_an_export_of_a_cast_has_the_dtype_that_arrived() {
    make_checkpoint --shards 1
    mkdir exported
    cluster '.scenarios[0].infer.dtype = "float32"'
    coord_exits 0 --export exported cluster.json
    expect_json "$(result s)" ".export.bytes == 2 * $(cat total)"
    cluster '.model.checkpoint = "exported"'
    run_coord plan cluster.json --json
    expect_json out '.model.dtype == "float32"'
}

# Converts the model on one rank; so many tensors must follow the formula.
export_fp8() { # FOLDER TENSORS
    cluster '.scenarios[0] |= . + {train: {tp: 2}, infer: {tp: 1,
        layout: "hf", quantize: true}, warmup: 0, iterations: 1}'
    coord_exits 0 --export "$1" cluster.json
    "$RF_TOP/tests/lib/same-tensors" --format fp8_block128 model "$1" >out ||
        fail "$(cat out)"
    expect_text out "^$2 tensors converted\$"
}

# Values and scales of 128 x 128 blocks, of which those at edges are not full,
# as a script of its own computes them; the same bytes from any mesh.
test_an_export_of_fp8_follows_the_formula_and_says_so() {
    make_checkpoint --finite --layers 2 --hidden 320 --intermediate 512 \
        --heads 4 --kv-heads 4 --head-dim 64 --vocab 128
    mkdir one two
    export_fp8 one 14
    expect_json "$(result s)" ".export.bytes ==
        $(jq .metadata.total_size one/model.safetensors.index.json)"
    expect_json one/config.json '.model_type == "qwen3" and
        .quantization_config == {quant_method: "fp8", fmt: "e4m3",
            activation_scheme: "dynamic", weight_block_size: [128, 128],
            modules_to_not_convert: ["model.embed_tokens"]}'
    cluster '.nodes[0].slots = 6 | .scenarios[0] |= . + {mode: "disaggregated",
        train: {tp: 2}, infer: {tp: 2, dp: 2, layout: "vllm",
        quantize: true}, method: "shm", warmup: 0}'
    coord_exits 0 --export two cluster.json
    "$RF_TOP/tests/lib/same-tensors" one two || fail "not the same"
}

# Experts share a tensor, and so do their scales; the list of the checkpoint
# leaves a layer's attention as it is.
test_an_export_of_fp8_keeps_stacked_experts_and_exceptions() {
    make_checkpoint --finite --layers 2 --hidden 128 --intermediate 256 \
        --heads 2 --kv-heads 2 --head-dim 128 --vocab 128 --experts 2
    jq '.quantization_config = {ignore: ["model.layers.1.self_attn"]}' \
        model/config.json >config
    mv config model/config.json
    mkdir whole cut
    export_fp8 whole 8
    expect_json whole/config.json '.quantization_config |
        .modules_to_not_convert == ["model.embed_tokens",
            "model.layers.0.mlp.router", "model.layers.1.mlp.router",
            "model.layers.1.self_attn.k_proj", "model.layers.1.self_attn.o_proj",
            "model.layers.1.self_attn.q_proj", "model.layers.1.self_attn.v_proj"]
        and has("ignore") == false'
    cluster '.scenarios[0] |= . + {train: {tp: 2}, infer: {tp: 2, ep: 2,
        etp: 1, layout: "hf", quantize: true}, warmup: 0}'
    coord_exits 0 --export cut cluster.json
    "$RF_TOP/tests/lib/same-tensors" whole cut || fail "not the same"
}

# Each format from one rank, as the script computes it, and the same bytes from
# two ranks and from four, which hold parts of what has one scale.
test_an_export_of_each_format_is_the_same_from_any_mesh() {
    local format tp hidden
    for format in fp8_tensor fp8_block128 fp8_block128_ue8m0 mxfp8 nvfp4; do
        case $format in
        fp8_block*) hidden=256 ;; # blocks beside and below each other
        *) hidden=128 ;;
        esac
        rm -rf model
        make_checkpoint --finite --layers 1 --hidden "$hidden" \
            --intermediate 512 --heads 4 --kv-heads 4 --head-dim 128 --vocab 128
        for tp in 1 2 4; do
            cluster ".scenarios[0] |= . + {train: {tp: 2}, infer: {tp: $tp,
                layout: \"vllm\"}, quantize: \"$format\", warmup: 0,
                yardstick: false,
                iterations: 1, mode: \"disaggregated\", method: \"shm\"} |
                .nodes[0].slots = 6"
            mkdir "$format-$tp"
            coord_exits 0 --export "$format-$tp" cluster.json -o "results-$tp"
            [ "$tp" = 1 ] || "$RF_TOP/tests/lib/same-tensors" "$format-1" \
                "$format-$tp" || fail "$format: another export from tp $tp"
        done
        "$RF_TOP/tests/lib/same-tensors" --format "$format" model "$format-1" \
            >out || fail "$(cat out)"
        expect_text out '^7 tensors converted$'
        # Each inference rank says how long it took, and of the exchange all do.
        expect_json "$(echo results-4/*/s.json)" '
            ([.iterations[].ranks[] | has("quantize_ms")] | sort) ==
                [false, false, true, true, true, true] and
            ([.iterations[].ranks[] | has("amax_ms")] | unique) ==
                [.scenario.quantize.format | IN("fp8_tensor", "nvfp4")] and
            .scenario.quantize.at == "receiver"'
        # Senders make the same bytes, and send no others.
        jq ".scenarios[0].quantize = {format: \"$format\", at: \"sender\"}" \
            cluster.json >sender.json
        mkdir "$format-sender"
        coord_exits 0 --export "$format-sender" sender.json -o results-s
        "$RF_TOP/tests/lib/same-tensors" "$format-1" "$format-sender" ||
            fail "$format: another export from senders"
        expect_json "$(echo results-s/*/s.json)" '
            ([.iterations[].ranks[] | has("quantize_ms")] | sort) ==
                [false, false, false, false, true, true] and
            .verification.quantized_bytes == null and
            .scenario.quantize.at == "sender"'
        [ "$(jq .plan.bytes_total results-s/*/s.json)" -lt \
            "$(jq .plan.bytes_total results-4/*/s.json)" ] ||
            fail "$format: as many bytes from senders"
        rm -r results-*
    done
}

test_weights_that_no_scale_fits_are_named() {
    local format
    make_checkpoint --layers 1 --hidden 256 --intermediate 256 --heads 4 \
        --kv-heads 4 --head-dim 64 --vocab 128
    for format in fp8_tensor mxfp8; do
        cluster ".scenarios[0] |= . + {train: {tp: 2}, infer: {tp: 1,
            layout: \"hf\"}, quantize: \"$format\", warmup: 0}"
        coord_exits 1 cluster.json -o "$format"
        expect_text err "quantize $format: element \[[0-9]+, [0-9]+\] of model\..*_proj\.weight is infinite or not a number"
    done
}

# A file that somebody else has made, and a link to one.
test_an_export_over_a_model_is_refused() {
    local name
    make_checkpoint --shards 1
    cluster
    echo "not ours" >victim
    for name in model.safetensors model.safetensors.index.json config.json; do
        mkdir exported
        cp victim "exported/$name"
        coord_exits 1 --export exported cluster.json
        expect_text err "exported/$name exists and is not an earlier export"
        cmp victim "exported/$name" || fail "it was written to"
        [ "$(ls exported)" = "$name" ] || fail "something is left"
        ln -sf ../victim "exported/$name"
        coord_exits 1 --export exported cluster.json
        expect_text err "exported/$name exists and is not an earlier export"
        [ -L "exported/$name" ] || fail "the link was replaced"
        [ "$(cat victim)" = "not ours" ] || fail "it was followed"
        rm -r exported
    done
}

# Also one of more files, whose last ones are not left beside the new index, and
# one that did not come to its index.
test_an_export_replaces_a_former_one() {
    local second=model-00002-of-00002.safetensors
    make_checkpoint --shards 1
    cluster
    coord_exits 0 --export exported cluster.json
    cp exported/model.safetensors "exported/$second"
    echo notes >exported/notes.txt
    jq ".weight_map |= with_entries(.value = \"$second\")" \
        exported/model.safetensors.index.json >index
    mv index exported/model.safetensors.index.json
    coord_exits 0 --export exported cluster.json
    "$RF_TOP/tests/lib/same-tensors" model exported || fail "not the same"
    [ "$(echo exported/*)" = "$(printf 'exported/%s ' config.json \
        model.safetensors model.safetensors.index.json)exported/notes.txt" ] ||
        fail "$(ls exported)"
    rm exported/model.safetensors.index.json
    coord_exits 0 --export exported cluster.json
    "$RF_TOP/tests/lib/same-tensors" model exported || fail "not the same"
}

preload() { # FILE
    "${CC:-cc}" -D_GNU_SOURCE -shared -fPIC -o preload.so "$RF_TOP/tests/$1" \
        -ldl || skip "cannot build $1"
    cluster ".launch.env = {LD_PRELOAD: \"$PWD/preload.so\",
        SHORT_WRITES: \"$PWD/calls\", RF_FAULT_FSYNC: \"$PWD/fault\"}"
}

test_an_export_goes_on_after_short_writes_and_is_synced() {
    make_checkpoint --shards 1
    preload fake/short_writes.c
    coord_exits 0 --export exported cluster.json
    "$RF_TOP/tests/lib/same-tensors" model exported || fail "not the same"
    # Each rank has written, and synced what it wrote last.
    awk '/\.export$/ { last[$1] = $2 }
        END { for (rank in last) { ranks++; synced += last[rank] == "sync" }
            exit ranks != 4 || synced != 4 }' calls || fail "not synced"
}

test_an_export_that_fails_leaves_no_part() {
    make_checkpoint --shards 1
    preload faults/fsync_fails.c
    echo fail >fault
    coord_exits 1 --export exported cluster.json
    expect_text err 'exported/refit-.*Input/output error'
    [ ! -e exported ] || fail "left: $(ls exported)"
}

has_part() {
    compgen -G 'exported/refit-*.export' >/dev/null
}

no_part() {
    ! has_part
}

# Starts a run whose first inference rank hangs when it has made its file.
start_held_export() {
    "${CC:-cc}" -D_GNU_SOURCE -shared -fPIC -o held_disk.so \
        "$RF_TOP/tests/fake/held_disk.c" -ldl || skip "cannot build held_disk.so"
    make_checkpoint --shards 1
    own_worker
    cluster ".launch += {worker: \"$worker\", env:
        {LD_PRELOAD: \"$PWD/held_disk.so\", HELD_SYNC: \"$PWD/hold\"}}"
    touch hold
    start_coord --export exported cluster.json
    wait_until 60 "a part is there" has_part
}

test_a_killed_rank_leaves_no_part_of_an_export() {
    start_held_export
    kill -KILL "$(ranks | head -n 1 | cut -d: -f1)"
    finish_coord
    expect_exit 1
    [ ! -e exported ] || fail "left: $(ls exported)"
}

test_a_killed_coordinator_leaves_no_part_of_an_export() {
    start_held_export
    kill -KILL "$coord_pid"
    wait_until 40 "no process is left" no_workers
    [ ! -e exported ] || fail "left: $(ls exported)"
}

test_the_next_run_removes_what_a_killed_agent_left_of_an_export() {
    local agent
    start_held_export
    agent=$(ps -o ppid= -p "$(ranks | head -n 1 | cut -d: -f1)" | tr -d ' ')
    kill -KILL "$agent"
    finish_coord
    expect_exit 1
    wait_until 40 "no process is left" no_workers
    has_part || fail "nothing was left to be removed"
    rm hold
    coord_exits 0 --export exported cluster.json
    no_part || fail "left: $(ls exported)"
    "$RF_TOP/tests/lib/same-tensors" model exported || fail "not the same"
}

# The index says that a tensor is where it is not, and lacks one that is there;
# one shard was saved in another type.
test_what_is_wrong_with_a_checkpoint_is_told_at_once() {
    make_checkpoint
    jq '.weight_map |= (del(.["model.norm.weight"]) |
        .["model.layers.9.absent"] = "model-00001-of-00003.safetensors" |
        .["model.embed_tokens.weight"] = "model-00003-of-00003.safetensors")' \
        model/model.safetensors.index.json >index
    mv index model/model.safetensors.index.json
    # float16 for bfloat16 with a blank less: the header keeps its length.
    sed -i '0,/"dtype": "BF16", "shape": \[64, 128\]/s//"dtype": "F16", "shape":  [64, 128]/' \
        model/model-00003-of-00003.safetensors
    cluster
    coord_exits 2 plan cluster.json
    expect_text err '^  model-00001-of-00003.safetensors lacks model\.layers\.9\.absent$'
    expect_text err '^  model-00003-of-00003.safetensors has model\.norm\.weight, which the index lacks$'
    expect_text err '^  model\.embed_tokens\.weight is in model-00001.*, but the index says model-00003'
    expect_text err '^  model\.layers\.[0-9]\.mlp\.down_proj\.weight in model-00003.* is F16, others of its kind are BF16$'
}

test_of_very_many_faults_ten_are_told_and_the_others_counted() {
    make_checkpoint
    rm model/model-00002-of-00003.safetensors
    cluster
    coord_exits 2 plan cluster.json
    expect_text err '^  .*model-00002-of-00003.safetensors: No such file'
    "$RF_TOP/tests/lib/make-checkpoint" many --shards 2 >total
    jq '.weight_map |= with_entries(.key |= sub("layers"; "l"))' \
        many/model.safetensors.index.json >index
    mv index many/model.safetensors.index.json
    cluster '.model.checkpoint = "many"'
    coord_exits 2 plan cluster.json
    [ "$(grep -c '^  model-' err)" -le 10 ] || fail "too many lines"
    expect_text err '^  and [0-9]+ more$'
}

test_exports_that_cannot_be_are_refused_before_the_launch() {
    make_checkpoint --shards 1
    cluster '.scenarios[0].method = ["host", "shm"]'
    coord_exits 2 --export . cluster.json
    expect_text err 'needs one scenario, 2 are selected: .*--scenario'
    cluster '.scenarios[0].method = "null"'
    coord_exits 2 --export . cluster.json
    expect_text err '--export: method null moves no bytes'
    [ ! -e results ] || fail "something was launched"
}

test_an_export_makes_its_folder_and_what_is_above_it() {
    make_checkpoint --shards 1
    cluster
    coord_exits 0 --export new/exports/first cluster.json
    "$RF_TOP/tests/lib/same-tensors" model new/exports/first ||
        fail "not the same"
    # One that gets no model goes again.
    REFIT_TEST_EXIT=1:1 coord_exits 1 --export new/exports/second/x cluster.json
    [ "$(ls new/exports)" = first ] || fail "left: $(ls new/exports)"
}

test_an_export_to_a_folder_that_cannot_be_made_names_folder_and_node() {
    make_checkpoint --shards 1
    cluster
    touch file
    run_coord --export file/absent cluster.json
    expect_text err '--export cannot use folder .*/absent on localhost: Not a directory'
}

# The bytes that each of four ranks has in training (TP2 PP2), has to hold for
# inference (TP4), and lacks, one index of the dimension that the rules of
# docs/MODELS.md cut after the other.
count_gpt_oss() {
    python3 - >counted <<'PYTHON'
import glob
import json
import struct

CUT = {"embed_tokens.weight": 0, "lm_head.weight": 0, "sinks": 0,
       "q_proj.weight": 0, "k_proj.weight": 0, "v_proj.weight": 0,
       "q_proj.bias": 0, "k_proj.bias": 0, "v_proj.bias": 0,
       "o_proj.weight": 1, "gate_up_proj_bias": 1, "gate_up_proj_blocks": 1,
       "gate_up_proj_scales": 1, "down_proj_blocks": 2, "down_proj_scales": 2}
trained, needed, lacking = [0] * 4, [0] * 4, [0] * 4
for path in glob.glob("model/*.safetensors"):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    del header["__metadata__"]
    for name, tensor in header.items():
        cut = [d for end, d in CUT.items() if name.endswith("." + end)
               or name == end]
        extent = tensor["shape"][cut[0]] if cut else 1
        start, end = tensor["data_offsets"]
        slice_bytes = (end - start) // extent
        first = name.startswith("model.embed") or \
            name.startswith(("model.layers.0.", "model.layers.1."))
        for rank in range(4):
            for i in range(extent):
                has = (rank < 2) == first and (
                    not cut or i * 2 // extent == rank % 2)
                needs = not cut or i * 4 // extent == rank
                trained[rank] += has * slice_bytes
                needed[rank] += needs * slice_bytes
                lacking[rank] += (needs and not has) * slice_bytes
print(json.dumps({"trained": trained, "needed": needed, "lacking": lacking}))
PYTHON
}

test_a_packed_gpt_oss_moves_what_the_rules_say() {
    make_checkpoint --experts 12 --mxfp4 --untied --hidden 512 \
        --intermediate 256 --vocab 1024 --head-dim 32
    count_gpt_oss || fail "not counted"
    cluster
    coord_exits 0 plan --json cluster.json
    jq --slurpfile counted counted '.scenarios[0].plan + $counted[0]' out >both
    expect_json both '.bytes_total == (.needed | add) and
        .bytes_total - .bytes_local == (.lacking | add) and
        .max_recv_bytes == (.lacking | max) and .unknown.tensors == 0'
    coord_exits 0 cluster.json
    expect_verified "$(result s)"
    expect_json "$(result s)" ".setup.checkpoint.bytes ==
        $(jq '.trained | add' counted)"
}

run_tests
