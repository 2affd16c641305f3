# SPDX-License-Identifier: GPL-2.0-or-later
#
# Slurm's words for tests/audit: durations, instants, TRES, lists of nodes, and the tag at the front of an
# admin_comment. Durations are seconds, instants UTC seconds; "" is what is not there.

# seconds([D-]HH:MM:SS, or a number)
function seconds(text,    parts, days, n) {
	if (text ~ /^[0-9]+$/) return text + 0
	days = 0
	if (split(text, parts, "-") == 2) { days = parts[1]; text = parts[2] }
	n = split(text, parts, ":")
	return n == 3 ? days * 86400 + parts[1] * 3600 + parts[2] * 60 + parts[3] : 0
}

# duration(text): a parameter's: 90s, 5m, 8h, 7d, or Slurm's forms, of which a number alone is minutes.
function duration(text,    unit, part) {
	if (text ~ /-/) { # days-hours, perhaps with minutes, seconds
		split(text, part, /[-:]/)
		return part[1] * 86400 + part[2] * 3600 + part[3] * 60 + part[4]
	}
	unit = text
	sub(/^[0-9.]+/, "", unit)
	if (unit == "") return text * 60
	if (unit ~ /^[smhd]$/) return text * (unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 86400)
	return text ~ /^[0-9]+:[0-9]+$/ ? seconds("0:" text) : seconds(text)
}

# instant_of(2026-11-30T20:37:35.089): local time, as slurmctld's log has it.
function instant_of(text,    parts) {
	if (split(text, parts, /[-T:]/) != 6) return ""
	return mktime(parts[1] " " parts[2] " " parts[3] " " parts[4] " " parts[5] " " int(parts[6])) + parts[6] - int(parts[6])
}

# job_number(JobId=7_0(8)): the number that accounting knows it by, 8.
function job_number(text) {
	sub(/^.*JobId=/, "", text)
	sub(/[^0-9_+*()].*$/, "", text)
	if (text ~ /\([0-9]+\)$/) { sub(/\)$/, "", text); sub(/^.*\(/, "", text) }
	sub(/[^0-9].*$/, "", text)
	return text
}

# tres_count(AllocTRES, name): 0 if it is not in there. GPUs: the untyped count, or the sum of the typed ones.
function tres_count(tres, name,    list, n, i, kv, typed) {
	n = split(tres, list, ",")
	for (i = 1; i <= n; i++) {
		if (split(list[i], kv, "=") != 2) continue
		if (kv[1] == name) return kv[2] + 0
		if (index(kv[1], name ":") == 1) typed += kv[2]
	}
	return typed + 0
}

# tag_of(comment): what is in [budget ...] at its front.
function tag_of(comment) {
	if (!match(comment, /^\[budget [^]]*\]/)) return ""
	return substr(comment, 9, RLENGTH - 9)
}

# word_of(text, key): the value of key=value among words, without quotation marks.
function word_of(text, key,    at, rest) {
	text = " " text
	at = index(text, " " key "=")
	if (!at) return ""
	rest = substr(text, at + length(key) + 2)
	if (rest ~ /^"/) { rest = substr(rest, 2); sub(/".*$/, "", rest) }
	else sub(/[ \t].*$/, "", rest)
	return rest
}

# nodes_of(n[1-3,7],m1, out): out[1..], returns how many.
function nodes_of(text, out,    n, at, head, body, tail, part, parts, i, j, edge, width, head_end) {
	n = 0
	delete out
	while (text != "" && text !~ /^(None|\(null\))/) {
		at = match(text, /^[^][,]+(\[[^]]*\])?/)
		if (!at) break
		part = substr(text, 1, RLENGTH)
		text = substr(text, RLENGTH + 1)
		sub(/^,/, "", text)
		head_end = index(part, "[")
		if (!head_end) { out[++n] = part; continue }
		head = substr(part, 1, head_end - 1)
		body = substr(part, head_end + 1, length(part) - head_end - 1)
		tail = split(body, parts, ",")
		for (i = 1; i <= tail; i++) {
			if (split(parts[i], edge, "-") == 1) edge[2] = edge[1]
			width = length(edge[1])
			for (j = edge[1] + 0; j <= edge[2] + 0; j++) out[++n] = head sprintf("%0" width "d", j)
		}
	}
	return n
}

# in_list(a,b,c, word)
function in_list(list, word) { return word != "" && index("," list ",", "," word ",") > 0 }
