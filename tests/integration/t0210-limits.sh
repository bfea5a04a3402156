#!/bin/bash
# Limits of the system: programs that run out of descriptors, or whose files may
# not grow, say so and end as they do for other causes, never by a signal.
# limit: 200
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base='{
  "name": "t", "launch": {"method": "local"},
  "nodes": [{"host": "a", "slots": 2}],
  "model": {"megatron": {"num_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "vocab_size": 128}},
  "scenarios": [{"name": "s", "train": {"tp": 2}, "infer": {"tp": 2},
    "warmup": 0, "iterations": 1}]}'

# Runs refit-coord under a limit; what it says goes to a pipe, which has none.
limited() { # ULIMIT_OPTION VALUE ARGUMENT...
    local option=$1 value=$2
    shift 2
    (
        ulimit "$option" "$value"
        exec timeout -s KILL 60 "$coord" "$@"
    ) 2>&1 </dev/null | cat >said
    status=${PIPESTATUS[0]}
    echo "ulimit $option $value: $* ends with $status"
    sed 's/^/  said: /' said >&2
    case $status in
    0 | 1 | 2 | 4) ;;
    *) fail "exit code $status" ;;
    esac
    [ -s said ] || fail "without a word"
    [ "$status" = 0 ] || expect_text said '^error: '
}

# The limit that the last message names: with it a run ends well.
advice_is_enough() {
    local advised
    expect_text said 'ulimit -n [0-9]'
    advised=$(sed -n 's/.*`ulimit -n \([0-9]*\)`.*/\1/p' said | head -n 1)
    case " $tried " in
    *" $advised "*) return ;;
    esac
    tried+=" $advised"
    limited -n "$advised" cluster.json
    expect_exit 0
}

test_few_descriptors_are_told() {
    local n slots tried
    own_worker
    for slots in 2 6; do
        cluster ".launch.worker = \"$worker\" | .nodes[0].slots = $slots |
            .scenarios[0].train.dp = $slots / 2 |
            .scenarios[0].infer.dp = $slots / 2"
        tried=
        for n in 4 {8..48..4}; do
            limited -n "$n" check cluster.json
            [ "$status" = 0 ] || advice_is_enough
        done
        for n in 5 6 7 9 10 15 20 {23..29} {40..45}; do
            limited -n "$n" cluster.json
            [ "$status" = 0 ] || advice_is_enough
        done
    done
    expect_exit 0 # 45 are enough
    wait_until 20 "the workers have left" no_workers
}

# What a run of many nodes lacks is found before any is started.
test_descriptors_for_all_nodes_are_asked_for_first() {
    cluster '.nodes = [range(100) | {host: "n\(.)", slots: 1}] |
        .scenarios[0].train = {} | .scenarios[0].infer = {}'
    limited -n 100 cluster.json
    expect_exit 4
    expect_text said 'raise it with `ulimit -n [23][0-9][0-9]`'
    [ ! -e results ] || fail "results/ appeared"
}

# A worker that sets a limit for itself and its ranks.
limited_worker() { # ULIMIT_OPTION VALUE
    printf '#!/bin/sh\nulimit %s %s\nexec %s "$@"\n' "$1" "$2" \
        "$RF_BUILD_DIR/refit-worker" >limited
    chmod +x limited
    cluster ".launch.worker = \"$PWD/limited\""
    limited -n 1000 cluster.json
}

test_few_descriptors_of_a_worker_are_told() {
    local n
    for n in {4..16} 18 20; do
        limited_worker -n "$n"
        [ "$status" != 0 ] || fail "ran with $n descriptors"
        expect_text said 'ulimit -n'
    done
}

# What is left may do for all but the connections between nodes.
test_few_descriptors_for_links_are_told() {
    local n
    base=$(jq '.nodes = [{host: "a", slots: 1}, {host: "b", slots: 1}] |
        .scenarios[0] += {mode: "disaggregated", train: {nodes: ["a"]},
            infer: {nodes: ["b"]}}' <<<"$base")
    for n in {18..26}; do
        limited_worker -n "$n"
        [ "$status" = 0 ] || expect_text said 'ulimit -n'
    done
}

# Root's processes are not limited, so another user's are, who has no others.
test_few_processes_are_told() {
    local n
    [ "$(id -u)" = 0 ] || return 0
    own_worker
    cp "$coord" refit-coord
    mkdir -m 777 results
    chmod a+x "$work" .
    cluster ".launch.worker = \"$worker\""
    for n in {1..16}; do
        echo "$n processes"
        timeout -s KILL 60 setpriv --reuid=$((100000 + $$)) --regid=100000 --clear-groups \
            prlimit --nproc="$n" ./refit-coord cluster.json -o results </dev/null 2>&1 |
            cat >said
        status=${PIPESTATUS[0]}
        sed 's/^/  said: /' said >&2
        [ "$status" = 0 ] || [ "$status" = 1 ] || expect_exit 4
        [ "$status" = 0 ] || expect_text said 'error: .*ulimit -u'
    done
    expect_exit 0
}

# A control group, where one can be made.
group=/sys/fs/cgroup
[ ! -d "$group/pids" ] || group+=/pids
group+=/refit-test-$$
mkdir "$group" 2>/dev/null && at_exit 'rmdir "$group"'

# Of all of a control group: the head, its agent and its ranks. With UCX one rank:
# what it found free a second one might take before UCX does.
test_few_processes_of_a_group_are_told() {
    local method n
    [ -f "$group/pids.max" ] || return 0
    for method in tcp ucx; do
        if [ "$method" = ucx ]; then
            [ -e "$RF_BUILD_DIR/refit-ucx.so" ] || continue
            # Other tests make interfaces and remove them.
            base=$(jq '.nodes[0].slots = 1 | .launch.env.UCX_NET_DEVICES = "lo" |
                .scenarios[0] += {train: {}, infer: {}}' <<<"$base")
        fi
        cluster ".scenarios[0].method = \"$method\""
        for n in {1..16} 100; do
            echo "$n" >"$group/pids.max"
            timeout -s KILL 60 sh -c 'echo $$ >"$1" && shift && exec "$@"' - \
                "$group/cgroup.procs" "$coord" cluster.json >said 2>&1 </dev/null
            status=$?
            echo "method $method, $n processes: ends with $status"
            sed 's/^/  said: /' said >&2
            case $status in
            0) ;;
            1 | 4) expect_text said 'error: .*pids\.max' ;;
            *) fail "exit code $status" ;;
            esac
        done
        expect_exit 0
    done
}

test_little_memory_is_told() {
    local option kilobytes
    ldd "$coord" | grep -q 'lib[at]san' && return # they reserve terabytes
    cluster
    for option in -v -d; do
        for kilobytes in 2000 4000 8000 16000 32000 {40000..64000..2000} 200000 400000; do
            [ "$option$kilobytes" != -v2000 ] || continue # nothing can be loaded
            (
                ulimit "$option" "$kilobytes"
                exec timeout -s KILL 60 "$coord" cluster.json
            ) >said 2>&1 </dev/null
            status=$?
            echo "ulimit $option $kilobytes ends with $status"
            sed 's/^/  said: /' said >&2
            case $status in
            0) ;;
            127) expect_text said 'error while loading shared libraries' ;;
            1 | 4 | 134) expect_text said 'error: .*ulimit -v.*ulimit -d' ;;
            *) fail "exit code $status" ;;
            esac
        done
        expect_exit 0
    done
}

# A soft limit alone is raised.
test_small_stacks_are_told() {
    local kilobytes
    ldd "$coord" | grep -q 'lib[at]san' && return # they want more
    cluster
    for kilobytes in 32 64 255; do # the loader needs more than 16
        limited -s "$kilobytes" cluster.json
        expect_exit 4
        expect_text said "stack limit too low: $kilobytes KiB, .*ulimit -s 8192"
        limited_worker -s "$kilobytes"
        expect_exit 4
        expect_text said "stack limit too low: $kilobytes KiB, .*ulimit -s 8192"
        cluster
        limited -Ss "$kilobytes" cluster.json
        expect_exit 0
    done
    limited -s 256 cluster.json
    expect_exit 0
    limited_worker -s 256
    expect_exit 0
}

# Cores, locked memory, priorities, signals, queues and locks of files.
test_other_limits_do_not_matter() {
    local option
    cluster
    for option in c l m e r i q x; do
        limited "-$option" 0 cluster.json
        expect_exit 0
    done
}

test_processor_time_that_runs_out_is_told() {
    limited_worker -t 1
    cluster ".launch.worker = \"$PWD/limited\" |
        .model.megatron += {hidden_size: 512, num_layers: 8, vocab_size: 32000} |
        .scenarios[0].iterations = 1000"
    limited -n 1000 cluster.json
    expect_exit 1
    expect_text said 'rank [01]: its process [0-9]+ was killed by signal [0-9]+ .*; the limit of processor time is 1 s \(ulimit -t\)'
}

test_files_that_may_not_grow_are_told() {
    local n
    for n in 0 1 64; do
        limited_worker -f "$n"
        [ "$status" = 4 ] || expect_exit 1
        expect_text said 'File too large.*ulimit -f'
    done
    cluster
    limited -f 0 cluster.json
    expect_exit 1
    expect_text said 'run\.json: write: File too large'
    limited -f 4 cluster.json
    expect_exit 1
    expect_text said 's\.json: write: File too large'
}

test_a_worker_gets_signals_as_any_program_does() {
    # shellcheck disable=SC2016 # the script's own
    printf '#!/bin/sh\nkill -s XFSZ $$\n' >struck
    chmod +x struck
    cluster ".launch.worker = \"$PWD/struck\""
    limited -n 1000 cluster.json
    expect_exit 4
    expect_text said 'killed by SIGXFSZ'
}

run_tests
