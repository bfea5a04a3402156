# Shared by the integration tests. A test file is a bash script:
#
#     #!/bin/bash
#     # limit: 60
#     . "$(dirname "$0")/../lib/test.sh"
#     test_something_happens() { coord_exits 0 ...; expect_text out ...; }
#     run_tests
#
# Every function test_* runs in its own subshell and folder ($PWD); the first
# failed expectation ends it. Its messages and output go to the log (stderr).
# skip_all REASON before run_tests skips the file. tests/README.md has the
# variables that choose tests; an argument like 1of2 of the file chooses every
# second one, from the first on.
# shellcheck shell=bash
set -uo pipefail

: "${RF_TOP:=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")}"
export RF_TOP
export REFIT_PROBE_MS="${REFIT_PROBE_MS-1}"
: "${RF_BUILD_DIR:=$RF_TOP/build}"
coord=$RF_BUILD_DIR/refit-coord
# shellcheck disable=SC2034 # for the tests
worker=$RF_BUILD_DIR/refit-worker testbed=$RF_TOP/scripts/testbed
work=$(mktemp -d)
own_part=${1-1of1}

# Functions added with at_exit run when the file ends, last added first.
exit_hooks=("rm -rf '$work'")
[ -z "${KEEP-}" ] || exit_hooks=("echo '# kept: $work'")
at_exit() {
    exit_hooks=("$1" "${exit_hooks[@]}")
}
run_exit_hooks() {
    local hook
    for hook in "${exit_hooks[@]}"; do
        eval "$hook"
    done
}
trap run_exit_hooks EXIT
trap 'exit 143' TERM INT HUP

skip_all() {
    echo "1..0 # skip $*"
    exit 0
}

run_tests() {
    local tests i name number=0 failed=0 TIMEFORMAT
    mapfile -t tests < <(compgen -A function -X "!${TESTS-test_*}" test_)
    [ ${#tests[@]} -gt 0 ] || {
        echo "Bail out! No test is called $TESTS"
        exit 2
    }
    for i in "${!tests[@]}"; do
        [ $((i % ${own_part#*of} + 1)) = "${own_part%of*}" ] || unset "tests[i]"
    done
    echo "1..${#tests[@]}"
    for name in "${tests[@]}"; do
        number=$((number + 1))
        mkdir "$work/$name"
        echo "--- $name" >&2
        TIMEFORMAT="--- $name took %1R s (processor: %1U + %1S s)"
        if time (
            trap - EXIT
            cd "$work/$name" && "$name"
        ) >&2; then
            echo "ok $number - $name"
        else
            echo "not ok $number - $name"
            failed=1
            [ -z "${STOP-}" ] || break
        fi
    done
    [ ! -e "$work/verified" ] || (verified_validate) >&2 || failed=1
    exit $failed
}

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# Polls CONDITION (a command) until it holds; fails after SECONDS.
wait_until() { # SECONDS WHAT CONDITION...
    local limit=$1 what=$2 end
    shift 2
    end=$((SECONDS + limit + 1))
    until "$@"; do
        [ $SECONDS -lt $end ] || fail "not within $limit s: $what"
        sleep 0.05
    done
}

# --- Running the coordinator --------------------------------------------------

# Shows its output. Fails if an error ends in a colon, unless its causes follow,
# indented.
show_output() {
    sed 's/^/  out: /' out >&2
    sed 's/^/  err: /' err >&2
    if grep -qPz '(?m)^(error:|warning:|[EW]) .*: *\n(?! )' out err ||
        grep -qPz '(?m)^( +)\S.*: *\n(?!\1 )' err; then
        fail "an error ends in a colon"
    fi
}

# Runs refit-coord to its end; leaves its exit code in $status and its output in
# the files out and err.
run_coord() {
    "$coord" "$@" >out 2>err </dev/null
    status=$?
    show_output
}

coord_exits() { # EXIT_CODE ARGUMENTS...
    local expected=$1
    shift
    run_coord "$@"
    expect_exit "$expected"
}

# Starts refit-coord in the background with its pid in $coord_pid. The shell
# makes background jobs ignore SIGINT, nohup SIGHUP, and the program honours
# that. While the job is still a copy of the shell, the shell's handler would
# swallow a SIGTERM.
start_coord() {
    env --default-signal=INT,HUP "$coord" "$@" >out 2>err </dev/null &
    coord_pid=$!
    while [ "/proc/$coord_pid/exe" -ef "/proc/$$/exe" ]; do :; done
}

# A signal that the coordinator has not taken yet would swallow the next one.
signal_is_taken() {
    ! grep -qE '^(Sig|Shd)Pnd:.*[1-9a-f]' "/proc/$coord_pid/status" 2>/dev/null
}

# Waits for its end; leaves its exit code in $status.
finish_coord() {
    wait "$coord_pid"
    status=$?
    show_output
}

expect_exit() {
    [ "$status" = "$1" ] || fail "exit code $status, expected $1"
}

expect_text() { # FILE EXTENDED_REGEX
    grep -qE -- "$2" "$1" || fail "$1 has no line like: $2"
}

expect_no_text() {
    [ -e "$1" ] || fail "there is no $1"
    if grep -nE -- "$2" "$1" >&2; then fail "$1 has a line like: $2"; fi
}

csv_column() { # FILE NAME -> its cells, one per line
    python3 -c 'import csv, sys
for row in csv.DictReader(open(sys.argv[1], encoding="utf-8")):
    print(row[sys.argv[2]])' "$1" "$2"
}

# --- JSON ----------------------------------------------------------------------

# jq 1.6 compiles its own library each time it starts: ten times slower. gojq
# sorts keys; where their order matters, use `command jq`.
if command -v gojq >/dev/null; then
    jq() { gojq "$@"; }
fi

# The jq expression must give true (not null, not false, not nothing) for the
# file.
expect_json() { # FILE EXPRESSION
    jq -en "inputs | ($2)" "$1" >/dev/null || {
        jq 'del(.iterations, .environment)' "$1" >&2 || head -c 2000 "$1" >&2
        fail "$1: not true: $2"
    }
}

# One jq for all files: starting it takes longer than the query. The expression
# must give something for each file, and nothing but true.
expect_json_of_all() { # EXPRESSION FILE...
    local expression=$1 file
    shift
    [ $# -gt 0 ] || fail "no files: $expression"
    jq -en "[inputs | [$expression] | . != [] and all] | length == $# and all" \
        "$@" >/dev/null && return
    for file in "$@"; do
        expect_json "$file" "$expression"
    done
    fail "not true of all: $expression"
}

# Four slots of this machine and a small model, for a base that adds scenarios.
# shellcheck disable=SC2034
four_slots='{
  "name": "t", "launch": {"method": "local"},
  "nodes": [{"host": "localhost", "slots": 4}],
  "model": {"megatron": {"num_layers": 4, "hidden_size": 128,
    "num_attention_heads": 8, "num_query_groups": 4, "ffn_hidden_size": 256,
    "vocab_size": 1024, "swiglu": true}}}'

# A cluster file: the base of this test file ($base, JSON) changed by a jq
# program, written to cluster.json.
cluster() { # [JQ_PROGRAM]
    # shellcheck disable=SC2154 # the test file sets it
    jq "${1-.}" <<<"$base" >cluster.json || fail "bad jq program: $1"
}

# The result file of a scenario, in any run folder.
result() { # SCENARIO
    local file found=
    for file in results/*/"$1".json; do
        [ -f "$file" ] || continue
        [ -z "$found" ] || fail "two result files of $1"
        found=$file
    done
    [ -n "$found" ] || fail "no result file of $1"
    echo "$found"
}

# The fields of a good result: every source and every iteration counted.
expect_verified() { # RESULT_FILE...
    expect_json_of_all '.status == "ok" and .errors == [] and
        ((.plan.bytes_total * .verification.rounds) as $all | .verification |
            .mismatched_bytes == 0 and .checked_bytes > 0 and
            .checked_bytes == $all) and
        ((.iterations | length) as $n | .scenario.iterations |
            if type == "object" then $n >= .min and $n <= .max
            else $n == . end)' "$@"
    realpath "$@" >>"$work/verified"
}

# Files that were verified keep to their schema, where there is a validator: all
# at once, since starting it takes longer.
verified_validate() {
    local files
    mapfile -t files < <(sort -u "$work/verified" |
        xargs -d '\n' ls -d 2>/dev/null)
    "$coord" schema result >"$work/result.schema" &&
        "$RF_TOP/tests/lib/schema" validate "$work/result.schema" "${files[@]}"
    case $? in
    0 | 77) ;;
    *) fail "results do not keep to their schema" ;;
    esac
}

# --- Processes -------------------------------------------------------------------
# By pid and start time, never by name: others may use the same programs.

start_time() { # PID -> clock ticks since boot; fails when it is gone or going
    local stat
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    stat=${stat##*) }
    # shellcheck disable=SC2086 # fields
    set -- $stat
    [ $# -ge 20 ] && [ "$1" != Z ] || return 1
    echo "${20}"
}

# None of the "pid:starttime" words is alive.
all_gone() {
    local word
    for word in "$@"; do
        if [ "$(start_time "${word%:*}")" = "${word#*:}" ]; then
            return 1
        fi
    done
}

# Sets $worker to a copy of the worker at a path that only this test uses, so
# that all processes that execute it are this test's.
own_worker() {
    cp "$RF_BUILD_DIR/refit-worker" "$PWD/refit-worker"
    worker=$PWD/refit-worker
}

# All processes that execute $worker, as "pid:starttime" words: agents and ranks
# on all hosts of a test bed, too.
workers() {
    local exe pid
    for exe in /proc/[0-9]*/exe; do
        [ "$exe" -ef "$worker" ] || continue
        pid=${exe#/proc/}
        pid=${pid%/exe}
        echo "$pid:$(start_time "$pid" || echo gone)"
    done
}

no_workers() {
    [ -z "$(workers)" ]
}

# The ranks among the workers: those whose parent is a worker too.
ranks() {
    local word stat all
    all=$(workers)
    for word in $all; do
        { read -r stat <"/proc/${word%:*}/stat"; } 2>/dev/null || continue
        stat=${stat##*) ? }
        [[ $'\n'$all != *$'\n'"${stat%% *}:"* ]] || echo "$word"
    done
}
