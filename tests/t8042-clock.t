#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# slurmctld's clock is put back by 20 minutes with jobs running, and forward again (US-16): usage is never negative, is off
# by the step at most meanwhile, and exact afterwards; the threads go on. Then it is put back by a day, and stays there for
# a restart: the saved state is of a time to come.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

library=$(find /usr/lib -name libfaketimeMT.so.1 -print -quit)
ok "libfaketime is there" test -n "$library" || finish
shift_file=$(mktemp "${TMPDIR:-/tmp}/slurm-budget-test-$$-XXXXXX.shift")
chmod 644 "$shift_file"
put_clock() { echo "$1" >"$shift_file.new" && mv "$shift_file.new" "$shift_file"; }
put_clock +0

budgets=$(budget_file <<-END
	a root 10 ann
	b root 10 bob
END
)
cluster_up clock --nodes 2 --gpus 8 --cpus 16 --budgets "$budgets" --priority priority/budget \
	--conf 'PriorityParameters=window=4h' --conf 'SlurmdTimeout=60000' --conf 'SlurmctldTimeout=60000' \
	--preload "$library" --wrap "env FAKETIME_TIMESTAMP_FILE=$shift_file FAKETIME_CACHE_DURATION=1 FAKETIME_DONT_FAKE_MONOTONIC=1 DONT_FAKE_MONOTONIC=1"
rm -f "$budgets"
began=$(date +%s)

used_less() { awk -v a="$(raw_usage clock "$1")" -v b="$2" 'BEGIN { exit !(a < b) }'; }

short=$(sleeper clock bob b 3 3)
ok "a job of b ends" wait_for 20 ended clock "$short"
ok "and is charged" wait_for 5 settled clock b "$began"
of_b=$(raw_usage clock b)
long=$(sleeper clock ann a 2 600)
ok "a job of a runs" wait_for 20 used clock a 10
start=$(on clock squeue -h -j "$long" -o %S)

note "20 minutes back"
count=$(log_lines clock 'the clock was put back')
put_clock -20m
ok "the plugin tells of it" wait_for 10 logged_since clock 'the clock was put back' "$count"
ok "usage of a is not negative" used clock a 0
ok "usage of b is no more than it was" used_less b $((of_b + 1))
ok "the passes go on: a new job gets a number" eval '(( $(priority clock "$(as clock bob sbatch --parsable -A b --gpus=16 --hold --output=/dev/null --wrap true)") >= 0 ))'

note "and forward again"
put_clock +0
now_right() { [[ $(raw_usage clock b) == "$of_b" ]]; }
ok "usage of b is what it was" wait_for 10 now_right
is "the job of a still runs since the same instant" "$(on clock squeue -h -j "$long" -t R -o %S)" "$start"
ok "its usage goes on" wait_for 10 used clock a 20
within "and is exact" "$(raw_usage clock a)" $((2 * ($(date +%s) - $(date -d "$start" +%s)))) 4

note "back by a day, over a restart"
put_clock -1d
ok "the plugin tells of it" wait_for 10 logged_since clock 'the clock was put back' $((count + 1))
put_clock +0
ok "it is right again" wait_for 20 now_right
cluster clock stop slurmctld
put_clock -1d
count=$(log_lines clock 'which is yet to come')
cluster clock start slurmctld >/dev/null 2>&1
ok "it serves" wait_for 30 serves clock
ok "the saved state is of a time to come, and it says so" wait_for 10 logged_since clock 'which is yet to come' "$count"
put_clock +0
ok "the clock is right again, and so is usage" wait_for 40 now_right
on clock scancel "$long"
ok "the job of a ends" wait_for 20 ended clock "$long"
ok "it is charged what slurmdbd has, $(recorded clock a "$began") GPU-seconds" wait_for 10 settled clock a "$began"
ok "b too" wait_for 5 settled clock b "$began"
rm -f "$shift_file"
# What libfaketime leaves behind of processes that were ended by a signal.
for part in /dev/shm/*faketime*_[0-9]*; do
	[[ -e /proc/${part##*_} ]] || rm -f "$part"
done

finish
