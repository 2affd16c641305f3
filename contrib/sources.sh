# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Where Slurm's source comes from: the cache folder, an apt with lists of its own
# that knows source packages only, from where this machine gets its packages, and
# how a source is configured. /etc/apt is not touched. Sourced by bootstrap and
# compile-against, under `set -euo pipefail`.

# cache_folder: prints where sources are kept
cache_folder() {
    if [ "$(id -u)" -eq 0 ]; then
        echo "${XDG_CACHE_HOME:-/var/cache}/slurm-budget"
    else
        echo "${XDG_CACHE_HOME:-$HOME/.cache}/slurm-budget"
    fi
}

# private_apt FOLDER COMMAND...: apt with its sources, lists and cache in FOLDER
private_apt() {
    local folder=$1 command=$2
    shift 2
    "$command" -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$folder/sources" \
        -o Dir::State::Lists="$folder/lists" -o Dir::Cache="$folder/cache" \
        -o Acquire::Retries=3 -o APT::Sandbox::User=root "$@"
}

# of_suite SUITE: filters package sources on stdin, one-line or deb822, for those of this machine's own
# release (not its updates, security or backports), and has them speak of SUITE instead
of_suite() {
    local own=stable
    # shellcheck disable=SC1091 # the machine's own
    own=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
    awk -v suite="$1" -v own="$own" '
        function is_own(name) { return name == own || name ~ /^(oldstable|stable|testing|unstable|sid)$/ }
        /^[[:space:]]*(#|$)/ { print; next }
        /^[[:space:]]*deb(-src)?[[:space:]]/ {
            at = $2 ~ /^\[/ ? 3 : 2
            while (at > 2 && $(at - 1) !~ /\]$/) at++
            if (!is_own($(at + 1))) next
            $(at + 1) = suite
        }
        /^[Ss]uites:/ {
            found = 0
            for (i = 2; i <= NF; i++) found += is_own($i)
            if (!found) print "Enabled: no"
            $0 = "Suites: " suite
        }
        { print }'
}

# derive_sources FOLDER [SUITE]: makes FOLDER/sources of this machine's package sources, for source packages
# only; with SUITE for those of another Debian release instead
derive_sources() {
    local folder=$1 suite=${2-} file filter=(cat)
    [ -z "$suite" ] || filter=(of_suite "$suite")
    rm -rf "$folder/sources"
    mkdir -p "$folder/sources" "$folder/lists/partial" "$folder/cache/archives/partial"
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -f "$file" ] || continue
        sed -nE 's/^[[:space:]]*deb(-src)?([[:space:]])/deb-src\2/p' "$file"
    done | "${filter[@]}" | sort -u >"$folder/sources/one-line.list"
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -f "$file" ] || continue
        sed -E 's/^Types:.*/Types: deb-src/I' "$file" | "${filter[@]}" >"$folder/sources/$(basename "$file")"
    done
}

# configure_source FOLDER: as Debian configures it, as far as the headers depend on it (NDEBUG above all).
# Nothing of it is made.
configure_source() {
    (
        cd "$1" &&
            ./configure --prefix=/usr --sysconfdir=/etc/slurm --without-rpath --without-munge --disable-debug \
                --enable-multiple-slurmd SUCMD=/bin/su SLEEP_CMD=/bin/sleep &&
            touch slurm-budget-configured
    )
}
