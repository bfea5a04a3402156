#!/bin/bash
# Parameter totals of real models, against their published checkpoints; and what
# the plan prints for them.
# limit: 300
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base=$four_slots

total() { # MODEL PARAMETERS
    coord_exits 0 plan "$RF_TOP/models/$1.json" --json
    expect_json out "[.. | .parameters? // empty] | index($2) != null"
    coord_exits 0 plan "$RF_TOP/models/$1.json"
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

check_splits() { # COORD FAMILY...
    "$RF_TOP/tests/models/check-splits" --few --coord "$@" >out
}

# make check-models does it for many meshes.
test_splits_are_those_of_a_second_opinion() {
    check_splits "$coord" || fail "$(cat out)"
    expect_text out 'gpt_oss-mxfp4 .*: equal$'
    expect_text out 'gpt_oss-uneven .*: equal$'
    expect_text out 'gemma4-keys .*: equal$'
}

test_a_second_opinion_notices_another_split() {
    cat >other <<COORD
#!/bin/sh
sed 's/"layout": "megatron"/"layout": "vllm"/' | "$coord" "\$@"
COORD
    chmod +x other
    check_splits ./other phi3 && fail "nothing was noticed"
    expect_text out 'phi3-wide .* [1-9][0-9]* differences$'
    expect_text out 'megatron Mesh.*rank 0 lacks .*self_attn.qkv_proj.weight'
}

test_documents_and_the_suite_follow_from_the_tables() {
    "$RF_TOP/tests/models/lists" --coord "$coord" >out || fail "$(cat out)"
    cp -r "$RF_TOP"/{docs,examples,planner,tests} .
    jq '.[0].model_types += ["other"]' "$RF_TOP/planner/families/moe.json" \
        >planner/families/moe.json
    tests/models/lists --coord "$coord" >out && fail "nothing was noticed"
    expect_text out '^\+\| `moe.json` \| qwen3_moe, other, mixtral \|$'
}

test_a_published_checkpoint_gives_a_fixture() {
    cp -r "$RF_TOP/tests" .
    checkpoint '[range(3) as $layer |
        {key: "model.layers.\($layer).mlp.up_proj.weight", value: [8, 4]}] |
        from_entries + {"model.norm.weight": [4]}'
    echo '{"model_type": "other", "num_hidden_layers": 3, "use_cache": true}' \
        >model/config.json
    tests/models/check-models --checkpoint model other >out || fail "exit $?"
    expect_json tests/unit/planner/models/other-1.json '. == {
        config: {model_type: "other", num_hidden_layers: 3},
        tensors: 4, parameters: 100, families: [
            {name: "model.layers.{L}.mlp.up_proj.weight", shape: [8, 4],
                layers: [[0, 2]]},
            {name: "model.norm.weight", shape: [4]}]}'
}

test_sizes_are_told_rounded_and_exactly() {
    run_coord plan "$RF_TOP/models/qwen3-0.6b.json"
    expect_text out '^  parameters  596\.05 M \(596,049,920\)$'
    expect_text out '^  bytes       1\.19 GB \(1,192,099,840\), bfloat16$'
}

test_a_scaled_model_says_what_was_scaled() {
    cluster '.model = {config: "'"$RF_TOP"'/models/llama-3.1-70b.json",
            num_layers: 2, hidden_size: 512}
        | .scenarios = [{name: "s", train: {tp: 4}, infer: {tp: 4}}]'
    coord_exits 0 plan cluster.json
    expect_text out '^model llama-3\.1-70b\.json \(num_layers 2, hidden_size 512\) \(llama\)$'
    run_coord plan cluster.json --json
    expect_json out '.model.name ==
        "llama-3.1-70b.json (num_layers 2, hidden_size 512)"'
}

test_what_is_not_counted_is_told() {
    run_coord plan "$RF_TOP/models/deepseek-v3.json"
    expect_text out '^  uncounted   1 multi-token-prediction layer$'
    expect_text out '^  uncounted   quantisation scales \(weights counted as bfloat16\)$'
    run_coord plan "$RF_TOP/models/deepseek-v3.json" --json
    expect_json out '.model.not_counted | length == 2'
    run_coord plan "$RF_TOP/models/llama-3.1-8b.json"
    expect_no_text out 'uncounted'
    run_coord plan "$RF_TOP/models/llama-3.1-8b.json" --json
    expect_json out '.model.not_counted == []'
}

test_what_a_checkpoint_has_beside_the_model_is_told() {
    checkpoint '{"model.layers.0.mlp.up_proj.weight": [8, 4],
        "model.layers.0.mlp.up_proj.weight_scale_inv": [1, 1],
        "model.layers.0.self_attn.rotary_emb.inv_freq": [4],
        "model.layers.1.mlp.up_proj.weight": [8, 4]}'
    echo '{"model_type": "other", "num_hidden_layers": 1}' >model/config.json
    cluster "$unknown | .scenarios[0].train = {tp: 4}"
    coord_exits 0 plan cluster.json
    expect_text out '^  tensors     1, layers 1$'
    expect_text out '^  uncounted   1 tensor \*\.weight_scale_inv '
    expect_text out '^  uncounted   1 tensor \*\.rotary_emb\.inv_freq '
    expect_text out '^  uncounted   1 tensor of layers from 1 on '
}

test_cluster_file_of_the_project_is_valid() {
    coord_exits 0 plan "$RF_TOP/cluster.json"
    expect_text out colocated
    expect_text out disaggregated
    expect_no_text err 'error'
}

# One safetensors file of bfloat16 tensors, random bytes, in the folder model.
checkpoint() { # JQ_PROGRAM that gives {name: shape}
    local header bytes
    mkdir -p model
    header=$(jq -cn "$1"' | reduce to_entries[] as $tensor ({at: 0};
        (.at + 2 * reduce $tensor.value[] as $size (1; . * $size)) as $next
        | .out[$tensor.key] = {dtype: "BF16", shape: $tensor.value,
            data_offsets: [.at, $next]}
        | .at = $next) | .out') || fail "bad jq program: $1"
    bytes=$(jq '[.[].data_offsets[1]] | max' <<<"$header")
    {
        # shellcheck disable=SC2059 # the format is the bytes of the length
        printf "$(printf '\\x%02x\\x%02x\\0\\0\\0\\0\\0\\0' \
            $((${#header} % 256)) $((${#header} / 256)))"
        printf '%s' "$header"
        head -c "$bytes" /dev/urandom
    } >model/model.safetensors
}

# With the names of gpt-oss: fused experts, a router, biases and sinks.
unforeseen() {
    checkpoint '[range(2) as $layer | {
            "self_attn.q_proj.weight": [64, 32],
            "self_attn.q_proj.bias": [64],
            "self_attn.k_proj.weight": [32, 32],
            "self_attn.v_proj.weight": [32, 32],
            "self_attn.o_proj.weight": [32, 64],
            "self_attn.o_proj.bias": [32],
            "self_attn.sinks": [8],
            "input_layernorm.weight": [32],
            "post_attention_layernorm.weight": [32],
            "mlp.router.weight": [4, 32],
            "mlp.router.bias": [4],
            "mlp.experts.gate_up_proj": [4, 32, 128],
            "mlp.experts.gate_up_proj_bias": [4, 128],
            "mlp.experts.down_proj": [4, 64, 32]
        } | with_entries(.key |= "model.layers.\($layer).\(.)")] | add
        + {"model.embed_tokens.weight": [512, 32], "model.norm.weight": [32],
            "lm_head.weight": [512, 32]}'
    echo '{"model_type": "unforeseen", "num_hidden_layers": 2,
        "num_attention_heads": 8, "num_key_value_heads": 4}' >model/config.json
}

unknown='.model = {"checkpoint": "model"} | .scenarios = [{"name": "s",
    "train": {"tp": 2, "pp": 2}, "infer": {"tp": 4, "layout": "vllm"},
    "warmup": 0, "iterations": 2}]'
test_tensors_that_no_rule_knows_are_refused_by_name() {
    local name
    unforeseen
    cluster "$unknown"
    coord_exits 2 cluster.json
    [ ! -e results ] || fail "results/ appeared"
    for name in 'gate_up_proj [4, 32, 128]' 'gate_up_proj_bias [4, 128]' \
        'down_proj [4, 64, 32]' 'self_attn.sinks [8]' '8 unknown tensors' \
        '"unknown_tensors": "replicate"' '$.scenarios[0] (s)'; do
        grep -qF -- "$name" err || fail "the error lacks: $name"
    done
    expect_no_text err 'q_proj|layernorm|router|embed_tokens'
}

test_unknown_tensors_are_replicated_when_asked_for_and_shown() {
    local file
    unforeseen
    cluster "$unknown | .model.unknown_tensors = \"replicate\""
    coord_exits 0 plan cluster.json
    expect_text out '^  unknown     8 tensors .*whole on every rank of a side that would split them$'
    run_coord plan cluster.json --json
    expect_json out '.model.unknown_tensors == "replicate" and
        .scenarios[0].plan.unknown.tensors == 8'
    coord_exits 0 cluster.json
    expect_text out '^s .* yes, replicated$'
    file=$(result s)
    expect_verified "$file"
    expect_json "$file" '.model.unknown_tensors == "replicate"'
    expect_json "$file" '.plan.unknown == {families: 4, tensors: 8,
        bytes: 100384}'
}

test_a_layout_that_splits_nothing_needs_no_rules() {
    unforeseen
    cluster "$unknown"' | .nodes[0].slots = 2
        | .scenarios[0].train = {"pp": 2} | .scenarios[0].infer = {"tp": 1}'
    coord_exits 0 plan cluster.json
    expect_no_text out '^  unknown'
    cluster "$unknown"' | .scenarios[0].train = {"layout": "fsdp"}
        | .scenarios[0].infer = {"tp": 1}'
    coord_exits 0 plan cluster.json
}

test_families_are_listed_with_what_a_rank_holds() {
    unforeseen
    cluster "$unknown | .model.unknown_tensors = \"replicate\""
    run_coord plan cluster.json
    expect_no_text out 'q_proj'
    coord_exits 0 plan -v cluster.json
    expect_text out 'layers\.\{L\}\.self_attn\.q_proj\.weight +\[64, 32\] +2  query +\[32, 32\] +\[16, 32\] +common names: model\.layers\.\{L\}\.self_attn\.q_proj\.weight$'
    expect_text out 'down_proj +\[4, 64, 32\] +2  unknown +whole +whole +none$'
    expect_text out 'input_layernorm\.weight +\[32\] +2  norm .* whole +whole +common names: model\.layers\.\{L\}\.\*norm\.weight$'
    coord_exits 0 plan -v "$RF_TOP/models/mixtral-8x7b.json"
    expect_text out 'experts\.\{E\}\.w1\.weight +\[14336, 4096\] +256  expert gate +mixtral: model\.layers\.\{L\}\.block_sparse_moe\.experts\.\{E\}\.w1\.weight$'
}

rules='[
    {"name": "model.layers.{L}.mlp.experts.gate_up_proj*", "stacked": true,
        "transposed": true, "interleaved": true,
        "parts": [{"role": "expert gate"}, {"role": "expert up"}]},
    {"name": "model.layers.{L}.mlp.experts.down_proj", "stacked": true,
        "transposed": true, "role": "expert down"},
    {"name": "model.layers.{L}.self_attn.sinks", "role": "column",
        "heads": "num_attention_heads"}]'

test_a_checkpoint_of_a_known_type_needs_no_rules() {
    unforeseen
    jq '.model_type = "gpt_oss" | .head_dim = 8' model/config.json >known
    mv known model/config.json
    cluster "$unknown"
    coord_exits 0 plan -v cluster.json
    expect_no_text out '^  unknown'
    expect_text out 'self_attn\.sinks +\[8\] +2  column +\[4\] +\[2\] +gpt_oss: '
}

test_rules_make_unknown_tensors_known() {
    unforeseen
    cluster "$unknown | .model.rules = $rules"
    coord_exits 0 plan -v cluster.json
    expect_no_text out '^  unknown'
    expect_text out 'gate_up_proj +\[4, 32, 128\] +2  expert gate 64, expert up 64, in turns, transposed, stacked +\[32, 64\] +\[32, 32\] +rules: .*gate_up_proj\*$'
    expect_text out 'self_attn\.sinks +\[8\] +2  column +\[4\] +\[2\] +rules: '
    coord_exits 0 cluster.json
    file=$(result s)
    expect_verified "$file"
    expect_json "$file" '.plan.unknown.tensors == 0 or .plan.unknown == null'
    coord_exits 0 rerun "$file"
}

test_a_rule_for_no_tensor_is_refused_with_its_place() {
    unforeseen
    cluster "$unknown"' | .model.rules = [{name: "nothing", role: "row"}]'
    coord_exits 2 plan cluster.json
    expect_text err '\$\.model\.rules\[0\]\.name: no tensor matches "nothing"'
}

test_a_checkpoint_without_a_config_may_be_given_its_heads() {
    unforeseen
    rm model/config.json
    cluster "$unknown | .model.unknown_tensors = \"replicate\""
    coord_exits 2 plan cluster.json
    expect_text err 'num_attention_heads and num_key_value_heads in "model"'
    cluster "$unknown"' | .model += {unknown_tensors: "replicate",
        num_attention_heads: 8, num_key_value_heads: 4}'
    coord_exits 0 plan cluster.json
    expect_text out '^model .* \(checkpoint\)$'
}

test_a_refused_scenario_still_lists_what_names_are_taken_for() {
    unforeseen
    cluster "$unknown"
    coord_exits 2 plan -v cluster.json
    expect_text err 'no rule to split .*Tensor names.* refit-cluster\(5\)'
    expect_text out 'q_proj\.weight +\[64, 32\] +2  query +common names: '
    expect_text out 'mlp\.experts\.down_proj +\[4, 64, 32\] +2  unknown +none$'
}

test_weights_arrive_in_the_layout_of_sglang() {
    local file
    cluster '.model = {config: {model_type: "qwen3_moe", hidden_size: 64,
            num_hidden_layers: 2, num_attention_heads: 8, head_dim: 16,
            num_key_value_heads: 2, intermediate_size: 128, num_experts: 8,
            moe_intermediate_size: 32, vocab_size: 1001}}
        | .scenarios = [{name: "s", train: {tp: 2, pp: 2}, warmup: 0,
            infer: {layout: "sglang", tp: 4, attention_dp: 2, ep: 2},
            iterations: 2}]'
    run_coord plan cluster.json
    expect_text out '^  inference +sglang.* attention_dp 2.* etp 2'
    coord_exits 0 cluster.json
    file=$(result s)
    expect_verified "$file"
    expect_json "$file" '.cluster.scenarios[0].infer | .layout == "sglang" and
        .attention_dp == 2'
    cluster '.scenarios = [{name: "s", train: {},
        infer: {layout: "sglang", tp: 4, ep: 3}}]'
    coord_exits 2 plan cluster.json
    expect_text err 'infer: ep 3 is impossible: with layout sglang ep must divide tp'
}

test_every_known_name_is_in_the_manual() {
    local name
    jq -r '.[].tensors[].name | select(contains("*") | not)
        | sub("^model.layers.{L}."; "")' \
        "$RF_TOP/planner/families/common.json" >names
    [ "$(wc -l <names)" -gt 40 ] || fail "too few names were found"
    while read -r name; do
        grep -qxF "$name" "$RF_TOP/docs/man/refit-cluster.5" ||
            fail "$name is not in refit-cluster(5)"
    done <names
}

# The examples of docs/MODELS.md for a config.json of an unknown type.
test_the_examples_for_unknown_types_work() {
    local example
    mkdir new
    jq '.model_type = "foonet"' "$RF_TOP/models/qwen2.5-7b.json" \
        >new/config.json
    awk '/^```json$/ { text = ""; inside = 1; next }
        /^```$/ { if (text ~ /new\/config/)
                printf "{%s}\n", text > ("example-" ++n)
            inside = 0; next }
        inside { text = text $0 "\n" }' "$RF_TOP/docs/MODELS.md"
    [ -s example-2 ] || fail "the document has fewer examples than it needs"
    for example in example-*; do
        jq '. + {scenarios: [{name: "s", train: {tp: 2}, infer: {tp: 4}}]}' \
            "$example" >cluster.json
        coord_exits 0 plan -v cluster.json
        expect_no_text out '^  unknown'
    done
    expect_text out 'mixer\.out\.weight .*row +\[3584, 9472\] +\[3584, 4736\]'
    jq 'del(.model.rules)' cluster.json >bare.json
    coord_exits 2 plan bare.json
    expect_text err 'unknown model type "foonet"; .*"rules": \{"like": "llama"\} for one like Llama'
}

test_every_model_type_and_role_is_in_the_document() {
    local word
    jq -r '.[].model_types[]?' "$RF_TOP"/planner/families/*.json >types
    jq -r '.. | .role? // empty' "$RF_TOP"/planner/families/*.json |
        sort -u >roles
    [ "$(wc -l <types)" -ge 7 ] || fail "too few model types were found"
    [ "$(wc -l <roles)" -ge 20 ] || fail "too few roles were found"
    while read -r word; do
        grep -q "^| \`.*[| ]${word}[, ]" "$RF_TOP/docs/MODELS.md" ||
            fail "model type $word is not in docs/MODELS.md"
    done <types
    while read -r word; do
        grep -qF "| $word |" "$RF_TOP/docs/MODELS.md" ||
            fail "role $word is not in docs/MODELS.md"
    done <roles
}

run_tests
