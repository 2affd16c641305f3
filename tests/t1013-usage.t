#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What is charged on a live controller (U1, U2, U6, group US of the public cases):
# each row runs a kind of job and compares sshare's GPU-seconds in the window with
# slurmdbd's records, or with what the rule says where they differ.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

budgets=$(budget_file <<-END
	cpu root 10 uma
	node root 10 vic
	multi root 10 wes
	susp root 10 xia
	again root 10 yan
	half root 10 zed
	two root 10 zed
	het root 10 tom
	held root 10 tia
	size root 10 ted
END
)
cluster_up usage --nodes 4 --gpus 8 --cpus 16 --budgets "$budgets" --priority priority/budget \
	--conf 'PriorityParameters=window=1h' --conf 'AccountingStorageEnforce=associations,limits,qos' \
	--conf 'SlurmdTimeout=10'
rm -f "$budgets"

empty() { [[ -z $(on usage squeue -h -t PD,R,CG,S) ]]; }
settled() { awk -v a="$(raw_usage usage "$1")" -v b="$2" -v t="${3:-0}" 'BEGIN { d = a - b; exit !(d <= t && d >= -t) }'; }
recorded() { gpu_seconds usage $(($(date +%s) - 3000)) "$(date +%s)" | awk -v a="$1" '$1 == a { print $2; found = 1 } END { if (!found) print 0 }'; }
elapsed() { on usage sacct -X -D -n -P -j "$1" -o ElapsedRaw | awk '{ n += $1 } END { print n + 0 }'; }
ended() { [[ $(on usage sacct -X -n -P -j "$1" -o State | tail -1) =~ ^(COMPLETED|CANCELLED|FAILED|NODE_FAIL|TIMEOUT) ]]; }

note "US-01: jobs without GPUs cost nothing, jobs with GPUs their GPUs"
cpu=$(as usage uma sbatch --parsable -A cpu -n 8 --output=/dev/null --wrap 'exec sleep 3')
ok "the CPU job ends" wait_for 20 ended "$cpu"
is "U1: a job without GPUs is not charged" "$(raw_usage usage cpu)" 0

note "US-03: GPUs of several nodes, counted once"
multi=$(sleeper usage wes multi 32 4 -N 4)
ok "the job on 4 nodes ends" wait_for 20 ended "$multi"
ok "US-03: 32 GPUs x its run time" wait_for 3 settled multi $((32 * $(elapsed "$multi")))

note "US-14: --exclusive on a GPU node is charged the whole node"
alone=$(as usage vic sbatch --parsable -A node --exclusive -N 1 --output=/dev/null --wrap 'exec sleep 4')
ok "the exclusive job without a GPU option ends" wait_for 20 ended "$alone"
ok "US-14: charged all 8 GPUs" wait_for 3 settled node $((8 * $(elapsed "$alone")))
alone2=$(as usage vic sbatch --parsable -A node --exclusive -N 1 --gres=gpu:1 --output=/dev/null --wrap 'exec sleep 4')
ok "the exclusive job with one GPU ends" wait_for 20 ended "$alone2"
ok "US-14: with --gres=gpu:1 too" wait_for 3 settled node $((8 * ($(elapsed "$alone") + $(elapsed "$alone2"))))

note "US-12: a QOS's UsageFactor has no part in the rate"
on usage sacctmgr -i add qos free set usagefactor=0 >/dev/null
on usage sacctmgr -i modify user zed set qos+=free >/dev/null
free=$(sleeper usage zed half 2 4 --qos=free)
ok "the job under UsageFactor=0 ends" wait_for 20 ended "$free"
ok "U1: charged all the same" wait_for 3 settled half $((2 * $(elapsed "$free")))

note "RK-09: one user in two accounts: usage lands on the job's account"
other=$(sleeper usage zed two 1 3)
ok "the job in the other account ends" wait_for 20 ended "$other"
ok "RK-09: charged to the account of the job" wait_for 3 settled two "$(elapsed "$other")"
ok "RK-09: and not to the other one" settled half $((2 * $(elapsed "$free")))

note "US-04: suspended time is not charged (U6)"
susp=$(sleeper usage xia susp 4 8)
ok "it runs" wait_for 20 job_is usage "$susp" RUNNING
on usage scontrol suspend "$susp"
ok "it is suspended" wait_for 5 job_is usage "$susp" SUSPENDED
held=$(raw_usage usage susp)
export since; since=$(date +%s)
wait_for 10 eval '(($(date +%s) - since >= 4))' # time that must not be charged
within "U6: nothing is added while it is suspended" "$(raw_usage usage susp)" "$held" 4
on usage scontrol resume "$susp"
ok "it ends" wait_for 30 ended "$susp"
suspended=$(on usage sacct -X -n -P -j "$susp" -o Suspended | awk -F: '{ print $1 * 3600 + $2 * 60 + $3 }')
# Elapsed leaves suspended time out already.
ok "US-04: charged its run time without the $suspended s suspended" wait_for 3 settled susp $((4 * $(elapsed "$susp"))) 4

note "US-05: all runs of a requeued job are charged"
again=$(sleeper usage yan again 8 5)
for run in 1 2; do
	ok "run $run is on" wait_for 30 job_is usage "$again" RUNNING
	wait_for 5 eval 'awk -v a="$(raw_usage usage again)" -v b=$((16 * run)) "BEGIN { exit !(a >= b) }"'
	on usage scontrol requeue "$again"
	ok "run $run is requeued" wait_for 10 job_is usage "$again" PENDING
done
ok "the last run ends" wait_for 40 ended "$again"
ok "US-05: sum of the three runs by slurmdbd, $(recorded again) GPU-s" wait_for 3 settled again "$(recorded again)" 16

note "US-20: a heterogeneous job is charged its GPUs once"
het=$(as usage tom sbatch --parsable -A het -n 1 --output=/dev/null : -A het --gpus=16 -N 2 --wrap 'exec sleep 4')
ok "the heterogeneous job ends" wait_for 30 ended "$het"
ok "US-20: 16 GPUs x its run time" wait_for 3 settled het "$(recorded het)"
ok "US-20: it was charged at all" eval '(( $(recorded het) >= 16 * 3 ))'

note "US-10: an account on hold is still metered"
metered=$(sleeper usage tia held 2 6)
ok "it runs" wait_for 20 job_is usage "$metered" RUNNING
on usage sacctmgr -i modify account held set maxjobs=0 >/dev/null
ok "it ends" wait_for 20 ended "$metered"
ok "US-10: charged to its end" wait_for 3 settled held $((2 * $(elapsed "$metered")))

note "US-19: a node that fails in the middle"
fails=$(sleeper usage wes multi 2 60 -w n4 --no-requeue)
ok "it runs" wait_for 20 job_is usage "$fails" RUNNING
on usage scontrol update nodename=n4 state=down reason=test
ok "it ends with its node" wait_for 30 ended "$fails"
ok "US-19: charged no further than to the failure" wait_for 3 settled multi $((32 * $(elapsed "$multi") + 2 * $(elapsed "$fails")))
node_is_back() {
	on usage scontrol update nodename=n4 state=resume 2>/dev/null
	[[ $(on usage sinfo -h -n n4 -o %T) == idle ]]
}
ok "the node is back" wait_for 20 node_is_back

note "U2: a resize changes the rate from that instant"
sized=$(sleeper usage ted size 16 8 -N 2)
ok "it runs on 2 nodes" wait_for 20 job_is usage "$sized" RUNNING
wait_for 5 eval 'awk -v a="$(raw_usage usage size)" "BEGIN { exit !(a >= 32) }"'
on usage scontrol update jobid="$sized" numnodes=1 >/dev/null
ok "it ends" wait_for 30 ended "$sized"
ok "U2: both parts by slurmdbd, $(recorded size) GPU-s" wait_for 3 settled size "$(recorded size)" 16

note "U8: usage belongs to the leaf by name"
of_wes=$(raw_usage usage multi wes)
ok "wes has used something" test "${of_wes:-0}" -gt 0
on usage sacctmgr -i delete user wes account=multi >/dev/null
ok "U8: that of a deleted association stays in its account" wait_for 5 eval '[[ -z $(raw_usage usage multi wes) && $(raw_usage usage multi) == "$of_wes" ]]'
on usage sacctmgr -i add user wes account=multi fairshare=parent >/dev/null
ok "U8: a re-created one gets its own back" wait_for 5 eval '[[ $(raw_usage usage multi wes) == "$of_wes" && $(raw_usage usage multi) == "$of_wes" ]]'
on usage sacctmgr -i modify account multi set parent=node >/dev/null
ok "U8: an account that moves takes its usage along" wait_for 5 eval \
	'(($(raw_usage usage node) == $(raw_usage usage node vic) + of_wes && $(raw_usage usage multi) == of_wes))'
on usage sacctmgr -i modify account multi set parent=root >/dev/null
ok "and back" wait_for 5 eval '(($(raw_usage usage node) == $(raw_usage usage node vic)))'

note "US-06: requeue at the very moment of the end, many times"
rounds=${SLURM_BUDGET_LONG:+1000}
rounds=${rounds:-60}
for ((i = 0; i < rounds; i++)); do
	job=$(sleeper usage yan again 1 0)
	on usage scontrol requeue "$job" 2>/dev/null || true
done
on usage scancel -A again
ok "the cluster is empty" wait_for 60 empty
raw=$(raw_usage usage again)
ok "US-06: usage is neither negative nor wrapped ($raw)" awk -v a="$raw" 'BEGIN { exit !(a >= 0 && a < 1e6) }'
sum=0
for account in cpu node multi susp again half two het held size; do
	sum=$(awk -v a="$sum" -v b="$(raw_usage usage $account)" 'BEGIN { print a + b }')
done
is "the tree's sum is the accounts' sum" "$(raw_usage usage root)" "$sum"
ok "the controller logged no underflow" eval '! grep -i underflow "$(controller_log usage)"'

finish
