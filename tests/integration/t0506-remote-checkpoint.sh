#!/bin/bash
# A checkpoint that only the nodes have: the head asks them for the headers.
# limit: 300
# waits
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"
[ "$(id -u)" = 0 ] || skip_all "mount namespaces need root"
unshare -m true 2>/dev/null || skip_all "this kernel has no mount namespaces"

held_disk=$work/held_disk.so
"${CC:-cc}" -D_GNU_SOURCE -shared -fPIC -o "$held_disk" \
    "$RF_TOP/tests/fake/held_disk.c" -ldl || skip_all "cannot build held_disk.so"

base=$(jq '. + {nodes: [{host: "a", slots: 2}, {host: "b", slots: 2}],
    scenarios: [{name: "s", mode: "disaggregated", train: {tp: 2},
        infer: {tp: 2, layout: "vllm"}, warmup: 0, iterations: 2}]}' \
    <<<"$four_slots")

# Makes a checkpoint for each of two nodes, in one/ and two/. Their workers see
# one of these as mounted/, which is empty for everybody else.
remote_checkpoints() { # [JQ_PROGRAM]
    mkdir one two mounted
    "$RF_TOP/tests/lib/make-checkpoint" one/model >total ||
        fail "make-checkpoint failed"
    cp -r one/model two/model
    own_worker
    cat >node-worker <<END
#!/bin/sh
folder=$PWD/one
mkdir "$PWD/first" 2>/dev/null || folder=$PWD/two
exec unshare -m sh -c 'mount --bind "\$0" "$PWD/mounted" &&
    exec "$worker" "\$@"' "\$folder" "\$@"
END
    chmod +x node-worker
    cluster ".launch.worker = \"$PWD/node-worker\" |
        .model = {checkpoint: \"mounted/model\"} | ${1-.}"
}

in_state() { # NAME
    grep -q -- "-> $1\$" err
}

expect_refused() { # REGEX
    expect_exit 4
    expect_text err "$1"
    [ ! -e results ] || fail "results/ was left"
}

test_a_run_needs_the_checkpoint_on_the_nodes_only() {
    remote_checkpoints
    coord_exits 0 cluster.json
    expect_verified "$(result s)"
    expect_json "$(result s)" ".setup.checkpoint.bytes > $(cat total) and
        .cluster.model.folder == \"$PWD/mounted/model\" and
        .model.model_type == \"qwen3\""
    expect_json results/*/run.json '.model.digest | length > 0'
    rm -r first
    run_coord rerun -o again "$(result s)"
    expect_text err 'results in again/'
    expect_verified "$(echo again/*/s.json)"
}

test_a_resumed_run_needs_the_same_checkpoint() {
    local folder
    remote_checkpoints '.scenarios[0].strategy = ["send_recv", "broadcast"]'
    REFIT_TEST_FLIP=2:1 coord_exits 3 cluster.json
    rm -r first
    folder=$(echo results/*)
    coord_exits 0 cluster.json --resume "$folder"
    REFIT_TEST_FLIP=2:1 run_coord cluster.json -o other
    rm -r one/model two/model first
    "$RF_TOP/tests/lib/make-checkpoint" one/model --untied >total
    cp -r one/model two/model
    coord_exits 2 cluster.json --resume "$(echo other/*)"
    expect_text err 'cannot be resumed: its model differs'
}

test_a_plan_that_the_headers_do_not_allow_is_a_mistake_in_the_file() {
    remote_checkpoints '.nodes |= map(.slots = 3) |
        .scenarios[0].train.tp = 3 | .scenarios[0].infer.tp = 3'
    coord_exits 2 cluster.json
    expect_text err '[$].scenarios\[0\].*tp 3 is impossible'
    [ ! -e results ] || fail "results/ was left"
}

test_members_that_the_headers_do_not_allow_cannot_be_skipped() {
    remote_checkpoints '.nodes |= map(.slots = 3) |
        .scenarios[0] += {impossible: "skip", train: {tp: [1, 3]},
            infer: {tp: 3}}'
    coord_exits 2 cluster.json
    expect_text err 'tp 3 is impossible.*"skip" cannot leave it out after'
    [ ! -e results ] || fail "results/ was left"
}

# Which worker is which node is a matter of who starts first.
test_a_folder_that_no_node_has_names_all_of_them() {
    remote_checkpoints '.model.checkpoint = "mounted/absent"'
    run_coord cluster.json
    expect_refused '^error: a, b: .*mounted/absent: No such file'
}

test_a_file_that_differs_between_nodes_is_named() {
    remote_checkpoints
    # float16 for bfloat16 with a blank less: the header keeps its length.
    sed -i 's/"dtype": "BF16"/"dtype": "F16" /g' two/model/*.safetensors
    run_coord cluster.json
    expect_refused 'b: .*mounted/model/model-00001-of-00003.safetensors: differs from that on a'
}

test_a_shard_that_is_cut_short_names_node_and_file() {
    remote_checkpoints
    truncate -s -8 two/model/model-00002-of-00003.safetensors
    run_coord cluster.json
    expect_refused '^error: (a|b): .*mounted/model:$'
    expect_text err '^  model-00002-of-00003.safetensors: .* past the [0-9]+ bytes of data'
}

test_check_plans_from_the_headers_of_a_node() {
    remote_checkpoints
    coord_exits 0 check cluster.json
    expect_text out '^0 errors'
    rm -r first
    truncate -s -8 two/model/model-00002-of-00003.safetensors
    coord_exits 4 check cluster.json
    expect_text out '^E (a|b): .*mounted/model:'
    expect_text out 'model-00002-of-00003.safetensors: .* past the [0-9]+ bytes of data'
    rm -r first
    cp one/model/*.safetensors two/model
    cluster '.model = {checkpoint: "mounted/model"} | .nodes |= map(.slots = 3) |
        .launch.worker = "'"$PWD/node-worker"'" |
        .scenarios[0].train.tp = 3 | .scenarios[0].infer.tp = 3'
    coord_exits 2 check cluster.json
    expect_text err 'tp 3 is impossible'
}

# Beside the model's checkpoint, those of an update, each on the head or not.
test_an_update_between_checkpoints_on_the_nodes_is_looked_at_first() {
    local node path='\$\.scenarios\[0\]\.update\.from'
    remote_checkpoints '.scenarios[0].update = {from: "mounted/before"}'
    for node in one two; do
        "$RF_TOP/tests/lib/step-checkpoint" "$node/model" "$node/before" 50 ||
            fail "step-checkpoint failed"
    done
    coord_exits 0 cluster.json
    expect_verified "$(result s)"
    rm -r first two/before results
    run_coord cluster.json
    expect_refused "^error: (a|b): $path, which ranks read on their nodes: .*mounted/before: No such file"
    rm -r first
    coord_exits 4 check cluster.json
    expect_text out "^E (a|b): $path, .*mounted/before: No such file"
    # The model's headers are on the head, too; then the update's.
    cp -r one/model mounted
    rm -r first
    run_coord cluster.json
    expect_refused "^error: (a|b): $path, which ranks read on their nodes: .*mounted/before: No such file"
    cp -r one/before mounted
    rm -r first
    coord_exits 1 cluster.json
    expect_text err "rank [0-9]: update\.from: .*mounted/before: No such file"
}

# Longer than leases last without a sign of life.
test_a_disk_that_hangs_is_given_up_and_the_nodes_are_not() {
    remote_checkpoints ".launch.timeout_s = 5 | .launch.env =
        {LD_PRELOAD: \"$held_disk\", HELD_DISK: \"$PWD/hold\"}"
    touch hold
    run_coord cluster.json
    expect_refused "a, b: .*model.checkpoint, .*: reading the checkpoint's headers took more than 20 s: file server hung"
}

test_a_node_that_is_lost_while_its_disk_hangs_ends_the_run() {
    local pid parent
    remote_checkpoints ".launch.env =
        {LD_PRELOAD: \"$held_disk\", HELD_DISK: \"$PWD/hold\"}"
    touch hold
    start_coord cluster.json -vv
    wait_until 60 "the headers are being read" test -e hold.reached
    wait_until 60 "the run waits for them" in_state inspecting
    for pid in $(workers); do
        pid=${pid%:*}
        parent=$(awk '/^PPid:/ {print $2}' "/proc/$pid/status" 2>/dev/null)
        if [ "$parent" = "$coord_pid" ]; then
            kill -KILL "$pid"
            break
        fi
    done
    finish_coord
    expect_refused '(a|b): .*SIGKILL'
    [ -z "$(workers)" ] || fail "workers are left: $(workers)"
}

run_tests
