#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# configure tells everything that is missing at once, with the Debian package
# that has it, and refuses a Slurm source that is not the installed Slurm's.
# Works on stand-ins: a slurmctld that only tells a version, folders that look
# like Slurm's source. TAP.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# shellcheck source=tests/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"

# judge STATUS NAME: a test line, after the output of what failed
judge() {
    [ "$1" -eq 0 ] || sed 's/^/# /' "$scratch/output"
    report "$@"
}

# configure OPTION...: in a fresh folder; what it says goes to output
configure() {
    rm -rf "$scratch/build"
    mkdir "$scratch/build"
    (cd "$scratch/build" && "$top/configure" --cache-file="$scratch/cache" "$@") >"$scratch/output" 2>&1
}

# refused NAME TEXT...: the last run failed and said each text
refused() {
    local name=$1 status=0 text
    shift
    grep -q 'slurm-budget cannot be built here yet' "$scratch/output" || status=1
    for text in "$@"; do
        grep -qF -- "$text" "$scratch/output" || status=1
    done
    judge "$status" "$name"
}

# slurm_source VERSION: a folder that looks like that version's configured source
slurm_source() {
    local dir=$scratch/slurm-$1
    mkdir -p "$dir/slurm"
    printf '  Name:\t\tslurm\n  Version:\t%s\n' "$1" >"$dir/META"
    printf '#define NDEBUG 1\n#define SLURM_VERSION_STRING "%s"\n' "$1" >"$dir/config.h"
    echo '/* a stand-in */' >"$dir/slurm/slurm_version.h"
    echo "$dir"
}

mkdir "$scratch/bin"
printf '#!/bin/sh\necho "slurm-wlm 22.05.8"\n' >"$scratch/bin/slurmctld"
chmod +x "$scratch/bin/slurmctld"
PATH=$scratch/bin:$PATH

# The first run fills the cache of the next ones.
status=0
configure --without-slurm-source || status=1
judge "$status" "without Slurm's source the library alone is built"

configure || true
refused "no source given" "give --with-slurm-source=DIR" "apt-get source slurm-wlm"

configure --with-slurm-source="$scratch/nowhere" || true
refused "no such folder" "there is no folder $scratch/nowhere"

rm -rf "$(slurm_source 22.05.8)/config.h"
configure --with-slurm-source="$scratch/slurm-22.05.8" || true
refused "source not configured" "is not configured: run ./configure there"

configure --with-slurm-source="$(slurm_source 22.05.9)" || true
refused "near miss" "Slurm's source is 22.05.9, the installed Slurm is 22.05.8: give the source of 22.05.8"

slurm_source 22.05.8 >/dev/null
sed -i 's/22.05.8/22.05.7/' "$scratch/slurm-22.05.8/config.h"
configure --with-slurm-source="$scratch/slurm-22.05.8" || true
refused "unpacked over a configured one" "is 22.05.8 but was configured as 22.05.7"

sed -i '/NDEBUG/d' "$(slurm_source 22.05.8)/config.h"
configure --with-slurm-source="$scratch/slurm-22.05.8" || true
refused "with Slurm's developer checks" "configure the source with --enable-developer or without it"

sed -i -e '/CHECK_/d' -e '/ZLIB_/d' -e '/JSON_C_/d' -e '/CLI11_/d' -e '/ac_cv_env/d' "$scratch/cache"
PKG_CONFIG_LIBDIR=$scratch/nowhere PKG_CONFIG_PATH='' configure --with-slurm-source="$(slurm_source 22.05.9)" || true
refused "several at once" "apt-get install check" "apt-get install zlib1g-dev" \
    "apt-get install libcli11-dev" "apt-get install libjson-c-dev" "Slurm's source is 22.05.9"

# No compiler anywhere on the path.
mkdir "$scratch/few"
ln -s /usr/bin/* "$scratch/few/" 2>/dev/null || true
rm -f "$scratch"/few/{cc,c++,c89,c99,gcc,g++,tcc,pgcc,icc}* "$scratch"/few/*-{gcc,g++}* "$scratch"/few/*clang* "$scratch/cache"
CC='' CXX='' PATH=$scratch/bin:$scratch/few configure || true
refused "no compilers" "apt-get install gcc" "apt-get install g++" "give --with-slurm-source=DIR"

closing
