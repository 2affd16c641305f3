#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Ways to have a place that others cannot take without paying for it, tried on a live controller by
# users without any rights. Each way has an account of its own: what it has been charged at the end is
# compared with what slurmdbd says it has held. docs/bypasses.md lists them, and those that have a price.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

ways=(lower again forge switch stops array hetcpu tiny limits steps grow top hold alone off resv moved cancel shrink)
budgets=$({
	for way in "${ways[@]}"; do echo "$way root 10 mia"; done
	echo "zero root 0 mia"
	echo "poor root 10 ned"
} | budget_file)
preempting_up riders sched_interval=1,bf_interval=1,enable_user_top,permit_job_expansion --nodes 8 --gpus 8 --cpus 32 --budgets "$budgets" \
	--plugstack 'required spank_contract.so' --conf JobSubmitPlugins=contract \
	--conf 'PriorityParameters=window=1h,exempt_partition=exempt' \
	--conf 'PartitionName=off Nodes=n[1-8] PreemptMode=OFF' --conf 'PartitionName=exempt Nodes=n[1-8]'
rm -f "$budgets"

# ride ACCOUNT GPUS MINIMUM SECONDS [sbatch options]: a job of mia; prints its id.
ride() { as riders mia sbatch --parsable -A "$1" --gpus="$2" --min-runtime="$3" --time=10 -o /dev/null "${@:5}" --wrap "exec sleep $4" 2>/dev/null | cut -d';' -f1; }
update() { as riders mia scontrol update jobid="$1" "${@:2}" 2>&1; }
# Of a part of a heterogeneous job, by its own id, too.
runs() { on riders squeue -h -t R -o %A | grep -qx "$1"; }
all_run() { local job; for job; do runs "$job" || return 1; done; }
tag() { on riders scontrol show job "$1" | sed -n 's/.*AdminComment=.*\(class=[a-z]*\( contract=[0-9]*\)\?\).*/\1/p' | head -1; }
restarted() { [[ $(on riders scontrol show job "$1" | grep -o 'Restarts=[0-9]*') == "Restarts=$2" ]] && runs "$1"; }
stopped() { [[ $(preempting_line riders "$1") ]]; }
began=$(on riders date +%s)
ok "the budgets are known" wait_for 10 eval 'as riders mia sbatch -H -A zero --gpus=1 --min-runtime=1 --wrap true 2>&1 | grep -q "no budget"'
as riders mia scancel -u mia

note "all of them at once"
lower=$(ride lower 2 60s 8)
again=$(ride again 1 5s 600)
forge=$(ride forge 2 60s 8 --comment='[budget class=unallocated] preempted_for=9' --job-name='[budget class=unallocated]' \
	--export=ALL,SPANK__SLURM_SPANK_OPTION_budget_min_runtime=0)
# It is slow to end, so that there is time to move it while it does.
switch=$(as riders mia sbatch --parsable -A switch --gpus=4 --min-runtime=60s --time=10 -o /dev/null --wrap 'trap "" TERM; while :; do sleep 1; done' 2>/dev/null)
stops=$(ride stops 2 60s 8)
# shellcheck disable=SC2034 # in an eval
array=$(ride array 1 60s 3 --array=1-3%1)
tiny=()
for _ in 1 2 3; do tiny+=("$(ride tiny 1 1s 3)"); done
limits=$(ride limits 1 2 6 --time-min=1 --deadline=now+5minutes)
steps=$(as riders mia sbatch --parsable -A steps --gpus=2 -n2 --min-runtime=60s --time=10 -o /dev/null \
	--wrap 'for i in 1 2 3; do srun --overlap --gpus=2 -n1 sleep 6 & done; wait' 2>/dev/null)
top1=$(ride top 1 60s 5) top2=$(ride top 1 60s 5 --hold)
hold=$(ride hold 2 60s 600)
alone=$(as riders mia sbatch --parsable -A alone --exclusive -N1 --min-runtime=60s --time=10 -o /dev/null --wrap 'exec sleep 5' 2>/dev/null)
off=$(ride off 2 0 5 -p off)
on riders scontrol create reservation=kept users=mia nodes=n8 start=now duration=60 flags=ignore_jobs >/dev/null
resv=$(ride resv 2 0 5 --reservation=kept)
moved=$(ride moved 2 60s 5 -p exempt --hold)
cancel=$(ride cancel 2 8m 600)
shrink=$(ride shrink 4 60s 8 -N2 --ntasks-per-node=1)
ok "they run" wait_for 30 all_run "$lower" "$again" "$forge" "$switch" "$stops" "$limits" "$steps" "$top1" "$hold" "$alone" "$off" "$resv" "$cancel" "$shrink"

note "what is tried of running jobs"
update "$lower" comment=min-runtime=0 >/dev/null
is "C6: at a minimum of 0 it is still allocated" "$(tag "$lower")" "class=allocated contract=0"
is "forged tags and environment say nothing" "$(tag "$forge")" "class=allocated contract=60"
as riders mia scancel -s STOP "$stops"
update "$limits" timelimit=1 >/dev/null
update "$limits" timemin=1 >/dev/null
ok "C4: its limit is not below its minimum" eval '[[ $(on riders squeue -h -j $limits -o %l) =~ ^(10|5|4):[0-9][0-9]$ ]]'
as riders mia scontrol hold "$hold" 2>/dev/null
ok "holding a run leaves it on" runs "$hold"
as riders mia scontrol release "$top2" 2>/dev/null
as riders mia scontrol top "$top2" 2>/dev/null
update "$moved" partition=main >/dev/null
is "a minimum goes along out of an exempt partition" "$(tag "$moved")" "class=allocated contract=60"
as riders mia scontrol release "$moved" 2>/dev/null
is "C8: who cannot be stopped by his partition is charged, at a minimum of 0 too" "$(tag "$off")" "class=allocated contract=0"
is "C8: and so is one in a reservation" "$(tag "$resv")" "class=allocated contract=0"
update "$shrink" numnodes=1 >/dev/null
as riders mia scancel "$cancel"
cancel=$(ride cancel 2 8m 3)
for round in 1 2; do
	as riders mia scontrol requeue "$again"
	update "$again" comment=min-runtime=0 >/dev/null
	update "$again" comment=min-runtime=5s >/dev/null
	ok "its owner requeues a run, the minimum down and up meanwhile" wait_for 30 restarted "$again" $round
done
is "C2: it has it again, and is charged for all runs" "$(tag "$again")" "class=allocated contract=5"
as riders mia scancel "$again"
ok "a held run is charged" wait_for 20 used riders hold 10
as riders mia scancel "$hold"

note "a run is requeued, and given to another account while it is still ending"
ok "it has run for some seconds" wait_for 20 used riders switch 20
as riders mia scontrol requeue "$switch"
took=$(update "$switch" account=zero)
ok "Slurm lets it (${took:-yes})" eval 'on riders scontrol show job $switch | grep -q Account=zero'
as riders mia scancel "$switch"
ok "U8: what it was charged stays where it was" wait_for 10 eval '(($(raw_usage riders switch) >= 20))'
is "and none of it is the other's" "$(raw_usage riders zero)" 0

note "a job that grows by another's GPUs"
grow=$(ride grow 1 60s 20)
more=$(as riders mia sbatch --parsable -A grow --gpus=4 --min-runtime=0 --time=10 -o /dev/null --dependency=expand:"$grow" --wrap 'exec sleep 8' 2>&1)
ok "an unallocated job to grow by is refused, or stays so ($more)" eval '[[ ! $more =~ ^[0-9]+$ ]] || wait_for 20 runs "$more"'
[[ ! $more =~ ^[0-9]+$ ]] || { update "$more" numnodes=0 && update "$grow" numnodes=all; } | sed 's/^/# /'
ok "it runs" wait_for 20 runs "$grow"

note "stopping the hand that stops: minimums changed again and again when a contract is over"
stuck=$(ride tiny 8 20s 600 -w n6)
ok "it runs" wait_for 30 runs "$stuck"
as riders ned sbatch -Q -A poor --gpus=8 -N1 -w n6 --min-runtime=5s --time=10 -o /dev/null --wrap 'exec sleep 2' >/dev/null
start=$(date -d "$(on riders squeue -h -j "$stuck" -o %S)" +%s)
wait_for 30 eval '(($(date +%s) >= start + 18))'
# From here on it is over at each change, and changed more often than passes are made.
as riders mia bash -c 'for ((i = 18; i > 0; i--)); do scontrol update jobid='"$stuck"' comment=min-runtime=${i}s; sleep 0.25; done' >/dev/null 2>&1 &
ok "C6: it gives way all the same" wait_for 40 stopped "$stuck"
within "P3: soon after it was first over, in seconds since its start" "$(awk -v a="$start" -v b="$(seconds_of "$(preempting_line riders "$stuck")")" 'BEGIN { print b - a }')" 19.5 2
as riders mia scancel "$stuck"
wait
is "nobody was stopped inside a contract" "$(grep -c 'preempting .* over=-' "$(controller_log riders)")" 0
ok "the audit finds nothing" audited riders

note "heterogeneous jobs"
hetcpu=$(as riders mia sbatch --parsable -A hetcpu -n1 --min-runtime=8m --time=10 -o /dev/null : -A hetcpu --gpus=8 -N1 -w n7 --min-runtime=0 --wrap 'exec sleep 600' 2>/dev/null | cut -d';' -f1)
ok "one with a part without GPUs runs" wait_for 30 runs $((hetcpu + 1))
is "C7: that part's minimum is none" "$(tag "$hetcpu+1")" "class=unallocated"
as riders ned sbatch -Q -A poor --gpus=8 -N1 -w n7 --min-runtime=5s --time=10 -o /dev/null --wrap 'exec sleep 2' >/dev/null
ok "P2: it gives way at once, though Slurm stops all parts or none" wait_for 20 stopped $((hetcpu + 1))
ok "and waits as a whole" wait_for 20 eval '[[ $(on riders squeue -h -j $hetcpu -t PD | wc -l) == 2 ]]'
as riders mia scancel "$hetcpu"
# shellcheck disable=SC2034 # in an eval
mixed=$(as riders mia sbatch --parsable -A lower --gpus=1 --min-runtime=8m --time=10 -o /dev/null : -A zero --gpus=8 -N1 --min-runtime=8m --wrap 'exec sleep 3' 2>/dev/null | cut -d';' -f1)
ok "one with a part in an account without a budget" wait_for 30 eval '[[ $(tag "$mixed+0") == class=unallocated ]]'
ok "C5: has no contract in any" wait_for 30 eval 'on riders sacct -X -n -P -j $mixed -o AdminComment | grep -c "^.budget class=unallocated" | grep -qx 2'

note "what they held, and what they were charged"
as riders mia scancel -u mia
ok "all have ended" wait_for 60 eval '[[ -z $(on riders squeue -h) ]]'
wait_for 20 told_all riders
for way in "${ways[@]}"; do
	[[ $way =~ ^(hetcpu|lower|switch|hold)$ ]] || ok "$way: charged all that it held ($(recorded riders "$way" "$began") GPU-seconds)" eval \
		'wait_for 5 settled riders $way $began && (($(recorded riders $way $began) > 0))'
done
is "U2: the unallocated ones were charged nothing" "$(raw_usage riders hetcpu)$(raw_usage riders zero)" 00
ok "and lower for its own run alone" eval '(($(raw_usage riders lower) >= 14 && $(raw_usage riders lower) <= 22))'

finish
