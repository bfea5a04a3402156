#!/bin/bash
# scripts/check-layers, with copies of the sources into which a wrong include is
# put.
# limit: 180
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

copy_sources() {
    (cd "$RF_TOP" && find common planner checkpoint transport coordinator worker cuda \
        ucx \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) \
        -exec cp --parents -t "$OLDPWD" {} +)
}
check() {
    "$RF_TOP/scripts/check-layers" >out 2>&1
    status=$?
    cat out >&2
}
# Puts the line into a copy and expects a failure that names file and header.
expect_refused() { # FILE LINE HEADER
    copy_sources
    sed -i "1i $2" "$1"
    check
    expect_exit 1
    expect_text out "^$1:.*$3"
}

test_the_sources_follow_the_order() {
    copy_sources
    check
    expect_exit 0
}

test_a_run_that_knows_tables_is_refused() {
    expect_refused coordinator/run/run_attempt.c \
        '#include "coordinator/table/table.h"' coordinator/table/table.h
}

test_a_run_that_knows_commands_is_refused() {
    expect_refused coordinator/run/run.h \
        '#include "coordinator/commands/cli.h"' coordinator/commands/cli.h
}

test_a_store_that_knows_libuv_is_refused() {
    expect_refused coordinator/store/results.c '#include <uv.h>' uv.h
}

test_a_run_that_knows_libssh_is_refused() {
    expect_refused coordinator/run/run.c '#include <libssh/libssh.h>' \
        libssh/libssh.h
}

test_a_store_that_comes_to_know_libuv_is_refused() {
    expect_refused coordinator/store/results.c \
        '#include "transport/control/conn.h"' 'uv\.h .*/conn\.h -> uv\.h'
}

test_a_configuration_that_knows_the_cluster_is_refused() {
    expect_refused coordinator/config/config_matrix.c \
        '#include "coordinator/cluster/cluster.h"' \
        coordinator/cluster/cluster.h
}

test_a_cluster_that_knows_the_run_is_refused() {
    expect_refused coordinator/launch/ssh/launch_ssh.h \
        '# include "coordinator/run/run.h"' coordinator/run/run.h
}

test_a_planner_that_knows_the_transport_is_refused() {
    expect_refused planner/plan/plan.c '#include "transport/control/message_types.h"' transport/control/message_types.h
}

test_two_modules_that_include_each_other_are_refused() {
    copy_sources
    echo '#include "coordinator/reports/report.h"' \
        >>coordinator/table/table.c
    check
    expect_exit 1
    expect_text out \
        'table/table -> .*reports/report -> '
}

test_an_include_that_is_not_there_is_an_error() {
    copy_sources
    echo '#include "coordinator/run/nothing.h"' >>coordinator/run/run.c
    check
    expect_exit 1
    expect_text out 'coordinator/run/nothing\.h'
}

run_tests
