# Shared by the tests of refit-cuda.so over the fakes of CUDA's runtime, NCCL
# and NVSHMEM; includes tests/lib/test.sh. The programs are those of the fakes'
# folder. Skips the file if the module or the fakes are not built.
# shellcheck shell=bash source=../lib/test.sh disable=SC2034
. "$(dirname "${BASH_SOURCE[0]}")/test.sh"

[ -e "$RF_BUILD_DIR/refit-cuda.so" ] || skip_all "no CUDA toolkit to build with"
fakes=$RF_BUILD_DIR/fake
[ -e "$fakes/refit-cuda.so" ] || skip_all "the fakes are not built (make fake)"
coord=$fakes/refit-coord worker=$fakes/refit-worker
export LD_LIBRARY_PATH=$fakes FAKE_CUDA_DEVICES=8

base='{
  "name": "t",
  "launch": {"method": "local", "env": {"LD_LIBRARY_PATH": "'$fakes'",
    "FAKE_CUDA_DEVICES": "8", "FAKE_CUDA_DELAY_US": "20"}},
  "nodes": [{"host": "localhost", "slots": 6}],
  "model": {"megatron": {"num_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "num_query_groups": 2, "ffn_hidden_size": 128,
    "vocab_size": 512, "swiglu": true}},
  "scenarios": [
    {"name": "s", "mode": "disaggregated", "train": {"tp": 2, "pp": 1},
     "infer": {"tp": 2, "dp": 2, "layout": "vllm"}, "method": "nccl",
     "warmup": 0, "iterations": 2, "bucket_bytes": 65536}
  ]}'

# All strategies, as JSON, and their number.
every=$("$RF_TOP/tests/lib/strategies" "$coord" | jq -Rn '[inputs]')
every_n=$(jq length <<<"$every")

# Under the thread sanitizer scenarios have no yardsticks: the runs of one are
# not ordered, and those that forward read what others write, on purpose. Nobody
# uses the data that they move.
if [ -n "${RF_TSAN-}" ]; then
    cluster() { # [JQ_PROGRAM]
        jq "(${1-.}) | .scenarios |= map({yardstick: false} + .)" \
            <<<"$base" >cluster.json || fail "bad jq program: $1"
    }
fi

all_verified() { # COUNT
    local files=(results/*/s*.json)
    expect_verified "${files[@]}"
    [ ${#files[@]} = "$1" ] || fail "${#files[@]} result files, expected $1"
}

verifies() { # COUNT JQ_PROGRAM
    cluster "$2"
    coord_exits 0 cluster.json
    all_verified "$1"
}
run_fails() { # EXIT_CODE JQ_PROGRAM TEXT
    cluster "$2"
    coord_exits "$1" cluster.json
    expect_text err "$3"
}

# Every iteration has a yardstick, and with it every scenario a bound.
all_beside_yardsticks() {
    [ -n "${RF_TSAN-}" ] ||
        expect_json_of_all '(.iterations | all(.yardstick_ms > 0)) and
            .bound.efficiency > 0 and .schedule_bound.efficiency > 0' \
            results/*/s*.json
}

# Two nodes of two devices each on this machine: the commands that the launcher
# `manual` prints, each with its own environment.
commands_printed() {
    [ "$(grep -c 'run on this node' err)" = 2 ]
}
two_nodes() { # VARIABLE=VALUE of the second node...
    local node=0 command
    start_coord cluster.json
    wait_until 10 "two commands" commands_printed
    while read -r command; do
        node=$((node + 1))
        # shellcheck disable=SC2086 # words of a command line
        env CUDA_FAKE_NODE=$node "$([ $node = 2 ] && echo "$1" || echo A=1)" \
            "$fakes"/$command >"worker-$node" 2>&1 &
    done < <(sed -n 's/.*run on this node: //p' err)
    finish_coord
}
two_nodes_cluster='.launch.method = "manual" | .nodes = [
    {host: "a", slots: 2}, {host: "b", slots: 2}] |
    .scenarios = [{name: "s", mode: "colocated", train: {tp: 2, pp: 2},
        infer: {tp: 4, layout: "vllm"}, method: "nccl", warmup: 0,
        strategy: ["send_recv", "broadcast"], iterations: 2,
        bucket_bytes: 65536}]'
