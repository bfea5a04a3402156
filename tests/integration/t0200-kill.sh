#!/bin/bash
# Violent ends: whatever dies, nothing is left running and what was measured is
# kept. Processes are known by the path of a private copy of the worker.
# limit: 440
# waits
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base=$(jq '. + {scenarios: [
    {"name": "first", "mode": "colocated", "train": {"tp": 2, "pp": 2},
     "infer": {"tp": 4}, "warmup": 0, "iterations": 1000000}
  ]}' <<<"$four_slots")

# Starts a run whose worker is a private copy; -vv shows the states.
start_run() { # [JQ_PROGRAM]
    own_worker
    cluster "${1-.} | .launch.worker = \"$worker\""
    start_coord cluster.json -vv
}

in_state() { # NAME
    grep -q -- "-> $1\$" err
}

# One iteration counts: that is when all of its bytes have been compared, so
# having been in "verifying" is not enough.
iteration_kept() {
    grep -q -- "verifying -> filling\$" err
}

hold=$work/hold
"${CC:-cc}" -D_GNU_SOURCE -o "$hold" "$RF_TOP/tests/faults/hold.c" || exit 1

# Starts a run that stands still in STATE, which may last a fraction of a
# millisecond.
hold_in() { # STATE [JQ_PROGRAM]
    own_worker
    cluster "${2-.} | .launch.worker = \"$worker\""
    mkdir control
    ln -s control/err err
    "$hold" control "-> $1" "$1" 1 0 "$coord" cluster.json -vv >out \
        </dev/null &
    hold_pid=$!
    wait_until 60 "state $1" eval '[ -e control/held ] ||
        [ -e control/status ]'
    coord_pid=$(<control/pid)
    [ -e control/held ] || fail "it was not held in state $1"
}

finish_held() {
    wait "$hold_pid"
    status=$(<control/status)
}

coordinator_killed_while() { # STATE [JQ_PROGRAM]
    hold_in "$@"
    kill -KILL "$coord_pid"
    finish_held
    expect_exit 137
    wait_until 20 "no process is left after the end in $1" no_workers
    [ "$(find results -name '*.tmp' 2>/dev/null | wc -l)" = 0 ] ||
        fail "partial files left"
}

test_killed_while_launching() { coordinator_killed_while launching; }
test_killed_while_starting() { coordinator_killed_while starting; }
test_killed_while_preparing() { coordinator_killed_while preparing; }
test_killed_while_probing() { coordinator_killed_while probing; }
test_killed_while_filling() { coordinator_killed_while filling; }
test_killed_while_running() { coordinator_killed_while running; }
test_killed_while_verifying() { coordinator_killed_while verifying; }
test_killed_while_closing() {
    coordinator_killed_while closing '.scenarios[0].iterations = 1'
}
test_killed_while_stopping() {
    coordinator_killed_while stopping '.scenarios[0].iterations = 1'
}

has_result() { # SCENARIO
    compgen -G "results/*/$1.json" >/dev/null
}

test_a_killed_rank_fails_the_scenario_and_is_named() {
    local victim file
    start_run '.scenarios += [.scenarios[0] | .name = "second" | .iterations = 2]'
    wait_until 60 "an iteration" iteration_kept
    victim=$(ranks | tail -n 1)
    [ -n "$victim" ] || fail "no rank found"
    kill -KILL "${victim%:*}"
    wait_until 15 "the scenario's end" has_result first
    finish_coord
    expect_exit 1
    file=$(result first)
    expect_json "$file" '.status == "failed"'
    expect_json "$file" ".errors[0] | tostring | test(\"localhost.*rank\") and
        test(\"process ${victim%:*}\\\\b\") and test(\"signal 9\")"
    expect_json "$file" '.iterations | length > 0' # what was measured is kept
    expect_verified "$(result second)" # the next scenario goes on
    wait_until 20 "no process is left" no_workers
}

# Two nodes of one rank each, which meet in the folder $PWD/disk.
start_disk_run() { # STATE [JQ_PROGRAM]
    rm -f err # of the last one
    start_run ".nodes = [{\"host\": \"a\", \"slots\": 1},
            {\"host\": \"b\", \"slots\": 1}]
        | .scenarios[0] += {mode: \"disaggregated\", train: {}, infer: {},
            method: \"disk\", disk: {folder: \"$PWD/disk\"}}
        | ${2-.}"
    wait_until 60 "state $1" in_state "$1"
}

# One whose ranks have files in the folder.
start_disk_iterations() {
    mkdir disk
    start_disk_run verifying
    wait_until 60 "an iteration" iteration_kept
    compgen -G "disk/*.data" >/dev/null || fail "no file in the folder"
}

disk_is_empty() {
    [ -z "$(ls -A disk)" ]
}

test_a_killed_coordinator_leaves_no_file_on_disk() {
    start_disk_iterations
    kill -KILL "$coord_pid"
    finish_coord
    wait_until 20 "no process is left" no_workers
    disk_is_empty || fail "left behind: $(ls -A disk)"
}

test_killed_ranks_leave_no_file_on_disk() {
    local victims
    start_disk_iterations
    mapfile -t victims < <(ranks)
    kill -KILL "${victims[@]%:*}"
    finish_coord
    expect_exit 1
    wait_until 20 "no process is left" no_workers
    disk_is_empty || fail "left behind: $(ls -A disk)"
}

# Agents, without their ranks.
agents() {
    comm -23 <(workers | sort) <(ranks | sort)
}

# Killed agents cannot remove what their ranks, who die with them, have in the
# folder. The next run does.
test_the_next_run_removes_what_killed_agents_left_on_disk() {
    local state left=0 victims
    mkdir disk
    for state in preparing probing filling verifying; do
        start_disk_run "$state"
        mapfile -t victims < <(agents)
        [ ${#victims[@]} -gt 0 ] || fail "no agent found"
        kill -KILL "${victims[@]%:*}" 2>/dev/null
        finish_coord
        wait_until 20 "no process is left" no_workers
        left=$((left + $(find disk -type f | wc -l)))
    done
    [ "$left" -gt 0 ] || fail "nothing was left that could be removed"
    touch disk/refit-of-somebody-else.data
    start_disk_run verifying
    kill -INT "$coord_pid"
    finish_coord
    [ "$(ls disk)" = refit-of-somebody-else.data ] ||
        fail "left behind: $(ls -A disk)"
}

# The agent of the other node does, before the run ends.
test_a_run_leaves_no_file_of_a_killed_agent_on_disk() {
    local state victims
    mkdir disk
    for state in preparing verifying; do
        start_disk_run "$state"
        wait_until 20 "a file" compgen -G 'disk/*.data'
        mapfile -t victims < <(agents)
        kill -KILL "${victims[0]%:*}"
        finish_coord
        expect_exit 1
        wait_until 20 "no process is left" no_workers
        disk_is_empty || fail "left behind in $state: $(ls -A disk)"
    done
}

both_ranks_run() {
    [ "$(ranks | wc -l)" = 2 ]
}

# Stopped ranks keep the run from ending between the two signals.
interrupt_twice() {
    local held
    wait_until 20 "both ranks" both_ranks_run
    mapfile -t held < <(ranks)
    kill -STOP "${held[@]%:*}"
    kill -INT "$coord_pid"
    wait_until 20 "the first signal is taken" signal_is_taken
    kill -INT "$coord_pid"
}

test_a_run_ended_by_force_leaves_no_file_on_disk() {
    local state
    mkdir disk
    for state in preparing probing filling verifying; do
        start_disk_run "$state"
        interrupt_twice
        finish_coord
        expect_exit 130
        expect_text err 'aborting -> stopping$'
        expect_no_text err ' ABORTED$' # which a run that is not forced awaits
        wait_until 20 "no process is left" no_workers
        disk_is_empty || fail "left behind in $state: $(ls -A disk)"
    done
}

test_a_killed_agent_is_a_lost_node() {
    local agent
    start_run
    wait_until 60 "an iteration" iteration_kept
    agent=$(comm -23 <(workers | sort) <(ranks | sort) | head -n 1)
    kill -KILL "${agent%:*}"
    finish_coord
    expect_exit 1
    expect_json "$(result first)" '.status == "failed"'
    expect_json "$(result first)" '.errors | tostring | test("localhost")'
    wait_until 20 "no process is left" no_workers
}

test_a_stopped_rank_is_found_by_its_lease() {
    local victim
    start_run
    wait_until 60 "an iteration" iteration_kept
    victim=$(ranks | head -n 1)
    kill -STOP "${victim%:*}"
    finish_coord
    expect_exit 1
    expect_json "$(result first)" '.errors | any(.host == "localhost" and
        .rank != null and (.text | capture("was silent for (?<s>[0-9.]+) s and " +
        "was killed$") | .s | tonumber >= 15))'
    wait_until 20 "no process is left, not even the stopped one" no_workers
}

test_a_stopped_agent_does_not_outlive_the_run() {
    local agent
    start_run
    wait_until 60 "an iteration" iteration_kept
    agent=$(comm -23 <(workers | sort) <(ranks | sort) | head -n 1)
    kill -STOP "${agent%:*}"
    finish_coord
    all_gone "$agent" || {
        kill -KILL "${agent%:*}"
        fail "the stopped agent is still there"
    }
    expect_exit 1
    expect_json "$(result first)" '.errors[0].text | test("silent for")'
    no_workers || fail "left behind: $(workers)"
}

interrupted_by() { # SIGNAL EXIT_CODE
    start_run
    wait_until 60 "an iteration" iteration_kept
    kill -"$1" "$coord_pid"
    finish_coord
    expect_exit "$2"
    expect_json "$(result first)" '.status == "interrupted"'
    expect_json "$(result first)" '.iterations | length > 0'
    expect_json "$(echo results/*/run.json)" '.status == "interrupted"'
    expect_text err "to continue: give the command again with --resume $(echo results/*)$"
    wait_until 20 "no process is left" no_workers
}

# --resume takes no --output.
test_an_interrupted_run_says_what_resume_replaces() {
    own_worker
    cluster ".launch.worker = \"$worker\""
    start_coord cluster.json -vv --output results
    wait_until 60 "an iteration" iteration_kept
    kill -INT "$coord_pid"
    finish_coord
    expect_text err "with --resume $(echo results/*) in place of --output$"
}

test_interrupt_keeps_what_was_measured() { interrupted_by INT 130; }
test_termination_keeps_what_was_measured() { interrupted_by TERM 143; }

test_interrupt_while_launching_leaves_nothing() {
    hold_in launching
    kill -INT "$coord_pid"
    kill -CONT "$coord_pid"
    finish_held
    expect_exit 130
    if compgen -G 'results/*' >&2; then fail "a folder was left"; fi
    wait_until 20 "no process is left" no_workers
}

test_interrupt_before_any_scenario_keeps_no_folder() {
    printf '#!/bin/sh\necho $$ >pid\nexec sleep 60\n' >mute
    chmod +x mute
    cluster ".launch.worker = \"$PWD/mute\""
    start_coord cluster.json
    wait_until 20 "the agent" test -s pid
    kill -INT "$coord_pid"
    finish_coord
    expect_exit 130
    ! compgen -G 'results/*' || fail "a folder was left"
    expect_text err 'no results kept'
    expect_no_text err 'results in'
    wait_until 20 "its end" eval '! kill -0 "$(<pid)" 2>/dev/null'
}

test_a_folder_never_goes_on_saying_running() {
    local wait
    own_worker
    cluster ".launch.worker = \"$worker\""
    for wait in 0 0.005 0.01 0.02 0.04; do
        start_coord cluster.json -o results
        sleep "$wait"
        kill -TERM "$coord_pid"
        finish_coord
        expect_exit 143
        if compgen -G 'results/*' >/dev/null; then
            expect_json "$(echo results/*/run.json)" '.status == "interrupted"'
        fi
        rm -rf results
    done
    wait_until 20 "no process is left" no_workers
}

test_a_time_limit_ends_the_run() {
    own_worker
    cluster ".launch.worker = \"$worker\""
    coord_exits 1 cluster.json --timeout 3
    expect_text err '--timeout reached .3 s.; raise it'
    expect_text err 'no answer to "[a-z]+" for [0-9.]+ s from localhost; --timeout'
    expect_text err 'give the command again with --resume results/'
    wait_until 20 "no process is left" no_workers
}

run_tests
