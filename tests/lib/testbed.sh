# Shared by the tests on hosts of a test bed (scripts/testbed); includes
# tests/lib/test.sh. Skips the file where there can be none.
# shellcheck shell=bash source=../lib/test.sh disable=SC2034
. "$(dirname "${BASH_SOURCE[0]}")/test.sh"

[ "$(id -u)" = 0 ] || skip_all "network namespaces need root"
ip netns list >/dev/null 2>&1 || skip_all "this kernel has no network namespaces"

bed=$work/bed

# Brings hosts up until the file ends: their part of a cluster file in $part,
# their addresses and namespaces in host[] and ns[].
bed_up() { # OPTION...
    at_exit '"$testbed" down --dir "$bed"'
    part=$("$testbed" up "$@" --dir "$bed") || {
        printf '1..1\nnot ok 1 - the test bed comes up\n'
        exit 1
    }
    mapfile -t host < <(jq -r '.nodes[].host' <<<"$part")
    mapfile -t ns < <(sed -n 's/^netns //p' "$bed/state")
}
