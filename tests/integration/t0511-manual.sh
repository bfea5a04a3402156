# A program's manual page and its --help name the same options.
# limit: 60
# shellcheck shell=bash source=../lib/test.sh
. "$(dirname "$0")/../lib/test.sh"

# Those that the section DESCRIPTION explains, one per line.
options_of_page() { # NAME
    sed -n '/^\.Sh DESCRIPTION/,/^\.Sh [^D]/s/^\.It Fl/Fl/p' \
        "$RF_TOP/docs/man/$1.1" | grep -oE 'Fl -?[a-zA-Z][a-zA-Z-]*' |
        sed 's/^Fl /-/' | sort -u
}

# The words of the help that begin with a dash.
options_of_help() { # PROGRAM
    "$1" --help >help || fail "$1 --help: exit code $?"
    grep -oE "(^|[[ |(\`])--?[a-zA-Z][a-zA-Z-]*" help |
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

# Every line fits a terminal of 80 columns.
test_help_is_no_wider_than_a_terminal() {
    local program
    # shellcheck disable=SC2154
    for program in "$coord" "$worker" "$testbed" \
        "$RF_TOP/scripts/refit-suite"; do
        "$program" --help >help || fail "$program --help: exit code $?"
        [ -s help ] || fail "$program --help prints nothing"
        awk 'length > 80 { print; wide = 1 } END { exit wide }' help >&2 ||
            fail "$program --help has lines above 80 columns"
    done
}

run_tests
