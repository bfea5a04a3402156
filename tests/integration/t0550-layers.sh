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
test_the_sources_follow_the_table() {
    copy_sources
    check
    expect_exit 0
    expect_no_text out .
}

# What each file comes to include, and what it then must not know: other rooms,
# also through internal headers and other spellings, and headers from outside,
# also through headers that may know them.
planted='
planner/plan/plan.c "transport/method/method.h" transport/method/method.h
coordinator/run/run_attempt.c "coordinator/records/summary.h" coordinator/records/summary.h
coordinator/run/run_internal.h "coordinator/store/results.h" coordinator/store/results.h
coordinator/run/run.h "coordinator/commands/cli.h" coordinator/commands/cli.h
coordinator/config/config_matrix.c "coordinator/cluster/cluster.h" coordinator/cluster/cluster.h
coordinator/launch/launch.h "coordinator/cluster/cluster.h" coordinator/cluster/cluster.h
coordinator/scenario/scenario.c <transport/method/method.h> transport/method/method.h
transport/info/method_info.h "transport/engine/engine.h" transport/engine/engine.h
transport/method/node_memory.c "transport/engine/flow.h" transport/engine/flow.h
cuda/device/kernels.cu "cuda/nccl/nccl_api.h" cuda/nccl/nccl_api.h
planner/model/roles.c <./coordinator/run/run.h> coordinator/run/run.h
coordinator/run/run.c <libssh/libssh.h> <libssh/libssh\.h>
worker/content/fill.c <cuda_runtime_api.h> <cuda_runtime_api\.h>
coordinator/preflight/join.c "transport/control/conn.h" <uv\.h> .*/join\.c -> transport/control/conn\.h -> <uv\.h>\)$
transport/tcp/tcp_carrier.h "transport/net/loop.h" <uv\.h> .*tcp_carrier\.h -> transport/net/loop\.h -> <uv\.h>\)$'

test_what_a_file_must_not_know_is_refused() {
    local file header known
    copy_sources
    while read -r file header known; do
        sed -i "1i # include $header" "$file"
    done <<<"${planted:1}"
    check
    expect_exit 1
    while read -r file header known; do
        expect_text out "^$file:.* must not know $known"
    done <<<"${planted:1}"
    # What comes with it is right as soon as it is gone.
    expect_no_text out '^planner/plan/plan\.c:.* -> .* -> '
    # Files that include a header are right as soon as it is.
    expect_no_text out '^coordinator/run/run\.c:.*commands/cli\.h'
    expect_no_text out '^transport/tcp/datalink\.c:.*<uv\.h>'
}

test_an_include_that_is_not_there_is_an_error() {
    copy_sources
    mkdir -p tests/lib planner/planted
    touch tests/lib/planted.h planner/planted/planted.c
    sed -i '1i #include "tests/lib/planted.h"' worker/main.c
    printf '#define HEADER "coordinator/run/run.h"\n#include HEADER\n' \
        >>planner/model/roles.c
    echo '#include "run.h"' >>coordinator/run/run.c
    echo '#include "cuda/device/nothing.h"' >>cuda/device/fatbin.S
    check
    expect_exit 1
    expect_text out '^worker/main\.c: tests/lib/planted\.h is no source'
    expect_text out '^planner/model/roles\.c: an include that is no plain one'
    expect_text out '^coordinator/run/run\.c: no run\.h$'
    expect_text out '^cuda/device/fatbin\.S: no cuda/device/nothing\.h$'
    expect_text out '^planner/planted: has no line$'
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
    echo 'struct rf_named { int a; };' >>common/err.h
    cat >>worker/main.c <<'END'
struct rf_named;
/* like
struct rf_named { */
// struct rf_named {
static const char *text = "'struct rf_named {";
static struct rf_named named = {1};
struct rf_named *named_fn(struct rf_named *a)
{
    return sizeof(struct rf_named) ? a : &named;
}
END
    check
    expect_exit 1
    expect_text out \
        '^union rf_planted is defined in common/err\.h:1 and worker/main\.c:2$'
    expect_no_text out rf_named # is defined once
}

run_tests
