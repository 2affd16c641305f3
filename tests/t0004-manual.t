#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The manual and the code say the same: slurm-budget(5) describes every key that
# common/parameters.cc knows and no other, and its error lines are the real ones;
# slurm-budget(7) has every rule that is cited by number. Then breaks a copy of
# either side in each way and expects to be told. TAP.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# shellcheck source=tests/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"

# known_keys SOURCE: the names in the table of keys, sorted
known_keys() { sed -n '/kKeys = {/,/};/p' "$1" | grep -oE '\{"[a-z_]+"' | tr -d '{"' | sort; }

# described_keys PAGE: what the section PARAMETERS describes, sorted
described_keys() { sed -n '/^\.SH PARAMETERS/,/^\.SH ERRORS/p' "$1" | sed -nE 's/^\.BI ([a-z_]+)= .*/\1/p' | sort; }

# plain PAGE: its text with hyphens as they are read
plain() { sed 's/\\-/-/g' "$1"; }

# complaints SOURCE: the text of every error message, its fixed parts of 12 letters and more, one a line
complaints() { grep -oE '"[^"]*"' "$1" | tr -d '"' | grep -E '.{12}' | grep -E 'needed|must|twice|unknown key|no value' || true; }

# error_lines PAGE: the lines of the section ERRORS
error_lines() {
    plain "$1" | sed -n '/^\.SH ERRORS/,/^\.SH SLURM/p' | sed -n '/^\.EX/,/^\.EE/p' | grep -v '^\.' |
        sed 's/^.*PriorityParameters: \(.*\); the last good parameters stay in force$/\1/'
}

# wrong_keys SOURCE PAGE: one line for each difference
wrong_keys() {
    local key
    for key in $(comm -23 <(known_keys "$1") <(described_keys "$2")); do echo "$key is not described"; done
    for key in $(comm -13 <(known_keys "$1") <(described_keys "$2")); do echo "$key is described, but not known"; done
    for key in $(described_keys "$2" | uniq -d); do echo "$key is described twice"; done
}

# wrong_errors SOURCE PAGE: one line for each difference
wrong_errors() {
    local text line lines parts said
    lines=$(error_lines "$2")
    parts=$(complaints "$1")
    while IFS= read -r text; do
        if [ -n "$text" ] && ! grep -qF -e "$text" <<<"$lines"; then echo "not shown: $text"; fi
    done <<<"$parts"
    while IFS= read -r line; do
        said=no
        while IFS= read -r text; do
            if [[ -n $text && $line == *"$text"* ]]; then said=yes; fi
        done <<<"$parts"
        [ "$said" = yes ] || echo "nobody says: $line"
    done <<<"$lines"
}

# cited_rules FILE...: the numbers of the rules, sorted
cited_rules() { grep -ohE '\b[BUCQPGD][0-9]{1,2}\b' "$@" | sort -u; }

# listed_rules PAGE: the rules with a text (.B U3), and those of NOT THERE YET ("U7, U10", "C1 to C9"), sorted
listed_rules() {
    local words letter first last
    {
        sed -nE 's/^\.B ([A-Z][0-9]+)$/\1/p' "$1"
        while IFS= read -r words; do
            if [[ $words =~ ^([A-Z])([0-9]+)' to '[A-Z]([0-9]+)' ' ]]; then
                letter=${BASH_REMATCH[1]} first=${BASH_REMATCH[2]} last=${BASH_REMATCH[3]}
                seq -f "$letter%.0f" "$first" "$last"
            else
                grep -oE '^[A-Z][0-9]+(, [A-Z][0-9]+)*' <<<"$words" | tr -d ' ' | tr ',' '\n' || true
            fi
        done < <(sed -n '/^\.SH NOT THERE YET/,/^\.EE/p' "$1")
    } | sort
}

# wrong_rules PAGE FILE...: one line for each rule that is cited and not listed, or listed twice
wrong_rules() {
    local page=$1 rule
    shift
    for rule in $(comm -13 <(listed_rules "$page" | uniq) <(cited_rules "$@")); do
        echo "$rule is cited by $(grep -lE "\b$rule\b" "$@" | head -n 1), and not listed"
    done
    for rule in $(listed_rules "$page" | uniq -d); do echo "$rule is listed twice"; done
}

# expect NOTHING-FOUND NAME
expect_none() {
    if [ -n "$1" ]; then printf '%s\n' "$1" | sed 's/^/# /'; fi
    report "$([ -z "$1" ] && echo 0 || echo 1)" "$2"
}

# told WHAT FOUND NAME: among what was found is WHAT
told() {
    local status=0
    grep -qF -e "$1" <<<"$2" || status=1
    [ "$status" -eq 0 ] || printf '%s\n' "$2" | sed 's/^/# found: /'
    report "$status" "told: $3"
}

cd "$top"
source=common/parameters.cc
page=man/slurm-budget.5
policy=man/slurm-budget.7
mapfile -t citing < <(find common plugins tests -type f \( -name '*.[ch]' -o -name '*.cc' -o -name '*.t' -o -name '*.sh' \) \
    ! -name t0004-manual.t | sort)

report "$([ "$(known_keys $source | wc -l)" -ge 7 ] && echo 0 || echo 1)" "the table of keys was found"
expect_none "$(wrong_keys $source $page)" "slurm-budget(5) describes the keys that are known"
report "$([ "$(error_lines $page | wc -l)" -ge 10 ] && echo 0 || echo 1)" "the error lines were found"
expect_none "$(wrong_errors $source $page)" "slurm-budget(5) shows the errors that are given"
keys=$(known_keys $source | tr '\n' ' ')
known_are=$(error_lines $page | sed -n 's/.*known are //p' | tr -d ',' | tr ' ' '\n' | sort | tr '\n' ' ')
report "$([ "$keys" = "$known_are" ] && echo 0 || echo 1)" "and the keys in its line on unknown keys"
report "$([ "$(cited_rules "${citing[@]}" | wc -l)" -ge 15 ] && echo 0 || echo 1)" "rules are cited in ${#citing[@]} files"
expect_none "$(wrong_rules $policy "${citing[@]}")" "slurm-budget(7) lists the rules that are cited"

for file in $page $policy man/*.1; do
    expect_none "$(groff -man -ww -Tutf8 "$file" 2>&1 >/dev/null)" "$file formats without a warning"
done

sed 's/^\.BI quantum= .*/.BI something/' $page >"$scratch/page"
told "quantum is not described" "$(wrong_keys $source "$scratch/page")" "a key that is not described"
sed 's/{"quantum", /{"amount", /' $source >"$scratch/source.cc"
told "amount is not described" "$(wrong_keys "$scratch/source.cc" $page)" "a new key"
told "quantum is described, but not known" "$(wrong_keys "$scratch/source.cc" $page)" "a key that is gone"
sed 's/at most 8 hours/at most 9 hours/' $source >"$scratch/source.cc"
told "not shown: a time above 0 and at most 9 hours" "$(wrong_errors "$scratch/source.cc" $page)" "an error in other words"
told "nobody says: quantum=1d" "$(wrong_errors "$scratch/source.cc" $page)" "an error line that is out of date"
sed 's/^\.B Q3$/.B Third/' $policy >"$scratch/policy"
told "Q3 is cited by" "$(wrong_rules "$scratch/policy" "${citing[@]}")" "a rule that is not listed"
echo '// rule G4' >"$scratch/new.cc"
sed 's/^G1 to G4/G1 to G3/' $policy >"$scratch/policy"
told "G4 is cited by" "$(wrong_rules "$scratch/policy" "$scratch/new.cc")" "a rule left out of the table"
echo '// rule U12' >"$scratch/new.cc"
told "U12 is cited by $scratch/new.cc" "$(wrong_rules $policy "$scratch/new.cc")" "a citation of no rule"
sed 's/^\.B Q4$/.B Q3/' $policy >"$scratch/policy"
told "Q3 is listed twice" "$(wrong_rules "$scratch/policy" "${citing[@]}")" "a rule that is listed twice"

closing
