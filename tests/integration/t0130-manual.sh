#!/bin/bash
# The launcher `manual`: the coordinator prints a command for each node, and
# whoever runs these commands has a cluster.
# limit: 200
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base='{
  "name": "t", "launch": {"method": "manual"},
  "nodes": [{"host": "a", "slots": 2}, {"host": "b", "slots": 2}],
  "model": {"megatron": {"num_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "vocab_size": 128}},
  "scenarios": [{"name": "s", "mode": "disaggregated",
    "train": {"nodes": ["a"], "tp": 2}, "infer": {"nodes": ["b"], "tp": 2},
    "method": ["host", "tcp"], "warmup": 0, "iterations": 2}]}'

commands_printed() {
    [ "$(grep -c 'run on this node: ' err)" = 2 ]
}

# Starts a run and waits for its commands, which are then in the file commands.
# Keys are in a folder of this test.
start_manual() { # [JQ_PROGRAM]
    own_worker
    export XDG_CACHE_HOME=$PWD/cache
    cluster "${1-.} | .launch.worker = \"$worker\""
    start_coord cluster.json
    wait_until 20 "two commands" commands_printed
    sed -n 's/.*run on this node: //p' err >commands
}

# Runs command N as the user would; with "-" its key comes on standard input.
run_command() { # N [-]
    local words key
    read -ra words < <(sed -n "$1p" commands)
    key=${words[-1]}
    if [ "${2-}" = - ]; then
        "${words[@]:0:${#words[@]}-1}" - <"$key" >"worker-$1" 2>&1 &
    else
        "${words[@]}" </dev/null >"worker-$1" 2>&1 &
    fi
}

keys() {
    find cache -type f 2>/dev/null
}

both_verified() {
    local method
    for method in host tcp; do
        expect_verified "$(result "s-method=$method")"
    done
}

test_printed_commands_make_a_cluster() {
    start_manual
    run_command 1
    run_command 2 -
    finish_coord
    expect_exit 0
    both_verified
    expect_json "$(result s-method=tcp)" '.plan.bytes_inter_node > 0'
    expect_json "$(result s-method=tcp)" '[.environment[].control] ==
        ["tcp", "tcp"]'
    wait_until 20 "the workers have left" no_workers
    [ -z "$(keys)" ] || fail "keys are left: $(keys)"
}

test_keys_are_private_and_not_in_the_command() {
    local file
    umask 0
    start_manual
    [ "$(stat -c %a cache cache/refit-coord | uniq)" = 700 ] ||
        fail "the folder of the keys is open to others"
    [ "$(keys | wc -l)" = 2 ] || fail "not two keys"
    for file in $(keys); do
        [ "$(stat -c %a "$file")" = 600 ] || fail "$file can be read by others"
        expect_no_text commands "$(cat "$file")"
        expect_no_text err "$(cat "$file")"
    done
    kill -TERM "$coord_pid"
    finish_coord
    expect_exit 143
    [ -z "$(keys)" ] || fail "keys are left"
    # Nothing was measured, so there is no folder.
    if compgen -G 'results/*' >&2; then fail "a folder of results"; fi
}

test_a_coordinator_with_keys_leaves_no_core_file() {
    ulimit -S -c "$(ulimit -H -c)"
    start_manual
    expect_text "/proc/$coord_pid/limits" '^Max core file size +0 +0 '
    kill -TERM "$coord_pid"
    finish_coord
}

test_a_node_with_a_wrong_key_does_not_join_and_the_right_one_does() {
    local words refused_pid
    start_manual
    read -ra words < <(sed -n 1p commands)
    head -c 32 /dev/zero | od -An -v -tx1 | tr -d ' \n' >wrong
    echo >>wrong
    chmod 600 wrong
    "${words[@]:0:${#words[@]}-1}" "$PWD/wrong" </dev/null >refused 2>&1 &
    refused_pid=$!
    run_command 1
    run_command 2
    finish_coord
    expect_exit 0
    both_verified
    kill "$refused_pid" 2>/dev/null
    if wait "$refused_pid"; then
        fail "the worker with the wrong key ended with 0"
    fi
    wait_until 20 "the workers have left" no_workers
}

test_a_worker_that_is_killed_fails_its_scenario() {
    start_manual '.scenarios[0] += {method: "host", iterations: 1000000}'
    run_command 1
    run_command 2
    wait_until 60 "the ranks" ranks_run
    kill -KILL "$!"
    finish_coord
    expect_exit 1
    expect_json "$(result s)" '.status == "failed" and
        (.errors[0] | .host == "b")'
    wait_until 20 "the workers have left" no_workers
}
# A child of this shell catches it, too, until it has become the worker.
worker_catches_sigint() { # PID
    grep -qx 'Name:[[:space:]]*refit-worker' "/proc/$1/status" &&
        grep -q '^SigCgt.*[2367abef]$' "/proc/$1/status"
}

test_ctrl_c_ends_a_worker_that_a_person_started() {
    own_worker
    printf '%064d\n' 0 >key
    chmod 600 key
    # A terminal's Ctrl-C; children of this shell ignore SIGINT otherwise.
    env --default-signal=INT "$worker" --connect 127.0.0.1:1 --identity r/0 \
        --key-file key </dev/null >said 2>&1 &
    wait_until 20 "it handles SIGINT" worker_catches_sigint "$!"
    kill -INT "$!"
    status=0
    wait "$!" || status=$?
    expect_exit 1
    expect_text said 'SIGINT'
}

ranks_run() {
    [ "$(ranks | wc -l)" -ge 4 ]
}

run_tests
