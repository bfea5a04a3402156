#!/bin/bash
# scripts/check-layers, with copies of the sources into which something wrong is
# put.
# limit: 180
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

command -v python3 >/dev/null || skip_all "no python3 to run check-layers"

copy_sources() {
    (cd "$RF_TOP" && find common planner checkpoint transport cuda ucx worker \
        coordinator \( -name '*.[chS]' -o -name '*.cu' -o -name '*.cuh' \) \
        -exec cp --parents -t "$OLDPWD" {} +)
}
check() { # [PROGRAM]
    "${1-$RF_TOP/scripts/check-layers}" >out 2>&1
    status=$?
    cat out >&2
}
# Puts the line into a copy and expects a failure that names file and header.
expect_refused() { # FILE LINE HEADER
    copy_sources
    sed -i "1i $2" "$1"
    check
    expect_exit 1
    expect_text out "^$1:.* must not know $3"
}

test_the_sources_follow_the_table() {
    copy_sources
    check
    expect_exit 0
    expect_no_text out .
}

# --- Rooms --------------------------------------------------------------------

test_a_planner_that_knows_the_transport_is_refused() {
    expect_refused planner/plan/plan.c \
        '#include "transport/method/method.h"' transport/method/method.h
    # What comes with it is right as soon as it is gone.
    expect_no_text out '^planner/plan/plan\.c:.* -> .* -> '
}

test_a_run_that_knows_records_is_refused() {
    expect_refused coordinator/run/run_attempt.c \
        '#include "coordinator/records/summary.h"' coordinator/records/summary.h
}

test_a_run_that_knows_the_store_through_its_internal_header_is_refused() {
    expect_refused coordinator/run/run_internal.h \
        '#include "coordinator/store/results.h"' coordinator/store/results.h
}

test_a_run_that_knows_commands_is_refused() {
    expect_refused coordinator/run/run.h \
        '#include "coordinator/commands/cli.h"' coordinator/commands/cli.h
    # Files that include run.h are right as soon as it is.
    expect_no_text out '^coordinator/run/run\.c:.*commands/cli\.h'
}

test_a_configuration_that_knows_the_cluster_is_refused() {
    expect_refused coordinator/config/config_matrix.c \
        '#include "coordinator/cluster/cluster.h"' \
        coordinator/cluster/cluster.h
}

test_a_launcher_that_knows_the_cluster_is_refused() {
    expect_refused coordinator/launch/launch.h \
        '# include "coordinator/cluster/cluster.h"' \
        coordinator/cluster/cluster.h
}

test_a_coordinator_that_knows_the_data_plane_is_refused() {
    expect_refused coordinator/scenario/scenario.c \
        '#include <transport/method/method.h>' transport/method/method.h
}

test_facts_about_methods_that_know_the_engine_are_refused() {
    expect_refused transport/info/method_info.h \
        '#include "transport/engine/engine.h"' transport/engine/engine.h
}

test_the_interface_of_methods_that_knows_the_engine_is_refused() {
    expect_refused transport/method/node_memory.c \
        '#include "transport/engine/flow.h"' transport/engine/flow.h
}

test_a_device_that_knows_the_module_is_refused() {
    expect_refused cuda/device/kernels.cu '#include "cuda/health.h"' \
        cuda/health.h
}

test_a_product_that_knows_tests_is_refused() {
    copy_sources
    mkdir -p tests/lib
    echo >tests/lib/planted.h
    sed -i '1i #include "tests/lib/planted.h"' worker/main.c
    check
    expect_exit 1
    expect_text out '^worker/main\.c: tests/lib/planted\.h is no source'
}

# --- Headers from outside -----------------------------------------------------

test_a_run_that_knows_libssh_is_refused() {
    expect_refused coordinator/run/run.c '#include <libssh/libssh.h>' \
        '<libssh/libssh\.h>'
}

test_a_worker_that_knows_cuda_is_refused() {
    expect_refused worker/content/fill.c '#include <cuda_runtime_api.h>' \
        '<cuda_runtime_api\.h>'
}

test_a_preflight_that_comes_to_know_libuv_is_refused() {
    expect_refused coordinator/preflight/join.c \
        '#include "transport/control/conn.h"' \
        '<uv\.h> .*/join\.c -> transport/control/conn\.h -> <uv\.h>\)$'
}

test_an_internal_header_that_comes_to_know_libuv_is_refused() {
    expect_refused transport/tcp/datalink_internal.h \
        '#include "transport/net/loop.h"' \
        '<uv\.h> .*_internal\.h -> transport/net/loop\.h -> <uv\.h>\)$'
    expect_no_text out '^transport/tcp/datalink\.c:.*<uv\.h>'
}

# --- Files and the table ------------------------------------------------------

test_an_include_that_is_no_plain_one_is_refused() {
    copy_sources
    printf '#define HEADER "coordinator/run/run.h"\n#include HEADER\n' \
        >>planner/model/roles.c
    check
    expect_exit 1
    expect_text out '^planner/model/roles\.c: an include that is no plain one'
}

test_a_header_in_angles_by_another_spelling_is_refused() {
    expect_refused planner/model/roles.c \
        '#include <./coordinator/run/run.h>' coordinator/run/run.h
}

test_a_room_without_a_line_is_an_error() {
    copy_sources
    mkdir planner/planted
    echo >planner/planted/planted.c
    check
    expect_exit 1
    expect_text out '^planner/planted: has no line$'
}

test_an_include_that_is_not_there_is_an_error() {
    copy_sources
    echo '#include "run.h"' >>coordinator/run/run.c
    echo '#include "cuda/device/nothing.h"' >>cuda/device/fatbin.S
    check
    expect_exit 1
    expect_text out '^coordinator/run/run\.c: no run\.h$'
    expect_text out '^cuda/device/fatbin\.S: no cuda/device/nothing\.h$'
}

test_a_wrong_table_is_an_error() {
    copy_sources
    mkdir scripts
    cp "$RF_TOP"/scripts/check-layers "$RF_TOP"/scripts/layers scripts
    cat >>scripts/layers <<'END'
common: planner/model planner/nowhere
planner/empty: common
<uv.h>: nowhere/*
END
    check scripts/check-layers
    expect_exit 1
    expect_text out '^circle: common -> planner/model -> common$'
    expect_text out '^planner/nowhere: has no line$'
    expect_text out '^planner/empty: has no sources$'
    expect_text out '^nowhere/\*: has no line$'
}

# --- Modules and tags ---------------------------------------------------------

# Through a source and an internal header, which belong to the header's module.
test_modules_that_include_each_other_are_refused() {
    copy_sources
    echo '#include "ucx/second.h"' >ucx/first.c
    echo '#include "ucx/third.h"' >ucx/second_internal.h
    echo '#include "ucx/first.h"' >ucx/third.h
    echo '#include "ucx/first.h"' >ucx/first_internal.h
    touch ucx/first.h ucx/second.h
    check
    expect_exit 1
    expect_text out '^ucx/first -> ucx/second -> ucx/third -> ucx/first$'
    expect_no_text out '^ucx/(second|third) -> '
}

test_a_tag_that_is_defined_twice_is_refused() {
    copy_sources
    sed -i '1i union rf_planted { int a; };' common/err.h
    sed -i '1i //\nunion __attribute__((packed)) rf_planted\n{ int a; };' \
        worker/main.c
    check
    expect_exit 1
    expect_text out \
        '^union rf_planted is defined in common/err\.h:1 and worker/main\.c:2$'
}

test_tags_that_are_only_named_are_not_definitions() {
    copy_sources
    echo 'struct rf_planted { int a; };' >>common/err.h
    cat >>worker/main.c <<'END'
struct rf_planted;
/* like
struct rf_planted { */
// struct rf_planted {
static const char *text = "'struct rf_planted {";
static struct rf_planted planted = {1};
struct rf_planted *planted_fn(struct rf_planted *a)
{
    return sizeof(struct rf_planted) ? a : &planted;
}
END
    check
    expect_no_text out rf_planted
}

run_tests
