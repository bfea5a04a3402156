#!/bin/bash
# A program's manual page and its --help name the same commands and options, the
# page of cluster files names every method, TROUBLESHOOTING.md quotes messages
# that there are, and all, as `make help`, fit a terminal of 80 columns.
# limit: 60
# shellcheck source=../lib/test.sh
. "$(dirname "$0")/../lib/test.sh"

# Those that the section DESCRIPTION explains, one per line.
options_of_page() { # NAME
    sed -n '/^\.Sh DESCRIPTION/,/^\.Sh [^D]/s/^\.It Fl/Fl/p' \
        "$RF_TOP/docs/man/$1.1" | grep -oE 'Fl -?[a-zA-Z][a-zA-Z-]*' |
        sed 's/^Fl /-/' | sort -u
}

# The help of a program and of its commands, if it has any.
all_help() { # PROGRAM
    local command
    "$1" --help >help || fail "$1 --help: exit code $?"
    sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p' help >commands
    while read -r command; do
        "$1" "$command" --help >>help || fail "$1 $command --help: exit code $?"
    done <commands
}

# The words of the help that begin with a dash, without Megatron-LM's.
options_of_help() { # PROGRAM
    all_help "$1"
    sed '/^The benchmark:/,/^See/d; /^Example/,/^See/d' help |
        grep -oE "(^|[[ |(\`])--?[a-zA-Z][a-zA-Z-]*" |
        sed 's/^[^-]*//' | sort -u
}

same_options() { # PROGRAM
    options_of_page "$(basename "$1")" >page
    options_of_help "$1" >program
    [ "$(wc -l <page)" -ge 5 ] || fail "only $(wc -l <page) options in the page"
    diff page program >&2 || fail "the page (<) and --help (>) differ"
}

test_the_page_of_refit_coord_has_its_options() { same_options "$coord"; }
# shellcheck disable=SC2154 # test.sh sets it
test_the_page_of_refit_worker_has_its_options() { same_options "$worker"; }
test_the_page_of_refit_suite_has_its_options() {
    same_options "$RF_TOP/scripts/refit-suite"
}

# The items of a list in a page, between two lines.
list_of_page() { # NAME FIRST LAST
    sed -n "/^$2\$/,/^$3/s/^\.It Cm \([a-z0-9_-]*\).*/\1/p" \
        "$RF_TOP/docs/man/$1"
}

words_of_page_match() { # KEY FIRST-LINE
    "$coord" plan "$RF_TOP/examples/pair.json" \
        --set "scenarios.*.$1=nonesuch" >out 2>err
    sed -n 's/.* must be one of //p' err | sed 's/, not .*//; s/"//g; s/, /\n/g' |
        sort >program
    list_of_page refit-cluster.5 "$2" '\.El' | sort >page
    [ -s program ] || fail "no $1 is named: $(cat err)"
    diff page program >&2 || fail "the page (<) and the program (>) differ"
}

test_the_page_of_cluster_files_has_every_method_strategy_and_format() {
    words_of_page_match method 'How bytes move\.'
    words_of_page_match strategy 'Who sends what\.'
    words_of_page_match quantize 'Everything is computed in float32, .*'
}

test_the_page_of_refit_coord_has_every_command() {
    all_help "$coord"
    list_of_page refit-coord.1 'The commands are:' 'The options are:' >page
    diff page commands >&2 || fail "the page (<) and --help (>) differ"
}

# All that the sources print, without the seams of strings over several lines.
strings_of_sources() {
    find "$RF_TOP"/{coordinator,worker,common,planner,transport,ucx,cuda} \
        -name '*.c' -exec cat '{}' + | tr '\n' ' ' | sed 's/" *"//g; s/\\"/"/g'
}

test_troubleshooting_quotes_messages_that_there_are() {
    strings_of_sources >texts
    # shellcheck disable=SC2016 # backticks
    sed -n 's/^| `\([^`]*\)` |.*/\1/p' "$RF_TOP/docs/TROUBLESHOOTING.md" >quoted
    [ "$(wc -l <quoted)" -ge 30 ] || fail "only $(wc -l <quoted) messages"
    sed 's/…/\n/g' quoted | grep '[a-z]' >parts
    while read -r part; do
        grep -qF -- "$part" texts || fail "no message has: $part"
    done <parts
}

# Those in quotes, and what follows the dot of a path.
test_troubleshooting_names_keys_that_there_are() {
    local key
    grep -oE '"[a-z_0-9]+":|(launch|control|nodes|\*)\.[a-z_0-9]+' \
        "$RF_TOP/docs/TROUBLESHOOTING.md" | grep -oE '[a-z_0-9]+"?:?$' |
        tr -d '":' | sort -u >keys
    [ "$(wc -l <keys)" -ge 12 ] || fail "only $(wc -l <keys) keys"
    while read -r key; do
        grep -qE "^\.(It )?Cm .*\b$key\b|\"$key\":" \
            "$RF_TOP/docs/man/refit-cluster.5" "$RF_TOP/docs/MODELS.md" ||
            fail "no key $key"
    done <keys
}

# Every line fits a terminal of 80 columns.
test_help_is_no_wider_than_a_terminal() {
    local program
    # shellcheck disable=SC2154
    for program in "$coord" "$worker" "$testbed" \
        "$RF_TOP/scripts/refit-suite"; do
        all_help "$program"
        [ -s help ] || fail "$program --help prints nothing"
        awk 'length > 80 { print; wide = 1 } END { exit wide }' help >&2 ||
            fail "$program --help has lines above 80 columns"
    done
}

# As man shows them there: nothing to complain of, and no line that is cut.
test_pages_fit_a_terminal() {
    local page
    command -v man >/dev/null || return 0
    "$RF_TOP/scripts/page" refit-result 5 'results' "$RF_TOP/docs/RESULTS.md" \
        >refit-result.5
    for page in "$RF_TOP"/docs/man/*.[15] refit-result.5; do
        LC_ALL=C MANWIDTH=80 man -l "$page" >shown 2>err ||
            fail "cannot show $page: $(cat err)"
        [ ! -s err ] || fail "$page: $(cat err)"
        awk 'length > 80 { print; wide = 1 } END { exit wide }' shown >&2 ||
            fail "$page has lines above 80 columns"
    done
}

test_make_help_fits_a_terminal() {
    make -s -C "$RF_TOP" help >targets || fail "make help"
    [ "$(wc -l <targets)" -ge 20 ] || fail "only $(wc -l <targets) targets"
    awk 'length > 80 { print; wide = 1 } END { exit wide }' targets >&2 ||
        fail "lines above 80 columns"
}

run_tests
