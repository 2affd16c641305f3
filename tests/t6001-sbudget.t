#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# sbudget on live controllers: `contract` shows and changes minimum runtimes within C6 and
# says why not; `doctor` finds each line of slurm.conf that is missing or wrong for
# budgets and contracts, and nothing on a controller where all is right.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

new_folder
scratch=$folder
cp "$build_dir/sbudget" "$scratch/sbudget"
sbudget=$scratch/sbudget

budgets=$(budget_file <<-END
	a root 10 alice
	b root 10 bob
	zero root 0 alice
END
)
cluster_up right --nodes 2 --gpus 4 --budgets "$budgets" --priority priority/budget \
	--plugstack 'required spank_contract.so' --conf JobSubmitPlugins=contract \
	--conf PreemptType=preempt/contract --conf PreemptMode=REQUEUE --conf KillWait=5 \
	--conf SlurmctldParameters=preempt_send_user_signal --conf 'PriorityParameters=window=1h,max_min_runtime=4h' \
	--conf 'SchedulerParameters=sched_interval=2,bf_interval=2,bf_continue,bf_max_job_test=1000,default_queue_depth=1000,batch_sched_delay=0,preempt_strict_order,preempt_reorder_count=4'
cluster_up stock --nodes 1 --gpus 0 --budgets "$budgets" --conf KillWait=1 \
	--conf PriorityParameters=quantum=1d --conf SchedulerParameters=bf_interval=60 --conf SelectType=select/linear \
	--conf SelectTypeParameters= --conf AccountingStorageEnforce=associations
rm -f "$budgets"

# run NAME USER SUBCOMMAND...: sets code; its words are in $scratch/out and $scratch/err
run() {
	if [[ $2 == root ]]; then on "$1" "$sbudget" "${@:3}" >"$scratch/out" 2>"$scratch/err"; else
		as "$1" "$2" "$sbudget" "${@:3}" >"$scratch/out" 2>"$scratch/err"; fi
	code=$?
}
# answers CODE WORDS: that exit code, and words of what it printed
answers() {
	[[ $code == "$1" ]] && cat "$scratch/out" "$scratch/err" | grep -qE -- "$2" && return
	sed 's/^/#   /' "$scratch/out" "$scratch/err"
	echo "#   exit code $code"
	return 1
}
# contract CODE WORDS USER ARGUMENTS...
contract() { run right "$3" contract "${@:4}"; answers "$1" "$2"; }
submit() { as right "$1" sbatch --parsable --output=/dev/null --gpus=1 --time=180 "${@:2}" --wrap 'exec sleep 300' 2>/dev/null; }
# json FILTER: a Python expression over the printed document d
json() { python3 -c "import json,sys; d=json.load(open('$scratch/out')); print($1)"; }

note "the command"
run right alice --version
ok "its version" answers 0 '^sbudget [0-9]'
run right alice
ok "wrong usage without a subcommand" answers 2 'subcommand is required'
ok "wrong usage without a job" contract 2 'JOB is required' alice
ok "what is no job" contract 2 '5x is no job: write 5, 5_3' alice 5x
ok "what is no time" contract 2 'min-runtime=soon: not a time' alice 5 --min-runtime=soon
ok "no such job" contract 4 'there is no job 4000' alice 4000
as right alice env SLURM_CONF="$scratch/nowhere.conf" true
sed "s/^SlurmctldPort=.*/SlurmctldPort=1/" "$(cluster_dir right)/etc/slurm.conf" >"$scratch/nowhere.conf"
on right env SLURM_CONF="$scratch/nowhere.conf" "$sbudget" doctor >"$scratch/out" 2>"$scratch/err"
code=$?
ok "no controller" answers 3 'slurmctld cannot be asked'

note "contracts of pending jobs"
job=$(submit alice --hold --min-runtime=1:00:00)
ok "a pending job" contract 0 "^job $job: pending, protected from its start on \(minimum 01:00:00\)" alice "$job"
ok "C6: the owner may lengthen it" contract 0 'minimum 02:00:00' alice "$job" --min-runtime=2h
ok "C6: and shorten it" contract 0 'minimum 00:30:00' alice "$job" --min-runtime=30
ok "C3: to nothing" contract 0 'unallocated: not charged' alice "$job" --min-runtime=0
ok "C1: the site's maximum" contract 1 "^sbudget contract: job $job: .*longer than the 04:00:00" alice "$job" --min-runtime=5h
ok "C4: the time limit" contract 1 'longer than the time limit of 03:00:00' alice "$job" --min-runtime=3:30:00
ok "another's job" contract 1 'bob|another|denied' bob "$job" --min-runtime=1h
ok "which is left alone" contract 0 'unallocated' alice "$job"
on right scontrol update jobid="$job" comment='words of mine' >/dev/null
run right alice contract "$job" --min-runtime=1h
ok "the comment stays" eval '[[ $(on right scontrol show job "$job") == *" Comment=words of mine"* ]]'
ok "an operator may" contract 0 'minimum 02:00:00' root "$job" --min-runtime=2h

poor=$(submit alice --hold -A zero --min-runtime=0)
ok "C5: a job without a budget stays unallocated, and it says so" contract 1 "job $poor stays unallocated: its account has no budget" alice "$poor" --min-runtime=1h

note "of arrays and heterogeneous jobs"
array=$(submit alice --hold --array=1-4 --min-runtime=1h)
ok "an array" contract 0 "^job ${array}_\[1-4\]: pending" alice "$array"
ok "tasks of it" contract 0 "minimum 02:00:00" alice "${array}_2" --min-runtime=2h
ok "and no others" contract 0 "^job ${array}_.*1.*minimum 01:00:00" alice "${array}_1"
ok "several" contract 0 "^job ${array}_.*minimum 03:00:00" alice "${array}_[1,3]" --min-runtime=3h
run right alice contract "$array" --json
is "the array in JSON" "$(json '" ".join(sorted(str(j["minimum_seconds"]) for j in d["jobs"]))')" "10800 10800 3600 7200"
het=$(as right alice sbatch --parsable --hold -o /dev/null --time=180 --min-runtime=1h --gpus=1 : --gpus=2 --wrap 'sleep 9' 2>/dev/null)
ok "a part" contract 0 "^job $het\+1: pending.*01:00:00" alice "$het+1"
on right scancel -u alice

note "of running jobs"
run_id=$(submit alice --min-runtime=1:00:00)
ok "it runs" wait_for 30 job_is right "$run_id" RUNNING
ok "until when it is protected" contract 0 "^job $run_id: protected until .*[0-9]:[0-9]{2} \(minimum 01:00:00\)" bob "$run_id"
run right alice contract "$run_id" --json
start=$(date -d "$(on right scontrol -o show job "$run_id" | grep -o ' StartTime=[^ ]*' | cut -d= -f2)" +%s)
is "in JSON" "$(json 'd["jobs"][0]["class"], d["jobs"][0]["state"], d["jobs"][0]["protected_until"], d["jobs"][0]["preempted"]')" \
	"allocated RUNNING $((start + 3600)) None"
until_of() { run right bob contract "$run_id" --json && json 'd["jobs"][0]["protected_until"]'; }
# shellcheck disable=SC2034 # in conditions that are waited for
until=$(until_of)
on right scontrol suspend "$run_id"
ok "U6: suspended, what is left of it" contract 0 "^job $run_id: suspended, protected for (00:59:[0-9]{2}|01:00:00) more once it is resumed" bob "$run_id"
# shellcheck disable=SC2034
suspended=$(on right date +%s)
ok "for two seconds" wait_for 10 eval '(($(on right date +%s) >= suspended + 2))'
on right scontrol resume "$run_id"
ok "U6: resumed, it is protected for that longer" wait_for 5 eval '(($(until_of) >= until + 2))'
ok "C6: its owner may not lengthen it, and is told why" contract 1 'ask an operator for more' alice "$run_id" --min-runtime=2h
ok "C6: its owner may shorten it" contract 0 'minimum 00:30:00' alice "$run_id" --min-runtime=30m
ok "C6: an operator may lengthen it" contract 0 'minimum 01:30:00' root "$run_id" --min-runtime=1:30:00
ok "C6: to 0 it is not protected any more, and stays allocated" contract 0 'not protected any more since' alice "$run_id" --min-runtime=0
free=$(submit alice --min-runtime=0)
ok "an unallocated job runs" wait_for 30 job_is right "$free" RUNNING
ok "C6: a run without a minimum gets none" contract 1 'started without a minimum' root "$free" --min-runtime=10
cpu=$(as right alice sbatch --parsable --output=/dev/null --wrap 'exec sleep 300' 2>/dev/null)
ok "a job without GPUs has none" contract 0 'no minimum runtime is recorded' alice "$cpu"
ok "and gets none" contract 1 'no minimum runtime is recorded' alice "$cpu" --min-runtime=10

on right scancel -u alice

note "what jobs are told, with all plugins together"
told() { as right alice timeout 60 "$@" 2>/dev/null | sed -n 's/^SLURM_BUDGET_MIN_RUNTIME=//p'; }
is "P7: the tasks of an srun with an allocation of its own" "$(told srun --gpus=1 --time=180 --min-runtime=1h env)" 3600
is "P7: of an unallocated one" "$(told srun --gpus=1 --time=180 --min-runtime=0 env)" 0
as right alice sbatch -o told --gpus=1 --time=180 --min-runtime=20m --wrap 'env; echo end' >/dev/null 2>&1
ok "P7: a batch script" wait_for 30 grep -qsx SLURM_BUDGET_MIN_RUNTIME=1200 "$(cluster_dir right)/home/alice/told"

note "doctor, where all is right"
run right alice doctor
ok "nothing is wrong" answers 0 '^0 wrong, 0 to consider'
ok "in 80 columns" eval '[[ $(awk "length > 80" "$scratch/out" | grep -cv PluginDir) == 0 ]]'
run right root doctor --json
is "in JSON" "$(json 'd["slurm_version"], d["wrong"], {f["severity"] for f in d["findings"]}')" "$(slurmctld -V | cut -d' ' -f2) 0 {'good'}"

# found SEVERITY SUBJECT WORDS: among the findings, and the exit code is right
found() {
	local findings
	run "$where" alice doctor --json
	findings=$(json '"\n".join("|".join([f["severity"], f["subject"], f["what"], f["write"] or ""]) for f in d["findings"])')
	[[ $code == 1 || $1 == advice ]] && grep -qE -- "^$1\|$2\|.*$3" <<<"$findings"
}
wrong() { found wrong "$@"; }
advised() { found advice "$@"; }

note "doctor, each line by itself"
where=right
conf=$(cluster_dir right)/etc/slurm.conf
cp "$conf" "$scratch/right.conf"
# with LINE DESCRIPTION COMMAND...: the line is in force meanwhile
with() {
	cluster right conf "$1" >/dev/null 2>&1
	ok "$2" wait_for 5 "${@:3}"
	cp "$scratch/right.conf" "$conf"
}
with PriorityParameters=window=7 "a parameter that is none" wrong PriorityParameters 'window=7: a time with a unit'
with PriorityParameters=unallocated_qos=nosuch "a QOS that is none" wrong PriorityParameters 'no QOS nosuch\|sacctmgr add qos nosuch'
with PriorityParameters=exempt_partition=nosuch "a partition that is none" wrong PriorityParameters 'no partition nosuch'
with PriorityParameters=gpu_weight=h100:2/default:1 "a type that is not counted" wrong AccountingStorageTRES 'AccountingStorageTRES=gres/gpu,gres/gpu:h100$'
with PriorityFlags=NO_FAIR_TREE "NO_FAIR_TREE" wrong PriorityFlags NO_FAIR_TREE
with PreemptMode=CANCEL "a mode that ends jobs" wrong PreemptMode 'CANCEL.*\|PreemptMode=REQUEUE'
with PreemptMode=SUSPEND,GANG "one that suspends them" wrong PreemptMode 'GANG,SUSPEND'
with PreemptExemptTime=00:01:00 "PreemptExemptTime" wrong PreemptExemptTime '60 s'
with JobRequeue=0 "JobRequeue" wrong JobRequeue 'JobRequeue=1'
with KillWait=1 "KillWait" advised KillWait 'KillWait=30'
with AccountingStorageEnforce=associations "enforcement" wrong AccountingStorageEnforce 'missing: limits qos'
with SchedulerParameters=bf_interval=60 "bf_continue" wrong SchedulerParameters 'SchedulerParameters=bf_interval=60,bf_continue'
with SchedulerParameters=bf_interval=60 "bf_interval" advised SchedulerParameters 'bf_interval is 60.*SchedulerParameters=bf_interval=30'
with SchedulerParameters=bf_continue "bf_max_job_test" advised SchedulerParameters 'bf_max_job_test is'
with SchedulerParameters=bf_continue "default_queue_depth" advised SchedulerParameters 'default_queue_depth is 100'
with SchedulerParameters=bf_continue "preempt_strict_order" advised SchedulerParameters 'bf_continue,preempt_strict_order'
with SchedulerParameters=bf_continue "preempt_reorder_count, the GPUs of a node" advised SchedulerParameters 'preempt_reorder_count=4'
with SlurmctldParameters= "preempt_send_user_signal" advised SlurmctldParameters 'SlurmctldParameters=preempt_send_user_signal'
with 'PartitionName=main Nodes=n[1-2] Default=YES PreemptMode=CANCEL' "a partition's mode" wrong 'partition main' 'CANCEL.*PreemptMode=REQUEUE'
with 'PartitionName=main Nodes=n[1-2] Default=YES GraceTime=30' "a partition's GraceTime" wrong 'partition main' 'GraceTime=30'
with "PlugStackConfig=$scratch/none" "a plugstack.conf that is not there" advised PlugStackConfig 'cannot be read here'
: >"$scratch/empty"
chmod 644 "$scratch/empty"
with "PlugStackConfig=$scratch/empty" "one that lacks the plugin" wrong PlugStackConfig 'required spank_contract.so'
echo "include $(cluster_dir right)/etc/plugstack.c*" >"$scratch/empty"
cluster right conf "PlugStackConfig=$scratch/empty" >/dev/null
ok "one that includes another" wait_for 5 eval '! wrong PlugStackConfig .'
cp "$scratch/right.conf" "$conf"
on right scontrol reconfigure
on right sacctmgr -i add qos odd set preemptmode=cancel gracetime=10 preemptexempttime=1:00 >/dev/null
ok "a QOS's mode" wrong 'QOS odd' 'PreemptMode=CANCEL.*sacctmgr modify qos odd set preemptmode=cluster'
ok "its GraceTime" wrong 'QOS odd' 'GraceTime=00:00:10'
ok "its PreemptExemptTime" wrong 'QOS odd' 'PreemptExemptTime=00:01:00'
plugins=$(cluster_dir right)/plugins/1
echo 'const unsigned plugin_version = 23 << 16 | 11 << 8 | 10;' | gcc -shared -x c -o "$scratch/other.so" -
mv "$plugins/job_submit_contract.so" "$scratch/kept.so"
cp "$scratch/other.so" "$plugins/job_submit_contract.so"
ok "a plugin built for another release" wrong job_submit_contract.so 'built for Slurm 23.11.10'
echo 'no plugin' >"$plugins/job_submit_contract.so"
ok "a file that is none" advised job_submit_contract.so 'cannot tell'
rm "$plugins/job_submit_contract.so"
ok "one that is missing" advised job_submit_contract.so 'not in PluginDir'
mv "$scratch/kept.so" "$plugins/job_submit_contract.so"

note "doctor, on a stock controller"
where=stock
ok "PriorityType" wrong PriorityType 'PriorityType=priority/budget'
ok "PriorityParameters" wrong PriorityParameters 'quantum=1d'
ok "PreemptType" wrong PreemptType 'PreemptType=preempt/contract'
ok "PreemptMode" wrong PreemptMode 'PreemptMode=REQUEUE'
ok "JobSubmitPlugins" wrong JobSubmitPlugins 'JobSubmitPlugins=contract'
ok "SelectType" wrong SelectType 'SelectType=select/cons_tres'
ok "AccountingStorageTRES" wrong AccountingStorageTRES 'AccountingStorageTRES=gres/gpu'
ok "PlugStackConfig" eval 'wrong PlugStackConfig . || advised PlugStackConfig .'
run stock alice doctor
ok "the last line counts" answers 1 '^[0-9]+ wrong, [0-9]+ to consider, [0-9]+ good'

note "why a job was preempted last, on a controller where nobody rewrites the tag"
job=$(as stock alice sbatch --parsable --hold -o /dev/null --wrap true)
on stock scontrol update jobid="$job" \
	admincomment='[budget class=allocated contract=60 preempted_for=9 reason=claim account=c ratios=0.410/0.930 over=310]' >/dev/null
run stock alice contract "$job"
ok "in words" answers 0 'for job 9 of account c.*0.410 against 0.930.*00:05:10 after its minimum'
run stock alice contract "$job" --json
is "in JSON" "$(json 'd["jobs"][0]["preempted"]["its_ratio_thousandths"]')" 410
run stock alice contract "$job" --min-runtime=5m
ok "without job_submit/contract nothing is changed, and it says so" answers 1 'JobSubmitPlugins=contract'
ok "and the job's comment is left alone" eval '[[ $(on stock scontrol show job "$job") != *min-runtime* ]]'

finish
