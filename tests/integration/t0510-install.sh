# What `make install` puts in place is enough to work with.
# limit: 120
# shellcheck shell=bash source=../lib/test.sh
. "$(dirname "$0")/../lib/test.sh"

base='{
  "name": "t", "launch": {"method": "local"},
  "nodes": [{"host": "localhost", "slots": 2}],
  "model": {"config": "share/refit-coord/models/qwen3-0.6b.json",
    "num_layers": 1},
  "scenarios": [{"name": "one", "train": {"tp": 2}, "infer": {"tp": 2},
    "warmup": 0, "iterations": 2}]}'

# Installs what is built; nothing is built anew.
installed() {
    [ -e "$RF_BUILD_DIR/refit-cuda.so" ] || set -- CUDA=0
    make -C "$RF_TOP" -s -o all BUILD="$RF_BUILD_DIR" DESTDIR="$PWD" PREFIX= \
        "$@" install >&2 || fail "make install"
}

test_installed_programs_run_installed_files() {
    installed
    coord=$PWD/bin/refit-coord
    cluster
    run_coord cluster.json
    expect_exit 0
    expect_verified "$(result one)"
    run_coord plan share/refit-coord/examples/megatron.json
    expect_exit 0
}

test_every_page_that_a_page_names_is_installed() {
    local page
    installed
    for page in RESULTS MEASURING GPU PROTOCOL ARCHITECTURE; do
        [ -s "share/doc/refit-coord/$page.md" ] || fail "no $page.md"
    done
    [ -s share/refit-coord/examples/README.md ] || fail "no examples/README.md"
    for page in refit-coord.1 refit-worker.1 refit-cluster.5 refit-result.5; do
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

test_uninstall_leaves_nothing() {
    installed
    make -C "$RF_TOP" -s -o all BUILD="$RF_BUILD_DIR" DESTDIR="$PWD" PREFIX= \
        uninstall >&2 || fail "make uninstall"
    [ -z "$(find . -type f)" ] || fail "left: $(find . -type f)"
}

run_tests
