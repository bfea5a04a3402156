# Programs that are no workers, or not the right ones, in a worker's place.
# shellcheck shell=bash disable=SC2016,SC2034,SC2154

# What speaks the protocol up to where a case wants it otherwise.
fake_library='
read_boot() {
    length=$(head -c 16 | od -An -tu1 | { read -r a b c d rest
        echo $(((a << 24) + (b << 16) + (c << 8) + d)); })
    boot=$(head -c "$length")
    nonce=$(jq -r .nonce <<<"$boot")
    node=$(jq -r .node <<<"$boot")
}
banner() { printf "\nREFIT-WORKER/1 %s\n" "${1-$nonce}"; }
u32() { printf "$(printf "\\\\x%02x\\\\x%02x\\\\x%02x\\\\x%02x" \
    $(($1 >> 24 & 255)) $(($1 >> 16 & 255)) $(($1 >> 8 & 255)) $(($1 & 255)))"; }
frame() { # TYPE SEQUENCE PAYLOAD [LENGTH]
    u32 "${4-${#3}}"
    printf "\1\\x$(printf %02x "$1")\0\1\377\377\377\377"
    u32 "$2"
    printf %s "$3"
}
hello() { # PROTOCOL [NODE]
    frame 2 "${3-0}" "{\"protocol\": $1, \"node\": ${2-$node}, \"control\": \"stdio\",
        \"version\": \"9.9\", \"methods\": {}, \"gpus\": [], \"nics\": []}"
}
'

# The body of each fake, in bash; $worker is the real one. "none": the file is made
# by the case itself.
fake_body() { # KIND
    case $1 in
    exits_0) echo 'exit 0' ;;
    exits_1) echo 'echo sorry >&2; exit 1' ;;
    exits_127) echo 'exit 127' ;;
    crashes) echo 'kill -SEGV $$' ;;
    garbage) echo 'head -c 1000 /dev/urandom' ;;
    endless_garbage) echo 'exec cat /dev/urandom' ;;
    endless_errors) echo 'exec cat /dev/urandom >&2' ;;
    silent) echo 'exec sleep 300' ;;
    stubborn) echo 'trap "" TERM HUP PIPE; while :; do sleep 1; done' ;;
    closes_output) echo 'exec >&-; exec sleep 300' ;;
    cat) echo 'exec cat' ;;
    yes) echo 'exec yes' ;;
    coordinator) echo 'exec "$coord" help' ;;
    much_noise) echo 'yes | head -c 1000000; exec "$worker" "$@"' ;;
    wrong_nonce) echo 'read_boot; banner 0123456789abcdef; exec sleep 300' ;;
    banner_and_silence) echo 'read_boot; banner; exec sleep 300' ;;
    banner_and_end) echo 'read_boot; banner' ;;
    bad_frame) echo 'read_boot; banner; head -c 64 /dev/zero; exec sleep 300' ;;
    huge_frame) echo 'read_boot; banner; frame 2 0 "{}" 4294967295; exec sleep 300' ;;
    late_sequence) echo 'read_boot; banner; hello "[5, 5]" "$node" 7; exec sleep 300' ;;
    no_json) echo 'read_boot; banner; frame 2 0 "hello?"; exec sleep 300' ;;
    unknown_type) echo 'read_boot; banner; frame 99 0 "{}"; exec sleep 300' ;;
    lease_first) echo 'read_boot; banner; frame 9 0 "{\"t\": 1}"; exec sleep 300' ;;
    other_version) echo 'read_boot; banner; hello "[90, 91]"; exec sleep 300' ;;
    other_node) echo 'read_boot; banner; hello "[5, 5]" 77; exec sleep 300' ;;
    error) echo 'read_boot; banner; frame 15 0 "{\"text\": \"no room\"}"; exec sleep 300' ;;
    *) fail "no fake worker $1" ;;
    esac
}

# What the error has to say of it, as an expression.
fake_words() { # KIND
    case $1 in
    exits_0 | exits_1) echo "without an answer from a worker.* ended with status ${1#*_}" ;;
    exits_127) echo 'was not found' ;;
    crashes) echo 'killed by SIGSEGV' ;;
    garbage | yes | coordinator) echo 'stream ended|first 65536 bytes' ;;
    endless_garbage | much_noise) echo 'first 65536 bytes, which begin' ;;
    bad_frame) echo 'frame version 0' ;;
    huge_frame) echo 'frame type 2 of 4294967295 bytes' ;;
    late_sequence) echo 'frame sequence 7, expected 0' ;;
    no_json) echo 'HELLO.*JSON' ;;
    unknown_type) echo 'frame type 99' ;;
    lease_first) echo 'message before HELLO' ;;
    other_version) echo 'version 9\.9\) speaks protocol 90 to 91' ;;
    other_node) echo 'HELLO.* another node' ;;
    error) echo 'no room' ;;
    banner_and_end) echo 'closed the stream' ;;
    missing) echo '/fake.*[Nn]o such file' ;;
    folder | not_executable) echo '/fake.*ermission denied' ;;
    not_a_program) echo '/fake is not a program: neither an executable nor' ;;
    *) echo 'did not answer within 15 s \(launch\.timeout_s' ;;
    esac
}

# The node that is started first gets the real worker, the other one the fake.
fake_worker() { # BODY
    {
        printf '#!/bin/bash\nworker=%q coord=%q\n' "$worker" "$coord"
        printf 'mkdir %q 2>/dev/null && exec "$worker" "$@"\n' "$PWD/first"
        printf 'echo $$ >>%q\n' "$PWD/fakes"
        echo "$fake_library"
        echo "$1"
    } >fake
    chmod +x fake
}

run_with_fake() {
    # shellcheck disable=SC2119
    cluster ".launch.worker = \"$PWD/fake\" | .launch.timeout_s = 5
        | .scenarios |= .[:1]"
    run_bounded "$coord" cluster.json
}

fakes_are_gone() {
    local pid
    while read -r pid; do
        ! start_time "$pid" >/dev/null || return 1
    done < <(cat fakes 2>/dev/null)
}

launch_is_refused() { # KIND
    expect_exit 4
    expect_text err "^error: $hosts(, $hosts)?: .*($(fake_words "$1"))"
    [ ! -d results ] || fail "a folder of a run that never began was left"
    expect_nothing_left
    wait_until 20 "the fake worker's end" fakes_are_gone
}

case_fake_worker() { # KIND
    use_world local
    fake_worker "$(fake_body "$1")"
    run_with_fake
    launch_is_refused "$1"
}

# What cannot be executed at all.
case_no_worker() { # missing|folder|not_executable|not_a_program
    use_world local
    case $1 in
    folder) mkdir fake ;;
    not_executable) printf '#!/bin/sh\nexit 0\n' >fake ;;
    not_a_program)
        head -c 4096 /dev/urandom >fake
        chmod +x fake
        ;;
    esac
    run_with_fake
    launch_is_refused "$1"
}

# Shell start-up files may say something, and errors may be long.
case_noisy_worker() { # OUTPUT ERRORS (bytes)
    use_world local
    fake_worker "head -c $1 /dev/zero | tr '\\0' x
        head -c $2 /dev/zero | tr '\\0' e >&2
        exec \"\$worker\" \"\$@\""
    run_with_fake
    [ -s fakes ] || fail "the noisy worker was never started"
    expect_unharmed
    expect_nothing_left
}
