#!/bin/bash
# limit: 120
# The reference result in examples/reference/: it is whole, says what it is, and
# a new run can be compared with it.
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"
reference=$RF_TOP/examples/reference

test_the_reference_is_an_ok_run_of_the_demo() {
    coord_exits 0 report "$reference"
    expect_text out '^colocated +host .* yes$'
    expect_text out '^disaggregated +host .* yes$'
    [ "$(jq -c .configuration "$reference/run.json")" = \
        "$(jq -c . "$RF_TOP/cluster.json")" ] || fail "cluster.json has changed"
}

test_the_reference_names_its_machine_and_no_other_place() {
    local fact
    for fact in .environment[0].cpu .environment[0].kernel .started_at \
        .tool.build '.argv | join(" ")'; do
        fact=$(jq -r "$fact" "$reference/run.json")
        grep -qF -- "$fact" "$reference/README.md" || fail "no $fact in README.md"
    done
    jq -r '.. | strings' "$reference"/*.json >texts
    expect_no_text texts '^/|[ =]/[a-z]'
    for fact in "$reference"/*.json; do
        expect_json "$fact" '[.head, .environment[] | .hostname] |
            unique == ["localhost"]'
        expect_json "$fact" '.environment[0] | .nics == [] and .env == {}'
    done
}

test_a_smaller_model_is_not_compared_with_the_reference() {
    coord_exits 0 "$RF_TOP/cluster.json" --set model.num_layers=2 \
        --set model.vocab_size=4096 \
        --set 'scenarios.*.iterations=3' --set 'scenarios.*.bucket_bytes=8388608'
    coord_exits 2 compare "$reference" results/* --threshold 100 \
        --outliers outliers.csv
    expect_text out '^colocated +other model '
    expect_text out '^disaggregated +other model '
    expect_text outliers.csv 'reference\.scenario\.bucket_bytes'
    expect_text err 'nothing is comparable'
    [ "$(grep -cE '^(colocated|disaggregated),other model,' outliers.csv)" = 2 ] ||
        fail "not both are outliers"
}

run_tests
