# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# For the live tests (tests/t*.t): TAP lines with the closing count, and private
# clusters that are taken down whatever happens. Sourced by a test; the clusters
# load the build tree's plugins.

set -uo pipefail

tests_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build_dir=${SLURM_BUDGET_BUILD_DIR:-$tests_dir/../build}
# shellcheck source=tests/live.sh
. "$tests_dir/live.sh"

passed=0
failed=0
clusters=()
folders=()

# ok DESCRIPTION COMMAND...: one test line, by the command's exit status.
ok() {
	local description=$1
	shift
	if "$@"; then
		passed=$((passed + 1))
		printf 'ok %d - %s\n' $((passed + failed)) "$description"
	else
		failed=$((failed + 1))
		printf 'not ok %d - %s\n' $((passed + failed)) "$description"
		printf '#   failed: %s\n' "$*"
		return 1
	fi
}

note() { printf '# %s\n' "$*"; }

# is DESCRIPTION GOT WANTED: equal texts.
is() {
	ok "$1" test "$2" = "$3" || printf '#   got:    %s\n#   wanted: %s\n' "$2" "$3"
}

# within DESCRIPTION GOT WANTED TOLERANCE: numbers that differ by no more.
within() {
	if ok "$1: $2, wanted $3 +- $4" awk -v g="$2" -v w="$3" -v t="$4" \
		'BEGIN { d = g - w; exit !(g != "" && d <= t && d >= -t) }'; then return 0; fi
}

# The folders with our plugins: what libtool built, or what SLURM_BUDGET_PLUGIN_DIR names.
plugin_dir() { printf '%s' "${SLURM_BUDGET_PLUGIN_DIR:-$(cd "$build_dir" && pwd)/.libs}"; }

# cluster_up NAME [minicluster up options]: a cluster with our plugins in its
# PluginDir; `on NAME` runs in it. Ends the test if it does not come up.
cluster_up() {
	local dir=${TMPDIR:-/tmp}/slurm-budget-test-$$-$1
	clusters+=("$dir")
	if ! "$tests_dir/minicluster" up --dir "$dir" --plugin-dir "$(plugin_dir)" "${@:2}" >"$dir.log" 2>&1; then
		sed 's/^/# /' "$dir.log"
		ok "cluster $1 comes up" false
		finish
	fi
}

# preempting_up NAME INTERVALS [minicluster up options]: a cluster with budgets in which jobs give way; INTERVALS are
# those of its schedulers, as in sched_interval=2,bf_interval=2.
preempting_up() {
	cluster_up "$1" --priority priority/budget --conf PreemptType=preempt/contract --conf PreemptMode=REQUEUE \
		--conf "SchedulerParameters=$2,bf_continue,preempt_strict_order,preempt_reorder_count=8" "${@:3}"
}

# The folder of a cluster of this process.
cluster_dir() { printf '%s/slurm-budget-test-%d-%s' "${TMPDIR:-/tmp}" $$ "$1"; }

# new_folder: one that all users may enter; its name is in $folder. It goes when the test ends, after the clusters.
new_folder() {
	folder=$(mktemp -d "${TMPDIR:-/tmp}/slurm-budget-test-$$-XXXXXX")
	chmod 755 "$folder"
	folders+=("$folder")
}

take_down() {
	local dir
	for dir in "${clusters[@]}"; do
		if [[ -n ${SLURM_BUDGET_KEEP_LOGS:-} && -d $dir/log ]]; then
			mkdir -p "$SLURM_BUDGET_KEEP_LOGS"
			cp -r "$dir/log" "$SLURM_BUDGET_KEEP_LOGS/$(basename "$dir")"
		fi
		"$tests_dir/minicluster" down --dir "$dir" >/dev/null 2>&1
		rm -f "$dir.log"
	done
	clusters=()
	rm -rf "${folders[@]}"
	folders=()
}
trap take_down EXIT

# The closing line and the exit status.
finish() {
	take_down
	printf '%d passed, %d failed\n' "$passed" "$failed"
	exit $((failed > 0))
}
