#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Installing on a running cluster, and back (docs/installing.md): jobs running and pending under priority/multifactor,
# switch on, work, switch off, and on again. No job is lost, started anew or ended; the budget knows what ran before;
# multifactor's own usage is what it would have been without us.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

budgets=$(budget_file <<-END
	a root 60 ann
	b root 40 bob
END
)
# No decay: multifactor's usage is then the CPU time of all jobs, exactly.
cluster_up inout --nodes 2 --gpus 8 --cpus 16 --budgets "$budgets" --priority priority/multifactor \
	--conf 'PriorityDecayHalfLife=0' --conf 'PriorityUsageResetPeriod=NONE' --conf 'PriorityCalcPeriod=1' \
	--conf 'PriorityWeightFairshare=1000' --conf 'PriorityWeightJobSize=100' --conf 'Licenses=gate:1'
rm -f "$budgets"

cpu_seconds() { on inout sacct -a -X -D -n -P -A "$1" -S now-1hour -E now -o CPUTimeRAW | awk '{ n += $1 } END { print n + 0 }'; }
starts() { on inout squeue -h -t R -o '%A %S' | sort -n; }
pending() { on inout squeue -h -t PD -o %A | sort -n | paste -sd' '; }
run_count_is() { [[ $(starts | wc -l) == "$1" ]]; }
# Jobs run: the two figures are some moments apart.
nearly_settled() { awk -v u="$(raw_usage inout "$1")" -v w="$(recorded inout "$1" "$began")" 'BEGIN { d = u - w; exit !(u != "" && d <= 4 && d >= -4) }'; }
both_nearly_settled() { nearly_settled a && nearly_settled b; }
cpu_time_is_usage() { [[ $(raw_usage inout "$1") == "$(cpu_seconds "$1")" ]]; }
numbers_in() { on inout squeue -h -t PD -o %Q | awk -v low="$1" -v high="$2" '$1 < low || $1 >= high { bad = 1 } END { exit bad }'; }

# switch TYPE PARAMETERS
switch() {
	cluster inout stop slurmctld
	cluster inout conf "PriorityType=$1" "PriorityParameters=$2"
	cluster inout start slurmctld >/dev/null 2>&1
	wait_for 30 serves inout
}

began=$(date +%s)
note "under priority/multifactor"
old_a=$(sleeper inout ann a 4 3)
old_b=$(sleeper inout bob b 1 3)
ok "a job of each has ended" wait_for 30 ended inout "$old_a" "$old_b"
run_a=$(sleeper inout ann a 2 600 -n 2)
run_b=$(sleeper inout bob b 1 600)
run_cpu=$(as inout bob sbatch --parsable -A b -n 3 -L gate:1 --output=/dev/null --wrap 'exec sleep 600')
ok "jobs run" wait_for 20 run_count_is 3
wait_a=$(as inout ann sbatch --parsable -A a --gpus=1 -L gate:1 --output=/dev/null --wrap 'exec sleep 2')
wait_b=$(as inout bob sbatch --parsable -A b --gpus=1 -L gate:1 --output=/dev/null --wrap 'exec sleep 2')
wait_cpu=$(as inout bob sbatch --parsable -A b -n 1 -L gate:1 --output=/dev/null --wrap 'exec sleep 2')
held=$(as inout ann sbatch --parsable -A a --gpus=1 --hold --output=/dev/null --wrap 'exec sleep 2')
running=$(starts)
waiting="$wait_a $wait_b $wait_cpu $held"
is "others wait" "$(pending)" "$waiting"

note "switch on"
ok "slurmctld comes up with priority/budget" switch priority/budget window=1h
is "the same jobs run, since the same instants" "$(starts)" "$running"
is "the same jobs wait" "$(pending)" "$waiting"
ok "U10: what a used before counts" wait_for 5 nearly_settled a
ok "U10: and what b used" wait_for 5 nearly_settled b
before=$(on inout sacct -X -n -P -j "$old_a" -o ElapsedRaw)
ok "old runs are in it" awk -v u="$(raw_usage inout a)" -v e="$before" 'BEGIN { exit !(u >= 4 * e && e > 0) }'
ok "b, which used less of its share, is before a" wait_for 5 order_is inout "$wait_b $wait_a"
ok "the job on hold stays so" test "$(priority inout "$held")" = 0

note "work"
new_a=$(sleeper inout ann a 1 3)
ok "a new job runs and ends" wait_for 30 ended inout "$new_a"
on inout scancel "$run_b"
ok "an old one ends" wait_for 20 ended inout "$run_b"
ok "both are in a's and b's usage" wait_for 10 both_nearly_settled

note "switch off"
kept=$(starts)
ok "slurmctld comes up with priority/multifactor" switch priority/multifactor ''
is "the same jobs run" "$(starts)" "$kept"
is "the same jobs wait" "$(pending)" "$waiting"
ok "their numbers are multifactor's" wait_for 90 numbers_in 0 1048576
on inout scancel "$run_a" "$run_cpu"
ok "the jobs end" wait_for 30 ended inout "$run_a" "$run_cpu"
ok "those that waited for the licence run and end" wait_for 60 ended inout "$wait_a" "$wait_b" "$wait_cpu"
ok "multifactor's usage of a is all its CPU time" wait_for 90 cpu_time_is_usage a
ok "and of b" wait_for 5 cpu_time_is_usage b

note "on again: what ran meanwhile counts"
ok "slurmctld comes up with priority/budget" switch priority/budget window=1h
ok "a's usage is all its GPU time" wait_for 5 settled inout a "$began"
ok "and b's" wait_for 5 settled inout b "$began"
ok "a has used something" eval '(($(raw_usage inout a) > 0))'
ok "nothing went wrong in the log" eval '! grep -E "error: priority/budget" "$(controller_log inout)"'
on inout scontrol release "$held"
ok "the job that was held runs and ends" wait_for 30 ended inout "$held"

finish
