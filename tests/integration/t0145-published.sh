#!/bin/bash
# Predictions of refits whose times others published.
# long
# limit: 240
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

all=$work/all.json page=$work/page
case_row='^\| .* \| [0-9.–-]+ \| [0-9.]+ \| [0-9.]+ \|$'
"$RF_TOP/tests/bench/published/predict-published" "$RF_BUILD_DIR" "$all" \
    >"$page" || exit 1

test_phases_and_handles_take_what_their_constants_say() {
    expect_json "$all" '[.[] | select(.name | test("^demo-(gather|transfer|broadcast)$"))
        | .predicted_s] | length == 3 and (add / 9.8 - 1 | fabs) < 0.02'
    expect_json "$all" '.[] | select(.name == "demo-ipc")
        | (.predicted_s / 0.001 - 1 | fabs) < 0.02'
    # Of two strategies for the same refit the faster is predicted faster.
    expect_json "$all" 'INDEX(.name) | map_values(.predicted_s)
        | ."m2n-deepseek-v3-h" < ."m2n-deepseek-v3" and ."m2n-235b-h" < ."m2n-235b"'
    # Of buffers one after the other and two at a time, the latter.
    expect_json "$all" 'INDEX(.name) | map_values(.predicted_s)
        | ."slime-k2-512" / ."slime-k2-512-2" > 1.5'
    # Kimi-K2 over all links and stage after stage: the bounds of its authors.
    expect_json "$all" 'INDEX(.name) | map_values(.predicted_s)
        | (."rdt-k2" / 1.25 - 1 | fabs) < 0.2 and (."rdt-k2-serial" / 5 - 1 | fabs) < 0.2'
}

# A rate that a case itself measured would predict that case.
test_self_checks_count_for_no_system() {
    sed -n '/^## By system/,/^## By case/s/^| \([^|]*\) | [0-9].*/\1/p' "$page" >systems
    expect_text systems '^NeMo-RL$'
    ! grep -E '^(demo|halo)$' systems || fail "a self-check among the systems"
    [ "$(sed '1,/^## By case/d; /^## Self-checks/,$d' "$page" |
        grep -cE "$case_row")" = 69 ] ||
        fail "MEASURING.md counts 69 predictions"
    [ "$(sed '1,/^## Self-checks/d' "$page" | grep -cE "$case_row")" = 5 ] ||
        fail "other self-checks"
}

test_the_page_of_published_times_is_current() {
    sed -n '/^## Constants/,$p' "$RF_TOP/docs/PUBLISHED.md" | diff - "$page" ||
        fail "docs/PUBLISHED.md differs from predict-published"
}

run_tests
