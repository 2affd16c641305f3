#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# --min-runtime on a live controller (C1): what sbatch, salloc and srun send from script,
# environment and command line, part by part; what is refused on the spot; and what a
# job finds in its environment (P7), also when slurmctld does not answer. No other
# plugin of ours is loaded: contracts are written into the records by hand.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

new_folder
scratch=$folder
cluster_up spank --nodes 3 --gpus 0 --users alice --plugstack 'required spank_contract.so' --conf SlurmctldDebug=debug3
home=$(cluster_dir spank)/home/alice
log=$(controller_log spank)

# in_home NAME: a file for alice, from the input
in_home() {
	cat >"$home/$1"
	chmod 755 "$home/$1"
}

# sent COMMAND...: what alice's command sent to slurmctld as minimum runtimes, in one line; its words in $scratch/words
sent() {
	local from
	from=$(wc -c <"$log")
	as spank alice timeout 30 "$@" >"$scratch/words" 2>&1
	tail -c +$((from + 1)) "$log" | grep -ao 'spank_job_env=.*' | grep -ao 'OPTION_budget_min_runtime=[^",]*' | cut -d= -f2 | paste -sd' '
}

in_home script <<-'END'
	#!/bin/sh
	#SBATCH --output=/dev/null
	#SBATCH --min-runtime=11
	exec true
END
in_home parts <<-'END'
	#!/bin/sh
	#SBATCH --output=/dev/null --min-runtime=21
	#SBATCH hetjob
	#SBATCH --min-runtime=22
	#SBATCH hetjob
	#SBATCH -n1
	exec true
END

note "where it comes from"
ok "sbatch --help tells of it" eval '[[ $(as spank alice sbatch --help) == *--min-runtime=TIME* ]]'
is "script alone" "$(sent sbatch script)" 11
is "environment beats script" "$(sent env SBATCH_MIN_RUNTIME=12 sbatch script)" 12
is "command line beats both" "$(sent env SBATCH_MIN_RUNTIME=12 sbatch --min-runtime=13m script)" 13m
is "the command line beats the script" "$(sent sbatch --min-runtime=0 script)" 0
is "environment alone, with --wrap" "$(sent env SBATCH_MIN_RUNTIME=2:00:00 sbatch -o /dev/null --wrap true)" 2:00:00
is "nothing is sent where nothing is stated" "$(sent sbatch -o /dev/null --wrap true)" ""
is "an empty variable states nothing" "$(sent env SBATCH_MIN_RUNTIME= sbatch script)" 11
is "another command's variable states nothing" "$(sent env SALLOC_MIN_RUNTIME=5 SLURM_MIN_RUNTIME=6 sbatch script)" 11
is "with --export=NONE too" "$(sent sbatch -H --export=NONE script)" 11
is "salloc, environment" "$(sent env SALLOC_MIN_RUNTIME=14 salloc true)" 14
is "salloc, command line" "$(sent env SALLOC_MIN_RUNTIME=14 salloc --min-runtime=15 true)" 15
is "srun, environment" "$(sent env SLURM_MIN_RUNTIME=16 srun true)" 16
is "srun, command line" "$(sent env SLURM_MIN_RUNTIME=16 srun --min-runtime=17 true)" 17

note "heterogeneous jobs: each part its own; one that states none has that of the part before it"
is "C7: command line" "$(sent sbatch -o /dev/null --min-runtime=21 -n1 : --min-runtime=22 -n1 : -n1 --wrap true)" "21 22 22"
is "C7: script" "$(sent sbatch parts)" "21 22 22"
is "C7: command line over script, in one part" "$(sent sbatch --min-runtime=23 -n1 : -n1 : -n1 parts)" "23 22 22"
is "C7: environment over script, in all parts" "$(sent env SBATCH_MIN_RUNTIME=24 sbatch parts)" "24 24 24"
is "C7: environment where the command line states none" \
	"$(sent env SBATCH_MIN_RUNTIME=24 sbatch -o /dev/null --min-runtime=25 -n1 : -n1 --wrap true)" "25 24"
is "C7: a part before the first that states one has none" "$(sent sbatch -o /dev/null -n1 : --min-runtime=26 -n1 --wrap true)" 26
ok "the nodes are free" wait_for 30 eval '[[ -z $(on spank squeue -h -t R,PD,CG | grep -v JobHeldUser) ]]'
is "C7: srun" "$(sent srun --min-runtime=27 -n1 true : --min-runtime=28 -n1 true)" "27 28"

note "refused on the spot"
# refused VALUE WORDS: sbatch does not take it, and says so
refused() {
	[[ -z $(sent sbatch "--min-runtime=$1" script) ]] && grep -q -- "$2" "$scratch/words" && ! grep -q Submitted "$scratch/words"
}
ok "C1: no time" refused 2x 'error: --min-runtime=2x: not a time; write .*8h'
ok "C1: no limit is no minimum" refused UNLIMITED 'not a time'
ok "C1: negative" refused -1 'not a time'
ok "C1: empty" refused '' 'not a time'
ok "C1: too long to be meant" refused 40000d 'too long'
is "C1: a bad environment is refused" "$(sent env SBATCH_MIN_RUNTIME=soon sbatch script)" ""
ok "by the variable's name" grep -q 'error: SBATCH_MIN_RUNTIME=soon: not a time' "$scratch/words"
in_home bad <<<$'#!/bin/sh\n#SBATCH --min-runtime=1.5h\ntrue'
is "C1: a bad line in a script is refused" "$(sent sbatch bad)$(grep -c 'min-runtime=1.5h: not a time' "$scratch/words")" 1
# Debian has no scrontab; the plugin goes by the command's name.
ln -s "$(command -v sbatch)" "$scratch/scrontab"
sent "$scratch/scrontab" --min-runtime=5 script >/dev/null
ok "scrontab, which would lose it, says what to write" grep -q 'SCRON --comment=min-runtime=TIME' "$scratch/words"

note "in an allocation"
sent salloc --min-runtime=31 srun --min-runtime=3 true >/dev/null
ok "a step is told that it has no minimum of its own" grep -q 'no effect on a step.*sbudget contract [0-9]* --min-runtime=TIME' "$scratch/words"
sent env SLURM_MIN_RUNTIME=3 salloc --min-runtime=31 srun true >/dev/null
ok "but not for its environment" eval '! grep -q "no effect" "$scratch/words"'
in_home nested <<-'END'
	#!/bin/sh
	#SBATCH --output=/dev/null --min-runtime=32
	sbatch script
END
from=$(wc -c <"$log")
as spank alice sbatch nested >/dev/null
inner() { tail -c +$((from + 1)) "$log" | grep -ao 'OPTION_budget_min_runtime=[0-9]*' | cut -d= -f2 | paste -sd' '; }
ok "a job that submits another does not hand its own minimum on" wait_for 20 eval '[[ $(inner) == "32 11" ]]'

note "what the job finds (P7)"
in_home tell <<-'END'
	#!/bin/sh
	{ env | grep ^SLURM_BUDGET | sort; echo step; srun env | grep ^SLURM_BUDGET | sort; date +%s; echo end; } >"$1" 2>&1
END
inherited=A=1
# tagged TAG FILE [sbatch options]: runs tell with this tag in its record; what it says is in $home/FILE
tagged() {
	job=$(as spank alice env "$inherited" sbatch --parsable -H -o /dev/null "${@:3}" tell "$2")
	on spank scontrol update jobid="$job" admincomment="$1" >/dev/null
	on spank scontrol release "$job"
	wait_for 30 grep -qs '^end' "$home/$2"
}
found() { sed -n "1,/^step/s/^SLURM_BUDGET_$2=//p" "$home/$1"; }
start_of() { on spank sacct -X -n -P -j "$1" -o Start | xargs -I{} date -d {} +%s; }
ok "an allocated job runs" tagged '[budget class=allocated contract=7200] text of others' first
is "its minimum in seconds" "$(found first MIN_RUNTIME)" 7200
ok "slurmdbd has its start" wait_for 10 eval '[[ $(start_of "$job") =~ ^[0-9]+$ ]]'
start=$(start_of "$job")
is "until when it is protected" "$(found first PROTECTED_UNTIL)" $((start + 7200))
is "the same in words" "$(date -d "$(found first PROTECTED_UNTIL_TEXT)" +%s)" $((start + 7200))
is "its steps find the same" "$(sed -n '/^step/,$p' "$home/first" | grep -cE "^SLURM_BUDGET_(MIN|PROT)")" 3
ok "an unallocated job runs" tagged '[budget class=unallocated]' second
is "no minimum" "$(found second MIN_RUNTIME)" 0
is "never protected" "$(found second PROTECTED_UNTIL)" "$(start_of "$job")"
inherited=SLURM_BUDGET_PROTECTED_UNTIL=5
ok "a job without a contract runs" tagged 'text of others' third
is "nothing is set, and what it inherits is taken away" "$(grep -cE "^SLURM_BUDGET_(MIN|PROT)" "$home/third")" 0
ok "a task of an array runs" tagged '[budget class=allocated contract=60]' fourth --array=7
is "and has its own" "$(found fourth MIN_RUNTIME)" 60

note "slurmctld does not answer when the job starts"
cat >"$scratch/prolog" <<-END
	#!/bin/sh
	read -r pid start <$(cluster_dir spank)/run/slurmctld.pid
	kill -STOP \$pid
	date +%s >$scratch/stopped
END
chmod 755 "$scratch/prolog"
cluster spank conf "Prolog=$scratch/prolog" >/dev/null
read -r controller _ <"$(cluster_dir spank)/run/slurmctld.pid"
in_home silent <<-'END'
	#!/bin/sh
	{ env | grep -E "^SLURM_BUDGET_(MIN|PROT)"; date +%s; echo end; } >silence
END
as spank alice sbatch -o /dev/null --min-runtime=1 silent >/dev/null
ok "the job starts all the same" wait_for 30 grep -qs '^end' "$home/silence"
kill -CONT "$controller"
waited=$(($(head -1 "$home/silence") - $(cat "$scratch/stopped")))
ok "after a few seconds ($waited)" test "$waited" -ge 3 -a "$waited" -le 8
ok "one line in slurmd's log says so" eval \
	'[[ $(cat "$(cluster_dir spank)"/log/slurmd-n*.log | grep -c "not told until when it is protected: slurmctld gave no answer in time") == 1 ]]'
cluster spank conf Prolog= >/dev/null
ok "the job ends well" wait_for 30 eval '[[ -z $(on spank squeue -h -t R,CG) ]]'

note "compute nodes without the plugin"
client() { as spank alice env SLURM_CONF="$scratch/slurm.conf" "$@"; }
cp "$(cluster_dir spank)/etc/plugstack.conf" "$scratch/plugstack.conf"
sed "s,^PlugStackConfig=.*,PlugStackConfig=$scratch/plugstack.conf," "$(cluster_dir spank)/etc/slurm.conf" >"$scratch/slurm.conf"
: >"$(cluster_dir spank)/etc/plugstack.conf"
chmod 644 "$scratch"/*.conf
client sbatch -o "$home/bare" --min-runtime=5 --wrap 'echo runs; env | grep ^SLURM_BUDGET; srun echo step' >/dev/null
ok "a job with the option runs there" wait_for 30 grep -qs '^step' "$home/bare"
is "and is told nothing" "$(grep -cE "^SLURM_BUDGET_(MIN|PROT)" "$home/bare")" 0

finish
