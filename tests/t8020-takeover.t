#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A backup slurmctld with its clock 90 s ahead takes over and gives back (RS-06 of
# the public cases): once by `scontrol takeover`, once by itself; the primary is
# killed with SIGKILL each time, with jobs running and pending. Records that begin
# by one clock and end by the other are what they are: usage has to equal their end
# less their start, and nothing less than that when they end before they start.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

ahead=90
budgets=$(budget_file <<-END
	much root 10 alice
	none root 10 bob
	some root 10 carol
	never root 10 dave
END
)
began=$SECONDS
cluster_up pair --nodes 3 --gpus 8 --cpus 16 --backup $ahead --budgets "$budgets" --priority priority/budget \
	--conf 'MinJobAge=2' --conf 'SlurmctldTimeout=9'
rm -f "$budgets"
dir=$(cluster_dir pair)

note_time() { note "$((SECONDS - began)) s: $*"; }
log_of() { printf '%s/log/%s.log' "$dir" "$1"; }

# in_control DAEMON: by its log, it has control and has not given it up.
in_control() {
	[[ $(grep -oE 'Running as primary controller|running in background mode|Terminate signal' "$(log_of "$1")" | tail -1) == Running* ]]
}
stands_by() { [[ $(grep -oE 'Running as primary controller|running in background mode' "$(log_of "$1")" | tail -1) == running* ]]; }

# our_thread DAEMON: it has the thread that charges and orders.
our_thread() {
	local pid
	read -r pid _ <"$dir/run/$1.pid" && grep -qsx budget "/proc/$pid/task/"*/comm
}
no_thread() { ! our_thread "$1"; }

# quiet_standby: since it stands by, the backup has said nothing of ours.
quiet_standby() {
	awk '/running in background mode/ { n = 0 } /priority\/budget/ { n++ } END { exit n > 0 }' "$(log_of slurmctld-backup)"
}

# read_state DAEMON N: it has read our state so many times.
read_state() { (($(grep -c 'priority/budget: usage as saved at' "$(log_of "$1")") == $2)); }

# saved: Slurm's own state on disk has all jobs as they are. (It is up to 5 s late, and what it has not is lost by SIGKILL.)
saved() {
	touch "$dir/before"
	on pair scontrol update jobid="$1" comment="saved $SECONDS"
	wait_for 15 test "$dir/state/job_state" -nt "$dir/before"
}

# clock DAEMON: its time.
clock() { echo $(($(date +%s) + ($([[ $1 == *backup ]] && echo 1 || echo 0) * ahead))); }

# recorded ACCOUNT NOW: its GPU-seconds by slurmdbd's records, of runs that go on up to NOW.
recorded() {
	on pair env SLURM_TIME_FORMAT=%s sacct -a -X -D -n -P -S now-1days -E now+1days -o Account,Start,End,AllocTRES |
		awk -F'|' -v a="$1" -v now="$2" '
			$1 == a && $2 ~ /^[0-9]+$/ && match($4, /gres\/gpu=[0-9]+/) {
				end = $3 ~ /^[0-9]+$/ ? $3 : now
				if (end > $2) sum += substr($4, RSTART + 9, RLENGTH - 9) * (end - $2)
			}
			END { print sum + 0 }'
}

# charged_as_recorded DAEMON TOLERANCE ACCOUNT...: sshare shows what the records say, for each. Where jobs run, the two are asked
# one after the other: up to 1.5 s of 16 GPUs.
charged_as_recorded() {
	local account raw
	for account in "${@:3}"; do
		raw=$(raw_usage pair "$account")
		awk -v g="${raw:-none}" -v w="$(recorded "$account" "$(clock "$1")")" -v t="$2" \
			'BEGIN { d = g - w; exit !(g ~ /^[0-9]+$/ && d <= t && d >= -t) }' || return 1
	done
}
show_usage() {
	local account
	for account in much none some; do
		note "$account: sshare $(raw_usage pair $account), records $(recorded $account "$(clock "$1")")"
	done
}

running() { on pair squeue -h -t R -o '%i %S' | sort -n | paste -sd' '; }
forgotten() { ! on pair scontrol show job "$1" >/dev/null 2>&1; }
ended() { [[ $(on pair sacct -X -n -P -S now-1days -E now+1days -j "$1" -o State | tail -1) =~ ^(COMPLETED|CANCELLED|FAILED) ]]; }
runs_of() { on pair sacct -X -D -n -P -S now-1days -E now+1days -j "$1" -o Start | grep -c ^20; }
none_running() { [[ -z $(on pair squeue -h -t R,CG) ]]; }

ahead_of() { (($(priority pair "$1") > $(priority pair "$2"))); }

# ranks_right SECONDS FIRST SECOND: for so long FIRST has the higher number.
ranks_right() {
	local until=$((SECONDS + $1))
	while ((SECONDS < until)); do
		if ! ahead_of "$2" "$3"; then
			note "numbers $(priority pair "$2") and $(priority pair "$3")"
			return 1
		fi
	done
}

# Before our first pass sshare shows what slurmctld has read from its own file.
used_much() { (($(raw_usage pair much) >= $1)); }
uses_exactly() { [[ $(raw_usage pair "$1") == "$2" ]]; }

# --- the primary -----------------------------------------------------------------------------------------------------

early=$(sleeper pair alice much 8 2)
long=$(sleeper pair alice much 8 300)
again=$(sleeper pair carol some 8 300)
for job in "$early" "$long" "$again"; do ok "job $job runs" wait_for 20 job_is pair "$job" RUNNING; done
ok "the first one ends" wait_for 20 ended "$early"
keep=$(sleeper pair carol some 8 300)
ok "a job takes its place" wait_for 20 job_is pair "$keep" RUNNING
poor=$(sleeper pair alice much 8 300)
rich=$(sleeper pair bob none 8 4)
ok "who used nothing is ahead" wait_for 10 ahead_of "$rich" "$poor"
ok "the standby is one" stands_by slurmctld-backup
ok "the primary has our thread" our_thread slurmctld
ok "the standby has not" no_thread slurmctld-backup
ok "nor has our plugin said anything there" quiet_standby
ok "the ended job is forgotten by slurmctld" wait_for 30 forgotten "$early"
ok "usage is as recorded" wait_for 5 charged_as_recorded slurmctld 24 much none some
ok "our state is on disk" wait_for 15 test -s "$dir/state/slurm_budget_state"
used=$(raw_usage pair much)
jobs=$(running)

# backup_goes_on TIME SECONDS: the backup has taken control for the so-many-th time, and goes on where the primary was.
backup_goes_on() {
	ok "it has our thread" wait_for 5 our_thread slurmctld-backup
	ok "and our state" wait_for 5 read_state slurmctld-backup "$1"
	is "the same jobs run, since the same instants" "$(running)" "$jobs"
	ok "from its first answer on it ranks right" ranks_right "$2" "$rich" "$poor"
	ok "usage is no less than it was" used_much "$used"
}

# --- taken over on command -------------------------------------------------------------------------------------------

ok "Slurm's state is on disk" saved "$keep"
note_time "SIGKILL, takeover by command"
cluster pair kill slurmctld
on pair scontrol takeover
ok "the backup takes control" wait_for 20 in_control slurmctld-backup
backup_goes_on 1 3
ok "usage is as recorded, by its clock" wait_for 5 charged_as_recorded slurmctld-backup 24 much none some

note_time "a requeue, starts and ends by its clock"
on pair scontrol requeue "$again"
ok "whoever used nothing starts first" wait_for 10 job_is pair "$rich" RUNNING
is "and the other one waits" "$(state pair "$poor")" PENDING
ok "it ends" wait_for 15 ended "$rich"
on pair scancel "$long"
ok "a job of the primary's clock ends" wait_for 10 ended "$long"
ok "the next ones start" wait_for 10 job_is pair "$poor" RUNNING
ok "the requeued one too" wait_for 20 job_is pair "$again" RUNNING
is "as its second run" "$(runs_of "$again")" 2
fresh=$(sleeper pair bob none 8 300)
ok "a job is taken" job_is pair "$fresh" PENDING
on pair scancel "$poor"
ok "and runs" wait_for 10 job_is pair "$fresh" RUNNING
ok "usage is as recorded" wait_for 5 charged_as_recorded slurmctld-backup 24 much none some
show_usage slurmctld-backup
used=$(raw_usage pair much)
jobs=$(running)

# --- and given back --------------------------------------------------------------------------------------------------

note_time "the primary comes back"
ok "the primary starts" cluster pair start slurmctld
ok "it takes control" wait_for 20 in_control slurmctld
ok "the backup stands by" wait_for 5 stands_by slurmctld-backup
ok "the primary has our thread" wait_for 5 our_thread slurmctld
ok "the standby has none any more" no_thread slurmctld-backup
ok "and has said nothing since" quiet_standby
ok "the primary has our state" read_state slurmctld 1
is "the same jobs run, since the same instants" "$(running)" "$jobs"
ok "what has ended stays charged" wait_for 2 uses_exactly much "$used"
rich=$(sleeper pair bob none 24 3)
never=$(sleeper pair dave never 24 3)
ok "who used a little, by the other clock, is behind who used nothing" wait_for 5 ahead_of "$never" "$rich"
on pair scancel "$rich" "$never"
show_usage slurmctld
on pair scancel "$fresh"
ok "a job of the other clock's ends, before its start" wait_for 10 ended "$fresh"
ok "usage is as recorded" wait_for 5 charged_as_recorded slurmctld 0 much none

# --- taken over by itself --------------------------------------------------------------------------------------------

poor=$(sleeper pair alice much 16 300)
rich=$(sleeper pair bob none 16 3)
ok "who used less is ahead" wait_for 10 ahead_of "$rich" "$poor"
used=$(raw_usage pair much)
jobs=$(running)
ok "Slurm's state is on disk" saved "$keep"
note_time "SIGKILL, and nobody asks the backup"
cluster pair kill slurmctld
ok "the backup takes control by itself" wait_for 40 in_control slurmctld-backup
backup_goes_on 2 2
on pair scancel "$again"
ok "whoever used less starts first" wait_for 10 job_is pair "$rich" RUNNING
ok "it ends" wait_for 15 ended "$rich"
note_time "the primary comes back once more"
ok "the primary starts" cluster pair start slurmctld
ok "it takes control" wait_for 20 in_control slurmctld
ok "the standby has no thread of ours" wait_for 5 no_thread slurmctld-backup
ok "the primary has our state" read_state slurmctld 2
on pair scancel "$poor" "$keep"
ok "all jobs end" wait_for 20 none_running
ok "every account's usage is its runs', to the second" wait_for 5 charged_as_recorded slurmctld 0 much none some
show_usage slurmctld
ok "the standby has said nothing since" quiet_standby
ok "nobody else wrote the state" eval '! grep -hE "priority/budget: .*(another slurmctld|damaged|cannot)" "$(log_of slurmctld)" "$(log_of slurmctld-backup)"'
on pair sacct -a -X -D -S now-1days -E now+1days -o JobID,Account,Start,End,ElapsedRaw,State | sed 's/^/# /'
note_time "done"

finish
