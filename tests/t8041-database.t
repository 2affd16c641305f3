#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# slurmdbd away for half an hour (US-18): the queue goes on being ordered, also over a kill of slurmctld in the middle; what
# ran meanwhile is neither lost nor doubled afterwards. And slurmctld started before slurmdbd, on its cache of associations,
# which brings other weights when it comes (RS-13). Times are the cluster's, whose clock runs 30 times as fast.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

budgets=$(budget_file <<-END
	a root 10 ann
	b root 10 bob
	c root 10 cal
END
)
cluster_up away --speed 30 --nodes 2 --gpus 8 --cpus 16 --budgets "$budgets" --priority priority/budget \
	--conf 'PriorityParameters=window=1-0' --conf 'Licenses=gate:1'
rm -f "$budgets"

clock() { on away date +%s; }
began=$(clock)
gone() { [[ -z $(state away "$1") || $(state away "$1") == COMPLETED ]]; }
none_runs() { [[ -z $(on away squeue -h -t R,CG -A a,b,c -o %A --name wrap) ]]; }

# A job that cannot start, as somebody has the licence.
watcher() { as away "$1" sbatch --parsable -A "$2" --gpus=1 --time=5:00:00 -J watch -L gate:1 --output=/dev/null --wrap true; }

as away cal sbatch -Q -A c --time=7-0 -n 1 -J gate -L gate:1 --output=/dev/null --wrap 'exec sleep 1000000'
gate_runs() { [[ $(on away squeue -h -t R --name gate -o %T) == RUNNING ]]; }
ok "somebody has the licence" wait_for 20 gate_runs
watch_a=$(watcher ann a) watch_b=$(watcher bob b)
first=$(sleeper away ann a 4 200)
ok "a uses something" wait_for 20 used away a 200
ok "b is before a" wait_for 5 order_is away "$watch_b $watch_a"

# Without a saved list of associations slurmctld does not start while slurmdbd is away.
associations_are_saved() { [[ -s $(cluster_dir away)/state/assoc_mgr_state ]]; }
ok "Slurm has saved its associations" wait_for 60 associations_are_saved

note "slurmdbd away for half an hour"
left=$(clock)
cluster away stop slurmdbd
bs=()
for ((i = 0; i < 3; i++)); do bs+=("$(sleeper away bob b 5 200)"); done
ok "the first job of a ends" wait_for 20 gone "$first"
ok "b uses more than a, without slurmdbd" wait_for 30 used away b 2000
ok "and ranks behind it" wait_for 5 order_is away "$watch_a $watch_b"
before=$(raw_usage away b)
count=$(log_lines away 'cannot be had from the accounting database')
cluster away kill slurmctld
cluster away start slurmctld >/dev/null 2>&1
ok "killed in between, it serves again" wait_for 30 serves away
ok "it says that slurmdbd cannot be asked" wait_for 20 logged_since away 'cannot be had from the accounting database' "$count"
ok "nothing is lost" used away b "$before"
ok "and the order stands" wait_for 5 order_is away "$watch_a $watch_b"
late=$(sleeper away ann a 1 100)
ok "a job runs after the kill and ends" wait_for 30 gone "$late"
ok "the jobs of b end" wait_for 60 gone "${bs[2]}"
half_an_hour() { (($(clock) - left >= 1800)); }
ok "half an hour is over" wait_for 120 half_an_hour
cluster away start slurmdbd >/dev/null 2>&1
ok "slurmdbd gets what it missed" wait_for 60 told_all away
ok "all jobs are over" wait_for 30 none_runs
for account in a b; do
	ok "usage of $account is what slurmdbd has, $(recorded away $account "$began") GPU-seconds" wait_for 20 settled away $account "$began"
done
ok "that is something" eval '(( $(recorded away a "$began") >= 4 * 190 + 95 && $(recorded away b "$began") >= 3 * 5 * 190 ))'

note "slurmctld before slurmdbd, which has other weights"
cluster away stop slurmctld
on away sacctmgr -i modify account b set fairshare=1000 >/dev/null
cluster away stop slurmdbd
cluster away start slurmctld >/dev/null 2>&1
ok "it serves on its cache" wait_for 30 serves away
ok "with the weights of before" wait_for 10 order_is away "$watch_a $watch_b"
used_b=$(raw_usage away b)
cluster away start slurmdbd >/dev/null 2>&1
ok "the new weights come with slurmdbd" wait_for 60 order_is away "$watch_b $watch_a"
is "usage has not jumped" "$(raw_usage away b)" "$used_b"

finish
