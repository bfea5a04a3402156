#!/bin/bash
# scripts/lint-tidy, with a clang-tidy that finds "bad" in a file and notes what
# it was given.
# limit: 60
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

mkdir "$work/bin"
cat >"$work/bin/clang-tidy" <<'END'
#!/bin/sh
[ "$1" != --version ] || exec echo "${FAKE_VERSION-14}"
echo "$2" >>"$FAKE_LOG"
! grep -n bad "$2"
END
printf '#!/bin/sh\nexec "${CC:-gcc}" "$@"\n' >"$work/bin/clang"
chmod +x "$work/bin/clang-tidy" "$work/bin/clang"
export PATH=$work/bin:$PATH

# Looks at a.c and b.c; FLAGS are the compiler's. The files that clang-tidy got
# are in `looked`.
tidy() { # [FLAGS...]
    : >log
    (cd "$RF_TOP" && FAKE_LOG=$OLDPWD/log scripts/lint-tidy 2 -I. \
        -D_GNU_SOURCE "$@" -- "$OLDPWD/a.c" "$OLDPWD/b.c") >out 2>&1
    status=$?
    cat out >&2
    looked=$(sort log | xargs -r -n 1 basename | paste -sd ' ')
}
expect_looked() {
    [ "$looked" = "$1" ] || fail "looked at \"$looked\", not at \"$1\""
}

two_files() {
    echo 'int a; /* NOLINT */' >a.c
    echo '#include "b.h"' >b.c
    echo '#define B 1' >b.h
}

test_only_what_changed_since_it_was_clean_is_looked_at() {
    export TIDY_CLEAN=$PWD/clean
    two_files
    tidy
    expect_exit 0
    expect_looked "a.c b.c"
    tidy
    expect_looked ""
    for text in 2 '/* NOLINT */ 2' '/* plain */ 2'; do
        echo "#define B $text" >b.h
        tidy
        expect_looked b.c
    done
    echo 'int a;' >a.c
    tidy
    expect_looked a.c
    tidy -DOTHER
    expect_looked "a.c b.c"
    FAKE_VERSION=15 tidy
    expect_looked "a.c b.c"
}

test_a_finding_fails_each_time() {
    export TIDY_CLEAN=$PWD/clean
    two_files
    echo 'int bad;' >>b.c
    for all in "a.c b.c" b.c; do
        tidy
        [ "$status" != 0 ] || fail "no failure"
        expect_text out '2:int bad'
        expect_looked "$all"
    done
}

test_a_file_that_cannot_be_preprocessed_is_always_looked_at() {
    export TIDY_CLEAN=$PWD/clean
    two_files
    mkdir broken
    printf '#!/bin/sh\nexit 127\n' >broken/clang # as where there is none
    chmod +x broken/clang
    PATH=$PWD/broken:$PATH tidy
    PATH=$PWD/broken:$PATH tidy
    expect_exit 0
    expect_looked "a.c b.c"
}

run_tests
