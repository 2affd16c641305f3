# SPDX-License-Identifier: GPL-2.0-or-later
#
# tests/audit --window: adds up GPU-seconds by leaf from slurmdbd's rows and compares them with a state of slurmctld.
# Durations are seconds, instants UTC seconds. Files: the runs known as lost, jobs, state, rows.

function weight(type) { return type in weight_of ? weight_of[type] : ("default" in weight_of ? weight_of["default"] : 1) }
# GPUs by weight: typed ones as their type, what the untyped count has more as the default.
function gpus(tres, comment,    list, n, i, kv, untyped, typed, sum) {
	if (match(comment, /^\[budget [^]]*gpus=[0-9\/]+/)) {
		kv = substr(comment, RSTART, RLENGTH)
		sub(/.*gpus=/, "", kv)
		n = split(kv, list, "/")
		return n == 2 ? list[1] / list[2] : list[1] + 0
	}
	n = split(tres, list, ",")
	for (i = 1; i <= n; i++) {
		if (split(list[i], kv, "=") != 2) continue
		if (kv[1] == "gres/gpu") untyped = kv[2] + 0
		else if (sub(/^gres\/gpu:/, "", kv[1])) { typed += kv[2]; sum += kv[2] * weight(kv[1]) }
	}
	return sum + (untyped > typed ? (untyped - typed) * weight("default") : 0)
}
function note_lost(key) {
	lost++
	if (!(key in known_lost) && lost_file != "/dev/null") print row_job[key], row_start[key] >>lost_file
}
function clipped(from, to) {
	if (from < begin) from = begin
	if (to > at) to = at
	return to > from ? to - from : 0
}
BEGIN {
	begin = at - window
	n = split(weights, list, "/")
	for (i = 1; i <= n; i++) { split(list[i], kv, ":"); weight_of[kv[1]] = kv[2] }
}
FILENAME == lost_file {
	split($0, word, " ")
	known_lost[word[1] SUBSEP word[2]] = 1
	next
}
FILENAME ~ /jobs$/ {
	split($0, word, " ")
	if (word[4] ~ /^(RUNNING|SUSPENDED|CONFIGURING|COMPLETING)$/) runs_on[word[1] SUBSEP word[2]] = 1
	if (word[4] == "CANCELLED" && word[2] == word[3]) never_started[word[1] SUBSEP word[3]] = 1
	next
}
# The state, as state_dump prints it: words, "-" for nothing.
FILENAME ~ /state$/ {
	split($0, word, " ")
	if (word[1] == "owner") name[word[2]] = word[3] SUBSEP word[4] SUBSEP word[5]
	if (word[1] == "usage") of_ledger[word[2] SUBSEP word[3] SUBSEP word[4]] = word[5]
	if (word[1] != "run" || (word[7] != "-" && word[7] <= word[6])) next
	key = word[2] SUBSEP word[6]
	seen[key] = 1
	owner[key] = name[word[4]]
	class[key] = word[5]
	end_of[key] = word[7]
	rate[key] = word[9] / 5040
	refunded[key] = word[11]
	stepped[key] = word[13] ~ /:/
	job_of[key] = word[2]
	start_of[key] = word[6]
	next
}
{ # a row of the database
	rows++
	if ($5 !~ /^[0-9]+$/) next
	g = gpus($9, $11)
	if (g == 0 || $3 == "root") next
	# What goes on after a resize has the start of the whole; it was submitted when it was resized.
	job = $1; start = $10 > $5 ? $10 : $5; end = $6 ~ /^[0-9]+$/ ? $6 : ""
	if (end != "" && end <= start) next
	key = job SUBSEP start
	# The part of a run after a resize belongs to that run, unless the state has it from the database.
	if (!(key in seen) && (job SUBSEP start) in resized_at) key = resized_at[job SUBSEP start]
	if ($8 == "RESIZING" && end != "") resized_at[job SUBSEP end] = key
	first_key[key] = 1
	row_job[key] = job
	if (!(key in row_start)) row_start[key] = start
	row_end[key] = end
	row_state[key] = $8
	row_account[key] = $2; row_user[key] = $3; row_partition[key] = $4
	held_off = seconds($7)
	if (held_off > 0) off[key] = 1
	to = end == "" ? at : end
	charge[key] += g * (clipped(start, to) - (end != "" && start >= begin && end <= at ? held_off : 0))
	free[key] = $11 ~ /^\[budget class=unallocated/
}
END {
	for (key in first_key) {
		if (compare && !(key in seen)) {
			if (row_start[key] >= at || (row_end[key] != "" && row_end[key] <= begin)) continue
			is_lost = row_end[key] == "" || key in known_lost || (row_job[key] SUBSEP row_end[key]) in never_started
			printf "%s: job %s from %s to %s (%s)\n", is_lost ? "lost by Slurm" : "only in the database", row_job[key], row_start[key], row_end[key] == "" ? "-" : row_end[key], row_state[key]
			if (!is_lost) missed++
			else note_lost(key)
			continue
		}
		if (free[key] || (compare && (class[key] == "unallocated" || refunded[key] == 1))) continue
		leaf = row_account[key] SUBSEP row_user[key] SUBSEP row_partition[key]
		if (compare) leaf = owner[key]
		else leaf = row_account[key] SUBSEP row_user[key] SUBSEP "-"
		if (compare && end_of[key] != "-" && (row_end[key] == "" || key in known_lost || (row_job[key] SUBSEP row_end[key]) in never_started)) { # slurmctld does not have it any more
			printf "lost by Slurm: job %s from %s, last seen at %s, to %s in the database\n", row_job[key], row_start[key], end_of[key], row_end[key] == "" ? "-" : row_end[key]
			sum[leaf] += rate[key] * clipped(row_start[key], end_of[key])
			note_lost(key)
			continue
		}
		if (compare && end_of[key] == "-" && row_end[key] != "" && row_end[key] < at && key in runs_on) {
			printf "end lost by Slurm: job %s from %s, ended at %s in the database, runs as slurmctld believes\n", row_job[key], row_start[key], row_end[key]
			sum[leaf] += rate[key] * clipped(row_start[key], at)
			lost++
			continue
		}
		if (off[key] || stepped[key]) loose[leaf] = 1
		else if (compare) {
			mine = rate[key] * clipped(start_of[key], end_of[key] == "-" ? at : end_of[key])
			if (mine - charge[key] > 0.001 || charge[key] - mine > 0.001)
				printf "differs: job %s from %s: to %s in the state, to %s in the database (%s), %.3f against %.3f GPU-seconds\n", job_of[key], start_of[key], end_of[key], row_end[key] == "" ? "-" : row_end[key], row_state[key], mine, charge[key]
		}
		sum[leaf] += charge[key]
		both++
	}
	if (!compare) {
		for (leaf in sum) { split(leaf, part, SUBSEP); printf "%s %s %d\n", part[1], part[2], sum[leaf] }
		exit 0
	}
	for (key in seen) {
		if (key in first_key || class[key] == "unallocated" || refunded[key] == 1) continue
		to = end_of[key] == "-" ? at : end_of[key]
		if (clipped(start_of[key], to) == 0) continue
		printf "only in the state: job %s from %s to %s: not told to the database\n", job_of[key], start_of[key], end_of[key]
		alone++
		sum[owner[key]] += rate[key] * clipped(start_of[key], to)
		if (stepped[key]) loose[owner[key]] = 1
	}
	for (leaf in of_ledger) if (!(leaf in sum)) sum[leaf] = 0
	for (leaf in sum) {
		split(leaf, part, SUBSEP)
		d = of_ledger[leaf] - sum[leaf]
		good = d < 0.001 && d > -0.001
		if (of_ledger[leaf] == 0 && sum[leaf] == 0) continue
		leaves++
		if (!good) bad++
		printf "%s: %s %s%s: %.3f GPU-seconds in the state, %.3f in the database%s\n", good ? "equal" : "DIFFERS", part[1], part[2], part[3] == "-" ? "" : " " part[3], of_ledger[leaf], sum[leaf], (!good && loose[leaf]) ? " (suspended or resized runs among them)" : ""
	}
	printf "audit at %d: %d leaves, %d differ; %d runs known to both, %d to the database alone, %d lost by Slurm, %d to slurmctld alone\n", at, leaves + 0, bad + 0, both + 0, missed + 0, lost + 0, alone + 0
	exit bad > 0 || (strict && missed > 0)
}