#!/bin/bash
# System calls that are refused, as profiles of containers and old kernels do:
# a method that `check` finds nothing wrong with runs, others name the call.
# waits
# limit: 300
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

refuse=$RF_BUILD_DIR/refuse-calls
"$refuse" EPERM getppid -- true || skip_all "no seccomp filters here"

# From one rank to another of its node and to one of another node. Other tests'
# beds come and go: UCX is to use no address of theirs.
base='{
  "name": "t", "launch": {"method": "local", "timeout_s": 20,
    "env": {"UCX_NET_DEVICES": "lo"}},
  "nodes": [{"host": "a", "slots": 2}, {"host": "b", "slots": 1}],
  "model": {"megatron": {"num_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "vocab_size": 128}},
  "defaults": {"warmup": 0, "iterations": 1, "timeout_s": 20,
    "yardstick": false},
  "scenarios": [
    {"name": "far", "method": ["host", "tcp", "disk", "ucx", "null"],
      "mode": "disaggregated", "train": {"tp": 1}, "infer": {"dp": 2}},
    {"name": "near", "method": ["shm"], "train": {"tp": 2, "nodes": ["a"]},
      "infer": {"dp": 2, "nodes": ["a"]}}]}'
[ -e "$RF_BUILD_DIR/refit-ucx.so" ] ||
    base=$(jq '.scenarios[0].method -= ["ucx"]' <<<"$base")
jq -r '.scenarios[].method[]' <<<"$base" | sort >"$work/methods"

# Of the two errors each call gets one in turn, these get both: a C library may
# fall back for one of them alone. With ALL_CALLS all do.
both=' epoll_create1 memfd_create accept4 pidfd_open close_range clone3 '

# Those that are tried: of calls with the same users the first. With ALL_CALLS,
# as in `make check-faults`, all of them.
calls=$(sed -nE 's/^ +\{"([a-z0-9_]+)", (RF_CALLS_OF_[A-Z_ |]+).*/\1 \2/p' \
    "$RF_TOP/common/system_calls.c" |
    awk -v all="${ALL_CALLS-}" -v both="$both" '
        { users = $0; sub(/^[^ ]+ /, "", users) }
        all || !seen[users]++ || index(both, " " $1 " ") { print $1 }')

# Leaves what `check` says, what a run of all methods says, and which ran.
refused() { # CALL ERROR
    mkdir disk
    printf '#!/bin/sh\nexec "%s" %s %s -- "%s" "$@"\n' \
        "$refuse" "$2" "$1" "$RF_BUILD_DIR/refit-worker" >worker
    chmod +x worker
    cluster ".launch.worker = \"$PWD/worker\" |
        .defaults.disk.folder = \"$PWD/disk\""
    run_coord check cluster.json 2>/dev/null
    mv out check
    echo "exit $status" >>check
    run_coord cluster.json 2>/dev/null
    jq -r 'select(.status == "ok").scenario.method' results/*/*ar-*.json \
        >ran 2>/dev/null
}

# The methods that `check` calls unusable are those that have not run.
expect_agreement() { # CALL ERROR
    local text call
    text=$(python3 -c "import errno, os; print(os.strerror(errno.$2))")
    call="system call $1: $text"
    if grep -qE "^E (a, b|b, a): .*(event loop: $call|(start .*|socketpair): $text)" check; then
        cat "$work/methods"
    else
        sed -nE "s/^E .*: method ([a-z]+) cannot be used on a: $call .*/\1/p" check
    fi >unusable
    sort unusable ran | diff - "$work/methods" &&
        { [ -s unusable ] || grep -qx 'exit 0' check; }
}

# Several at once.
go_through() { # CALL...
    local call error=ENOSYS errors case
    for call in "$@"; do
        "$refuse" EPERM "$call" -- true 2>/dev/null
        [ $? != 3 ] || continue # other machines have other calls
        [ "$error" = EPERM ] && error=ENOSYS || error=EPERM
        errors=$error
        [[ -z ${ALL_CALLS-} && $both != *" $call "* ]] ||
            errors='EPERM ENOSYS'
        for error in $errors; do
            mkdir "$call-$error"
            (
                cd "$call-$error" || exit
                refused "$call" "$error"
                expect_agreement "$call" "$error" >differs && touch agreed
            ) &
            while [ "$(jobs -rp | wc -l)" -ge 8 ]; do
                wait -n
            done
        done
    done
    wait
    for case in *-*/; do
        [ -e "$case/agreed" ] && continue
        cat "$case/differs"
        grep -E '^(E|exit)' "$case/check"
        grep -E '^error' "$case/err"
        fail "${case%/}: < is unusable or ran, > all methods"
    done
}

test_methods_that_can_be_used_run_and_others_name_the_call() {
    # shellcheck disable=SC2086 # words
    go_through $calls
    [ -s memfd_create-EPERM/unusable ] || fail "memfd_create is not refused"
}

test_calls_with_a_fall_back_are_no_need() {
    local case
    go_through pidfd_open close_range timerfd_create
    [ -z "${ALL_CALLS-}" ] ||
        go_through madvise process_vm_readv process_vm_writev set_mempolicy \
            shmget fadvise64
    for case in *-*/; do
        expect_no_text "$case/unusable" .
    done
}

test_calls_that_start_processes_are_told() {
    go_through clone3 setsid socketpair
}

# The head and, since it starts them, the agents.
test_a_head_that_cannot_accept_keeps_the_stream() {
    cluster '.scenarios = [.scenarios[1]]'
    "$refuse" ENOSYS accept4 -- timeout 60 "$RF_BUILD_DIR/refit-coord" \
        cluster.json >out 2>err || fail "exit status $?"
    expect_text err 'cannot accept connections on .*: control stays on the'
    expect_text out '^near-method=shm .* yes$'
}

run_tests
