#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Whom a job stops on a live controller (P1, P3, P5, Q5): no more than it needs, on the nodes where
# that is least, all at once or nobody, and those who are going already are not counted again.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

budgets=$(budget_file <<-END
	a root 1 alice
	b root 1 bob
	c root 1 carol
END
)
preempting_up victims sched_interval=2,bf_interval=2 --nodes 2 --gpus 8 --cpus 32 --budgets "$budgets" \
	--conf 'PriorityParameters=window=1h'
rm -f "$budgets"

runs() { job_is victims "$1" RUNNING; }
all_run() { local job; for job; do runs "$job" || return 1; done; }
empty() { [[ -z $(on victims squeue -h) ]]; }
clear() {
	local job
	for job in $(on victims squeue -h -o %A); do on victims scancel "$job"; done
	ok "the cluster is empty" wait_for 30 empty
}
# stopped_for JOB: the jobs stopped for it, ascending, on one line
stopped_for() { grep 'preempting JobId=' "$(controller_log victims)" | grep -w "for JobId=$1" | grep -o 'preempting JobId=[0-9]*' | cut -d= -f2 | sort -n | xargs; }
# together COMMAND...: what it submits starts in one pass
together() {
	on victims scontrol update partitionname=main state=down >/dev/null
	"$@"
	on victims scontrol update partitionname=main state=up >/dev/null
}
# team_a NODE:GPUS...: jobs of team a with a contract of 5 s; their ids in `jobs`
team_a() {
	local each
	jobs=()
	for each; do jobs+=("$(contracted victims alice a "${each#*:}" 600 'allocated contract=5' -w "${each%:*}")"); done
}

note "P5: two victims where another node would take five"
together team_a n2:2 n2:2 n2:2 n2:1 n2:1 n1:4 n1:4
ok "seven jobs fill the cluster" wait_for 20 all_run "${jobs[@]}"
is "from the same second on" "$(on victims squeue -h -o %S | sort -u | wc -l)" 1
whole=$(contracted victims bob b 8 600 'allocated contract=5' -N 1)
ok "a job of a whole node runs" wait_for 20 runs "$whole"
is "P5: the two large ones were stopped" "$(stopped_for "$whole")" "${jobs[5]} ${jobs[6]}"
part=$(contracted victims carol c 2 600 'allocated contract=5' -w n2)
ok "a job of two GPUs runs beside the others" wait_for 20 runs "$part"
is "P5: one victim of that size" "$(stopped_for "$part" | wc -w)" 1
clear

note "Q5: two nodes at once or not at all"
short=$(contracted victims alice a 8 600 'allocated contract=2' -w n1)
long=$(contracted victims alice a 8 600 'allocated contract=10' -w n2)
ok "both run" wait_for 20 all_run "$short" "$long"
wide=$(contracted victims bob b 16 600 'allocated contract=5' -N 2)
ok "the wide job runs" wait_for 30 runs "$wide"
is "both were stopped for it" "$(stopped_for "$wide")" "$short $long"
ok "the first no sooner than the second could be" test "$(word "$(preempting_line victims "$short")" over)" -ge 7
clear

note "P3: a team that returns does not empty the cluster"
team_a n1:1 n1:1 n1:2 n1:4 n2:1 n2:1 n2:2 n2:4
ok "one team has it all" wait_for 20 all_run "${jobs[@]}"
back=()
for _ in 1 2 3 4; do back+=("$(contracted victims bob b 1 600 'allocated contract=1200')"); done
ok "the first of the other runs" wait_for 20 runs "${back[0]}"
export since; since=$(date +%s)
wait_for 10 eval '(($(date +%s) - since >= 5))' # time in which more could be stopped
is "P3: its contract counts at once, so it is the only one" "$(on victims squeue -h -A b -t R -o %A | wc -l)" 1
clear

note "an array's tasks are victims one by one"
# shellcheck disable=SC2034 # in conditions that are waited for
array=$(contracted victims alice a 4 600 'allocated contract=3' --array=1-4)
ok "all tasks run" wait_for 20 eval '[[ $(on victims squeue -h -r -j "$array" -t R -o %A | wc -l) == 4 ]]'
one=$(contracted victims bob b 3 600 'allocated contract=3' -N 1)
ok "a job that needs one task's place runs" wait_for 20 runs "$one"
is "P5: one task was stopped" "$(stopped_for "$one" | wc -w)" 1
ok "its job goes on as tasks of one array" wait_for 10 eval '[[ $(on victims squeue -h -r -j "$array" -t R -o %A | wc -l) == 3 ]]'
clear

note "those who are going are not counted again, and their place is kept"
# The first takes all of KillWait to end, and the place of the other is taken by nobody meanwhile.
slow=$(as victims alice sbatch --parsable --hold -A a --gpus=4 --time=60 -w n1 --output=/dev/null --wrap 'trap "" TERM; sleep 600 & wait; sleep 600')
quick=$(sleeper victims alice a 4 600 --hold -w n1)
other=$(sleeper victims alice a 8 600 --hold -w n2)
for job in $slow $quick $other; do
	on victims scontrol update jobid="$job" admincomment='[budget class=allocated contract=4]' >/dev/null
	on victims scontrol release "$job" >/dev/null
done
ok "they run" wait_for 20 all_run "$slow" "$quick" "$other"
node=$(contracted victims bob b 8 600 'allocated contract=5' -w n1)
small=()
for _ in 1 2 3 4 5 6; do small+=("$(contracted victims carol c 1 600 'allocated contract=1200')"); done
ok "the job runs" wait_for 20 runs "$node"
is "nobody else was stopped for it" "$(stopped_for "$node")" "$slow $quick"
is "nobody had to be stopped twice" "$(grep "preempting JobId=" "$(controller_log victims)" | grep -cw "for JobId=$node")" 2
clear

is "nobody was stopped inside a contract" "$(grep -c 'preempting .* over=-' "$(controller_log victims)")" 0
is "all by the engine's picks" "$(grep 'preempting JobId=' "$(controller_log victims)" | grep -vc 'pick=ours')" 0
is "nobody was left to Slurm" "$(grep -c 'dropped: Slurm has tried' "$(controller_log victims)")" 0

ok "every run and preemption is as the rules say" audited victims --least 5

finish
