# Networks that go away, and strangers on ports that are not theirs.
# shellcheck shell=bash disable=SC2034,SC2154

attack=$RF_BUILD_DIR/faults/attack

partition() { # on|off
    "$testbed" partition 2 "$1" --dir "$RF_FAULTS_BED" || fail "no partition"
}

# The second host is cut off without a word, in STATE.
cut_off_in() { # STATE
    use_world ssh
    hold_in "$1"
    at_end_of_case "partition off"
    cut_off_at=${EPOCHREALTIME/./}
    partition on
    go_on
    open_gate
}

# Shorter than the lease: the run goes on as if nothing had been.
case_flap() { # STATE SECONDS
    cut_off_in "$1"
    outage "$2"
    [ ! -e control/status ] || missed "the run was over before it was back"
    partition off
    if [ $((${EPOCHREALTIME/./} - cut_off_at)) -gt $((($2 + 2) * 1000000)) ]; then
        missed "this machine was too slow: the network was away for longer"
    fi
    finish_within 90
    expect_unharmed
    expect_whole_results
    expect_nothing_left
}

# For good: both sides end by themselves, without a way to tell each other.
case_partition() { # STATE
    cut_off_in "$1"
    victim_host=${host[1]//./[.]}
    finish_within 120
    if has_not_begun "$state"; then
        expect_exit_in 1 4
        expect_complaint "$victim_host: "
    else
        expect_exit 1
        expect_kept
        expect_named
    fi
    expect_whole_results
    expect_nothing_left 60
}

# --- Strangers -----------------------------------------------------------------

# "ADDRESS PORT" of each port that a process listens on.
ports_of() { # PID
    ss -Hltnp | sed -nE "s/^LISTEN +[0-9]+ +[0-9]+ +([0-9.]+):([0-9]+) .*pid=$1,.*/\1 \2/p"
}

is_listening() { # PID
    [ -n "$(ports_of "$1")" ]
}

start_attack() { # KIND CONNECTIONS SECONDS
    "$attack" "$1" "$address" "$port" "$2" "$3" >strangers &
    attack_pid=$!
    at_end_of_case "kill $attack_pid 2>/dev/null"
}

# A run that waits for its second node while strangers come.
wait_with_listener() {
    use_world local
    gate
    cluster '.scenarios |= .[:1]'
    start_coord cluster.json -vv
    at_end_of_case "kill -KILL $coord_pid 2>/dev/null"
    wait_until 60 "a node that has joined" grep -q ' joined over ' err
    is_listening "$coord_pid" || fail "no port is open"
    read -r address port < <(ports_of "$coord_pid")
}

# Over the listener, not over the launcher's stream, which nodes fall back to.
joins_all_the_same() {
    open_gate
    wait_until 20 "all have joined" grep -q 'launching -> starting' err
    wait_until 90 "the coordinator's end" eval '! start_time "$coord_pid" >/dev/null'
    finish_coord >/dev/null 2>&1
    grep -vE 'trace:|debug:' err | sed 's/^/  err: /' >&2
    expect_unharmed
    expect_whole_results
    expect_json "$(result one)" '.environment | all(.control == "tcp")'
    expect_nothing_left
}

case_listener_attack() { # KIND CONNECTIONS SECONDS
    wait_with_listener
    start_attack "$@"
    wait_until 60 "a connection" eval \
        '[ -n "$(ss -Htn dport = "$port" dst "$address")" ] || [ -s strangers ]'
    joins_all_the_same
    # Whatever they say, it fits on a screen.
    [ "$(grep -c 'refused a connection' err)" -le 20 ] || fail "too many words"
}

# TLS with a key that is not the node's, or none, or another version.
case_listener_tls() { # OPTION...
    local id
    wait_with_listener
    id=$(jq -r .run_id results/*/run.json)
    if timeout 10 openssl s_client -connect "$address:$port" \
        "${@//IDENTITY/$id/1}" </dev/null >tls 2>&1; then
        fail "a stranger is let in"
    fi
    grep -q CONNECTED tls || fail "no connection: $(<tls)"
    joins_all_the_same
}

# Rank 1 waits for rank 0, which stands still for now, and meets strangers.
case_data_attack() { # METHOD KIND CONNECTIONS
    use_world local
    hold_in preparing ".scenarios[].method = \"$1\""
    wait_for_victim "rank 0" rank_is_there 0
    sleeper=$victim
    thawed_at_end+=("$sleeper")
    kill -STOP "$sleeper"
    wait_for_victim "rank 1" rank_is_there 1
    go_on
    wait_for_victim "rank 1's port" is_listening "$victim"
    read -r address port < <(ports_of "$victim")
    start_attack "$2" "$3" 8
    wait_until 60 "strangers" eval '[ -n "$(ss -Htn dport = "$port")" ]'
    kill -CONT "$sleeper"
    finish_within 90
    expect_unharmed
    expect_whole_results
    expect_nothing_left
}
