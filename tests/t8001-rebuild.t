#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Usage from before this plugin ran, or while its state was lost, comes from the
# accounting database (U10): the day of installation, rows that never end, and a
# damaged state file.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

budgets=$(budget_file <<-END
	past root 10 alice
	again root 10 bob
	live root 10 carl
	ghost root 10 dora
	whole root 10 emil
	less root 10 finn
END
)
cluster_up rebuild --nodes 4 --gpus 8 --cpus 16 --budgets "$budgets" \
	--conf 'PriorityParameters=window=2h' --conf 'MinJobAge=2'
rm -f "$budgets"

ended() { [[ $(on rebuild sacct -X -n -P -j "$1" -o State | tail -1) =~ ^(COMPLETED|CANCELLED|FAILED) ]]; }
# In slurmdbd as well as forgotten by slurmctld.
gone() { ended "$1" && [[ -z $(on rebuild scontrol -o show job "$1" 2>/dev/null) ]]; }
comment() { on rebuild scontrol -o show job "$1" | sed -n 's/.*AdminComment=\(.*[^ ]\) *\(SystemComment\|Comment\|StdErr\)=.*/\1/p'; }
recorded_comment() { on rebuild sacct -X -n -P -j "$1" -o AdminComment; }
# instant_of PATTERN: of the last such line of the log, in milliseconds.
instant_of() { date -d "$(grep -- "$1" "$(controller_log rebuild)" | tail -1 | sed 's/^\[\([^]]*\)\].*/\1/')" +%s%3N; }
used_some() { (($(raw_usage rebuild "$1") >= $2)); }
used() { [[ $(raw_usage rebuild "$1") == "$2" ]]; }
sql() { mariadb --no-defaults --socket="$(cluster_dir rebuild)/db/socket" --user=root -BNe "$1" slurm_acct_db; }
state_file() { printf '%s/state/slurm_budget_state' "$(cluster_dir rebuild)"; }
# add_row_without_end JOB NEW-ID: slurmdbd has one more run of that job, begun half an hour ago, which never ended.
add_row_without_end() {
	sql "create temporary table row select * from mini_job_table where id_job = $1 order by job_db_inx limit 1;
		update row set job_db_inx = (select max(job_db_inx) + 1 from mini_job_table), id_job = $2, time_end = 0,
			state = 1, time_submit = time_submit - 1800, time_eligible = time_eligible - 1800, time_start = time_start - 1800;
		insert into mini_job_table select * from row"
}
# flip FILE OFFSET: turns all bits of a byte.
flip() {
	local byte
	byte=$(od -An -tu1 -j "$2" -N 1 "$1")
	# shellcheck disable=SC2059
	printf "\\x$(printf %02x $((byte ^ 255)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

note "under priority/multifactor"
began=$(date +%s)
past=$(sleeper rebuild alice past 4 3)
again=$(sleeper rebuild bob again 8 60)
live=$(sleeper rebuild carl live 2 300)
ok "a job runs that will outlive the change" wait_for 20 job_is rebuild "$live" RUNNING
on rebuild scontrol update jobid="$live" admincomment='text of others'
ok "another one ends" wait_for 20 ended "$past"
ok "a third one runs" wait_for 20 job_is rebuild "$again" RUNNING
on rebuild scontrol requeue "$again"
ok "it is requeued" wait_for 10 job_is rebuild "$again" PENDING
on rebuild scontrol hold "$again"
ok "slurmctld has forgotten the one that ended" wait_for 20 gone "$past"
add_row_without_end "$past" 990001
add_row_without_end "$again" "$again"
want_past=$((4 * $(on rebuild sacct -X -n -P -j "$past" -o ElapsedRaw)))
want_again=$(on rebuild sacct -X -D -n -P -j "$again" -s requeued -o ElapsedRaw | awk '{ n += 8 * $1 } END { print n + 0 }')
ok "both have used something: $want_past and $want_again GPU-s" test "$want_past" -ge 12 -a "$want_again" -ge 8

note "U10: the day of installation"
cluster rebuild conf PriorityType=priority/budget >/dev/null
cluster rebuild restart slurmctld
is "usage is right from the first look on" "$(raw_usage rebuild past)" "$want_past"
took=$(($(instant_of 'usage rebuilt from the accounting database') - $(instant_of 'started on cluster')))
ok "the accounting database was asked within 3 s of slurmctld's start: $took ms" test "$took" -ge 0 -a "$took" -le 3000
is "US-05: the earlier run of a requeued job is counted" "$(raw_usage rebuild again)" "$want_again"
within "a job that runs is charged from its start on" "$(raw_usage rebuild live)" "$(recorded rebuild live "$began")" 4
is "US-07: a run that never ended in the database is left out" "$(raw_usage rebuild ghost)" 0
ok "US-07: and counted in the log, with that of the job that runs" logged rebuild '3 rows without an end'
ok "the log says that older history is missing" logged rebuild 'the accounting database has no run from before'
ok "the running job bears its tag, before the text of others" wait_for 3 eval \
	'[[ $(comment "$live") == "[budget class=allocated contract=none] text of others" ]]'

note "what the accounting database hears"
on rebuild scontrol release "$again"
ok "the requeued job runs again" wait_for 20 job_is rebuild "$again" RUNNING
ok "and bears its tag" wait_for 3 eval '[[ $(comment "$again") == "[budget class=allocated contract=none]" ]]'
whole=$(sleeper rebuild emil whole 1 4 --exclusive=user)
less=$(sleeper rebuild finn less 8 300 -N 2)
ok "a job keeps 7 GPUs from others that it has not been given" wait_for 20 job_is rebuild "$whole" RUNNING
ok "a job on two nodes runs" wait_for 20 job_is rebuild "$less" RUNNING
ok "and has used something" wait_for 10 used_some less 16
on rebuild scontrol update jobid="$less" NumNodes=1
smaller_by=$(raw_usage rebuild less)
ok "it gives one back, and goes on" wait_for 10 used_some less $((smaller_by + 12))
on rebuild scancel "$live" "$again" "$less"
ok "all end" wait_for 20 eval 'ended "$live" && ended "$again" && ended "$whole" && ended "$less"'
is "U10: slurmdbd has the tag of one" "$(recorded_comment "$live")" '[budget class=allocated contract=none] text of others'
is "U10: and of the other" "$(recorded_comment "$again")" '[budget class=allocated contract=none]'
is "U10: that of the node kept for a user says how many GPUs" "$(recorded_comment "$whole")" '[budget class=allocated contract=none gpus=8]'

note "RS-03: a damaged state file"
ok "slurmctld has forgotten all jobs" wait_for 20 eval '[[ -z $(on rebuild squeue -h -t all) ]]'
before=$(on rebuild sshare -a -n -P -o Account,User,RawUsage)
cluster rebuild stop slurmctld
ok "there is a state file" test -s "$(state_file)"
flip "$(state_file)" 100
cluster rebuild start slurmctld
ok "an error line says so" logged rebuild 'error: priority/budget:.*slurm_budget_state.*rebuilt from the accounting database'
ok "the file is kept" test -s "$(state_file).damaged"
is "usage is as before" "$(on rebuild sshare -a -n -P -o Account,User,RawUsage)" "$before"
is "that of the node kept for a user too" "$(raw_usage rebuild whole)" $((8 * $(on rebuild sacct -X -n -P -j "$whole" -o ElapsedRaw)))

note "a restart in good order"
cluster rebuild restart slurmctld
is "usage is as before" "$(on rebuild sshare -a -n -P -o Account,User,RawUsage)" "$before"
ok "from the state file" logged rebuild 'usage as saved at'
ok "US-07: rows without an end are still left out" used ghost 0

finish
