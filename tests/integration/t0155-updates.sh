#!/bin/bash
# Refits of what a training step changed: every encoding with every method and
# strategy, and what is refused.
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

cluster() { # MEMBERS_OF_THE_SCENARIO
    cat >cluster.json <<EOF
{"name": "t", "launch": {"method": "local"},
 "nodes": [{"host": "localhost", "slots": 6}],
 "model": {"megatron": {"num_layers": 2, "hidden_size": 64,
           "num_attention_heads": 8, "vocab_size": 1000, "swiglu": true}},
 "scenarios": [{"name": "x", "mode": "disaggregated", "train": {"tp": 2},
                "infer": {"tp": 2, "dp": 2}, "warmup": 1, "iterations": 1,
                "yardstick": false, $1}]}
EOF
}

encodings() { # prints the names as a list
    "$coord" plan cluster.json --set 'scenarios.*.encoding=nonesuch' 2>&1 |
        sed -n 's/.* must be one of \(.*\), not .*/[\1]/p'
}

sent='([.iterations[-1].ranks[].sent_bytes] | add)'

# The four ranks of the destinations' two replicas get some 2 % of the elements,
# each with its position.
test_every_encoding_is_verified() {
    local members='"method": "tcp", "update": {"density": 0.02}'
    cluster "$members"
    names=$(encodings)
    cluster "$members, \"encoding\": $names"
    coord_exits 0 cluster.json
    expect_json results/*/x-encoding=dense.json "$sent >= .model.bytes and
        $sent == .summary.sent_bytes and .scenario.encoding == \"dense\""
    expect_text out '^scenario .* encoding +bytes .* sent +median ms '
    for result in results/*/x-encoding=*.json; do
        expect_json "$result" '.status == "ok" and
            .verification.mismatched_bytes == 0'
    done
    expect_json results/*/x-encoding=auto.json "$sent == .summary.sent_bytes"
    [ "$(csv_column results/*/summary.csv encoding | sort -u | wc -l)" = \
        "$(jq length <<<"$names")" ] || fail "summary.csv lacks encodings"
    expect_json results/*/x-encoding=auto.json "$sent < .model.bytes / 10 and
        .bound.resource == \"scan of localhost\""
    expect_json results/*/x-encoding=auto+diff.json "$sent < .model.bytes / 20"
    files=(results/*/x-*.json)
    [ ${#files[@]} = "$(jq length <<<"$names")" ] || fail "encodings are missing"
}

# Where all elements change, too: differences have few bits.
test_differences_are_never_whole_weights() {
    cluster '"method": "tcp", "update": {"density": 1},
             "encoding": ["auto+raw", "auto+diff"]'
    coord_exits 0 cluster.json
    expect_json results/*/x-encoding=auto+raw.json "$sent > 2 * .model.bytes"
    expect_json results/*/x-encoding=auto+diff.json "$sent < .model.bytes"
}

test_every_method_and_every_strategy_is_verified() {
    strategies=$("$RF_TOP/tests/lib/strategies" "$coord" | jq -R . | jq -sc .)
    cluster '"update": {"density": 0.05}, "encoding": "auto+diff",
             "method": "tcp", "strategy": '"$strategies"
    coord_exits 0 cluster.json -o by-strategy
    expect_text err 'scenario x-strategy=gather_broadcast: strategy gather_broadcast moves whole weights whatever the encoding'
    cluster '"update": {"density": 0.05}, "encoding": "auto+diff",
             "method": ["host", "shm", "disk", "ucx"], "disk": {"folder": "'"$PWD"'"},
             "strategy": "broadcast"'
    coord_exits 0 cluster.json -o by-method
    expect_no_text err 'whatever the encoding'
    files=(by-*/*/x-*.json)
    [ ${#files[@]} = $((4 + $(jq length <<<"$strategies"))) ] ||
        fail "members are missing"
    for result in "${files[@]}"; do
        expect_json "$result" '.status == "ok" and
            if .scenario.strategy == "gather_broadcast" then
                .bound.resource | startswith("memory of ")
            else .schedule_bound.ms == null and
                (.bound.resource | startswith("scan of ")) end'
    done
}

# The ranks of the second replica, before the first and the third measured
# iteration: they get all of the weights, the others still what changed.
test_an_engine_that_restarted_gets_whole_weights() {
    strategies=$("$RF_TOP/tests/lib/strategies" "$coord" | jq -R . | jq -sc .)
    cluster '"update": {"density": 0.02, "restart_every": 2},
             "encoding": "auto+diff", "method": "tcp",
             "strategy": '"$strategies"
    coord_exits 0 cluster.json --set 'scenarios.*.iterations=3'
    expect_text out '^scenario .* sent +resyncs +median ms '
    for result in results/*/x-*.json; do
        expect_json "$result" '.status == "ok" and
            if .scenario.strategy == "gather_broadcast" then
                .summary.resyncs == null
            else .summary.resyncs == 4 and
                (.iterations | map(.resyncs)) == [2, null, 2] and
                (.model.bytes as $all |
                (.iterations | map([.ranks[].sent_bytes] | add)) as $sent |
                $sent[0] > $all and $sent[2] > $all and $sent[1] < $all / 10)
            end'
    done
    expect_json results/*/x-strategy=send_recv.json '.model.bytes as $all |
        [.iterations[0].ranks[].received_bytes] |
        .[4] + .[5] > $all and .[2] + .[3] < $all / 20'
    [ "$(csv_column results/*/summary.csv resyncs | sort -u | xargs)" = 4 ] ||
        fail "summary.csv lacks resyncs"
    run_coord plan cluster.json -s '*send_recv'
    expect_text out 'encoding auto\+diff moves at least .* kB, to the last replica all, in 1 of 2 iterations'
    run_coord predict cluster.json --set links.copy_gbytes_per_s=10
    expect_text out 'whole weights for engines that restart'
}

# Copies inside a node compare with what is there, and dense weights are for all.
test_an_engine_restarts_with_every_method_and_checkpoints() {
    two_checkpoints
    cluster '"update": {"from": "before", "to": "after", "restart_every": 1},
             "method": ["host", "disk", "ucx"],
             "encoding": ["dense", "auto+raw"], "disk": {"folder": "'"$PWD"'"}'
    coord_exits 0 cluster.json --set 'model={"checkpoint": "before"}' \
        --set 'nodes=[{"host": "a", "slots": 2}, {"host": "b", "slots": 4}]'
    for result in results/*/x-*.json; do
        expect_json "$result" '.status == "ok" and
            .scenario.update.restart_every == 1 and
            .summary.resyncs == if .scenario.encoding == "dense" then null
                else 2 end'
    done
    cluster '"update": {"density": 0.02, "restart_every": 1},
             "method": ["host", "shm"], "encoding": "auto+raw"'
    coord_exits 0 cluster.json -o inside
    for result in inside/*/x-*.json; do
        expect_json "$result" '.status == "ok" and .summary.resyncs == null'
    done
}

test_without_an_encoding_tables_have_no_column_for_it() {
    cluster '"method": "host"'
    coord_exits 0 cluster.json
    expect_text out '^scenario '
    expect_no_text out 'encoding|sent'
}

test_every_pattern_is_verified() {
    cluster '"method": "tcp", "encoding": "auto",
             "update": {"density": 0.1, "every": 3, "seed": 5, "pattern":
                        ["adam", "uniform", "rows", "blocks", "experts"]}'
    coord_exits 0 cluster.json
    for result in results/*/x-*.json; do
        expect_json "$result" '.status == "ok" and
            .scenario.update.every == 3 and .scenario.update.seed == 5'
    done
}

# Two checkpoints; every 50th element of `after` is another one than in `before`.
two_checkpoints() {
    "$RF_TOP/tests/lib/make-checkpoint" before "$@" >/dev/null ||
        fail "make-checkpoint failed"
    "$RF_TOP/tests/lib/step-checkpoint" before after 50 ||
        fail "step-checkpoint failed"
}

test_the_difference_of_two_checkpoints_is_refitted() {
    two_checkpoints --experts 4
    cluster '"method": ["host", "tcp"], "encoding": "auto+diff",
             "update": {"from": "before", "to": "after"}'
    coord_exits 0 cluster.json -s '*tcp' --export exported \
        --set 'model={"checkpoint": "before"}'
    "$RF_TOP/tests/lib/same-tensors" after exported ||
        fail "not the checkpoint after the step"
    expect_json results/*/x-method=tcp.json "$sent < .model.bytes / 10 and
        (.scenario.update | keys == [\"from\", \"to\"] and
            all(startswith(\"/\")))"
    cluster '"method": "host", "update": {"from": "before"}'
    coord_exits 0 cluster.json -o whole --export dense \
        --set 'model={"checkpoint": "after"}'
    "$RF_TOP/tests/lib/same-tensors" after dense ||
        fail "not the model's checkpoint"
}

test_what_changed_between_two_checkpoints_is_shown() {
    two_checkpoints
    coord_exits 0 delta before after
    expect_text out '^all .* 2 % +100 % +0 % +0 % +0 % +0 % +0 % +1\.00 '
    expect_text out '^model\.layers\.#\.mlp\.down_proj\.weight .* 2 % '
    coord_exits 0 delta before after --json
    # 50 elements: 50 H(1/50) bits, and 16 for the value.
    expect_json out '.total | .changed * 50 - .elements | fabs < 150'
    expect_json out '.total | .raw_bound_bytes * 8 / .changed |
        . > 23 and . < 23.1'
    expect_json out '.total | .diff_bound_bytes * 8 / .changed |
        . > 8 and . < 8.1'
    coord_exits 0 delta before before
    expect_text out '^all .* 0 % '
    coord_exits 2 delta before nonesuch
    expect_text err 'nonesuch'
}

test_checkpoints_of_two_models_are_refused() {
    two_checkpoints
    "$RF_TOP/tests/lib/make-checkpoint" other --layers 1 >/dev/null
    cluster '"update": {"from": "other"}'
    local command
    for command in run plan check; do
        coord_exits 2 "$command" cluster.json --set 'model={"checkpoint": "before"}'
        expect_text err "[$]\.scenarios\[0\]\.update\.from: .*/before has tensor model\.layers\.1\..*, .*/other has not"
        coord_exits 2 "$command" cluster.json \
            --set 'model={"checkpoint": "other"}' \
            --set 'scenarios.*.update.from=before'
        expect_text err "[$]\.scenarios\[0\]\.update\.from: .*/before has tensor model\.layers\.1\..*, .*/other has not"
    done
    "$RF_TOP/tests/lib/make-checkpoint" wide --hidden 256 >/dev/null
    coord_exits 2 cluster.json --set 'model={"checkpoint": "before"}' \
        --set 'scenarios.*.update={"from": "after", "to": "wide"}'
    expect_text err '\$\.scenarios\[0\]\.update\.to: tensor .* has shape \[[0-9,]+\] in .*/before, \[[0-9,]+\] in .*/wide'
}

test_checkpoints_in_one_folder_are_refused() {
    two_checkpoints
    ln -s "$PWD/before" alias
    cluster '"update": {"from": "before"}'
    local from
    for from in before alias before/../alias/; do
        coord_exits 2 cluster.json --set 'model={"checkpoint": "before"}' \
            --set "scenarios.*.update.from=$from"
        expect_text err '[$]\.scenarios\[0\]\.update\.from: .* is the same folder as that of the model, .*/before: nothing would change'
    done
    coord_exits 2 plan cluster.json --set 'model={"checkpoint": "after"}' \
        --set 'scenarios.*.update={"from": "alias", "to": "before"}'
    expect_text err '/alias is the same folder as "to", .*/before: nothing would change'
    cluster '"update": {"from": "absent", "to": "absent"}'
    coord_exits 2 cluster.json --set 'model={"checkpoint": "before"}'
    expect_text err '/absent is the same folder as "to"'
}

# A scenario of its own model is compared with that.
test_a_checkpoint_that_is_missing_is_named_before_a_rank_starts() {
    two_checkpoints
    "$RF_TOP/tests/lib/make-checkpoint" other --layers 1 >/dev/null
    cluster '"update": {"from": "nonesuch", "to": "after"}'
    jq '.model = {checkpoint: "other"} |
        .scenarios[0].model = {checkpoint: "before"}' cluster.json >own.json
    coord_exits 2 plan own.json
    expect_text err '\$\.scenarios\[0\]\.update\.from: .*/nonesuch is not on this machine'
    expect_text err 'mount the folder here under the same path, or run the command on a node'
    coord_exits 4 own.json
    expect_text err '^error: localhost: \$\.scenarios\[0\]\.update\.from, which ranks read on their nodes: .*/nonesuch: No such file'
    [ ! -e results ] || fail "results/ was left"
    coord_exits 4 check own.json
    expect_text out '^E localhost: \$\.scenarios\[0\]\.update\.from, .*/nonesuch: No such file'
    mkdir nonesuch
    coord_exits 2 own.json
    expect_text err '\$\.scenarios\[0\]\.update\.from: .*/nonesuch: no \*\.safetensors in it'
}

test_a_checkpoint_may_be_in_the_cache_of_the_hub() {
    local hub=$PWD/hub/models--some--policy
    two_checkpoints
    mkdir -p "$hub/refs" "$hub/snapshots"
    echo c0ffee >"$hub/refs/main"
    mv after "$hub/snapshots/c0ffee"
    cluster '"encoding": "auto", "update": {"from": "before", "to": "some/policy"}'
    HF_HUB_CACHE=$PWD/hub coord_exits 0 cluster.json \
        --set 'model={"checkpoint": "before"}'
    expect_json results/*/x.json ".status == \"ok\" and
        .scenario.update.to == \"$hub/snapshots/c0ffee\""
}

test_a_wrong_byte_is_found() {
    cluster '"method": "tcp", "update": {"density": 0.01},
             "encoding": "gap8+diff"'
    REFIT_TEST_FLIP=4:1 coord_exits 3 cluster.json
    expect_json results/*/x.json '.verification.mismatched_bytes > 0'
}

test_a_rank_lost_on_the_way_is_named() {
    cluster '"method": "tcp", "update": {"density": 0.01}, "encoding": "auto"'
    REFIT_TEST_EXIT=3:1 coord_exits 1 cluster.json
    expect_text err 'rank 3: '
}

test_a_result_is_run_again() {
    cluster '"update": {"density": 0.01, "densities": [{"match": "*norm*",
             "density": 0}]}, "encoding": "auto"'
    coord_exits 0 cluster.json
    coord_exits 0 rerun results/*/x.json
}

refused() { # MEMBERS TEXT [OPTION...]
    cluster "$1"
    coord_exits 2 cluster.json "${@:3}"
    expect_text err "$2"
}

test_what_cannot_be_is_refused() {
    refused '"update": {"density": 1.5}' \
        '\$\.scenarios\[0\]\.update\.density \(x\): .*from 0 to 1, not 1\.5'
    refused '"update": {"pattern": "rows"}' 'update.*density'
    refused '"update": {"density": 0.1, "pattern": "row"}' 'rows'
    refused '"update": {"density": 0.1, "densities": [{"match": "nonesuch*",
             "density": 1}]}' 'no tensor is called "nonesuch\*"; names are as model\.layers\.[{]L[}]'
    refused '"update": {"density": 0.1, "densities": [{"match": "*"}]}' \
        'densities\[0\].*density'
    refused '"update": {"from": "a", "density": 0.1}' \
        '"from" and "density" cannot be combined'
    refused '"update": {"density": 0.1, "restart_every": -1}' \
        'update\.restart_every \(x\): .*0 .*not -1'
    refused '"update": {"to": "a"}' '"to" needs "from"'
    refused '"update": {"from": "a"}' 'update\.from: the model must be'
    refused '"encoding": "auto"' 'needs "update"'
    refused '"encoding": "gap9", "update": {"density": 0.1}' 'gap8'
    refused '"encoding": "auto", "update": {"density": 0.1}, "method": "nccl"' \
        'encoding auto: method nccl moves whole weights'
    cluster '"encoding": "auto", "update": {"density": 0.1}'
    coord_exits 2 cluster.json --set 'scenarios.*.train.dtype=float32' \
        --set 'scenarios.*.infer.dtype=bfloat16'
    expect_text err 'another dtype in training than in inference'
}

test_a_plan_says_what_changes_and_the_least_that_moves() {
    cluster '"update": {"density": 0.01},
             "encoding": ["auto", "auto+raw"]'
    run_coord plan cluster.json # 0.01505 of 292.48 kB, see below
    expect_text out 'update +1 % of 292\.48 kB changes; all of it moves'
    expect_text out 'update +1 % of 292\.48 kB changes; encoding auto\+raw moves at least 4\.40 kB'
    run_coord plan cluster.json --set 'scenarios.*.update.pattern=rows' \
        --set 'scenarios.*.update.every=2'
    expect_text out 'update +2 % of 292\.48 kB changes; encoding auto\+raw moves what changed'
    run_coord plan cluster.json --set 'scenarios.*.strategy=gather_broadcast'
    expect_no_text out 'encoding auto\+raw moves'
    run_coord plan cluster.json --set 'scenarios.*.encoding=dense' \
        --set 'scenarios.*.update=null'
    expect_no_text out '  update'
}

# A scan of all weights, or the least bytes on the link, by the best of the probes:
# of 1 % of 16 bits the positions take 0.0808 bits an element, the differences of
# adam 1.64 a change; of half of them, 1 bit. A scan then takes less time than what
# the kernel copies twice.
test_the_bound_is_the_longer_of_scan_and_least_bytes() {
    local nodes='nodes=[{"host": "a", "slots": 2}, {"host": "b", "slots": 4}]'
    bound() { # RESULT SHARE_ON_THE_LINK
        expect_json "$1" \
            "(.model.bytes / 1e6) as \$mb | .bound | .ms as \$ms |
            [.probe[] | objects] | \$mb * ([
                1 / ([.[].nodes[0].scan_gbytes_per_s] | max),
                $2 / ([.[].pairs[].gbytes_per_s] | max)] | max) / \$ms |
            . > 0.99 and . < 1.01"
    }
    cluster '"method": "tcp", "update": {"density": 0.01},
             "encoding": ["dense", "auto", "auto+raw"]'
    coord_exits 0 cluster.json --set "$nodes"
    bound results/*/x-encoding=auto.json 0.006075
    bound results/*/x-encoding=auto+raw.json 0.01505
    expect_json results/*/x-encoding=dense.json '.bound.probe.before.nodes |
        map(has("scan_gbytes_per_s")) | any | not'
    cluster '"method": "tcp", "update": {"density": 0.5}, "encoding": "auto+raw"'
    coord_exits 0 cluster.json -o half --set "$nodes"
    bound half/*/x.json 0.5625
    # The link, unless comparing is very slow, as under a sanitizer.
    expect_json half/*/x.json '.bound | [.probe[] | objects] as $probe |
        (.resource | startswith("link")) ==
        (0.5625 / ([$probe[].pairs[].gbytes_per_s] | max) >
            1 / ([$probe[].nodes[0].scan_gbytes_per_s] | max))'
}

test_a_machine_without_zstd_is_told() {
    local library
    library=$(ldconfig -p | sed -n 's/.*libzstd\.so\.1 .*=> //p' | head -n 1)
    [ "$(id -u)" = 0 ] && [ -n "$library" ] || return 0
    without_zstd() { # ENCODING: sets status
        cluster '"method": "tcp", "update": {"density": 0.1},
                 "encoding": "'"$1"'"'
        unshare --mount sh -c 'mount --bind /dev/null "$(realpath "$1")" &&
            exec "$2" cluster.json' sh "$library" "$coord" >out 2>err
        status=$?
    }
    without_zstd auto
    [ "$status" = 0 ] || fail "auto: exit code $status"
    without_zstd xor+zstd
    [ "$status" = 1 ] || fail "exit code $status"
    expect_text err 'failed \(prepare\): .*rank [0-9]: encoding xor\+zstd: .*libzstd.*install'
}

test_predict_says_where_dense_wins() {
    cluster '"encoding": ["auto", "auto+raw"], "update": {"density": [0.1, 0.2]}'
    run_coord predict cluster.json --set links.copy_gbytes_per_s=10
    expect_text out 'no figure for comparing on localhost; set scan_gbytes_per_s'
    run_coord predict cluster.json --set links.copy_gbytes_per_s=10 \
        --set links.scan_gbytes_per_s=20
    expect_text out '^crossover: x-encoding=auto\+raw, host: auto\+raw is faster than dense below 12\.5 % changed \(inside a node, 6 ranks comparing 20 GB/s\)$'
    [ "$(grep -c crossover out)" = 1 ] || fail "densities repeat the crossover"
    run_coord predict cluster.json --json --set links.copy_gbytes_per_s=10 \
        --set links.scan_gbytes_per_s=20
    expect_json out '[.predictions[] | .crossover // empty] |
        length == 1 and (.[0] | .ranks == 6 and .share > 0.12 and .share < 0.13)'
    run_coord predict cluster.json --set 'scenarios.*.method=tcp' \
        --set links.methods.tcp.copy_gbytes_per_s=2 --set links.scan_gbytes_per_s=20
    expect_text out '^crossover: x-encoding=auto, tcp: auto is faster than dense below [0-9.]+ % changed \(sockets inside a node 16 Gbit/s, 6 ranks comparing 20 GB/s\)$'
    run_coord predict cluster.json --set 'scenarios.*.method=tcp' \
        --set 'scenarios.*.mode=colocated' --set 'scenarios.*.infer={"tp": 2}' \
        --set links.copy_gbytes_per_s=10 --set links.scan_gbytes_per_s=20
    expect_text out '^crossover: x-encoding=auto, tcp: auto compares nothing here, and copies as dense does$'
    run_coord predict cluster.json --set links.copy_gbytes_per_s=10 \
        --set 'scenarios.*.encoding=xor+zstd'
    expect_text out 'encoding xor\+zstd: what zstd makes of changes'
}

test_results_calibrate_predictions_of_encodings() {
    cluster '"encoding": ["dense", "auto+raw"], "update": {"density": 0.1}'
    coord_exits 0 cluster.json
    run_coord predict cluster.json results/*
    expect_text out 'x-encoding=auto\+raw +host +send_recv +[0-9.e-]+ +1 result '
    expect_text out '^host, auto\+raw: calibrated by 1 result: x'
}
run_tests
