#!/bin/bash
# What keeps a node from being reached: exit 4, one error that names the node,
# within the time limit, nothing left anywhere.
# limit: 240
# waits
# shellcheck source=../lib/testbed.sh disable=SC2034
. "$(dirname "$0")/../lib/testbed.sh"

bed_up --hosts 2 --slots 2
second=${host[1]}
base=$(jq '. + {name: "t",
  model: {megatron: {num_layers: 2, hidden_size: 64, num_attention_heads: 4,
    vocab_size: 128}},
  scenarios: [{name: "a", mode: "colocated", train: {tp: 4}, infer: {tp: 2},
    iterations: 1}]} | .launch.timeout_s = 5' <<<"$part")

# Runs the cluster file changed by the program; expects exit 4 within 30 s, the
# second host named, the text, and no worker left.
launch_fails() { # JQ_PROGRAM REGEX
    local started=$SECONDS
    own_worker
    cluster ".launch.worker = \"$worker\" | $1"
    coord_exits 4 cluster.json
    [ $((SECONDS - started)) -le 30 ] || fail "took $((SECONDS - started)) s"
    expect_text err "$second"
    grep -qiE -- "$2" err || fail "the error does not say: $2"
    wait_until 20 "no process is left" no_workers
}

test_unknown_host_key() {
    grep -v "^$second " "$bed/known_hosts" >known
    launch_fails ".launch.known_hosts = \"$PWD/known\"" \
        'host key of .* is unknown: .*SHA256:.*known \(launch\.known_hosts\)\. .*ssh-keyscan'
    [ "$(wc -l <known)" = 1 ] || fail "known_hosts was changed"
}

test_changed_host_key() {
    ssh-keygen -q -t ed25519 -N '' -f other
    grep -v "^$second " "$bed/known_hosts" >known
    echo "$second $(cut -d' ' -f1,2 other.pub)" >>known
    launch_fails ".launch.known_hosts = \"$PWD/known\"" \
        'host key of .* has changed: .*ssh-keygen -R'
}

test_user_key_that_the_node_does_not_know() {
    ssh-keygen -q -t ed25519 -N '' -f other
    launch_fails ".nodes[1].identity = \"$PWD/other\"" \
        'no key accepted for user root; tried .*/other \(nodes\[1\]\.identity, refused\).*ssh -v'
}

# One line for all nodes that lack the same key, not one for each.
test_nodes_without_a_key_are_told_together() {
    cluster '.nodes |= map(del(.identity)) | .launch.worker = "none"'
    HOME=$PWD SSH_AUTH_SOCK='' run_coord check cluster.json
    expect_exit 4
    expect_text out '^E .*, .*no key accepted .*nodes\.\*\.identity'
    expect_text out '^1 error, '
}

test_missing_key_file() {
    launch_fails ".nodes[1].identity = \"$PWD/absent\"" \
        'no key accepted .*/absent \(nodes\[1\]\.identity, No such file or directory\)'
}

test_worker_that_is_not_there() {
    launch_fails '.launch.worker = "/nonexistent/refit-worker"' \
        'worker "/nonexistent/refit-worker" was not found .*launch\.(worker|deploy)'
}

test_worker_that_is_another_program() {
    launch_fails '.launch.worker = "/bin/true"' \
        'ended without an answer from a worker.*launch\.worker'
}

# A copy of the worker whose ELF header names another machine.
foreign_worker() {
    cp "$RF_BUILD_DIR/refit-worker" foreign
    printf '\x34\x12' | dd of=foreign bs=1 seek=18 conv=notrunc status=none
}

test_worker_for_another_machine() {
    foreign_worker
    launch_fails ".launch.worker = \"$PWD/foreign\"" \
        'worker ".*/foreign" cannot be executed .*another machine .*uname -m'
}

# To the coordinator a shell that is busy with its start-up files is a worker that
# says nothing, or only what such files print.
test_shell_that_does_not_get_to_the_worker() {
    printf '#!/bin/sh\necho welcome\ncat >/dev/null\n' >busy
    chmod +x busy
    launch_fails ".launch.worker = \"$PWD/busy\" | .launch.timeout_s = 1" \
        'did not answer within 11 s .*slow .*login shell.*launch\.timeout_s'
    coord_exits 4 cluster.json --timeout 3
    expect_text err 'did not join within [0-9]+ s.*slow .*login shell'
    coord_exits 4 check cluster.json --timeout 3
    expect_text out 'did not join within 3 s.*slow .*login shell'
}

test_closed_port() {
    launch_fails '.nodes[1].port = 9' \
        'cannot connect to .* port 9: .*Connection refused .*nodes\[1\]\.host and nodes\[1\]\.port'
}

# The kernel accepts connections for a stopped sshd; no banner ever comes.
test_port_that_never_says_anything() {
    local sshd
    sshd=$(<"$bed/host2/sshd.pid")
    kill -STOP "$sshd"
    (launch_fails . 'banner: not done within 5 s \(launch\.timeout_s\)')
    status=$?
    kill -CONT "$sshd"
    expect_exit 0
}

test_unreachable_address() {
    "$testbed" partition 2 on --dir "$bed"
    (launch_fails . 'no success within 5 s \(launch\.timeout_s\): cannot connect')
    status=$?
    "$testbed" partition 2 off --dir "$bed"
    expect_exit 0
}

# The host's home is a file system of this kind, which is prepared so.
home_fails() { # OPTIONS COMMAND REGEX
    local inside=(nsenter -t "$(<"$bed/host2/sshd.pid")" -m)
    "${inside[@]}" mount -t tmpfs -o "$1" tmpfs "$bed/host2/home"
    (
        "${inside[@]}" sh -c "cd $bed/host2/home && $2"
        launch_fails '.launch.deploy = true' "$3"
    )
    status=$?
    "${inside[@]}" umount "$bed/host2/home"
    expect_exit 0
}

test_homes_where_the_worker_cannot_be_copied() {
    local home=$bed/host2/home
    home_fails size=99m,noexec : \
        "launch\\.deploy copied cannot be executed .*noexec.*$home/\\.cache.*ermission denied"
    home_fails size=1m : "cannot write $home/\\.cache/.*: the file system of .* is full"
    home_fails nr_inodes=3 'touch a' \
        "cannot make the folder $home/\\.cache/refit-coord: the file system of .* no inodes"
    home_fails nr_inodes=9 "mount -o remount,ro $home" \
        "cannot make the folder $home/\\.cache: the file system of $home is read-only"
}

# A user id that nobody has given out, as in some containers: ssh(1) refuses to
# run then.
test_head_without_a_passwd_entry() {
    cp "$coord" "$worker" "$bed/id_ed25519" "$bed/known_hosts" .
    chmod 711 "$work"
    chown -R 12345 .
    printf '#!/bin/sh\nexec setpriv --reuid=12345 --regid=12345 %s %s "$@"\n' \
        --clear-groups "$PWD/refit-coord" >as
    chmod 755 as
    coord=$PWD/as
    cluster ".launch = {method: \"ssh\", known_hosts: \"$PWD/known_hosts\",
        worker: \"$RF_BUILD_DIR/refit-worker\"} |
        .nodes |= [.[1] | del(.user) | .identity = \"$PWD/id_ed25519\"] |
        .scenarios[0].train.tp = 2"
    coord_exits 4 cluster.json
    expect_text err "no user name for $second: set nodes\\[0\\]\\.user"
    coord_exits 0 cluster.json --set nodes.0.user=root
    expect_text err 'ssh config not read: ssh\(1\).* passwd entry'
    HOME=/ coord_exits 4 cluster.json --set launch.method=manual --timeout 2
    expect_text err 'needs a HOME other than /, or XDG_CACHE_HOME'
}

# The Domain Name System has no such names; host files do.
test_host_with_an_underscore() {
    printf '%s node_a\n' "$second" | cat /etc/hosts - >hosts
    echo "node_a $(cut -d' ' -f1,2 "$bed/host2/host_key.pub")" |
        cat "$bed/known_hosts" - >known
    cat >inside <<END
#!/bin/sh
mount --bind '$PWD/hosts' /etc/hosts && exec '$coord' "\$@"
END
    chmod 755 inside
    own_worker
    cluster ".launch.known_hosts = \"$PWD/known\" | .nodes[1].host = \"node_a\"
        | .launch.worker = \"$worker\""
    unshare --mount ./inside cluster.json >out 2>err
    status=$?
    cat out err >&2
    expect_exit 0
    expect_verified "$(result a)"
}

run_tests
