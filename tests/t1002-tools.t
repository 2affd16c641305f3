#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What people see agrees: sprio's sums are squeue's numbers for every kind of
# job, sshare shows GPU-seconds and the order in which jobs come, also on a
# machine without slurmctld; and slurmctld survives fifty rounds of tools,
# reconfigurations, drains and restarts. TAP.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"

rounds=50
restart_every=10
[[ ${SLURM_BUDGET_LONG:-} ]] && restart_every=1
scratch=$(mktemp -d)
partition="Nodes=n[1-2] MaxTime=INFINITE State=UP"

cluster_up tools --nodes 2 --users alice,bob --priority priority/budget \
	--conf PriorityParameters=window=10m \
	--conf PriorityWeightAge=1000 --conf PriorityMaxAge=0-1 --conf PriorityWeightJobSize=700 \
	--conf PriorityWeightPartition=3000 --conf PriorityWeightTRES=CPU=500,GRES/gpu=900 \
	--conf "PartitionName=main Default=YES PriorityJobFactor=10 $partition" \
	--conf "PartitionName=wide PriorityJobFactor=50 $partition"

submit() { as tools "$1" sbatch --parsable -o /dev/null "${@:2}" --wrap 'sleep 600' 2>/dev/null; }
running() { [[ $(on tools squeue -h -j "$1" -o %T) == RUNNING ]]; }
pid_of_slurmctld() { cluster tools status | sed -n 's/^slurmctld .* \([0-9]*\)$/\1/p'; }

# --- usage ---

first=$(as tools alice sbatch --parsable -o /dev/null --gres=gpu:4 --wrap 'sleep 8')
over() { [[ $(on tools scontrol -o show job "$first") == *JobState=COMPLETED* ]]; }
ok "a job of alice runs and ends" wait_for 60 over
elapsed=$(on tools sacct -X -n -j "$first" -o ElapsedRaw -P)
# share FIELD ACCOUNT [USER]
share() {
	on tools sshare -a -P -n -o "Account,User,$1" |
		awk -F'|' -v a="$2" -v u="${3:-}" '{ gsub(/ /, "") } $1 == a && $2 == u { print $3 }'
}
usage_is() { [[ $(share RawUsage team_alice alice) == "$1" ]]; }
ok "sshare shows the GPU-seconds of sacct ($((4 * elapsed)))" wait_for 10 usage_is $((4 * elapsed))
is "an account that has used nothing has LevelFS inf" "$(share LevelFS team_bob)" inf

# --- every kind of job, waiting behind jobs that fill the nodes ---

full=("$(submit alice --gres=gpu:8 -n 1)" "$(submit bob --gres=gpu:8 -n 1)")
for job in "${full[@]}"; do wait_for 30 running "$job"; done
submit alice --gres=gpu:1 >/dev/null
submit alice --gres=gpu:1 --nice=1000 >/dev/null
submit bob --gres=gpu:2 >/dev/null
submit bob --gres=gpu:2 -p main,wide >/dev/null
submit alice --gres=gpu:2 --array=1-5 >/dev/null
submit bob --exclusive >/dev/null
submit alice -n 128 >/dev/null
submit bob -n 128 --nice=50 -p main,wide >/dev/null
submit bob -n 128 --nice=2000000 >/dev/null
operators=$(submit bob --gres=gpu:1)
held=$(submit alice --gres=gpu:1 --hold)
system=$(on tools sbatch --parsable -o /dev/null --gres=gpu:8 -N2 --wrap 'sleep 600')
on tools scontrol update jobid="$operators" priority=4000000000

numbers() { on tools squeue -h -r -t PD -o '%A %Q' | awk '$2 > 0' | sort -u -n; }
sums() { on tools sprio -h -o '%i %Y' | sort -u -n; }
agree() { [[ $(numbers | wc -l) -ge 12 && $(numbers) == "$(sums)" ]]; }
if ! ok "sprio's sums are squeue's numbers" wait_for 10 agree; then diff <(numbers) <(sums) | sed 's/^/# /'; fi

number() { on tools squeue -h -j "$1" -o %Q | head -1; }
is "a number set by an operator stays" "$(number "$operators")" 4000000000
is "a held job has none" "$(number "$held")" 0
in_band() { (($1 >= $2 && $1 < $3)); }
ok "a job of root has a number among the jobs without GPUs" in_band "$(number "$system")" $((1 << 28)) $(((1 << 28) + (1 << 30)))
budgeted() { on tools squeue -h -t PD -o '%Q %u %b' | awk -v u="$1" '$2 == u && /gpu/ && $1 < 2147483648 { print $1 }' | sort -nr | head -1; }
# of two users, the values that sshare and squeue show at one moment
standing() {
	la=$(share LevelFS team_alice) lb=$(share LevelFS team_bob)
	fa=$(share FairShare team_alice alice) fb=$(share FairShare team_bob bob)
	pa=$(budgeted alice) pb=$(budgeted bob)
	note "LevelFS $la $lb, FairShare $fa $fb, first numbers $pa $pb"
}
standing
ok "the better LevelFS has the better FairShare" awk -v a="$fa" -v b="$fb" -v la="$la" -v lb="$lb" 'BEGIN { exit !(la != lb && (a > b) == (la > lb)) }'
ok "and comes first" awk -v a="$pa" -v b="$pb" -v la="$la" -v lb="$lb" 'BEGIN { exit !(la != lb && (a > b) == (la > lb)) }'

as_before=$(number "$held")
on tools scontrol release "$held"
released() { (($(number "$held") >= 1 << 20)); }
ok "a released job gets a number (it had $as_before)" wait_for 3 released

quiet() { "$@" >/dev/null; }

# --- a login node: Slurm's clients and the plugins, no slurmctld ---

ok "sshare runs as a user" quiet as tools alice sshare -l -a
is "and says nothing of the plugin" "$(as tools alice sshare -l -a 2>&1 >/dev/null)" ""
login() { on tools env SLURM_CONF="$scratch/slurm.conf" "$@"; }
sed '/^PriorityFlags/d' "$(cluster_dir tools)/etc/slurm.conf" >"$scratch/slurm.conf"
echo PriorityFlags=NO_FAIR_TREE >>"$scratch/slurm.conf"
ok "sshare runs where slurm.conf says NO_FAIR_TREE" quiet login sshare -l -a
is "and works FairShare out itself" "$(login sshare -a -P -n -o User,FairShare | grep -c '|[01]\.[0-9]*$')" \
	"$(login sshare -a -P -n -o User | wc -l)"

# --- fifty rounds ---

before=$(pid_of_slurmctld)
dead() { printf '# round %d: %s\n' "$round" "$1"; ok "fifty rounds" false; finish; }
for ((round = 1; round <= rounds; round++)); do
	on tools sprio >/dev/null || dead sprio
	on tools sprio -l >/dev/null || dead 'sprio -l'
	on tools sshare -l -a >/dev/null || dead 'sshare -l -a'
	on tools scontrol reconfigure || dead 'scontrol reconfigure'
	if ((round % 2)); then
		on tools scontrol update nodename=n1 state=drain reason=round || dead drain
	else
		on tools scontrol update nodename=n1 state=resume || dead resume
	fi
	if ((round % restart_every == 0)); then
		[[ $(pid_of_slurmctld) == "$before" ]] || dead "slurmctld is another one"
		cluster tools restart slurmctld >/dev/null || dead restart
		before=$(pid_of_slurmctld)
	fi
done
is "slurmctld survives $rounds rounds" "$(pid_of_slurmctld)" "$before"
on tools scontrol update nodename=n1 state=resume 2>/dev/null
if ! ok "and sprio's sums are still squeue's numbers" wait_for 10 agree; then diff <(numbers) <(sums) | sed 's/^/# /'; fi
is "our plugin has nothing to complain of" "$(grep 'error: priority/budget' "$(controller_log tools)")" ""
rm -rf "$scratch"
finish
