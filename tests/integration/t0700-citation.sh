#!/bin/bash
# CITATION.cff speaks of this program and this version.
# limit: 60
# shellcheck source=../lib/test.sh
. "$(dirname "$0")/../lib/test.sh"

citation=$RF_TOP/CITATION.cff

# The value of a key at the top level.
cited() { # KEY
    sed -nE "s/^$1: *\"?([^\"]*)\"?\$/\1/p" "$citation"
}

test_the_cited_version_is_the_programs() {
    coord_exits 0 --version
    expect_text out "^refit-coord $(cited version) "
    expect_text "$RF_TOP/NEWS.md" "^## $(cited version) "
}

test_the_citation_has_what_the_format_requires() {
    local key
    [ "$(cited cff-version)" = 1.2.0 ] || fail "not of format 1.2.0"
    [ "$(cited title)" = refit-coord ] || fail "the title is $(cited title)"
    [ "$(cited license)" = Apache-2.0 ] || fail "another licence"
    for key in message authors; do
        expect_text "$citation" "^$key:"
    done
    expect_text "$citation" '^  - name: '
}

# Versions are text there, which YAML would make numbers of without quotes.
test_the_citation_is_yaml() {
    local python=/usr/bin/python3
    $python -c 'import yaml' 2>/dev/null || {
        echo "not read: no python3-yaml"
        return 0
    }
    $python -c '
import sys, yaml
cff = yaml.safe_load(open(sys.argv[1], encoding="utf-8"))
assert all(isinstance(cff[key], str) for key in
           ("cff-version", "message", "title", "version", "license")), cff
assert cff["authors"] and all("name" in who for who in cff["authors"])
' "$citation" || fail "not as the format has it"
}

run_tests
