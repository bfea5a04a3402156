#!/bin/bash
# Mistakes in the command line or cluster.json: exit 2, one clear error that
# names file, place and rule, and nothing launched or written.
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base='{
  "name": "t", "launch": {"method": "local"},
  "nodes": [{"host": "localhost", "slots": 4}],
  "model": {"megatron": {"num_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "vocab_size": 128}},
  "scenarios": [{"name": "a", "train": {"tp": 2, "pp": 2}, "infer": {"tp": 4}}]}'

refused() { # JQ_PROGRAM TEXT...: exit 2, each text in the error
    local program=$1 text
    shift
    cluster "$program"
    coord_exits 2 cluster.json
    [ ! -s out ] || fail "an error printed to standard output"
    [ ! -e results ] || fail "results/ appeared"
    for text in "$@"; do
        grep -qF -- "$text" err || fail "the error lacks: $text"
    done
    rm cluster.json
}

test_unknown_keys_are_named() {
    refused '.nodes[0].slot = 1' 'cluster.json' '$.nodes[0]' 'slot'
    refused '.scenari = []' 'scenari'
    refused '.launch.metod = "ssh"' '$.launch' 'metod'
    refused '.scenarios[0].train.tpp = 2' '$.scenarios[0].train' 'tpp'
    refused '.model.megatron.num_layer = 2' '$.model.megatron' 'num_layer'
}

test_wrong_types_and_values_are_named() {
    refused '.nodes[0].slots = "4"' '$.nodes[0].slots' 'not "4"'
    refused '.nodes[0].slots = 0' '$.nodes[0].slots' 'from 1 to ' 'not 0'
    refused '.scenarios[0].iterations = -1' '$.scenarios[0].iterations' 'not -1'
    refused '.control.port_range = [70000, 1]' '$.control.port_range' \
        'not [70000,1]'
    refused '.scenarios[0].mode = "colocate"' '$.scenarios[0].mode'
    refused '.scenarios[0].method = "pigeon"' 'pigeon' 'host'
    refused '.scenarios[0].strategy = "hope"' '$.scenarios[0].strategy' \
        'send_recv'
    refused '.model = {"config": "absent.json"}' 'absent.json'
}

test_every_command_names_the_place_in_the_model() {
    local command
    cluster '.model.megatron.num_layers = 0 | .links = {link_gbytes_per_s: 1}'
    for command in run plan check predict; do
        coord_exits 2 "$command" cluster.json
        expect_text err 'cluster.json: \$.model.megatron.num_layers: must be'
    done
}

test_impossible_meshes_name_the_rule() {
    refused '.scenarios[0].train.tp = 3' '$.scenarios[0]'
    refused '.scenarios[0].infer.tp = 8' '$.scenarios[0]'
    refused '.scenarios[0].train.pp = 5 | .nodes[0].slots = 20' '$.scenarios[0]'
}

test_an_unknown_model_type_says_what_to_do() {
    refused '.model = {config: {model_type: "nonesuch"}}' \
        '$.model.config.model_type: unknown model type "nonesuch"' 'known: ' \
        '"checkpoint", "manifest" or "megatron"'
    refused '.model = {config: {model_type: "qwen3moe"}}' \
        '(did you mean "qwen3_moe"?)'
}

test_files_of_other_kinds_are_named() {
    echo '{"schema_version": 1, "iterations": []}' >result.json
    echo '{"scenarios": []}' >suite.json
    refused '.model = {config: "result.json"}' \
        '$.model.config: result.json is a result, not a model'
    refused '.model = {config: "suite.json"}' \
        '$.model.config: suite.json is a cluster file, not a model'
    coord_exits 2 result.json
    expect_text err '^error: result.json: .*this is a result, .*rerun'
}

# Commands that reach no node cannot ask one for the headers.
test_a_checkpoint_that_is_not_here_says_what_to_do() {
    local command
    cluster '.model = {checkpoint: "absent/model"}'
    for command in plan predict "run --dry-run"; do
        # shellcheck disable=SC2086 # two words
        coord_exits 2 $command cluster.json
        expect_text err "[$].model.checkpoint: .*/absent/model is not on this machine"
        expect_text err 'mount the folder here under the same path, or run the command on a node'
    done
    touch plain
    refused '.model = {checkpoint: "plain"}' '$.model.checkpoint: ' \
        'plain: Not a directory'
}

test_dangerous_names_are_refused_before_anything_starts() {
    refused '.launch.method = "ssh" | .nodes[0].host = "-oProxyCommand=x"' \
        '$.nodes[0].host'
    refused '.launch.method = "ssh" | .nodes[0].host = "a;b"' '$.nodes[0].host'
    refused '.launch.method = "ssh" | .nodes[0].host = ""' '$.nodes[0].host'
    refused '.launch.worker = "$(touch x)"' '$.launch.worker'
    refused '.launch.method = "ssh" | .nodes[0].user = "x -p"' '$.nodes[0].user'
    refused '.nodes += .nodes' 'localhost'
}

test_broken_documents_say_where() {
    local text
    for text in '' '{' '[1, 2' '{"name": "a", "name": "b"}' '{"name": tru}' \
        'null' '"text"'; do
        printf '%s' "$text" >cluster.json
        coord_exits 2 cluster.json
        expect_text err 'cluster\.json'
    done
    coord_exits 2 absent.json
    expect_text err 'absent\.json.*No such file'
    mkfifo pipe.json
    coord_exits 2 pipe.json
    coord_exits 2 /dev/zero
}

test_wrong_usage_is_exit_2() {
    cluster
    run_coord
    expect_exit 2
    coord_exits 2 --no-such-option cluster.json
    coord_exits 2 plan
    coord_exits 2 cluster.json second.json
    coord_exits 2 cluster.json -s 'matches-nothing*'
    coord_exits 2 cluster.json --timeout soon
    [ ! -e results ] || fail "results/ appeared"
}

test_a_result_folder_that_cannot_be_used_is_exit_2() {
    cluster
    touch file
    coord_exits 2 cluster.json -o file/results
    expect_text err 'file/results.*Not a directory'
    coord_exits 2 cluster.json --resume absent
    expect_text err 'absent.*No such file'
    [ ! -e absent ] || fail "absent/ appeared"
    mkdir empty
    coord_exits 2 cluster.json --resume empty
    expect_text err 'empty is not a result folder \(no run\.json\); name the'
}

test_output_that_goes_nowhere_is_an_error() {
    cluster
    "$coord" plan cluster.json 2>err >/dev/full
    status=$?
    expect_exit 1
    expect_text err 'standard output'
    "$coord" plan cluster.json --json 2>err >/dev/full
    status=$?
    expect_exit 1
    [ "$(grep -c 'standard output' err)" = 1 ] || fail "not told once"
    "$coord" check cluster.json --json 2>err >&- <&-
    status=$?
    expect_exit 1
    expect_text err 'standard output'
}

# A run's folder with results whose names and texts do not matter.
some_run() { # FOLDER
    mkdir "$1"
    echo '{"scenarios": [{"name": "a"}]}' >"$1/run.json"
    echo '{"schema_version": 1, "name": "a", "status": "ok",
        "summary": {"median_ms": 1}}' >"$1/a.json"
}

test_a_page_is_written_through_what_is_no_file() {
    some_run run
    coord_exits 0 report run --html -
    expect_text out '^</html>$'
    mkfifo fifo
    cat fifo >page.html &
    coord_exits 0 report run --html fifo
    wait $!
    expect_text page.html '^</html>$'
    [ -p fifo ] || fail "the FIFO is gone"
    ln -s target.html link.html
    coord_exits 0 report run --html link.html
    expect_text target.html '^</html>$'
    [ -L link.html ] || fail "the link is gone"
    ln -s /proc/self/fd/1 stdout # as /dev/stdout is
    coord_exits 0 report run --html stdout
    expect_text out '^</html>$'
}

test_a_page_that_nobody_takes_is_an_error() {
    some_run run
    "$coord" report run --html - 2>err >/dev/full
    status=$?
    expect_exit 1
    expect_text err 'standard output: write: No space'
    [ "$(wc -l <err)" = 1 ] || fail "not told once"
    mkfifo fifo
    exec 3<>fifo
    exec 4>fifo 3<&- # its reader has gone
    "$coord" report run --html - 2>err >&4
    status=$?
    expect_exit 1
    expect_text err 'standard output: write: Broken pipe'
}

test_a_fifo_without_a_reader_is_named() {
    some_run run
    mkfifo fifo
    start_coord report run --html fifo
    wait_until 20 "a word on the FIFO" grep -q 'fifo: waiting' err
    cat fifo >page.html
    finish_coord
    expect_exit 0
    expect_text page.html '^</html>$'
}

no_control_characters() { # FILE
    if grep -nP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae' "$1"; then
        fail "control characters in $1"
    fi
}

test_predictions_show_texts_of_results_as_text() {
    local run=$'run\e[31m\n\xff'
    cluster '.links = {copy_gbytes_per_s: 1}'
    mkdir "$run"
    echo '{"scenarios": []}' >"$run/run.json"
    jq -n '{schema_version: 1, status: "ok", summary: {median_ms: 1}, name: "a",
        model: {name: "\u009b2J\u202e"}}' >"$run/a.json"
    coord_exits 0 predict cluster.json "$run"
    expect_text out '^\[1\] .*scenario a of run run\?\[31m \? measures another'
    no_control_characters out
    coord_exits 0 predict cluster.json "$run" --json
    expect_json out '.predictions[0].measured_note | test("scenario a of run")'
    no_control_characters out
}

test_texts_of_result_files_are_nothing_but_text() {
    local form
    mkdir $'run\e[31m'
    cd $'run\e[31m' || fail "no folder"
    echo '{"scenarios": []}' >run.json
    jq -n '{schema_version: 1, status: "ok", summary: {median_ms: 1},
        name: "\u001b[2J\u009b\u202e<script>[x](javascript:y)\n=1+1",
        scenario: {method: "=cmd()", strategy: "\t@SUM(A1)"},
        model: {name: "--><script>"}}' >a.json
    for form in "" --csv --latex --markdown "--html -"; do
        # shellcheck disable=SC2086 # words
        coord_exits 0 report . $form
        no_control_characters out
        case $form in
        --csv) expect_no_text out '(^|,)"?[=@]' ;;
        --markdown) expect_no_text out '<script|[^\\]\]\(javascript' ;;
        --html*)
            [ "$(grep -c '<script' out)" = 1 ] || fail "not one script, ours"
            ;;
        esac
    done
    coord_exits 0 compare . . --json
    expect_json out '.comparisons[0].scenario | test("script")'
    if LC_ALL=C grep -n '[^ -~]' out; then fail "not ASCII"; fi
}

test_results_that_are_not_there_are_told() {
    local command
    mkdir run
    echo '{"scenarios": [{"name": "a", "status": "ok"},
        {"name": "gone", "status": "ok"}, {"name": "empty", "status": "ok"},
        {"name": "later", "status": "not run"}]}' >run/run.json
    echo '{"schema_version": 1, "name": "a", "status": "ok",
        "summary": {"median_ms": 1}}' >run/a.json
    echo '{"schema_version": 1, "name": "empty"}' >run/empty.json
    for command in "report run ./run" "compare run run"; do
        # shellcheck disable=SC2086 # words
        coord_exits 1 $command
        expect_text err 'scenario gone left out.* missing'
        expect_text err 'run/empty\.json: not a record with a summary'
        expect_no_text err 'scenario (a|later) '
    done
}

test_bad_result_files_do_not_hide_the_others() {
    local command file
    some_run run
    some_run old
    head -c 30 run/a.json >run/cut.json
    echo '#!/bin/sh' >run/foreign.json
    mkdir run/folder.json
    mkfifo run/fifo.json
    echo '{"schema_version": 99, "name": "later", "summary": {}}' >run/later.json
    for command in "report run" "report run --html page" "compare old run"; do
        # shellcheck disable=SC2086 # words
        coord_exits 1 $command
        for file in cut foreign folder fifo later; do
            [ "$(grep -c "run/$file.json.* left out" err)" = 1 ] ||
                fail "$file.json is not named once"
        done
        expect_no_text err 'error: '
    done
    expect_text out '^a +same'
    expect_text page '<td>a</td>'
    rm -r run/[b-l]*.json
    coord_exits 0 compare old run
}

test_a_regression_does_not_hide_that_output_goes_nowhere() {
    local run ms
    for run in old:1.5 new:3.5; do
        ms=${run#*:} run=${run%:*}
        mkdir "$run"
        echo '{"scenarios": [{"name": "a"}]}' >"$run/run.json"
        echo '{"schema_version": 1, "name": "a", "status": "ok",
            "summary": {"median_ms": '"$ms"'}, "iterations": [
            {"refit_ms": '"$ms"'}, {"refit_ms": '"$ms"'},
            {"refit_ms": '"$ms"'}]}' >"$run/a.json"
    done
    "$coord" compare old new 2>err >/dev/full
    status=$?
    expect_exit 1
    expect_text err 'cannot write to standard output'
}

test_help_and_version_go_to_standard_output() {
    coord_exits 0 --help
    expect_text out 'CLUSTER\.json'
    [ ! -s err ] || fail "help wrote to standard error"
    coord_exits 0 --version
    expect_text out '^refit-coord [0-9]'
}

test_a_worker_needs_pipes_or_sockets() {
    local status input
    : >file
    for input in /dev/null file -; do
        status=0
        if [ "$input" = - ]; then
            "$worker" --stdio <&- 2>err | cat >out || status=$?
        else
            "$worker" --stdio <"$input" 2>err | cat >out || status=$?
        fi
        [ "$status" = 2 ] || fail "exit $status with the input $input"
        expect_text err 'standard input must be a pipe or socket'
    done
    status=0
    : | "$worker" --stdio >out 2>err || status=$?
    [ "$status" = 2 ] || fail "exit $status with a file as its output"
    expect_text err 'standard output must be a pipe or socket'
}

test_a_window_of_probes_that_is_none_is_refused() {
    local text
    cluster
    for text in 0 51 1x ''; do
        REFIT_PROBE_MS=$text coord_exits 1 cluster.json
        expect_text err "failed \\(probe\\): .*rank [0-9]+: REFIT_PROBE_MS is \"$text\", must be 1 to 50 milliseconds"
    done
}

run_tests
