#!/bin/bash
# Addresses and ways for data that hosts of a test bed cannot use: `check` says
# so, and a run before it starts ranks.
# waits
# limit: 180
# shellcheck source=../lib/testbed.sh disable=SC2034
. "$(dirname "$0")/../lib/testbed.sh"

bed_up --hosts 4 --slots 2 --worker "$worker"
# Of the first host to another one, in a cluster of some of them.
sending_to() { # HOST HOSTS
    jq --argjson to "$1" --argjson hosts "$2" '. + {name: "t",
        model: {megatron: {num_layers: 2, hidden_size: 64,
            num_attention_heads: 4, vocab_size: 128}},
        scenarios: [{name: "a", mode: "disaggregated",
            train: {nodes: [.nodes[0].host], tp: 2},
            infer: {nodes: [.nodes[$to].host], tp: 2}, warmup: 0,
            iterations: 1}]} | .nodes |= .[:$hosts]' <<<"$part"
}
base=$(sending_to 1 2)

# The two ends of what the first sends to the second do not see each other.
cannot_send() { # REGEX
    coord_exits 4 check cluster.json
    expect_text out "^E a: ${host[0]} cannot send data to ${host[1]}.*$1"
    expect_text out '^1 error, '
    coord_exits 4 cluster.json
    expect_text err "${host[0]} cannot send data to ${host[1]}.*$1"
    expect_no_text err 'refused'
}

test_hosts_that_reach_each_other_are_right() {
    cluster
    coord_exits 0 check cluster.json
    expect_no_text out 'no data connection|MTU [0-9]+, that of'
}

test_a_loopback_address_is_named() {
    cluster '.nodes[1].address = "127.0.0.1"'
    cannot_send "127\.0\.0\.1.*nodes\[1\]\.address.*${host[1]} has ${host[1]}"
}

# As of containers behind the bridges of two hosts.
test_equal_addresses_are_named() {
    local name
    for name in "${ns[@]}"; do
        ip -n "$name" address add 172.31.77.2/32 dev lo
        at_exit "ip -n $name address del 172.31.77.2/32 dev lo 2>/dev/null"
    done
    cluster '.nodes[].address = "172.31.77.2"'
    cannot_send 'both have data address 172\.31\.77\.2.*--network host'
    for name in "${ns[@]}"; do
        ip -n "$name" address del 172.31.77.2/32 dev lo
    done
}

# In one direction, which the scenario needs, or in the other.
test_a_way_that_is_closed_is_named_with_both_ends() {
    ip -n "${ns[0]}" route add unreachable "${host[1]}"
    at_exit "ip -n ${ns[0]} route del unreachable ${host[1]} 2>/dev/null"
    cluster
    run_coord check cluster.json
    ip -n "${ns[0]}" route del unreachable "${host[1]}"
    expect_exit 4
    expect_text out "^E ${host[0]}: no data connection to ${host[1]}: ${host[1]}:[0-9]+: .*unreachable.*firewall"
    expect_text out "^W ${host[1]}: no data connection to ${host[0]}: ${host[0]}:[0-9]+: no answer in time"
}

# As a firewall of the second host that drops what opens a connection to a port
# of the system's choice. A rank names both ends and the cure, as `check` does.
blocked() { # METHOD TEXT
    cluster ".scenarios[0].method = \"$1\""
    ip netns exec "${ns[1]}" iptables -A INPUT -p tcp --syn -s "${host[0]}" -j DROP
    SECONDS=0
    run_coord cluster.json -o "$1"
    ip netns exec "${ns[1]}" iptables -F INPUT
    expect_exit 1
    expect_text err "a failed \(prepare\): $2"
    [ "$SECONDS" -lt 100 ] || fail "took $SECONDS s"
}

test_a_firewall_between_hosts_is_named() {
    command -v iptables >/dev/null || return 0
    at_exit "ip netns exec ${ns[1]} iptables -F INPUT 2>/dev/null"
    blocked tcp "${host[0]}: rank [01]: method tcp: connect to rank [23] at ${host[1]} port [0-9]+: .*ip_local_port_range.*firewall"
    [ ! -e "$RF_BUILD_DIR/refit-ucx.so" ] ||
        blocked ucx '.*: rank [0-3]: method ucx: UCX: connection to rank [0-3] .*firewall'
}

# The refit's hosts are not beside each other.
test_a_way_that_only_the_refit_uses_is_tried() {
    ip -n "${ns[0]}" route add unreachable "${host[2]}"
    at_exit "ip -n ${ns[0]} route del unreachable ${host[2]} 2>/dev/null"
    base=$(sending_to 2 4) cluster
    run_coord check cluster.json
    ip -n "${ns[0]}" route del unreachable "${host[2]}"
    expect_exit 4
    expect_text out "^E ${host[0]}: no data connection to ${host[2]}: ${host[2]}:[0-9]+: .*unreachable"
    expect_text out '^1 error, '
    coord_exits 0 check cluster.json
    expect_no_text out 'no data connection'
}

# The second host says at once that it cannot reach the first, whose words to it
# are not answered: while it waits, it stops.
test_a_node_that_stops_while_it_tries_is_named_alone() {
    local agent
    ip -n "${ns[1]}" route add unreachable "${host[0]}"
    at_exit "ip -n ${ns[1]} route del unreachable ${host[0]} 2>/dev/null"
    cluster
    start_coord check cluster.json --verbose
    wait_until 30 'the second host has answered' \
        grep -q "${host[1]}: REACHED" err
    agent=$(ip netns pids "${ns[0]}" | while read -r pid; do
        [ "$(readlink "/proc/$pid/exe")" != "$worker" ] || echo "$pid"
    done)
    kill -STOP "$agent"
    at_exit "kill -KILL $agent 2>/dev/null"
    finish_coord
    ip -n "${ns[1]}" route del unreachable "${host[0]}"
    expect_exit 4
    expect_text out "^E ${host[0]}: (silent for 15|no answer within 15 s)"
    expect_text out '^1 error, '
    expect_no_text out 'no data connection'
}

# The bridge's port takes no long packets and says nothing; the hosts make none
# that are cut later (gso_max_segs).
test_long_packets_that_are_lost_on_the_way_are_named() {
    ip link set "${ns[1]}" mtu 1000
    ip -n "${ns[0]}" link set eth0 gso_max_segs 1
    at_exit "ip link set ${ns[1]} mtu 1500 2>/dev/null"
    at_exit "ip -n ${ns[0]} link set eth0 gso_max_segs 65535 2>/dev/null"
    cluster
    run_coord check cluster.json
    ip link set "${ns[1]}" mtu 1500
    ip -n "${ns[0]}" link set eth0 gso_max_segs 65535
    expect_exit 4
    expect_text out "^E ${host[0]}: no data connection to ${host[1]}: .*connected, but .*MTU"
}

test_mtus_that_differ_are_a_warning() {
    ip -n "${ns[1]}" link set eth0 mtu 1400
    cluster
    run_coord check cluster.json
    ip -n "${ns[1]}" link set eth0 mtu 1500
    expect_exit 0
    expect_text out "^W ${host[1]}: .*MTU 1400, that of ${host[0]} 1500"
}

# A bridge that has one address on both hosts, as docker0 has.
test_ucx_takes_the_interface_of_the_address_for_data() {
    local name
    [ -e "$RF_BUILD_DIR/refit-ucx.so" ] || return 0
    for name in "${ns[@]}"; do
        ip -n "$name" link add docker0 type bridge
        at_exit "ip -n $name link del docker0 2>/dev/null"
        ip -n "$name" address add 172.31.77.1/16 dev docker0
        ip -n "$name" link set docker0 up
        ip -n "$name" link add vx type veth peer name vy
        ip -n "$name" link set vx master docker0 up
        ip -n "$name" link set vy up
    done
    cluster '.scenarios[0].method = "ucx"'
    coord_exits 0 cluster.json
    expect_verified "$(result a)"
    expect_json "$(result a)" '.setup.registration | test("by tcp/eth0")'
    expect_json "$(result a)" \
        '[.environment[].env.UCX_NET_DEVICES] == ["eth0", "eth0"]'
    cluster '.scenarios[0].method = "ucx" |
        .launch.env.UCX_NET_DEVICES = "docker0"'
    coord_exits 1 cluster.json -o chosen
    expect_text err 'UCX lost rank [0-9].*UCX_NET_DEVICES is docker0'
    for name in "${ns[@]}"; do
        ip -n "$name" link del docker0
        ip -n "$name" link del vx
    done
}

# Room for the buffers of UCX, not for a rank's weights.
test_too_little_shared_memory_for_ucx_is_told() {
    [ -e "$RF_BUILD_DIR/refit-ucx.so" ] || return 0
    printf '#!/bin/sh\nmount -t tmpfs -o size=40m none /dev/shm && exec "%s" "$@"\n' \
        "$coord" >inside
    printf '#!/bin/sh\nexec unshare --mount ./inside "$@"\n' >small
    chmod +x inside small
    base=$four_slots cluster ".launch.worker = \"$worker\" | "'.scenarios = [{name: "a",
        method: "ucx", mode: "disaggregated", train: {tp: 2}, infer: {tp: 2},
        warmup: 0, iterations: 1}] | .model = {megatron: {num_layers: 1,
        hidden_size: 512, num_attention_heads: 8, vocab_size: 81920}}'
    coord=./small run_coord check cluster.json
    expect_exit 0
    expect_text out '^W a: .* has 4[0-9.]+ MB of shared memory .*shm-size'
    coord=./small run_coord cluster.json -o tight
    expect_exit 0
    expect_json "$(echo tight/*/a.json)" '.flags | contains(["unmapped"])'
    expect_text out '^no room in /dev/shm .*: a \(messages by posix'
    run_coord check cluster.json
    expect_no_text out 'of shared memory'
    run_coord cluster.json -o roomy
    expect_json "$(echo roomy/*/a.json)" '.flags | contains(["unmapped"]) | not'
}

run_tests
