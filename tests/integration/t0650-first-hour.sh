#!/bin/bash
# first-hour, what a GPU is asked first: over the fakes, and from a bundle in a
# root that holds nothing but that and a C library.
# long
# limit: 600
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

fakes=$RF_BUILD_DIR/fake
hour=$fakes/first-hour
[ -x "$RF_BUILD_DIR/first-hour" ] ||
    skip_all "first-hour is not built (no CUDA toolkit)"
[ -x "$hour" ] || skip_all "the fakes are not built (make fake)"

over_fakes() { # ARGUMENT...
    LD_LIBRARY_PATH=$fakes FAKE_CUDA_DEVICES=1 FAKE_CUDA_DELAY_US=0 \
        "$hour" --small --out out "$@" >told 2>&1
    status=$?
    cat told >&2
}

# Its report, in both forms, has each part that was asked for.
report_has() { # PARTS
    jq -en input out/first-hour.json >/dev/null || fail "first-hour.json: no JSON"
    expect_json out/first-hour.json ".parts | length == $1"
    [ "$(grep -c '^### ' out/first-hour.md)" = "$1" ] ||
        fail "first-hour.md does not have $1 parts"
}
verdict_of() { # PART
    jq -r ".parts[] | select(.name == \"$1\") | .verdict" out/first-hour.json
}

test_machine_and_benchmarks_run_over_the_fakes() {
    over_fakes \
        --only probe,driver,refit-host,tables,unit,memcheck,shapes,kernels,c
    expect_exit 0
    report_has 11
    expect_json out/first-hour.json '.parts | all(
        .verdict == "ok" or .verdict == "skipped" and .reason != "")'
    for part in probe refit-host tables unit shapes kernels group priority \
        steps; do
        [ "$(verdict_of "$part")" = ok ] || fail "$part is not ok"
    done
    # Raw samples, and what they are of cudaMemcpy.
    expect_json out/first-hour.json '.parts[] | select(.name == "steps") |
        .figures | length == 10 and all(.samples | length == 15) and
        all(.of_memcpy > 0)'
    expect_json out/first-hour.json '.parts[] | select(.name == "kernels") |
        [.figures[].figure | split(",")[0]] | unique |
        . == ["copy1", "copy16", "copy2", "copy4", "copy8", "cudaMemcpyAsync",
            "fill8", "fp8", "narrow1", "narrow4", "verify8", "widen1", "widen4"]'
    expect_json out/first-hour.json '.machine | .GPU == "Fake GPU" and
        .NCCL == "2.28.9" and .driver == "580.00.00" and .host != ""'
    expect_text out/first-hour.md '^\| 2 MB: wire \| [0-9.e-]+ \| ms \| 15 \|'
}

test_checks_are_run_by_part() {
    over_fakes --only flipped,separate,fp8
    expect_exit 0
    report_has 4 # the probe decides what can run, so it always does
    expect_json out/first-hour.json '.parts[] | select(.name == "separate") |
        .tail | any(test("4 passed, 0 failed"))'
    expect_json out/first-hour.json '.parts[] | select(.name == "fp8") |
        .tail[-1] == "1 passed, 0 failed" and
        any(.tail[]; test("^ok - fp8-equals-the-processor \\([0-9]+ s\\)$"))'
}

# A program of a part, with what a test wants of it instead.
program_that() { # NAME COMMANDS
    mkdir -p bin
    printf '#!/bin/sh\n%s\n' "$2" >"bin/$1"
    chmod +x "bin/$1"
}
shell_that() { # COMMANDS
    program_that bash "$1"
}

test_part_that_hangs_is_ended_and_others_go_on() {
    # With a child in a process group of its own, as timeout(1) has.
    shell_that "case \$3 in flipped*) ;; *) exit 0 ;; esac
        echo started; setsid sleep 1000 & echo \$! >$PWD/pid; sleep 1000"
    PATH=$PWD/bin:$PATH over_fakes --part-limit 5 --only flipped,separate
    expect_exit 1
    [ "$(verdict_of flipped)" = "timed out" ] || fail "flipped did not time out"
    [ "$(verdict_of separate)" = ok ] || fail "separate did not run"
    expect_json out/first-hour.json '.parts[] | select(.name == "flipped") |
        .tail == ["started"] and .reason == "still running after 5 s"'
    if kill -0 "$(cat pid)" 2>/dev/null; then
        fail "what a part had started outlived it"
    fi
}

test_limit_of_the_whole_skips_the_rest() {
    shell_that "sleep 1000"
    PATH=$PWD/bin:$PATH over_fakes --minutes 0.1 --only flipped,separate
    expect_exit 1
    [ "$(verdict_of flipped)" = "timed out" ] || fail "flipped did not time out"
    expect_json out/first-hour.json '.parts[] | select(.name == "separate") |
        .verdict == "skipped" and (.reason | test("share of 0.1 minutes is used up"))'
}

test_every_group_has_a_share_of_the_time() {
    shell_that "sleep 1000"
    program_that compute-sanitizer "echo 100%: Checks: 1"
    PATH=$PWD/bin:$PATH over_fakes --minutes 0.3 \
        --only flipped,separate,memcheck
    expect_exit 1
    [ "$(verdict_of flipped)" = "timed out" ] || fail "flipped did not time out"
    [ "$(verdict_of separate)" = skipped ] || fail "d had more than its share"
    [ "$(verdict_of memcheck)" = ok ] || fail "memcheck did not run"
}

test_tool_that_refuses_the_machine_is_a_skip() {
    program_that compute-sanitizer 'case $2 in
        memcheck) echo "========= ERROR SUMMARY: 0 errors" ;;
        initcheck) echo "========= Error: Device not supported. Details"; exit 1 ;;
        *) echo "1 error"; exit 1 ;;
        esac'
    program_that ncu 'echo "==ERROR== ERR_NVGPUCTRPERM - no permission"'
    PATH=$PWD/bin:$PATH over_fakes --only ncu,memcheck,initcheck,racecheck
    expect_exit 1
    expect_text told '^e initcheck +skipped: compute-sanitizer does not work here: "Device not supported"'
    expect_text told '^e memcheck +skipped: compute-sanitizer ran nothing here'
    expect_text told '^b ncu +skipped: ncu does not work here: "ERR_NVGPUCTRPERM"'
    [ "$(verdict_of racecheck)" = failed ] || fail "racecheck did not fail"
}

test_part_that_fails_is_told_and_others_go_on() {
    # shellcheck disable=SC2016 # for the script
    shell_that 'echo "out of luck"; case $3 in flipped*) exit 3 ;; esac'
    PATH=$PWD/bin:$PATH over_fakes --only flipped,separate
    expect_exit 1
    [ "$(verdict_of flipped)" = failed ] || fail "flipped did not fail"
    [ "$(verdict_of separate)" = ok ] || fail "separate did not run"
    expect_text told '^d flipped +failed: exit code 3'
    expect_text out/first-hour.md '^out of luck$'
    expect_text told '^2 ok, 1 failed, 0 timed out, 0 skipped'
}

test_unknown_parts_and_options_are_refused() {
    over_fakes --only a,wrong
    expect_exit 2
    expect_text told 'no part "wrong"'
    over_fakes --minutes soon
    expect_exit 2
    "$hour" --help >told || fail "no help"
    expect_text told '^c: NCCL with one rank'
}

# --- The bundle -----------------------------------------------------------------

# A root with the C library and what the kernel gives; nothing else.
empty_root() { # FOLDER
    local name file
    mkdir -p "$1"/{proc,tmp,dev,bundle}
    touch "$1/dev/null"
    ldd "$1/../bundle"/{bin,tools}/* 2>/dev/null |
        awk '$2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\// {print $1}' |
        grep -E '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux.*)\.so' |
        sort -u | while read -r file; do
        mkdir -p "$1$(dirname "$file")"
        cp -L "$file" "$1$file"
    done
    cp -a "$1/../bundle/." "$1/bundle"
}

glibc_of() { # FILE...: the versions that they need or have
    readelf -VW "$@" | grep -o 'GLIBC_2[.0-9]*' | sort -uV
}

# Takes from the root's C library what came after a version.
make_older() { # FOLDER VERSION
    local name libraries=()
    mapfile -t libraries < <(find "$1" -path "$1/bundle" -prune -o -type f \
        -name '*.so*' -print)
    glibc_of "${libraries[@]}" | sed "1,/^GLIBC_$2\$/d" | while read -r name; do
        LC_ALL=C sed -zi "s/^$name\$/GLIBC_X${name#GLIBC_2}/" "${libraries[@]}"
    done
    glibc_of "${libraries[@]}" >aged
    [ "$(tail -n 1 aged)" = "GLIBC_$2" ] || fail "the C library is no older"
}

# shellcheck disable=SC2016 # for the shell inside
in_empty_root() { # FOLDER COMMAND...
    env -i PATH="$PATH" unshare --user --map-root-user --mount --pid --fork \
        bash -c 'mount --bind /dev/null "$1/dev/null" &&
            mount -t proc proc "$1/proc" && cd "$1" && exec chroot . \
            "${@:2}"' bash "$@" 2>&1
}

# Where results lie, and a folder named like lists of headers, which make reads.
test_make_goes_on_after_the_first_hour() {
    mkdir -p build/some.d
    make -C "$RF_TOP" BUILD="$PWD/build" -n first-hour >told 2>&1 ||
        fail "make: $(cat told)"
    expect_text told "--out $PWD/build/first-hour-results\$"
}

make_bundle() {
    "$RF_TOP/tests/gpu/make-bundle" "$RF_BUILD_DIR" "$PWD/bundle" >made ||
        fail "make-bundle failed"
}

# Those of the bundle may need a later C library.
test_bundle_takes_the_tools_of_the_machine_first() {
    make_bundle
    bundle/first-hour --run bash -c 'type -P bash grep' >told
    expect_no_text told 'bundle'
    PATH=/nowhere bundle/first-hour --run bash -c 'type -P bash' >told
    expect_text told 'bundle/tools/bash$'
}

# Where its user starts it, whose name the folder of results must not have.
test_bundle_runs_where_it_lies() {
    make_bundle
    cd bundle || exit
    ./first-hour --only probe >said 2>&1 || fail "$(<said)"
    [ -e first-hour-results/first-hour.md ] || fail "no results"
    if ./first-hour --only probe --out first-hour >said 2>&1; then
        fail "a file was taken for the folder"
    fi
    expect_text said 'cannot write to first-hour: Not a directory'
}

# The driver decides between the two builds of a bundle.
test_bundle_with_cuda_12_is_for_older_drivers() {
    local driver
    mkdir -p two/{bin,bin-cuda12,tests/gpu}
    cp "$RF_TOP"/tests/gpu/check-gpu two/tests/gpu
    cp "$fakes"/{first-hour,refit-worker,refit-cuda.so} two/bin
    cat >two/bin-cuda12/refit-worker <<EOF
#!/bin/sh
FAKE_CUDA_RUNTIME=12090 exec "$fakes/refit-worker" "\$@"
EOF
    chmod +x two/bin-cuda12/refit-worker
    for driver in 13010 12040; do
        LD_LIBRARY_PATH=$fakes FAKE_CUDA_DEVICES=1 FAKE_CUDA_DRIVER=$driver \
            two/bin/first-hour --only probe --out "$driver" >&2 ||
            fail "the probe failed"
    done
    expect_json 13010/first-hour.json '.machine."CUDA runtime" == "13.0"'
    expect_json 12040/first-hour.json '.machine."CUDA runtime" == "12.9" and
        .machine."CUDA driver" == "12.4" and .probe.methods.ipc == null'
}

test_bundle_finds_the_libraries_of_the_machine() {
    local folder
    make_bundle
    for folder in env/lib project/venv/lib \
        home/.local/lib/python3.9/site-packages/nvidia/nccl/lib \
        home/code/.venv/lib/python3.12/site-packages/nvidia/nvshmem/lib \
        home/conda/envs/rl/lib; do
        mkdir -p "$folder"
        touch "$folder/libnccl.so.2" "$folder/libnvshmem_host.so.3"
        echo "$PWD/$folder"
    done >expected
    # shellcheck disable=SC2016 # for the shell inside
    HOME=$PWD/home VIRTUAL_ENV=$PWD/env LD_LIBRARY_PATH=/mine \
        bundle/first-hour --run sh -c 'echo "$LD_LIBRARY_PATH"' |
        tr : '\n' | awk '!seen[$0]++' >told
    [ "$(head -n 2 told)" = "$PWD/bundle/lib"$'\n/mine' ] ||
        fail "not what comes first: $(cat told)"
    diff expected <(grep "^$PWD/[^b]" told) || fail "other folders"
}

test_bundle_runs_in_an_empty_root() {
    if ! unshare --user --map-root-user --mount --pid --fork true; then
        echo "# skipped: no user namespaces here" >&2
        return 0
    fi
    make_bundle
    expect_text made 'bundle: [0-9]+ MiB, for glibc 2[.][0-9]+ or later$'
    [ "$(sed -E 's/.*: ([0-9]+) MiB.*/\1/' made)" -le 48 ] ||
        fail "the bundle is too large to carry: $(cat made)"
    empty_root "$PWD/root"
    make_older "$PWD/root" "$(sed -E 's/.*glibc ([0-9.]+) .*/\1/' made)"
    # Where an installer of the toolkit puts it.
    mkdir -p root/usr/local/cuda-12.9/nsight-compute-2025.2.1
    cp /bin/true root/usr/local/cuda-12.9/nsight-compute-2025.2.1/ncu
    in_empty_root "$PWD/root" /bundle/first-hour --small --out /tmp/out >told
    status=$?
    cat told >&2
    expect_exit 0
    cp -r root/tmp/out out
    report_has "$("$hour" --help | grep -cE '^  [a-z]')"
    for part in probe refit-host tables; do
        [ "$(verdict_of "$part")" = ok ] || fail "$part is not ok"
    done
    expect_text told '^b ncu +skipped: no NVIDIA driver'
    expect_text told '^d kills +skipped: no NVIDIA driver'
    expect_json out/first-hour.json '.machine | ."CUDA driver" == "none" and
        (."CUDA runtime" | test("^[0-9]+[.][0-9]+$"))'
    expect_json out/first-hour.json '[.parts[] | select(.verdict != "ok" and
        .verdict != "skipped")] == []'
}

run_tests
