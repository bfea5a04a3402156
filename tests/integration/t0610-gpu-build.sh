#!/bin/bash
# What can be said about the GPU part without a GPU and without fakes: kernels
# fit their registers, nothing but the module links CUDA, and the worker starts
# without it.
# long
# limit: 240
# shellcheck source=../lib/test.sh
. "$(dirname "$0")/../lib/test.sh"

module=$RF_BUILD_DIR/refit-cuda.so

test_programs_name_no_cuda_library() {
    ldd "$coord" "$worker" >libraries
    expect_no_text libraries 'cuda|nccl|nvshmem|nvidia'
}

# Whatever node it is copied to, the module needs no library of the toolkit to be
# loaded; NCCL and the driver's come later, by name.
test_module_needs_no_cuda_library() {
    [ -e "$module" ] || return 0
    readelf -d "$module" >dynamic
    expect_text dynamic 'NEEDED'
    expect_no_text dynamic 'NEEDED.*(cuda|nccl|nvshmem|nvidia)'
}

test_worker_alone_says_what_is_missing() {
    own_worker
    "$worker" --probe >probe.json || fail "the probe failed"
    expect_json probe.json '.methods | .host == null and .null == null'
    expect_json probe.json '.methods.nccl | test("^refit-cuda.so")'
    expect_json probe.json '.gpus == []'
}

# A module whose library is not on the node, as refit-cuda.so is without CUDA.
test_missing_library_is_named() {
    command -v gcc >/dev/null || return 0
    own_worker
    echo 'int gone(void); int gone(void) { return 0; }' >gone.c
    echo 'int gone(void); int here(void); int here(void) { return gone(); }' \
        >here.c
    gcc -shared -fPIC -o gone.so gone.c -Wl,-soname,libgone.so.13 ||
        fail "gcc failed"
    gcc -shared -fPIC -o refit-cuda.so here.c ./gone.so || fail "gcc failed"
    "$worker" --probe >probe.json || fail "the probe failed"
    for method in nccl ipc nvshmem; do
        expect_json probe.json ".methods.$method | test(\"libgone.so.13\")"
    done
}

test_module_is_found_where_it_is_installed() {
    [ -e "$module" ] || return 0
    mkdir -p bin lib/refit-coord
    cp "$RF_BUILD_DIR/refit-worker" bin
    cp "$module" lib/refit-coord
    bin/refit-worker --probe >probe.json || fail "the probe failed"
    expect_json probe.json '.cuda.runtime > 0'
}

test_kernels_fit_their_registers() {
    local nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
    [ -x "$nvcc" ] || return 0
    "$RF_TOP/tests/gpu/check-registers" "$nvcc" >log || fail "$(cat log)"
    expect_text log 'sm_90: [0-9]+ kernels'
}

run_tests
