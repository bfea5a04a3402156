#!/bin/bash
# check-gpu, bench-gpu and the bundle: they skip where there is no GPU, never as a
# pass, and run to their end over the fakes.
# long
# limit: 600
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

[ -e "$RF_BUILD_DIR/refit-cuda.so" ] || skip_all "no CUDA toolkit to build with"
export FAKE_CUDA_DELAY_US=0
fakes=$RF_BUILD_DIR/fake
[ -e "$fakes/bench-gpu-copy" ] || skip_all "the fakes are not built (make fake)"

run_script() { # SCRIPT ARGUMENT...
    "$@" >out 2>&1
    status=$?
    cat out >&2
}

test_scripts_skip_without_a_device() {
    export LD_LIBRARY_PATH=$fakes FAKE_CUDA_DEVICES=0
    run_script "$RF_TOP/tests/gpu/check-gpu" "$fakes"
    expect_exit 77
    expect_text out '^skipped: no NVIDIA driver [^"]*$'
    expect_no_text out 'passed'
    run_script "$RF_TOP/tests/gpu/bench-gpu" "$fakes"
    expect_exit 77
    expect_text out '^skipped: no NVIDIA driver [^"]*$'
    run_script "$fakes/bench-gpu-copy"
    expect_exit 77
}

# What runs on a GPU knows no fake: the runtime is in the program.
test_programs_for_a_gpu_are_over_no_fake() {
    local program
    for program in check-gpu-unit bench-gpu-copy bench-gpu-kernels \
        bench-gpu-wire; do
        readelf -d "$RF_BUILD_DIR/$program" >dynamic
        expect_text dynamic 'NEEDED'
        expect_no_text dynamic 'NEEDED.*cudart|RUNPATH.*fake'
    done
}

test_fakes_are_refused_unless_asked_for() {
    export LD_LIBRARY_PATH=$fakes
    unset FAKE_CUDA_DEVICES
    run_script "$RF_TOP/tests/gpu/check-gpu" "$fakes" one-rank-ipc
    expect_exit 1
    expect_text out "^check-gpu: programs in $fakes run over a fake of CUDA"
    expect_no_text out 'passed'
    run_script "$fakes/first-hour" --small --only refit-host
    expect_exit 1
    expect_text out '^a probe +failed: programs in .* run over a fake of CUDA'
    expect_text out '^0 ok, 1 failed, 0 timed out, 0 skipped'
}

test_check_gpu_passes_over_the_fakes() {
    export LD_LIBRARY_PATH=$fakes FAKE_CUDA_DEVICES=1
    # A part of it, with less patience: t0600 and t0601 run the like of each,
    # unit-cuda runs by itself.
    sed 's/timeout_s\\": 10/timeout_s\\": 1/' "$RF_TOP/tests/gpu/check-gpu" \
        >check-gpu
    run_script bash check-gpu "$fakes" '*-ipc' two-nodes-nccl-broadcast \
        small-buckets-nccl-send_recv
    expect_exit 0
    expect_text out '^[7-9] passed, 0 failed$'
    expect_text out '^ok - stuck-rank-ends-ipc'
    expect_text out '^ok - two-nodes-nccl-broadcast'
    expect_text out '^ok - small-buckets-nccl-send_recv'
    expect_no_text out '^skipped: (nccl|ipc|nvshmem)'
}

# Without NCCL the other methods are still checked; ucx-cuda needs a UCX that
# knows CUDA, see t0603.
test_check_gpu_skips_a_method_loudly() {
    mkdir some
    ln -s "$fakes"/libfake-cudart.so "$fakes"/libnvidia-ml.so.1 \
        "$fakes"/libnvshmem_host.so.3 some/
    export LD_LIBRARY_PATH=$PWD/some FAKE_CUDA_DEVICES=8
    sed 's/"nccl": null/"nccl": "no such library"/' \
        < <("$fakes/refit-worker" --probe) >told
    mkdir bin
    cp "$fakes"/{refit-coord,refit-cuda.so,check-gpu-unit} bin/
    cat >bin/refit-worker <<EOF
#!/bin/bash
if [ "\$1" = --probe ]; then
    cat "$PWD/told"
else
    exec "$fakes/refit-worker" "\$@"
fi
EOF
    chmod +x bin/refit-worker
    run_script "$RF_TOP/tests/gpu/check-gpu" bin 'one-rank-*'
    expect_exit 0
    expect_text out '^skipped: nccl: no such library$'
    expect_text out '^2 of 4 methods skipped$'
    expect_text out '^[12] passed, 0 failed$'
}

# A processor is no GPU: what counts is that all shapes are copied and judged.
# Few bytes are judged in no shape, many in the three that refits should have.
test_bench_copies_every_shape() {
    export LD_LIBRARY_PATH=$fakes
    run_script "$fakes/bench-gpu-copy" 16 17
    [ "$(grep -c 'ratio' out)" = 5 ] || fail "not five shapes"
    expect_text out '^0 passed, 0 failed, 5 only reported$'
    run_script "$fakes/bench-gpu-copy" 16 16
    expect_text out '^[0-3] passed, [0-3] failed, 2 only reported$'
}

# The host's launches take longer than what the device copies meanwhile at first.
test_steps_are_timed_without_the_launches_of_the_host() {
    LD_LIBRARY_PATH=$fakes FAKE_CUDA_LAUNCH_MS=200 \
        "$fakes/bench-gpu-wire" steps 1 >figures || fail "bench-gpu-wire failed"
    jq -s . figures >all.json
    expect_json all.json 'length == 5 and
        all(.figure == "1 MB: all three" or (.samples | max) < 150)'
}

test_bundle_runs_from_its_folder_alone() {
    "$RF_TOP/tests/gpu/make-bundle" "$RF_BUILD_DIR" "$PWD/bundle"
    env -i PATH="$PATH" HOME="$HOME" LD_LIBRARY_PATH="$fakes" \
        FAKE_CUDA_DEVICES=0 bundle/first-hour --run tests/gpu/check-gpu bin >out 2>&1
    status=$?
    cat out >&2
    expect_exit 77
    expect_text out '^skipped: no NVIDIA driver [^"]*$'
}

run_tests
