#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Time slicing on a live controller at Slurm's stock intervals: a job has its minimum runtime
# to itself, then gives way to a better claim within two seconds (P3), comes back with a full
# contract (P6), and its owner is told why it was stopped; one that has asked for a signal gets it first (P7).

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

budgets=$(budget_file <<-END
	a root 1 alice
	b root 1 bob
END
)
preempting_up slices sched_interval=60,bf_interval=30 --nodes 2 --gpus 8 --cpus 16 --budgets "$budgets" \
	--conf 'PriorityParameters=window=1h' \
	--conf 'AuthInfo=socket='"$(cluster_dir slices)"'/run/munge.socket,cred_expire=5'
rm -f "$budgets"

restarts() { on slices scontrol show job "$1" | grep -o 'Restarts=[0-9]*' | cut -d= -f2; }
runs_again() { job_is slices "$1" RUNNING && [[ $(restarts "$1") == "$2" ]]; }
reason_of() { on slices sacct -X -D -n -P -j "$1" -o State,AdminComment | grep '^PREEMPTED' | tail -1; }
# gap FROM TO: seconds between two lines of the log
gap() { awk -v a="$(seconds_of "$1")" -v b="$(seconds_of "$2")" 'BEGIN { printf "%.3f", b - a }'; }

note "A has all GPUs for at least 20 s; B, of the other team, waits for it"
first=$(contracted slices alice a 16 600 'allocated contract=20' -N 2)
ok "A runs" wait_for 20 job_is slices "$first" RUNNING
second=$(contracted slices bob b 16 600 'allocated contract=5' -N 2)
ok "A is stopped" wait_for 40 eval '[[ $(preempting_line slices $first) ]]'
line=$(preempting_line slices "$first")
over=$(word "$line" over)
ok "C2: not inside its contract ($over s over)" test "$over" -ge 0
ok "P3: within 2 s of its end" test "$over" -le 2
is "P3: by its claim" "$(word "$line" right)" claim
is "P5: as picked" "$(word "$line" pick)" ours
ok "B runs" wait_for 10 job_is slices "$second" RUNNING
started=$(grep "sched.*Allocate JobId=$second " "$(controller_log slices)" | head -1)
within "B starts within KillWait (2 s) and a second" "$(gap "$line" "$started")" 1.5 1.5
ok "P6: A waits again" wait_for 5 job_is slices "$first" PENDING
ok "A's first run is PREEMPTED in the database" wait_for 10 eval '[[ $(reason_of $first) ]]'
told=$(reason_of "$first")
ok "its owner is told for whom ($told)" grep -q "class=allocated contract=20 preempted_for=$second reason=claim account=b ratios=" <<<"$told"
ok "while it waits, too" eval 'on slices squeue -h -j $first -o %k >/dev/null && on slices scontrol show job $first | grep -q "preempted_for=$second"'

note "A comes back, with a full contract"
on slices scancel "$second"
ok "A runs again" wait_for 30 runs_again "$first" 1
ok "the new run is not said to have been preempted" wait_for 5 eval '! on slices scontrol show job $first | grep -q preempted_for'
third=$(contracted slices bob b 16 600 'allocated contract=5' -N 2)
ok "A is stopped again" wait_for 40 eval '[[ $(word "$(preempting_line slices $first last)" restart) == 1 ]]'
line=$(preempting_line slices "$first" last)
over=$(word "$line" over)
ok "P6: not inside its new contract ($over s over)" test "$over" -ge 0
ok "P3: within 2 s of its end" test "$over" -le 2
ok "the third runs" wait_for 10 job_is slices "$third" RUNNING
is "P6: nobody is held for having been preempted" "$(on slices squeue -h -o %r | grep -ci held)" 0

note "a job that has asked for a signal gets it before it is stopped"
on slices scancel "$first" "$third"
ok "both nodes are free" wait_for 20 eval '[[ -z $(on slices squeue -h -o %i) ]]'
told=$(cluster_dir slices)/home/alice/signalled
# shellcheck disable=SC2016 # the job's shell expands it
fourth=$(as slices alice sbatch --parsable -H -A a --gpus=16 -N 2 --time=60 --signal=B:USR1@30 --output=/dev/null \
	--wrap "trap 'date +%s.%N >$told' USR1; while :; do sleep 0.2; done")
on slices scontrol update "jobid=$fourth" admincomment='[budget class=allocated contract=4]'
on slices scontrol release "$fourth"
ok "A runs" wait_for 20 job_is slices "$fourth" RUNNING
fifth=$(contracted slices bob b 16 600 'allocated contract=5' -N 2)
ok "A is stopped" wait_for 30 eval '[[ $(preempting_line slices $fourth) ]]'
line=$(preempting_line slices "$fourth")
ok "P7: its handler has run" test -s "$told"
signalled=$(cat "$told")
within "P7: as its contract ends" "$(awk -v a="$(word "$line" start)" -v b="$signalled" 'BEGIN { printf "%.3f", b - a - 4 }')" 1 1
notice=$(grep "signal to JobId=$fourth restart=0 before it is stopped for JobId=$fifth: notice=2" "$(controller_log slices)")
is "it was told once" "$(wc -l <<<"$notice")" 1
within "P7: its notice is over (KillWait, 2 s), and not much more" "$(gap "$notice" "$line")" 3 1
ok "the fifth runs" wait_for 10 job_is slices "$fifth" RUNNING
is "nobody was left to Slurm" "$(grep -c 'dropped: Slurm has tried' "$(controller_log slices)")" 0

ok "every run and preemption is as the rules say" audited slices --least 2

finish
