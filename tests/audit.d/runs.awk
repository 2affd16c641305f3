# SPDX-License-Identifier: GPL-2.0-or-later
#
# What tests/audit --contracts knows: the runs that slurmdbd has rows of, what each held on each node, the nodes, and who
# may preempt whom by configuration. Input: one kind of file after the other, see read_* below; kind=... is set before each.
#
# A run i of 1..runs: job[i], restart[i], account[i], user[i], partition[i], qos[i], reservation[i], base[i] (the start that
# its contract counts from), start[i] (that of this row: later after a resize), end[i] ("" if it goes on), suspended[i],
# state[i], gpus[i], cpus[i], memory[i], limit[i] ("" if none), tag[i], line[i] (the submission), began[i] (start by the log, finer).
# held[i, node] GPUs; places_known[i]: not just divided evenly. runs_of[job, 1..runs_of[job]] by start; tasks_of[array, 1..] as read;
# het_job[i] the job of whose parts it is one.

# --- slurmdbd's rows: JobIDRaw|Account|User|Partition|QOS|Reservation|Submit|Start|End|Suspended|State|AllocTRES|NodeList|
# TimelimitRaw|JobID|AdminComment|SubmitLine; a step's row stands behind its job's.
kind == "rows" && $1 ~ /^[0-9]+$/ { read_row(); next }
kind == "rows" && $1 ~ /^[0-9]+\.batch$/ && runs && $1 == job[runs] ".batch" { first_held[runs] = tres_count($12, "gres/gpu"); next }
kind == "rows" { next }

function read_row(    i, array) {
	rows_seen++
	if (state_only($11)) { pending_end[$1] = $9; pending_state[$1] = $11 }
	if (($8 !~ /^[0-9]+$/ && $11 !~ /^PREEMPTED/) || $13 == "None assigned" || $13 == "") return
	i = ++runs
	job[i] = $1; account[i] = $2; user[i] = $3; partition[i] = $4; qos[i] = $5; reservation[i] = $6
	if ($8 !~ /^[0-9]+$/) without_start[i] = $9
	base[i] = $8 + 0
	start[i] = $7 > $8 ? $7 + 0 : $8 + 0
	end[i] = $9 ~ /^[0-9]+$/ ? $9 + 0 : ""
	suspended[i] = seconds($10)
	state[i] = $11
	gpus[i] = tres_count($12, "gres/gpu"); cpus[i] = tres_count($12, "cpu"); memory[i] = tres_count($12, "mem")
	node_list[i] = $13
	limit[i] = $14 ~ /^[0-9]+$/ ? $14 * 60 : ""
	array = $15
	if (array ~ /\+/) het_job[i] = int(array) # 8+1 is a part of heterogeneous job 8
	if (sub(/_.*$/, "", array)) tasks_of[array, ++tasks_of[array]] = i
	tag[i] = tag_of($16)
	line[i] = $17
}
# A job that ended without a start, or has not started.
function state_only(state) { return state ~ /^(PENDING|CANCELLED|DEADLINE)/ }

# --- scontrol -o -d show job: GPUs by node; as places any number of times one behind the other, as jobs what is so now.
kind == "places" && /^JobId=/ { read_places(word_of($0, "JobId")); next }
kind == "jobs" && /^JobId=/ { read_job(word_of($0, "JobId")); read_places(word_of($0, "JobId")); next }

function read_job(id) {
	job_state[id] = word_of($0, "JobState"); job_reason[id] = word_of($0, "Reason"); job_restarts[id] = word_of($0, "Restarts")
	job_priority[id] = word_of($0, "Priority"); job_nice[id] = word_of($0, "Nice"); job_limit[id] = word_of($0, "TimeLimit")
	job_tag[id] = match($0, / AdminComment=\[budget [^]]*\]/) ? tag_of(substr($0, RSTART + 14, RLENGTH - 14)) : ""
}
function read_places(id,    text, from, part, list, n, i, g) {
	if (word_of($0, "JobState") !~ /^(RUNNING|SUSPENDED|STOPPED)$/) return # who ends gives up node after node
	text = $0
	from = word_of($0, "StartTime")
	if (from !~ /^[0-9]+$/) from = int(instant_of(from))
	while (match(text, / Nodes=[^ ]+ CPU_IDs=[^ ]+ Mem=[0-9]+ GRES=[^ ]*/)) {
		part = substr(text, RSTART + 1, RLENGTH - 1)
		text = substr(text, RSTART + RLENGTH)
		g = 0
		n = split(word_of(part, "GRES"), list, /\),?/)
		for (i = 1; i <= n; i++) {
			if (list[i] !~ /^gpu/) continue
			sub(/\(.*$/, "", list[i]); sub(/^.*:/, "", list[i])
			g += list[i]
		}
		n = nodes_of(word_of(part, "Nodes"), list)
		for (i = 1; i <= n; i++) seen_held[id, from, list[i]] = g
		seen_places[id, from] = 1
	}
}

# --- scontrol -o show nodes
kind == "nodes" && /^NodeName=/ { read_node(); next }

function read_node(    name, text) {
	name = word_of($0, "NodeName")
	node[++nodes] = name
	has_cpus[name] = word_of($0, "CPUTot"); has_memory[name] = word_of($0, "RealMemory")
	text = word_of($0, "Gres")
	while (match(text, /gpu(:[^:,(]+)?:[0-9]+/)) {
		has_gpus[name] += last_number(substr(text, RSTART, RLENGTH))
		text = substr(text, RSTART + RLENGTH)
	}
	all_gpus += has_gpus[name]
}
function last_number(text) { sub(/^.*:/, "", text); return text + 0 }

# --- scontrol show config, show partition -o, sacctmgr -n -P show qos format=Name,Priority, show assoc format=Account,User,Share
kind == "config" { if (split($0, pair, / += /) == 2) setting[pair[1]] = pair[2]; next }
kind == "partitions" { if (word_of($0, "PreemptMode") == "OFF") never_partitions = never_partitions "," word_of($0, "PartitionName"); next }
kind == "qos" { qos_priority[$1] = $2; next }
kind == "associations" { if ($2 != "") share_of[$1, $2] = $3; else account_share[$1] = $3; next }

# --- once all is read

# find_starts: of a run that is stopped seconds after its start, slurmdbd may have no start; the log has it.
function find_starts(    i, n) {
	for (i in without_start) {
		base[i] = start[i] = end[i]
		for (n = 1; n <= starts[job[i]]; n++) if (start_time[job[i], n] <= end[i] + 1) base[i] = start[i] = int(start_time[job[i], n])
		not_told("job " job[i] " has no start in the database; by the log it is " start[i])
	}
}

# number_runs: restart counts, in the order of starts; what goes on after a resize is the same run.
function number_runs(    i, k, n, other) {
	for (i = 1; i <= runs; i++) {
		n = ++runs_of[job[i]]
		for (k = n; k > 1 && later(runs_of[job[i], k - 1], i); k--) runs_of[job[i], k] = runs_of[job[i], k - 1]
		runs_of[job[i], k] = i
	}
	for (other in job_state) if (!(other in runs_of)) runs_of[other] = 0
	for (i = 1; i <= runs; i++) {
		if (numbered[job[i]]++) continue
		n = 0
		for (k = 1; k <= runs_of[job[i]]; k++) {
			other = runs_of[job[i], k]
			restart[other] = n
			if (state[other] !~ /^RESIZING/) n++
		}
		ended_runs[job[i]] = n
	}
}
function later(i, j) { return start[i] > start[j] || (start[i] == start[j] && end[i] != "" && end[j] != "" && end[i] > end[j]) }

# tag_runs: the tag of a run that goes on is in its job's record alone.
function tag_runs(    i) {
	for (i = 1; i <= runs; i++) {
		if (end[i] == "" && tag[i] == "" && job[i] in job_tag) tag[i] = job_tag[job[i]]
		class[i] = word_of(tag[i], "class")
		contract[i] = class[i] == "allocated" ? word_of(tag[i], "contract") + 0 : 0
		has_tag[i] = class[i] == "unallocated" || (class[i] == "allocated" && word_of(tag[i], "contract") ~ /^[0-9]+$/)
		# C9: without a readable contract protected for the longest one.
		if (!has_tag[i] && gpus[i] > 0 && user[i] != "root") { class[i] = "allocated"; contract[i] = maximum }
		protected_until[i] = base[i] + contract[i] + suspended[i]
	}
}

# place_runs: GPUs by node. Known of one node, of whole nodes, where the job's record was seen, and of two nodes with
# a batch step, which has the first one's; else divided evenly.
function place_runs(    i, k, n, list, whole, even) {
	for (i = 1; i <= runs; i++) {
		n = node_count[i] = nodes_of(node_list[i], list)
		whole = 0
		for (k = 1; k <= n; k++) { on_node[i, k] = list[k]; whole += has_gpus[list[k]] }
		even = n ? gpus[i] / n : 0
		places_known[i] = 1
		for (k = 1; k <= n; k++) {
			if (n == 1) held[i, list[k]] = gpus[i]
			else if (whole == gpus[i]) held[i, list[k]] = has_gpus[list[k]]
			else if ((job[i], base[i]) in seen_places) held[i, list[k]] = seen_held[job[i], base[i], list[k]] + 0
			else if (n == 2 && i in first_held) held[i, list[k]] = k == 1 ? first_held[i] : gpus[i] - first_held[i]
			else { held[i, list[k]] = even; places_known[i] = gpus[i] == 0 }
			runs_on[list[k], ++runs_on[list[k]]] = i
		}
	}
}

# leaf_of(run): B1, B3: who has fairshare=parent is in the account's leaf. "" where an account itself is transparent.
function leaf_of(i,    share) {
	share = share_of[account[i], user[i]]
	if (share != "parent" && share != "2147483647") return account[i] " " user[i]
	if (account_share[account[i]] == "parent" || account_share[account[i]] == "2147483647") return ""
	return account[i]
}

function goes_on_at(i, t) { return end[i] == "" || end[i] > t }
function run_name(i) { return "job " job[i] " (run " restart[i] ", from " start[i] ")" }
