#!/bin/bash
# Refits on this machine through launcher `local`: results, contents, exit code.
# limit: 240
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base=$(jq '. + {scenarios: [
    {"name": "colocated", "mode": "colocated", "train": {"tp": 2, "pp": 2},
     "infer": {"tp": 4, "layout": "hf"}, "warmup": 1, "iterations": 3},
    {"name": "split", "mode": "disaggregated", "train": {"tp": 2},
     "infer": {"tp": 2, "layout": "hf"}, "warmup": 0, "iterations": 2}
  ]}' <<<"$four_slots")

test_refits_are_verified_and_recorded() {
    cluster
    coord_exits 0 cluster.json
    expect_verified "$(result colocated)"
    expect_verified "$(result split)"
    expect_json "$(result colocated)" '.verification.rounds == 3'
    expect_json "$(result split)" '.verification.rounds == 2'
    expect_text out '^scenario .* eff\. \(best\) +peak memory +predicted +verified$'
    expect_text out '^colocated .* [0-9.]+ MB +[0-9.]+ MB +yes$'
    expect_text out '^split .* [0-9.]+ MB +[0-9.]+ MB +yes$'
}

test_every_scenario_is_planned_once() {
    local command
    cluster
    for command in run check; do
        coord_exits 0 "$command" cluster.json -v
        [ "$(grep -c 'scenario colocated: planned in' err)" = 1 ] ||
            fail "$command did not plan the first scenario once"
        [ "$(grep -c 'scenario split: planned in' err)" = 1 ] ||
            fail "$command did not plan the second scenario once"
    done
}

test_run_json_describes_the_run() {
    cluster
    coord_exits 0 cluster.json
    local run
    run=$(echo results/*/run.json)
    expect_json "$run" '.status == "ok"'
    expect_json "$run" '.argv | index("cluster.json") != null'
    expect_json "$run" '.finished_at >= .started_at'
    test -s results/*/summary.csv || fail "no summary.csv"
    [ "$(find results -name '*.tmp' | wc -l)" = 0 ] || fail "partial files left"
}

test_result_fields_agree_with_each_other() {
    cluster
    coord_exits 0 cluster.json -s colocated
    local file
    file=$(result colocated)
    expect_json "$file" '.schema_version >= 1 and .run_id != null'
    expect_json "$file" '.plan.bytes_total == .plan.bytes_local +
        .plan.bytes_intra_node + .plan.bytes_inter_node'
    expect_json "$file" '.plan.bytes_inter_node == 0'
    expect_json "$file" '([.iterations[].refit_ms] | min) - .summary.min_ms |
        fabs < 1e-6'
    expect_json "$file" '.iterations | all(.refit_ms as $t |
        ([.ranks[].ms] | max) - $t | fabs < 1e-6)'
    expect_json "$file" '.iterations | all((.ranks | length) == 4)'
    expect_json "$file" '.bound.ms > 0 and .bound.efficiency > 0'
    expect_json "$file" '.model.parameters > 0 and .model.bytes > 0'
    # sent and received are two views of the same bytes
    expect_json "$file" '.iterations | all(([.ranks[].sent_bytes] | add) ==
        ([.ranks[].received_bytes] | add))'
}

# Names of nodes that are all this machine need not resolve.
test_nodes_of_this_machine_find_each_other_without_a_listener() {
    cluster '.control.address = "stdio" | .scenarios |= .[1:] | .nodes = [
        {host: "node-a", slots: 2}, {host: "node-b", slots: 2}]'
    coord_exits 0 cluster.json
    expect_verified "$(result split)"
    expect_json "$(result split)" '.environment |
        all(.control == "stdio" and .address == "127.0.0.1")'
}

test_only_matching_scenarios_run() {
    cluster
    coord_exits 0 cluster.json -s 'spl*' -o elsewhere
    [ "$(find elsewhere -name 'split.json' | wc -l)" = 1 ] ||
        fail "split.json is missing"
    [ ! -e results ] || fail "results/ appeared"
    [ "$(find elsewhere -name 'colocated*' | wc -l)" = 0 ] ||
        fail "colocated ran"
}

test_a_complete_folder_has_nothing_left_to_do() {
    cluster '.scenarios |= .[1:]'
    coord_exits 0 cluster.json
    coord_exits 0 cluster.json --resume "$(echo results/*)"
    expect_text err 'nothing to do: every scenario'
    expect_no_text err 'to continue'
}

test_dry_run_launches_and_writes_nothing() {
    cluster '.launch.worker = "/nonexistent/worker"'
    coord_exits 0 cluster.json --dry-run
    expect_text out colocated
    [ ! -e results ] || fail "a dry run wrote results"
}

test_examples_pass_a_dry_run() {
    local file nodes
    for file in "$RF_TOP"/examples/*.json; do
        nodes=()
        if [ "$(jq .nodes "$file")" = '"slurm"' ]; then
            nodes=(--nodes 'n[1-3]') # there is no job here
        fi
        coord_exits 0 --dry-run "${nodes[@]}" "$file"
        expect_text out digest
    done
}

test_null_method_moves_nothing() {
    cluster '.scenarios[0].method = "null" | .scenarios |= .[:1]'
    coord_exits 0 cluster.json
    expect_json "$(result colocated)" '.status == "ok"'
    expect_json "$(result colocated)" '.verification.checked_bytes == 0'
}

test_a_matrix_runs_each_member() {
    cluster '.scenarios |= .[:1] | .scenarios[0].method = ["host", "tcp"]'
    coord_exits 0 cluster.json
    [ "$(find results -name 'colocated*.json' | wc -l)" = 2 ] ||
        fail "expected two result files"
    local file
    for file in results/*/colocated*.json; do
        expect_verified "$file"
    done
}

test_predictions_need_results_of_the_same_nodes() {
    cluster '.scenarios |= .[:1]'
    coord_exits 0 cluster.json
    coord_exits 0 predict cluster.json results --json
    expect_json out '.predictions[0] | .predicted_ms > 0 and .bound_ms > 0 and
        .measured_ms > 0'
    cluster '.nodes[0].host = "elsewhere"'
    coord_exits 2 predict cluster.json results
    expect_text err 'no result has probes of its nodes .*elsewhere'
    cluster 'del(.nodes)'
    coord_exits 2 predict cluster.json results
    expect_text err 'it has neither "links" nor nodes'
}

test_predictions_show_only_measurements_of_the_same_refit() {
    cluster '.scenarios |= .[:1]'
    coord_exits 0 cluster.json
    cluster '.scenarios |= .[:1] | .scenarios[0] += {name: "other", iterations: 9}'
    run_coord predict cluster.json results --json
    expect_json out '.predictions[0].measured_ms > 0'
    cluster '.scenarios |= .[:1] | .model.megatron.num_layers = 2'
    coord_exits 0 predict cluster.json results --json
    expect_json out '.predictions[0] | .measured_ms == null and
        (.measured_note | test("model.parameters is [0-9]+ there, [0-9]+ here"))'
    run_coord predict cluster.json results
    expect_text out '^colocated +host +send_recv .* - \[1\] +- +-$'
    expect_text out '^\[1\] not measured: .*colocated.*model.parameters is'
}

test_results_calibrate_predictions() {
    cluster '.scenarios |= .[:1] |
        .scenarios += [.scenarios[0] + {name: "wider", train: {tp: 1}, infer: {tp: 4}}]'
    coord_exits 0 cluster.json
    cluster '.scenarios |= .[:1] |
        .scenarios += [.scenarios[0] + {name: "wider", train: {tp: 1}, infer: {tp: 4}},
            .scenarios[0] + {name: "new", train: {tp: 4}, infer: {tp: 2}}] |
        .links = {copy_gbytes_per_s: 1000, single_copy_gbytes_per_s: 1000}'
    coord_exits 0 predict cluster.json results --json --set links.methods.shm.copy_gbytes_per_s=9
    expect_json out '.predictions | all(.based_on ==
        if .method == "host" then "results" else "figures" end)'
    coord_exits 0 predict cluster.json results --json
    expect_json out '.predictions | all(.path == "inside nodes" and
        .calibration.results == 2 and .calibration.factor != 1 and
        (.simulated_ms * .calibration.factor / .predicted_ms - 1 | fabs) < 1e-6)
        and all(.[:2][]; .leave_one_out_ms > 0) and .[2].leave_one_out_ms == null'
    # The factor is between those of the two results, whose memory is not that
    # of "links".
    expect_json out '.predictions |
        all(.[:2][]; .measured_simulated_ms > 2 * .simulated_ms) and
        (.[:2] | map(.measured_ms / .measured_simulated_ms)) as $of |
        all(.calibration.factor >= ($of | min) * 0.999999 and
            .calibration.factor <= ($of | max) * 1.000001)'
    expect_json out '.leave_one_out | .results == 2 and
        .worst_error >= .median_error and .worst_method == "host"'
    run_coord predict cluster.json results
    expect_text out '^host, inside nodes: calibrated by 2 results: x[0-9]'
    expect_text out \
        '^leave-one-out error over 2 results: median [0-9.]+ %, worst [0-9.]+ % \('
    # A footnote, if the machine's probes were slower than its refits.
    expect_text out '^new +host +send_recv +[0-9.e-]+( \[1\])? +2 results '
    run_coord predict cluster.json
    expect_no_text out 'calibrated|leave-one-out'
    expect_text out '^new +host +send_recv +[0-9.e-]+ +figures '
}

# Each scenario begins where the one before ends.
test_setup_says_where_the_time_went() {
    cluster
    coord_exits 0 cluster.json
    local file
    for file in results/*/*.json; do
        [ "${file##*/}" != run.json ] || continue
        expect_json "$file" '.setup | .total_ms as $total |
            ([.launch_ms, .plan_ms, .store_ms, .prepare_ms, .connect_ms,
              .probe_ms, .fill_ms, .refit_ms, .yardstick_ms, .verify_ms,
              .close_ms] | all(. >= 0) and
                (add / $total - 1 | fabs) < 0.05) and
            .plan_ms > 0 and .connect_ms > 0 and .probe_ms > 0 and
            .connect_ms >= .rank_open_ms'
    done
    expect_json results/*/run.json '.scenarios | length > 1'
}

# On a busy machine ranks may miss the few milliseconds in which they are to copy.
has_been_probed() {
    coord_exits 0 cluster.json
    jq -es 'any(.bound.probe.before.nodes | length > 0)' results/*/colocated*.json
}

test_probes_of_host_memory_predict_no_refit_between_gpus() {
    cluster '.scenarios |= .[:1]'
    wait_until 30 'a probe' has_been_probed
    cluster '.scenarios |= .[:1] | .scenarios[0].method = ["host", "nccl"]'
    coord_exits 0 predict cluster.json results --json
    expect_json out '.predictions | .[0].predicted_ms > 0 and
        (.[1] | .method == "nccl" and .predicted_ms == null and
            .bound_ms == null and .measured_ms == null and
            (.note | test("no figures .*set .*links.methods.nccl")))'
}

test_predictions_say_what_they_do_not_cover() {
    local links='.links = {"copy_gbytes_per_s": 20, "link_gbytes_per_s": 1}'
    cluster ".scenarios |= .[:1] | .scenarios[0] += {\"cast\": \"source\",
        \"method\": [\"host\", \"tcp\", \"null\"]} |
        .scenarios[0].train.dtype = \"float32\" | $links"
    coord_exits 0 predict cluster.json
    expect_text out '^colocated-method=null +null .* - \[2\]'
    expect_text out '^\[2\] method null moves nothing'
    run_coord predict cluster.json --json
    expect_json out '.predictions[0] | .predicted_ms >= .bound_ms'
    expect_json out '.predictions[1:] | length == 2 and
        all(.predicted_ms == null and (.note | length > 0))'
    cluster '.links.methods.host.copy_gbytes_per_s = 0'
    coord_exits 2 predict cluster.json
    expect_text err 'links.methods.host.copy_gbytes_per_s.*above 0'
    cluster '.scenarios |= .[:1] |
        .links.methods.nccl = {"copy_gbytes_per_s": 100}'
    run_coord predict cluster.json
    expect_text out '^\[1\] no figures .* copying on localhost'
}

test_a_reader_that_leaves_is_no_error() {
    cluster
    "$RF_BUILD_DIR/refit-coord" plan cluster.json --full 2>err | head -c 1 >out
    [ "${PIPESTATUS[0]}" = 141 ] || fail "exit ${PIPESTATUS[*]}"
    [ ! -s err ] || fail "it complained"
}

test_reports_say_what_they_are_of() {
    cluster '.scenarios |= .[:1] | .scenarios[0].method = ["host", "null"]'
    coord_exits 0 cluster.json
    local run
    run=$(basename results/*)
    run_coord report results --markdown
    expect_text out "^<!-- run $run, model megatron -->"
    expect_text out '^\| colocated-method=host '
    run_coord report results --latex
    expect_text out "^% run $run, model megatron"
    coord_exits 0 report results --html page.html
    # Said once: no row names the run, the model or the node.
    [ "$(grep -c "^<h2>$run</h2>$" page.html)" = 1 ] || fail "not one heading"
    [ "$(grep -c 'megatron' page.html)" = 1 ] || fail "the model is not once"
    expect_text page.html '^<p>Model megatron, .* 2 ok, 0 not ok\.</p>$'
    expect_text page.html '^<p class="small">localhost: .*, [0-9]+ processors, '
}

run_tests
