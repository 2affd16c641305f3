#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Who is stopped, and who is not, in the less common states of both sides, on a live controller (P1, P3,
# P5, Q5, C2, C8): a victim that is still starting or takes long to end, a preemptor that waits for something
# that nobody's going would free, and what is written down in the end.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

budgets=$(budget_file <<-END
	a root 1 alice ann
	b root 1 bob
	c root 1 carol
END
)
new_folder
work=$folder
chmod 777 "$work"
# A job named slow takes five seconds to be configured.
printf '#!/bin/sh\n[ "$SLURM_JOB_NAME" != slow ] || sleep 5\n' >"$work/prolog"
chmod 755 "$work/prolog"
preempting_up states sched_interval=1,bf_interval=1 --nodes 6 --gpus 8 --cpus 16 --budgets "$budgets" \
	--plugstack "required $(plugin_dir)/spank_contract.so" --conf JobSubmitPlugins=contract \
	--conf 'PriorityParameters=window=1h' \
	--conf 'Licenses=solver:1' --conf KillWait=10 --conf "PrologSlurmctld=$work/prolog" \
	--conf 'PartitionName=off Nodes=n[1-6] PreemptMode=OFF' --conf 'PartitionName=left Nodes=n[1-3]' --conf 'PartitionName=right Nodes=n[4-6]'
rm -f "$budgets"

runs() { job_is states "$1" RUNNING; }
field() { on states scontrol show job "$1" | tr -s ' ' '\n' | grep "^$2=" | head -1 | cut -d= -f2-; }
stopped() { [[ $(preempting_line states "$1") ]]; }
stopped_for() { grep 'preempting JobId=' "$(controller_log states)" | grep -w "for JobId=$1" | grep -o 'preempting JobId=[0-9]*' | cut -d= -f2 | sort -n | xargs; }
# submit USER ACCOUNT MINIMUM GPUS SCRIPT [sbatch options]
submit() { as states "$1" sbatch --parsable -A "$2" --min-runtime="$3" --gpus="$4" --time=60 --output=/dev/null "${@:6}" --wrap "$5" 2>/dev/null | cut -d';' -f1; }
holds() { submit "$1" "$2" "$3" "$4" 'exec sleep 600' "${@:5}"; }
# free_node NODE: nobody has it, and nobody waits who could take it
free_node() {
	local job
	for job in $(on states squeue -h -t PD -o %A) $(on states squeue -h -w "$1" -o %A); do on states scancel "$job"; done
}
state_of() { on states sacct -X -n -P -D -j "$1" -o State | tail -1; }
# for_seconds N: time in which somebody could be stopped who must not be
# shellcheck disable=SC2034 # in conditions that are waited for
for_seconds() { until=$(($(date +%s) + $1)); wait_for $(($1 + 5)) eval '(($(date +%s) > until))'; }

note "one team alone, each job at the mercy of anybody: none of them stops another"
equal=()
for _ in 1 2 3 4 5 6 7 8 9; do equal+=("$(holds alice a 0 8)"); done
ok "six run" wait_for 20 eval '[[ $(on states squeue -h -t R | wc -l) == 6 ]]'
more=$(holds ann a 0 8)
for_seconds 4
is "P1: nobody was stopped" "$(log_lines states 'preempting JobId=')" 0
paid=$(holds ann a 1s 8 -w n6)
ok "an allocated one of the team takes one place" wait_for 20 runs "$paid"
again=$(holds ann a 1s 8 -w n6)
for_seconds 4
is "P4: but not that of its equal after the contract" "$(stopped_for "$again")" ''

note "what waits for something that nobody's going would free stops nobody"
for job in "${equal[@]:6}" "$more" "$again"; do on states scancel "$job"; done
holder=$(as states carol sbatch --parsable -A c --time=60 --output=/dev/null --licenses=solver:1 --wrap 'exec sleep 600' | cut -d';' -f1)
ok "somebody has the licence" wait_for 20 runs "$holder"
licence=$(holds bob b 1m 8 --licenses=solver:1)
depends=$(holds bob b 1m 8 --dependency=afterok:"$holder")
later=$(holds bob b 1m 8 --begin=now+1hour)
on states sacctmgr -i modify account c set GrpTRES=gres/gpu=4 >/dev/null
on states sacctmgr -i add qos narrow set MaxTRESPerUser=gres/gpu=2 >/dev/null
on states sacctmgr -i modify user bob set qos+=narrow >/dev/null
capped=$(holds carol c 1m 8)
narrow=$(holds bob b 1m 8 --qos=narrow)
for_seconds 5
for job in $licence $depends $later $capped $narrow; do is "$(field "$job" Reason): nobody stopped for it" "$(stopped_for "$job")" ''; done
for job in $licence $depends $later $capped $narrow $holder; do on states scancel "$job"; done

note "idle nodes that fit by another of the features that a job accepts"
on states scontrol update nodename=n1 availablefeatures=old activefeatures=old >/dev/null
on states scontrol update nodename=n2 availablefeatures=new activefeatures=new >/dev/null
free_node n2
ok "n2 is idle" wait_for 20 eval '[[ -z $(on states squeue -h -w n2) ]]'
either=$(holds bob b 1s 8 '--constraint=[old|new]' -N 1)
ok "the job runs" wait_for 20 runs "$either"
is "there" "$(field "$either" NodeList)" n2
is "and has stopped nobody" "$(stopped_for "$either")" ''

note "while a victim takes its time to end, its place is kept"
free_node n3
slow=$(submit alice a 0 8 "trap '' TERM; echo >$work/slow; while :; do sleep 0.2; done" -w n3)
ok "it runs" wait_for 20 test -e "$work/slow"
wants=$(holds bob b 1m 8 -w n3)
ok "it is stopped" wait_for 20 stopped "$slow"
begun=$(seconds_of "$(preempting_line states "$slow")")
on states scontrol update jobid="$slow" timelimit=+60 >/dev/null 2>&1
ok "a new time limit does not bring it back" test "$(field "$slow" JobState)" = COMPLETING
small=()
for _ in 1 2 3 4 5 6; do small+=("$(holds carol c 0 1 -w n3)" "$(holds alice a 0 1 -w n3)"); done
ok "who it was stopped for has the place" wait_for 30 runs "$wants"
within "KillWait (10 s) after the stop" "$(awk -v a="$begun" -v b="$(date -d "$(field "$wants" StartTime)" +%s)" 'BEGIN { print b - a }')" 11.5 4
is "nobody else was there" "$(on states squeue -h -w n3 -t R -o %A)" "$wants"
is "and no second one was stopped" "$(stopped_for "$wants")" "$slow"
for job in "${small[@]}"; do on states scancel "$job"; done

note "a victim that is still being configured"
free_node n4
starting=$(holds alice a 0 8 -w n4 -J slow)
ok "it is" wait_for 20 job_is states "$starting" CONFIGURING
takes=$(holds bob b 1m 8 -w n4)
ok "it is stopped at once" wait_for 4 stopped "$starting"
ok "and waits again" wait_for 20 eval '[[ $(field $starting JobState) == PENDING ]]'
ok "the other one runs" wait_for 20 runs "$takes"
on states scancel "$takes"
on states scontrol update jobid="$starting" starttime=now >/dev/null
ok "it starts again" wait_for 30 runs "$starting"
is "a second time" "$(field "$starting" Restarts)" 1
takes=$(holds bob b 1m 8 -w n4)
ok "and can be stopped again" wait_for 10 eval '[[ $(word "$(preempting_line states $starting last)" restart) == 1 ]]'
on states scancel "$takes"

note "C2: the contract counts from the start that Slurm shows, which is the allocation"
free_node n5
counts=$(holds bob b 4s 8 -w n5 -J slow)
ok "it is configured" wait_for 20 job_is states "$counts" CONFIGURING
begun=$(date -d "$(field "$counts" StartTime)" +%s)
takes=$(holds ann a 1m 8 -w n5)
ok "it is stopped" wait_for 20 stopped "$counts"
line=$(preempting_line states "$counts")
within "4 s after its start" "$(awk -v a="$begun" -v b="$(seconds_of "$line")" 'BEGIN { print b - a }')" 5 1.5
ok "C2: past its contract" test "$(word "$line" over)" -ge 0

note "a job listed in two partitions is judged by the one it runs in"
free_node n6
listed=$(holds alice a 0 8 -w n6 -p main,off)
ok "it runs" wait_for 20 runs "$listed"
where=$(field "$listed" Partition)
asks=$(holds bob b 1s 8 -w n6)
if [[ $where == off ]]; then
	for_seconds 4
	ok "in off: it stays" runs "$listed"
else
	ok "in $where: it gives way" wait_for 15 stopped "$listed"
fi
on states scancel "$asks"

note "Q5: no part of a heterogeneous job stops anybody"
for_seconds 1
# shellcheck disable=SC2034 # in conditions that are waited for
before=$(log_lines states 'preempting JobId=')
het=$(as states bob sbatch --parsable -A b -p left --gpus=8 -N 1 -w n1 --min-runtime=1s --time=60 --output=/dev/null : -A b -p right --gpus=8 -N 1 -w n5 --time=60 --wrap 'exec sleep 600' 2>/dev/null | cut -d';' -f1)
for_seconds 4
is "as long as it would have to" "$(stopped_for "$het")$(stopped_for $((het + 1)))" ''
on states scancel "$(on states squeue -h -w n1 -t R -o %A)" "$takes"
ok "it starts on free nodes, as a whole" wait_for 20 eval '[[ $(on states squeue -h -j $het -t R | wc -l) == 2 ]]'

note "what is written down"
is "stopped and requeued: PREEMPTED" "$(on states sacct -X -n -P -D -j "$slow" -o State | head -1)" PREEMPTED
ended_by_admin=$counts
on states scancel "$ended_by_admin" "$either"
ok "cancelled by an administrator" wait_for 15 eval '[[ $(state_of $either) == "CANCELLED by 0" ]]'
ok "requeued before and cancelled then: two runs, or the first alone" eval '[[ $(on states sacct -X -n -P -D -j $counts -o State | head -1) == PREEMPTED ]]'
is "nobody was stopped inside a contract" "$(grep -c 'preempting .* over=-' "$(controller_log states)")" 0
finish
