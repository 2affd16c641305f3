#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Who gives way to whom on a live controller (P2 to P4, C7, C8): unallocated runs at once, equal
# claims never, inside a leaf only to a higher stated priority, and what nobody may stop.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

budgets=$(budget_file <<-END
	a root 1 alice ann
	b root 1 bob
	c root 1 carol
	d root 1 dave
END
)
preempting_up rights sched_interval=2,bf_interval=2 --nodes 2 --gpus 8 --cpus 16 --budgets "$budgets" \
	--conf 'PriorityParameters=window=1h,exempt_partition=exempt' \
	--conf 'PartitionName=off Nodes=n[1-2] PreemptMode=OFF' \
	--conf 'PartitionName=exempt Nodes=n[1-2]'
rm -f "$budgets"

stopped() { [[ $(preempting_line rights "$1") ]]; }
runs() { job_is rights "$1" RUNNING; }
empty() { [[ -z $(on rights squeue -h) ]]; }
clear() {
	local job
	for job in $(on rights squeue -h -o %A); do on rights scancel "$job"; done
	ok "the cluster is empty" wait_for 30 empty
}
# stays JOB SECONDS: still running after that time.
stays() {
	local until=$(($(date +%s) + $2))
	while (($(date +%s) <= until)); do
		runs "$1" || return 1
		sleep 0.2
	done
}

note "P2: an unallocated run gives way at once"
free=$(contracted rights alice a 16 600 unallocated -N 2)
ok "it runs" wait_for 20 runs "$free"
ok "it is tagged" eval 'on rights scontrol show job $free | grep -q "class=unallocated"'
paid=$(contracted rights ann a 16 600 'allocated contract=3' -N 2)
ok "an allocated one of the same team runs" wait_for 10 runs "$paid"
is "P2: by that right" "$(word "$(preempting_line rights "$free")" right)" unallocated
# shellcheck disable=SC2034 # in conditions that are waited for
late=$(contracted rights bob b 16 600 unallocated -N 2)
ok "P1: an unallocated job does not preempt, whatever its claim" stays "$paid" 6
clear

note "P3: an equal claim never preempts"
one=$(sleeper rights carol c 8 600 --hold)
two=$(sleeper rights dave d 8 600 --hold)
for job in $one $two; do on rights scontrol update jobid="$job" admincomment='[budget class=allocated contract=2]' >/dev/null; done
on rights scontrol update partitionname=main state=down >/dev/null
on rights scontrol release "$one,$two" >/dev/null
on rights scontrol update partitionname=main state=up >/dev/null
ok "both teams run" wait_for 20 eval 'runs $one && runs $two'
starts=$(on rights squeue -h -j "$one,$two" -o %S | sort -u | wc -l)
is "from the same second on" "$starts" 1
# shellcheck disable=SC2034 # in conditions that are waited for
more=$(contracted rights carol c 8 600 'allocated contract=2')
ok "P3: the other's run goes on" stays "$two" 6
ok "P4: so does its own" runs "$one"
clear

note "P4: inside a leaf"
low=$(contracted rights alice a 16 600 'allocated contract=4' -N 2 --nice=100)
ok "it runs" wait_for 20 runs "$low"
same=$(contracted rights ann a 16 600 'allocated contract=2' -N 2 --nice=100)
ok "at equal stated priority it goes on after its contract" stays "$low" 6
high=$(contracted rights ann a 16 600 'allocated contract=2' -N 2 --nice=99)
ok "a higher one takes its place" wait_for 10 runs "$high"
is "by that right" "$(word "$(preempting_line rights "$low")" right)" priority
on rights scancel "$same" "$low"
ok "its contract is over" stays "$high" 2
on rights sacctmgr -i add qos urgent set priority=5 >/dev/null
on rights sacctmgr -i modify user alice set qos+=urgent >/dev/null
urgent=$(contracted rights alice a 16 600 'allocated contract=2' -N 2 --qos=urgent --nice=5000)
ok "P4: so does one of a higher QOS" wait_for 10 runs "$urgent"
clear

note "C7: a job that cannot be requeued is ended"
ends=$(contracted rights alice a 16 600 'allocated contract=3' -N 2 --no-requeue)
ok "it runs" wait_for 20 runs "$ends"
after=$(contracted rights bob b 16 600 'allocated contract=3' -N 2)
ok "somebody else does" wait_for 15 runs "$after"
ended_so() { [[ $(on rights sacct -X -n -P -j "$1" -o State,AdminComment) == PREEMPTED*"preempted_for=$2 reason=claim"* ]]; }
ok "C7: it is PREEMPTED, with the reason" wait_for 10 ended_so "$ends" "$after"
clear

note "C8: what nobody may stop"
now=$(date +%s)
on rights scontrol create reservation=kept users=alice nodes=n1 start="$(instant "$now")" duration=60 >/dev/null
off=$(contracted rights alice a 4 600 'allocated contract=1' -p off -w n2)
exempt=$(contracted rights alice a 4 600 'allocated contract=1' -p exempt -w n2)
reserved=$(contracted rights alice a 8 600 'allocated contract=1' --reservation=kept)
ok "they run" wait_for 20 eval 'runs $off && runs $exempt && runs $reserved'
other=$(contracted rights bob b 2 600 'allocated contract=1')
ok "none of them gives way" stays "$off" 6
ok "nor the exempt one" runs "$exempt"
ok "nor the one in a reservation" runs "$reserved"
ok "and the other waits" job_is rights "$other" PENDING
on rights scancel "$off" "$exempt" "$reserved"
ok "until they are gone" wait_for 10 runs "$other"
is "nobody was stopped inside a contract" "$(grep -c 'preempting .* over=-' "$(controller_log rights)")" 0

ok "every run and preemption is as the rules say" audited rights --least 4

finish
