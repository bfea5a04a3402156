#!/bin/bash
# The artifact of a paper: a script that follows only its README, elsewhere,
# reproduces comparison, table and figure; changes are noticed, and failures
# leave nothing.
# long
# limit: 240
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"
export REFIT_SHARE=$RF_TOP PATH=$RF_BUILD_DIR:$PATH

base=$(jq '. + {scenarios: [
    {"name": "to", "mode": "disaggregated", "train": {"tp": 2},
     "infer": {"tp": 2, "layout": "vllm"}, "warmup": 0, "iterations": 5,
     "method": "tcp", "strategy": ["send_recv", "broadcast"]}]}' \
    <<<"$four_slots")

small='{"model_type": "qwen3", "hidden_size": 256, "num_hidden_layers": 4,
  "intermediate_size": 512, "num_attention_heads": 8, "num_key_value_heads": 4,
  "head_dim": 32, "vocab_size": 4096, "tie_word_embeddings": false}'

draws_figures() {
    python3 -c 'import matplotlib' 2>/dev/null ||
        /usr/bin/python3 -c 'import matplotlib' 2>/dev/null
}

# Runs the cluster file, packs it as "pack", and moves that to `else where`. The
# folder of the run, with the model's file, is gone.
pack_elsewhere() { # [JQ_PROGRAM [OPTION...]]
    local program=${1-.}
    shift
    mkdir -p home/models
    echo "$small" >home/models/small.json
    cluster ".model = {config: \"models/small.json\", num_layers: 2} | $program"
    mv cluster.json home
    (cd home && "$coord" cluster.json -q "$@" >out 2>err) ||
        fail "no run: $(cat home/err)"
    coord_exits 0 report home/results --artifact home/pack
    mkdir 'else where'
    mv home/pack 'else where'
    rm -r home
    cd 'else where/pack' || fail "no pack"
}

# The commands of the README's blocks, in order, one line each.
commands_of_readme() {
    awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' README.md
}

# rerun and compare exit with 1 where the machine has become slower meanwhile.
follow_readme() {
    local line status
    commands_of_readme >commands
    [ "$(wc -l <commands)" -ge 8 ] || fail "few commands: $(cat commands)"
    while read -r line; do
        case $line in
        *--figures*) draws_figures || continue ;;
        esac
        sh -c "$line" >>out 2>err </dev/null
        status=$?
        case $line in
        'refit-coord rerun '* | 'refit-coord compare '*)
            [ "$status" != 1 ] || status=0
            ;;
        esac
        [ "$status" = 0 ] || fail "exit status $status: $line: $(cat err)"
    done <commands
}

test_a_script_that_follows_the_readme_reproduces_all() {
    local name
    pack_elsewhere . --repeat 2
    : >out
    follow_readme
    expect_text out '^to-strategy=send_recv +(same|slower|faster|unclear)'
    expect_text out '^to-strategy=broadcast +(same|slower|faster|unclear)'
    expect_json_of_all '.status == "ok" and (.repeats | length == 2)' \
        one/*/to-*.json again/*/*/to-*.json
    for name in send_recv broadcast; do
        [ "$(jq -S '.plan.digest, .scenario' again/*/*/"to-strategy=$name.json")" = \
            "$(jq -S '.plan.digest, .scenario' \
                results/*/"to-strategy=$name.json")" ] ||
            fail "another scenario $name was run"
    done
    grep '&' published.tex | cut -d '&' -f 1-3 >rows
    expect_text rows '^to-strategy=broadcast & tcp & broadcast $'
    grep '&' again.tex | cut -d '&' -f 1-3 | diff rows - >&2 ||
        fail "another table"
    if draws_figures; then
        "$RF_TOP/tests/lib/check-figures" published-figures/*.pdf \
            again-figures/*.pdf || fail "a bad figure"
        [ "$(ls published-figures)" = "$(ls again-figures)" ] ||
            fail "other figures"
    fi
}

test_other_nodes_take_the_places_of_the_papers() {
    pack_elsewhere '.nodes = [{host: "a", slots: 2}, {host: "b", slots: 2}]
        | .scenarios[0].train.nodes = ["a"]
        | .scenarios[0].infer.nodes = ["b"]' -s '*=send_recv'
    export NODES=c,d
    commands_of_readme | grep '^refit-coord clusters/' >line
    sh -e line >out 2>err </dev/null || fail "$(cat line err)"
    expect_json again/*/*/to-*.json '.status == "ok" and
        .scenario.train.nodes == ["c"] and .scenario.infer.nodes == ["d"]'
}

# They are packed, but nobody can measure them again here, or has verified them;
# nor does anybody verify method null.
test_imported_results_are_no_runs_to_repeat() {
    echo "$small" >small.json
    echo 'name,system,window,seconds,train_nodes,train.tp,infer.tp,model.config
theirs,Other,all,0.001,1,2,2,small.json' >theirs.csv
    coord_exits 0 import theirs.csv -o home/results
    cluster 'del(.scenarios[0].strategy) | .scenarios[0].iterations = 1 |
        .scenarios += [.scenarios[0] + {name: "nothing", method: "null"}]'
    coord_exits 0 cluster.json -q -o home/results
    coord_exits 0 report home/results --artifact pack
    cd pack || fail "no pack"
    compgen -G 'results/*-theirs/theirs.json' >/dev/null ||
        fail "the imported results are not packed"
    commands_of_readme >commands
    if grep -E 'theirs.*\.json|(again|compare).*theirs' commands >&2; then
        fail "imported results are run again"
    fi
    expect_text commands '^refit-coord rerun results/[^ ]*-t/to\.json'
    [ "$(echo clusters/*)" = "$(echo clusters/*-t.json)" ] ||
        fail "clusters of what cannot run"
    expect_text appendix.tex 'measurements of 2 refits'
    expect_text appendix.tex 'times of 1 refits that others'
    expect_text appendix.tex '1 of which succeeded with'
}

test_the_pack_is_complete_and_valid() {
    pack_elsewhere '.scenarios += [{name: "own", train: {tp: 2}, infer: {tp: 4},
        model: {config: "models/small.json", num_layers: 1}, iterations: 1,
        warmup: 0}] | .launch.env = {MY_TOKEN: "hunter2", OMP_NUM_THREADS: "1"}'
    sha256sum --quiet -c SHA256SUMS || fail "bad checksums"
    diff <(find . -type f ! -name SHA256SUMS -printf '%P\n' | sort) \
        <(sed 's/^[0-9a-f]*  //' SHA256SUMS | sort) >&2 ||
        fail "other files than SHA256SUMS has"
    [ "$(grep -rl hunter2 .)" = "" ] || fail "a secret"
    expect_text README.md 'clusters/.*\.json: MY\\_TOKEN$'
    expect_json clusters/*.json '.launch == {method: "local",
        env: {OMP_NUM_THREADS: "1"}} and (.scenarios | length == 3) and
        .model.config.model_type == "qwen3" and .model.num_layers == 2 and
        .scenarios[2].model.num_layers == 1'
    expect_json environment.json '.runs | length == 1 and
        .[0].environment[0].host == "localhost" and .[0].head.libuv != null and
        (.[0].argv | contains(["cluster.json"]))'
    for name in schema/*.json; do
        [ "$(jq -S . "$name")" = \
            "$("$coord" schema "$(basename "$name" .json)" | jq -S .)" ] ||
            fail "another $name"
    done
    expect_text README.md "^[0-9TZ]*-t: .*refit-coord cluster\.json -q"
    expect_text README.md 'Before you repeat this step, remove `again/`'
    printf '%s\n' 'Artifact Appendix' Abstract \
        'Artifact check-list (meta-information)' Description 'How to access' \
        'Hardware dependencies' 'Software dependencies' 'Data sets' Models \
        Installation 'Experiment workflow' \
        'Evaluation and expected results' 'Experiment customization' Notes |
        diff - <(sed -nE 's/^\\(sub)*section\{(.*)\}$/\2/p' appendix.tex) >&2 ||
        fail "other headings"
    expect_text appendix.tex 'send\\_\\allowbreak\{\}recv\}: [0-9.]+~ms \[[0-9.]+, [0-9.]+\]; vs contiguous [0-9.]+ \[.*\], reruns [0-9.]+ to [0-9.]+( \(flags: .*\))?$'
    expect_text appendix.tex 'experiments \(approximately\)\?:\} about [0-9.]+ (s|min|h)$'
}

# A relative path begins in the folder of the run, not in that of the pack.
test_programs_that_the_pack_lacks_are_named() {
    mkdir bin
    ln -s "$worker" bin/refit-worker
    cluster '.scenarios[0].iterations = 1 | .launch = {method: "local",
        worker: "bin/refit-worker", wrap: ["env", "A=b c"]}'
    coord_exits 0 cluster.json -q -s '*=send_recv'
    coord_exits 0 report results --artifact pack
    expect_text pack/README.md \
        "^- Programs and keys .*\.json: /.*/bin/refit-worker, env 'A=b c'\$"
    expect_json pack/clusters/*.json '.launch.worker == "'"$PWD/bin/refit-worker\""
    expect_text pack/appendix.tex 'Data set:\} none'
}

test_a_changed_byte_fails_the_checksums() {
    local file command
    pack_elsewhere . -s '*=send_recv'
    command=$(commands_of_readme | head -n 1)
    sh -c "$command" || fail "unchanged: $command"
    for file in results/*/to-*.json clusters/*.json README.md schema/plan.json; do
        cp "$file" "$OLDPWD/kept"
        printf 'X' | dd of="$file" bs=1 seek=40 conv=notrunc 2>/dev/null
        cmp -s "$file" "$OLDPWD/kept" && fail "$file is as it was"
        ! sh -c "$command" >&2 || fail "not noticed in $file"
        cp "$OLDPWD/kept" "$file"
    done
    sh -c "$command" || fail "not as before"
}

# A small run to pack, in `run`.
small_run() {
    cluster '.scenarios[0].iterations = 1'
    coord_exits 0 cluster.json -q -s '*=send_recv'
    mv results/* run
}

# With "a/run" and "b/run", the first is called a_run.
test_no_two_runs_share_a_folder() {
    local name
    small_run
    mkdir a b c
    cp -r run a/run
    cp -r run b/run
    cp -r run c/b_run
    coord_exits 0 report a b c --artifact pack
    cd pack || fail "no pack"
    for name in a_run b_run b_run-2; do
        [ -s "results/$name/run.json" ] || fail "no results/$name"
        [ -s "clusters/$name.json" ] || fail "no clusters/$name.json"
    done
    sha256sum --quiet -c SHA256SUMS || fail "bad checksums"
}

refused() { # EXIT_CODE REGEX ARGUMENTS...
    local code=$1 regex=$2
    shift 2
    coord_exits "$code" report "$@"
    expect_text err "$regex"
    [ "$(find . -name 'new*')" = "" ] || fail "something is left"
}

test_failures_leave_nothing() {
    small_run
    mkdir -p full/x empty
    refused 2 '--artifact: full: is not empty; name a new folder$' \
        run --artifact full
    refused 2 'run/new: is inside .*/run' run --artifact run/new
    ln -s /etc/hostname run/link
    refused 2 'run/link: is neither a file nor a folder' run --artifact new
    rm run/link
    mkdir new.tmp
    coord_exits 2 report run --artifact new
    expect_text err 'new\.tmp: exists, perhaps left by a command that was killed'
    rmdir new.tmp
    refused 2 'cannot be combined: choose one output format' run --artifact new \
        --csv
    refused 2 'cannot be combined: .*remove --pool' run --artifact new --pool
    jq '.configuration.launch.method = "none"' run/run.json >x
    cp x run/run.json
    refused 2 'would not run again: .*launch\.method' run --artifact new
    # an empty folder will do, and a slash at the end
    jq '.configuration.launch.method = "local"' x >run/run.json
    coord_exits 0 report run --artifact empty/
    [ -s empty/SHA256SUMS ] || fail "no pack"
    if [ "$(id -u)" != 0 ]; then
        chmod 000 run/summary.csv
        refused 1 'summary\.csv: cannot read' run --artifact new
    fi
}

test_a_full_disk_leaves_nothing() {
    small_run
    unshare -rm true 2>/dev/null || {
        echo "skipped: no namespace for a small file system"
        return
    }
    mkdir small
    # shellcheck disable=SC2016 # for the inner shell
    unshare -rm sh -c 'mount -t tmpfs -o size=64k none small &&
        "$0" report run --artifact small/new >out 2>err; echo $? >code
        "$0" report run --artifact small >out 2>mounted; echo $? >>code
        ls -A small >left' "$coord" || fail "no small file system"
    show_output
    [ "$(paste -sd ' ' code)" = '1 2' ] || fail "exit codes $(cat code)"
    expect_text err '--artifact: .*No space left on device'
    expect_text mounted '--artifact: small: is a mount point; name a folder in it$'
    [ ! -s left ] || fail "something is left: $(cat left)"
    [ ! -e small.tmp ] || fail "a folder is left"
}

test_a_record_that_cannot_run_again_is_kept() {
    small_run
    jq '.plan = null | .status = "failed"' run/to-*.json >x
    mv x run/to-*.json
    coord_exits 0 report run --artifact new
    expect_text err 'plan\.digest: is missing.*; not in the cluster file'
    [ -s new/results/run/run.json ] || fail "no results"
    [ ! -e new/clusters ] || fail "a cluster file"
    expect_text new/appendix.tex ': failed, no time$'
}

test_doubts_about_figures_are_packed_with_them() {
    small_run
    jq '.flags = ["bimodal", "unstable"]' run/to-*.json >x
    mv x run/to-*.json
    coord_exits 0 report run --artifact new
    expect_text new/appendix.tex ': [0-9.]+~ms.* \(flags: bimodal; unstable\)$'
}

run_tests
