#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Dependencies run one way: tools -> common; spank_contract -> common; plugins/*.c -> engine.h and
# plugins/slurm; engine -> ledger_file -> common; inside common as the table
# says. Slurm's headers are read in plugins/*.c and plugins/slurm alone, its
# version in plugins/slurm/compat.h alone. Reads #include lines; then breaks a
# copy of the tree in each way and expects to be told. TAP.
set -euo pipefail

# What each noun of common/ may include; noun.h and noun.cc count alike.
declare -A may_include=(
    [units]=""
    [result]=""
    [time_text]="units result"
    [numbering]="units result"
    [tree]="units result"
    [usage_window]="units result"
    [parameters]="units result time_text usage_window"
    [ledger]="units result tree usage_window"
    [run_tag]="units ledger"
    [contract]="units result time_text parameters ledger run_tag"
    [run_terms]="units ledger run_tag parameters contract"
    [accounting_rows]="units result tree time_text parameters ledger run_tag run_terms"
    [rebuild]="units result tree ledger parameters accounting_rows run_tag"
    [claim]="units result tree usage_window contract ledger parameters"
    [amount]="units"
    [placement]="units amount"
    [victim_sets]="units amount placement"
    [fitting]="amount placement victim_sets"
    [preemption]="units tree ledger parameters claim placement"
    [queue]="units result tree ledger parameters numbering claim"
    [fair_tree]="units result tree"
    [shares]="units result tree claim"
    [snapshot]="units result tree ledger claim"
)
# The policy owns no clock, no thread, does no input or output.
not_in_common="<iostream> <istream> <ostream> <fstream> <filesystem> <chrono> <ctime> <thread>"

top=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# shellcheck source=tests/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"

# has LIST WORD
has() { [[ " $1 " == *" $2 "* ]]; }

# is_slurms HEADER: one of Slurm's, internal or public
is_slurms() { [[ $1 == '"src/'* || $1 == '<src/'* || $1 == '<slurm/'* || $1 == '<config.h>' || $1 == '"config.h"' ]]; }

# is_public HEADER: what libslurm-dev has
is_public() { [[ $1 =~ ^'<slurm/'(slurm|slurm_errno|slurmdb|spank)'.h>'$ ]]; }

# in_common NOUN HEADER: prints what is wrong with it, nothing if it is right
in_common() {
    local noun=$1 header=$2 other
    if [[ $header == '<'* ]]; then
        if has "$not_in_common" "$header"; then
            echo "the policy has no clock, thread, input or output"
        elif [[ ! $header =~ ^'<'[a-z0-9_]+'>'$ ]]; then
            echo "common uses the standard library alone"
        fi
        return
    fi
    other=${header//\"/}
    other=${other#common/}
    other=${other%.h}
    if [[ -z ${may_include[$noun]+set} ]]; then
        echo "new in common: say in t0001-layering.t what $noun may include"
    elif [[ $other != "$noun" ]] && ! has "${may_include[$noun]}" "$other"; then
        echo "$noun may include: ${may_include[$noun]:-nothing}"
    fi
}

# in_engine HEADER: the C++ of plugins/ and engine.h
in_engine() {
    if is_slurms "$1" || [[ $1 == *slurm/* ]]; then
        echo "the engine knows no type of Slurm"
    elif [[ $1 == '"'* && ! $1 =~ ^'"'(common/[a-z_]+|(plugins/)?[a-z_]+)'.h"'$ ]]; then
        echo "the engine includes common/ and its own headers alone"
    fi
}

# in_ledger_file HEADER: plugins/ledger_file and plugins/ledger_bytes
in_ledger_file() {
    if is_slurms "$1" || [[ $1 == *slurm/* ]]; then
        echo "the state file knows no type of Slurm"
    elif [[ $1 == '"'* && ! $1 =~ ^'"'(common/[a-z_]+|(plugins/)?ledger_file)'.h"'$ ]]; then
        echo "the state file includes common/ alone"
    fi
}

# in_plugin HEADER: plugins/*.c and plugins/slurm
in_plugin() {
    if [[ $1 == *common/* || $1 == *ledger_file* || $1 == *notices* || $1 == *picks* || $1 == *verdicts* ]] && ! is_slurms "$1"; then
        echo "plugins ask the engine (engine.h), never common or the state file"
    elif [[ $1 == '"'* ]] && ! is_slurms "$1" && [[ ! $1 =~ ^'"'((\.\./)?(plugins/)?(slurm/)?[a-z_]+)'.h"'$ ]]; then
        echo "plugins include engine.h, plugins/slurm and Slurm alone"
    fi
}

# in_spank HEADER: the SPANK plugin, loaded where there is no engine
in_spank() {
    if is_slurms "$1" && ! is_public "$1"; then
        echo "the SPANK plugin knows Slurm by its public headers"
    elif [[ $1 == '"'* && ! $1 =~ ^'"'common/(run_tag|time_text)'.h"'$ ]]; then
        echo "the SPANK plugin includes common/run_tag and common/time_text alone"
    fi
}

# elsewhere FILE HEADER: tools and tests
elsewhere() {
    if is_slurms "$2" && ! { [[ $1 == tools/* ]] && is_public "$2"; }; then
        echo "Slurm's headers belong in plugins/*.c and plugins/slurm, its public ones also in tools"
    elif [[ $1 == tools/* && ($2 == *plugins/* || $2 == *engine*) ]]; then
        echo "tools ask common alone"
    fi
}

# wrong_arrows FILE...: one line for each, in the current folder
wrong_arrows() {
    local file line header noun why
    while IFS=: read -r file line; do
        [[ $line =~ include[[:space:]]*([\"\<][^\">]*[\">]) ]] || continue
        header=${BASH_REMATCH[1]}
        case $file in
        common/*)
            noun=${file##*/}
            why=$(in_common "${noun%.*}" "$header")
            ;;
        plugins/ledger_file.* | plugins/ledger_bytes.*) why=$(in_ledger_file "$header") ;;
        plugins/spank_contract.cc) why=$(in_spank "$header") ;;
        plugins/*.cc | plugins/engine*.h | plugins/notices.h | plugins/picks.h | plugins/terms.h | plugins/verdicts.h | plugins/views.h) why=$(in_engine "$header") ;;
        plugins/*) why=$(in_plugin "$header") ;;
        *) why=$(elsewhere "$file" "$header") ;;
        esac
        [ -z "$why" ] || echo "$file includes $header: $why"
    done < <(grep -HE '^[[:space:]]*#[[:space:]]*include' "$@" || true)
    while IFS=: read -r file line; do
        [ "$file" = plugins/slurm/compat.h ] ||
            echo "$file tests Slurm's version: $line; that belongs in plugins/slurm/compat.h"
    done < <(grep -HE 'SLURM_VERSION_NUM' "$@" || true)
}

# sources: our C and C++ files
sources() {
    local folder
    for folder in common plugins tools tests; do
        [ ! -d "$folder" ] || find "$folder" -name '*.[ch]' -o -name '*.cc'
    done | sort
}

# told FILE LINE: FILE of the tree with LINE added is found wrong, for that line
told() {
    local file=$1 line=$2 found status=0
    mkdir -p "$scratch/$(dirname "$file")"
    printf '%s\n' "$line" >"$scratch/added"
    cat "$top/$file" "$scratch/added" >"$scratch/$file" 2>/dev/null || true
    found=$(cd "$scratch" && wrong_arrows "$file")
    grep -qF "${line##*include }" <<<"$found" || status=1
    report "$status" "told of '$line' in $file"
}

cd "$top"
mapfile -t all < <(sources)
found=$(wrong_arrows "${all[@]}")
if [ -n "$found" ]; then printf '%s\n' "$found" | sed 's/^/# /'; fi
status=0
[ -z "$found" ] || status=1
report "$status" "every arrow points the right way"
status=0
[ ${#all[@]} -ge 20 ] || status=1
report "$status" "there was something to read (${#all[@]} files)"

told common/units.h '#include "tree.h"'
told common/tree.cc '#include "ledger.h"'
told common/ledger.cc '#include "common/claim.h"'
told common/numbering.h '#  include "claim.h"'
told common/claim.cc '#include <slurm/slurm.h>'
told common/claim.cc '#include <iostream>'
told common/claim.cc '#include <unistd.h>'
told common/claim.cc '#include "plugins/engine.h"'
told common/novelty.h '#include "units.h"'
told plugins/engine.h '#include <slurm/slurm.h>'
told plugins/engine.cc '#include "src/slurmctld/slurmctld.h"'
told plugins/engine.cc '#include "plugins/slurm/job_view.h"'
told plugins/ledger_file.h '#include <slurm/slurm.h>'
told plugins/ledger_file.cc '#include "plugins/engine.h"'
told plugins/ledger_bytes.cc '#include "plugins/engine.h"'
told plugins/ledger_file.cc '#include "slurm/compat.h"'
told plugins/priority_budget.c '#include "common/claim.h"'
told plugins/priority_budget.c '#include "plugins/ledger_file.h"'
told plugins/slurm/job_view.c '#include "../../common/claim.h"'
told plugins/priority_budget.c '#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)'
told plugins/slurm/job_view.c '#if SLURM_VERSION_NUMBER > 1'
told tests/tree_test.cc '#include "src/common/assoc_mgr.h"'
told tools/sbudget.cc '#include "plugins/engine.h"'
told tools/sbudget.cc '#include "src/common/assoc_mgr.h"'
told tools/sbudget.cc '#include <slurm/slurm_version.h>'
told tests/tree_test.cc '#include <slurm/slurm.h>'
told plugins/spank_contract.cc '#include "common/ledger.h"'
told plugins/spank_contract.cc '#include "plugins/engine.h"'
told plugins/spank_contract.cc '#include "src/common/plugstack.h"'

closing
