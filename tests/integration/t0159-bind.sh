#!/bin/bash
# launch.bind: where ranks run, and what results say of it.
# limit: 120
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base=$(jq '.nodes[0].slots = 2 | . + {scenarios: [
    {name: "s", train: {tp: 2}, infer: {tp: 2, layout: "hf"}, warmup: 0,
     iterations: 2}]}' <<<"$four_slots")

# The processors that this shell, and so the coordinator, may use.
allowed() {
    sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status
}

test_ranks_are_not_bound_without_the_key() {
    cluster
    coord_exits 0 cluster.json
    expect_verified "$(result s)"
    expect_json "$(result s)" ".setup.bind | .mode == \"none\" and
        (.ranks | map(.rank) == [0, 1] and all(.cpus == \"$(allowed)\"))"
    expect_json "$(result s)" '.cluster.launch.bind == "none"'
}

test_ranks_bound_to_cores_have_their_own() {
    [ "$(cat /sys/devices/system/cpu/cpu*/topology/thread_siblings_list |
        sort -u | wc -l)" -ge 2 ] || return 0
    cluster '.launch.bind = "core"'
    coord_exits 0 cluster.json
    expect_verified "$(result s)"
    expect_json "$(result s)" '.setup.bind | .mode == "core" and
        (.ranks | length == 2 and .[0].cpus != .[1].cpus)'
}

# On one processor both ranks get it, by node; there are not two cores in it.
test_agents_deal_out_what_they_may_use() {
    local one
    one=$(allowed)
    one=${one%%[-,]*}
    taskset -cp "$one" "$BASHPID" || fail "no taskset"
    cluster '.launch.bind = "core"'
    coord_exits 4 cluster.json
    expect_text err 'localhost.*\$\.launch\.bind: "core" needs a core for each '
    expect_text err "2 slots would share 1 core \(processors $one\)"
    [ -d /sys/devices/system/node/node0 ] || return 0
    cluster '.launch.bind = "numa"'
    coord_exits 0 cluster.json
    expect_json "$(result s)" ".setup.bind | .mode == \"numa\" and
        (.ranks | all(.cpus == \"$one\" and .numa_node >= 0))"
}

test_the_topology_is_that_of_the_kernel() {
    local name path
    "$worker" --probe >probe.json || fail "no facts"
    expect_json probe.json '.topology |
        (.numa_nodes | all(.number >= 0 and .cpus != "")) and
        (.nics | map(.pci.path) | length == (unique | length))'
    jq -r '.topology.nics[] | "\(.interfaces[]) \(.pci.path)"' probe.json \
        >interfaces
    while read -r name path; do
        [[ $(realpath "/sys/class/net/$name/device") = /sys/devices/$path* ]] ||
            fail "$name is not $path"
    done <interfaces
}

run_tests
