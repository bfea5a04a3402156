#!/bin/bash
# scripts/run-tests: what it counts, shows and ends.
# limit: 60
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

mkdir "$work/bin"
printf '#!/bin/sh\necho "make $*"\nexit "$FAKE_STATUS"\n' >"$work/bin/make"
chmod +x "$work/bin/make"

mkdir "$work/fake"
cat >"$work/fake/unit-fake" <<'END'
#!/bin/sh
printf '1..1\nok 1 - x\n' >"$CK_TAP_LOG_FILE_NAME"
END
chmod +x "$work/fake/unit-fake"

# A file NAME.sh with the one test test_NAME; $me is NAME, $dir this test's
# folder.
new_test() { # NAME SCRIPT [HEADER]
    printf '%s\n. "$RF_TOP/tests/lib/test.sh"\nme=%s dir=%q\n' \
        "${3-}" "$1" "$PWD" >"$1.sh"
    echo 'at_exit "touch \"$dir/ended-$me\""' >>"$1.sh"
    printf 'test_%s() {\n%s\n}\nrun_tests\n' "$1" "$2" >>"$1.sh"
}

run_parts() { # PART...
    (cd "$RF_TOP" && exec scripts/run-tests "$work/fake" "$@") >out 2>&1
    status=$?
    cat out >&2
}

expect_sum() {
    [ "$(tail -n 1 out)" = "$1" ] || fail "the last line is not \"$1\""
}

test_lint_counts_as_one_test() {
    export PATH=$work/bin:$PATH
    FAKE_STATUS=0 run_parts lint unit
    expect_exit 0
    expect_text out '^make lint '
    expect_sum "2 passed, 0 failed"
}

test_lint_that_fails_fails_the_run() {
    export PATH=$work/bin:$PATH
    FAKE_STATUS=2 run_parts lint unit
    expect_exit 1
    expect_text out '^not ok lint: make lint$'
    expect_sum "1 passed, 1 failed"
}

test_a_part_has_its_integration_tests() {
    local top=$PWD/top name part
    local -A those_of=([integration]="t0100-a t0200-b t0600-c t0620-e"
        [long]=t0601-d [san]="t0100-a t0600-c")
    mkdir -p "$top/tests/integration" "$top/scripts"
    cp "$RF_TOP"/scripts/{run-tests,tap-summary} "$top/scripts"
    for name in t0100-a t0200-b t0600-c t0601-d t0620-e; do
        printf 'echo 1..1\necho "ok 1 - %s"\n' "$name" \
            >"$top/tests/integration/$name.sh"
    done
    echo '# long' >>"$top/tests/integration/t0601-d.sh"
    for part in integration long san; do
        "$top/scripts/run-tests" "$work/fake" "$part" >out 2>&1
        status=$?
        cat out >&2
        expect_exit 0
        [ "$(sed -n 's/^== \(.*\) (.*/\1/p' out | sort | xargs)" = \
            "${those_of[$part]}" ] || fail "$part: other tests"
    done
}

test_tests_run_side_by_side() {
    new_test a 'touch "$dir/a"; wait_until 20 "b runs" test -e "$dir/b"'
    new_test b 'touch "$dir/b"; wait_until 20 "a runs" test -e "$dir/a"'
    TEST_JOBS=2 run_parts "$PWD/a.sh" "$PWD/b.sh"
    expect_exit 0
    expect_sum "2 passed, 0 failed"
}

test_no_more_run_than_wanted_the_longest_first() {
    local test
    for test in a b c; do
        new_test "$test" 'mkdir "$dir/busy" || fail "not the only one"
            echo "$me" >>"$dir/order"; rmdir "$dir/busy"'
    done
    printf '%s 0.1 0.1\n' 'b 9' 'a 1' 'b 30' 'c 22' >>"$work/fake/test-times"
    TEST_JOBS=1 run_parts "$PWD/a.sh" "$PWD/b.sh" "$PWD/c.sh"
    expect_exit 0
    [ "$(paste -sd ' ' order)" = "b c a" ] || fail "order $(cat order)"
    [ "$(grep -cE '^b [0-9]+[.][0-9]+ [0-9.]+ [0-9.]+$' \
        "$work/fake/test-times")" = 1 ] || fail "b was not measured"
}

test_a_part_of_a_file_is_every_so_manyth_test() {
    local part
    new_test a true
    sed -i 's/^run_tests/test_b() { false; }; test_c() { true; }\n&/' a.sh
    for part in 1of2:'ok 1 - test_a ok 2 - test_c' '2of2:not ok 1 - test_b'; do
        [ "$(bash a.sh "${part%%:*}" | tail -n +2 | paste -sd ' ')" = \
            "${part#*:}" ] || fail "another part than $part"
    done
}

test_what_mostly_waits_takes_no_place_of_the_others() {
    new_test a 'touch "$dir/a"; wait_until 20 "b runs" test -e "$dir/b"' \
        '# waits'
    new_test b 'touch "$dir/b"; wait_until 20 "a runs" test -e "$dir/a"'
    TEST_JOBS=1 run_parts "$PWD/a.sh" "$PWD/b.sh"
    expect_exit 0
    expect_sum "2 passed, 0 failed"
}

test_only_failed_tests_are_shown_with_their_logs() {
    new_test good 'echo "fine words"'
    new_test bad 'echo "last words"; fail "a reason"'
    sed -i 's/^run_tests$/test_next() { echo "next words"; }\n&/' bad.sh
    run_parts "$PWD/good.sh" "$PWD/bad.sh"
    expect_exit 1
    expect_text out '^FAILED: a reason$'
    expect_text out '^last words$'
    expect_no_text out '(fine|next) words'
    expect_sum "2 passed, 1 failed"
}

test_a_test_over_its_limit_is_ended_with_what_it_started() {
    new_test slow 'sleep 600 & echo "$!:$(start_time $!)" >"$dir/pid"
        echo "last words"; wait' '# limit: 4'
    run_parts "$PWD/slow.sh"
    expect_exit 1
    expect_text out 'still running after 4 s'
    expect_text out '^last words$'
    wait_until 20 "its child is gone" all_gone "$(<pid)"
}

test_a_signal_ends_all_tests_in_order() {
    local test
    for test in a b; do
        new_test "$test" '
            echo "$BASHPID:$(start_time $BASHPID)" >"$dir/pid-$me"
            wait_until 600 "a signal" false'
    done
    (cd "$RF_TOP" && TEST_JOBS=2 exec scripts/run-tests "$work/fake" \
        "$OLDPWD/a.sh" "$OLDPWD/b.sh") >out 2>&1 &
    wait_until 20 "both run" eval '[ -s pid-a ] && [ -s pid-b ]'
    kill -TERM $!
    wait $!
    status=$?
    expect_exit 130
    for test in a b; do
        [ -e "ended-$test" ] || fail "the hook of test $test did not run"
    done
    all_gone "$(<pid-a)" "$(<pid-b)" || fail "a test still runs"
}

test_a_runner_that_dies_is_a_failed_test() {
    printf '#!/bin/sh\necho words\nexit 7\n' >unit-dies
    chmod +x unit-dies
    run_parts "$PWD/unit-dies"
    expect_exit 1
    expect_text out '^words$'
    expect_text out '^not ok unit-dies: ended with status 7$'
}

test_a_signal_that_ends_a_test_is_shown_with_it() {
    printf '#!/bin/sh\nkill -KILL $$\n' >unit-killed
    chmod +x unit-killed
    run_parts "$PWD/unit-killed"
    expect_exit 1
    expect_text out ' Killed '
    ! grep -q ' Killed ' "$work/fake/test-times" || fail "it is among the times"
}

test_a_test_can_be_run_by_its_path() {
    local test
    for test in "$RF_TOP"/tests/{integration,release,slurm}/t*.sh; do
        [ -x "$test" ] || fail "$test is not executable"
        [ "$(head -n 1 "$test")" = '#!/bin/bash' ] || fail "$test: first line"
    done
}

test_ci_runs_lint_and_the_tests() {
    export PATH=$work/bin:$PATH
    FAKE_STATUS=0 "$RF_TOP/.ci/run" >out || fail "exit $?"
    expect_text out '^make lint-deps$'
    expect_text out '^make test DEVELOPER=1 CHECKS=lint unit replay integration long$'
}

run_tests
