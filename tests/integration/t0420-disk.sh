#!/bin/bash
# Method disk where folders are not shared or too small. Needs root: each agent
# gets file systems of its own.
# limit: 120
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

[ "$(id -u)" = 0 ] || skip_all "needs root"
unshare -m true 2>/dev/null || skip_all "no mount namespaces here"
unshare -m mount -t tmpfs none /mnt 2>/dev/null || skip_all "cannot mount"

base='{
  "name": "t", "launch": {"method": "local"},
  "nodes": [{"host": "alpha", "slots": 2}, {"host": "beta", "slots": 2}],
  "model": {"megatron": {"num_layers": 4, "hidden_size": 256,
    "num_attention_heads": 8, "ffn_hidden_size": 512, "vocab_size": 4096}},
  "scenarios": [
    {"name": "disk", "method": "disk", "train": {"tp": 4}, "infer": {"tp": 2},
     "warmup": 0, "iterations": 2}
  ]}'

# A cluster whose agents run after COMMAND in mount namespaces of their own;
# the folder is $PWD/disk.
cluster_with() { # COMMAND [JQ_PROGRAM]
    mkdir disk
    printf '#!/bin/sh\n%s\nexec %q "$@"\n' "$1" "$worker" >inside
    printf '#!/bin/sh\nexec unshare -m %q "$@"\n' "$PWD/inside" >wrapper
    chmod +x inside wrapper
    cluster ".launch.worker = \"$PWD/wrapper\"
        | .defaults.disk = {folder: \"$PWD/disk\"} | ${2-.}"
}

# A disk of 1 MB in the folder until the test ends.
small_disk() {
    mount -t tmpfs -o size=1m none disk || fail "cannot mount"
    # shellcheck disable=SC2064 # this folder
    trap "umount '$PWD/disk'" EXIT
}

expect_nothing_left() {
    [ -z "$(ls -A disk)" ] || fail "left behind: $(ls -A disk)"
}

test_a_folder_that_is_not_shared_is_refused_before_ranks_start() {
    cluster_with "mount -t tmpfs none '$PWD/disk'"
    coord_exits 4 cluster.json
    expect_text err "$PWD/disk is not shared by all nodes: .* alpha .* beta"
    expect_json "$(result disk)" '.status == "failed"
        and (.errors | length) == 1 and .errors[0].phase == "starting"'
}

test_check_tells_of_a_folder_that_is_not_shared() {
    cluster_with "mount -t tmpfs none '$PWD/disk'"
    coord_exits 4 check cluster.json
    expect_text out "^E disk: .*$PWD/disk is not shared by all nodes"
}

test_a_missing_folder_is_refused_with_the_host() {
    cluster_with : ".scenarios[].disk.folder = \"$PWD/missing\""
    coord_exits 4 cluster.json
    expect_text err "folder $PWD/missing on alpha: No such file"
}

test_a_shared_folder_is_used_and_left_empty() {
    cluster_with :
    coord_exits 0 cluster.json
    expect_verified "$(result disk)"
    expect_nothing_left
    coord_exits 0 check cluster.json
    expect_nothing_left
}

# The others of the run go on, where they do not need the folder.
test_a_disk_that_fills_up_fails_its_scenario_only() {
    cluster_with : '.scenarios += [.scenarios[0] | .name = "host"
        | .method = "host"]'
    small_disk
    coord_exits 1 cluster.json
    expect_nothing_left
    expect_json "$(result disk)" '.status == "failed"'
    expect_json "$(result disk)" ".errors[0].text
        | test(\"$PWD/disk .* free.*No space left\")"
    expect_verified "$(result host)"
}

test_a_disk_that_fills_up_on_one_node() {
    cluster_with : '.nodes = [{host: "alpha", slots: 4}]'
    small_disk
    coord_exits 1 cluster.json
    expect_nothing_left
    expect_text err 'No space left'
}

# --- Nodes of two users ---------------------------------------------------------

# alpha's agent does what COMMAND says and is of user ALPHA, beta's of 12345.
cluster_of_users() { # ALPHA COMMAND MODE
    chmod 711 "$work"
    own_worker
    mkdir -m "$3" disk
    cat >as <<END
#!/bin/sh
user=12345
if [ "\$1" = alpha ]; then
    user=$1
    $2
fi
shift
exec setpriv --reuid=\$user --regid=\$user --clear-groups "\$@"
END
    chmod +x as
    cluster ".launch += {worker: \"$worker\", wrap: [\"./as\", \"{host}\"]}
        | .defaults.disk = {folder: \"$PWD/disk\"}"
}

test_a_folder_of_another_user_is_refused_with_its_owner_and_mode() {
    cluster_of_users 0 : 755
    coord_exits 4 check cluster.json
    expect_text out "^E disk: .*folder $PWD/disk on beta: Permission denied .of uid \
0, mode 0755; this is uid 12345"
}

test_files_of_another_user_are_found_out_before_ranks_start() {
    cluster_of_users 12346 : 1777
    coord_exits 4 check cluster.json
    expect_text out "^E disk: .*folder $PWD/disk on (alpha|beta): files of other \
nodes: Permission denied .of uid 1234[56], mode 0600; this is uid 1234[56]"
    expect_no_text out 'not shared'
    expect_nothing_left
}

# Root may read what the other has made, but not the other way round.
test_files_of_root_are_named_with_their_owner_and_mode() {
    # shellcheck disable=SC2016 # for the script
    cluster_of_users 0 'until ls disk/refit-* 2>/dev/null; do sleep 0.05; done >&2' 1777
    coord_exits 1 cluster.json
    expect_text err "open $PWD/disk/refit-.* of rank [01] .of uid 0, mode 0600; \
this is uid 12345.: Permission denied"
    expect_no_text err 'shared'
    expect_nothing_left
}

run_tests
