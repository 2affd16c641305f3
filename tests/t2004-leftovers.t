#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Preemption where the engine cannot see everything, on a live controller: what it picks and Slurm
# cannot follow is left to Slurm, as is what it cannot model; heterogeneous jobs go as a whole and
# under one contract (C7); a raised contract counts at once (C6).

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

budgets=$(budget_file <<-END
	a root 1 alice
	b root 1 bob
END
)
preempting_up left sched_interval=2,bf_interval=2 --nodes 2 --gpus 8 --cpus 16 --budgets "$budgets" \
	--conf 'PriorityParameters=window=1h' \
	--conf 'PartitionName=few Nodes=n[1-2] MaxCPUsPerNode=4'
rm -f "$budgets"

runs() { job_is left "$1" RUNNING; }
empty() { [[ -z $(on left squeue -h) ]]; }
clear() {
	local job
	for job in $(on left squeue -h -o %A); do on left scancel "$job"; done
	ok "the cluster is empty" wait_for 30 empty
}
stopped_for() { grep 'preempting JobId=' "$(controller_log left)" | grep -w "for JobId=$1" | grep -o 'preempting JobId=[0-9]*' | cut -d= -f2 | sort -n | xargs; }

note "a limit that the engine does not know (MaxCPUsPerNode) makes its pick useless"
older=$(contracted left alice a 4 600 'allocated contract=3' -p few -c 3 -w n1)
ok "one of the partition runs" wait_for 20 runs "$older"
newer=$(contracted left alice a 4 600 unallocated -w n1)
ok "and one of another partition on the same node, which is to give way first" wait_for 20 runs "$newer"
full=$(contracted left alice a 8 600 'allocated contract=600' -w n2)
ok "the other node is full" wait_for 20 runs "$full"
asks=$(contracted left bob b 4 600 'allocated contract=3' -p few -c 4)
ok "the job runs all the same" wait_for 40 runs "$asks"
ok "the pick was dropped, and said so" grep -q "pick for JobId=$asks dropped: Slurm has tried it twice" "$(controller_log left)"
is "once" "$(grep -c "pick for JobId=$asks dropped" "$(controller_log left)")" 1
ok "Slurm has chosen among the rightful victims ($(stopped_for "$asks"))" eval '[[ " $(stopped_for $asks) " == *" $older "* && " $(stopped_for $asks) " != *" $full "* ]]'
is "which the log says" "$(word "$(preempting_line left "$older")" pick)" slurm
clear

note "what cannot be modelled is Slurm's choice from the start"
one=$(contracted left alice a 8 600 'allocated contract=3' -w n1)
# shellcheck disable=SC2034 # in conditions that are waited for
two=$(contracted left alice a 8 600 'allocated contract=600' -w n2)
ok "the cluster is full" wait_for 20 eval 'runs $one && runs $two'
contiguous=$(contracted left bob b 8 600 'allocated contract=3' --contiguous)
ok "the job runs" wait_for 20 runs "$contiguous"
is "in the place of the one past its contract" "$(stopped_for "$contiguous")" "$one"
clear

note "C7: the parts of a heterogeneous job have one contract, and go together"
het=$(as left alice sbatch --parsable --hold -A a --gpus=8 -N 1 --time=60 --output=/dev/null : -A a --gpus=8 -N 1 --time=60 --wrap 'sleep 600' | cut -d';' -f1)
on left scontrol update jobid="$het" admincomment='[budget class=allocated contract=2]' >/dev/null
on left scontrol update jobid="$het+1" admincomment='[budget class=allocated contract=8]' >/dev/null
on left scontrol update jobid="$((het + 1))" admincomment='[budget class=allocated contract=8]' >/dev/null 2>&1
on left scontrol release "$het" >/dev/null
ok "it runs" wait_for 30 eval '[[ $(on left squeue -h -j $het -t R | wc -l) == 2 ]]'
is "C7: both parts with the longer contract" "$(on left scontrol show job "$het" | grep -c 'class=allocated contract=8')" 2
part=$(contracted left bob b 8 600 'allocated contract=3' -w n1)
ok "another job wants one of its nodes, and runs" wait_for 40 runs "$part"
for each in $het $((het + 1)); do
	line=$(preempting_line left "$each")
	ok "C7: part $each was stopped, after 8 s" test "$(word "$line" over)" -ge 0 -a "$(word "$line" contract)" = 8
done
ok "it waits as a whole" wait_for 20 eval '[[ $(on left squeue -h -j $het -t PD | wc -l) == 2 ]]'
clear

is "nobody was stopped inside a contract" "$(grep -c 'preempting .* over=-' "$(controller_log left)")" 0

ok "every run and preemption is as the rules say" audited left --least 3

finish
