# Resource limits: whoever is short of something says so and ends in order.
# shellcheck shell=bash disable=SC2034,SC2154

# Runs to the end within 120 s, perhaps under another program, whose limit on the
# size of files is not for what we keep of its words.
run_bounded() { # COMMAND...
    timeout --kill-after=5 120 "$@" 2>&1 >out </dev/null | cat >err
    status=${PIPESTATUS[0]}
    sed 's/^/  out: /' out >&2
    sed 's/^/  err: /' err >&2
    [[ $status != 124 && $status != 137 ]] || fail "no end within 120 s"
}

# What a program may do that cannot have what it needs. The loader's own failure
# is none of ours.
expect_orderly_end() { # CODE...
    expect_no_text err 'prlimit: ' # the limit was set
    if [ "$status" = 127 ] && grep -q 'loading shared libraries' err; then
        return
    fi
    expect_exit_in "$@"
    [ "$status" = 0 ] || grep -qE '[a-z]{3,}' err || fail "it says nothing"
    expect_no_text err 'core dumped|[Aa]ssert|SIG(SEGV|ABRT|BUS|XFSZ)|signal (6|7|11|25)\b'
    expect_no_text err 'did not answer within' # it did not say why
    expect_whole_results
    expect_nothing_left
}

# LIMIT is an option of prlimit(1) without its dashes, such as nofile=8.
case_limit_coordinator() { # LIMIT
    use_world local
    cluster '.scenarios |= .[:1]'
    run_bounded prlimit "--$1" -- "$coord" cluster.json
    expect_orderly_end 0 1 2 4
}

# Both nodes' agents, and with them their ranks.
case_limit_worker() { # LIMIT
    use_world local
    printf '#!/bin/sh\nexec prlimit --%s -- %q "$@"\n' "$1" "$worker" >limited
    chmod +x limited
    cluster ".scenarios |= .[:1] | .launch.worker = \"$PWD/limited\""
    run_bounded "$coord" cluster.json
    expect_orderly_end 0 1 4
    [ "$status" = 0 ] || expect_complaint "$hosts(, $hosts)?: "
}

# Every system call that a profile may refuse, with either error.
case_refused_calls() {
    ALL_CALLS=1 bash "$RF_TOP/tests/integration/t0462-refused-calls.sh"
}
