#!/bin/bash
# Standard error that nobody reads: a run goes on all the same.
# limit: 120
# waits
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base=$(jq '. + {scenarios: [
    {"name": "first", "mode": "colocated", "train": {"tp": 2, "pp": 2},
     "infer": {"tp": 4}, "warmup": 0, "iterations": 3}
  ]}' <<<"$four_slots")

run_is_stored() {
    compgen -G "results/*/run.json" >/dev/null &&
        jq -e '.status == "ok"' results/*/run.json >/dev/null
}

test_a_pipe_that_nobody_reads_does_not_hold_up_the_run() {
    mkfifo pipe
    exec 9<>pipe
    dd if=/dev/zero of=pipe bs=4096 count=4096 oflag=nonblock status=none \
        2>/dev/null && fail "the pipe has room for 16 MB"
    cluster
    "$coord" cluster.json -vv >out 2>pipe </dev/null &
    coord_pid=$!
    wait_until 60 "the run has ended and is stored" run_is_stored
    wait "$coord_pid"
    status=$?
    expect_exit 0
    expect_text out '^first +host'
    expect_verified "$(result first)"
}

shown() { # EXTENDED_REGEX
    grep -qE -- "$1" terminal
}

# script(1) makes the terminal; ^S and ^Q come from its standard input.
test_a_terminal_that_is_stopped_does_not_hold_up_the_run() {
    mkfifo keys
    exec 9<>keys
    printf '\023' >&9
    cluster
    TERM=xterm script -qec "'$coord' cluster.json -vv" /dev/null \
        <keys >terminal 2>&1 &
    coord_pid=$!
    wait_until 60 "the run has ended and is stored" run_is_stored
    ! shown 'stopping -> done' || fail "the terminal was not stopped"
    printf '\021' >&9
    wait_until 20 "the table" shown '^first +.* yes'
    wait "$coord_pid"
    status=$?
    expect_exit 0
    expect_verified "$(result first)"
}

run_tests
