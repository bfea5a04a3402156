#!/bin/bash
# The launcher `slurm` in a real Slurm of three nodes on this machine: what
# nodes it uses, what becomes of a run when jobs, steps and nodes go, and that
# nothing outlives it. Skipped where that Slurm cannot be started.
# limit: 900
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"
lab=$RF_TOP/tests/slurm/lab

base='{
  "name": "t", "launch": {"method": "slurm"}, "nodes": "slurm",
  "control": {"address": "127.0.0.1"},
  "model": {"megatron": {"num_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "vocab_size": 128}},
  "scenarios": [
    {"name": "first", "mode": "disaggregated", "train": {"nodes": 1, "tp": 1},
     "infer": {"nodes": 2, "tp": 2}, "method": "tcp", "warmup": 0,
     "iterations": 2}]}'
endless='.scenarios += [.scenarios[0] +
    {"name": "endless", "iterations": 1000000}]'

own_cluster() { # [JQ_PROGRAM]
    own_worker
    cluster "${1-.} | .launch.worker = \"$worker\""
}

# Runs a command line in a job, as a user does; its exit code is in $status,
# whatever salloc makes of it.
in_job() { # SALLOC_OPTIONS... -- COMMAND...
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    # shellcheck disable=SC2016 # the inner shell's
    salloc "${options[@]}" bash -c '"$@"; echo $? >status' job "$@" \
        >out 2>err </dev/null
    finish_job
}

finish_job() {
    wait_until 30 "the job has ended" no_job
    status=$(cat status)
    sed 's/^/  out: /' out >&2
    sed 's/^/  err: /' err >&2
}

no_job() {
    [ -z "$(squeue -h)" ]
}

# The same in the background, up to the point where the scenario `endless` runs
# its ranks. The coordinator's pid is in $coord_pid.
start_endless() { # [SALLOC_OPTIONS...]
    own_cluster "$endless"
    # shellcheck disable=SC2016 # the inner shell's
    salloc -N3 "$@" bash -c '"$@" & echo $! >pid; wait $!; echo $? >status' \
        job "$coord" cluster.json >out 2>err </dev/null &
    salloc_pid=$!
    wait_until 60 "the endless scenario" grep -q 'scenario 2 of 2' err
    wait_until 60 "its ranks" three_ranks
    coord_pid=$(cat pid)
}

three_ranks() {
    [ "$(ranks | wc -l)" = 3 ]
}

finish_endless() {
    wait "$salloc_pid"
    finish_job
    wait_until 30 "the workers have left" no_workers
}

# What was measured before the fault is kept, and what the fault ended is
# recorded as failed.
expect_partial_results() {
    expect_verified "$(result first)"
    expect_json "$(result endless)" '.status == "failed"'
}

test_an_allocation_runs_the_example() {
    local file
    in_job -N3 -- "$coord" --set control.address=127.0.0.1 \
        --set 'scenarios.*.iterations=2' "$RF_TOP/examples/slurm.json"
    expect_exit 0
    [ "$(find results -name 'split*.json' | wc -l)" = 4 ] ||
        fail "not four results"
    for file in results/*/split*.json; do
        expect_verified "$file"
        expect_json "$file" '[.environment[].control] | unique == ["tcp"]'
        expect_json "$file" '.plan.bytes_inter_node > 0'
    done
}

test_a_batch_script_runs_the_example() {
    sbatch --wait --output=out \
        --export="ALL,REFIT_COORD=$coord,CLUSTER=$RF_TOP/examples/slurm.json" \
        "$RF_TOP/examples/slurm.sbatch"
    status=$?
    cat out >&2
    expect_exit 0
    expect_verified "$(result 'split-method=tcp-strategy=broadcast')"
}

test_slots_are_the_tasks_of_the_job() {
    own_cluster '.scenarios[0] += {train: {nodes: 1, tp: 2},
        infer: {nodes: 1, tp: 2}}'
    in_job -N2 --ntasks-per-node=2 -- "$coord" cluster.json
    expect_exit 0
    expect_verified "$(result first)"
    expect_json "$(echo results/*/run.json)" \
        '[.. | objects | select(.host? and .slots?) | .slots] | unique == [2]'
}

test_some_nodes_of_a_job_in_any_order() {
    own_cluster '.nodes = [{"host": "n3", "slots": 1}, {"host": "n1", "slots": 1}]
        | .scenarios[0] += {train: {nodes: ["n3"], tp: 1},
            infer: {nodes: ["n1"], tp: 1}}'
    in_job -N3 -- "$coord" cluster.json
    expect_exit 0
    expect_verified "$(result first)"
}

test_without_a_job_it_is_said_how_to_get_one() {
    own_cluster
    coord_exits 2 cluster.json
    expect_text err '[$][.]launch[.]method: .*salloc.*launch[.]slurm[.]options'
}

test_options_ask_for_a_job() {
    own_cluster '.launch.slurm.options = ["-N3", "--job-name=asked"]'
    coord_exits 0 cluster.json
    expect_text err 'salloc: Granted job allocation'
    expect_verified "$(result first)"
    wait_until 30 "the job has ended" no_job
}

test_a_wrap_starts_the_workers() {
    own_cluster '.launch.wrap = ["env", "-u", "HOME"]'
    in_job -N3 -- "$coord" cluster.json
    expect_exit 0
    expect_verified "$(result first)"
}

test_a_worker_that_is_not_there_is_named() {
    cluster '.launch.worker = "/nonexistent/refit-worker"'
    in_job -N3 -- "$coord" cluster.json
    expect_exit 4
    expect_text err 'n[123]: .*its agent ended: Exited with exit code 2'
    expect_text err '/nonexistent/refit-worker: No such file or directory'
}

# Neither arguments nor environments hold 64 hexadecimal digits in a row.
no_key_shows() { # PID...
    local pid
    for pid in "$@"; do
        if tr '\0' '\n' <"/proc/$pid/cmdline" | grep -qE '[0-9a-f]{64}'; then
            fail "a key is among the arguments of process $pid"
        fi
        if tr '\0' '\n' <"/proc/$pid/environ" | grep -qE '[0-9a-f]{64}'; then
            fail "a key is in the environment of process $pid"
        fi
    done
}

test_keys_do_not_show() {
    local sruns
    start_endless
    sruns=$(pgrep -P "$coord_pid")
    [ -n "$sruns" ] || fail "the coordinator has no srun"
    # shellcheck disable=SC2046,SC2086 # lists of pids
    no_key_shows $sruns $(workers | sed 's/:.*//')
    kill -TERM "$coord_pid"
    finish_endless
    expect_exit 143
}

test_a_cancelled_job_keeps_what_was_measured() {
    start_endless
    scancel "$(squeue -h -o %i)"
    finish_endless
    expect_exit 1
    expect_partial_results
    expect_text err 'error: n[123]: Slurm ended its job step [(].*CANCELLED'
}

test_a_cancelled_step_keeps_what_was_measured() {
    start_endless
    scancel "$(squeue -h -s -o %i | grep '[.][0-9]*$')"
    finish_endless
    expect_exit 1
    expect_partial_results
    expect_text err 'error: n[123]: Slurm ended its job step [(].*CANCELLED'
}

test_a_node_that_fails_is_named() {
    start_endless
    scontrol update nodename=n2 state=down reason=test
    finish_endless
    scontrol update nodename=n2 state=idle
    wait_until 30 "the node is back" back
    expect_exit 1
    expect_partial_results
    expect_text err 'warning: srun: node failure on n2$'
    expect_text err 'error: n2: (Slurm says that the node has|.*NODE FAILURE)'
}

back() {
    [ "$(sinfo -h -N -o %T | grep -cx idle)" = 3 ]
}

# Slurm lets jobs finish on such a node.
test_a_drained_node_finishes_its_run() {
    own_cluster '.scenarios[0].iterations = 30'
    salloc -N3 bash -c '"$@"; echo $? >status' job "$coord" cluster.json \
        >out 2>err </dev/null &
    wait_until 60 "its ranks" three_ranks
    scontrol update nodename=n2 state=drain reason=test
    wait "$!"
    finish_job
    scontrol update nodename=n2 state=resume
    wait_until 30 "the node is back" back
    expect_exit 0
    expect_verified "$(result first)"
}

test_an_agent_that_is_killed_fails_its_scenario() {
    local victim
    start_endless
    victim=$(agents | sed -n 1p)
    kill -KILL "${victim%:*}"
    finish_endless
    expect_exit 1
    expect_partial_results
    expect_json "$(result endless)" '.errors[0] | (.host | test("^n[123]$")) and
        (.text | test("its agent ended: Killed|control connection ended"))'
}

agents() {
    comm -23 <(workers | sort) <(ranks | sort)
}

test_nothing_outlives_a_killed_coordinator() {
    start_endless
    kill -KILL "$coord_pid"
    finish_endless
    expect_exit 137
}

test_nothing_outlives_a_killed_srun() {
    start_endless
    # shellcheck disable=SC2046 # one or two pids
    kill -KILL $(pgrep -P "$coord_pid")
    finish_endless
    expect_exit 1
    expect_partial_results
}

# It heeds neither its input nor its connection; the end of the step is its end.
test_a_stopped_agent_ends_with_the_run() {
    local victim
    start_endless
    victim=$(agents | sed -n 2p)
    kill -STOP "${victim%:*}"
    finish_endless
    expect_exit 1
    expect_partial_results
}

reason=$("$lab" up "$work/lab" 3 2>&1) || {
    "$lab" down "$work/lab"
    skip_all "$reason"
}
at_exit "'$lab' down '$work/lab'"
export SLURM_CONF=$work/lab/slurm.conf
run_tests
