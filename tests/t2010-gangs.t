#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Jobs of several nodes, kinds of GPUs, and what is short beside GPUs, on a live controller with all plugins:
# who is stopped, and that nobody is where it would not help (P1, P5, Q5). docs/placement.md says what
# the placement does not see.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

budgets=$(budget_file <<-END
	a root 1 alice
	b root 1 bob
	c root 1 carol
END
)
new_folder
scratch=$folder
# The node n3 is slow to let go of its jobs.
printf '#!/bin/sh\n[ "$SLURMD_NODENAME" != n3 ] || [ ! -e %s/slow ] || sleep 6\n' "$scratch" >"$scratch/epilog"
chmod 755 "$scratch/epilog"
preempting_up gangs sched_interval=1,bf_interval=1 --nodes 4 --gpus 8 --gpu-type a100 --cpus 16 --budgets "$budgets" \
	--plugstack 'required spank_contract.so' --conf JobSubmitPlugins=contract \
	--conf 'PriorityParameters=window=1h' --conf SelectTypeParameters=CR_Core_Memory \
	--conf 'AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:h100' --conf Licenses=solver:1 \
	--conf "Epilog=$scratch/epilog"
rm -f "$budgets"
conf=$(cluster_dir gangs)/etc
sed -i '/^NodeName=n4 /s/gpu:a100/gpu:h100/' "$conf/slurm.conf"
sed 's/^Name=gpu Type=a100/NodeName=n[1-3] &/; p; s/n\[1-3\]/n4/; s/a100/h100/' "$conf/gres.conf" >"$conf/gres.conf.new"
mv "$conf/gres.conf.new" "$conf/gres.conf"
cluster gangs restart slurmd >/dev/null 2>&1
cluster gangs restart slurmctld >/dev/null 2>&1

# job USER GPUS MINIMUM SECONDS [sbatch options]: of the user's account; prints its id.
job() { as gangs "$1" sbatch --parsable -A "${1:0:1}" --gpus="$2" --min-runtime="$3" --time=10 --mem-per-cpu=100 -o /dev/null "${@:5}" --wrap "exec sleep $4" 2>/dev/null | cut -d';' -f1; }
runs() { job_is gangs "$1" RUNNING; }
all_run() { local each; for each; do runs "$each" || return 1; done; }
empty() { [[ -z $(on gangs squeue -h) ]]; }
clear() {
	local each
	for each in alice bob carol; do as gangs "$each" scancel -u "$each"; done
	ok "the cluster is empty" wait_for 30 empty
}
stopped_for() { grep 'preempting JobId=' "$(controller_log gangs)" | grep -w "for JobId=$1" | grep -o 'preempting JobId=[0-9]*' | cut -d= -f2 | sort -n | xargs; }
# waits JOB SECONDS: still pending after that time
waits() {
	local until=$(($(date +%s) + $2))
	while (($(date +%s) <= until)); do
		[[ $(on gangs squeue -h -j "$1" -o %T) == PENDING ]] || return 1
		sleep 0.3
	done
}
ok "both kinds of nodes are there" wait_for 20 eval '[[ $(on gangs sinfo -h -N -t idle -o "%N %G" | sort -u | cut -d" " -f2 | cut -d: -f2 | uniq -c | xargs) == "3 a100 1 h100" ]]'

note "one node is idle, one more is needed"
wide=$(job alice a100:8 0 600 -w n1)
other=$(job carol a100:8 9m 600 -w n2)
ok "two nodes are taken" wait_for 20 all_run "$wide" "$other"
gang=$(job bob a100:16 5s 600 -N2)
ok "the gang runs on the idle one and another" wait_for 15 runs "$gang"
is "P5: one job was stopped" "$(stopped_for "$gang")" "$wide"
clear

note "ten tasks, of which one is in the way"
# shellcheck disable=SC2034 # in an eval
tasks=$(job alice a100:1 0 600 --array=1-10)
rest=("$(job carol a100:8 9m 600 -w n2)" "$(job carol a100:6 9m 600 -w n3)")
ok "all run" wait_for 20 eval 'all_run "${rest[@]}" && [[ $(on gangs squeue -h -r -t R -j "$tasks" -o %A | wc -l) == 10 ]]'
one=$(job bob a100:1 5s 600)
ok "the job runs" wait_for 15 runs "$one"
is "P5: one task was stopped" "$(stopped_for "$one" | wc -w)" 1
clear

note "kinds of GPUs: the many free ones are of the wrong kind"
cheap=()
for node in 1 2 3; do cheap+=("$(job alice a100:8 0 600 -w n$node)"); done
right=$(job alice h100:4 0 600)
kept=$(job carol h100:4 9m 600)
ok "all nodes are full" wait_for 20 all_run "${cheap[@]}" "$right" "$kept"
typed=$(job bob h100:4 5s 600)
ok "the job runs" wait_for 15 runs "$typed"
is "it has taken its kind's place from whom it may" "$(stopped_for "$typed")" "$right"
on gangs scancel "$typed" "$right" "$kept"
ok "the h100 are free" wait_for 20 eval '[[ -z $(on gangs squeue -h -w n4) ]]'

note "its node's cores are held by a job without GPUs, which is neither asked for a minimum nor a victim"
cores=$(as gangs carol sbatch --parsable -A c -n 14 -w n4 --time=10 --mem-per-cpu=100 -o /dev/null --wrap 'exec sleep 600')
ok "C8: it is taken without a minimum, and runs" wait_for 20 runs "$cores"
typed=$(job bob h100:4 5s 600 --cpus-per-gpu=1)
ok "the job waits" waits "$typed" 5
ok "and nobody is stopped: neither the cores' job nor those with other GPUs" all_run "$cores" "${cheap[@]}"
is "... for it" "$(stopped_for "$typed")" ""
on gangs scancel "$cores"
ok "it runs when the cores are free" wait_for 10 runs "$typed"
clear

note "memory and licences, which stopping would not bring"
memory=$(as gangs carol sbatch --parsable -A c -n 2 -N2 --ntasks-per-node=1 -w n1,n2 --time=10 --mem=50G -o /dev/null --wrap 'exec sleep 600')
licence=$(as gangs carol sbatch --parsable -A c -n1 -w n1 -L solver --mem-per-cpu=100 --time=10 -o /dev/null --wrap 'exec sleep 600')
full=("$(job carol a100:8 9m 600 -w n3)" "$(job carol h100:8 9m 600)")
for node in 1 2; do for _ in 1 2 3 4; do full+=("$(job alice a100:2 0 600 -w n$node)"); done; done
ok "all run" wait_for 20 all_run "$memory" "$licence" "${full[@]}"
hungry=$(job bob a100:2 5s 600 --mem-per-cpu=20G)
licensed=$(job bob a100:2 5s 600 -L solver)
ok "one that lacks memory waits" waits "$hungry" 5
ok "and one that lacks a licence" waits "$licensed" 1
is "P1: nobody was stopped for them" "$(stopped_for "$hungry")$(stopped_for "$licensed")" ""
on gangs scancel "$licence"
ok "with the licence free the one runs, in another's place" wait_for 15 runs "$licensed"
is "... of one" "$(stopped_for "$licensed" | wc -w)" 1
clear

note "a gang that ends node by node"
: >"$scratch/slow"
ends=$(job alice a100:16 0 3 -w n2,n3 -N2 --ntasks-per-node=1)
by=$(job alice a100:8 0 600 -w n1)
held=$(job carol h100:8 9m 600)
ok "it runs" wait_for 20 all_run "$ends" "$by" "$held"
ok "it is completing" wait_for 20 job_is gangs "$ends" COMPLETING
next=$(job bob a100:8 5s 600 -w n3)
first=$(job bob a100:8 9m 600)
ok "the node that is free is used" wait_for 15 runs "$first"
is "nobody was stopped for it" "$(stopped_for "$first")" ""
ok "the one that is not yet is waited for" wait_for 20 runs "$next"
is "nobody was stopped for that one" "$(stopped_for "$next")" ""
is "nor counted as stopped" "$(grep -c "preempting JobId=$ends " "$(controller_log gangs)")" 0
rm "$scratch/slow"
ok "the third goes on" runs "$by"
clear

note "small jobs, one after the other: what is left whole"
small=()
for _ in 1 2 3 4 5 6 7 8; do
	small+=("$(job alice a100:1 9m 600)")
	ok "a small one runs" wait_for 10 runs "${small[-1]}"
done
note "on $(on gangs squeue -h -t R -o %N | sort | uniq -c | xargs)"
large=$(job bob a100:16 5s 600 -N2)
ok "two nodes are whole: the large one starts" wait_for 10 runs "$large"
is "without anybody giving way" "$(stopped_for "$large")" ""
clear

is "nobody was stopped inside a contract" "$(grep -c 'preempting .* over=-' "$(controller_log gangs)")" 0
note "picks left to Slurm: $(grep -c 'dropped: Slurm has tried' "$(controller_log gangs)")"
finish
