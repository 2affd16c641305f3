#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Many jobs sent in the same second (RK-10, Q2): 16 free GPUs, two teams with
# equal claims and 100 one-GPU jobs each, all pending before the pass of the
# scheduler. Once as single jobs, once as job arrays.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

budgets=$(budget_file <<-END
	p root 10 paul
	q root 10 quinn
	r root 10 ron
	s root 10 sara
END
)
cluster_up bursts --nodes 2 --gpus 8 --budgets "$budgets" --priority priority/budget
rm -f "$budgets"

partition() { on bursts scontrol update partitionname=main state="$1"; }
pending() { on bursts squeue -h -r -t PD -o %A | wc -l; }
first16_of() { on bursts squeue -h -r -t PD -o '%Q %a' | sort -rn | head -16 | grep -c " $1\$"; }

# starts ACCOUNT: its tasks that started in the first pass after the partition opened.
starts() {
	on bursts env SLURM_TIME_FORMAT=%s squeue -h -r -t R,CG,CD -A "$1" -o %S |
		awk -v to=$((opened + 3)) '$1 ~ /^[0-9]+$/ && $1 <= to' | wc -l
}
all_taken() { (($(starts "$1") + $(starts "$2") >= 16)); }

# open_for LABEL ONE OTHER: opens the partition and counts who got the 16 places.
open_for() {
	local one other
	opened=$(date +%s)
	partition up
	ok "$1: 16 free GPUs are taken" wait_for 10 all_taken "$2" "$3"
	one=$(starts "$2")
	other=$(starts "$3")
	is "$1: no more than fit have started" $((one + other)) 16
	within "RK-10, $1: starts of $2 (of $3: $other)" "$one" 8 1
	on bursts scancel -A "$2"
	on bursts scancel -A "$3"
	ok "$1: the cluster is empty" wait_for 30 eval '[[ -z $(on bursts squeue -h -t PD,R,CG) ]]'
}

partition down
sleepers bursts paul p 1 60 100
sleepers bursts quinn q 1 60 100
ok "singles: 200 jobs are pending" wait_for 5 eval '(($(pending) == 200))'
ok "singles: the first 16 of the order are 8 of each" wait_for 2 eval '(($(first16_of p) == 8))'
open_for singles p q

partition down
sleeper bursts ron r 1 60 --array=1-100 >/dev/null
sleeper bursts sara s 1 60 --array=1-100 >/dev/null
ok "arrays: 200 tasks are pending" wait_for 5 eval '(($(pending) == 200))'
ok "arrays: the first 16 tasks of the order are 8 of each" wait_for 2 eval '(($(first16_of r) == 8))'
open_for arrays r s

note "arrays stay whole for their owner: throttle, cancel, dependency"
partition down
throttled=$(sleeper bursts paul p 1 2 --array=1-8%2)
after=$(sleeper bursts paul p 1 1 --dependency=afterok:"$throttled")
other=$(sleeper bursts ron r 1 2 --array=1-8)
ok "the tasks are pending" wait_for 5 eval '(($(pending) == 17))'
partition up
most=0
all_done() {
	local now
	now=$(on bursts squeue -h -r -t R -j "$throttled" -o %A 2>/dev/null | wc -l)
	((now > most)) && most=$now
	[[ $(on bursts sacct -X -n -P -j "$throttled","$other","$after" -o State | sort | uniq -c | awk '{ print $1 $2 }') == 17COMPLETED ]]
}
ok "all tasks and the job that depends on them complete" wait_for 60 all_done
ok "no more than %2 tasks of the throttled array ran at once ($most)" test "$most" -le 2 -a "$most" -ge 1

finish
