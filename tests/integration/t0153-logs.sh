#!/bin/bash
# limit: 120
# The logs of ranks: what is kept beside the results, and when.
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base=$(jq '. + {scenarios: [{"name": "s", "mode": "disaggregated",
    "train": {"tp": 2}, "infer": {"tp": 2, "layout": "vllm"},
    "warmup": 1, "iterations": 3}]}' <<<"$four_slots")

test_a_quiet_run_has_logs_only_where_they_are_asked_for() {
    cluster
    coord_exits 0 cluster.json
    expect_json "$(result s)" '.logs == []'
    [ -z "$(find results -name logs)" ] || fail "there are logs"
    coord_exits 0 cluster.json --logs --repeat 2 -o asked
    cd asked/* || fail "no run"
    expect_json s.json '.logs == [range(4) | "logs/s/repeat-1.rank-\(.).log"]
        and .repeats[0].logs[3] == "logs/s/repeat-0.rank-3.log"'
    [ "$(find logs -type f | wc -l)" = 8 ] || fail "not 8 logs"
    expect_text logs/s/repeat-1.rank-3.log \
        '^scenario s, repeat 2 of 2, rank 3 on localhost, '
    expect_text logs/s/repeat-1.rank-3.log '^warm-up 0: ms [0-9.]+, pack_ms '
    expect_text logs/s/repeat-1.rank-3.log '^iteration 2: .*, received_bytes [1-9]'
}

test_a_failed_scenario_names_the_log_of_its_rank() {
    cluster
    REFIT_TEST_EXIT=2:2 coord_exits 1 cluster.json # rank 2, the second iteration
    expect_json "$(result s)" '.errors[0] | .rank == 2 and
        .log == "logs/s/rank-2.log"'
    expect_json "$(result s)" '.logs | index("logs/s/rank-2.log") != null'
    expect_text results/*/logs/s/rank-2.log '^what went wrong:$'
    expect_text results/*/logs/s/rank-2.log \
        '^run iteration 2 of 3: its process .*signal 9'
    expect_text results/*/logs/s/rank-2.log '^iteration 0: '
    run_coord report results
    expect_text out '^s .* failed$'
}

# The loader of every process of a node writes to its standard error.
test_what_ranks_write_is_kept_with_its_phase() {
    cluster '.launch.env = {"LD_DEBUG": "statistics"}'
    coord_exits 0 cluster.json
    expect_json "$(result s)" '.logs | length == 4'
    expect_text results/*/logs/s/rank-1.log '^what it wrote:$'
    expect_text results/*/logs/s/rank-1.log '^preparing:$'
    expect_text results/*/logs/s/rank-1.log '^  .*total startup time in dynamic loader'
}

# The loader names every symbol that it binds: thousands of lines.
test_a_flood_of_a_rank_is_cut_and_its_log_is_named() {
    local log='results/.*/logs/s/rank-1.log'
    cluster '.launch.env = {"LD_DEBUG": "bindings"}'
    coord_exits 0 cluster.json
    [ "$(grep -c '^localhost:[0-3]: .*binding file' err)" -le 20 ] ||
        fail "the terminal is flooded"
    expect_text err "^localhost:1: [1-9][0-9]+ more lines: see $log$"
    [ "$(grep -c '^localhost:1: .* more lines' err)" = 1 ] || fail "said twice"
    expect_text results/*/logs/s/rank-1.log 'binding file'
    run_coord cluster.json -v -o all
    [ "$(grep -c '^debug: localhost:1: .*binding file' err)" -gt 50 ] ||
        fail "-v does not show all"
    expect_no_text err 'more lines'
}

# Somebody who may write there puts links in the place of what is stored.
test_links_in_a_result_folder_are_not_followed() {
    local folder name
    cluster '.scenarios[0].iterations = 40'
    start_coord cluster.json -vv
    wait_until 60 "the scenario runs" grep -q -- '-> verifying$' err
    folder=$(echo results/*)
    mkdir victims
    for name in run.json s.json summary.csv; do
        echo "not ours" >"victims/$name"
        ln -sf "../../victims/$name" "$folder/$name"
        ln -sf "../../victims/$name" "$folder/$name.tmp"
    done
    finish_coord
    expect_exit 0
    [ "$(cat victims/*)" = "$(yes "not ours" | head -n 3)" ] ||
        fail "a link was followed"
    [ "$(find "$folder" -type f | wc -l)" = 3 ] || fail "$(ls -l "$folder")"
    expect_verified "$(result s)"
    coord_exits 0 report "$folder"
}

test_a_link_in_the_place_of_the_logs_is_not_followed() {
    cluster '.scenarios[0].iterations = 40'
    start_coord cluster.json -vv --logs
    wait_until 60 "the scenario runs" grep -q -- '-> verifying$' err
    mkdir victim
    ln -s ../../victim "$(echo results/*)/logs"
    finish_coord
    expect_exit 1
    expect_text err 'logs/s/rank-0.log: Not a directory'
    [ -z "$(ls victim)" ] || fail "it was followed"
}

run_tests
