#!/bin/bash
# Refits that another system measured, beside our own; results for programs that
# read what other systems write.
# limit: 120
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

base=$(jq '. + {scenarios: [{name: "split", train: {tp: 2}, infer: {tp: 4},
    warmup: 1, iterations: 5}]}' <<<"$four_slots")

# The same refit by another system; a jq program changes the case.
other() { # FILE [JQ_PROGRAM]
    jq "{models: {m: .model}, hardware: {cpu: {links: {copy_gbytes_per_s: 10}}},
        sources: [{system: \"SysX\", url: \"https://example.org/1\",
            window: \"moving and loading\", assumed: \"one host\",
            cases: [{name: \"split\", seconds: [0.55, 0.56, 0.545, 0.555, 0.55],
                model: \"m\", hardware: \"cpu\", train_nodes: 1, slots: 4,
                method: \"host\", train: {tp: 2}, infer: {tp: 4}}]}]} |
        .sources[0].cases[0] |= (${2-.})" <<<"$four_slots" >"$1"
}

# Imports files into the folder imported/.
import_into_place() { # FILE...
    coord_exits 0 import -o "$PWD" "$@"
    mv "$(cat out)" imported
}

test_imported_results_have_bounds_and_claim_nothing_more() {
    other other.json '.bytes = 1000'
    import_into_place other.json
    expect_text err 'cases\[0\]: the source moves 1000 bytes, the plan of this case [0-9]+:'
    expect_json imported/split.json '.status == "imported" and .name == "split" and
        .source == {system: "SysX", window: "moving and loading",
            url: "https://example.org/1", assumed: "one host", bytes: 1000} and
        .verification == null and .setup == null and .started_at == null and
        .summary.count == 5 and (.summary.median_ms - 550 | fabs) < 1e-6 and
        all(.summary.phases[]; . == null) and .plan.bytes_total > 1e6 and
        .bound.ms > 0 and .bound.valid == true and
        .bound.probe == null and .schedule_bound.ms >= .bound.ms and
        (.cluster.scenarios | length) == 1 and (.flags | index("unstable")) == null'
    expect_json imported/run.json '.status == "imported" and
        .file == "other.json" and .configuration == null and
        .scenarios == [{name: "split", file: "split.json", status: "imported"}]'
    coord_exits 0 report imported
    expect_text out '^split +SysX +host .* 550\.0 .* imported$'
    expect_text out '^imported, measured by others: split \(SysX: moving and loading\)$'
    expect_no_text out ' yes$'
}

# A bound by nominal rates that others have beaten is shown as no bound.
test_a_time_below_its_bound_is_flagged() {
    other other.json '.seconds = 1e-6'
    import_into_place other.json
    expect_json imported/split.json '.bound.valid == false and
        .bound.underestimated == .bound.resource and
        .flags == ["bound_not_valid"]'
    other other.json 'del(.hardware)'
    rm -r imported
    import_into_place other.json
    expect_json imported/split.json '.bound.ms == null and .flags == []'
}

# Nothing is said that nobody measured.
test_ranges_have_ends_and_lists_have_no_order() {
    other a.json 'del(.seconds) | .range = [2.9, 4]'
    import_into_place a.json
    # shellcheck disable=SC2016 # jq's own variable
    expect_json imported/split.json '.iterations == [] and .flags == [] and
        .source.range_ms == [2900, 4000] and .bound.efficiency > 0 and
        (.plan.bytes_total as $bytes | .summary | .min_ms == 2900 and
            .max_ms == 4000 and .median_ms == 3450 and .count == 0 and
            .mean_ms == null and .p95_ms == null and .stddev_ms == null and
            (.algbw_gbytes_per_s * 3450e6 / $bytes - 1 | fabs) < 1e-6)'
    coord_exits 0 report imported
    expect_text out ' 3450\.0 +- '
    rm -r imported
    other a.json '.seconds = [range(1; 9)]'
    import_into_place a.json
    expect_json imported/split.json '.flags == [] and .summary.count == 8 and
        .summary.drift_percent == null and .summary.p95_ms > 7000'
}

# With a byte order mark, CRLF, quotes, and columns in another order.
test_json_and_csv_give_equal_results() {
    local same='del(.file, .argv, .run_id, .plan.plan_ms)'
    ln -s "$RF_TOP/models" .
    other a.json 'del(.hardware) | .links = {link_gbytes_per_s: 2.5,
        copy_gbytes_per_s: 10, nics_per_node: 2, nic_gbytes_per_s: 1} |
        .model = {config: "models/qwen3-0.6b.json", num_layers: 2} |
        .mode = "disaggregated" | .name = "7" | .label = "a \"b\", c" | .infer_nodes = 1 |
        .infer.layout = "vllm"'
    {
        printf '\xef\xbb\xbfsystem,window,url,assumed,name,label,seconds,method,'
        printf 'slots,train_nodes,infer_nodes,model.config,model.num_layers,'
        printf 'links.copy_gbytes_per_s,links.link_gbytes_per_s,'
        printf 'links.nics_per_node,links.nic_gbytes_per_s,train.tp,infer,date\r\n'
        printf 'SysX,moving and loading,https://example.org/1,one host,7,'
        printf '"a ""b"", c","[0.55, 0.56, 0.545, 0.555, 0.55]",host,4,1,1,'
        printf 'models/qwen3-0.6b.json,2,10,2.5,2,1,2,'
        printf '"{""tp"": 4, ""layout"": ""vllm""}",\r\n'
    } >b.csv
    import_into_place a.json
    mv imported a
    import_into_place b.csv
    command jq -S "$same" a/7.json >a.txt
    command jq -S "$same" imported/7.json | diff a.txt - >&2 || fail "results differ"
    expect_json a/7.json '.cluster.nodes | map(.host) == ["train0", "infer0"]'
}

test_what_is_wrong_is_named_with_its_place() {
    local name program text
    while IFS='|' read -r name program text; do
        other "$name.json" "$program"
        coord_exits 2 import -o results "$name.json"
        expect_text err "$name.json.*$text"
    done <<'END'
a|del(.seconds)|cases\[0\]: "seconds" is missing
b|.seconds = -1|cases\[0\]\.seconds: must be seconds above 0, .*, not -1
c|.seconds = [1, 0]|cases\[0\]\.seconds\[1\]: must be seconds above 0, .*, not 0
d|.seconds = "fast"|seconds: must be seconds above 0, .*, not "fast"
e|.seconds = []|seconds: is empty: give the time of one refit at least
f|.infer.tpx = 2|cases\[0\], as a cluster file: f.json: \$\.scenarios\[0\]\.infer .split.: unknown key "tpx" .did you mean "tp"
g|.model = "n"|cases\[0\]\.model: "n" is no object in "models" of the file$
h|.hardware = "h100"|cases\[0\]\.hardware: "h100" is no object in "hardware" of the file$
i|.links = {}|cases\[0\]\.links: "hardware" has links, too; remove one
j|.train_nodes = 0|train_nodes: must be an integer from 1 to 4096, not 0
k|.train.nodes = 1|train\.nodes: give train_nodes of the case instead
l|.train = 4|train: must be the sizes of a mesh
m|.metod = "host"|as a cluster file: .*metod
n|.train.tp = 8|as a cluster file: .*scenarios\[0\]
o|.name = "a/b"|as a cluster file: .*name
p|.strategy = ["send_recv", "broadcast"]|as a cluster file: .*lists make 2 scenarios of it
q|.bytes = 1.5|bytes: must be an integer
r|.mode = "disaggregated"|mode: "disaggregated" contradicts infer_nodes, which is 0
s|. += {infer_nodes: 1, mode: "collocated"}|mode: "collocated" contradicts infer_nodes, which is 1
t|.mode = "colo"|as a cluster file: .*mode .split.: must be one of "colocated"
u|.range = [1, 2]|range: "seconds" are times, too; remove one
v|del(.seconds) + {range: [1]}|range: must be .low, high., in seconds, not
w|del(.seconds) + {range: [2, 1]}|range: must ascend, not
x|del(.seconds) + {range: [0, 1]}|range\[0\]: must be seconds above 0
END
    [ ! -e results ] || fail "stored something"
}

# The examples of the page that describes the forms.
test_the_examples_of_the_page_are_imported() {
    ln -s "$RF_TOP/models/qwen3-8b.json" .
    sed -n '/^## `import`/,/^### What/p' "$RF_TOP/docs/RESULTS.md" >page
    sed -n '/^```json$/,/^```$/{/^```/!p}' page >a.json
    grep -A 1 '^name,seconds,' page >b.csv
    import_into_place a.json
    expect_json imported/tp8.json '.summary.count == 3 and .bound.ms > 0 and
        .scenario.strategy == "broadcast" and .scenario.method == "nccl"'
    rm -r imported
    import_into_place b.csv
    expect_json imported/tp8.json '.summary.count == 2 and
        .scenario.mode == "colocated" and .bound.ms == null'
}

test_files_of_the_wrong_form_are_named() {
    local text
    echo '{"sources": [{"system": "a", "cases": [{"name": "s"}]}]}' >x.json
    coord_exits 2 import x.json
    expect_text err 'x.json: \$\.sources\[0\]: "window" is missing$'
    echo '{"sources": [{"widow": "a"}]}' >x.json
    coord_exits 2 import x.json
    expect_text err 'x.json: \$\.sources\[0\].*widow.*mean "window"'
    echo '{"hardware": {"h": {"link": {}}}, "sources": []}' >x.json
    coord_exits 2 import x.json
    expect_text err 'x.json: \$\.hardware\.h.*"link".*mean "links"'
    echo '{"hardware": {"h": {"from": "a"}}, "sources": []}' >x.json
    coord_exits 2 import x.json
    expect_text err 'x.json: \$\.hardware\.h: "links" is missing$'
    for text in '{"sources": []}' '{"sources": [{"cases": []}]}'; do
        echo "$text" >x.json
        coord_exits 2 import x.json
        expect_text err 'x.json: no case: "sources" must have "cases"'
    done
    echo '{"sources": [{"cases": {}}]}' >x.json
    coord_exits 2 import x.json
    expect_text err 'x.json: \$\.sources\[0\]\.cases: must be a list of objects'
    : >x.csv
    coord_exits 2 import x.csv
    expect_text err 'x.csv: no case: the first line names the columns'
    printf 'system,window,name\n' >x.csv
    coord_exits 2 import x.csv
    expect_text err 'x.csv: no case'
    printf 'system,window,name\n\na,b,c,d\n' >x.csv
    coord_exits 2 import x.csv
    expect_text err 'x.csv, line 3: 4 cells, but 3 columns'
    printf 'a;b\n1;2\n' >x.csv
    coord_exits 2 import x.csv
    expect_text err 'x.csv, line 1: .*separated by commas, not semicolons'
    for text in 'name,name' 'train,train.tp' 'train.tp,train' 'name,' \
        'a,a.b.c'; do
        printf '%s\n1,2\n' "$text" >x.csv
        coord_exits 2 import x.csv
        expect_text err 'x.csv, line 1: column 2, ".*": has no name, or is there already'
    done
    printf 'system,window,name,seconds\nx,y,z,soon\n' >x.csv
    coord_exits 2 import x.csv
    expect_text err 'x.csv, line 2: \$\.seconds: must be seconds above 0, .*, not "soon"'
    printf 'system,window,name,seconds\nx,y,z,"1\n' >x.csv
    coord_exits 2 import x.csv
    expect_text err 'x.csv, line 2: a quoted cell does not end'
    truncate -s 1G x.csv
    coord_exits 2 import x.csv
    expect_text err 'x.csv: 1073741824 bytes, the limit is 67108864'
    coord_exits 2 import nowhere.json
    expect_text err 'nowhere.json: cannot open'
    [ ! -e results ] || fail "stored something"
}

test_standard_input_is_json_or_csv() {
    other a.json
    "$coord" import -o "$PWD" - <a.json >out || fail "no JSON"
    expect_json "$(cat out)/run.json" '.file == "standard input" and
        .scenarios[0].name == "split"'
    printf 'name,seconds,model.config,train_nodes,train.tp,infer.tp,system,window\n' >b
    echo "tp8,1,$RF_TOP/models/qwen3-8b.json,1,8,8,s,w" >>b
    "$coord" import -o "$PWD" - <b >out || fail "no CSV"
    expect_json "$(cat out)/tp8.json" '.file == "standard input"'
    "$coord" import - <<<'a,b,c' 2>err
    expect_text err 'standard input: no case: the first line names the columns'
    coord_exits 2 import - # empty
    expect_text err 'standard input'
}

test_names_are_unique_over_all_files() {
    other a.json
    other b.json '.name = "Split"'
    coord_exits 2 import a.json b.json
    expect_text err 'b.json: \$\.sources\[0\]\.cases\[0\]: the name "Split" is that of another'
    other b.json '.name = "b"'
    import_into_place a.json b.json
    expect_json imported/run.json '.scenarios | map(.name) == ["split", "b"]'
}

test_nothing_is_left_where_results_cannot_be_stored() {
    other a.json
    : >file
    coord_exits 1 import -o file/x a.json
    expect_text err 'cannot create results folder file/x'
}

# Nothing of what another system's times include is taken for a method here.
test_own_and_imported_results_stand_side_by_side() {
    local own form
    cluster
    coord_exits 0 cluster.json
    own=$(echo results/*-t)
    other other.json
    import_into_place other.json
    for form in "" --csv --json --markdown --latex "--html -"; do
        # shellcheck disable=SC2086 # an option and its value
        coord_exits 0 report imported "$own" $form
        expect_text out SysX
    done
    coord_exits 0 report imported "$own"
    expect_text out '^run +scenario +system +method'
    expect_text out '^imported +split +SysX +host .* imported$'
    expect_text out ' split +- +host .* yes$'
    coord_exits 0 compare imported "$own" --json
    expect_json out '.comparisons[0] | .verdict == "faster" and
        .judged == "refit_ms" and (.differs | test("(^|, )source(,|$)"))'
    coord_exits 1 compare "$own" imported
    expect_text out '^split .* slower '
    jq .cluster imported/split.json >again.json
    coord_exits 0 predict again.json imported --json
    expect_json out '.predictions[0] | .based_on == "figures" and
        (.measured_ms - 550 | fabs) < 1e-6 and
        .predicted_ms == .simulated_ms and (has("calibration") | not)'
    jq -s '.[0].predictions[0].bound_ms / .[1].bound.ms' out \
        imported/split.json >ratio
    expect_json ratio '(. - 1 | fabs) < 1e-6'
    coord_exits 0 rerun imported/split.json --set launch.method=local -o again
    expect_text out '^split .* faster '
    cp -r imported second
    jq '.run_id = "f"' imported/split.json >second/split.json
    coord_exits 2 report imported second --pool
    expect_text err 'not pooled .*: another system.s times are no repeats'
    python3 -c 'import matplotlib' 2>/dev/null || return 0
    coord_exits 0 report imported "$own" --figures figures
    expect_text out 'predicted.pdf$'
    coord_exits 0 report "$own" --reference imported --figures figures
    expect_text out 'reference.pdf$'
}

test_nccl_tests_names_what_its_scripts_read() {
    cluster '.scenarios += [.scenarios[0] | .name = "b" | .strategy = "allgather"]'
    coord_exits 0 cluster.json
    coord_exits 0 report results --nccl-tests
    mv out all.json
    expect_json all.json '.version == 2 and (.args | length) == 2 and
        (.start_time | test("^....-..-.. ..:..:..$")) and
        .out_of_bounds == {count: 0, okay: "true"} and .errors == [] and
        (.config | .nthreads == 1 and .iterations == 5 and
            .warmup_iters == 1 and .validation == 1 and
            (.devices | length) == 4 and .devices[3].rank == 3) and
        (.results | map(.experiment_name) == ["split", "b"])'
    jq -s '(.[0].results[0]) as $theirs | .[1] | {ours: ., $theirs}' \
        all.json results/*/split.json >pair.json
    # shellcheck disable=SC2016 # jq's own variables
    expect_json pair.json '.theirs as $t | .ours as $o | $t.out_of_place |
        def near(x): (. / x - 1 | fabs) < 1e-6;
        (.time | near($o.summary.mean_ms * 1000)) and
        (.alg_bw | near($o.plan.bytes_total / $o.summary.mean_ms / 1e6)) and
        (.bus_bw | near(([$o.plan.bound_send_bytes, $o.plan.bound_recv_bytes]
            | max) / $o.summary.mean_ms / 1e6)) and .nwrong == 0 and
        $t.size == $o.plan.bytes_total and $t.count * 2 == $t.size and
        $t.type == "bfloat16" and $t.in_place == null and
        ($t.out_of_place_per_iter | (.times_us | length) == 5 and
            (.p50_us | near($o.summary.median_ms * 1000)) and
            (.per_process_max_times_us | map(length) == [5, 5, 5, 5]) and
            ((.per_process_max_times_us | map(.[0]) | max) | near($o.iterations[0].refit_ms * 1000)))'
    expect_json all.json '(.results | map(.out_of_place.bus_bw) | add / 2) as $mean |
        (.average_bus_bandwidth.bandwidth / $mean - 1 | fabs) < 1e-6'
    jq '.scenario.iterations = {min: 5, max: 9} |
        .scenario.infer.dtype = "float32" |
        .iterations[].ranks |= .[:1]' results/*/b.json >other.json
    coord_exits 0 report other.json --nccl-tests
    expect_json out '.config.iterations == null and (.results[0] |
        .type == "float" and .count * 4 == .size and
        (.out_of_place_per_iter.per_process_max_times_us | length) == 1)'
    jq '.scenario.infer |= [., . + {dtype: "float32"}]' results/*/b.json >other.json
    coord_exits 0 report other.json --nccl-tests
    expect_json out '.results[0] | .type == null and .count == null'
    jq '.status = "failed"' results/*/b.json >b.json
    mv b.json results/*/
    coord_exits 0 report results --nccl-tests
    expect_json out '.errors == ["b: failed"] and (.results | length) == 1'
    other other.json
    import_into_place other.json
    coord_exits 0 report imported --nccl-tests
    expect_json out '.config.iterations == null and .config.warmup_iters == null'
    expect_json out '.results[0] | .out_of_place.nwrong == null and
        .out_of_place.alg_bw > 0 and
        (.out_of_place_per_iter | has("per_process_max_times_us") | not)'
    rm results/*/split.json
    coord_exits 2 report results/*/b.json --nccl-tests
    expect_text err '--nccl-tests: no result is ok and has times'
}

test_stage_records_are_of_each_rank_that_receives() {
    cluster '.scenarios[0].mode = "disaggregated" |
        .scenarios[0].train.tp = 2 | .scenarios[0].infer.tp = 2'
    coord_exits 0 cluster.json
    coord_exits 0 report results --stage-v2
    [ "$(wc -l <out)" = 10 ] || fail "not a line for 5 iterations of 2 ranks"
    jq -s '{ours: .[0], theirs: .[1:]}' results/*/split.json out >pair.json
    # shellcheck disable=SC2016 # jq's own variables
    expect_json pair.json '.ours as $o | .theirs |
        all(.[]; .schema == "refit-stage-v2" and .name == "split" and
            .fused_wire == true) and
        map([.step, .rank]) == [range(5) as $i | (2, 3) | [$i, .]] and
        all(.[]; . as $r | $o.iterations[$r.step].ranks[$r.rank] |
            $r.bytes == .received_bytes and
            ($r.wire_fused_s * 1000 - .wire_ms - .sync_ms | fabs) < 1e-6 and
            ($r.install_s * 1000 - .unpack_ms | fabs) < 1e-6 and
            ($r.accounted_s * 1000 + .unattributed_ms - .ms | fabs) < 1e-5) and
        all(.[]; . as $r | ([to_entries[] | select(.key | endswith("_s")) |
            select(.key != "accounted_s") | .value] | add) - $r.accounted_s |
            fabs < 1e-9)'
    other other.json
    import_into_place other.json
    coord_exits 2 report imported --stage-v2
    expect_text err 'split is left out: no rank received bytes'
    expect_text err '^error: --stage-v2: no result has times of ranks'
}

run_tests
