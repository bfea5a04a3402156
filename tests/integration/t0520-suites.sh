# The list of suites, with sizes from their plans.
# limit: 60
# shellcheck shell=bash source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

test_every_suite_is_listed_with_its_sizes() {
    BUILD=$RF_BUILD_DIR "$RF_TOP/scripts/refit-suite" >out || fail "exit $?"
    expect_text out '^n-to-m +5 +126 +2[.]15 GB +[0-9.]+ TB$'
    for name in "$RF_TOP"/examples/*.json; do
        name=$(basename "$name" .json)
        expect_text out "^${name%%.*} +[1-9][0-9]* +[1-9][0-9]* +[0-9.]+ [MGT]B +[0-9.]+ [MGT]B$"
    done
}

test_suites_are_listed_without_a_build() {
    BUILD=$PWD/none "$RF_TOP/scripts/refit-suite" >out || fail "exit $?"
    expect_text out '^n-to-m$'
}

test_an_unknown_suite_lists_the_known() {
    BUILD=$RF_BUILD_DIR "$RF_TOP/scripts/refit-suite" nope >out 2>err
    [ $? = 2 ] || fail "not refused"
    expect_text err 'no suite nope.*n-to-m'
}

run_tests
