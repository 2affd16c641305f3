#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The same load on a cluster with priority/multifactor and on one with
# priority/budget: limits, TRES usage, QOS usage and the order of jobs without
# GPUs are the same (rule Q7), usage_raw is kept aside, survives a kill, and is
# multifactor's own again after a change back. Usage is compared with what
# Slurm's manual says it has to be, worked out from the start and end of each
# job and the instants of the ticks. Prints the table of docs/decision-multifactor.md.
# TAP. Times are the clusters', which run 10 times as fast.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"

half_life=900 # seconds
band=$((1 << 28)) # Q7: where the band of jobs without GPUs begins
tolerance=0.00001 # relative, beside what Slurm rounds off
scratch=$(mktemp -d)

cat >"$scratch/budgets" <<END
Cluster - 'mini':Fairshare=1:QOS='normal'
Parent - 'root'
User - '$(id -un)':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'a':Description='a':Organization='o':Fairshare=50:GrpTRESRunMins=cpu=500
Account - 'b':Description='b':Organization='o':Fairshare=30
Account - 'c':Description='c':Organization='o':Fairshare=20:GrpTRESMins=cpu=1150
Parent - 'a'
User - 'alice':DefaultAccount='a':Fairshare=1
Parent - 'b'
User - 'alice':DefaultAccount='b':Fairshare=2
User - 'bob':DefaultAccount='b':Fairshare=1
Parent - 'c'
User - 'bob':DefaultAccount='c':Fairshare=1
END

partitions="Nodes=n[1-4] MaxTime=INFINITE State=UP TRESBillingWeights=CPU=1.0,GRES/gpu=4.0"
# up NAME PRIORITY
up() {
	cluster_up "$1" --speed 10 --nodes 4 --budgets "$scratch/budgets" --priority "$2" \
		--conf SelectTypeParameters=CR_Core_Memory \
		--conf AccountingStorageEnforce=associations,limits,qos,safe \
		--conf "PriorityDecayHalfLife=0-0:$((half_life / 60)):0" \
		--conf PriorityWeightFairshare=100000 --conf PriorityWeightJobSize=1000 \
		--conf PriorityWeightQOS=5000 --conf PriorityWeightPartition=3000 \
		--conf PriorityWeightTRES=CPU=700,Mem=300 \
		--conf "PartitionName=main Default=YES PriorityJobFactor=10 $partitions" \
		--conf "PartitionName=wide PriorityJobFactor=50 $partitions" \
		--conf DebugFlags=Priority --conf SlurmctldDebug=verbose
	{
		on "$1" sacctmgr -i add qos half UsageFactor=0.5 Priority=10
		on "$1" sacctmgr -i add qos double UsageFactor=2 Priority=30 GrpTRES=gres/gpu=3
		on "$1" sacctmgr -i add qos keep Flags=NoDecay Priority=20
		on "$1" sacctmgr -i modify account a,b,c set qos=normal,half,double,keep
	} >"$scratch/sacctmgr-$1" 2>&1 || sed 's/^/# /' "$scratch/sacctmgr-$1"
}

# id leaf qos usage-factor no-decay cpus memory gpus minutes seconds: what runs
runs="1 a/alice half 0.5 0 8 60000 0 60 3000
2 b/alice double 2 0 4 60000 2 60 3000
3 b/bob keep 1 1 16 60000 0 60 3000
4 c/bob normal 1 0 4 30000 4 60 3000
5 c/bob normal 1 0 2 20000 0 10 70
6 a/alice double 2 0 1 10000 1 10 100"

# as NAME LEAF, one job
submit() {
	as "$1" "${2#*/}" sbatch -Q -o /dev/null -A "${2%/*}" "${@:3}" >/dev/null
}

submit_load() {
	local id leaf qos cpus memory gpus minutes seconds
	while read -r id leaf qos _ _ cpus memory gpus minutes seconds; do
		submit "$1" "$leaf" -q "$qos" -n "$cpus" -N1 --mem="$memory" --gres="gpu:$gpus" -t "$minutes" --wrap "sleep $seconds"
		wait_for 20 job_runs "$1" "$id"
	done <<<"$runs"
	submit "$1" a/alice -n 8 --mem=1000 -t 60 --wrap 'sleep 9'              # 7: GrpTRESRunMins of a
	submit "$1" c/bob -n 10 --mem=1000 -t 100 --wrap 'sleep 9'              # 8: GrpTRESMins of c, safe
	submit "$1" b/alice -q double -n 1 --mem=1000 --gres=gpu:2 -t 10 --wrap 'sleep 9' # 9: GrpTRES of the QOS
	# without GPUs, larger than what is free
	submit "$1" a/alice -n 250 --mem=100 -t 1 --wrap 'sleep 9'              # 10
	submit "$1" a/alice -q half -n 240 --mem=200 -t 1 --wrap 'sleep 9'      # 11
	submit "$1" b/alice -q keep -n 250 --mem=100 -t 1 --wrap 'sleep 9'      # 12
	submit "$1" b/bob -n 250 --mem=100 -t 1 --wrap 'sleep 9'                # 13
	submit "$1" b/bob -q double --nice=100 -n 250 --mem=100 -t 1 --wrap 'sleep 9' # 14
	submit "$1" c/bob -p main,wide -n 250 --mem=100 -t 1 --wrap 'sleep 9'   # 15
	submit "$1" c/bob -q half -p wide -n 250 --mem=300 -t 1 --wrap 'sleep 9' # 16
}

field() { sed -n "s/.*\b$1=\([^ ]*\).*/\1/p" | head -1; }

job_runs() { [[ $(on "$1" squeue -h -j "$2" -o %T) == RUNNING ]]; }

epoch() { if [[ $1 == Unknown ]]; then echo 0; else date -d "$1" +%s; fi; }

last_tick() { printf '%d\n' "0x$(od -A n -t x1 -N 8 "$(cluster_dir "$1")/state/priority_last_decay_ran" | tr -d ' \n')"; }

# ticks NAME: their instants, from the last one backwards by the lengths in the log
ticks() {
	local at span
	at=$(last_tick "$1")
	echo "$at"
	for span in $(sed -n 's/.*Decay factor over \([0-9]*\) seconds.*/\1/p' "$(controller_log "$1")" | tac); do
		at=$((at - span))
		echo "$at"
	done
}

later_tick() { (($(last_tick "$1") > $2)); }

# wait_ticks NAME MORE: until as many more ticks are done with
wait_ticks() {
	local i
	for ((i = 0; i < $2; i++)); do wait_for 60 later_tick "$1" "$(last_tick "$1")"; done
}

not() { ! "$@" >/dev/null; }

# what_ran NAME: the runs with start and end
what_ran() {
	local id rest record
	while read -r id rest; do
		record=$(on "$1" scontrol -o show job "$id")
		if [[ $(field JobState <<<"$record") == RUNNING ]]; then
			echo "$id $(epoch "$(field StartTime <<<"$record")") 0 $rest"
		else
			echo "$id $(epoch "$(field StartTime <<<"$record")") $(epoch "$(field EndTime <<<"$record")") $rest"
		fi
	done <<<"$runs"
}

# expected NAME LATE [RESET-TIME ACCOUNT]: "what-of-whom value" at the last tick,
# as multifactor is documented to count. A job that ends in the very second of a
# tick is taken to have ended before it, with LATE=1 after it.
expected() {
	{
		ticks "$1" | sort -n | sed 's/^/tick /'
		what_ran "$1" | sed 's/^/run /'
		if [[ ${3:-} ]]; then echo "reset $3 $4"; fi
	} | awk -v half_life=$half_life -v late="$2" '
	function charge(j, from, to, nodecay,    run, d, k, whole) {
		if (start[j] > from) from = start[j]
		run = to > from ? to - from : 0
		d = run * factor[j] * per_second ^ run
		add(raw, j, billing[j] * d, billing[j] * run * factor[j])
		add(memory_used, j, memory[j] * d, memory[j] * run * factor[j])
		add(gpu_used, j, gpus[j] * d, gpus[j] * run * factor[j])
	}
	function add(what, j, value, whole) {
		what[leaf[j]] += value
		what["qos/" qos[j]] += keep[j] ? whole : value
	}
	function decay(what, d,   k) { for (k in what) if (k != "qos/keep") what[k] *= d }
	function clear(what, account,   k) { for (k in what) if (index(k, account "/") == 1) what[k] = 0 }
	function show(name, what,    k, account, total) {
		for (k in what) {
			printf "%s:%s %.6f\n", name, k, what[k]
			split(k, part, "/")
			if (part[1] != "qos") { account[part[1]] += what[k]; total += what[k] }
		}
		for (k in account) printf "%s:%s %.6f\n", name, k, account[k]
		printf "%s:root %.6f\n", name, total
	}
	function end_run(j,    from) {
		charge(j, last, end[j])
		from = start[j] > last ? start[j] : last
		left[j] -= int((start[j] + limit[j] - from) * factor[j])
		over[j] = 1
	}
	$1 == "tick" { tick[++ticks] = $2 }
	$1 == "reset" { reset_at = $2; reset_of = $3 }
	$1 == "run" {
		j = ++runs
		start[j] = $3; end[j] = $4; leaf[j] = $5; qos[j] = $6; factor[j] = $7; keep[j] = $8
		cpus[j] = $9; memory[j] = $10; gpus[j] = $11; limit[j] = $12 * 60
		billing[j] = cpus[j] + 4 * gpus[j]
		left[j] = int(limit[j] * factor[j])
	}
	END {
		per_second = 1 - 0.693 / half_life
		for (t = 1; t <= ticks; t++) {
			if (reset_of != "" && reset_at <= tick[t]) {
				clear(raw, reset_of); clear(memory_used, reset_of); clear(gpu_used, reset_of); reset_of = ""
			}
			for (j = 1; j <= runs; j++) if (end[j] && end[j] <= tick[t] - late && !over[j]) end_run(j)
			if (t > 1) { d = per_second ^ (tick[t] - last); decay(raw, d); decay(memory_used, d); decay(gpu_used, d) }
			for (j = 1; j <= runs; j++) if (start[j] <= tick[t] && !over[j]) {
				charge(j, last, tick[t])
				from = start[j] > last ? start[j] : last
				left[j] -= int((tick[t] - from) * factor[j])
			}
			last = tick[t]
		}
		for (j = 1; j <= runs; j++) if (end[j] && !over[j]) end_run(j)
		show("raw", raw); show("memory", memory_used); show("gpu", gpu_used)
		for (j = 1; j <= runs; j++) { run_memory[leaf[j]] += left[j] * memory[j]; run_memory["qos/" qos[j]] += left[j] * memory[j] }
		show("runs", run_memory)
	}' | sort
}

# shown NAME: the same from scontrol: usage_raw, used memory and GPU minutes, used run minutes
shown() {
	on "$1" scontrol show assoc_mgr flags=assoc,qos | awk '
	function used(text, what,    at) {
		at = match(text, what "=[^(]*\\([0-9]+\\)")
		if (!at) return 0
		text = substr(text, RSTART, RLENGTH); sub(/.*\(/, "", text); return text + 0
	}
	/^ClusterName=/ {
		match($0, /Account=[^ ]*/); whom = substr($0, RSTART + 8, RLENGTH - 8)
		match($0, /UserName=[^ (]*/); if (RLENGTH > 9) whom = whom "/" substr($0, RSTART + 9, RLENGTH - 9)
	}
	/^QOS=/ { sub(/^QOS=/, ""); sub(/\(.*/, ""); whom = "qos/" $0 }
	/UsageRaw/ { match($0, /UsageRaw[^=]*=[0-9.]+/); v = substr($0, RSTART, RLENGTH); sub(/.*=/, "", v); print "raw:" whom, v }
	/GrpTRESMins=/ { print "memory:" whom, used($0, "mem") * 60; print "gpu:" whom, used($0, "gres/gpu") * 60 }
	/GrpTRESRunMins=/ { print "runs:" whom, used($0, "mem") * 60 }' | sort
}

# differences EXPECTED SHOWN PATTERN: values expected that are not shown;
# minutes are shown without their fraction
differences() {
	join -j 1 -a 1 <(grep -E "$3" "$1") "$2" | awk -v t="$tolerance" '
		{ d = $3 - $2; if (d < 0) d = -d; slack = $1 ~ /^raw/ ? 0.01 : 60; if (NF < 3 || d > t * $2 + slack) print "# " $0; n++ }
		END { if (!n) print "# nothing to compare" }'
}

# compare FILES PATTERN: all that is expected is shown, in one of the two ways
compare() {
	local found
	found=$(differences "$1.expected" "$1.shown" "$2")
	[[ -z $found || -z $(differences "$1.late" "$1.shown" "$2") ]] && return
	echo "$found"
	return 1
}

# measure NAME FILES [RESET ACCOUNT]: FILES.expected, .late and .shown of one moment
measure() {
	local before after
	for _ in 1 2 3 4 5; do
		before=$(last_tick "$1")
		expected "$1" 0 "${@:3}" >"$2.expected"
		expected "$1" 1 "${@:3}" >"$2.late"
		shown "$1" >"$2.shown"
		after=$(last_tick "$1")
		if [[ $before == "$after" ]]; then return; fi
	done
}

factors() { on "$1" sprio -h -o '%i %r %A %B %F %J %P %Q %T %N' | awk '$1 >= 10' | sort -n -k1,1 -k2,2; }
numbers() { on "$1" squeue -h -t PD -o '%i %Q' | awk '$1 >= 10' | sort -n; }
order() { on "$1" squeue -h -t PD -o '%Q %i' | awk '$2 >= 10' | sort -k1,1nr -k2,2n | awk '{ printf "%s ", $2 }'; }
states() { on "$1" squeue -h -o '%i %T' | sort -n; }
reason_is() { [[ $(on "$1" squeue -h -j "$2" -o %r) == "$3" ]]; }
same_factors() { [[ -n $(factors stock) && $(factors stock) == "$(factors budget)" ]]; }
same_states() { [[ $(states stock) == "$(states budget)" ]]; }

up stock priority/multifactor
up budget priority/budget
for name in stock budget; do submit_load $name; done

short_over() { [[ -z $(on "$1" squeue -h -j 5,6 -t R,CG -o %i 2>/dev/null) ]]; }
for name in stock budget; do wait_for 40 short_over $name; done
wait_ticks budget 2
wait_ticks stock 1
for name in stock budget; do measure $name "$scratch/$name"; done

for name in stock budget; do
	ok "$name: TRES usage of associations and QOS is as documented" compare "$scratch/$name" '^(memory|gpu):'
	ok "$name: TRES run minutes of associations and QOS are as documented" compare "$scratch/$name" '^runs:'
	ok "$name: usage_raw of QOS is as documented" compare "$scratch/$name" '^raw:qos/'
done
ok "stock: usage_raw of associations is as documented" compare "$scratch/stock" '^raw:[^q]'
ok "budget: usage_raw of associations is the budget's" not compare "$scratch/budget" '^raw:[^q]'
ok "the same jobs run and wait" wait_for 10 same_states
for name in stock budget; do
	ok "$name: GrpTRESRunMins holds a job" wait_for 20 reason_is $name 7 AssocGrpCPURunMinutesLimit
	ok "$name: GrpTRESMins holds a job, safe" wait_for 20 reason_is $name 8 AssocGrpCPUMinutesLimit
	ok "$name: GrpTRES of a QOS holds a job" wait_for 20 reason_is $name 9 QOSGrpGRES
done
ok "jobs without GPUs have the same factors in every partition" wait_for 20 same_factors
is "and come in the same order" "$(order budget)" "$(order stock)"
is "by numbers that are the same but for the band" "$(numbers budget | awk -v b=$band '{ print $1, $2 - b }')" "$(numbers stock)"

note "                                            documented        multifactor  difference | documented           budget  difference"
join -j 1 "$scratch/stock.expected" "$scratch/stock.shown" >"$scratch/left"
join -j 1 "$scratch/budget.expected" "$scratch/budget.shown" >"$scratch/right"
join -j 1 "$scratch/left" "$scratch/right" | grep -E ':(a|b|c|root|qos/(half|double|keep|normal)) ' | grep -vE '^raw:[^q]|^gpu:' |
	awk '{ printf "# %-34s %16.0f %18.0f %9.4f %% | %10.0f %16.0f %9.4f %%\n", $1, $2, $3, $2 ? 100 * ($3 - $2) / $2 : 0, $4, $5, $4 ? 100 * ($5 - $4) / $4 : 0 }'

note "job without GPUs, its number under multifactor, under budget, less the band"
join <(numbers stock) <(numbers budget) | awk -v b=$band '{ printf "# %18d %18d %18d %18d\n", $1, $2, $3, $3 - b }'

# --- a reset ---
for name in stock budget; do on $name sacctmgr -i modify account b set rawusage=0 >/dev/null; done
reset_at=$(last_tick budget)
for name in stock budget; do wait_ticks $name 1; done
ok "after a reset of an account they still have the same factors" wait_for 20 same_factors
measure budget "$scratch/reset" $((reset_at + 1)) b
ok "budget: TRES usage after the reset is as documented" compare "$scratch/reset" '^(memory|gpu):(b|b/.*|root)'

# --- a kill, and a change back to multifactor ---
cluster budget kill slurmctld
cluster budget start slurmctld
ok "after a kill the books come from their file" grep -q 'own usage of .* associations is taken from their file' "$(controller_log budget)"
wait_ticks budget 1
ok "and give the same factors" wait_for 20 same_factors
cluster budget stop slurmctld
sed -i 's,^PriorityType=.*,PriorityType=priority/multifactor,' "$(cluster_dir budget)/etc/slurm.conf"
ok "a shutdown leaves no file of the books" test ! -e "$(cluster_dir budget)/state/slurm_budget_books"
cluster budget start slurmctld
wait_ticks budget 1
measure budget "$scratch/back" $((reset_at + 1)) b
ok "back under multifactor usage_raw is its own" compare "$scratch/back" '^raw:[^q]'
rm -rf "$scratch"
finish
