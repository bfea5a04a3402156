# Shared by the benchmarks on hosts of a test bed (scripts/testbed). Takes BUILD
# off their arguments; sets root, build and work, a folder. When they end, their
# background jobs are killed, and their hosts and the folder removed.
# shellcheck shell=bash
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(realpath "${1:?BUILD folder}")
shift
work=$(mktemp -d)
bed=
at_exit=() # commands; one that fails makes the benchmark fail

finish() {
    local status=$? item
    for item in $(jobs -p); do kill "$item" 2>/dev/null || true; done
    [ -z "$bed" ] || testbed_down || status=1
    for item in "${at_exit[@]}"; do
        eval "$item" || status=$((status ? status : 1))
    done
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

needs_root() {
    if [ "$(id -u)" != 0 ]; then
        echo "${0##*/}: skipped: needs root for network namespaces"
        exit 77
    fi
}

# Leaves the hosts' part of a cluster file in $work/part.json.
testbed_up() { # OPTION...
    "$root/scripts/testbed" up "$@" --worker "$build/refit-worker" \
        --dir "$work/bed" >"$work/part.json"
    bed=$work/bed
}

testbed_down() {
    "$root/scripts/testbed" down --dir "$bed" || return
    bed=
}
