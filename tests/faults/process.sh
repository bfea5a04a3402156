# Ends and stops of processes, and signals to the coordinator, in every state.
# shellcheck shell=bash disable=SC2034,SC2154

# SIGKILL to a part of the run, while the coordinator stands still in STATE, or
# as soon as it moves on: what is under way then comes to it before the news.
case_kill() { # WORLD VICTIM STATE [moving]
    use_world "$1"
    [ "$2" != coordinator ] || second_scenario=1
    hold_in "$3"
    choose_victim "$2"
    [ "${4-}" != moving ] || go_on
    hit KILL
    go_on 2>/dev/null
    open_gate
    "${2}_has_died"
}

# While only what an update changed travels, or all of it to an engine that has
# restarted.
case_kill_encoded() { # VICTIM STATE RESTART_EVERY
    encoded=$3 case_kill local "$1" "$2"
}

# A rank that stands still inside a conversion of its own: rank 0 sends.
case_kill_converting() { # SENDER|RECEIVER [GROUPS]
    local rank=0
    [ "$1" = sender ] || rank=1
    use_world local
    base=$(jq --arg at "$1" --arg groups "${2-}" '.scenarios[0] += {
        quantize: {format: "mxfp8", at: $at, overlap: ($groups != "")}} |
        if $groups == "" then . else .scenarios[0].group = {by: "layer"} end' \
        <<<"$base")
    coord_under=(env "REFIT_TEST_STALL=$rank:1:quantize")
    hold_in converting
    choose_victim rank "$rank"
    hit KILL
    go_on
    rank_has_died
}

rank_has_died() {
    finish_within 60
    # A rank that has closed ends by itself, and may be hit while it does.
    [ "$state:$status" != closing:0 ] ||
        missed "rank $victim_rank had answered already"
    expect_exit 1
    expect_whole_results
    expect_kept
    expect_named "$victim_rank"
    expect_json "${bad_files[0]}" ".errors[0].text |
        test(\"process $victim\\\\b.*signal 9\")"
    [ "$ok:$bad" = 1:1 ] || fail "the other scenario is not ok"
    expect_nothing_left
}

agent_has_died() {
    node_has_gone
}

sshd_has_died() {
    node_has_gone
}

node_has_gone() {
    finish_within 60
    # It may have answered, and plans may be made, before the news comes: then
    # scenarios begin without it.
    if [[ $state =~ ^(inspecting|planning)$ && -d results ]]; then
        expect_exit_in 1 4
    elif has_not_begun "$state"; then
        expect_exit 4
        [ ! -d results ] || fail "a folder of a run that never began was left"
    else
        expect_exit 1
    fi
    expect_whole_results
    expect_kept
    expect_named
    expect_nothing_left
}

# The agents see the end of their standard input.
coordinator_has_died() {
    finish_within 20
    expect_exit 137
    expect_nothing_left
    expect_whole_results
    expect_kept
    expect_json "$(echo results/*/run.json)" '.status == "running"'
    rm -f checkpoint
    run_coord cluster.json --resume "$(echo results/*)"
    expect_unharmed
    expect_json "$(echo results/*/run.json)" '.status == "ok"'
    expect_nothing_left
}

# SIGSTOP that nobody takes back, except from the coordinator, which has to be
# able to say what it finds: after a long sleep.
case_stop() { # WORLD VICTIM STATE
    use_world "$1"
    hold_in "$3"
    choose_victim "$2"
    if [ "$2" = coordinator ]; then
        # It stays as held. No agent may wait for it longer than its lease.
        wait_until 60 "the agents' end" no_private_workers
        go_on
        open_gate
        node_has_gone
        return
    fi
    hit STOP
    go_on
    open_gate
    "${2}_has_stopped"
}

rank_has_stopped() {
    finish_within 90
    expect_exit 1
    expect_whole_results
    expect_kept
    expect_named 1
    expect_json "${bad_files[0]}" '.errors[0].text |
        test("was silent for [0-9.]+ s and was killed")'
    [ "$ok:$bad" = 1:1 ] || fail "the other scenario is not ok"
    expect_nothing_left
}

# One that has joined may be missed only after the other has joined, too.
agent_has_stopped() {
    if [ "$state" = launching ]; then
        finish_within 90
        expect_exit_in 1 4
        expect_complaint "$victim_host: silent for"
        expect_nothing_left
    else
        node_has_gone
    fi
}

# Control is on the connection of its own: the channel's process is not needed
# until the end, and must not hold that up for ever.
sshd_has_stopped() {
    finish_within 90
    expect_unharmed
    expect_whole_results
    expect_nothing_left
}

# SIGSTOP for less than the lease: nothing may come of it.
case_pause() { # WORLD VICTIM STATE
    use_world "$1"
    hold_in "$3"
    choose_victim "$2"
    hit STOP
    [ "$2" = coordinator ] || go_on
    open_gate
    outage 3
    is_stopped "$victim" || missed "the victim did not stand still so long"
    [ ! -e control/status ] || missed "the run was over before it went on"
    kill -CONT "$victim"
    finish_within 60
    expect_unharmed
    expect_whole_results
    expect_nothing_left
}

# The user's signals, several times as fast as they are taken: workers that stand
# still keep the run from ending in between.
case_signal() { # WORLD SIGNAL TIMES STATE
    local i code
    code=$((128 + $(kill -l "$2")))
    use_world "$1"
    hold_in "$4"
    victim=$coord_pid
    [ "$3" = 1 ] || signal_workers STOP
    hit "$2"
    go_on
    for ((i = 1; i < $3; i++)); do
        wait_until 20 "signal $i is taken" signal_is_taken
        hit "$2"
    done
    [ "$3" = 1 ] || signal_workers CONT
    open_gate
    finish_within 60
    expect_exit "$code"
    expect_nothing_left
    expect_whole_results
    # Plans may be made before the signal comes: then a scenario has begun.
    if ! has_not_begun "$state" || grep -q '^scenario 1 of' err; then
        interrupted_in_order "$3"
    elif [ "$3" -lt 3 ] && [ -d results ]; then
        fail "a folder of a run that never began was left"
    fi
}

# After a third signal nothing more is written: the scenario may have no file.
interrupted_in_order() { # TIMES
    local run
    run=$(echo results/*/run.json)
    count_results
    if [ "$1" -lt 3 ]; then
        expect_kept
        expect_json "$run" '.status == "interrupted"'
    fi
    if [ "$bad" -gt 0 ]; then
        expect_json "${bad_files[0]}" '.status == "interrupted"'
    fi
}
