# SPDX-License-Identifier: GPL-2.0-or-later
#
# What slurmctld's log says of starts and preemptions, for tests/audit --contracts. Times are by the log, finer than the rows;
# `order` is the number of the line.
#
# A preemption p of 1..preemptions: by the plugin's line (ours[p]), by Slurm's (slurms[p]), or by both, which then follow
# each other: victim[p] and for_job[p] (jobs; "" if only Slurm's "had to be killed" stands), at[p], at_order[p], said[p] and
# said_for[p] (the two halves of our line: of the victim and of whom it was for).

kind == "log" && / (Allocate|Started|_slurm_rpc_allocate_resources) JobId=/ { note_start(job_number($0)); next }
kind == "log" && /preempting JobId=[0-9]/ { note_ours(); next }
kind == "log" && /preempted JobId=.*(to reclaim resources for|had to be killed)/ { note_slurms(); next }
kind == "log" && /_hold_job_rec: hold on JobId=/ { held_by_hand[job_number($0)] = log_time(); next }
kind == "log" && /(_slurm_rpc_update_job: complete|setting admin_comment to .* for) JobId=/ { changed_by_hand[job_number($0)] = log_time(); next }
kind == "log" { next }

function log_time(    text) {
	text = substr($0, 2)
	sub(/\].*$/, "", text)
	return instant_of(text)
}

function note_start(id,    n) {
	if (/NodeList=\(null\)/) return
	n = ++starts[id]
	start_time[id, n] = log_time()
	start_order[id, n] = FNR
}

function note_ours(    text, cut, p) {
	text = $0
	sub(/^.*preempting /, "", text)
	cut = index(text, " for JobId=")
	p = ++preemptions
	ours[p] = 1
	said[p] = cut ? substr(text, 1, cut - 1) : text
	said_for[p] = cut ? substr(text, cut + 5) : ""
	victim[p] = word_of(said[p], "JobId")
	for_job[p] = word_of(said_for[p], "JobId")
	at[p] = log_time()
	at_order[p] = FNR
	waiting_for_slurm[victim[p]] = p
}

function note_slurms(    id, for_id, p, text) {
	text = $0
	sub(/^.* for JobId=/, "JobId=", text)
	for_id = text == $0 ? "" : job_number(text)
	text = $0
	sub(/ has been .*$/, "", text)
	sub(/ had to .*$/, "", text)
	id = job_number(text)
	p = waiting_for_slurm[id]
	if (p && log_time() - at[p] <= 2) {
		delete waiting_for_slurm[id]
		if (for_id != "" && for_id != for_job[p]) finding("P1", "job " id " was stopped for job " for_id " by Slurm's line, for job " for_job[p] " by ours")
	} else {
		p = ++preemptions
		victim[p] = id; for_job[p] = for_id; at[p] = log_time(); at_order[p] = FNR
	}
	slurms[p] = 1
}

# match_log: which start of the log is which run's, and which run a preemption stopped.
function match_log(    i, n, p, k, best) {
	for (i = 1; i <= runs; i++) {
		began[i] = start[i]
		order_began[i] = ""
		for (n = 1; n <= starts[job[i]]; n++) {
			if (start_time[job[i], n] < start[i] - 1 || start_time[job[i], n] >= start[i] + 3) continue
			if (start_time[job[i], n] > start[i]) began[i] = start_time[job[i], n]
			order_began[i] = start_order[job[i], n]
		}
	}
	for (p = 1; p <= preemptions; p++) {
		best = 0
		for (k = 1; k <= runs_of[victim[p]]; k++) {
			i = runs_of[victim[p], k]
			if (start[i] <= at[p] + 1 && (end[i] == "" || end[i] >= int(at[p]) - 1)) { best = i; break }
		}
		victim_run[p] = best
		if (best) stopped_by[best] = p
	}
}
