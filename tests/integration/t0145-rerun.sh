# A result file alone is enough to run its scenario again.
# limit: 240
# shellcheck shell=bash source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

small='{"model_type": "qwen3", "hidden_size": 256, "num_hidden_layers": 4,
  "intermediate_size": 512, "num_attention_heads": 8, "num_key_value_heads": 4,
  "head_dim": 32, "vocab_size": 4096, "tie_word_embeddings": false}'

base=$(jq '. + {model: {config: "models/small.json", num_layers: 2},
  scenarios: [
    {"name": "s", "mode": "disaggregated", "train": {"tp": 2},
     "infer": {"tp": 2, "layout": "vllm"}, "method": ["host", "shm"],
     "warmup": 0, "iterations": 3}]}' <<<"$four_slots")

# Runs the scenario that the others start from, in a folder that is gone
# afterwards; its result is old.json.
first_run() { # [JQ_PROGRAM]
    mkdir -p gone/models
    echo "$small" >gone/models/small.json
    cluster "${1-.}"
    mv cluster.json gone
    run_coord gone/cluster.json -s 's-method=host' -o gone/results
    expect_exit 0
    mv gone/results/*/'s-method=host.json' old.json
    rm -r gone
}

test_cluster_of_a_result_is_a_cluster_file() {
    first_run
    jq .cluster old.json | "$coord" plan - --json >plan.json ||
        fail "its cluster is not valid"
    [ "$(jq -r '.scenarios[0].plan.digest' plan.json)" = \
        "$(jq -r .plan.digest old.json)" ] || fail "another plan"
    jq .cluster old.json | "$coord" run - -o again >out 2>err ||
        fail "its cluster does not run: $(cat err)"
    expect_json again/*/'s-method=host.json' '.status == "ok"'
}

run_tests
