#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The order of the queue on a live controller: by unused share (U5, Q2), inside a
# team by stated priority (B1, Q3), and within 2 s of whatever changes it.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

budgets=$(budget_file <<-END
	a root 10 alice arne
	b root 10 bob
	w root 10 wanda:3 willi:1
	z root 10 zoe
END
)
cluster_up order --nodes 2 --gpus 8 --budgets "$budgets" --priority priority/budget \
	--conf 'PriorityParameters=window=1h,quantum=10s' --conf 'PriorityWeightQOS=0'
rm -f "$budgets"

running() { job_is order "$1" RUNNING; }
gone() { [[ -z $(state order "$1") ]] || [[ $(state order "$1") =~ ^(COMPLETED|CANCELLED|FAILED)$ ]]; }
partition() { on order scontrol update partitionname=main state="$1"; }
usage_at_least() { awk -v a="$(raw_usage order "$1")" -v b="$2" 'BEGIN { exit !(a >= b) }'; }
priority_is() { [[ $(priority order "$1") == "$2" ]]; }

note "z uses the whole cluster, so that every other job waits"
blocker=$(sleeper order zoe z 16 600)
ok "the cluster is taken" wait_for 20 running "$blocker"

z=$(sleeper order zoe z 1 5)
a1=$(sleeper order alice a 1 5)
b1=$(sleeper order bob b 1 5)
ok "U5: the unused come before the used, equal claims by eligible time and job id" wait_for 2 order_is order "$a1 $b1 $z"

note "reactions"
on order scontrol hold "$a1"
ok "a held job leaves the order within 2 s" wait_for 2 order_is order "$b1 $z"
on order scontrol release "$a1"
ok "a released job is back within 2 s" wait_for 2 order_is order "$a1 $b1 $z"
on order sacctmgr -i modify account z set fairshare=100000 >/dev/null
ok "B5: a larger share does not put used before unused" wait_for 2 order_is order "$a1 $b1 $z"
on order sacctmgr -i modify account a set fairshare=0 >/dev/null
ok "B4: a team whose weight becomes 0 ranks last within 2 s" wait_for 2 order_is order "$b1 $z $a1"
on order sacctmgr -i modify account a set fairshare=10 >/dev/null
ok "and is back with its weight within 2 s" wait_for 2 order_is order "$a1 $b1 $z"
on order sacctmgr -i modify account z set fairshare=10 >/dev/null

note "B1: users with fairshare=parent share the team's budget; stated priority sorts them (Q3)"
a2=$(sleeper order arne a 1 5)
a3=$(sleeper order alice a 1 5 --nice=100)
ok "Q3: inside a team by nice, then eligible time" wait_for 2 eval 'order_is order "$a1 $a2 $a3"'
on order scontrol update jobid="$a1" nice=500
ok "Q3: a raised nice takes effect within 2 s" wait_for 2 eval 'order_is order "$a2 $a3 $a1"'
ok "Q3: it has no effect on any other leaf: the team's best still alternates with b" \
	eval '[[ $(order_of order "$a1" "$a2" "$a3" "$b1") == "$b1 $a2 $a3 $a1" || $(order_of order "$a1" "$a2" "$a3" "$b1") == "$a2 $b1 $a3 $a1" ]]'
as order alice scancel "$a1" "$a3"
as order arne scancel "$a2"

note "RK-16: a user cannot raise a job, an operator's number counts literally"
ok "a user may not set a priority" eval '! as order bob scontrol update jobid="$b1" priority=4000000000 2>/dev/null'
ok "a user may not lower nice below 0" eval '! as order bob scontrol update jobid="$b1" nice=-1000 2>/dev/null'
on order scontrol update jobid="$z" priority=3000000000
b2=$(sleeper order bob b 1 5) # makes the next pass renumber
ok "Q6: the operator's number survives the passes" wait_for 2 eval '[[ $(priority order "$b2") -ge 1048576 ]] && priority_is "$z" 3000000000'
ok "Q6: our numbers lie in [2^20, 2^31)" eval '(( $(priority order "$b1") >= 1 << 20 && $(priority order "$b1") < 1 << 31 ))'
on order scancel "$z" "$b1" "$b2" "$blocker"
ok "the cluster is empty" wait_for 20 eval '[[ -z $(on order squeue -h) ]]'

note "B1: users with weights of their own are leaves; w has 3 : 1"
w1=$(sleeper order wanda w 16 4)
ok "wanda runs" wait_for 20 running "$w1"
w2=$(sleeper order wanda w 16 600)
w3=$(sleeper order willi w 16 600 --nice=1000)
ok "the unused user of a team comes first, whatever the stated priorities" wait_for 3 order_is order "$w3 $w2"
on order scancel "$w1" "$w2" "$w3"
ok "the cluster is empty" wait_for 20 eval '[[ -z $(on order squeue -h) ]]'

note "U5: usage grows while a job runs, and the order turns when it has passed another's"
used=$(raw_usage order a)
b1=$(sleeper order bob b 8 600)
a1=$(sleeper order alice a 4 3)
ok "both run" wait_for 20 eval 'running "$b1" || gone "$a1"'
ok "a has used more than b had before" wait_for 20 usage_at_least a $((${used%.*} + 8))
blocker=$(sleeper order zoe z 8 600)
ok "the rest of the cluster is taken" wait_for 20 running "$blocker"
a2=$(sleeper order alice a 4 5)
b2=$(sleeper order bob b 4 5)
ok "b, which runs on, ranks behind a in the end" wait_for 20 order_is order "$a2 $b2"

note "RK-08: a requeued job's usage stays, and its rank is the new one"
before=$(raw_usage order b)
on order scontrol requeue "$b1"
ok "U2: usage of the run that was requeued stays" usage_at_least b "${before%.*}"
ok "RK-08: the requeued job ranks below a's within 2 s" wait_for 2 eval '[[ $(priority order "$b1") -lt $(priority order "$a2") || $(state order "$a2") != PENDING ]]'
on order scancel -u bob -u alice -u zoe >/dev/null 2>&1
on order scancel "$a2" "$b1" "$b2" "$blocker" 2>/dev/null
ok "the cluster is empty" wait_for 30 eval '[[ -z $(on order squeue -h) ]]'

note "jobs in several partitions have the same number in each"
on order scontrol create partitionname=extra nodes=ALL >/dev/null
blocker=$(sleeper order zoe z 16 600)
ok "the cluster is taken" wait_for 20 running "$blocker"
b1=$(sleeper order bob b 4 5)
a1=$(sleeper order alice a 4 5 -p main,extra)
a2=$(sleeper order alice a 4 5 --nice=10)
ok "the order is the same as in one partition" wait_for 3 eval 'order_is order "$a1 $b1 $a2" || order_is order "$a1 $a2 $b1" || order_is order "$b1 $a1 $a2"'
factors() { on order sprio -h -j "$1" -o '%Y' | tr -d ' ' | sort -u; }
ok "sprio sums to the number that squeue shows, in both partitions" \
	wait_for 2 eval '[[ $(factors "$a1") == "$(priority order "$a1")" && $(on order sprio -h -j "$a1" -o %Y | wc -l) == 2 ]]'
on order scancel "$a1" "$a2" "$b1"

note "RK-12: a bad parameter is refused, and the last good set stays in force"
a1=$(sleeper order alice a 4 5)
z1=$(sleeper order zoe z 4 5)
ok "the used one comes last" wait_for 2 order_is order "$a1 $z1"
cluster order conf 'PriorityParameters=window=7' >/dev/null
ok "the log says which key, which value and what to write" \
	wait_for 5 grep -q 'priority/budget: PriorityParameters: window=7: .*7-0' "$(controller_log order)"
ok "usage and order are as before" eval 'usage_at_least z 16 && order_is order "$a1 $z1"'
cluster order conf 'PriorityParameters=window=2s,quantum=10s' >/dev/null
on order scancel "$blocker"
ok "a good one takes effect: with a window of 2 s nothing is left of the usage" \
	wait_for 20 eval '[[ -z $(on order squeue -h) && $(raw_usage order root) == 0 ]]'

finish
