# Runs whose files have all that they can have without a GPU; includes
# tests/lib/test.sh.
# shellcheck shell=bash source=../lib/test.sh disable=SC2034
. "$(dirname "${BASH_SOURCE[0]}")/test.sh"

schema=$RF_TOP/tests/lib/schema

# Records them, once, and goes to their folders: */*/*.json.
record_everything() {
    if [ -d "$work/runs" ]; then
        cd "$work/runs" || exit
        return
    fi
    jq '. + {model: {megatron: {num_layers: 2, hidden_size: 512,
            num_attention_heads: 4, ffn_hidden_size: 512, vocab_size: 512}},
        nodes: [{host: "a", slots: 4}, {host: "b", slots: 4}],
        links: {nic_gbytes_per_s: 1, nodes: {b: {nics_per_node: 2}}},
        scenarios: [
            {name: "quantized", train: {tp: 4},
                infer: {tp: 2}, quantize: "fp8_tensor", warmup: 1,
                iterations: 2},
            {name: "blocks", mode: "disaggregated", warmup: 0, iterations: 1,
                train: {tp: 2, nodes: ["a"]}, infer: {tp: 2, nodes: ["b"]},
                yardstick: false, quantize: {format: "fp8_block128",
                eps: 1e-6, divide: "exact"}},
            {name: "pools", mode: "disaggregated", warmup: 0, iterations: 2,
                train: {tp: 2}, infer: [{tp: 4}, {tp: 2,
                quantize: "fp8_tensor"}]},
            {name: "across", mode: "disaggregated", strategy: "auto",
                train: {tp: 4}, infer: {tp: 4}, warmup: 0, iterations: 2},
            {name: "balanced", mode: "disaggregated", balance: "time",
                train: {tp: [2, 3], dp: 2, nodes: ["a"]},
                infer: {tp: 4, nodes: ["b"]}, impossible: "skip",
                yardstick: false, warmup: 0, iterations: 1},
            {name: "loaded", mode: "disaggregated", train: {tp: 2},
                infer: {tp: 2}, quantize: "fp8_tensor",
                load: {memory_gbytes_per_s: "max"}, warmup: 0, iterations: 5},
            {name: "changes", method: "tcp", train: {tp: 2}, infer: {tp: 4},
                warmup: 0, iterations: 2, yardstick: false,
                update: {density: 0.1, restart_every: 2},
                encoding: "auto+diff", load: {memory_gbytes_per_s: 1}}]}' \
        <<<"$four_slots" >cluster.json
    coord_exits 0 cluster.json -o ok
    coord_exits 0 cluster.json -s quantized --repeat 2 -o repeated
    REFIT_TEST_FLIP=2:1 coord_exits 3 cluster.json -s quantized -o flip
    REFIT_TEST_FLIP=2:1 coord_exits 3 cluster.json -s quantized --repeat 2 \
        -o repeated-flip
    REFIT_TEST_EXIT=1:1 coord_exits 1 cluster.json -s across -o exit
    "$RF_TOP/tests/lib/make-checkpoint" model >total || fail "no checkpoint"
    jq '. + {model: {checkpoint: "model", revision: "c0ffee"},
        scenarios: [{name: "exported",
        train: {tp: 2}, infer: {tp: 2}, warmup: 0, iterations: 1}]}' \
        <<<"$four_slots" >cluster.json
    mkdir there
    coord_exits 0 cluster.json --export there -o export
    jq '{sources: [{system: "a", window: "all",
            cases: [{name: "one", range: [1, 2]}]},
        {system: "b", window: "all", title: "t", url: "u", date: "d",
            assumed: "x", cases: [{name: "two", seconds: [1, 2], label: "l",
                bytes: 1, links: {copy_gbytes_per_s: 1}}]}]} |
        .sources[].cases[0] += {train_nodes: 1, train: {tp: 2}, infer: {tp: 2},
            model: {megatron: {num_layers: 2, hidden_size: 512,
                num_attention_heads: 4, ffn_hidden_size: 512,
                vocab_size: 512}}}' \
        <<<null >theirs.json
    coord_exits 0 import theirs.json -o imported
    mkdir "$work/runs"
    mv ok repeated flip repeated-flip exit export imported "$work/runs"
    cd "$work/runs" || exit
}

# Objects whose keys users or nodes choose.
any_keys='environment\.0\.(env|methods)|cluster\.model\.config|configuration\.variables'

# Kinds of values that these runs do not have: what another machine, a method, a
# failure or too few iterations would leave open.
other_kinds='environment|probe|bind|candidates|errors|network|yardstick_ratio|'
other_kinds+='(refit|load)_slowdown|'
other_kinds+='plan|schedule|algbw_gbytes_per_s|(min|max|median)_ms|'
other_kinds+='exit_code|finished_at|device|copies|repeats|underestimated'

# What the schemas of results say is what the files in */*/ have. Nodes need not
# send all that those of this build send.
expect_described() { # REGEX of keys that no file has
    local kind files
    for kind in run result; do
        "$coord" schema "$kind" >"$kind.schema"
        mapfile -t files < <(case $kind in
        run) find ./*/*/ -name run.json ;;
        result) find ./*/*/ -name '*.json' ! -name run.json ;;
        esac)
        "$schema" validate "$kind.schema" "${files[@]}" ||
            fail "not all of ${#files[@]} files of $kind validate"
        "$schema" seen "$kind.schema" "${files[@]}" >said
        expect_text said '^[0-9]+ objects$'
        grep -vE "^every file has .*'(environment|device|opened_bytes|network)'" said |
            grep -vE "^no file has .*($1)" |
            grep -vE "^no file has .* at .*'($other_kinds)'" >differs
        expect_no_text differs '^(no|every) file'
        "$schema" mutate "$kind.schema" "${files[@]}" >said
        expect_text said '^[0-9]{3,} changes$'
        grep -vxE "may have more keys: ($any_keys)|[0-9]+ changes" said >differs
        expect_no_text differs .
    done
}
