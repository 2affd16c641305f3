#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What happens to a controller between two days: reconfigure again and again, kill, parameters and configuration with
# typing errors, GPU types that are added to and taken from AccountingStorageTRES, types named in gres.conf alone, slurmd
# restarted. Jobs run on, their usage goes on from where it was, and in the end equals slurmdbd's records (groups RS, US).

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

budgets=$(budget_file <<-END
	a root 10 ann
	b root 10 bob
	c root 10 cal
END
)
main="Nodes=n[1-2] MaxTime=INFINITE DefaultTime=60 State=UP"
cluster_up ctl --nodes 2 --gpus 8 --gpu-type h100 --cpus 16 --budgets "$budgets" --priority priority/budget \
	--conf 'PriorityParameters=window=1h' --conf 'AccountingStorageTRES=gres/gpu,gres/gpu:h100' \
	--conf "PartitionName=main Default=YES $main" --conf "PartitionName=second $main"
rm -f "$budgets"
conf_file=$(cluster_dir ctl)/etc/slurm.conf
began=$(date +%s)

records() { on ctl squeue -h -t R -o '%A %S %P' | sort -n; }
restart() { cluster ctl restart slurmctld >/dev/null 2>&1 && wait_for 30 serves ctl; }
kill_and_start() { cluster ctl kill slurmctld && cluster ctl start slurmctld >/dev/null 2>&1 && wait_for 30 serves ctl; }

# goes_on WHAT: the same jobs run, and each account has what its job has used since its start
goes_on() {
	local account gpus start now
	is "$1: the same jobs run, since the same instants, in the same partitions" "$(records)" "$running"
	while read -r account gpus start; do
		wait_for 5 usage_is_near "$account" "$gpus" "$start"
		now=$(date +%s)
		within "$1: usage of $account" "$(raw_usage ctl "$account")" $((gpus * (now - start))) $((2 * gpus))
	done <<<"$runs"
}
usage_is_near() { awk -v u="$(raw_usage ctl "$1")" -v w=$(($2 * ($(date +%s) - $3))) -v t=$((2 * $2)) 'BEGIN { exit !(u - w <= t && w - u <= t) }'; }

untyped=$(sleeper ctl ann a 2 900)
typed=$(as ctl bob sbatch --parsable -A b --gres=gpu:h100:4 --time=60 --output=/dev/null --wrap 'exec sleep 900')
several=$(sleeper ctl cal c 1 900 -p main,second)
three_run() { [[ $(records | wc -l) == 3 ]]; }
ok "three jobs run" wait_for 20 three_run
running=$(records)
runs=$(on ctl env SLURM_TIME_FORMAT=%s squeue -h -t R -o '%a %A %S' | while read -r account job start; do
	case $job in "$untyped") gpus=2 ;; "$typed") gpus=4 ;; "$several") gpus=1 ;; esac
	echo "$account $gpus $start"
done)
goes_on "before"
# slurmctld saves its jobs some seconds late; what it has not saved it would lose in a kill.
jobs_are_saved() { (($(stat -c %Y "$(cluster_dir ctl)/state/job_state" 2>/dev/null || echo 0) > started)); }
started=$(date +%s)
on ctl scontrol update jobid="$untyped" comment=saved
ok "Slurm has saved the jobs" wait_for 20 jobs_are_saved

note "reconfigured twenty times (RS-01)"
for ((i = 0; i < 20; i++)); do on ctl scontrol reconfigure; done
ok "it serves" wait_for 20 serves ctl
goes_on "after 20 reconfigures"
ok "killed and started" kill_and_start
goes_on "after a kill"

note "typing errors (RS-09)"
count=$(log_lines ctl 'the last good parameters stay in force')
cluster ctl conf 'PriorityParameters=windoww=2h'
ok "a parameter that is none is told of" wait_for 10 logged_since ctl 'the last good parameters stay in force' "$count"
goes_on "with a parameter that is none"
count=$(log_lines ctl 'the last good parameters stay in force')
ok "restarted with it" restart
ok "told of again" wait_for 10 logged_since ctl 'the last good parameters stay in force' "$count"
last_parameters() { sed -n 's/.*parameters in force: window=\([0-9:-]*\),.*/\1/p' "$(controller_log ctl)" | tail -1; }
is "the last good set is in force, from before the restart" "$(last_parameters)" 01:00:00
goes_on "restarted with a parameter that is none"
# Some releases end when they are told to read such a file, others refuse it.
echo 'NoSuchKeyAtAll=1' >>"$conf_file"
on ctl scontrol reconfigure >/dev/null 2>&1
sed -i '/NoSuchKeyAtAll/d' "$conf_file"
sed -i 's/^PriorityParameters=.*/PriorityParameters=window=1h/' "$conf_file"
ok "it serves again with a good one" restart
goes_on "after a reconfigure of a broken slurm.conf"

note "the list of TRES changes (RS-08)"
sed -i 's|^AccountingStorageTRES=.*|AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:h100|' "$conf_file"
ok "a type more" restart
goes_on "with a type more"
sed -i 's|^AccountingStorageTRES=.*|AccountingStorageTRES=gres/gpu|' "$conf_file"
ok "no types" restart
goes_on "without types"
sed -i 's|^AccountingStorageTRES=.*|AccountingStorageTRES=gres/gpu,gres/gpu:h100|' "$conf_file"

note "types in gres.conf alone (RS-05)"
sed -i 's|Gres=gpu:h100:8|Gres=gpu:8|' "$conf_file"
ok "restarted" restart
goes_on "with types in gres.conf alone"
nodes_serve() { [[ -z $(on ctl sinfo -h -t drain,drained,draining,down -o %n) ]]; }
ok "no node is drained for it" nodes_serve
sed -i 's|Gres=gpu:8|Gres=gpu:h100:8|' "$conf_file"
ok "restarted" restart

note "slurmd restarted (RS-12)"
cluster ctl restart slurmd >/dev/null 2>&1
ok "the nodes serve" wait_for 20 nodes_serve
goes_on "after a restart of slurmd"

on ctl scancel "$untyped" "$typed" "$several"
ok "the jobs end" wait_for 20 ended ctl "$untyped" "$typed" "$several"
for account in a b c; do
	ok "usage of $account is what slurmdbd has, $(recorded ctl $account "$began") GPU-seconds" wait_for 5 settled ctl $account "$began"
done
ok "the controller logged no underflow" eval '! grep -i underflow "$(controller_log ctl)"'

finish
