#!/bin/bash
# The list of suites, with sizes from their plans, and which scenarios of a
# suite's files are run.
# limit: 120
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

test_every_suite_is_listed_with_its_sizes() {
    BUILD=$RF_BUILD_DIR "$RF_TOP/scripts/refit-suite" >out 2>err ||
        fail "exit $?"
    expect_text err 'run one with ".*/refit-suite SUITE", as in'
    expect_text out '^n-to-m +5 +126 +2[.]15 GB +[0-9.]+ TB$'
    for name in "$RF_TOP"/examples/*.json; do
        name=$(basename "$name" .json)
        expect_text out "^${name%%.*} +[1-9][0-9]* +[1-9][0-9]* +[0-9.]+ [MGT]B +[0-9.]+ [MGT]B$"
    done
}

test_the_list_has_a_name() {
    BUILD=$PWD/none "$RF_TOP/scripts/refit-suite" list >out || fail "exit $?"
    expect_text out '^n-to-m$'
    for options in 4 'list --slow'; do
        # shellcheck disable=SC2086 # several words
        BUILD=$PWD/none "$RF_TOP/scripts/refit-suite" $options >out 2>err
        [ $? = 2 ] || fail "$options is not refused"
        expect_text err 'refit-suite: (4|--slow) needs a suite to apply to'
    done
}

test_scenarios_of_a_suite_are_listed_with_their_numbers() {
    for word in list -l; do
        BUILD=$RF_BUILD_DIR "$RF_TOP/scripts/refit-suite" "$word" megatron \
            pair >out 2>err || fail "exit $?: $(cat err)"
        expect_text out '^ +4 +[0-9.]+ GB  4-tp2pp2-to-tp4$'
        expect_text out '^ +8 +[0-9.]+ GB  8-tp2-to-tp1-methods-method=shm$'
        expect_text out '^ +- +[0-9.]+ [GM]B  [a-z].*$'
    done
    [ "$(grep -c '[0-9]-' out)" -ge 12 ] || fail "some are missing"
    [ "$(wc -l <out)" = 22 ] || fail "not one line for each of 19 and 2"
    BUILD=$RF_BUILD_DIR "$RF_TOP/scripts/refit-suite" list megatron 4 2>err
    [ $? = 2 ] || fail "a number is not refused"
    expect_text err 'list has all scenarios of a suite; remove 4'
    BUILD=$RF_BUILD_DIR "$RF_TOP/scripts/refit-suite" list megatorn 2>err
    [ $? = 2 ] || fail "an unknown suite is not refused"
    expect_text err 'did you mean megatron'
}

test_suites_are_listed_without_a_build() {
    BUILD=$PWD/none "$RF_TOP/scripts/refit-suite" >out || fail "exit $?"
    expect_text out '^n-to-m$'
}

# The module of UCX lies beside the worker, or not.
test_a_build_without_ucx_runs_the_other_methods() {
    mkdir bin
    cp "$RF_BUILD_DIR"/refit-{coord,worker} bin
    small='--set scenarios.*.iterations=1 --set scenarios.*.yardstick=false'
    small+=' --set model.num_hidden_layers=2 --set model.hidden_size=256'
    small+=' --set model.vocab_size=4096'
    # shellcheck disable=SC2086 # several options
    BUILD=$PWD/bin "$RF_TOP/scripts/refit-suite" methods -s 'tp2*' $small \
        >out 2>err || fail "exit $?: $(cat err)"
    expect_text err 'methods.json: without method ucx, which this build lacks'
    expect_text out '^tp2pp2-to-tp4-method=host .* yes$'
    expect_text err '^refit-suite: 5 scenarios move [0-9.]+ [MG]B: about 1 min at 2.00 GB/s$'
    expect_no_text out 'method=ucx'
    [ -e "$RF_BUILD_DIR/refit-ucx.so" ] || return 0
    cp "$RF_BUILD_DIR/refit-ucx.so" bin
    # shellcheck disable=SC2086
    BUILD=$PWD/bin "$RF_TOP/scripts/refit-suite" methods -s '*=ucx' $small \
        >out 2>err || fail "exit $?: $(cat err)"
    expect_no_text err 'without method ucx'
    expect_text out '^tp2pp2-to-tp4-method=ucx .* yes$'
}

test_an_unknown_suite_lists_the_known() {
    BUILD=$RF_BUILD_DIR "$RF_TOP/scripts/refit-suite" nope >out 2>err
    [ $? = 2 ] || fail "not refused"
    expect_text err 'no suite nope; there are: .*n-to-m'
    BUILD=$RF_BUILD_DIR "$RF_TOP/scripts/refit-suite" mthods >out 2>err
    [ $? = 2 ] || fail "not refused"
    expect_text err 'no suite mthods \(did you mean methods\?\); there are: '
}

# A dry run of the suite megatron, whose scenarios are in six files; the names
# of what was planned go to `planned`.
megatron() { # OPTIONS OF refit-coord...
    BUILD=$RF_BUILD_DIR "$RF_TOP/scripts/refit-suite" megatron -- -n --json \
        "$@" >out 2>err
    status=$?
    cat err >&2
    planned=$(jq -r '.scenarios[].scenario.name' out | paste -sd ' ')
}

# Whether refit-coord said of one file how many scenarios run, and nothing else.
only_counts() {
    [ "$(wc -l <err)" -le 1 ] && ! grep -v '^[0-9].* scenarios' err
}

test_a_scenario_runs_from_the_only_file_that_has_it() {
    megatron -s 1-tp2-to-tp1
    expect_exit 0
    [ "$planned" = 1-tp2-to-tp1 ] || fail "planned $planned"
    only_counts || fail "the other files were heard of"
}

test_scenarios_of_several_files_run_from_theirs() {
    megatron -s1-tp2-to-tp1 --scenario=9-tp2pp2-to-tp4 --scenario '1-*'
    expect_exit 0
    [[ " $planned " = *" 1-tp2-to-tp1 "* ]] || fail "planned $planned"
    [[ " $planned " = *" 9-tp2pp2-to-tp4 "* ]] || fail "planned $planned"
}

# What the numbers of Megatron-LM's helper script stand for.
numbered() { # NUMBER EXPECTED_NAMES
    BUILD=$RF_BUILD_DIR "$RF_TOP/scripts/refit-suite" megatron "$1" -- -n \
        --json >out 2>err || fail "number $1: $(cat err)"
    planned=$(jq -r '.scenarios[].scenario.name' out | paste -sd ' ')
    [ "$planned" = "$2" ] || fail "number $1 planned $planned"
}

test_scenarios_run_by_their_number() {
    numbered 1 1-tp2-to-tp1
    numbered 2 2-tp2-to-tp1-separate
    numbered 3 3-tp1-to-tp2
    numbered 4 4-tp2pp2-to-tp4
    numbered 5 5-pp2-to-tp2
    numbered 6 6-ep2-to-ep1
    numbered 7 7-ep2-to-ep4
    numbered 8 "8-tp2-to-tp1-methods-method=host 8-tp2-to-tp1-methods-method=tcp 8-tp2-to-tp1-methods-method=shm"
    numbered 9 9-tp2pp2-to-tp4
    numbered 10 "1-tp2-to-tp1 3-tp1-to-tp2 2-tp2-to-tp1-separate"
}

# The model of a suite's file is that of the flags.
test_megatron_models_are_those_of_its_flags() {
    "$coord" megatron --refit-mode collocated --refit-method gloo \
        --num-layers 4 --hidden-size 1024 --num-attention-heads 8 \
        --seq-length 512 --max-position-embeddings 512 --num-experts 8 \
        --ffn-hidden-size 4096 --print >printed.json 2>err || fail "exit $?"
    [ "$("$coord" plan --json printed.json | jq '.model.bytes')" = \
        "$("$coord" plan --json "$RF_TOP/examples/megatron.experts.json" |
            jq '.model.bytes')" ] || fail "other models"
}

test_a_number_that_no_scenario_has_is_an_error() {
    BUILD=$RF_BUILD_DIR "$RF_TOP/scripts/refit-suite" megatron 11 >out 2>err
    [ $? = 2 ] || fail "not refused"
    expect_text err 'no scenario .*"11-[*]".*there are: 1-tp2-to-tp1 '
}

test_a_scenario_that_no_file_has_is_an_error_before_anything_runs() {
    megatron -s 1-tp2-to-tp1 -s 1-tp2-to-tp3
    expect_exit 2
    [ ! -s out ] || fail "something was planned"
    expect_text err 'no scenario .*"1-tp2-to-tp3".*there are: .*1-tp2-to-tp1 .*9-tp2pp2-to-tp4'
    [ "$(wc -l <err)" = 1 ] || fail "more than one error"
}

test_options_are_known_abbreviated_and_bundled() {
    megatron --scen 1-tp2-to-tp1
    expect_exit 0
    [ "$planned" = 1-tp2-to-tp1 ] || fail "planned $planned"
    megatron -ns1-tp2-to-tp1
    expect_exit 0
    [ "$planned" = 1-tp2-to-tp1 ] || fail "planned $planned"
    megatron -s 1-tp2-to-tp1 --nonsense
    expect_exit 2
    expect_text err 'nonsense'
}

# A dry run of suites with options of refit-suite itself.
suite() { # ARGUMENTS
    BUILD=$RF_BUILD_DIR "$RF_TOP/scripts/refit-suite" "$@" -- -n --json \
        >out 2>err
    status=$?
    cat err >&2
    planned=$(jq -r '.scenarios[].scenario.name' out | paste -sd ' ')
}

test_several_suites_run_one_after_another() {
    suite megatron gather-broadcast -s 1-tp2-to-tp1 -s 'tp2pp2*=send_recv'
    expect_exit 0
    [ "$planned" = "1-tp2-to-tp1 tp2pp2-to-tp4-strategy=send_recv" ] ||
        fail "planned $planned"
    suite megatron nope
    expect_exit 2
    expect_text err 'no suite nope'
}

test_values_and_hosts_are_set_in_every_file() {
    printf 'a slots=2\nb slots=2\n' >hosts
    suite sweep --hostfile hosts --set 'scenarios.*.iterations=3'
    expect_exit 0
    [ "$planned" = "$(printf ' sweep-model=%s' 1MiB 4MiB 16MiB 64MiB 256MiB \
        1GiB | cut -c 2-)" ] || fail "planned $planned"
    jq -se 'map(.scenarios[].scenario) | all(.iterations == 3 and
        .train.nodes == ["a"] and .infer.nodes == ["b"])' out >/dev/null ||
        fail "not what was set"
    jq -se '[.[].scenarios[].plan.bytes_total | log2] ==
        [20, 22, 24, 26, 28, 30]' out >/dev/null || fail "other bytes"
}

test_a_method_that_the_keys_of_a_scenario_do_not_suit_is_refused() {
    suite methods --set 'scenarios.*.method=ucx'
    expect_exit 2
    expect_text err 'scenarios\[0\]\.disk \([a-z0-9-]+\): applies to method disk, not to ucx: '
    suite methods --set 'scenarios.*.method=ucx' --set 'scenarios.*.disk=null'
    expect_exit 0
    [ "$planned" = "same-layout tp2pp2-to-tp4 durable-disk" ] ||
        fail "planned $planned"
}

test_files_without_the_scenario_that_is_set_are_left_out() {
    suite megatron --set scenarios.1-tp2-to-tp1.iterations=3
    expect_exit 0
    [[ "$planned " = *"1-tp2-to-tp1 "* ]] || fail "planned $planned"
    only_counts || fail "the other files were heard of"
    suite megatron --set scenarios.1-tp2-to-tp9.iterations=3
    expect_exit 2
    expect_text err 'scenarios: unknown member "1-tp2-to-tp9"'
    [ ! -s out ] || fail "something was planned"
}

test_a_suite_runs_elsewhere_without_an_edit() {
    printf 'left slots=4\nright slots=4\n' >hosts
    BUILD=$RF_BUILD_DIR "$RF_TOP/scripts/refit-suite" gather-broadcast \
        -o results --hostfile hosts --set model.num_layers=2 \
        --set launch.method=local --set 'scenarios.*.iterations=2' \
        --set model.vocab_size=4096 \
        -s '*=send_recv' >out 2>err || fail "exit $?: $(cat err)"
    expect_json "$(result tp2pp2-to-tp4-strategy=send_recv)" \
        '.status == "ok" and (.iterations | length == 2) and
        ([.environment[].host] == ["left", "right"]) and
        (.model.name | contains("num_layers 2"))'
}

test_a_cluster_file_gives_nodes_and_model() {
    mkdir -p mine/models
    jq '.num_hidden_layers = 2' "$RF_TOP/models/qwen3-0.6b.json" \
        >mine/models/small.json
    jq '.nodes = [{host: "a", slots: 8}, {host: "b", slots: 8}]
        | .model = {config: "models/small.json"}' <<<"$four_slots" \
        >mine/cluster.json
    suite pair --cluster mine/cluster.json
    expect_exit 0
    expect_json out '.model.name == "small.json" and .model.num_layers == 2 and
        (.scenarios | length == 2) and
        all(.scenarios[].scenario; .train.nodes == ["a"] and
            .infer.nodes == ["b"])'
    jq 'del(.model)' mine/cluster.json >x && mv x mine/cluster.json
    suite pair --cluster mine/cluster.json -s '*=send_recv'
    expect_exit 0
    expect_json out '.model.name | startswith("qwen3-0.6b")'
    suite pair --cluster mine/absent.json
    expect_exit 2
    expect_text err 'cannot read mine/absent.json'
}

test_hosts_of_a_test_bed_are_its_own() {
    suite sweep --testbed --nodes 'a[1-2]'
    expect_exit 2
    expect_text err 'remove --nodes'
}

test_slow_scenarios_of_a_suite_are_asked_for() {
    mkdir -p top/examples
    cp -r "$RF_TOP/scripts" top/
    jq '.scenarios = [{name: "quick", train: {tp: 2}, infer: {tp: 4}},
        {name: "long", slow: true, train: {tp: 4}, infer: {tp: 2}}]' \
        <<<"$four_slots" >top/examples/both.json
    for options in "" --slow "--set scenarios.*.warmup=0" "-s long"; do
        # shellcheck disable=SC2086 # several words
        BUILD=$RF_BUILD_DIR top/scripts/refit-suite both $options -- -n \
            --json >out 2>err || fail "exit $?: $(cat err)"
        jq -r '[.scenarios[].scenario.name] | join(" ")' out
    done >planned
    printf '%s\n' quick "quick long" quick long >expected
    cmp planned expected || fail "planned $(cat planned)"
}

test_a_suite_that_cannot_be_planned_shows_its_error() {
    mkdir -p top/examples
    cp -r "$RF_TOP/scripts" top/
    echo '{"name": "x", "nope": 1}' >top/examples/broken.json
    BUILD=$RF_BUILD_DIR top/scripts/refit-suite broken -- -n -s a >out 2>err
    status=$?
    cat err >&2
    expect_exit 2
    expect_text err 'unknown key "nope"'
    expect_no_text err 'no scenario'
}

test_an_option_of_the_program_is_shown_its_place() {
    BUILD=$RF_BUILD_DIR "$RF_TOP/scripts/refit-suite" megatron -n >out 2>err
    [ $? = 2 ] || fail "not refused"
    expect_text err 'unknown option -n;.* megatron -- -n$'
}

# Names, layouts and bytes of the published cases: those of a format move from
# senders that convert, those of bfloat16 to receivers that do.
test_engines_move_the_bytes_of_the_format_that_senders_make() {
    suite engines
    expect_exit 0
    [ "$(wc -w <<<"$planned")" = 39 ] || fail "planned $planned"
    jq -s '[.[].scenarios[] | {(.scenario.name): .plan.bytes_total}] | add' \
        out >bytes
    for case in rdt-kimi-k2 rdt-qwen3-235b nemo-rl-qwen3-30b \
        nemo-rl-deepseek-v3; do
        jq -e --arg case "$case" '.["\($case)-bf16"] as $whole
            | with_entries(select(.key | startswith("\($case)-fp8-"))
                | .value /= $whole)
            | length == 4 and all(to_entries[];
                if .key | test("at=sender") then .value > 0.5 and .value < 0.55
                else .value == 1 end)' bytes >/dev/null ||
            fail "$case, fp8: $(cat bytes)"
        jq -e --arg case "$case" '.["\($case)-bf16"] as $whole
            | with_entries(select(.key | startswith("\($case)-nvfp4-"))
                | .value /= $whole)
            | length == 2 and all(.[]; . > 0.28 and . < 0.34)' \
            bytes >/dev/null || fail "$case, nvfp4: $(cat bytes)"
    done
}

# A case of each system at each end, as far as one machine shows them.
test_engines_are_refitted_and_verified() {
    printf '%s slots=4\n' a b c d >hosts
    BUILD=$RF_BUILD_DIR "$RF_TOP/scripts/refit-suite" engines -o results \
        --hostfile hosts --set launch.method=local \
        --set variables.kimi-k2.num_layers=2 \
        --set variables.qwen3-30b.num_layers=2 \
        --set 'scenarios.*.warmup=0' --set 'scenarios.*.iterations=1' \
        --set 'scenarios.*.yardstick=false' \
        -s 'rdt-kimi-k2-*=sender*overlap=true' \
        -s 'rdt-kimi-k2-nvfp4*=true' \
        -s 'nemo-rl-qwen3-30b-*=receiver*=true' \
        -s 'pools-*' -s 'load-*' >out 2>err || fail "exit $?: $(cat err)"
    expect_verified "$(result pools-qwen3-30b-bf16)"
    expect_verified "$(result pools-qwen3-30b-formats)"
    expect_json_of_all '.summary.load.refit_slowdown.median > 0' \
        results/*/load-*.json
    expect_verified results/*/*-fp8-*.json results/*/*-nvfp4-*.json
    expect_json_of_all '[.iterations[].ranks[] | select(.quantize_ms)]
        | length == 8' results/*/*-fp8-*.json results/*/*-nvfp4-*.json
}

# Of every kind of layer one model, refitted.
test_models_of_the_suite_are_refitted() {
    BUILD=$RF_BUILD_DIR "$RF_TOP/scripts/refit-suite" models -o results \
        -s '*=llama' -s '*=nemotron_h' -s '*=gpt_oss' -s '*=qwen3_next' -s '*=gemma4_text' \
        --set 'scenarios.*.warmup=0' --set 'scenarios.*.iterations=1' \
        >out 2>err || fail "exit $?: $(cat err)"
    for name in dense-model=llama experts-model={nemotron_h,gpt_oss,qwen3_next,gemma4_text}; do
        expect_json "$(result "$name")" '.status == "ok" and
            .verification.checked_bytes > 0 and
            .verification.mismatched_bytes == 0 and
            .scenario.train.tp == 2 and .scenario.train.pp == 2 and
            .scenario.infer.tp == 2'
    done
}

run_tests
