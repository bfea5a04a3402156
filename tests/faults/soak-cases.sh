# Random fault cases: RUNS of them, by dice that SEED decides.
# shellcheck shell=bash source=cases.sh
. "$(dirname "${BASH_SOURCE[0]}")/cases.sh"

# One of the words, by the dice.
pick() { # WORD...
    shift $((RANDOM % $#))
    picked=$1
}

soak_cases() {
    local i fault victim world needs mode method strategy strategies
    mapfile -t strategies < <("$RF_TOP/tests/lib/strategies" \
        "$RF_BUILD_DIR/refit-coord")
    RANDOM=$SEED
    for ((i = 1; i <= RUNS; i++)); do
        pick kill kill kill kill stop pause INT TERM HUP flap cut
        fault=$picked
        pick local local ssh
        world=$picked
        [[ $fault != @(flap|cut) ]] || world=ssh
        pick rank rank agent agent coordinator sshd
        victim=$picked
        [ "$world:$victim" != local:sshd ] || victim=rank
        [[ $fault == @(kill|stop|pause) ]] || victim=-
        pick colocated disaggregated
        mode=$picked
        pick host tcp disk
        method=$picked
        pick "${strategies[@]}"
        strategy=$picked
        needs=-
        [ "$world" = local ] || needs=bed
        add "soak-$i-$fault-$victim-$method" 250 $needs case_soak "$world" \
            "$mode" "$method" "$strategy" "$fault" "$victim" $((RANDOM % 5000))
    done
}
