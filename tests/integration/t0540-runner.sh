# scripts/run-tests: what it counts, shows and ends.
# limit: 60
# shellcheck shell=bash source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

mkdir "$work/bin"
printf '#!/bin/sh\necho "make $*"\nexit "$FAKE_STATUS"\n' >"$work/bin/make"
chmod +x "$work/bin/make"

# A build whose unit tests are SCRIPT.
fake_build() { # SCRIPT
    mkdir -p fake
    printf '#!/bin/sh\n%s\n' "$1" >fake/unit-fake
    chmod +x fake/unit-fake
}

run_parts() { # PART...
    (cd "$RF_TOP" && exec scripts/run-tests "$OLDPWD/fake" "$@") >out 2>&1
    status=$?
    cat out >&2
}

passes='printf "1..1\nok 1 - x\n" >"$CK_TAP_LOG_FILE_NAME"'

test_lint_counts_as_one_test() {
    export PATH=$work/bin:$PATH
    fake_build "$passes"
    FAKE_STATUS=0 run_parts lint unit
    expect_exit 0
    expect_text out '^make lint '
    [ "$(tail -n 1 out)" = "2 passed, 0 failed" ] || fail "another last line"
}

test_lint_that_fails_fails_the_run() {
    export PATH=$work/bin:$PATH
    fake_build "$passes"
    FAKE_STATUS=2 run_parts lint unit
    expect_exit 1
    expect_text out '^not ok lint: make lint$'
    [ "$(tail -n 1 out)" = "1 passed, 1 failed" ] || fail "another last line"
}

test_ci_runs_lint_and_the_tests() {
    export PATH=$work/bin:$PATH
    FAKE_STATUS=0 "$RF_TOP/.ci/run" >out || fail "exit $?"
    expect_text out '^make lint-deps$'
    expect_text out '^make test DEVELOPER=1 CHECKS=lint unit replay integration$'
}

run_tests
