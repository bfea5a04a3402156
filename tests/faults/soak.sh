# Faults at random moments: whatever comes, the promises hold that do not depend on
# what it was. tests/faults/soak-cases.sh throws the dice.
# shellcheck shell=bash disable=SC2034,SC2154

# A run with a fault MILLISECONDS after its start; if it is over by then, the next
# try has half the time.
case_soak() { # WORLD MODE METHOD STRATEGY FAULT VICTIM MILLISECONDS
    local mode=$2 method=$3 strategy=$4 fault=$5 victim_kind=$6
    local at=$(($7 >> (try - 1)))
    use_world "$1"
    mkdir disk control
    cluster ".nodes[].slots = 2 | .defaults.disk = {folder: \"$PWD/disk\"} |
        .scenarios[] += {mode: \"$mode\", method: \"$method\",
            strategy: \"$strategy\", iterations: 3, train: {tp: 2},
            infer: {tp: 2}}"
    start_coord cluster.json -vv
    at_end_of_case "kill -KILL $coord_pid 2>/dev/null"
    until_moment "$at"
    soak_fault "$fault" "$victim_kind"
    wait_until 120 "the coordinator's end" is_over
    finish_coord >/dev/null 2>&1
    grep -vE 'trace:|debug:' err | sed 's/^/  err: /' >&2
    expect_exit_in 0 1 4 137 130 129 143
    expect_end_of "$fault" "$victim_kind"
    expect_whole_results
    [ "$fault:$victim_kind:$method" != kill:agent:disk ] || sweep_disk
    expect_nothing_left 60
}

# The dice's moment, of whatever state the run is in by then.
until_moment() { # MILLISECONDS
    sleep "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))"
}

is_over() {
    ! start_time "$coord_pid" >/dev/null
}

any_victim() { # KIND
    local list=()
    find_workers
    case $1 in
    coordinator) list=("$coord_pid") ;;
    rank) list=("${rank_pids[@]}") ;;
    agent)
        # One that is stopped before it has joined is not known, so it is not
        # killed either.
        [ "$fault" != stop ] || grep -q '^scenario 1 of' err || return
        list=("${agent_pids[@]}")
        ;;
    sshd) [ ${#agent_pids[@]} = 0 ] || list=("$(parent_of "${agent_pids[-1]}")") ;;
    esac
    victim=
    [ ${#list[@]} = 0 ] || victim=${list[-1]}
    [ -n "$victim" ] || ! is_over || missed "the run was over before the fault"
    [ -n "$victim" ]
}

soak_fault() { # FAULT VICTIM
    case $1 in
    kill | stop | pause)
        wait_until 60 "a victim" any_victim "$2"
        echo "victim: $2 $victim" >&2
        ;;&
    kill) hit KILL ;;
    stop | pause) hit STOP ;;&
    stop)
        [ "$2" != coordinator ] || {
            for_longer_than_a_lease
            kill -CONT "$victim"
        }
        ;;
    pause)
        outage 2
        kill -CONT "$victim" 2>/dev/null
        ;;
    INT | TERM | HUP)
        victim=$coord_pid
        hit "$1"
        ;;
    flap | cut)
        at_end_of_case "partition off"
        partition on
        ! is_over || missed "the run was over before the fault"
        ;;&
    flap)
        outage 3
        partition off
        ;;
    esac
    return 0
}

# What each fault may not lead to.
expect_end_of() { # FAULT VICTIM
    case $1:$2 in
    pause:* | flap:*) expect_unharmed ;;
    INT:*) expect_exit_in 0 130 ;;
    TERM:*) expect_exit_in 0 143 ;;
    HUP:*) expect_exit_in 0 129 ;;
    kill:coordinator) expect_exit_in 0 137 ;;
    *) expect_exit_in 0 1 4 ;;
    esac
    # Who fails says where.
    case $status in
    1 | 4) expect_complaint "$hosts: " ;;
    esac
}
