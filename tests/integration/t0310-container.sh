#!/bin/bash
# launch.wrap: workers in a root folder and a PID namespace of their own, as in
# a container without root.
# limit: 120
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

# shellcheck disable=SC2016 # is expanded there
inside='mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" &&'
inside+=' exec chroot "$0" "$@"'

# A folder with the worker and what it links, and what to start it with.
container() {
    local library
    mkdir -p root/proc root/dev root/tmp
    cp "$worker" root/refit-worker
    ldd "$worker" | grep -o '/[^ ]*' | while read -r library; do
        mkdir -p "root$(dirname "$library")"
        cp -L "$library" "root$library"
    done
    enter=(unshare --user --map-root-user --mount --pid --fork
        sh -c "$inside" "$PWD/root")
}
container_cluster() { # JQ_FILTER
    cluster ".launch.worker = \"/refit-worker\" |
        .launch.wrap = $(printf '%s\n' "${enter[@]}" | jq -R . | jq -sc .) |
        ${1:-.}"
}

base=$(jq '. + {scenarios: [{"name": "s", "train": {"tp": 2, "pp": 2},
    "infer": {"tp": 4}, "warmup": 0, "iterations": 2}]}' <<<"$four_slots")

unshare --user --map-root-user --mount --pid --fork --mount-proc true \
    2>/dev/null || skip_all "no user namespaces here"

test_a_refit_between_ranks_of_a_container_is_verified() {
    container
    container_cluster
    coord_exits 0 cluster.json
    expect_verified "$(result s)"
    expect_json "$(echo results/*/run.json)" \
        '.configuration.launch.wrap[0] == "unshare"'
}

test_a_container_is_entered_over_ssh() {
    command -v sshd >/dev/null || [ -x /usr/sbin/sshd ] || skip "no sshd"
    container
    container_cluster
    "$RF_TOP/scripts/private-sshd" "$RF_BUILD_DIR" cluster.json >out 2>err
    status=$?
    cat out err >&2
    expect_exit 0
    expect_verified "$(result s)"
    wait_until 20 "all workers have left the container" nobody_in_root
}

test_ranks_end_with_a_killed_coordinator() {
    container
    container_cluster '.scenarios[0].iterations = 100000'
    start_coord -vv cluster.json
    wait_until 60 "an iteration" grep -qs -- 'verifying -> filling$' err
    ! nobody_in_root || fail "nobody is in the container"
    kill -KILL "$coord_pid"
    finish_coord
    expect_exit 137
    wait_until 20 "all workers have left the container" nobody_in_root
}
nobody_in_root() {
    [ -z "$(find /proc/[0-9]*/root -maxdepth 0 -lname "$PWD/root" 2>/dev/null)" ]
}

test_a_wrap_without_standard_input_is_named() {
    cluster ".launch.wrap = [\"sh\", \"-c\", \"exec \\\"\$@\\\" </dev/null\", \"-\"] |
        .launch.worker = \"$worker\""
    coord_exits 4 cluster.json
    expect_text err 'launch\.wrap must pass on standard input'
}

test_a_wrap_that_finds_no_worker_is_named() {
    container
    rm root/refit-worker
    container_cluster
    coord_exits 4 cluster.json
    expect_text err 'launch\.wrap .*status 127.*"/refit-worker"'
    cluster '.launch.wrap = ["no-such-program"]'
    coord_exits 4 cluster.json
    expect_text err 'no-such-program'
}

test_a_wrap_is_a_list_of_words() {
    local wrap
    for wrap in '[]' '"docker exec"' '[1]' '[""]' '["a\nb"]'; do
        cluster ".launch.wrap = $wrap"
        coord_exits 2 check cluster.json
        expect_text err '\$\.launch\.wrap.* must be a '
    done
    cluster '.launch.wrap = ["a-{host}"] | .launch.method = "slurm"'
    SLURM_JOB_ID=1 coord_exits 2 check cluster.json
    expect_text err '\$\.launch\.wrap\[0\].*"\{host\}" does not work with .*slurm'
}

run_tests
