# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What people and tests ask of a running private cluster: commands in it, budget
# trees, backlogs, and GPU-seconds by slurmdbd's own records. The sourcing script
# defines cluster_dir NAME, the folder of a cluster.

minicluster=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/minicluster

# on NAME COMMAND...: as the cluster's administrator.
on() { "$minicluster" exec --dir "$(cluster_dir "$1")" -- "${@:2}"; }

# as NAME USER COMMAND...: as one of the cluster's users.
as() { "$minicluster" exec --dir "$(cluster_dir "$1")" --user "$2" -- "${@:3}"; }

# cluster NAME SUBCOMMAND...: minicluster's own subcommands.
cluster() { "$minicluster" "$2" --dir "$(cluster_dir "$1")" "${@:3}"; }

# The controller's log of a cluster.
controller_log() { printf '%s/log/slurmctld.log' "$(cluster_dir "$1")"; }

# wait_for SECONDS COMMAND...: polls until the command succeeds; fails at the deadline.
wait_for() {
	local deadline=$(($(date +%s%N) + ${1%%.*} * 1000000000))
	shift
	until "$@"; do
		if (($(date +%s%N) > deadline)); then
			printf '#   gave up waiting for: %s\n' "$*"
			return 1
		fi
		sleep 0.1
	done
}


# budget_file: reads lines `ACCOUNT PARENT SHARE [USER[:SHARE]...]`, a user without
# a share having fairshare=parent; prints the name of a file for `minicluster up --budgets`.
budget_file() {
	local file
	file=$(mktemp "${TMPDIR:-/tmp}/slurm-budget-test-$$-XXXXXX.cfg")
	awk '
		function share(u) { return u ~ /:/ ? substr(u, index(u, ":") + 1) : "parent" }
		BEGIN { print "Cluster - mini"; print "Parent - root" }
		{
			if ($2 != "root") print "Parent - " $2
			else print "Parent - root"
			print "Account - " $1 ":Fairshare=" $3
			if (NF > 3) print "Parent - " $1
			for (i = 4; i <= NF; i++) { name = $i; sub(/:.*/, "", name); print "User - " name ":Fairshare=" share($i) }
		}' >"$file"
	printf '%s' "$file"
}

# sleeper NAME USER ACCOUNT GPUS SECONDS [sbatch options]: submits a job that
# holds GPUs for so long; prints its id.
sleeper() {
	as "$1" "$2" sbatch --parsable -A "$3" --gpus="$4" --time=60 --output=/dev/null "${@:6}" --wrap "exec sleep $5" | cut -d';' -f1
}

# contracted NAME USER ACCOUNT GPUS SECONDS TERMS [sbatch options]: as sleeper, with terms as in a tag ("allocated
# contract=20", "unallocated") that nobody had to be asked for.
contracted() {
	local job
	job=$(sleeper "$1" "$2" "$3" "$4" "$5" --hold "${@:7}") || return
	on "$1" scontrol update jobid="$job" admincomment="[budget class=$6]" >/dev/null
	on "$1" scontrol release "$job" >/dev/null
	echo "$job"
}

# preempting_line NAME JOB [LAST]: what the controller's log says of stopping the job for another, the first time or the last.
preempting_line() {
	grep "preempting JobId=$2 " "$(controller_log "$1")" | if [[ ${3:-} ]]; then tail -1; else head -1; fi
}

# word LINE KEY: the value of KEY=value in a line.
word() { grep -o "\b$2=[^ ]*" <<<"$1" | head -1 | cut -d= -f2-; }

# seconds_of LINE: the time at the front of a line of slurmctld's log, in seconds with fraction.
seconds_of() { date -d "$(sed -E 's/^\[([^]]*)\].*/\1/' <<<"$1")" +%s.%N; }

# sleepers NAME USER ACCOUNT GPUS SECONDS COUNT: many of these from one client call.
sleepers() {
	# shellcheck disable=SC2016
	as "$1" "$2" bash -c 'for ((i = 0; i < $4; i++)); do
		sbatch -Q -A "$1" --gpus="$2" --time=60 --output=/dev/null --wrap "exec sleep $3" >/dev/null || exit 1
	done' sleepers "$3" "$4" "$5" "$6"
}

# instant EPOCH: as Slurm's commands take it.
instant() { date -d "@$1" +%FT%T; }

# gpu_seconds NAME FROM TO: "account gpu_seconds" by slurmdbd's records between
# two instants (epoch), one line an account, and "total" last.
gpu_seconds() {
	on "$1" env SLURM_TIME_FORMAT=%s sacct -a -X -D -n -P -S "$(instant "$2")" -E now -o Account,Start,End,AllocTRES,Submit |
		awk -F'|' -v from="$2" -v to="$3" '
			{
				if ($2 !~ /^[0-9]+$/ || !match($4, /gres\/gpu=[0-9]+/)) next
				gpus = substr($4, RSTART + 9, RLENGTH - 9)
				start = $5 > $2 ? $5 : $2 # after a resize
				if (start < from) start = from
				end = ($3 !~ /^[0-9]+$/ || $3 > to) ? to : $3
				if (end > start) { sum[$1] += gpus * (end - start); total += gpus * (end - start) }
			}
			END { for (a in sum) print a, sum[a]; print "total", total + 0 }'
}

# raw_usage NAME ACCOUNT [USER]: what sshare shows, GPU-seconds in the window.
raw_usage() {
	on "$1" sshare -a -n -P -o Account,User,RawUsage | awk -F'|' -v a="$2" -v u="${3:-}" \
		'{ gsub(/ /, "", $1) } $1 == a && $2 == u { print $3; exit }'
}

# share_field NAME ACCOUNT USER FIELD: one field of sshare, long form.
share_field() {
	on "$1" sshare -a -l -n -P -o "Account,User,$4" | awk -F'|' -v a="$2" -v u="$3" \
		'{ gsub(/ /, "", $1) } $1 == a && $2 == u { print $3; exit }'
}

# priority NAME JOB: the number that squeue shows.
priority() { on "$1" squeue -h -j "$2" -o %Q; }

state() { on "$1" squeue -h -j "$2" -o %T 2>/dev/null; }

job_is() { [[ $(state "$1" "$2") == "$3" ]]; }

# order_of NAME JOB...: these pending jobs, first first, on one line.
order_of() {
	local name=$1 ids
	shift
	ids=$(IFS=,; echo "$*")
	on "$name" squeue -h -r -t PD -j "$ids" -o '%Q %A' | sort -rn | awk '{ printf "%s%s", sep, $2; sep = " " } END { print "" }'
}

order_is() {
	local name=$1 wanted=$2
	# shellcheck disable=SC2086
	[[ $(order_of "$name" $wanted) == "$wanted" ]]
}

# percent PART WHOLE
percent() { awk -v p="${1:-0}" -v w="${2:-0}" 'BEGIN { printf "%.2f", (w > 0 ? 100 * p / w : 0) }'; }

# recorded NAME ACCOUNT FROM: GPU-seconds by slurmdbd's records since an instant (epoch).
recorded() { gpu_seconds "$1" "$3" "$(on "$1" date +%s)" | awk -v a="$2" '$1 == a { n = $2 } END { print n + 0 }'; }

# settled NAME ACCOUNT FROM: sshare shows just that.
settled() { [[ $(raw_usage "$1" "$2") == "$(recorded "$1" "$2" "$3")" ]]; }

# used NAME ACCOUNT N: at least N GPU-seconds.
used() { awk -v a="$(raw_usage "$1" "$2")" -v b="$3" 'BEGIN { exit !(a != "" && a >= b) }'; }

# ended NAME JOB...: slurmdbd has the ends of all of them.
ended() {
	local job
	for job in "${@:2}"; do
		[[ $(on "$1" sacct -X -n -P -j "$job" -o State | tail -1) =~ ^(COMPLETED|CANCELLED|FAILED|NODE_FAIL|TIMEOUT) ]] || return 1
	done
}

# serves NAME: slurmctld answers.
serves() { on "$1" scontrol ping 2>/dev/null | grep -q 'is UP'; }

# told_all NAME: slurmctld has nothing left to tell slurmdbd.
told_all() { on "$1" sdiag 2>/dev/null | grep -q 'DBD Agent queue size: *0'; }

# log_lines NAME PATTERN: how many lines of slurmctld's log have it; logged NAME PATTERN: any; logged_since NAME PATTERN COUNT: more than so many.
log_lines() { grep -c -- "$2" "$(controller_log "$1")"; }
logged() { grep -q -- "$2" "$(controller_log "$1")"; }
logged_since() { (($(log_lines "$1" "$2") > $3)); }

# audited NAME [audit options]: tests/audit finds nothing against the contracts of what has run so far. Shows findings and counts.
audited() {
	local name=$1 out status=0
	shift
	wait_for 20 told_all "$name"
	out=$(on "$name" "${minicluster%/*}/audit" --contracts "$@" 2>&1) || status=$?
	grep -v '^early end' <<<"$out" | sed 's/^/#   /'
	return "$status"
}
