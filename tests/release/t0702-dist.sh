#!/bin/bash
# The archive of the sources: the same bytes from every clone, and all that a
# build and its tests need, without git.
# limit: 600
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"
commit=$(cd "$RF_TOP" && [ -e .git ] && git rev-parse HEAD 2>/dev/null) ||
    skip_all "no checkout to pack"
command -v xz >/dev/null || skip_all "no xz to pack with"
unset SOURCE_DATE_EPOCH
version=$("$coord" --version | sed -n '1s/refit-coord \([^ ]*\) .*/\1/p')
archive=refit-coord-$version

dist() { # SOURCES BUILD
    make -C "$1" BUILD="$2" dist >out 2>err
    status=$?
    cat out err >&2
}

clone() { # FOLDER
    git clone -q "$RF_TOP" "$1" || fail "git clone"
    git -C "$1" checkout -q "$commit"
}

test_every_clone_packs_the_same_bytes() {
    dist "$RF_TOP" "$PWD/one"
    expect_exit 0
    (cd one && sha256sum -c SHA256SUMS) || fail "another checksum"
    expect_text one/SHA256SUMS "^[0-9a-f]{64}  $archive\.tar\.xz\$"
    (
        umask 077
        export TZ=Asia/Tokyo XZ_OPT=-0 XZ_DEFAULTS=-0
        clone two
        git -C two config tar.umask 0077
        git -C two config core.abbrev 9
        dist two build
        expect_exit 0
    ) || exit 1
    cmp "one/$archive.tar.xz" "two/build/$archive.tar.xz" || fail "they differ"
    tar --numeric-owner -tvf "one/$archive.tar.xz" >list
    expect_no_text list ' [1-9][0-9]*/[0-9]* | [0-9]*/[1-9][0-9]* '
    tar -tf "one/$archive.tar.xz" | grep -vx "$archive/" | LC_ALL=C sort >packed
    git -C "$RF_TOP" ls-tree -rt --name-only "$commit" | LC_ALL=C sort >tracked
    sed -n "s|^$archive/||; s|/\$||; p" packed | LC_ALL=C sort | diff tracked - ||
        fail "not what is committed"
}

test_what_is_not_committed_is_left_out_and_said() {
    clone other
    dist other "$PWD/one"
    expect_exit 0
    expect_no_text err 'left out'
    echo >>other/README.md
    dist other "$PWD/two"
    expect_exit 0
    expect_text err 'changes.* not committed are left out'
    cmp "one/$archive.tar.xz" "two/$archive.tar.xz" || fail "they are in it"
    rm -rf other/.git
    dist other "$PWD/three"
    [ "$status" != 0 ] || fail "packed what is no checkout"
    expect_text err 'no checkout'
}

# With a git that fails, from which nothing can come.
test_what_is_packed_builds_and_passes_without_git() {
    dist "$RF_TOP" "$PWD"
    expect_exit 0
    mkdir bin
    printf '#!/bin/sh\nexit 127\n' >bin/git
    chmod +x bin/git
    export PATH=$PWD/bin:$PATH
    tar -xf "$archive.tar.xz" || fail "tar"
    make -C "$archive" -j2 CUDA=0 CFLAGS='-O0 -g' BUILD=build all \
        build/unit-common build/replay-json >log 2>&1 || fail "$(tail log)"
    "$archive/build/unit-common" >log 2>&1 || fail "$(tail log)"
    "$archive/build/replay-json" "$archive/tests/fuzz/corpus/json" >log 2>&1 ||
        fail "$(tail log)"
    coord=$archive/build/refit-coord
    run_coord --version
    expect_text out "^refit-coord $version \(${commit:0:12}\)"
    run_coord "$archive/cluster.json" --set model.num_layers=2 \
        --set 'scenarios.*.iterations=2'
    expect_exit 0
    expect_verified "$(result colocated)"
    expect_verified "$(result disaggregated)"
}

run_tests
