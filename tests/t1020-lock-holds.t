#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# How long slurmctld's job write lock is held with a long queue: by our thread
# and by our part of multifactor's tick, by their own counters, and by a tick of
# stock priority/multifactor, by tests/lock_probe.c. The same queue under both
# in turn (A/B/A/B): slurmctld is restarted with the other PriorityType. Short
# jobs of six teams come and go, so that ranks change. In both a tick comes every
# second, for samples; on a real cluster once in PriorityCalcPeriod.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

period=1 # seconds between two ticks
if [[ -n ${SLURM_BUDGET_LONG:-} ]]; then
	queue=10000 spare=1200 samples=16 # of each round
else
	queue=1000 spare=300 samples=5
fi
probe=$(cd "$build_dir" && pwd)/tests/.libs/lock_probe.so
scratch=$(cluster_dir holds)/log # the figures are kept and removed with the logs
export LOCK_PROBE_FILE=$scratch/ticks LOCK_PROBE_PERIOD=$period

teams=(alice:40 bob:25 carol:15 dave:10 erin:6 frank:4)
budgets=$(for team in "${teams[@]}"; do echo "${team%:*}s root ${team#*:} ${team%:*}"; done | budget_file)
cluster_up holds --nodes 2 --gpus 8 --budgets "$budgets" --preload "$probe" --conf "MaxJobCount=$((queue * 2 + 10000))"
rm -f "$budgets"

pending() { on holds squeue -h -t PD -o %A | wc -l; }
running() { on holds squeue -h -t R -o %A | wc -l; }
partition() { on holds scontrol update partitionname=main state="$1"; }

# fill: the queue, from every team at the same time, of jobs that last 4 to 9 s.
fill() {
	local i=0 user clients=()
	for user in "${teams[@]%:*}"; do
		sleepers holds "$user" "${user}s" 1 $((4 + i++)) $(((queue + spare) / ${#teams[@]} + 1)) &
		clients+=($!)
	done
	wait "${clients[@]}"
}

# change_to PRIORITY LOG_LEVEL: the same queue under another plugin.
change_to() {
	ok "$1: slurmctld stops" cluster holds stop slurmctld
	cluster holds conf "PriorityType=priority/$1" "SlurmctldDebug=$2"
	ok "$1: slurmctld starts" cluster holds start slurmctld
}

lines_from() { tail -n +$(($1 + 1)) "$2" 2>/dev/null; }
count_of() { wc -l <"$1" 2>/dev/null || echo 0; }

# Ticks since the given line that went through the whole queue: "usage weights", microseconds.
ticks_since() { lines_from "$1" "$LOCK_PROBE_FILE" | awk -v n="$queue" '$5 >= n { print $3, $6 }'; }

# Intervals of our counters since the given line of the log:
# "interval holds total longest ticks total longest passes total longest", microseconds.
intervals_since() {
	lines_from "$1" "$(controller_log holds)" | sed -nE 's,.*priority/budget: locks: in ,,p' | tr -c '0-9\n' ' ' | awk '{ $1 = $1; print }'
}
held_intervals() { intervals_since "$1" | awk '$2 > 0'; }
enough() { (($("$1" "$2" | wc -l) >= samples)); }
all_numbered() { on holds squeue -h -t PD -o %Q 2>/dev/null | awk '$1 < 1048576 { n++ } END { exit n > 0 || NR == 0 }'; }

# stock_round and our_round: append samples to files of scratch.
stock_round() {
	local from
	from=$(count_of "$LOCK_PROBE_FILE")
	change_to multifactor info
	ok "multifactor: $samples ticks" wait_for $((samples * (period + 1) + 60)) enough ticks_since "$from"
	ticks_since "$from" >>"$scratch/stock"
}

our_round() {
	local from
	from=$(count_of "$(controller_log holds)")
	change_to budget debug
	ok "budget: the whole queue has numbers" wait_for 60 all_numbered
	intervals_since "$from" >>"$scratch/starts"
	from=$(count_of "$(controller_log holds)")
	ok "budget: $samples intervals with a hold" wait_for $((samples * 3 + 60)) enough held_intervals "$from"
	intervals_since "$from" >>"$scratch/ours"
}

# spread: of the numbers read: "count median longest".
spread() {
	sort -n | awk '{ v[NR] = $1 } END { m = int((NR + 1) / 2)
		print NR + 0, NR ? (NR % 2 ? v[m] : (v[m] + v[m + 1]) / 2) : "none", NR ? v[NR] : "none" }'
}

# tell WHAT COUNT MEDIAN LONGEST
tell() { note "$1: $2 samples, median $3 us, longest $4 us"; }

# no_more A B: numbers, and A is not larger.
no_more() { [[ $1 =~ ^[0-9] && $2 =~ ^[0-9] ]] && awk -v a="$1" -v b="$2" 'BEGIN { exit !(a <= b) }'; }

partition down
began=$SECONDS
fill
waiting=$(pending)
ok "$queue jobs wait after $((SECONDS - began)) s" test "$waiting" -ge "$queue"
partition up
ok "all GPUs are busy" wait_for 30 eval '(($(running) == 16))'
for _ in 1 2; do
	stock_round
	our_round
done
left=$(pending)
ok "$queue jobs still wait" test "$left" -ge "$queue"
ok "jobs have started all the time: $((waiting - left))" test $((waiting - left)) -ge $((samples * 4))

read -r _ usage longest_usage < <(awk '{ print $1 }' "$scratch/stock" | spread)
read -r _ weights longest_weights < <(awk '{ print $2 }' "$scratch/stock" | spread)
read -r ticks stock longest_stock < <(awk '{ print ($1 > $2 ? $1 : $2) }' "$scratch/stock" | spread)
read -r intervals thread longest_thread < <(awk '$2 > 0 { print $4 }' "$scratch/ours" | spread)
read -r _ part longest_part < <(awk '$2 > 0 { print 100 * $3 / $1 }' "$scratch/ours" | spread)
read -r hooks hook longest_hook < <(awk '$5 > 0 { print $7 }' "$scratch/ours" | spread)
read -r _ _ longest_start < <(awk '{ print $4 }' "$scratch/starts" | spread)
# A tick a minute is the most that Slurm can be set to.
read -r length all_thread per_tick all < <(awk -v p="$period" '{ n++; t += $3; h += $6; d += $1 }
	END { if (d == 0) exit; k = h * p / d; print d / n / 1e6, 100 * t / d, 1e6 * k, 100 * (t / d + k / 60) }' "$scratch/ours")

note "holds of the job write lock with $queue pending jobs; load of the machine $(cut -d' ' -f1 /proc/loadavg)"
note "stock tick, usage: median $usage us, longest $longest_usage us; weights: median $weights us, longest $longest_weights us"
tell "stock tick, its longer hold" "$ticks" "$stock" "$longest_stock"
tell "our thread, longest of an interval with a hold" "$intervals" "$thread" "$longest_thread"
tell "our part of a tick, longest of an interval with one" "$hooks" "$hook" "$longest_hook"
[[ $longest_start == none ]] || note "our thread's longest hold in its first seconds: $longest_start us"
note "our thread holds it $all_thread % of the time (of an interval with a hold: median $part %, most $longest_part %)"
note "with a tick a minute, whose holds add up to $per_tick us in the mean, it is $all % of the time"
note "an interval lasts $length s in the mean"

ok "at least $((2 * samples)) samples of each" test "$ticks" -ge $((2 * samples)) -a "$intervals" -ge $((2 * samples))
ok "our thread's longest hold is no longer than multifactor's" no_more "$thread" "$stock"
ok "the longest hold of our ticks is no longer than multifactor's" no_more "$hook" "$stock"
ok "median of the time our thread holds it: at most 1 %" no_more "$part" 1
ok "thread and ticks together hold it at most 1 % of the time" no_more "$all" 1
finish
