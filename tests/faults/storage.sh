# File systems that are full, read-only, failing or hung: under the results, and
# under the folder of method disk. Cases that mount run in a namespace of their own.
# shellcheck shell=bash disable=SC2034,SC2154

shim=$RF_BUILD_DIR/faults/fsync_fails.so

# A small file system in $PWD/small until the case's namespace ends.
small_disk() { # SIZE
    mkdir small
    mount -t tmpfs -o "size=$1" none small || fail "cannot mount"
}

fill_disk() {
    cat /dev/zero >small/fill 2>/dev/null
    return 0
}

# Results that cannot be stored: the run says which and why, goes on with no
# further scenario, and leaves what is there whole.
results_not_stored() { # REGEX
    finish_within 60
    expect_exit 1
    expect_text err "not stored: .*$1|results.*$1"
    mv small/results results 2>/dev/null || cp -r small/results results 2>/dev/null
    expect_whole_results
    case $state in
    starting | preparing | probing)
        count_results
        [ "$ok" -ge 1 ] || fail "the scenario before is not kept"
        ;;
    esac
    expect_nothing_left
}

case_results_full() { # STATE
    use_world local
    small_disk 256k
    hold_in "$1" . -o small/results
    fill_disk
    go_on
    open_gate
    results_not_stored 'No space left on device'
}

case_results_read_only() { # STATE
    use_world local
    small_disk 1m
    hold_in "$1" . -o small/results
    mount -o remount,ro small || fail "cannot remount"
    go_on
    open_gate
    results_not_stored 'Read-only file system'
}

case_results_removed() { # STATE
    use_world local
    mkdir small
    hold_in "$1" . -o small/results
    rm -rf small/results
    go_on
    open_gate
    finish_within 60
    expect_exit 1
    expect_text err 'small/results.*No such file or directory'
    expect_nothing_left
}

# Nothing can even begin.
case_results_full_at_first() {
    use_world local
    small_disk 64k
    fill_disk
    cluster
    run_bounded "$coord" cluster.json -o small/results
    expect_exit 1
    expect_text err 'small/results.*No space left on device'
    expect_nothing_left
}

case_results_read_only_at_first() {
    use_world local
    small_disk 64k
    mount -o remount,ro small
    cluster
    run_bounded "$coord" cluster.json -o small/results
    expect_exit 2
    expect_text err 'small/results.*Read-only file system'
    expect_nothing_left
}

# Holds a coordinator whose fsync() does what $PWD/fsync says from now on.
hold_with_shim() { # STATE
    mkdir small
    coord_under=(env "LD_PRELOAD=$shim" "RF_FAULT_FSYNC=$PWD/fsync")
    hold_in "$1" . -o small/results
}

case_results_fsync() { # STATE
    use_world local
    hold_with_shim "$1"
    echo fail >fsync
    go_on
    open_gate
    results_not_stored 'Input/output error'
}

# A file system that answers after longer than a lease: nobody may be taken for
# dead meanwhile.
case_results_slow() { # STATE
    use_world local
    hold_with_shim "$1"
    echo hang >fsync
    go_on
    open_gate
    wait_until 60 "a file that is not stored" grep -q hung control/hung
    for_longer_than_a_lease
    rm fsync
    finish_within 60
    mv small/results results
    expect_unharmed
    expect_whole_results
    expect_nothing_left
}

# One that never answers: the user can leave.
case_results_hung() { # STATE
    local i
    use_world local
    hold_with_shim "$1"
    echo hang >fsync
    go_on
    open_gate
    wait_until 60 "a file that is not stored" grep -q hung control/hung
    for i in 1 2 3; do
        [ -e control/status ] || kill -INT "$coord_pid" 2>/dev/null
        wait_until 20 "signal $i is taken" signal_is_taken
    done
    finish_within 20
    expect_exit 130
    expect_nothing_left
}

# --- Method disk ---------------------------------------------------------------

disk_scenarios='.scenarios[] += {method: "disk", disk: {folder: $folder}}'

hold_disk_run() { # STATE [JQ_PROGRAM]
    hold_in "$1" "\"$PWD/${folder:-disk}\" as \$folder | $disk_scenarios
        | .scenarios[].disk.fsync = true | ${2-.}"
}

# Ranks die with an agent that is killed; where no other agent of the run lives, the
# next run of their nodes removes what they have left.
sweep_disk() {
    wait_until 60 "no process is left" no_private_workers
    [ -n "$(ls -A disk)" ] || return 0
    run_bounded "$coord" cluster.json -s one -o swept
    expect_exit 0
}

# Whoever dies, the folder is left empty.
case_kill_with_disk() { # VICTIM STATE
    use_world local
    mkdir disk
    [ "$1" != coordinator ] || second_scenario=1
    hold_disk_run "$2"
    choose_victim "$1"
    # Ranks may be quicker than the kill to close and remove their files.
    [ "$state" = closing ] || compgen -G 'disk/*.data' >/dev/null ||
        missed "there is no file yet"
    hit KILL
    go_on 2>/dev/null
    finish_within 90
    case $1 in
    coordinator) expect_exit 137 ;;
    *)
        expect_exit 1
        expect_named
        ;;
    esac
    expect_whole_results
    [ "$state" = preparing ] || expect_kept # it was the first scenario
    expect_nothing_left
}

# Both hosts see the same full disk: either may be the first to say so.
disk_fault_is_named() { # REGEX
    finish_within 120
    expect_exit 1
    victim_host=$hosts
    expect_named
    expect_text err "$1"
    expect_whole_results
    expect_kept
    [ -z "$(ls -A "$folder")" ] || fail "files left: $(ls -A "$folder")"
    expect_nothing_left
}

# An iteration writes over the files of the one before, which takes no room: the
# first one of a scenario has to find the disk full.
case_disk_full() { # STATE
    use_world local
    second_scenario=1
    small_disk 128m
    folder=small/disk
    mkdir $folder
    hold_disk_run "$1"
    [ -z "$(find $folder -name '*.data' -size +0)" ] ||
        missed "an iteration has written its files"
    fill_disk
    go_on
    disk_fault_is_named 'No space left on device'
}

case_disk_read_only() { # STATE
    use_world local
    small_disk 128m
    folder=small/disk
    mkdir $folder
    hold_disk_run "$1"
    mount -o remount,ro small || missed "a file is open for writing"
    go_on
    disk_fault_is_named 'Read-only file system'
}

case_disk_fsync() { # STATE
    use_world local
    mkdir disk
    folder=disk
    hold_disk_run "$1" ".launch.env = {LD_PRELOAD: \"$shim\",
        RF_FAULT_FSYNC: \"$PWD/fsync\"}"
    echo fail >fsync
    go_on
    disk_fault_is_named 'Input/output error'
}
