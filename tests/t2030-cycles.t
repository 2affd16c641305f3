#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What preemption by contracts costs the schedulers: cycles of the main scheduler
# and of backfill over one long queue in which nobody can start, under
# priority/budget with preempt/contract and under priority/multifactor with
# preempt/qos, in turn (A/B/A/B, slurmctld being restarted in between), by
# sdiag's figures. The queue, its order and its depth are the same in both. The short
# form has too few cycles to judge them, and only shows that there are some.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

if [[ -n ${SLURM_BUDGET_LONG:-} ]]; then
	queue=10000 samples=16 # of each round; two rounds each
else
	queue=500 samples=4
fi
scratch=$(cluster_dir cycles)/log
depth=$((queue + 100))

budgets=$(echo "a root 1 alice" | budget_file)
cluster_up cycles --nodes 2 --gpus 8 --budgets "$budgets" --conf "MaxJobCount=$((queue * 2 + 10000))" \
	--conf "SchedulerParameters=bf_continue,bf_interval=2,bf_max_job_test=$depth,default_queue_depth=$depth,sched_interval=2,sched_min_interval=0" \
	--conf PriorityParameters=missing_min_runtime=8h
rm -f "$budgets"

pending() { on cycles squeue -h -t PD -o %A | wc -l; }
running() { on cycles squeue -h -t R -o %A | wc -l; }

# change_to PRIORITY PREEMPT SUBMIT: the same queue under other plugins.
change_to() {
	ok "$1, $2: slurmctld stops" cluster cycles stop slurmctld
	cluster cycles conf "PriorityType=priority/$1" "PreemptType=preempt/$2" PreemptMode=REQUEUE "JobSubmitPlugins=$3"
	ok "$1, $2: slurmctld starts" cluster cycles start slurmctld
}

# figures: "main_cycles main_last backfill_cycles backfill_last" of sdiag.
figures() {
	on cycles sdiag 2>/dev/null | awk '
		/^Main schedule/ { part = "main" }
		/^Backfilling stats/ { part = "backfill" }
		/^Latency|^Remote/ { part = "" }
		part && /Last cycle:/ { last[part] = $3 }
		part && /Total cycles:/ { total[part] = $3 }
		END { print total["main"] + 0, last["main"] + 0, total["backfill"] + 0, last["backfill"] + 0 }'
}

# sample NAME: adds each cycle that is over to NAME.main and NAME.backfill, until there are enough of both.
sample() {
	local main last_main backfill last_backfill seen_main seen_backfill mains=0 backfills=0 tries=0
	local deadline=$((SECONDS + 60 + samples * 30))
	read -r seen_main _ seen_backfill _ < <(figures)
	while ((mains < samples || backfills < samples)); do
		((SECONDS < deadline)) || return 1
		read -r main last_main backfill last_backfill < <(figures)
		if ((main > seen_main)); then
			((mains++ > 0)) && echo "$last_main" >>"$scratch/$1.main" # the first is the start's
			seen_main=$main
		fi
		if ((backfill > seen_backfill)); then
			((backfills++ > 0)) && echo "$last_backfill" >>"$scratch/$1.backfill"
			seen_backfill=$backfill
		fi
		# An update makes the main scheduler look again, which it does not where nothing has changed.
		((++tries % 8)) || on cycles scontrol update "jobid=$last_job" comment="$tries"
		sleep 0.2
	done
}

# spread FILE: "count median longest"
spread() {
	sort -n "$1" | awk '{ v[NR] = $1 } END { m = int((NR + 1) / 2)
		print NR + 0, NR ? (NR % 2 ? v[m] : (v[m] + v[m + 1]) / 2) : "none", NR ? v[NR] : "none" }'
}

# compare KIND: at most a tenth more than stock, or within what stock's own cycles take.
compare() {
	local count stock longest n ours most
	read -r count stock longest < <(spread "$scratch/stock.$1")
	read -r n ours most < <(spread "$scratch/ours.$1")
	note "$1: multifactor and preempt/qos: $count cycles, median $stock us, longest $longest us"
	note "$1: budget and preempt/contract: $n cycles, median $ours us, longest $most us"
	ok "$1: at least $((2 * (samples - 1))) cycles of each" test "$count" -ge $((2 * (samples - 1))) -a "$n" -ge $((2 * (samples - 1)))
	[[ ${SLURM_BUDGET_LONG:-} ]] || return 0
	ok "$1: median at most 1.10 of stock's, or within its spread" awk -v a="$ours" -v b="$stock" -v c="$longest" 'BEGIN { exit !(a <= 1.1 * b || a <= c) }'
}

last_job=$((16 + queue))
change_to multifactor qos ''
ok "jobs take all GPUs" sleepers cycles alice a 1 100000 16
ok "they run" wait_for 60 eval '(($(running) == 16))'
on cycles scontrol update partitionname=main state=down
sleepers cycles alice a 1 100000 "$queue"
on cycles scontrol update partitionname=main state=up
ok "$queue jobs wait" test "$(pending)" -eq "$queue"
for _ in 1 2; do
	change_to multifactor qos ''
	ok "stock: enough cycles" sample stock
	change_to budget contract contract
	ok "ours: enough cycles" sample ours
done
ok "nobody has started or gone" test "$(pending) $(running)" = "$queue 16"
note "load of the machine $(cut -d' ' -f1 /proc/loadavg)"
compare main
compare backfill
finish
