#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# GPU time follows the budgets (B2, Q2, U3): a backlogged cluster of 4 x 8 GPUs
# under root{p1(60){a(70), b(30)}, p2(40){c}}. Long form (SLURM_BUDGET_LONG=1,
# `make acceptance`): a window of 10 minutes; else of 90 seconds.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

window=90
hold=4
if [[ -n ${SLURM_BUDGET_LONG:-} ]]; then
	window=600
	hold=10
fi
gpus=32

budgets=$(budget_file <<-END
	p1 root 60
	a p1 70 alice
	b p1 30 bob
	p2 root 40
	c p2 100 carol
END
)
cluster_up shares --nodes 4 --gpus 8 --budgets "$budgets" --priority priority/budget \
	--conf "PriorityParameters=window=${window}s,quantum=10s"
rm -f "$budgets"

first_in_queue() { on shares squeue -h -t PD -o '%Q %a' | sort -rn | head -1 | cut -d' ' -f2; }
first_is() { [[ $(first_in_queue) == "$1" ]]; }

# keep_backlog USER ACCOUNT GPUS: at least two clusters full of pending jobs, as singles and as an array.
keep_backlog() {
	local pending
	pending=$(on shares squeue -h -r -t PD -A "$2" -o %A | wc -l)
	if ((pending < 30)); then
		sleepers shares "$1" "$2" "$3" "$hold" 30
		sleeper shares "$1" "$2" 1 "$hold" --array=1-20 >/dev/null
	fi
}

# run_until INSTANT ACCOUNT...: keeps these backlogged until then.
run_until() {
	local end=$1 account
	shift
	while (($(date +%s) < end)); do
		for account in "$@"; do
			case $account in
			a) keep_backlog alice a 2 ;;
			b) keep_backlog bob b 2 ;;
			c) keep_backlog carol c 2 ;;
			esac
		done
		sleep 0.5
	done
}

# check_shares FROM TO TOLERANCE ACCOUNT=PERCENT...: by slurmdbd and by sshare.
check_shares() {
	local from=$1 to=$2 tolerance=$3 pair account records shown total all_raw used
	shift 3
	all_raw=$(raw_usage shares root)
	declare -A shown
	for pair in "$@"; do shown[${pair%%=*}]=$(raw_usage shares "${pair%%=*}"); done
	records=$(gpu_seconds shares "$from" "$to")
	total=$(awk '$1 == "total" { print $2 }' <<<"$records")
	note "busy $(percent "$total" $((gpus * (to - from)))) % of the GPU time, sshare total $all_raw, slurmdbd total $total"
	for pair in "$@"; do
		account=${pair%%=*}
		used=$(awk -v a="$account" '$1 == a { print $2 }' <<<"$records")
		within "$account's share by slurmdbd, %" "$(percent "$used" "$total")" "${pair##*=}" "$tolerance"
		within "$account's share by sshare, %" "$(percent "${shown[$account]}" "$all_raw")" "${pair##*=}" "$tolerance"
		# Reading takes a moment: up to two seconds of the whole cluster.
		within "$account: sshare and slurmdbd agree, GPU-s" "${shown[$account]}" "${used:-0}" $((2 * gpus))
	done
}

note "window $window s: all three backlogged for two windows, then measured over the next"
start=$(date +%s)
run_until $((start + 3 * window)) a b c
to=$(date +%s)
check_shares $((to - window)) "$to" 2 a=42 b=18 c=40

note "p2 idle: a and b share everything"
on shares scancel -A c
start=$(date +%s)
run_until $((start + window + 10)) a b
to=$(date +%s)
records=$(gpu_seconds shares $((to - window)) "$to")
all=$(awk '$1 == "total" { print $2 }' <<<"$records")
used=$(awk '$1 == "a" { print $2 }' <<<"$records")
within "a's share of everything by slurmdbd, %" "$(percent "$used" "$all")" 70 2
within "a's share of p1 by sshare, %" "$(percent "$(raw_usage shares a)" "$(raw_usage shares p1)")" 70 2

note "c returns: first until its ratio is level"
returned=$(date +%s)
sleepers shares carol c 2 "$hold" 30
ok "the first in the queue is c's within 2 s" wait_for 2 first_is c
level=$((window * 4 / 10)) # x/0.4 = (W - x)/0.6: level when c alone has run 0.4 W
run_until $((returned + level * 7 / 10)) a b c
others=$(on shares env SLURM_TIME_FORMAT=%s sacct -a -X -D -n -P -S "$(instant "$returned")" -o Account,Start |
	awk -F'|' -v from=$((returned + 3)) -v to=$((returned + level * 7 / 10)) '$1 != "c" && $2 ~ /^[0-9]+$/ && $2 > from && $2 <= to' | wc -l)
is "no job of a or b starts before c is level" "$others" 0
started=$(on shares env SLURM_TIME_FORMAT=%s sacct -a -X -D -n -P -A c -S "$(instant "$returned")" -o Start |
	awk -v from="$returned" '$1 ~ /^[0-9]+$/ && $1 >= from' | wc -l)
ok "c's jobs do start: $started" test "$started" -ge 16

finish
