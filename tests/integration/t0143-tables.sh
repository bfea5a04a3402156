#!/bin/bash
# limit: 60
# Tables on a terminal of this or that width, and in a pipe.
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"
unset COLUMNS
export LC_ALL=C.UTF-8

base=$(jq '. + {scenarios: [{"name": "colocated-in-one-node",
    "train": {"tp": 2, "pp": 2}, "infer": {"tp": 4, "layout": "hf"},
    "warmup": 0, "iterations": 3}],
    links: {copy_gbytes_per_s: 20, methods: {tcp: {copy_gbytes_per_s: 2}}}
  }' <<<"$four_slots")

# Runs refit-coord on a terminal of so many columns; its screen is in the file
# screen.
on_terminal() { # COLUMNS ARGUMENT...
    local columns=$1
    shift
    script -qec "stty cols $columns && $(printf '%q ' "$coord" "$@")" \
        /dev/null </dev/null >screen.raw
    status=$?
    # Without what the progress bar has drawn and erased again.
    tr -d '\r' <screen.raw | sed 's/.*\x1b\[K//' >screen
    sed 's/^/  screen: /' screen >&2
}

# Of the table alone: log lines are as long as they are.
expect_columns() { # MOST
    local line
    while IFS= read -r line; do
        [ "${#line}" -le "$1" ] || fail "more than $1 columns: $line"
    done < <(sed -n '/^scenario  /,$p' screen | sed '/^refit-coord: /,$d')
}

# A result that has something for every column.
run_folder() { # FOLDER
    mkdir "$1"
    echo '{"scenarios": []}' >"$1/run.json"
    jq -n '{schema_version: 1, name: "disaggregated-strategy=broadcast",
        status: "ok", scenario: {method: "host", strategy: "broadcast"},
        plan: {bytes_total: 1e9}, schedule: {inter_node_bytes: 1e9},
        summary: {median_ms: 100.1, p95_ms: 111.1, algbw_gbytes_per_s: 12.5,
            memory: {peak_bytes: 1.5e9, predicted_bytes: 1.4e9}},
        bound: {ms: 86.1, efficiency: 0.86},
        verification: {checked_bytes: 1, mismatched_bytes: 0},
        iterations: [{refit_ms: 99}, {refit_ms: 100.1}, {refit_ms: 103}]}' \
        >"$1/disaggregated-strategy=broadcast.json"
}

test_a_report_fits_the_terminal_and_says_what_is_left_out() {
    run_folder run
    on_terminal 80 report run
    expect_exit 0
    expect_columns 80
    expect_text screen '^scenario .* median ms .* verified$'
    expect_text screen '^disaggregated-strategy=broadcast .* 100\.1 .* yes$'
    expect_no_text screen '^scenario .* (bound|p95) ms'
    expect_text screen '^not shown in 80 columns: predicted, peak memory, bound ms \(best\), p95 ms'
    expect_text screen '^all columns: refit-coord report .*less -S'
    on_terminal 200 report run
    expect_text screen '^scenario .* p95 ms .* bound ms \(best\) .* verified$'
    expect_no_text screen 'not shown'
}

test_a_pipe_gets_every_column() {
    run_folder run
    COLUMNS=40 coord_exits 0 report run
    expect_text out '^scenario .* p95 ms .* bound ms \(best\) .* verified$'
    expect_no_text out 'not shown'
}

test_columns_overrules_the_terminal() {
    run_folder run
    COLUMNS=60 on_terminal 200 report run
    expect_columns 60
    expect_text screen '^not shown in 60 columns'
}

test_comparisons_and_predictions_fit_too() {
    run_folder old
    run_folder new
    on_terminal 60 compare old new
    expect_exit 0
    expect_columns 60
    expect_text screen '^disaggreg.*broadcast  same .* 100\.1 +100\.1 +time +\+0\.0 %$'
    expect_text screen '^not shown in 60 columns: efficiency, also differs,'
    cluster
    on_terminal 60 predict cluster.json
    expect_exit 0
    expect_columns 60
    expect_text screen '^colocated-in-one-node +tcp '
    expect_text screen '^not shown in 60 columns: refit share, step s'
}

test_the_table_of_a_run_fits() {
    cluster
    on_terminal 80 cluster.json
    expect_exit 0
    expect_columns 80
    expect_text screen '^colocated-in-one-node .* yes$'
    expect_text screen '^not shown in 80 columns: predicted, peak memory, bound ms \(best\)'
}

test_families_keep_their_names_whole_on_a_narrow_terminal() {
    cluster
    on_terminal 80 plan -v cluster.json
    expect_exit 0
    expect_text screen '^  family +tensors  role'
    expect_text screen '^  model\.layers\.\{L\}\.post_attention_layernorm\.weight +4  norm'
    expect_text screen '^  not shown in 80 columns: rule, an inference rank, a training rank, shape'
    expect_text screen '^  all columns: refit-coord plan -v'
    on_terminal 50 plan -v cluster.json
    expect_text screen '^  model\.layers\.\{L\}\.post_attention_layernorm\.weight +4 '
}

run_tests
