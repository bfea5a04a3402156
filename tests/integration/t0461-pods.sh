#!/bin/bash
# Several names of one machine, each in control groups of its own, as pods are.
# limit: 60
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"
[ "$(id -u)" = 0 ] || skip_all "control groups need root"
if [ -f /sys/fs/cgroup/memory/memory.limit_in_bytes ]; then
    groups=/sys/fs/cgroup/memory limit=memory.limit_in_bytes
elif grep -qw memory /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null; then
    groups=/sys/fs/cgroup limit=memory.max
else
    skip_all "no control groups of memory"
fi
pods=$groups/refit-test-$$
mkdir "$pods" 2>/dev/null || skip_all "no control group can be made"
at_exit 'rmdir "$pods"/*/ "$pods"'
[ $limit != memory.max ] || echo +memory >"$pods/cgroup.subtree_control"
mkdir "$pods/localhost" "$pods/127.0.0.1"

# About 110 MB on each.
base=$(jq --arg worker "$worker" '. + {
  launch: {method: "local", wrap: ["./enter", "{host}"], worker: $worker},
  nodes: [{host: "localhost", slots: 2}, {host: "127.0.0.1", slots: 2}],
  model: {megatron: {num_layers: 2, hidden_size: 1024, num_attention_heads: 8,
    vocab_size: 8192}},
  scenarios: [{name: "s", mode: "disaggregated", iterations: 1, warmup: 0,
    train: {nodes: ["localhost"], tp: 2}, infer: {nodes: ["127.0.0.1"], tp: 2}}]
}' <<<"$four_slots")

# Megabytes of both pods together and of each.
limit_to() { # TOGETHER POD POD
    echo "${1}000000" >"$pods/$limit"
    echo "${2}000000" >"$pods/localhost/$limit"
    echo "${3}000000" >"$pods/127.0.0.1/$limit"
    cluster
    cat >enter <<EOF
#!/bin/sh
echo \$\$ >"$pods/\${1}/cgroup.procs" && shift && exec "\$@"
EOF
    chmod +x enter
}

test_pods_that_fit_into_limits_of_their_own_run() {
    limit_to 2000 200 200
    coord_exits 0 cluster.json
    expect_verified "$(result s)"
    expect_json "$(result s)" '[.environment[].memory_limits |
        map(select(.available_bytes < 210e6).group)] | .[0] != .[1]'
}

test_a_pod_that_is_too_small_is_named_alone() {
    limit_to 2000 200 50
    coord_exits 4 cluster.json
    expect_text err 'of memory on 127\.0\.0\.1, which has .* MB available'
}

test_pods_that_share_a_limit_are_added_up() {
    limit_to 180 170 170
    coord_exits 4 cluster.json
    expect_text err 'on localhost and the other names in its control group, which'
}

# LXC shows a container its own figures in /proc.
test_a_container_with_a_meminfo_of_its_own_is_no_machine() {
    limit_to 2000 400 400
    printf 'MemTotal: 190000 kB\nMemAvailable: 190000 kB\n' >meminfo
    sed -i "s|exec|exec unshare -m sh -c 'mount --bind $PWD/meminfo /proc/meminfo \&\& exec \"\$@\"' sh|" enter
    coord_exits 0 cluster.json
    expect_json "$(result s)" '.environment | all(.memory_available_bytes < 200e6)'
}

run_tests
