#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Each module exports the names of its map, all of them, and no others. Each
# can be loaded by a process that is not slurmctld, as sshare does: it binds
# functions when they are called, and data of slurmctld may be absent. TAP.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
modules=${SLURM_BUDGET_BUILD_DIR:-$top/build}/.libs
maps=$top/plugins
# shellcheck source=tests/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"

# wanted MAP: the names and patterns of its global part, one a line
wanted() {
    sed -e 's,/\*.*\*/,,' "$1" | tr -d ' \t\n' | sed -e 's/.*global:\(.*\)local:.*/\1/' | tr ';' '\n' | grep .
}

# exported MODULE: names that it defines for others
exported() {
    nm --dynamic --defined-only --extern-only "$1" | awk '{ print $3 }' | sed 's/@.*//' | sort
}

# only_wanted MAP NAMES: nothing but what the map says
only_wanted() {
    local name pattern known
    for name in $2; do
        known=no
        while read -r pattern; do
            # shellcheck disable=SC2254  # patterns of the map are patterns here too
            case $name in $pattern) known=yes ;; esac
        done < <(wanted "$1")
        if [ "$known" = no ]; then
            echo "# $name is exported, ${1##*/} does not say so"
            return 1
        fi
    done
}

# all_wanted MAP NAMES: everything that the map says
all_wanted() {
    local pattern name seen
    while read -r pattern; do
        seen=no
        for name in $2; do
            # shellcheck disable=SC2254
            case $name in $pattern) seen=yes ;; esac
        done
        if [ "$seen" = no ]; then
            echo "# ${1##*/} promises $pattern, the module does not export it"
            return 1
        fi
    done < <(wanted "$1")
}

# loads MODULE: beside libslurmfull alone, into a process that calls nothing of it
loads() {
    local tool full words
    for tool in /usr/sbin/slurmctld slurmctld sinfo; do
        full=$(ldd "$(command -v "$tool")" 2>/dev/null | sed -n 's/.*libslurmfull\.so => \(\/.*\) (.*/\1/p')
        [ -z "$full" ] || break
    done
    words=$(LD_PRELOAD="$full $1" /bin/true 2>&1) && [ -z "$words" ] && return
    echo "# $words"
    return 1
}

for map in "$maps"/*.map; do
    noun=$(basename "$map" .map)
    case $noun in
    engine) module=$modules/libslurm_budget_engine.so ;;
    fair_tree_hook) module=$modules/libslurm_budget_hook.so ;;
    *) module=$modules/$noun.so ;;
    esac
    if [ ! -f "$module" ]; then
        report 1 "$noun is built"
        continue
    fi
    names=$(exported "$module")
    status=0
    only_wanted "$map" "$names" || status=1
    report $status "$noun exports nothing else"
    status=0
    all_wanted "$map" "$names" || status=1
    report $status "$noun exports what its map says"
    status=0
    if readelf --dynamic "$module" | grep -qE 'BIND_NOW|FLAGS.*NOW'; then status=1; fi
    report $status "$noun binds lazily"
    status=0
    loads "$module" || status=1
    report $status "$noun loads outside slurmctld"
done
closing
