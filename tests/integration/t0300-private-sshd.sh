# A run over real SSH to this machine, as `make run-ssh` does it.
# limit: 120
# shellcheck shell=bash source=../lib/test.sh disable=SC2034
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

run_tests
