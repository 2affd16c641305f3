#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A job that fits nowhere but on a node that is down stands at the head of its account, and one that
# can start behind it, on a live controller (P1, Q2): the other takes its places once, and in the minute after
# that nobody is stopped to and fro.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

budgets=$(budget_file <<-END
	owner root 1 alice
	lent root 1 bob
END
)
cluster_up loop --nodes 1 --gpus 3 --cpus 8 --budgets "$budgets" --priority priority/budget \
	--plugstack 'required spank_contract.so' --conf JobSubmitPlugins=contract --conf PreemptType=preempt/contract \
	--conf 'NodeName=c1 NodeHostname=c1 NodeAddr=127.0.0.1 CPUs=8 RealMemory=32000 Gres=gpu:4 State=DOWN' \
	--conf 'PartitionName=main Nodes=n1,c1 Default=YES DefaultTime=60' --conf PreemptMode=REQUEUE --conf 'PriorityParameters=window=1h' \
	--conf 'SchedulerParameters=sched_interval=1,bf_interval=1,bf_continue,preempt_strict_order,preempt_reorder_count=4'
rm -f "$budgets"

job() { as loop "$1" sbatch --parsable --gpus="$2" --min-runtime="$3" --time=10 -o /dev/null "${@:4}" --wrap 'exec sleep 600' 2>/dev/null; }
runs() { job_is loop "$1" RUNNING; }
stops() { grep -c 'preempting JobId=' "$(controller_log loop)"; }
starts() { on loop sacct -a -X -D -n -P -S now-1hour -o Start | grep -c '^2'; }

lent=()
for _ in 1 2 3; do lent+=("$(job bob 1 2s)"); done
ok "another account has all GPUs" wait_for 20 eval 'runs ${lent[0]} && runs ${lent[1]} && runs ${lent[2]}'
never=$(job alice 4 9m -N1)
ok "the head asks for what no node that is up has" wait_for 10 job_is loop "$never" PENDING
can=$(job alice 3 9m -N1 --nice=1)
ok "P1: the one behind it runs" wait_for 15 runs "$can"
is "P5: in the place of three" "$(stops)" 3
ok "they wait again" wait_for 10 eval '[[ $(on loop squeue -h -A lent -t PD -o %A | wc -l) == 3 ]]'
before=$(starts)
export until=$(($(date +%s) + 50))
wait_for 60 eval '(($(date +%s) >= until))' # time for a loop
is "in the minute after that nobody is stopped" "$(stops)" 3
is "nor started" "$(starts)" "$before"
ok "it is still on" runs "$can"
note "why the head waits: $(on loop squeue -h -j "$never" -o %r)"
on loop scancel "$can"
ok "when it ends they come back" wait_for 20 eval '[[ $(on loop squeue -h -A lent -t R -o %A | wc -l) == 3 ]]'
is "each once" "$(on loop scontrol show job | grep -c Restarts=1)" 3
ok "the audit finds nothing" audited loop

finish
