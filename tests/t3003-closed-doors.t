#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What a submission gets where something is missing or broken, on a live controller: sacctmgr is closed to
# users, parameters are wrong at slurmctld's very first start, a limit counts typed GPUs, services
# submit without a budget, and srun runs inside an allocation.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

new_folder
scratch=$folder
budgets=$(budget_file <<-END
	a root 10 alice
END
)
cluster_up doors --nodes 2 --gpus 8 --gpu-type a100 --cpus 16 --users alice,eve --budgets "$budgets" --priority priority/budget \
	--plugstack 'required spank_contract.so' --conf JobSubmitPlugins=contract --conf PreemptType=preempt/contract \
	--conf PreemptMode=REQUEUE --conf 'PriorityParameters=window=1h,max_min_runtime=soon' \
	--conf 'AccountingStorageTRES=gres/gpu,gres/gpu:a100'
rm -f "$budgets"

told=
job=
# submit USER [sbatch options]: a job of a second; sets job and told
submit() {
	job=$(as doors "$1" sbatch --parsable --time=600 -o /dev/null "${@:2}" --wrap 'exec sleep 1' 2>"$scratch/told") || job=
	told=$(cat "$scratch/told")
}
tag() { on doors scontrol show job "$1" | sed -n 's/.*AdminComment=\[budget class=\([^]]*\)\].*/\1/p'; }
done_well() { [[ $(on doors sacct -X -n -P -j "$1" -o State) == COMPLETED ]]; }

note "wrong parameters at the first start, when there are no earlier ones: the shipped ones are in force"
ok "slurmctld serves" serves doors
ok "it says what is wrong" logged doors 'error: .*PriorityParameters: max_min_runtime=soon.*the last good parameters stay in force'
submit alice --gpus=1
is "C1: a job without a minimum is refused" "$job" ""
ok "... in words" grep -q 'min-runtime is missing' "$scratch/told"
submit alice --gpus=1 --min-runtime=8:00:01
ok "C1: the longest minimum is the shipped one" grep -q 'longer than the 08:00:00' "$scratch/told"
submit alice --gpus=1 --min-runtime=8:00:00
is "C2: jobs with one are taken" "$(tag "$job")" "allocated contract=28800"
ok "... and run" wait_for 20 done_well "$job"
cluster doors conf 'PriorityParameters=window=1h,max_min_runtime=4h' >/dev/null
ok "good ones are in force when they are read" wait_for 10 eval 'submit alice --gpus=1 --min-runtime=5h; [[ $told == *"longer than the 04:00:00"* ]]'
cluster doors conf 'PriorityParameters=window=,max_min_runtime=1h' >/dev/null
ok "of a wrong set nothing is taken" wait_for 10 eval '[[ $(log_lines doors "the last good parameters stay") -ge 2 ]]'
submit alice --gpus=1 --min-runtime=3h
is "the ones before stay in force" "$(tag "$job")" "allocated contract=10800"
cluster doors restart slurmctld >/dev/null 2>&1
ok "slurmctld has been restarted" wait_for 20 serves doors
submit alice --gpus=1 --min-runtime=5h
ok "and still has the good ones, from its state" grep -q 'longer than the 04:00:00' "$scratch/told"
cluster doors conf 'PriorityParameters=window=1h' >/dev/null

note "sacctmgr is closed to users"
cp "$build_dir/sbudget" "$scratch/sbudget"
for way in 'exit 0' 'exit 1'; do
	printf '#!/bin/sh\n: >>%s/asked\n%s\n' "$scratch" "$way" >"$scratch/sacctmgr"
	chmod 755 "$scratch/sacctmgr"
	job=$(as doors alice env PATH="$scratch:$PATH" sbatch --parsable --time=600 -o /dev/null --hold --gpus=1 --min-runtime=1h --wrap true 2>/dev/null)
	is "$way: sbatch" "$(tag "$job")" "allocated contract=3600"
	as doors alice env PATH="$scratch:$PATH" sbudget_path="$scratch/sbudget" sh -c '"$sbudget_path" contract '"$job"' --min-runtime=2h' >"$scratch/told" 2>&1
	ok "$way: sbudget contract" grep -q 'minimum 02:00:00' "$scratch/told"
	as doors alice env PATH="$scratch:$PATH" "$scratch/sbudget" doctor >"$scratch/told" 2>&1
	ok "$way: sbudget doctor" grep -qE '^[0-9]+ wrong, [0-9]+ to consider' "$scratch/told"
done
ok "none of them asks it" test ! -e "$scratch/asked"
as doors alice scancel -u alice

note "an account's limit on GPUs, and requests for GPUs with and without a type in one list"
on doors sacctmgr -i modify account a set grptres=gres/gpu=8 >/dev/null
capped() { submit alice "$1" "${@:2}" --min-runtime=1m; }
# stays_out: the job was refused, or waits for the limit and does not start
stays_out() {
	[[ $job ]] || return 0
	wait_for 10 eval '[[ $(on doors squeue -h -j $job -o %r) == *Grp* || $(on doors squeue -h -j $job -o %r) == *GRES* ]]' && job_is doors "$job" PENDING
}
capped --gres=gpu:a100:8 -N1
ok "8 are within it" wait_for 20 done_well "$job"
capped --gres=gpu:a100:5 -N2
ok "2 x 5 typed ones are not" stays_out
as doors alice scancel -u alice
capped --gres=gpu:1,gpu:a100:8 -N1
ok "1 of any type and 8 of one are not (${told:-waits})" stays_out
as doors alice scancel -u alice
on doors sacctmgr -i modify account a set grptres=gres/gpu=-1 >/dev/null

note "services, and who is not in the tree"
ok "root's jobs run without a minimum and a budget" wait_for 20 eval 'job=$(on doors sbatch --parsable -o /dev/null --gpus=1 --wrap true) && wait_for 10 done_well "$job"'
is "C8: untagged" "$(on doors scontrol show job "$job" | grep -c AdminComment)" 0
submit eve --gpus=1 --min-runtime=1h
is "somebody without an association is refused by Slurm" "$job" ""
ok "... in its words (${told##*: })" grep -qi 'account' "$scratch/told"

note "srun"
is "inside an allocation it needs no minimum" "$(as doors alice salloc -Q -t 600 --gpus=1 --min-runtime=1m srun -Q echo step 2>/dev/null)" step
if [[ $(command -v scrontab) ]]; then
	ok "scrontab's jobs are asked too" eval '! echo "#SCRON --gpus=1
* * * * * true" | as doors alice scrontab - 2>"$scratch/told"'
else
	note "there is no scrontab on this machine; the plugin for it is tried in t4001"
fi

note "the records of an array whose minimum came as an option are forgotten one by one"
cluster doors conf MinJobAge=2 >/dev/null
pid=$(awk '{ print $1; exit }' "$(cluster_dir doors)/run/slurmctld.pid")
# shellcheck disable=SC2034 # in conditions that are waited for
array=$(as doors alice sbatch --parsable --array=1-4 --gpus=1 -t 5 --min-runtime=1s --output=/dev/null --wrap "exec sleep 1")
ok "it has ended" wait_for 40 eval '[[ $(on doors sacct -X -n -P -j "$array" -o State | grep -c COMPLETED) == 4 ]]'
ok "and is forgotten" wait_for 90 eval '! on doors scontrol show job "$array" >/dev/null 2>&1'
ok "slurmctld still serves" wait_for 10 serves doors
is "and is the one it was" "$(awk '{ print $1; exit }' "$(cluster_dir doors)/run/slurmctld.pid") $(kill -0 "$pid" && echo alive)" "$pid alive"

finish
