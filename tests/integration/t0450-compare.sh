#!/bin/bash
# Two runs on a test bed, between which a link became slower and one scenario
# was given more staging memory: `compare` finds both and nothing else.
# limit: 300
# waits
# shellcheck source=../lib/testbed.sh disable=SC2034
. "$(dirname "$0")/../lib/testbed.sh"

bed_up --hosts 3 --slots 1 --rate 120mbit --worker "$worker"

# 3 MB, long beside what processors do; the interval of nine samples leaves out
# one that a lost packet held up. Only "slowed" sends from the third host.
base=$(jq '. as $bed | def split($name; $from):
        {name: $name, mode: "disaggregated", warmup: 1, iterations: 9,
         train: {nodes: [$bed.nodes[$from].host], tp: 1},
         infer: {nodes: [$bed.nodes[1].host], tp: 1}};
    . + {name: "t",
        model: {megatron: {num_layers: 2, hidden_size: 256,
            num_attention_heads: 8, ffn_hidden_size: 512, vocab_size: 2048,
            swiglu: true}},
        scenarios: [split("steady"; 0), split("slowed"; 2),
            split("grown"; 0) + {strategy: "gather_broadcast",
                bucket_bytes: 262144}]}' <<<"$part")

# The names of what `compare` found, each with its verdict.
found() {
    command jq -c '[.comparisons[] | select(.verdict != "same") |
        {(.scenario): .verdict}] | add' out
}

# A fifth more memory and a little: staging memory has two buckets.
grow() {
    local peak
    peak=$(jq '.summary.memory.peak_bytes' old/*/grown.json)
    cluster ".scenarios[2].bucket_bytes = (262144 + $peak * 0.11 | floor)"
}

test_a_slower_link_and_more_staging_are_found_and_nothing_else() {
    cluster
    coord_exits 0 cluster.json -o old
    "$testbed" exec 3 --dir "$bed" -- tc qdisc replace dev eth0 root tbf \
        rate 60mbit burst 128kb latency 50ms
    grow
    coord_exits 0 cluster.json -o new
    coord_exits 1 compare old/* new/* --threshold time=10%,memory=10% --json
    [ "$(found)" = '{"slowed":"slower","grown":"larger"}' ] ||
        fail "found $(found)"
    expect_json out '.regressions == 2 and ([.comparisons[].judgements.memory |
        select(.verdict == "larger") | .change] | length == 1 and
        .[0] > 0.15 and .[0] < 0.30)'
    expect_json out '.comparisons | map(select(.scenario == "grown"))[0] |
        .differs == "scenario.bucket_bytes"'
    run_coord compare old/* new/* --threshold time=10%,memory=10%
    expect_text out '^2 regressions, 1 slower by more than 10 %, 1 larger by more than 10 %$'
    # The yardstick crosses the slower link, too.
    coord_exits 1 compare old/* new/* --json
    [ "$(found)" = '{"grown":"larger"}' ] || fail "found $(found)"
    coord_exits 0 compare old/* new/* --threshold time=200%,memory=+50%-10%
    expect_text out '^0 regressions$'
}

run_tests
