#!/bin/bash
# The command line of scripts/testbed, as far as it needs no root.
# limit: 30
# shellcheck source=../lib/test.sh
. "$(dirname "$0")/../lib/test.sh"

bed() { # ARGUMENTS...
    # shellcheck disable=SC2154 # test.sh sets it
    "$testbed" "$@" >out 2>err </dev/null
    status=$?
    cat out err >&2
}

test_options_may_come_before_the_command() {
    bed --dir "$PWD/none" down
    expect_exit 1
    expect_text err "$PWD/none: no test bed here"
    bed --dir "$PWD/none" exec 1 -- hostname
    expect_exit 1
    expect_text err "$PWD/none: no test bed here"
    bed --hosts none up
    expect_exit 2
    expect_text err '--hosts must be a number'
}

test_help_is_an_option_and_a_command() {
    local word
    for word in -h --help help; do
        bed "$word"
        expect_exit 0
        expect_text out '^    testbed up --hosts N'
    done
    bed up --help
    expect_exit 0
}

test_mistakes_name_what_is_wrong() {
    bed
    expect_exit 2
    expect_text err 'missing command: up, down'
    bed --dir "$PWD/none"
    expect_exit 2
    expect_text err 'missing command: up, down'
    bed upp
    expect_exit 2
    expect_text err 'unknown command upp'
    bed down "$PWD/none" # without --dir, that is another test bed
    expect_exit 2
    expect_text err "unexpected argument $PWD/none"
    bed up --hosst 2
    expect_exit 2
    expect_text err 'unknown option --hosst'
}

run_tests
