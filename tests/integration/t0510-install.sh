#!/bin/bash
# What `make install` puts in place is enough to work with.
# limit: 120
# shellcheck source=../lib/test.sh
. "$(dirname "$0")/../lib/test.sh"

base='{
  "name": "t", "launch": {"method": "local"},
  "nodes": [{"host": "localhost", "slots": 2}],
  "model": {"config": "share/refit-coord/models/qwen3-0.6b.json",
    "num_layers": 1, "vocab_size": 4096},
  "scenarios": [{"name": "one", "train": {"tp": 2}, "infer": {"tp": 2},
    "warmup": 0, "iterations": 2}]}'

# Calls make with what is built; nothing is built anew.
make_built() { # FOLDER TARGET
    local cuda=auto
    [ -e "$RF_BUILD_DIR/refit-cuda.so" ] || cuda=0
    make -C "$RF_TOP" -s -o all BUILD="$RF_BUILD_DIR" DESTDIR="$1" PREFIX= \
        CUDA="$cuda" "$2" >&2 || fail "make $2"
}

# Links to what has been installed once.
installed() {
    if [ ! -e "$work/installed" ]; then
        make_built "$work/new" install
        mv "$work/new" "$work/installed"
    fi
    cp -al "$work/installed/." .
}

test_installed_programs_run_installed_files() {
    installed
    coord=$PWD/bin/refit-coord
    cluster
    coord_exits 0 cluster.json
    expect_verified "$(result one)"
    coord_exits 0 plan share/refit-coord/examples/megatron.json
    coord_exits 0 report share/refit-coord/examples/reference
    jq -e '.title' share/refit-coord/schema/{cluster,plan,result,run}.json ||
        fail "a schema is missing"
    [ -s share/refit-coord/examples/reference/README.md ] ||
        fail "the reference does not say what it is"
}

test_an_installed_worker_finds_its_module_of_ucx() {
    [ -e "$RF_BUILD_DIR/refit-ucx.so" ] || return 0
    installed
    coord=$PWD/bin/refit-coord
    cluster '.scenarios[0].method = "ucx"'
    coord_exits 0 cluster.json
    expect_verified "$(result one)"
}

# The command as it is printed, where the page says, with two layers and few words,
# since the whole model takes 6 GB, and less patience.
test_the_first_example_of_the_manual_works_where_it_is_installed() {
    local example
    installed
    example=$(sed -n '/^\.Sh EXAMPLES/,$s/^\.Dl \$ //p' \
        share/man/man1/refit-coord.1 | head -n 1)
    [ "${example%% *}" = refit-coord ] || fail "no example"
    export PATH=$PWD/bin:$PATH HOME=$PWD
    cd share/refit-coord || fail "no share/refit-coord"
    sed -i 's/"dtype"/"num_layers": 2, "vocab_size": 4096, "dtype"/; s/"max_s": [0-9]*/"max_s": 1/' \
        cluster.json
    bash -c "$example" >out 2>err </dev/null
    status=$?
    cat out err >&2
    expect_exit 0
    expect_text out '^colocated .* yes$'
    expect_text out '^disaggregated .* yes$'
}

test_installed_scripts_find_what_they_need() {
    installed
    share/refit-coord/scripts/refit-suite megatron -- -n -s 1-tp2-to-tp1 \
        >out 2>&1 || fail "refit-suite: $(cat out)"
    expect_text out 1-tp2-to-tp1
    share/refit-coord/scripts/testbed --help >out || fail "testbed --help"
    expect_text out 'testbed up'
    share/refit-coord/scripts/testbed up --hosts none >out 2>err
    status=$?
    expect_exit 2
    expect_text err '--hosts must be'
    share/refit-coord/scripts/sshd-config ::1 22 . keys >out ||
        fail "sshd-config"
    cluster '.model.config |= "\(env.PWD)/\(.)"'
    PATH=$PATH:/usr/sbin command -v sshd >/dev/null || return 0
    share/refit-coord/scripts/private-sshd bin cluster.json -n >out 2>&1 ||
        fail "private-sshd: $(cat out)"
}

test_installed_programs_draw_figures() {
    installed
    coord=$PWD/bin/refit-coord
    cluster
    run_coord cluster.json
    run_coord report --figures figures results
    if /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
        expect_exit 0
        expect_text out '^figures/times-one\.pdf$'
    else
        expect_exit 1
        expect_text err 'install the package.* python3-matplotlib'
    fi
    [ -z "$(find share -name __pycache__)" ] || fail "Python left its files"
}

test_every_page_that_a_page_names_is_installed() {
    local page link links=0
    installed
    for page in share/doc/refit-coord/{README,NEWS,CONTRIBUTING}.md \
        share/doc/refit-coord/docs/*.md; do
        [ -s "$page" ] || fail "no $page"
        while read -r link; do
            [ -e "${page%/*}/$link" ] || fail "$page: no $link"
            links=$((links + 1))
        done < <(grep -oE '\]\([^):#]+\.(md|cff)' "$page" | cut -c3-)
    done
    [ "$links" -ge 10 ] || fail "only $links links"
    [ -s share/refit-coord/examples/README.md ] || fail "no examples/README.md"
    for page in refit-{coord,worker,suite}.1 refit-{cluster,result}.5; do
        [ -s "share/man/man${page##*.}/$page" ] || fail "no $page"
    done
}

test_installed_worker_finds_its_module() {
    [ -e "$RF_BUILD_DIR/refit-cuda.so" ] || return 0
    installed
    bin/refit-worker --probe >probe.json || fail "the probe failed"
    # Found: it loads, or the linker says which library it lacks.
    expect_json probe.json '.methods.nccl == null or
        (.methods.nccl | test("refit-cuda.so: cannot open") | not)'
}

# These need more than a plain build does; a bare machine has none of it.
test_targets_begin_with_the_packages_that_they_need() {
    local target targets=(run run-ssh test check-report check-asan cov fuzz bench-host
        bench-alpa bench-predict predict-published bench-planner check-planner
        check-strategies check-faults check-reproducible check-slurm soak)
    [ ! -e "$RF_BUILD_DIR/refit-cuda.so" ] || targets+=(check-gpu bundle)
    for target in "${targets[@]}"; do
        make -n -C "$RF_TOP" BUILD="$RF_BUILD_DIR" "$target" 2>/dev/null |
            sed '/^make/d' | head -n 1 >first
        expect_text first '^scripts/deps build'
    done
}

# A compiler that lacks HEADER.
compiler_without() { # HEADER
    cat >cc <<END
#!/bin/sh
case " \$* " in
*" -fsyntax-only "*) ! grep -q '<$1>' ;;
*) exec "${CC:-gcc}" "\$@" ;;
esac
END
    chmod +x cc
}

test_targets_that_install_nothing_name_what_is_missing() {
    compiler_without uv.h
    make -C "$RF_TOP" BUILD="$PWD/new" CC="$PWD/cc" CUDA=0 all >out 2>err &&
        fail "built without libuv"
    expect_text err '^missing: <uv.h>; scripts/deps build installs'
    compiler_without check.h
    make -C "$RF_TOP" BUILD="$PWD/new" CC="$PWD/cc" CUDA=0 \
        "$PWD/new/tests/unit/main.o" >out 2>err &&
        fail "built without Check"
    expect_text err '^missing: <check.h>; scripts/deps unit installs'
}

# A generated file, the commit's and a program, of few sources.
make_some() { # FOLDER VARIABLE...
    make -C "$1" BUILD=build CUDA=0 UCX=0 "${@:2}" build/planner/families.o \
        build/common/version.o build/faults/hold >out || fail "make in $1"
}

test_a_copy_of_a_build_compiles_nothing() {
    mkdir one
    cp -R "$RF_TOP"/{Makefile,config.mak.dev,common,planner,cuda,ucx} \
        "$RF_TOP"/{scripts,tests} one
    make_some one
    expect_text out '^  LINK'
    cp -a one two
    make_some two
    expect_no_text out '^  [A-Z]'
    make_some two CPPFLAGS=-DOTHER
    expect_text out '^  LINK'
}

test_a_suite_is_built_with_what_it_needs() {
    make -n -C "$RF_TOP" BUILD="$PWD/new" CUDA=0 suite \
        T=tests/unit/worker/content/test_quantize.c >out || fail "make suite"
    expect_text out 'CC +tests/unit/worker/content/test_quantize\.c'
    expect_text out 'CC +tests/unit/worker/worker_lab\.c'
    expect_text out 'LINK +.*/suite-worker-content-test_quantize'
    expect_no_text out 'CC +(coordinator/|tests/unit/.*test_content)'
    make -C "$RF_TOP" BUILD="$PWD/new" suite T=test_quantize.c 2>err &&
        fail "a suite of no file"
    expect_text err '^suite: T="test_quantize.c" is no test file'
}

test_uninstall_leaves_nothing() {
    installed
    make_built "$PWD" uninstall
    [ -z "$(find . -type f)" ] || fail "left: $(find . -type f)"
}

run_tests
