#!/bin/bash
# Programs depend on their sources, not on where, when and by whom they are built.
# limit: 600
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

reproducible() { # VARIABLE=VALUE...
    make -C "$RF_TOP" BUILD="$PWD" CFLAGS='-O0 -g' "$@" check-reproducible \
        >out 2>err
    status=$?
    cat out err >&2
}

test_two_builds_have_the_same_bytes() {
    reproducible
    expect_exit 0
    expect_text out '^[0-9a-f]{64}  refit-coord$'
    expect_text out '^[0-9a-f]{64}  refit-worker$'
    cmp reproducible/one/build/refit-worker reproducible/built/refit-worker ||
        fail "they differ all the same"
    reproducible/built/refit-worker --version >version
    expect_text version "\($("$RF_TOP/scripts/build-id")\)"
}

# A compiler that notes where it was: the last map of a path counts.
test_a_build_that_depends_on_its_folder_is_found() {
    cat >cc <<'END_CC'
#!/bin/sh
exec "${REAL_CC:-gcc}" "$@" -fdebug-prefix-map="$PWD=$PWD"
END_CC
    chmod +x cc
    REAL_CC=${CC-} reproducible CC="$PWD/cc"
    [ "$status" != 0 ] || fail "not found"
    expect_text err 'refit-worker names the folder that it was built in'
    expect_text err 'two builds of the same sources differ'
}

# Copies of the sources without objects.
sources() { # FOLDER
    mkdir -p "$1/scripts"
    cp "$RF_TOP/scripts/build-id" "$1/scripts"
}

test_the_builds_id_is_the_commit_in_every_clone() {
    local commit
    command -v git >/dev/null || return 0
    sources a
    sources a/inside
    git -C a init -q
    git -C a add scripts
    git -C a -c user.name=n -c user.email=e commit -qm one
    git -C a config core.abbrev 8
    commit=$(git -C a rev-parse HEAD)
    [ "$(a/scripts/build-id)" = "${commit:0:12}" ] || fail "not its commit"
    echo '#' >>a/scripts/build-id
    [ "$(a/scripts/build-id)" = "${commit:0:12}-dirty" ] || fail "not dirty"
    [ "$(a/inside/scripts/build-id)" = unknown ] || fail "of another repository"
    echo "$commit" >a/inside/.build-id
    [ "$(a/inside/scripts/build-id)" = "${commit:0:12}" ] ||
        fail "not that of the archive"
}

run_tests
