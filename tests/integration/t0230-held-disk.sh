#!/bin/bash
# Results on a disk that hangs: the nodes are kept meanwhile, nothing that was
# measured is lost, and a signal ends the wait.
# limit: 180
# waits
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base=$(jq '. + {scenarios: [
    {"name": "first", "mode": "colocated", "train": {"tp": 2, "pp": 2},
     "infer": {"tp": 4}, "warmup": 0, "iterations": 20}
  ]}' <<<"$four_slots")
two_scenarios='.scenarios += [.scenarios[0] | .name = "second"]'

held_disk=$work/held_disk.so
"${CC:-cc}" -D_GNU_SOURCE -shared -fPIC -o "$held_disk" \
    "$RF_TOP/tests/fake/held_disk.c" -ldl || skip_all "cannot build held_disk.so"

in_state() { # NAME
    grep -q -- "-> $1\$" err
}

# Starts a run whose disk hangs from the first scenario's end on.
start_held_run() { # [JQ_PROGRAM [ARGUMENT]...]
    own_worker
    cluster "${1-.} | .launch.worker = \"$worker\""
    LD_PRELOAD=$held_disk HELD_DISK=$PWD/hold \
        start_coord cluster.json -vv "${@:2}"
    wait_until 60 "the first scenario runs" in_state filling
    touch hold
    wait_until 60 "a file is being stored" test -e hold.reached
}

# Starts a run whose disk hangs from the start.
start_held_at_first() { # [ARGUMENT]...
    own_worker
    cluster ".launch.worker = \"$worker\""
    touch hold
    LD_PRELOAD=$held_disk HELD_DISK=$PWD/hold start_coord cluster.json "$@"
    wait_until 60 "run.json is being stored" test -e hold.reached
}

test_a_signal_ends_a_run_whose_folder_cannot_be_made() {
    start_held_at_first
    kill -TERM "$coord_pid"
    finish_coord
    expect_exit 143
    expect_text err 'error: results is not ready'
    [ -z "$(find results -type f)" ] || fail "a file was left"
}

test_a_signal_before_the_folder_is_made_leaves_none() {
    start_held_at_first
    kill -TERM "$coord_pid"
    wait_until 20 "the signal is taken" signal_is_taken
    rm hold
    finish_coord
    expect_exit 143
    expect_text err 'no results kept'
    [ ! -e results ] || fail "results/ was left"
}

test_a_time_limit_ends_a_run_whose_folder_cannot_be_made() {
    start_held_at_first --timeout 1
    finish_coord
    expect_exit 1
    expect_text err 'error: results is not ready'
}

# A lease goes both ways every two seconds.
leases() {
    grep -c ': LEASE$' err
}

has_leases() { # NUMBER
    [ "$(leases)" -ge "$1" ]
}

is_running() {
    kill -0 "$coord_pid" 2>/dev/null
}

# Agents and ranks end themselves after a while without a sign of life.
test_agents_outlive_a_disk_that_hangs() {
    local agents kept
    # As many as an agent waits for, and two more.
    kept=$(awk '/define RF_LEASE_(PERIOD|DEAD)_MS/ { v[$2] = $3 }
        END { print int(v["RF_LEASE_DEAD_MS"] / v["RF_LEASE_PERIOD_MS"]) + 2 }' \
        "$RF_TOP/transport/net/lease_times.h")
    start_held_run "$two_scenarios"
    wait_until 20 "it waits for the first record" in_state storing
    agents=$(workers)
    wait_until 60 "$kept leases" has_leases $(($(leases) + kept))
    [ "$(workers)" = "$agents" ] || fail "other workers than: $agents"
    rm hold
    finish_coord
    expect_exit 0
    expect_verified "$(result first)"
    expect_verified "$(result second)"
    [ "$(wc -l <"$(echo results/*/summary.csv)")" = 3 ] || fail "summary.csv"
}

explains() {
    grep -q "waiting until .*/first.json is stored" err
}

test_a_run_ends_only_when_its_last_result_is_stored() {
    start_held_run
    wait_until 20 "it says what it waits for" explains
    no_workers || fail "agents are kept though no scenario is left"
    is_running || fail "it has ended"
    rm hold
    finish_coord
    expect_exit 0
    expect_verified "$(result first)"
    expect_json "$(echo results/*/run.json)" '.status == "ok"'
}

test_a_second_signal_leaves_what_cannot_be_stored() {
    start_held_run "$two_scenarios"
    wait_until 20 "it waits for the first record" in_state storing
    kill -INT "$coord_pid"
    wait_until 20 "it says what it waits for" explains
    wait_until 20 "no process is left" no_workers
    is_running || fail "one signal has ended it"
    kill -INT "$coord_pid"
    finish_coord
    expect_exit 130
    expect_text err 'first.json is not stored'
    expect_json "$(echo results/*/run.json)" '.status == "running"'
}

test_a_time_limit_leaves_what_cannot_be_stored() {
    start_held_run "$two_scenarios" --timeout 15
    finish_coord
    expect_exit 1
    expect_text err 'first.json is not stored'
    expect_json "$(echo results/*/run.json)" '.status == "running"'
    wait_until 20 "no process is left" no_workers
}

run_tests
