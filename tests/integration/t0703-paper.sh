#!/bin/bash
# The commands of docs/PAPER.md, as they stand there, one after the other.
# long
# limit: 240
# shellcheck source=../lib/test.sh disable=SC2034
. "$(dirname "$0")/../lib/test.sh"

page=$RF_TOP/docs/PAPER.md
export REFIT_SHARE=$RF_TOP PATH=$RF_BUILD_DIR:$PATH

# Writes the fenced blocks of the page's shell commands to step-01 and on.
extract_steps() {
    awk '/^```sh$/ { file = sprintf("step-%02d", ++n); next }
        /^```$/ { file = ""; next }
        file { print > file }' "$page"
    [ -s step-12 ] || fail "$page has fewer steps than it needs"
}

draws_figures() {
    python3 -c 'import matplotlib' 2>/dev/null ||
        /usr/bin/python3 -c 'import matplotlib' 2>/dev/null
}

# Why a step cannot be run here; nothing if it can.
why_not() { # STEP
    local command option
    if grep -q '^pdflatex ' "$1"; then
        if ! kpsewhich booktabs.sty graphicx.sty >found 2>/dev/null; then
            echo "no LaTeX with booktabs and graphicx (scripts/deps latex)"
        elif ! draws_figures; then
            echo "no figures to include"
        fi
    elif grep -q -- '--figures' "$1" && ! draws_figures; then
        echo "no matplotlib (scripts/deps figures)"
    fi
    for command in run report compare rerun; do
        "$coord" "$command" --help
    done >help
    grep '^refit-coord ' "$1" | grep -oE -- ' --[a-z]+' | while read -r option; do
        grep -q -- "$option" help ||
            echo "this build's --help does not know $option"
    done
}

# `rerun` also exits with 1 where the machine has become slower meanwhile.
run_step() { # STEP
    bash -e "$1" >"$1.out" 2>"$1.err" </dev/null
    status=$?
    ! grep -q '^refit-coord rerun ' "$1" || [ "$status" != 1 ] || status=0
    sed "s|^|  $1: |" "$1.out" "$1.err" >&2
    [ "$status" = 0 ] || fail "$1 ended with $status: $(cat "$1")"
}

test_every_command_of_the_page_runs_as_written() {
    local step reason
    extract_steps
    for step in step-??; do
        reason=$(why_not "$step")
        if [ -n "$reason" ]; then
            echo "skipped: $(tail -n 1 "$step"): $reason"
        else
            run_step "$step"
        fi
    done
    for step in runs/*/split-*.json again/*/split-*.json; do
        expect_json "$step" '.status == "ok" and
            .verification.mismatched_bytes == 0 and
            .verification.checked_bytes ==
                .plan.bytes_total * .verification.rounds'
    done
    expect_text table.tex 'toprule'
    expect_json report.json '.results | length == 6'
    [ "$(wc -l <table.csv)" = 7 ] || fail "table.csv has other lines"
    [ -s report.html ] || fail "no page"
    if draws_figures; then
        "$RF_TOP/tests/lib/check-figures" figures/*.pdf || fail "a bad figure"
        for step in times-split times-split-2 curve-ranks predicted; do
            grep -qF "\`$step\`" "$page" || fail "$page does not name $step"
            [ -s "figures/$step.pdf" ] || fail "no figure $step"
        done
        [ ! -e paper.log ] ||
            expect_no_text paper.log '^(Overfull|LaTeX Warning: File)'
    fi
}

# A step that is only described proves nothing: each block is one command.
test_each_block_is_one_command() {
    local step
    extract_steps
    for step in step-??; do
        bash -n "$step" || fail "$step is no command"
        [ "$(sed '/<<.EOF.$/,/^EOF$/d' "$step" | grep -c .)" -le 1 ] ||
            fail "more than one: $(cat "$step")"
    done
}

test_the_page_cites_what_the_citation_file_does() {
    local value
    for value in title version; do
        expect_text "$page" "^  $value = \{$(sed -nE \
            "s/^$value: *\"?([^\"]*)\"?\$/\1/p" "$RF_TOP/CITATION.cff")\},"
    done
    expect_text "$page" 'author = \{\{The refit-coord authors\}\}'
}

run_tests
