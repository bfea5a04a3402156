#!/bin/bash
# The GPU module over real SSH: a node's login knows nothing of the libraries
# that launch.env leads to, neither for the survey before HELLO nor for ranks.
# limit: 240
# shellcheck source=../lib/fakes.sh
. "$(dirname "$0")/../lib/fakes.sh"
PATH=$PATH:/usr/sbin
command -v sshd >/dev/null || skip_all "no sshd installed"
unset LD_LIBRARY_PATH FAKE_CUDA_DEVICES

# Programs and module alone: the other libraries are where launch.env says.
over_ssh() {
    mkdir build
    cp "$fakes"/{refit-coord,refit-worker,refit-cuda.so,libfake-cudart.so} build
    "$RF_TOP/scripts/private-sshd" build cluster.json \
        >out 2>err </dev/null
    status=$?
    cat out err >&2
}

test_launch_env_reaches_the_survey_and_the_ranks() {
    cluster '.scenarios[0].method = ["nccl", "ipc"]'
    over_ssh
    expect_exit 0
    all_verified 2
    expect_json "$(echo results/*/s-method=nccl.json)" \
        ".environment[0] | (.nccl.path == \"$fakes/libnccl.so.2\") and
        (.gpus | length == 8)"
}

test_devices_are_those_that_launch_env_leaves() {
    cluster '.launch.env.FAKE_CUDA_DEVICES = "2"'
    over_ssh
    expect_exit 4
    expect_text err 'has 2 GPUs for 6 slots; each needs one'
}

test_environment_in_which_nothing_starts_is_named() {
    mkdir broken
    : >broken/libc.so.6
    cluster ".launch.env.LD_LIBRARY_PATH = \"$PWD/broken\""
    over_ssh
    expect_exit 4
    expect_text err 'localhost: .*exited with 127: check launch.env'
    expect_text err 'broken/libc.so.6: file too short'
}

run_tests
