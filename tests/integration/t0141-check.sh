#!/bin/bash
# What `check` says of nodes that cannot do what cluster.json wants of them, and
# where `run` says the same.
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base='{
  "name": "t", "launch": {"method": "local", "timeout_s": 20},
  "nodes": [{"host": "a", "slots": 1}, {"host": "b", "slots": 1}],
  "model": {"megatron": {"num_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "vocab_size": 128}},
  "scenarios": [{"name": "x", "train": {"tp": 2}, "infer": {"tp": 2}},
    {"name": "y", "train": {"pp": 2}, "infer": {"tp": 2}}]}'

# Scenario x moves nothing between the nodes.
test_an_address_of_another_machine_is_an_error_where_ranks_listen() {
    cluster '.nodes[1].address = "198.51.100.7"'
    coord_exits 4 check cluster.json
    expect_text out '^E y: b .*198\.51\.100\.7 \(\$\.nodes\[1\]\.address\)'
    expect_text out '^W x: b .*198\.51\.100\.7 .*no rank of this scenario listens'
    expect_text out '^1 error, '
    coord_exits 0 check cluster.json -s x
    expect_no_text out '^E '
    cluster '.nodes[1].address = "198.51.100.7" | .scenarios |= .[:1] |
        .scenarios[0] += {warmup: 0, iterations: 1}'
    coord_exits 0 check cluster.json
    coord_exits 0 cluster.json
    expect_verified "$(result x)"
}

# As a login shell with long start-up files.
test_a_slow_start_says_which_part_took_long() {
    cluster '.nodes |= .[:1] | .nodes[0].slots = 2 | .launch.wrap = ["sh", "-c",
        "sleep 2; exec \"$@\"", "-"]'" | .launch.worker = \"$worker\""
    coord_exits 0 check cluster.json
    expect_text out '^W a: took [0-9.]+ s to start: .*, [2-9][0-9.]* s until the worker answered .*start-up files'
}

# One line per machine and number of ranks, which names the scenarios.
test_too_many_ranks_for_the_processors_are_a_warning() {
    local slots=$((2 * $(nproc) + 2))
    cluster ".nodes[].slots = $((slots / 2)) | .scenarios[].train = {tp: 2} |
        .scenarios[].infer = {tp: 2}"
    coord_exits 0 check cluster.json
    expect_text out "^W x, y: $slots ranks share the .* of a: .*use at most $((slots - 2)) ranks"
    [ "$(grep -c 'ranks share' out)" = 1 ] || fail "told more than once"
    cluster ".nodes[].slots = $((slots / 2 - 1)) |
        .scenarios[].train = {tp: 2} | .scenarios[].infer = {tp: 2}"
    run_coord check cluster.json
    expect_no_text out 'ranks share'
}

test_names_of_one_machine_are_a_warning() {
    cluster
    coord_exits 0 check cluster.json
    expect_text out '^W cluster: a, b are 2 nodes on one machine'
}

test_a_missing_worker_is_told_once_with_its_cause_first() {
    printf '#!/bin/sh\necho no such thing >&2\nexit 127\n' >absent
    chmod +x absent
    cluster ".launch.worker = \"$PWD/absent\""
    coord_exits 4 check cluster.json
    expect_text out '^E [ab], [ab]: the worker ".*absent" was not found \(status 127\)'
    expect_text out '^1 error, '
}

# The worker with another version in the place of its own.
old_worker() {
    local version
    version=$("$coord" --version | sed -n 's/^refit-coord \([^ ]*\) .*/\1/p')
    LC_ALL=C sed "s/${version//./\\.}/${version//[0-9]/7}/g" \
        "$RF_BUILD_DIR/refit-worker" >old-worker
    chmod +x old-worker
    expected="its worker is ${version//[0-9]/7} \(.*\), refit-coord is $version "
}

test_workers_of_another_build_are_a_warning() {
    local expected
    old_worker
    cluster ".launch.worker = \"$PWD/old-worker\" | .scenarios |= .[:1] |
        .scenarios[0] += {warmup: 0, iterations: 1}"
    coord_exits 0 check cluster.json
    expect_text out "^W a, b: $expected.*launch\.deploy"
    coord_exits 0 cluster.json
    expect_text err "^warning: [ab], [ab]: $expected.*launch\.deploy"
    [ "$(grep -c 'its worker is' err)" = 1 ] || fail "not told once"
}

test_a_worker_of_another_build_is_told_when_the_launch_fails() {
    local expected
    old_worker
    printf '#!/bin/sh\nmkdir first 2>/dev/null && exec ./old-worker "$@"\n%s\n' \
        'exit 127' >one-of-two
    chmod +x one-of-two
    cluster ".launch.worker = \"$PWD/one-of-two\""
    coord_exits 4 cluster.json
    expect_text err "^warning: [ab]: $expected.*launch\.deploy"
    expect_text err '^error: [ab]: .*was not found'
}

test_workers_of_another_build_are_refused_when_strict() {
    local expected
    old_worker
    cluster ".launch.worker = \"$PWD/old-worker\""
    coord_exits 4 check --strict cluster.json
    expect_text out "^E a, b: $expected"
    coord_exits 4 cluster.json --strict
    expect_text err "^error: [ab], [ab]: $expected"
    if compgen -G 'results/*' >&2; then fail "a folder of results"; fi
    cluster '.scenarios |= .[:1]'
    coord_exits 0 check --strict cluster.json
}

# A run that waits for its workers holds the port.
test_a_busy_port_is_told_once_with_advice() {
    local port
    cluster '.launch.method = "manual" | .control.address = "127.0.0.1"'
    start_coord cluster.json
    at_exit "kill $coord_pid 2>/dev/null"
    wait_until 10 "the port is told" grep -qE '127\.0\.0\.1:[0-9]+' err
    port=$(grep -oE '127\.0\.0\.1:[0-9]+' err | sed -n '1s/.*://p')
    cluster ".control = {address: \"127.0.0.1\", port: $port}"
    "$coord" check cluster.json >out2 2>err2 </dev/null
    status=$?
    kill -INT "$coord_pid"
    wait "$coord_pid"
    cat err2 >&2
    expect_exit 0
    [ "$(grep -c 'cannot listen' err2)" = 1 ] || fail "not told once"
    expect_text err2 'set control\.port to 0 for a free one'
}

test_a_signal_ends_a_check_with_its_code() {
    local signal code
    cluster '.launch.method = "manual" | .control.address = "127.0.0.1"'
    for signal in INT:130 TERM:143 HUP:129; do
        code=${signal#*:}
        rm -f err
        start_coord check cluster.json
        at_exit "kill $coord_pid 2>/dev/null"
        wait_until 10 "the port is told" grep -qE '127\.0\.0\.1:[0-9]+' err
        kill "-${signal%:*}" "$coord_pid"
        wait "$coord_pid"
        status=$?
        expect_exit "$code"
        expect_text err 'stopped by a signal before the nodes were checked'
    done
}

test_a_signal_that_was_ignored_stays_ignored() {
    cluster '.launch.method = "manual" | .control.address = "127.0.0.1"'
    nohup "$coord" check cluster.json >out 2>err </dev/null &
    coord_pid=$!
    at_exit "kill $coord_pid 2>/dev/null"
    wait_until 10 "the port is told" grep -qE '127\.0\.0\.1:[0-9]+' err
    kill -HUP "$coord_pid"
    kill -INT "$coord_pid" # ignored by a background job
    kill -TERM "$coord_pid"
    wait "$coord_pid"
    status=$?
    expect_exit 143
    # A second signal would have ended it without a word.
    expect_text err 'stopped by a signal before the nodes were checked'
}

run_tests
