#!/bin/bash
# A run over real SSH to this machine, as `make run-ssh` does it.
# limit: 240
# waits
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"
PATH=$PATH:/usr/sbin
command -v sshd >/dev/null || skip_all "no sshd installed"

base=$(jq '. + {scenarios: [
    {"name": "colocated", "mode": "colocated", "train": {"tp": 2, "pp": 2},
     "infer": {"tp": 4}, "warmup": 1, "iterations": 2},
    {"name": "split", "mode": "disaggregated", "train": {"tp": 2},
     "infer": {"tp": 2}, "warmup": 1, "iterations": 2}
  ]}' <<<"$four_slots")

test_runs_over_ssh_to_a_private_sshd() {
    cluster
    "$RF_TOP/scripts/private-sshd" "$RF_BUILD_DIR" cluster.json >out 2>err
    status=$?
    cat out err >&2
    expect_exit 0
    expect_verified "$(result colocated)"
    expect_verified "$(result split)"
}

test_usage_is_shown() {
    "$RF_TOP/scripts/private-sshd" --help >out 2>err || fail "exit $?"
    expect_text out '^usage: private-sshd BUILD CLUSTER[.]json'
    "$RF_TOP/scripts/private-sshd" "$RF_BUILD_DIR" >out 2>err
    [ $? = 2 ] || fail "one argument is enough"
    expect_text err '^usage: private-sshd'
}

refused() { # TEXT ARGUMENT...
    local text=$1
    shift
    "$RF_TOP/scripts/private-sshd" "$@" >out 2>err
    status=$?
    expect_exit 2
    expect_text err "$text"
}

test_what_it_cannot_use_is_named_at_once() {
    cluster
    refused 'absent: no refit-coord' absent cluster.json
    refused 'absent.json: cannot be read' "$RF_BUILD_DIR" absent.json
    refused '--resume is not possible' "$RF_BUILD_DIR" cluster.json --resume x
    echo '{' >bad.json
    refused 'bad.json: is not a cluster file' "$RF_BUILD_DIR" bad.json
}

test_a_disk_folder_stays_relative_to_the_cluster_file() {
    cluster '.scenarios = [.scenarios[1]
        | .method = "disk" | .disk = {folder: "weights"}]'
    "$RF_TOP/scripts/private-sshd" "$RF_BUILD_DIR" cluster.json -n --full \
        >out 2>err || fail "exit $?: $(cat err)"
    expect_json out "[.. | .folder? | strings] | any(. == \"$PWD/weights\")"
}

run_tests
