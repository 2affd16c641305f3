# SPDX-License-Identifier: GPL-2.0-or-later
#
# tests/audit --contracts: rules C1 to C9 and P1 to P6 over what runs.awk and log.awk have read. Options come as variables:
# now, since, margin (thousandths), maximum (s), bound (s from a preemption to the start it served), settle (s that an ended
# job may still hold its place), least (preemptions), never_partitions, never_qos, shares, from, to, points.
# Lines: `finding RULE: ...`, `early end: ...`, `not told: ...`, and one with the counts.

function finding(rule, text) { findings++; print "finding " rule ": " text }
function not_told(text) { untold++; print "not told: " text }

END {
	read_settings()
	find_starts()
	number_runs()
	tag_runs()
	place_runs()
	match_log()
	check_records()
	for (p = 1; p <= preemptions; p++) {
		if (!check_known(p)) continue
		check_contract(p)
		check_right(p)
		check_text(p)
		check_served(p)
	}
	for (p = preemptions; p >= 1; p--) if (served_by[p]) promised[served_by[p]] = p
	for (p = 1; p <= preemptions; p++) if (served_by[p]) check_need(p)
	check_states()
	check_early_ends()
	check_nodes()
	check_return()
	if (shares != "") check_shares()
	if (preemptions < least) finding("audit", (preemptions + 0) " preemptions were seen, at least " least " are wanted")
	if (!rows_seen) finding("audit", "no rows: nothing was checked")
	report()
	exit findings > 0
}

# read_settings: what no option gave, from Slurm's configuration.
function read_settings(    ours, slurms, interval) {
	ours = setting["PriorityParameters"]
	slurms = setting["SchedulerParameters"]
	if (margin == "") margin = after_equals(ours, "margin") == "" ? 50 : 1000 * after_equals(ours, "margin")
	if (maximum == "") maximum = after_equals(ours, "max_min_runtime") == "" ? 28800 : duration(after_equals(ours, "max_min_runtime"))
	never_partitions = never_partitions "," names_in(after_equals(ours, "exempt_partition"))
	never_qos = never_qos "," names_in(after_equals(ours, "exempt_qos"))
	interval = after_equals(slurms, "sched_interval") == "" ? 60 : after_equals(slurms, "sched_interval")
	if (after_equals(slurms, "bf_interval") + 0 > interval + 0) interval = after_equals(slurms, "bf_interval")
	if (bound == "") bound = setting["KillWait"] + 10 + interval
}
function names_in(list) { gsub(/\//, ",", list); return list }
function after_equals(list, key) {
	gsub(/,/, " ", list)
	return word_of(list, key)
}

# --- C1, C4: every record

function check_records(    i, id) {
	for (i = 1; i <= runs; i++) {
		check_terms(run_name(i), tag[i], limit[i])
		if (tag[i] != "") tagged++
	}
	for (id in job_tag) if (job_state[id] == "PENDING")
		check_terms("pending job " id, job_tag[id], job_limit[id] ~ /:/ ? seconds(job_limit[id]) : "")
}
function check_terms(name, text, seconds_limit,    minimum) {
	if (text == "") return
	minimum = word_of(text, "contract")
	if (word_of(text, "class") == "unallocated") { if (minimum != "") finding("C3", name " is unallocated and has a contract of " minimum " s"); return }
	if (minimum == "none") return # it began before anybody was asked
	if (word_of(text, "class") != "allocated" || minimum !~ /^[0-9]+$/) { finding("C1", name " has a tag that cannot be read: " text); return }
	if (minimum + 0 > maximum) finding("C1", name " has a minimum of " minimum " s, the longest is " maximum)
	if (seconds_limit != "" && minimum + 0 > seconds_limit) finding("C4", name " has a minimum of " minimum " s and a limit of " seconds_limit)
}

# --- each preemption

function preemption_name(p) { return "job " victim[p] " stopped" (for_job[p] == "" ? "" : " for job " for_job[p]) " at " int(at[p]) }

# check_known: the run is known, and both lines stand.
function check_known(p) {
	if (!victim_run[p]) {
		if (at[p] >= since) finding("P1", preemption_name(p) ": no row of a run that it could have been")
		return 0
	}
	if (!ours[p]) finding("P1", preemption_name(p) ": Slurm's line stands without ours")
	if (!slurms[p] && !stopped_with(p)) {
		if (state[victim_run[p]] ~ /^PREEMPTED/) finding("P1", preemption_name(p) ": our line stands without Slurm's")
		else { not_told(preemption_name(p) ": it ended as " state[victim_run[p]] " when it was to be stopped"); return 0 }
	}
	return 1
}

# stopped_with: another part of its heterogeneous job, which Slurm names alone, was stopped for the same; 0: none.
function stopped_with(p,    q) {
	if (!het_job[victim_run[p]]) return 0
	for (q = 1; q <= preemptions; q++)
		if (q != p && het_job[victim_run[q]] == het_job[victim_run[p]] && for_job[q] == for_job[p] && at[q] - at[p] < 2 && at[p] - at[q] < 2) return q
	return 0
}

# check_contract: C2, C9 by the row, whatever our line says.
function check_contract(p,    v, stopped) {
	v = victim_run[p]
	stopped = end[v] == "" ? int(at[p]) : end[v]
	if (class[v] == "allocated" && stopped < protected_until[v])
		finding("C2", preemption_name(p) ": inside its contract, " (stopped - base[v] - suspended[v]) " of " contract[v] " s" (has_tag[v] ? "" : " (no readable tag: the longest)"))
	if (gpus[v] == 0) finding("C8", preemption_name(p) ": it has no GPUs")
	if (user[v] == "root") finding("C8", preemption_name(p) ": it is root's")
	if (in_list(never_partitions, partition[v])) finding("C8", preemption_name(p) ": nobody is stopped in partition " partition[v])
	if (in_list(never_qos, qos[v])) finding("C8", preemption_name(p) ": nobody of QOS " qos[v] " is stopped")
	if (reservation[v] != "") finding("C8", preemption_name(p) ": it is in reservation " reservation[v])
}

# check_right: P1 to P4, by the rows and the ratios in our line.
function check_right(p,    v, w, right, same, of_victim, of_preemptor, ratio) {
	if (!ours[p]) return
	v = victim_run[p]
	w = run_served(p)
	right = word_of(said_for[p], "right")
	by_right[right]++
	if (right == "unallocated") { if (class[v] != "unallocated") finding("P2", preemption_name(p) ": as unallocated, but its class is " class[v]) }
	else if (class[v] == "unallocated") finding("P2", preemption_name(p) ": by right=" right ", but it is unallocated")
	if (w && class[w] != "allocated") finding("P1", preemption_name(p) ": whom it was for is " (class[w] == "" ? "outside the contract" : class[w]))
	of_victim = leaf_of(v)
	of_preemptor = w ? leaf_of(w) : ""
	same = of_victim == of_preemptor
	if (right == "claim") {
		split(word_of(said_for[p], "ratios"), ratio, "/")
		if (!(ratio[1] ~ /^[0-9.]+$/ && ratio[2] ~ /^[0-9.]+$/)) finding("P3", preemption_name(p) ": by claim, without ratios")
		# The line has three digits.
		else if ((ratio[1] - 0.0005) * (1000 + margin) >= (ratio[2] + 0.0005) * 1000) finding("P3", preemption_name(p) ": " ratio[1] " x " (1 + margin / 1000) " is not below " ratio[2])
		if (same && of_victim != "") finding("P3", preemption_name(p) ": by claim inside the leaf " of_victim)
	} else if (right == "priority") {
		if (!same && of_victim != "" && of_preemptor != "") finding("P4", preemption_name(p) ": by stated priority, of " of_victim " for " of_preemptor)
		if (w && !higher_priority(w, v)) finding("P4", preemption_name(p) ": QOS " qos[w] " is not stated higher than " qos[v])
	} else if (right != "unallocated") finding("P1", preemption_name(p) ": by right=" right)
}
# higher_priority: nice is known of jobs with a record only.
function higher_priority(w, v) {
	if (qos_priority[qos[w]] + 0 != qos_priority[qos[v]] + 0) return qos_priority[qos[w]] + 0 > qos_priority[qos[v]] + 0
	if (job_nice[job[w]] == "" || job_nice[job[v]] == "") return 1
	return job_nice[job[w]] + 0 < job_nice[job[v]] + 0
}

# check_text: our line and the tag of the row say the same as the row.
function check_text(p,    v, name, over) {
	if (!ours[p]) return
	v = victim_run[p]
	name = preemption_name(p)
	if (word_of(said[p], "class") != class[v]) finding("U10", name ": class " word_of(said[p], "class") " in the log, " class[v] " in the row")
	else if (class[v] == "allocated" && has_tag[v] && word_of(said[p], "contract") != contract[v]) finding("U10", name ": contract " word_of(said[p], "contract") " s in the log, " contract[v] " in the row")
	if (word_of(said[p], "restart") != restart[v]) finding("P6", name ": restart " word_of(said[p], "restart") " in the log, " restart[v] " by the rows")
	if (word_of(said[p], "start") - base[v] > 1 || base[v] - word_of(said[p], "start") > 1) finding("U10", name ": started " word_of(said[p], "start") " in the log, " base[v] " in the row")
	over = int(at[p]) - protected_until[v]
	if (class[v] == "allocated" && has_tag[v] && !suspended[v] && over >= 0 && (over - word_of(said[p], "over") > 2 || word_of(said[p], "over") - over > 2))
		finding("U10", name ": over=" word_of(said[p], "over") " in the log, " over " s by the row")
	if (end[v] == "" || !has_tag[v]) return
	if (word_of(tag[v], "preempted_for") == "") finding("U10", name ": the row's tag does not say why")
	else if (word_of(tag[v], "preempted_for") != for_job[p]) finding("U10", name ": for job " word_of(tag[v], "preempted_for") " in the row")
	else if (word_of(tag[v], "reason") != word_of(said_for[p], "right")) finding("U10", name ": reason " word_of(tag[v], "reason") " in the row, " word_of(said_for[p], "right") " in the log")
}

# run_served: the first run of the preemptor after that; of an array one of its tasks, since the record that waited for all
# of them is not the one that starts: rather one on a node of the victim. 0: none.
function run_served(p,    id, k, i, best) {
	id = for_job[p]
	for (k = 1; k <= runs_of[id]; k++) if (began_after(runs_of[id, k], p)) { best = runs_of[id, k]; break }
	if (best && in_common(best, victim_run[p])) return best
	for (k = 1; k <= tasks_of[id]; k++) {
		i = tasks_of[id, k]
		if (began_after(i, p) && (!best || better_served(i, best, p))) best = i
	}
	return best + 0
}
function began_after(i, p) { return began[i] >= int(at[p]) && (order_began[i] == "" || order_began[i] > at_order[p]) }
function better_served(i, other, p) {
	if (in_common(i, victim_run[p]) != in_common(other, victim_run[p])) return in_common(i, victim_run[p])
	return began[i] < began[other]
}
function in_common(i, j,    k) {
	for (k = 1; k <= node_count[i]; k++) if ((j, on_node[i, k]) in held) return 1
	return 0
}

# check_served: P1, P5: whoever it was for starts soon, on nodes of the victim.
function check_served(p,    v, w, common, how) {
	if (for_job[p] == "") return
	v = victim_run[p]
	w = run_served(p)
	if (!w) {
		if (pending_end[for_job[p]] ~ /^[0-9]+$/ && pending_state[for_job[p]] ~ /^(CANCELLED|DEADLINE)/) { vain++; not_told(preemption_name(p) ": whom it was for was " pending_state[for_job[p]]) }
		else if (now - at[p] <= bound) not_told(preemption_name(p) ": whom it was for has not started yet")
		else finding("P1", preemption_name(p) ": whom it was for has not started in " int(now - at[p]) " s")
		return
	}
	if (began[w] - at[p] > slowest) slowest = began[w] - at[p]
	common = in_common(v, w) || (stopped_with(p) && in_common(victim_run[stopped_with(p)], w))
	served_by[p] = w
	if (common && began[w] - at[p] <= bound) { served++; return }
	# Slurm keeps no place for whom it stops others: it went to somebody else.
	how = sprintf(": whom it was for started %.1f s later on %s", began[w] - at[p], node_list[w])
	served_by[p] = taken_by(p, w)
	if (served_by[p]) { moved++; not_told(preemption_name(p) how ", before it job " job[served_by[p]] " on " node_list[v]); return }
	if (common) finding("P1", preemption_name(p) how ", " bound " s are allowed")
	else finding("P5", preemption_name(p) how ", it had " node_list[v] ", where nobody started")
}
# taken_by: the first allocated run but w that started on a node of the victim soon after; 0: none.
function taken_by(p, w,    v, k, n, i, best) {
	v = victim_run[p]
	for (k = 1; k <= node_count[v]; k++) for (n = 1; n <= runs_on[on_node[v, k]]; n++) {
		i = runs_on[on_node[v, k], n]
		if (i == w || class[i] != "allocated" || !began_after(i, p) || began[i] - at[p] > bound) continue
		if (!best || began[i] < began[best]) best = i
	}
	return best + 0
}

# --- P5: nobody could have stayed

# gone(i, p): run i is no obstacle to whom p serves: himself, or another stopped for him, or for anybody before.
function gone(i, p,    q) {
	if (i == served_by[p]) return 1
	q = stopped_by[i]
	return q && (served_by[q] == served_by[p] || at_order[q] < at_order[p])
}
# holds_then(i, p): run i was on its nodes when p was decided, or its place was promised to it.
function holds_then(i, p,    q) {
	if (end[i] != "" && end[i] + 1 + settle <= at[p]) return 0
	if (order_began[i] != "" ? order_began[i] < at_order[p] : start[i] <= at[p]) return 1
	q = promised[i]
	return q && at_order[q] < at_order[p]
}
# rest(p, name, what): what is left on a node with all of them gone.
function rest(p, name, what,    i, k, sum) {
	sum = what == "gpus" ? has_gpus[name] : what == "cpus" ? has_cpus[name] : has_memory[name]
	for (k = 1; k <= runs_on[name]; k++) {
		i = runs_on[name, k]
		if (gone(i, p) || !holds_then(i, p)) continue
		sum -= share(i, name, what)
		if (!places_known[i]) rest_known = 0
	}
	return sum
}
function share(i, name, what) {
	if (what == "gpus") return held[i, name]
	return (what == "cpus" ? cpus[i] : memory[i]) / node_count[i]
}

function check_need(p,    v, w, with, spare) {
	v = victim_run[p]
	w = served_by[p]
	with = stopped_with(p)
	rest_known = places_known[v] && places_known[w]
	spare = could_stay(p) && (!with || served_by[with] != w || could_stay(with))
	if (!rest_known) { not_told(preemption_name(p) ": whether it was needed, as GPUs by node are not known of all"); return }
	judged++
	if (spare) finding("P5", preemption_name(p) ": needless, the job fits beside it on " node_list[w])
	else check_cheaper(p)
}
# could_stay: on the nodes of whom p served, or none of them is its own.
function could_stay(p,    v, w, k, name) {
	v = victim_run[p]
	w = served_by[p]
	if (spread_fits(p)) return 1
	for (k = 1; k <= node_count[v]; k++) {
		name = on_node[v, k]
		if (!((w, name) in held)) continue
		if (!fits_beside(p, name, "gpus") || !fits_beside(p, name, "cpus") || (memory[w] && memory[v] && !fits_beside(p, name, "memory"))) return 0
	}
	return 1
}
function fits_beside(p, name, what) { return rest(p, name, what) - share(victim_run[p], name, what) >= share(served_by[p], name, what) }
# spread_fits: a job that asks for GPUs in all, not by node, could lie otherwise on its nodes.
function spread_fits(p,    v, w, k, name, sum, room) {
	v = victim_run[p]
	w = served_by[p]
	if (node_count[w] < 2 || line[w] !~ / (--gpus[= ]|-G ?)[0-9]/ || line[w] ~ /--(gres|gpus-per|ntasks|exclusive|tres-per)|-n ?[0-9]/) return 0
	for (k = 1; k <= node_count[w]; k++) {
		name = on_node[w, k]
		room = rest(p, name, "gpus") - ((v, name) in held ? held[v, name] : 0)
		if (room < 1) return 0
		sum += room
	}
	return rest_known && sum >= gpus[w]
}
# check_cheaper: an allocated run went although an unallocated one on the same node, as large, stayed.
function check_cheaper(p,    v, k, i, name) {
	v = victim_run[p]
	if (class[v] != "allocated" || node_count[v] != 1) return
	name = on_node[v, 1]
	for (k = 1; k <= runs_on[name]; k++) {
		i = runs_on[name, k]
		if (class[i] != "unallocated" || node_count[i] != 1 || gone(i, p) || began[i] > at[p] - 3 || !goes_on_at(i, at[p] + 2) || suspended[i]) continue
		if (held[i, name] < held[v, name] || cpus[i] < cpus[v] || memory[i] < memory[v]) continue
		if (reservation[i] != "" || in_list(never_partitions, partition[i]) || in_list(never_qos, qos[i])) continue
		finding("P5", preemption_name(p) ": while the unallocated job " job[i] " on " name " stayed")
		return
	}
}

# --- states, ends

function check_states(    i) {
	for (i = 1; i <= runs; i++) {
		if (state[i] !~ /^PREEMPTED/) continue
		preempted_rows++
		if (!stopped_by[i]) finding("P1", run_name(i) " is PREEMPTED, and no line says for whom")
	}
}

# cause_of: what is known of why a run ended.
function cause_of(i) {
	if (state[i] ~ /^CANCELLED by /) return "cancelled by uid " substr(state[i], 14)
	if (state[i] ~ /^REQUEUED/) return "requeued by hand (Slurm does not record whose)"
	if (state[i] ~ /^(COMPLETED|CANCELLED|FAILED|NODE_FAIL|BOOT_FAIL|TIMEOUT|OUT_OF_MEMORY|DEADLINE|REVOKED)/) return tolower(state[i])
	return ""
}
function check_early_ends(    i, cause) {
	for (i = 1; i <= runs; i++) {
		if (end[i] == "" || class[i] != "allocated" || !has_tag[i] || end[i] >= protected_until[i]) continue
		if (state[i] ~ /^RESIZING/ || (stopped_by[i] && state[i] ~ /^PREEMPTED/)) continue
		early++
		cause = cause_of(i)
		if (cause == "") { finding("C2", run_name(i) " ended after " (end[i] - base[i]) " of " contract[i] " s as " state[i] ", a cause that is not known"); continue }
		if (state[i] ~ /^TIMEOUT/) finding("C4", run_name(i) " ran into its limit after " (end[i] - base[i]) " s, inside its contract of " contract[i])
		print "early end: " run_name(i) " after " (end[i] - base[i]) " of " contract[i] " s: " cause
	}
}

# --- no GPU twice; a second is allowed for rows that are cut to whole seconds

function check_nodes(    n, k, j, i, s, sum, unsure, total) {
	for (n = 1; n <= nodes; n++) for (k = 1; k <= runs_on[node[n]]; k++) {
		i = runs_on[node[n], k]
		s = start[i]
		sum = unsure = 0
		for (j = 1; j <= runs_on[node[n]]; j++) if (lasts_over(runs_on[node[n], j], s)) {
			sum += held[runs_on[node[n], j], node[n]]
			if (!places_known[runs_on[node[n], j]]) unsure = 1
		}
		instants++
		if (sum <= has_gpus[node[n]]) continue
		if (unsure) unsure_instants++
		else finding("Q5", node[n] " has " has_gpus[node[n]] " GPUs, runs held " sum " at " s " when " run_name(i) " started")
	}
	for (i = 1; i <= runs; i++) {
		total = 0
		for (j = 1; j <= runs; j++) if (lasts_over(j, start[i])) total += gpus[j]
		if (total > all_gpus) finding("Q5", "the nodes have " all_gpus " GPUs, runs held " total " at " start[i])
	}
	if (unsure_instants) not_told(unsure_instants " times whether a node was overfull, as GPUs by node are not known of all")
}
function lasts_over(i, s) { return start[i] <= s && (end[i] == "" || end[i] > s + 1) && !suspended[i] }

# --- P6: who was stopped comes back as he was, and is not held

function check_return(    id, k, v, i, last) {
	for (id in runs_of) {
		if (id ~ SUBSEP) continue
		last = 0
		for (k = 1; k <= runs_of[id]; k++) {
			v = runs_of[id, k]
			if (!stopped_by[v] || state[v] !~ /^PREEMPTED/) continue
			last = v
			if (k == runs_of[id]) continue
			i = runs_of[id, k + 1]
			returned++
			if ((class[i] == class[v] && contract[i] == contract[v]) || !has_tag[v]) continue
			if (changed_by_hand[id] >= start[v]) { not_told(run_name(i) ": its contract was changed by an update"); continue }
			finding("P6", run_name(i) " came back as " class[i] " with " contract[i] " s, had " class[v] " with " contract[v])
		}
		if (!last || !(id in job_state)) continue
		if (job_state[id] == "PENDING" && last == runs_of[id, runs_of[id]]) check_waits(id, last)
		if (job_restarts[id] != "" && job_state[id] ~ /^(PENDING|RUNNING)$/ && job_restarts[id] != ended_before(id))
			finding("P6", "job " id " counts " job_restarts[id] " restarts, " ended_before(id) " runs of it have ended by the rows")
	}
}
function ended_before(id,    k, n) {
	for (k = 1; k <= runs_of[id]; k++) if (end[runs_of[id, k]] != "" && state[runs_of[id, k]] !~ /^RESIZING/) n++
	return n + 0
}
function check_waits(id, v) {
	waiting++
	if (job_priority[id] != "0" && job_reason[id] !~ /[Hh]eld/) return
	if (held_by_hand[id] >= end[v]) not_told("job " id " is held by hand since it was stopped")
	else finding("P6", "job " id " is held (" job_reason[id] ") since it was stopped at " end[v])
}

# --- shares

function check_shares(    list, n, i, kv, sum, total, weights, of, weight, d) {
	n = split(shares, list, "/")
	for (i = 1; i <= n; i++) { split(list[i], kv, ":"); weight[kv[1]] = kv[2]; weights += kv[2]; of[i] = kv[1] }
	for (i = 1; i <= runs; i++) {
		if (class[i] == "unallocated" || !(account[i] in weight)) continue
		d = (end[i] == "" || end[i] > to ? to : end[i]) - (start[i] < from ? from : start[i])
		if (d > 0) { sum[account[i]] += gpus[i] * d; total += gpus[i] * d }
	}
	for (i = 1; i <= n; i++) {
		d = (total ? 100 * sum[of[i]] / total : 0) - 100 * weight[of[i]] / weights
		printf "share of %s: %.1f %% of %d GPU-seconds, its budget is %.1f %%\n", of[i], total ? 100 * sum[of[i]] / total : 0, total, 100 * weight[of[i]] / weights
		if (d > points || d < -points) finding("U3", sprintf("account %s is %.1f points from its budget, %s are allowed", of[i], d, points))
	}
}

function report() {
	printf "audit of contracts: %d runs (%d tagged) on %d nodes; %d preemptions (%d unallocated, %d claim, %d priority), %d served and %d by another place, the slowest in %.1f s, %d judged needed or not, %d rows PREEMPTED, %d came back, %d wait; %d early ends; %d instants of nodes; %d not told; %d findings\n", runs, tagged, nodes, preemptions, by_right["unallocated"], by_right["claim"], by_right["priority"], served, moved, slowest, judged, preempted_rows, returned, waiting, early, instants, untold, findings
}
