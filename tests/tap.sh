# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# For tests that look at the tree and need no cluster: lines of TAP, and the closing
# count. Sourced by a test.

passed=0
failed=0

# report STATUS NAME: one test line; 0 is passed
report() {
    local verdict=ok
    if [ "$1" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        verdict="not ok"
    fi
    echo "$verdict $((passed + failed)) - $2"
}

# closing: plan and count; its status is the script's
closing() {
    echo "1..$((passed + failed))"
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}
