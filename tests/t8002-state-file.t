#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The state file on real file systems: on a full one and on a read-only one the old
# file stays, and is written again as soon as there is room; a damaged file that
# cannot be renamed is said to be so. Also what state_dump shows of the frozen
# sample. Needs root for its mounts, which end with it; no Slurm. TAP.
set -uo pipefail

tests_dir=$(cd "$(dirname "$0")" && pwd)

# Mounts in a name space of our own.
if [[ -z ${STATE_FILE_TEST_INSIDE:-} ]] && unshare --mount --propagation private true 2>/dev/null; then
	STATE_FILE_TEST_INSIDE=yes exec unshare --mount --propagation private "$0" "$@"
fi
# shellcheck source=tests/lib.sh
. "$tests_dir/lib.sh"

sample=$tests_dir/data/state-v1.bin
dump=$build_dir/tests/state_dump
save=$build_dir/tests/state_save
scratch=$(mktemp -d)
trap 'umount "$scratch"/disk* 2>/dev/null; rm -rf "$scratch"' EXIT

# says TEXT WORDS...: the last output contains it
says() { grep -qF -- "$1" "$scratch/output" || { sed 's/^/# said: /' "$scratch/output"; return 1; }; }

# saved STATUS ARGUMENT...: state_save with its output kept ends with that status
saved() {
	local wanted=$1 status=0
	shift
	"$save" "$@" >"$scratch/output" 2>&1 || status=$?
	[[ $status -eq $wanted ]] || { sed 's/^/# said: /' "$scratch/output"; return 1; }
}

ok "state_dump shows the frozen sample as ever" diff -u "$tests_dir/data/state-v1.txt" <("$dump" "$sample")
"$dump" --usage 5000 "$sample" >"$scratch/output"
ok "U6: usage in a window, without the suspended time" says "usage vision ann - 11000"
"$dump" --usage 3500 "$sample" >"$scratch/output"
ok "U3: usage in a shorter one" says "usage vision ann - 6000"
head -c 700 "$sample" >"$scratch/cut"
"$dump" "$scratch/cut" >"$scratch/output" 2>&1
is "state_dump of a file that is cut off fails" $? 1
ok "and says so" says "$scratch/cut: it has 700 bytes instead of"

if [[ -z ${STATE_FILE_TEST_INSIDE:-} ]]; then
	printf 'ok %d - full and read-only disks # SKIP this needs root and mounts\n' $((passed + failed + 1))
	passed=$((passed + 1))
	finish
fi

disk=$scratch/disk
mkdir "$disk"
ok "a small disk" mount -t tmpfs -o size=64k tmpfs "$disk"
ok "first save" saved 0 "$disk" "$sample"
ok "there was none before" says "none"
dd if=/dev/zero of="$disk/filler" bs=4k 2>/dev/null
ok "full disk: the save fails" saved 1 "$disk" "$sample"
ok "and tells path, call and reason" says "not saved: $disk/slurm_budget_state.new: write failed: No space left on device"
ok "the old file was read and stays" says "loaded, saved at 1700000000"
ok "as it was" cmp "$disk/slurm_budget_state" "$sample"
is "nothing is left over" "$(find "$disk" -type f -printf '%f\n' | sort | xargs)" "filler slurm_budget_state"
rm "$disk/filler"
ok "room again: the save succeeds" saved 0 "$disk" "$sample"

ok "read-only disk" mount -o remount,ro "$disk"
ok "the save fails" saved 1 "$disk" "$sample"
ok "and tells path, call and reason" says "not saved: $disk/slurm_budget_state.new: open failed: Read-only file system"
ok "the old file was read" says "loaded, saved at 1700000000"

mount -o remount,rw "$disk"
cp "$scratch/cut" "$disk/slurm_budget_state"
mount -o remount,ro "$disk"
ok "a damaged file on it: the save fails" saved 1 "$disk" "$sample"
ok "what was wrong is said" says "unusable: $disk/slurm_budget_state cannot be used: it has 700 bytes instead of"
ok "and that it could not be kept" says "it is to be kept as $disk/slurm_budget_state.damaged, but $disk/slurm_budget_state: rename failed: Read-only file system"
ok "it is as it was" cmp "$disk/slurm_budget_state" "$scratch/cut"
ok "writable in between: the save succeeds" saved 0 "$disk" "$sample" "mount -o remount,rw $disk"
ok "the damaged one is kept" cmp "$disk/slurm_budget_state.damaged" "$scratch/cut"
ok "beside the new one" cmp "$disk/slurm_budget_state" "$sample"

ok "another slurmctld writes meanwhile: the save is refused" saved 1 "$disk" "$sample" \
	"'$save' '$disk' '$sample' >/dev/null"
ok "and says why" says "another slurmctld writes it"
ok "the other's file stays" cmp "$disk/slurm_budget_state" "$sample"

finish
