#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What becomes of a job that gave way, on a live controller (P6, P7, C7): it keeps what it asked for,
# is never held for it, is not hurt by its own earlier run, and can say that it is done.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

budgets=$(budget_file <<-END
	a root 1 alice
	b root 1 bob
END
)
new_folder
work=$folder
chmod 777 "$work"
printf '#!/bin/sh\n[ ! -e "%s/fail-$SLURM_JOB_ID" ]\n' "$work" >"$work/prolog"
chmod 755 "$work/prolog"
preempting_up requeue sched_interval=1,bf_interval=1,max_batch_requeue=2 --nodes 6 --gpus 8 --cpus 16 --budgets "$budgets" \
	--plugstack "required $(plugin_dir)/spank_contract.so" --conf JobSubmitPlugins=contract \
	--conf 'PriorityParameters=window=1h' \
	--conf 'Licenses=solver:2' --conf KillWait=4 --conf "Prolog=$work/prolog"
rm -f "$budgets"

runs() { job_is requeue "$1" RUNNING; }
field() { on requeue scontrol show job "$1" | tr -s ' ' '\n' | grep "^$2=" | head -1 | cut -d= -f2-; }
runs_as() { runs "$1" && [[ $(field "$1" Restarts) == "$2" ]]; }
waits() { [[ $(field "$1" JobState) == PENDING && $(field "$1" Restarts) == "$2" ]]; }
# submit USER ACCOUNT MINIMUM GPUS SCRIPT [sbatch options]
submit() { as requeue "$1" sbatch --parsable -A "$2" --min-runtime="$3" --gpus="$4" --time=60 --output=/dev/null "${@:6}" --wrap "$5" 2>/dev/null | cut -d';' -f1; }
# Slurm keeps a requeued job back for the lifetime of a credential (5 s here). To be left alone: started before that
# it would end with "Job credential revoked".
comes_back() { wait_for 25 runs_as "$1" "$2"; }
# taken NODE: a job of the other team that wants all of it
taken() { submit bob b 1m 8 'exec sleep 600' -w "$1"; }
# give_way JOB NODE [COUNT]: somebody takes its node until it has been requeued so often
give_way() {
	local taker result
	taker=$(taken "$2")
	wait_for 20 waits "$1" "${3:-1}" && wait_for 20 runs "$taker"
	result=$?
	on requeue scancel "$taker"
	return "$result"
}
recorded_as() { [[ $(on requeue sacct -X -n -P -D -j "$1" -o State | tail -1) == "$2" ]]; }
# records JOB: its states in the database, counted
records() { on requeue sacct -X -n -P -D -j "$1" -o State | sed 's/ by .*//' | sort | uniq -c | xargs; }

note "they start, each on a node of its own"
idle='while :; do sleep 0.2; done'
often=$(submit alice a 0 8 'exec sleep 600' -w n1)
deaf=$(submit alice a 0 8 "echo start >>$work/deaf; trap 'echo term >>$work/deaf' TERM; $idle" -w n2)
asks=$(submit alice a 0 4 'exec sleep 600' -w n3 --exclusive --licenses=solver:1 --comment=mine --nice=7)
good=$(submit alice a 0 8 "trap 'exit 0' TERM; $idle" -w n4)
said=$(submit alice a 0 8 "scontrol update jobid=\$SLURM_JOB_ID requeue=0; echo start >>$work/said; trap 'exit 0' TERM; $idle" -w n5)
late=$(submit alice a 0 8 "echo start >>$work/late; trap 'scancel \$SLURM_JOB_ID; exit 0' TERM; $idle" -w n6)
for job in $often $deaf $asks $good $said $late; do ok "job $job runs" wait_for 20 runs "$job"; done
for name in deaf said late; do ok "the $name one has begun" wait_for 5 test -s "$work/$name"; done
keeps() {
	local key
	for key in TRES TresPerJob Account QOS Licenses Comment AdminComment OverSubscribe NumNodes TimeLimit Nice; do
		printf '%s=%s ' "$key" "$(field "$asks" "$key")"
	done
}
before=$(keeps)

note "P6: what it asked for is kept"
ok "it gives way" give_way "$asks" n3
ok "its priority is not 0 while it waits ($(priority requeue "$asks"))" test "$(priority requeue "$asks")" -ge 1048576
ok "nobody holds its licence" eval 'on requeue scontrol show lic solver | grep -q "Used=0"'
ok "it runs again" comes_back "$asks" 1
is "with all that it had" "$(keeps)" "$before"

note "a job that does not end on SIGTERM, and its next run on the same node"
taker=$(taken n2)
ok "it is stopped" wait_for 20 eval '[[ $(preempting_line requeue $deaf) ]]'
stop=$(seconds_of "$(preempting_line requeue "$deaf")")
ok "P7: it is told by SIGTERM" wait_for 3 grep -q term "$work/deaf"
on requeue scancel "$taker"
ok "it runs again" comes_back "$deaf" 1
is "on its node" "$(field "$deaf" NodeList)" n2
first=$(date -d "$(field "$deaf" StartTime)" +%s)
within "not before its first run was killed, KillWait (4 s) after the stop" "$(awk -v a="$stop" -v b="$first" 'BEGIN { print b - a }')" 9 5

note "P7: exit 0 on SIGTERM looks like any other end: it is requeued"
ok "it gives way" give_way "$good" n4
ok "and runs again" comes_back "$good" 1
note "unless it has said before that it need not be (requeue=0)"
taker=$(taken n5)
ok "C7: that one is PREEMPTED for good" wait_for 20 recorded_as "$said" PREEMPTED
is "and started once" "$(grep -c start "$work/said")" 1
on requeue scancel "$taker"
note "or cancels itself when it is told"
taker=$(taken n6)
ok "that one is cancelled by its owner" wait_for 20 eval '[[ $(field $late JobState) == CANCELLED ]]'
ok "its stopped run is PREEMPTED all the same" wait_for 10 eval '[[ $(records $late) == "1 PREEMPTED" ]]'
is "and started once" "$(grep -c start "$work/late")" 1
on requeue scancel "$taker"

note "P6: stopped more often than failures are allowed (max_batch_requeue=2)"
for n in 1 2 3 4; do
	ok "it gives way, time $n" give_way "$often" n1 "$n"
	comes_back "$often" "$n"
done
ok "it runs a fifth time, not held" runs_as "$often" 4
ok "each run has its own record" wait_for 10 eval '[[ $(records $often) == "4 PREEMPTED 1 RUNNING" ]]'

is "the deaf one's second run has not been signalled" "$(tail -1 "$work/deaf")" start
ok "and goes on" runs_as "$deaf" 1

note "an array: one task gives way, and a job waits for all of them (afterok)"
for job in $often $deaf $asks $good; do on requeue scancel "$job"; done
array=$(submit alice a 0 8 "while [ ! -e $work/end ]; do sleep 0.2; done" --array=1-4 -x n6)
after=$(submit alice a 0 1 'true' --dependency=afterok:"$array")
tasks() { on requeue squeue -h -r -j "$array" -t "$1" -o %K | wc -l; }
all_run() { [[ $(tasks R) == 4 ]]; }
ok "four tasks run" wait_for 30 all_run
node=$(on requeue squeue -h -r -j "${array}_2" -o %N)
taker=$(taken "$node")
ok "task 2 gives way" wait_for 20 eval '[[ $(tasks R) == 3 && $(tasks PD) == 1 ]]'
ok "the other job waits" job_is requeue "$after" PENDING
touch "$work/end"
ok "three tasks end" wait_for 20 eval '[[ $(tasks R) == 0 ]]'
ok "and it waits on" job_is requeue "$after" PENDING
on requeue scancel "$taker"
ok "then it has run" wait_for 30 recorded_as "$after" COMPLETED
is "after four tasks that were completed" "$(on requeue sacct -X -n -P -j "$array" -o State | sort | uniq -c | xargs)" '4 COMPLETED'

note "a launch that fails is held, as always"
fails=$(submit alice a 0 8 'true' --hold -w n6)
touch "$work/fail-$fails"
on requeue scontrol release "$fails" >/dev/null
ok "held" wait_for 30 eval '[[ $(priority requeue $fails) == 0 ]]'
is "for that" "$(on requeue squeue -h -j "$fails" -o %r)" 'launch failed requeued held'

is "nobody was stopped inside a contract" "$(grep -c 'preempting .* over=-' "$(controller_log requeue)")" 0
finish
