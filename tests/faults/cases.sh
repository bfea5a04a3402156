# The fault matrix: every case that there is, made of faults, victims and states.
# Those that wait longest come first.
# shellcheck shell=bash

states='launching inspecting planning starting preparing probing filling running
    verifying probing_again closing'
rank_states='preparing probing filling running verifying probing_again closing'

# Prints one case: its name, the seconds that it may take, what it needs ("-",
# "root", "bed" or "openssl"), and what tests/faults/run-case is to run.
add() { # NAME LIMIT NEEDS FUNCTION ARGUMENT...
    echo "${1//_/-} ${*:2}"
}

# What is there from the first state on, and ranks, which are not.
process_cases() { # WORLD PREFIX NEEDS
    local fault victim state victims='rank agent coordinator'
    [ "$1" = local ] || victims='agent sshd coordinator'
    for fault in stop pause kill; do
        [ "$1-$fault" != ssh-pause ] || continue
        for victim in $victims; do
            for state in $states; do
                [[ $victim != rank || $rank_states == *$state* ]] || continue
                add "$2$fault-$victim-$state" 200 "$3" "case_$fault" "$1" \
                    "$victim" "$state"
            done
        done
    done
}

# The others are injected while the coordinator stands still.
moving_cases() {
    local victim state
    for victim in rank agent coordinator; do
        for state in preparing probing filling running; do
            add "kill-moving-$victim-$state" 200 - case_kill local "$victim" \
                "$state" moving
        done
    done
}

encoded_cases() {
    local victim state
    for victim in rank agent; do
        for state in preparing filling running verifying; do
            add "encoded-kill-$victim-$state" 200 - case_kill_encoded \
                "$victim" "$state" 0
            add "resync-kill-$victim-$state" 200 - case_kill_encoded \
                "$victim" "$state" 1
        done
    done
}

# Ranks that stand still at the beginning of a conversion, or of one in a group
# while others move.
conversion_cases() {
    local victim
    for victim in sender receiver; do
        add "kill-converting-$victim" 200 - case_kill_converting "$victim"
        add "kill-converting-groups-$victim" 200 - case_kill_converting \
            "$victim" groups
    done
}

signal_cases() {
    local signal times state
    for signal in INT TERM HUP; do
        for times in 1 2 3; do
            for state in $states; do
                add "signal-$signal-$times-$state" 120 - case_signal local \
                    "$signal" "$times" "$state"
            done
        done
    done
}

# In less than 64 MB of addresses libuv aborts for want of threads.
limit_cases() {
    local who limit
    add refused-calls 400 - case_refused_calls
    for who in coordinator worker; do
        for limit in nofile={5..10} nofile={12,16,24,32,64} \
            fsize={0,1,4096,1000000} \
            as={64,128,256,512,1024}000000 nproc=1; do
            add "limit-$who-$limit" 200 - "case_limit_$who" "$limit"
        done
    done
}

fakes='exits_0 exits_1 exits_127 crashes garbage endless_garbage
    endless_errors silent stubborn closes_output cat yes coordinator much_noise
    wrong_nonce banner_and_silence banner_and_end bad_frame huge_frame
    late_sequence no_json unknown_type lease_first other_version other_node
    error'

worker_cases() {
    local kind
    for kind in missing folder not_executable not_a_program; do
        add "no-worker-$kind" 200 - case_no_worker "$kind"
    done
    for kind in $fakes; do
        add "fake-worker-$kind" 200 - case_fake_worker "$kind"
    done
    add noisy-worker-output 200 - case_noisy_worker 60000 0
    add noisy-worker-errors 200 - case_noisy_worker 0 1000000
}

storage_cases() {
    local fault state victim
    for fault in full read_only; do
        add "results-$fault-at-first" 100 root "case_results_${fault}_at_first"
        for state in $states; do
            add "results-$fault-$state" 120 root "case_results_$fault" "$state"
        done
    done
    for fault in removed fsync; do
        for state in $states; do
            add "results-$fault-$state" 120 - "case_results_$fault" "$state"
        done
    done
    for fault in slow hung; do
        for state in preparing running closing; do
            add "results-$fault-$state" 200 - "case_results_$fault" "$state"
        done
    done
    for victim in rank sender agent coordinator; do
        for state in ${rank_states/preparing/preparing_files}; do
            # Whose agent is whose cannot be told when ranks have ended.
            [ "$victim-$state" != sender-closing ] || continue
            add "disk-kill-$victim-$state" 200 - case_kill_with_disk "$victim" \
                "$state"
        done
    done
    for state in starting preparing probing filling; do
        add "disk-full-$state" 200 root case_disk_full "$state"
        add "disk-fsync-$state" 200 - case_disk_fsync "$state"
    done
    add disk-read-only-starting 200 root case_disk_read_only starting
}

network_cases() {
    local state kind method
    for state in $states; do
        add "partition-$state" 250 bed case_partition "$state"
        add "flap-9-$state" 250 bed case_flap "$state" 9
        add "flap-3-$state" 250 bed case_flap "$state" 3
    done
    for kind in silent:10 silent:200 slow:50 garbage:20 http:20 frame:20 \
        key:20 crowd:200 silent:16000; do
        add "listener-${kind/:/-}" 200 - case_listener_attack "${kind%:*}" \
            "${kind#*:}" 15
    done
    add listener-tls-wrong-key 200 openssl case_listener_tls -tls1_3 -psk \
        0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef \
        -psk_identity IDENTITY
    add listener-tls-no-key 200 openssl case_listener_tls -tls1_3
    add listener-tls-old 200 openssl case_listener_tls -tls1_2
    for method in host tcp; do
        for kind in silent:1 silent:200 slow:20 garbage:20 http:5 key:20 \
            crowd:200 silent:3000; do
            add "data-$method-${kind/:/-}" 200 - case_data_attack $method \
                "${kind%:*}" "${kind#*:}"
        done
    done
}

all_cases() {
    network_cases
    process_cases ssh ssh- bed
    process_cases local '' -
    moving_cases
    encoded_cases
    conversion_cases
    storage_cases
    worker_cases
    limit_cases
    signal_cases
}
