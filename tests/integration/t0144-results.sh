#!/bin/bash
# Every field of the files that runs write is in docs/RESULTS.md, of which
# refit-result(5) is made, and it describes no others.
# limit: 120
# shellcheck source=../lib/recorded.sh
. "$(dirname "$0")/../lib/recorded.sh"

# Before weights have memory, opened, ready, after refits, at the end.
test_memory_is_reported_by_stage_with_means_over_ranks() {
    record_everything
    expect_json "$(echo ok/*/quantized.json)" '.memory | length == 8 and
        all(.[].stages; .before_bytes > 0 and
            .opened_bytes > .before_bytes and
            .prepared_bytes > .before_bytes + 1000000 and
            .refit_bytes > .before_bytes and .after_bytes > .before_bytes)'
    expect_json "$(echo ok/*/quantized.json)" '
        (.memory | map(.host_peak_bytes) | add / length) as $mean |
        .summary.memory | (.peak_mean_bytes - $mean | fabs) < 1 and
            .peak_mean_bytes <= .peak_bytes and
            all(.stages[]; .mean_bytes <= .max_bytes)'
    for name in memory_peak_mean_bytes memory_before_mean_bytes; do
        [ -n "$(csv_column ok/*/summary.csv "$name")" ] || fail "no $name"
    done
}

# Nodes on one machine: what they send to each other passes its loopback, and
# its interfaces are not any node's own.
test_bytes_between_nodes_of_one_machine_pass_its_loopback() {
    record_everything
    expect_json "$(echo ok/*/across.json)" '.summary.network == [] and
        all(.iterations[]; .network | length == 2) and
        all(.iterations[].network[];
            .loopback_bytes >= .planned_sent_bytes and
            .planned_sent_bytes + .planned_received_bytes > 0)'
}

# Keys that the files have, one per line; not those inside of what users wrote
# or refit-cluster(5) describes.
written_keys() { # FILE...
    jq -r 'paths | select(.[-1] | type == "string") |
        select(.[:-1] | any(.[]; IN("scenario", "cluster", "configuration",
            "env", "methods")) | not) | .[-1]' "$@" | sort -u
}

# Those of device methods, which messages carry, of GPUs, interfaces and places;
# of nodes whose interfaces are not another's, too.
device_keys() {
    echo device
    printf '%s\n' copies device_ms over_tcp registration unmapped
    printf '%s\n' nics_used nics_idle ratio retransmit_percent
    sed -nE '/^#define RF_(DEVICE_USAGE|GPU|NIC|INTERFACE|COUNTED|COPY_WAYS|NUMA|PCI|TOPOLOGY.*)_FIELDS/,/[^\\]$/p' \
        "$RF_TOP/transport/control/message_fields.h" |
        sed -nE 's/^ *F\(S, [A-Z0-9]+, ([a-z_0-9]+),.*/\1/p'
}

words() {
    tr -c 'a-z_0-9' '\n' | grep . | sort -u
}

expect_in() { # WORDS OF WHAT
    comm -23 "$1" "$2" >missing
    [ ! -s missing ] || fail "$3: $(paste -sd ' ' missing)"
}

test_the_reference_names_every_field() {
    record_everything
    written_keys ./*/*/*.json >written
    head -qn 1 ./*/*/summary.csv | words >>written
    sort -u -o written written
    grep -o '`[^`]*`' "$RF_TOP/docs/RESULTS.md" | words >named
    expect_in written named "not in RESULTS.md"
}

test_the_reference_has_no_other_fields() {
    record_everything
    { written_keys ./*/*/*.json; device_keys; } | sort -u >written
    sed -n "/^## A scenario's file/,/^## .report/p" "$RF_TOP/docs/RESULTS.md" |
        sed -nE 's/^\| (`[^|]*)\|.*/\1/p' | words >described
    expect_in described written "only in RESULTS.md"
}

run_tests
