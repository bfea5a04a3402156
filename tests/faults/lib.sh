# What fault cases share, on top of tests/lib/test.sh: worlds (where nodes are),
# runs that are held still in a state, victims, and verdicts. A case runs in a
# folder of its own through tests/faults/run-case.
# shellcheck shell=bash source=../lib/test.sh disable=SC2034,SC2154
. "$(dirname "${BASH_SOURCE[0]}")/../lib/test.sh"

hold=$RF_BUILD_DIR/faults/hold
not_hit=99 # exit status of a try that missed its state

# Two nodes of one rank each: rank 0 sends 27 MB to rank 1 in each iteration, so
# that no step is over before it is seen.
two_scenarios='[
  {"name": "one", "mode": "disaggregated", "train": {}, "infer": {},
   "warmup": 0, "iterations": 2},
  {"name": "two", "mode": "disaggregated", "train": {}, "infer": {},
   "warmup": 0, "iterations": 2}]'
weights='{"megatron": {"num_layers": 4, "hidden_size": 512,
  "num_attention_heads": 8, "num_query_groups": 4, "ffn_hidden_size": 1024,
  "vocab_size": 8192, "swiglu": true}}'

# --- Worlds -----------------------------------------------------------------

# Sets $base to a cluster of the world, $hosts to an expression of its hosts, and
# makes a private worker. World "ssh" is the test bed of this lane, made by the
# first case that wants it.
use_world() { # local|ssh
    world=$1
    own_worker
    case $world in
    local)
        base='{"launch": {"method": "local"}, "nodes": [
            {"host": "alpha", "slots": 1}, {"host": "beta", "slots": 1}]}'
        ;;
    ssh)
        [ -e "$RF_FAULTS_BED/cluster-part.json" ] ||
            "$testbed" up --hosts 2 --slots 1 --dir "$RF_FAULTS_BED" >/dev/null ||
            fail "the test bed does not come up"
        base=$(<"$RF_FAULTS_BED/cluster-part.json")
        mapfile -t bed_netns < <(sed -n 's/^netns //p' "$RF_FAULTS_BED/state")
        ;;
    esac
    mapfile -t host < <(jq -r '.nodes[].host' <<<"$base")
    hosts="(${host[0]//./[.]}|${host[1]//./[.]})"
    base=$(jq --argjson model "$weights" --argjson scenarios "$two_scenarios" \
        --arg worker "$worker" '. + {name: "t", model: $model,
            scenarios: $scenarios} | .launch.worker = $worker' <<<"$base")
    [ -z "${encoded-}" ] || base=$(jq --argjson every "$encoded" \
        '.scenarios[] += {method: "tcp", encoding: "auto+diff",
            update: {density: 0.01, restart_every: $every}}' <<<"$base")
}

# Has the node that starts last wait until $PWD/go is there: so long the run is
# launching, with one node joined.
gate() {
    cat >gated <<END
#!/bin/sh
mkdir "$PWD/first" 2>/dev/null && exec "$worker" "\$@"
until [ -e "$PWD/go" ]; do sleep 0.05; done
exec "$worker" "\$@"
END
    chmod +x gated
    base=$(jq --arg worker "$PWD/gated" '.launch.worker = $worker' <<<"$base")
}

open_gate() {
    : >go
}

# Has the model be a checkpoint that is there only once a worker has started:
# what the coordinator knows of it, it has to ask the nodes for.
hide_checkpoint() {
    [ -d stored ] || "$RF_TOP/tests/lib/make-checkpoint" stored >/dev/null ||
        fail "make-checkpoint failed"
    rm -f checkpoint
    cat >showing <<END
#!/bin/sh
ln -sfn "$PWD/stored" "$PWD/checkpoint"
exec "$worker" "\$@"
END
    chmod +x showing
    base=$(jq --arg worker "$PWD/showing" '.launch.worker = $worker |
        .model = {checkpoint: "checkpoint"}' <<<"$base")
}

# A run is in such a state before anything of it is stored.
has_not_begun() { # STATE
    [[ " launching inspecting planning " == *" $1 "* ]]
}

# --- Runs that are held in a state ---------------------------------------------

# What is waited for in each state: TEXT, how often, and microseconds more, so
# that ranks are at work on the step.
moment_of() { # STATE
    case $1 in
    launching) moment=(' joined over ' 1 0) ;;
    inspecting) moment=('-> inspecting' 1 0) ;;
    planning) moment=('-> planning' 1 0) ;;
    starting) moment=('-> starting' 2 0) ;;
    preparing) moment=('-> preparing' 2 10000) ;;
    preparing_files) moment=(': EXCHANGE' 6 0) ;; # method disk has made them
    probing) moment=('-> probing' 2 50000) ;;
    filling) moment=('-> filling' 2 2000) ;;
    running) moment=('filling -> running' 2 28000) ;;
    verifying) moment=('-> verifying' 2 1000) ;;
    probing_again) moment=('-> probing again' 1 50000) ;;
    closing) moment=('-> closing' 1 0) ;;
    converting) moment=('stalling in quantize' 1 0) ;; # of a running refit
    *) fail "no moment for state $1" ;;
    esac
    # Who is killed stores nothing of the scenario in progress: let it be the
    # second one.
    if [ -n "${second_scenario-}" ]; then
        case $1 in
        filling | running | verifying) moment[1]=3 ;;
        probing_again | closing) moment[1]=2 ;;
        esac
    fi
}

# Starts a run and returns when it is held still in STATE. The program is run
# by the command $coord_under, such as env.
coord_under=()
hold_in() { # STATE [JQ_PROGRAM [OPTION...]]
    local program=${2-.}
    moment_of "$1"
    state=${1%_files}
    state=${state/converting/running}
    state_name=${state//_/ }
    case $state in
    launching) gate ;;
    inspecting | planning) hide_checkpoint ;;
    esac
    # beside yardsticks nothing is probed again
    [ "$state" != probing_again ] || program+=' | .scenarios[].yardstick = false'
    cluster "$program"
    mkdir -p control
    ln -sf control/err err
    "$hold" control "${moment[0]}" "$state_name" "${moment[@]:1}" \
        "${coord_under[@]}" "$coord" cluster.json -vv "${@:3}" >out </dev/null &
    hold_pid=$!
    wait_until 60 "state $state" eval '[ -e control/held ] || [ -e control/status ]'
    [ -e control/held ] || {
        tail -n 5 err >&2
        missed "it was never held in state $state"
    }
    # After the last scenario's step nothing of the run can be harmed.
    if [ "$state" = closing ] &&
        [ "$(grep -c -- '-> closing' err)" -gt "${moment[1]}" ]; then
        echo "it was held in state closing of a later scenario" >&2
        exit $not_hit
    fi
    coord_pid=$(<control/pid)
}

# The fault is none: the run was not in the state for it any more.
missed() { # WHY
    echo "$*" >&2
    exit $not_hit
}

# Lets the run go on that hold_in has stopped.
go_on() {
    kill -CONT "$coord_pid"
}

# The run's end: its exit code in $status. What it said goes to the log.
finish_within() { # SECONDS
    wait_until "$1" "the coordinator's end" test -e control/status
    wait "$hold_pid"
    status=$(<control/status)
    sed 's/^/  out: /' out >&2
    grep -vE 'trace:|debug:' err | sed 's/^/  err: /' >&2
}

expect_exit_in() { # CODE...
    case " $* " in
    *" $status "*) ;;
    *) fail "exit code $status, expected one of: $*" ;;
    esac
}

# --- Victims -----------------------------------------------------------------

# Workers by what they are, without a process started for each one looked at:
# sets the lists $agent_pids and $rank_pids.
find_workers() {
    local exe pid comm
    agent_pids=()
    rank_pids=()
    for exe in /proc/[0-9]*/exe; do
        [ "$exe" -ef "$worker" ] || continue
        pid=${exe#/proc/}
        pid=${pid%/exe}
        read -r comm <"/proc/$pid/comm" 2>/dev/null || continue
        case $comm in
        refit-rank* | rank*) rank_pids+=("$pid") ;;
        *) agent_pids+=("$pid") ;;
        esac
    done
}

parent_of() { # PID
    sed -n 's/^PPid:[[:space:]]*//p' "/proc/$1/status"
}

# The host that a process of the world is on, as an expression: of launcher
# local that of the agent's rank, any where it has none yet.
host_of_agent() { # PID
    local i pid
    if [ "$world" = ssh ]; then
        for i in 0 1; do
            if [ "/proc/$1/ns/net" -ef "/run/netns/${bed_netns[i]}" ]; then
                echo "${host[i]//./[.]}"
                return
            fi
        done
    fi
    for pid in "${rank_pids[@]}"; do
        if [ "$(parent_of "$pid")" = "$1" ]; then
            i=$(tr -dc 0-9 2>/dev/null <"/proc/$pid/comm")
            [ -n "$i" ] || continue # it ended meanwhile
            echo "${host[i]//./[.]}"
            return
        fi
    done
    echo "$hosts"
}

# Sets $victim to the process of a rank.
rank_is_there() { # RANK
    local pid
    find_workers
    for pid in "${rank_pids[@]}"; do
        if [ "$(tr -dc 0-9 <"/proc/$pid/comm")" = "$1" ]; then
            victim=$pid
            return 0
        fi
    done
    return 1
}

agent_is_there() {
    find_workers
    [ ${#agent_pids[@]} -gt 0 ]
}

# What is not there when it should be killed was not hit.
wait_for_victim() { # WHAT CONDITION...
    local what=$1 end=$((SECONDS + 3))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || missed "$what is not there in state ${state-}"
        sleep 0.02
    done
}

is_stopped() { # PID
    grep -qs '^State:[[:space:]]*T' "/proc/$1/status"
}

# A signal that finds the victim, which stands still if it is STOP.
hit() { # SIGNAL
    if ! start_time "$victim" >/dev/null || ! kill "-$1" "$victim"; then
        missed "the victim was gone before it was hit"
    fi
    if [ "$1" = STOP ]; then
        thawed_at_end+=("$victim")
        wait_for_victim "a victim that is stopped" is_stopped "$victim"
    fi
}

# All workers stand still, or go on: so long a run cannot end.
signal_workers() { # STOP|CONT
    [ "$1" = CONT ] || find_workers
    thawed_at_end+=("${agent_pids[@]}" "${rank_pids[@]}")
    kill "-$1" "${agent_pids[@]}" "${rank_pids[@]}"
}

# Sets $victim to the process and $victim_host to an expression of its host:
# rank 1 or another, the agent of rank 0, which is the one that sends, the last
# agent, its sshd, or the coordinator.
choose_victim() { # rank|sender|agent|sshd|coordinator [RANK]
    case $1 in
    rank)
        victim_rank=${2-1}
        wait_for_victim "rank $victim_rank" rank_is_there "$victim_rank"
        victim_host=${host[victim_rank]//./[.]}
        ;;
    sender)
        wait_for_victim "rank 0" rank_is_there 0
        victim=$(parent_of "$victim")
        victim_host=${host[0]//./[.]}
        ;;
    agent | sshd)
        wait_for_victim "an agent" agent_is_there
        victim=${agent_pids[-1]}
        victim_host=$(host_of_agent "$victim")
        [ "$1" = agent ] || victim=$(parent_of "$victim")
        ;;
    coordinator)
        victim=$coord_pid
        victim_host=$hosts
        ;;
    esac
    echo "victim: $1, process $victim, host $victim_host" >&2
}

# --- Lengths of time -------------------------------------------------------------

# Cases wait for conditions, except where a length of time is what they are about:
# a fault that is over before anyone may be taken for dead, or one that lasts
# longer than a lease, which runs out after 15 s of silence.
outage() { # SECONDS
    sleep "$1"
}

for_longer_than_a_lease() {
    sleep 20
}

# --- Verdicts ----------------------------------------------------------------

# Whole JSON, no half of a file, and what has ended well is complete.
expect_whole_results() {
    local file
    [ -z "$(find results -name '*.tmp*' 2>/dev/null)" ] ||
        fail "partial files: $(find results -name '*.tmp*')"
    for file in results/*/*.json; do
        [ -e "$file" ] || continue
        jq -en input "$file" >/dev/null || fail "$file is not JSON"
        case $file in
        */run.json) ;;
        *) expect_json "$file" '(.status == "ok" and .errors == []
                and (.iterations | length) == .scenario.iterations)
            or .status != "ok"' ;;
        esac
    done
}

# Statuses of the scenarios that have a file: sets $ok, $bad and the list of files
# $bad_files.
count_results() {
    local file
    ok=0
    bad=0
    bad_files=()
    for file in results/*/*.json; do
        case $file in
        results/\** | */run.json) continue ;;
        esac
        if jq -en 'input | .status == "ok"' "$file" >/dev/null; then
            ok=$((ok + 1))
        else
            bad=$((bad + 1))
            bad_files+=("$file")
        fi
    done
}

# What was measured before the fault in STATE is there.
expect_kept() {
    count_results
    ! has_not_begun "$state" || return 0
    case $state in
    starting | preparing | probing)
        [ "$ok" -ge 1 ] || fail "the scenario before is not kept as ok"
        ;;
    *)
        [ "$ok" -ge 1 ] || [ "$bad" -ge 1 ] || fail "no scenario is kept"
        [ "$ok" -ge 1 ] || expect_json "${bad_files[0]}" \
            '.iterations | length > 0'
        ;;
    esac
}

# An error or a warning says so: what -vv adds names every host.
expect_complaint() { # EXTENDED_REGEX
    grep -qE -- "^(error|warning): (.*[^[:alnum:]])?($1)" err ||
        fail "no error or warning is like: $1"
}

# The first failed scenario names the host, in the phase that it was in.
expect_named() { # [RANK]
    count_results
    expect_complaint "$victim_host: "
    [ "$bad" -gt 0 ] || return 0
    expect_json "${bad_files[0]}" \
        ".errors[0] | (.host // .text | tostring | test(\"^$victim_host|[ (]$victim_host\"))
            and (.phase | length > 0) and .consequence == false"
    if [ -n "${1-}" ]; then
        expect_json "${bad_files[0]}" ".errors[0].rank == $1"
    fi
}

# Every scenario ended well, in spite of the fault.
expect_unharmed() {
    expect_exit 0
    count_results
    [[ $bad = 0 && $ok -ge 1 ]] ||
        fail "$ok scenarios are ok, $bad are not: ${bad_files[*]}"
}

# Nothing of the run is left: processes (waits up to SECONDS), and files in the
# folder of method disk. Shared memory has no names: it goes with the processes.
expect_nothing_left() { # [SECONDS]
    open_gate
    wait_until "${1:-20}" "no process is left" no_private_workers
    [ ! -d disk ] || [ -z "$(ls -A disk)" ] || fail "files left: $(ls -A disk)"
}

no_private_workers() {
    find_workers
    [ ${#agent_pids[@]} = 0 ] && [ ${#rank_pids[@]} = 0 ]
}

# A command for the end of a case, however it ends.
at_end_of_case() {
    end_hooks+=("$1")
}
end_hooks=()

# Nothing of a case may disturb the next.
end_of_case() {
    local pid hook
    for hook in "${end_hooks[@]}"; do
        eval "$hook"
    done
    open_gate
    if [ -n "${coord_pid-}" ] && [ ! -e control/status ]; then
        kill -KILL "$coord_pid" 2>/dev/null
    fi
    for pid in "${thawed_at_end[@]}"; do
        kill -CONT "$pid" 2>/dev/null
    done
    find_workers
    for pid in "${agent_pids[@]}" "${rank_pids[@]}"; do
        kill -KILL "$pid" 2>/dev/null
    done
}
thawed_at_end=()
