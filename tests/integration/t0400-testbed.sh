#!/bin/bash
# Runs over SSH to three hosts of a test bed: contents, interface counters.
# limit: 300
# waits
# shellcheck source=../lib/testbed.sh disable=SC2034
. "$(dirname "$0")/../lib/testbed.sh"

bed_up --hosts 3 --slots 2 --worker "$worker"

# 32 MiB of weights and more: transfers must be long beside what else crosses.
base=$(jq '. + {
  name: "t",
  model: {megatron: {num_layers: 8, hidden_size: 1024, num_attention_heads: 16,
    num_query_groups: 8, ffn_hidden_size: 3072, vocab_size: 16384,
    swiglu: true}},
  scenarios: [
    {name: "split", mode: "disaggregated",
     train: {nodes: [.nodes[0].host, .nodes[1].host], tp: 2, pp: 2},
     infer: {nodes: [.nodes[2].host], tp: 2}, warmup: 0, iterations: 2},
    {name: "colocated", mode: "colocated", train: {tp: 2}, infer: {tp: 6, layout: "hf"},
     warmup: 0, iterations: 2}
  ]}' <<<"$part")

test_commands_on_a_host_see_its_name() {
    local name
    name=$("$testbed" exec 2 --dir "$bed" -- hostname)
    [[ $name =~ ^rf[0-9a-f]{6}-2$ ]] || fail "host 2 is called $name"
    [ "$(hostname)" != "$name" ] || fail "this machine was renamed"
}

test_a_folder_that_cannot_be_made_says_why() {
    refuses() { # FOLDER TEXT
        "$testbed" up --hosts 1 --dir "$1" >out 2>err && fail "it came up"
        expect_text err "$2"
    }
    mkdir other
    refuses other 'other exists and is no test bed; choose another folder'
    refuses "$bed" "$bed is a test bed: end it with .*down --dir $bed\""
    refuses none/new 'none/new.*: No such file .*; choose another folder'
}

test_disaggregated_over_three_hosts() {
    cluster
    coord_exits 0 cluster.json -s split
    expect_verified "$(result split)"
    expect_json "$(result split)" '.plan.bytes_inter_node == .plan.bytes_total'
    expect_json "$(result split)" '.environment | length == 3 and
        all(.control == "tcp")'
}

# With a .ssh in which the README's nodes are two hosts of the test bed.
test_the_commands_for_ssh_in_the_readme_work() {
    local home
    home=$(getent passwd root | cut -d: -f6)
    mkdir ssh
    if mkdir "$home/.ssh" 2>/dev/null; then at_exit 'rmdir ~root/.ssh'; fi
    jq -r --arg hosts "$(jq -r .launch.known_hosts <<<"$part")" '
        .nodes[:2] | to_entries[] |
        "Host node-\(if .key == 0 then "a" else "b" end)",
        "HostName \(.value.hostname // .value.host)", "Port \(.value.port // 22)",
        "User \(.value.user)", "IdentityFile \(.value.identity)",
        "UserKnownHostsFile \($hosts)"' <<<"$part" >ssh/config
    grep '^    build/refit-coord .*node-a.*launch.deploy' "$RF_TOP/README.md" \
        >commands
    [ "$(wc -l <commands)" = 2 ] || fail "not two commands"
    # With fewer refits, of fewer bytes.
    sed -i 's/$/ --set model.vocab_size=1024 --set defaults.iterations=1/' commands
    ln -s "$RF_BUILD_DIR" build
    ln -s "$RF_TOP/examples" "$RF_TOP/models" .
    unshare --mount sh -ec \
        'mount --bind ssh "$1/.ssh"; . ./commands' sh "$home" >out 2>err
    status=$?
    cat commands ssh/config out err >&2
    expect_exit 0
    expect_verified "$(result split-strategy=send_recv)"
    expect_verified "$(result split-strategy=broadcast)"
}

sent_bytes() { # by all hosts together
    "$testbed" counters --dir "$1" | jq '[.[].tx_bytes] | add'
}

# Two runs that differ only in the number of iterations: what start-up, probes
# and control cost is in both. The probes' bytes depend on the rate, so the
# links of this bed have a fixed one.
test_interface_counters_agree_with_the_plan() {
    local before middle after grown planned slow=$PWD/slow
    base=$(jq --argjson new "$("$testbed" up --hosts 3 --rate 500mbit \
        --worker "$worker" --dir "$slow")" '
        . + $new | .scenarios |= .[:1] | .model.megatron.num_layers = 2 |
        .scenarios[0].train.nodes = [.nodes[0].host, .nodes[1].host] |
        .scenarios[0].infer.nodes = [.nodes[2].host]' <<<"$base")
    before=$(sent_bytes "$slow")
    cluster '.scenarios[0].iterations = 1'
    run_coord cluster.json -o few
    [ "$status" = 0 ] || { "$testbed" down --dir "$slow"; expect_exit 0; }
    middle=$(sent_bytes "$slow")
    cluster '.scenarios[0].iterations = 6'
    run_coord cluster.json -o many
    after=$(sent_bytes "$slow")
    "$testbed" down --dir "$slow"
    expect_exit 0
    # A refit, and its yardstick with as many bytes.
    planned=$(jq '.plan.bytes_inter_node * 2' many/*/split.json)
    grown=$(((after - middle - (middle - before)) / 5))
    echo "planned $planned, grown $grown bytes an iteration" >&2
    [ $((grown * 100)) -le $((planned * 106)) ] || fail "more than planned"
    [ $((grown * 100)) -ge $((planned * 94)) ] || fail "less than planned"
}

test_colocated_over_three_hosts() {
    cluster '.scenarios |= [{name: "colocated", mode: "colocated",
        train: {tp: 2}, infer: {tp: 1, pp: 2}, warmup: 0, iterations: 2}]'
    coord_exits 0 cluster.json
    expect_verified "$(result colocated)"
}

test_every_method_that_crosses_hosts_is_verified() {
    cluster '.scenarios |= .[:1] | .scenarios[0].method = ["host", "tcp"] |
        .scenarios[0].iterations = 1'
    coord_exits 0 cluster.json
    local file
    for file in results/*/split*.json; do
        expect_verified "$file"
    done
}

# The neighbour of a rank that gave up can only say so.
test_ranks_that_cannot_connect_are_named_and_no_others() {
    ip netns exec "${ns[0]}" ip route add unreachable "${host[2]}"
    cluster '.scenarios |= [.[0] | .train = {nodes: [.train.nodes[0]], tp: 2}]'
    run_coord cluster.json
    ip netns exec "${ns[0]}" ip route del unreachable "${host[2]}"
    expect_exit 1
    expect_text err 'error: .*: rank [01]: method host: connect to rank .*: No route'
    [ "$(grep 'error: ' err | grep -vc ': No route')" = 0 ] || fail "another error"
    expect_json "$(result split)" '.errors[0].text | test("No route")'
}

test_the_worker_can_be_deployed() {
    cluster '.scenarios |= .[:1] | .launch.deploy = true |
        .launch.worker = "refit-worker" | .scenarios[0].iterations = 1'
    coord_exits 0 cluster.json
    expect_verified "$(result split)"
}

test_control_falls_back_to_ssh_where_nodes_cannot_connect() {
    # An address that the nodes cannot reach is all that they get.
    cluster '.scenarios |= .[:1] | .control.address = "127.0.0.1" |
        .scenarios[0].iterations = 1'
    coord_exits 0 cluster.json
    expect_verified "$(result split)"
    expect_json "$(result split)" '.environment | all(.control == "stdio")'
}

# Routers may announce an address that a host has on its loopback interface.
test_the_probe_tells_announced_addresses() {
    # shellcheck disable=SC2016
    unshare -n sh -c 'ip link set lo up &&
        ip address add 10.99.0.7/32 dev lo && exec "$1" --probe' \
        sh "$worker" >probe.json || fail "no probe"
    expect_json probe.json '[.nics[] | [.address, .physical]] ==
        [["10.99.0.7", null]]'
}

# Paths in a suite are relative to it, also those of scenarios' own models.
test_a_suite_on_a_test_bed_finds_its_files() {
    mkdir -p top/examples
    cp -r "$RF_TOP/scripts" top/
    cp "$RF_TOP/models/qwen3-0.6b.json" top/examples/own.config
    jq '.nodes[0].host = "host1" | .scenarios = [{name: "a", train: {tp: 2},
        infer: {tp: 4}, model: [{config: "own.config"}]}]' \
        <<<"$four_slots" >top/examples/own.json
    BUILD=$RF_BUILD_DIR top/scripts/refit-suite own --testbed -- -n \
        >out 2>err || fail "exit $?: $(cat err)"
    expect_text out '^scenario a-model=own.config'
}

run_tests
