#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What an update of a job does to its contract on a live controller (C6): each row is a
# change by somebody, whether it is taken, and the tag in the record after it. On
# 22.05 scontrol shows only an error code; the words of a refusal are in the log.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

budgets=$(budget_file <<-END
	a root 10 alice carol
	b root 10 alice bob
	zero root 0 alice
END
)
cluster_up update --nodes 2 --gpus 8 --budgets "$budgets" --priority priority/budget \
	--conf 'JobSubmitPlugins=contract' --conf 'PriorityParameters=window=1h,exempt_partition=debug,exempt_qos=urgent' \
	--conf 'DebugFlags=Priority' --conf 'PartitionName=short Nodes=n[1-2] DefaultTime=30 MaxTime=45' \
	--conf 'PartitionName=debug Nodes=n[1-2] DefaultTime=60'
rm -f "$budgets"
on update sacctmgr -i add coordinator names=carol account=a >/dev/null
on update sacctmgr -i add qos urgent >/dev/null
on update sacctmgr -i modify account a set qos+=urgent >/dev/null

job=
# submit USER MINUTES [sbatch options]: a held job of account a with one GPU; sets job.
submit() { job=$(as update "$1" sbatch -H --parsable -A a --gpus=1 --output=/dev/null --comment="min-runtime=$2" "${@:3}" --wrap 'exec sleep 600'); }
field() { on update scontrol show job "$1" | sed -n "s/^ *$2=//p; s/.* $2=\([^ ]*\).*/\1/p" | head -n 1 | sed 's/ *$//'; }
comment() { field "$1" AdminComment; }
tag() { comment "$1" | sed -n 's/^\[budget class=\([^]]*\)\].*/\1/p'; }

# row VERDICT TAG USER WHY [what scontrol update is told]: of $job.
row() {
	local verdict=$1 wanted=$2 why=$4 got=taken
	as update "$3" scontrol update jobid="$job" "${@:5}" >/dev/null 2>&1 || got=refused
	is "$why: $verdict" "$got $(tag "$job")" "$verdict $wanted"
}

# Two passes go by; each second one tells of itself.
passes() {
	local seen
	seen=$(log_lines update 'priority/budget: locks:')
	wait_for 10 logged_since update 'priority/budget: locks:' $((seen + 2))
}

ok "the budgets are known" wait_for 10 eval 'as update alice sbatch -H -A zero --gpus=1 --comment=min-runtime=1 --wrap true 2>&1 | grep -q "no budget"'
is "alice's jobs are hers" "$(as update alice scancel -u alice 2>&1)" ""

note "a pending job's minimum"
submit alice 30 --begin=now+1day
row taken "allocated contract=1200" alice "its owner lowers it" comment=min-runtime=20
row taken "allocated contract=2400" alice "raises it" comment=min-runtime=40
row refused "allocated contract=2400" alice "not beyond the time limit" comment=min-runtime=61
ok "... the log has the words" logged update 'refused: --min-runtime=01:01:00 is longer than the time limit of 01:00:00'
row refused "allocated contract=2400" alice "not beyond the maximum" comment=min-runtime=481
row refused "allocated contract=2400" alice "not to what is no time" comment=min-runtime=much
row refused "allocated contract=2400" bob "somebody else's" comment=min-runtime=0
row taken "allocated contract=1800" carol "a coordinator's" comment=min-runtime=30
row taken "allocated contract=2400" root "an operator's" comment=min-runtime=40
row taken unallocated alice "0 makes it unallocated" comment=min-runtime=0
row taken "allocated contract=1800" alice "and a minimum allocated again" comment=min-runtime=30
row taken "allocated contract=1800" alice "a comment of the owner's" comment='for the paper'
is "a word alone leaves it" "$(as update alice scontrol update jobid="$job" comment=min-runtime=20; field "$job" Comment)" "for the paper"
is "a word in a new one is taken out" "$(as update alice scontrol update jobid="$job" comment='not min-runtime=25 for it'; field "$job" Comment)" "not for it"
is "and counts" "$(tag "$job")" "allocated contract=1500"

note "the other fields"
row taken "allocated contract=1500" alice "a time limit above it" timelimit=40
row refused "allocated contract=1500" alice "a time limit below it" timelimit=20
row taken "allocated contract=1500" alice "a time limit of just that" timelimit=25
row refused "allocated contract=1500" alice "limit and minimum at once, of which the limit may fail" timelimit=60 comment=min-runtime=50
row taken "allocated contract=1500" alice "first the limit" timelimit=60
row taken "allocated contract=2400" alice "then the minimum" comment=min-runtime=40
row refused "allocated contract=2400" root "an operator too" timelimit=20
row taken "allocated contract=2400" alice "--time-min" timemin=5
is "C4: is raised" "$(field "$job" TimeMin)" 00:40:00
row taken "allocated contract=3000" alice "a longer minimum" comment=min-runtime=50
is "C4: takes it along" "$(field "$job" TimeMin)" 00:50:00
row taken "allocated contract=2400" alice "a shorter one" comment=min-runtime=40
row taken "allocated contract=2400" alice "hold" priority=0
ok "release" as update alice scontrol release "$job"
ok "hold" as update alice scontrol hold "$job"
ok "top" eval 'as update alice scontrol top "$job" 2>/dev/null; [[ $(tag "$job") == "allocated contract=2400" ]]'
row taken "allocated contract=2400" alice "nice" nice=10
row taken "allocated contract=2400" alice "requeue" requeue=0
row taken "allocated contract=2400" alice "another account with a budget" account=b
row refused "allocated contract=2400" alice "no such account" account=nope
row refused "allocated contract=2400" alice "no such account, and a minimum" account=nope comment=min-runtime=10
row refused "allocated contract=2400" alice "an account without a budget, in an update that Slurm refuses" account=zero gres=nope:1
row taken "allocated contract=2400" alice "it keeps what it stated in an account without a budget" account=zero
row taken unallocated alice "C5: where nothing can be stated" comment=min-runtime=20
row taken unallocated alice "back in its account it is what it was" account=a
row taken "allocated contract=2100" alice "until something is stated" comment=min-runtime=35
row taken "allocated contract=2100" alice "another partition" partition=debug
row taken "allocated contract=2100" alice "and back" partition=main
row refused "allocated contract=2100" alice "no such partition" partition=nope
row taken "allocated contract=2100" alice "an exempt QOS" qos=urgent
row taken "allocated contract=2100" alice "and back" qos=normal
row taken "allocated contract=2100" alice "GPUs that are taken out again" gres=gpu:0
as update alice scancel "$job"

note "out of exemptions, and into GPUs"
job=$(as update alice sbatch -H --parsable -A a --gpus=1 -p debug --output=/dev/null --wrap 'exec sleep 600')
is "an exempt job without a minimum" "$(tag "$job")" "allocated contract=0"
row refused "allocated contract=0" alice "does not leave for another partition without one" partition=main
row taken "allocated contract=600" alice "with one" comment=min-runtime=10
row taken "allocated contract=600" alice "it does" partition=main
job=$(as update alice sbatch -H --parsable -A a -n1 --output=/dev/null --wrap 'exec sleep 600')
row taken "" alice "a job without GPUs has none" timelimit=30
as update alice scontrol update jobid="$job" gres=gpu:2 >/dev/null 2>&1
ok "GPUs that are added bring a contract" eval '[[ $(field "$job" TRES) != *gres/gpu* || -n $(tag "$job") ]]'

note "an operator's text in admin_comment"
submit alice 30
row taken "allocated contract=1800" root "goes behind the tag" admincomment='looked at'
is "both are there" "$(comment "$job")" "[budget class=allocated contract=1800] looked at"
row taken "allocated contract=1800" root "a forged tag" admincomment='[budget class=allocated contract=28800] seen'
is "is none" "$(comment "$job")" "[budget class=allocated contract=1800] seen"
row taken "allocated contract=1800" root "wiping it" admincomment=
is "leaves the tag" "$(comment "$job")" "[budget class=allocated contract=1800]"
row taken "allocated contract=1200" root "text and minimum at once" admincomment='third' comment=min-runtime=20
is "both are there" "$(comment "$job")" "[budget class=allocated contract=1200] third"
row refused "allocated contract=1200" alice "its owner may not write there" admincomment=mine

note "C7: arrays and heterogeneous jobs"
submit alice 30 --array=0-5
array=$job
on update scontrol hold "${array}_3"
row taken "allocated contract=1200" alice "a whole array" comment=min-runtime=20
is "C7: with the task that has a record of its own" "$(tag "${array}_3")" "allocated contract=1200"
job=${array}_4
row taken "allocated contract=600" alice "one task" comment=min-runtime=10
is "C7: the others keep theirs" "$(tag "${array}_5")" "allocated contract=1200"
# shellcheck disable=SC2034
het=$(as update alice sbatch -H --parsable -A a --gpus=1 --comment=min-runtime=30 : --gpus=2 --comment=min-runtime=30 : -n1 --comment=x --wrap 'exec sleep 600' 2>/dev/null)
job=$het
row taken "allocated contract=1200" alice "a heterogeneous job" comment=min-runtime=20
is "C7: its other part" "$(tag "$het+1")" "allocated contract=1200"
job=$het+1
row taken "allocated contract=900" alice "by one part" comment=min-runtime=15
is "C7: changes all" "$(tag "$het+0")" "allocated contract=900"
is "C8: but for one without GPUs" "$(tag "$het+2")" ""
on update scancel "$het" "$array"

note "a run"
submit alice 30
as update alice scontrol release "$job"
ok "it runs" wait_for 20 job_is update "$job" RUNNING
ok "passes go by" passes
row taken "allocated contract=1200" alice "its owner lowers its minimum" comment=min-runtime=20
row refused "allocated contract=1200" alice "and cannot raise it" comment=min-runtime=21
ok "... the log has the words" logged update 'ask an operator'
row refused "allocated contract=1200" carol "nor can a coordinator" comment=min-runtime=25
row taken "allocated contract=1500" root "an operator can" comment=min-runtime=25
ok "passes go by" passes
is "C6: they follow the record" "$(tag "$job")" "allocated contract=1500"
row refused "allocated contract=1500" root "not beyond the time limit" comment=min-runtime=61
row refused "allocated contract=1500" alice "a time limit below it" timelimit=24
row refused "allocated contract=1500" alice "an end before it" endtime=now+10minutes
row taken "allocated contract=1500" alice "an end behind it" endtime=now+50minutes
row refused "allocated contract=1500" alice "a run does not change its account" account=zero
row refused "allocated contract=1500" alice "nor its QOS" qos=urgent
row taken "allocated contract=1500" alice "its requeue flag is free" requeue=0
row taken "allocated contract=60" alice "down to a minute" comment=min-runtime=1
row taken "allocated contract=0" alice "down to nothing: it stays allocated, and is charged" comment=min-runtime=0
on update scontrol requeue "$job" 2>/dev/null
on update scancel "$job"
submit alice 0
as update alice scontrol release "$job"
ok "an unallocated one runs" wait_for 20 job_is update "$job" RUNNING
ok "passes go by" passes
is "C3: it stays unallocated" "$(tag "$job")" unallocated
row refused unallocated alice "its owner cannot make it allocated" comment=min-runtime=10
row refused unallocated root "nobody can" comment=min-runtime=10
on update scancel "$job"
submit alice 30
as update alice scontrol update jobid="$job" account=zero
as update alice scontrol release "$job"
ok "one that went to an account without a budget runs" wait_for 20 job_is update "$job" RUNNING
ok "passes go by" passes
is "C5: as unallocated" "$(tag "$job")" unallocated
on update scancel "$job"
submit alice 30 --gpus=2 -N2 --ntasks-per-node=1
as update alice scontrol release "$job"
ok "one on two nodes runs" wait_for 20 job_is update "$job" RUNNING
row taken "allocated contract=1800" alice "giving up a node leaves the contract" numnodes=1
on update scancel "$job"

note "C3: the site's QOS, in an array of which a task runs"
on update sacctmgr -i add qos free >/dev/null
on update sacctmgr -i modify account a set qos+=free >/dev/null
cluster update conf 'PriorityParameters=window=1h,exempt_partition=debug,exempt_qos=urgent,unallocated_qos=free' >/dev/null
submit alice 30 --array=0-2%1
as update alice scontrol release "$job"
array=$job
ok "a task runs" wait_for 20 eval '[[ $(on update squeue -h -t R -j "$array" | wc -l) == 1 ]]'
ok "the whole array is taken" as update alice scontrol update jobid="$array" comment=min-runtime=0
is "the pending ones go into the QOS" "$(tag "$array") $(field "$array" QOS)" "unallocated free"
is "the run stays in its own" "$(on update squeue -h -t R -j "$array" -o %q)" normal
on update scancel "$array"

ok "slurmctld still serves" serves update

finish
