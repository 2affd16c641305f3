#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What a submission gets from job_submit/contract on a live controller (C1 to C9): each
# row is a job as people write it, whether it is taken, the tag in its record, and
# words of what its owner is told. All jobs are held, so nothing runs unless it is said.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

budgets=$(budget_file <<-END
	a root 10 alice arne
	b root 10 alice bob
	zero root 0 alice zoe
END
)
cluster_up submit --nodes 2 --gpus 8 --gpu-type a100 --budgets "$budgets" --priority priority/budget \
	--conf 'JobSubmitPlugins=contract' --conf 'GresTypes=gpu,mps,shard,tmp' \
	--conf 'PriorityParameters=window=1h,exempt_partition=debug' \
	--conf 'NodeName=c1 NodeHostname=c1 NodeAddr=127.0.0.1 CPUs=64 RealMemory=100000 State=DOWN' \
	--conf 'PartitionName=cpu Nodes=c1 DefaultTime=60' --conf 'PartitionName=both Nodes=n1,c1 DefaultTime=60' \
	--conf 'PartitionName=short Nodes=n[1-2] DefaultTime=30 MaxTime=45' --conf 'PartitionName=open Nodes=n[1-2]' \
	--conf 'PartitionName=whole Nodes=n[1-2] DefaultTime=60 OverSubscribe=EXCLUSIVE' \
	--conf 'PartitionName=debug Nodes=n[1-2] DefaultTime=60'
rm -f "$budgets"
new_folder
scratch=$folder

told= # what the last submission was told
job=  # its id, or nothing

# submit USER [sbatch options]: sets job and told.
submit() {
	job=$(as submit "$1" sbatch -H --parsable --output=/dev/null "${@:2}" --wrap 'exec sleep 1' 2>"$scratch/told") || job=
	told=$(cat "$scratch/told")
}

# field JOB NAME: of scontrol show job, up to the end of its line.
field() { on submit scontrol show job "$1" | sed -n "s/^ *$2=//p; s/.* $2=\([^ ]*\).*/\1/p" | head -n 1 | sed 's/ *$//'; }
tag() { field "$1" AdminComment | sed -n 's/^\[budget class=\([^]]*\)\]$/\1/p'; }

# row VERDICT USER WORDS WHY [sbatch options]: the verdict is `refused`, `no-tag`, or the tag without its brackets
# ("allocated contract=1800"); the words a pattern, "" for none.
row() {
	local verdict=$1 words=$3 why=$4 got
	submit "$2" "${@:5}"
	if [[ -z $job ]]; then got=refused; else got=$(tag "$job"); fi
	if [[ -n $job && -z $(field "$job" AdminComment) ]]; then got=no-tag; fi
	is "$why" "$got" "$verdict" || note "told: $told"
	[[ -z $words ]] || ok "... saying so: $words" grep -qE -- "$words" "$scratch/told" || note "told: $told"
}

half="--comment=min-runtime=30" # minutes
allocated="allocated contract=1800"
ok "the budgets are known" wait_for 10 eval 'submit alice -A zero --gpus=1 "$half"; [[ $told == *"no budget"* ]]'

note "U1, C1: a job that asks for GPUs has to say its minimum, however it is written"
while read -r -a options; do
	row refused alice 'min-runtime is missing' "without a minimum: ${options[*]}" -A a "${options[@]}"
	row "$allocated" alice '' "with one: ${options[*]}" -A a "${options[@]}" "$half"
done <<-END
	--gres=gpu
	--gres=gpu:2
	--gres=gpu:a100
	--gres=gpu:a100:4
	--gpus=12
	--gpus=a100:2
	--gpus-per-node=2
	--ntasks=2 --gpus-per-task=1
	--gpus-per-socket=1 --sockets-per-node=1
	--ntasks=4 --ntasks-per-gpu=2
	--ntasks=2 --gpus-per-task=a100:1
	--gpus=0 --gres=gpu:1
	--exclusive -N1
	-p whole -n1
	-p cpu,main --exclusive -N1
END
# None of these is there, but what they ask for is a part of a GPU, or a second kind of them.
for options in --gres=mps:50 --gres=shard:1 --gres=gpu:1g.5gb:1 --gres=tmp:1,gpu:1 --gpus=a100:2,h100:2; do
	row refused alice 'min-runtime is missing' "without a minimum: $options" -A a "$options"
done

note "C8: a job without GPUs is none of the contract's business"
while read -r -a options; do
	row no-tag alice '' "no GPUs: ${options[*]}" -A a "${options[@]}"
	is "... and nothing is said" "$told" ""
done <<-END
	-n4
	--gres=gpu:0
	--gpus=0
	--gres=gpu:a100:0
	-p cpu --exclusive -N1
	-p both --exclusive -N1
	-p short --time-min=10
END
row no-tag alice 'has no effect' "a minimum of a job without GPUs" -A a -n1 "$half"
row no-tag root '' "root's jobs are the system's" --gpus=1
row "allocated contract=0" alice '' "an exempt partition asks for no minimum" -A a -p debug --gpus=1

note "C1, C3, C4: what may be said"
row "unallocated" alice '' "0 is unallocated" -A a --gpus=1 --comment=min-runtime=0
row "allocated contract=90" alice '' "seconds" -A a --gpus=1 --comment=min-runtime=90s
row "allocated contract=3600" alice '' "exactly the time limit, the partition's" -A a --gpus=1 --comment=min-runtime=1:00:00
row refused alice 'not a time' "no time" -A a --gpus=1 --comment=min-runtime=soon
row refused alice 'not a time' "an empty one" -A a --gpus=1 --comment=min-runtime=
row refused alice 'not a time' "a negative one" -A a --gpus=1 --comment=min-runtime=-5
row refused alice 'longer than the 08:00:00' "more than the maximum" -A a -t 600 --gpus=1 --comment=min-runtime=8:00:01
row refused alice 'time limit of 01:00:00' "more than the partition's default limit" -A a --gpus=1 --comment=min-runtime=61
row "allocated contract=3660" alice '' "that with a limit that has room" -A a -t 61 --gpus=1 --comment=min-runtime=61
row refused alice 'time limit of 00:20:00' "more than the job's own limit" -A a -t 20 --gpus=1 "$half"
row refused alice 'time limit of 00:30:00' "more than the shortest default of its partitions" -A a -p main,short --gpus=1 --comment=min-runtime=31
row "allocated contract=28800" alice '' "no limit at all" -A a -p open --gpus=1 --comment=min-runtime=480
row "allocated contract=28800" alice '' "--time=0 is no limit" -A a -t 0 --gpus=1 --comment=min-runtime=480
on submit sacctmgr -i add qos quick set maxwall=20 >/dev/null
on submit sacctmgr -i add qos free >/dev/null
on submit sacctmgr -i modify account a set qos+=quick >/dev/null
row refused alice 'time limit of 00:20:00' "more than the QOS's longest time" -A a -p open --qos=quick --gpus=1 "$half"
row "$allocated" alice 'raised to 00:30:00' "--time-min is raised" -A a -t 60 --time-min=10 --gpus=1 "$half"
is "C4: the record's TimeMin is the contract" "$(field "$job" TimeMin)" 00:30:00
row "$allocated" alice '' "a deadline without a limit, of which Slurm would cut all but a minute" -A a -p open --deadline=now+5hours --gpus=1 "$half"
is "C4: TimeMin again" "$(field "$job" TimeMin)" 00:30:00

note "whose job it is"
row "$allocated" alice '' "the default account" --gpus=1 "$half"
row "$allocated" alice '' "an account in capitals" -A A --gpus=1 "$half"
row "unallocated" alice 'no budget' "one without a budget in capitals" -A ZERO --gpus=1 "$half"
row refused alice 'Invalid account' "an unknown account is for Slurm to refuse" -A nope --gpus=1 "$half"
row refused alice 'Invalid account' "a very long one" -A "$(printf 'x%.0s' {1..900})" --gpus=1 "$half"
row "unallocated" alice 'no budget' "C5: an account without a budget" -A zero --gpus=1 "$half"
row "unallocated" zoe 'no budget' "C5: by default, with nothing said" --gpus=1
on submit sacctmgr -i add user bob account=b partition=short fairshare=0 >/dev/null
ok "C5: an association of one partition without a budget" wait_for 10 eval 'submit bob -p short --gpus=1 "$half"; [[ $told == *"no budget"* ]]'
row "$allocated" bob '' "and in other partitions its owner has one" --gpus=1 "$half"

note "C7: kinds of jobs"
row "$allocated" alice 'ended, not requeued' "--no-requeue" -A a --no-requeue --gpus=1 "$half"
row "$allocated" alice '' "an array, asked once" -A a --array=0-3%2 --gpus=1 "$half"
is "... and nothing is said" "$told" ""
on submit scontrol hold "${job}_2" 2>/dev/null
is "a task that is split off has the contract" "$(tag "${job}_2")" "$allocated"
row refused alice 'missing' "an array without a minimum" -A a --array=0-3 --gpus=1
job=$(as submit alice sbatch -H --parsable -A a --gpus=1 --comment=min-runtime=20 : --gpus=1 --comment=second : -n1 --comment=third --wrap 'exec sleep 1' 2>"$scratch/told")
is "a heterogeneous job: the part that states a minimum has it" "$(tag "$job+0")" "allocated contract=1200"
ok "... and the one that states none gets it too" wait_for 5 eval '[[ $(tag "$job+1") == "allocated contract=1200" ]]'
is "... one without GPUs has no tag" "$(field "$job+2" AdminComment)" ""
ok "... of which its owner is told, and not that a part of a batch job is interactive" eval '! grep -q interactive "$scratch/told"'
ok "... in words" grep -q 'heterogeneous' "$scratch/told"
ok "--test-only tells what is missing" eval '! as submit alice sbatch --test-only -A a --gpus=1 --wrap true 2>"$scratch/told" && grep -q missing "$scratch/told"'
ok "--test-only lets the other pass" as submit alice sbatch --test-only -A a --gpus=1 "$half" --wrap true 2>"$scratch/told"
ok "salloc is told that it would be ended" eval 'as submit alice salloc -A a --gpus=1 "$half" true 2>"$scratch/told"; grep -q "interactive job will be ended" "$scratch/told"'
ok "srun without a minimum is refused" eval '! as submit alice srun -A a --gpus=1 true 2>"$scratch/told" && grep -q missing "$scratch/told"'
ok "srun with one runs" as submit alice srun -Q -A a --gpus=1 "$half" true 2>"$scratch/told"

note "the word in the comment"
submit alice -A a --gpus=1 --comment='for bob min-runtime=30 and me'
is "the rest of the comment stays" "$(field "$job" Comment)" "for bob and me"
is "the word counts" "$(tag "$job")" "$allocated"
submit alice -A a --gpus=1 "$half"
is "a comment of that word alone is none" "$(field "$job" Comment)" ""
row refused alice 'not a time' "two words are no time" -A a --gpus=1 --comment='min-runtime=30 min-runtime=0'

note "C3: the site's QOS for unallocated jobs"
cluster submit conf 'PriorityParameters=window=1h,exempt_partition=debug,unallocated_qos=free' >/dev/null
ok "in force" wait_for 5 eval 'submit alice -A a --gpus=1 --comment=min-runtime=0; [[ $told == *"QOS free"* ]]'
is "its owner may not use it: it stays in its own" "$(field "$job" QOS)" normal
ok "and is told what to ask for" grep -q 'qos+=free' "$scratch/told"
on submit sacctmgr -i modify account a set qos+=free >/dev/null
ok "once he may it is set" wait_for 5 eval 'submit alice -A a --gpus=1 --comment=min-runtime=0; [[ $(field "$job" QOS) == free ]]'
row "$allocated" alice '' "an allocated job is left in its own" -A a --gpus=1 "$half"
is "QOS" "$(field "$job" QOS)" normal

note "forged: what a program of one's own can send"
cat >"$scratch/forge.c" <<-'END'
	#include <slurm/slurm.h>
	#include <slurm/slurm_errno.h>
	#include <stdio.h>
	#include <stdlib.h>
	#include <string.h>
	#include <unistd.h>
	/* forge ADMIN_COMMENT UID ENTRY...: a job of account a with one GPU and this environment for prologs */
	int main(int argc, char **argv)
	{
		job_desc_msg_t job;
		submit_response_msg_t *answer = NULL;
		char *environment[] = {"PATH=/bin:/usr/bin"};

		slurm_init(NULL);
		slurm_init_job_desc_msg(&job);
		job.account = "a";
		job.user_id = job.group_id = (uint32_t)atoi(argv[2]);
		job.min_cpus = job.min_nodes = 1;
		job.tres_per_node = "gres:gpu:1";
		job.priority = 0;
		job.work_dir = "/tmp";
		job.script = "#!/bin/sh\nexec sleep 1\n";
		job.environment = environment;
		job.env_size = 1;
		job.admin_comment = argv[1][0] != '\0' ? argv[1] : NULL;
		job.spank_job_env = argv + 3;
		job.spank_job_env_size = (uint32_t)(argc - 3);
		if (slurm_submit_batch_job(&job, &answer) != SLURM_SUCCESS) {
			fprintf(stderr, "%s\n", slurm_strerror(slurm_get_errno()));
			return 1;
		}
		printf("%u\n", answer->job_id);
		return 0;
	}
END
ok "the program is compiled" gcc -w -o "$scratch/forge" "$scratch/forge.c" -lslurm
entry=_SLURM_SPANK_OPTION_budget_min_runtime
alice=$(as submit alice id -u)
# forged USER ADMIN_COMMENT ENTRY...: sets job.
forged() { job=$(as submit "$1" "$scratch/forge" "$2" "$alice" "${@:3}" 2>"$scratch/told") || job=; }
forged alice "" "$entry=30"
is "C1: the option's entry in the environment counts" "$(tag "$job")" "$allocated"
forged alice "" OTHER=1 "$entry=30" "$entry=480" "$entry=0"
is "of several the first counts, and is checked" "$(tag "$job")" "$allocated"
forged alice "" "$entry=600"
is "one beyond the maximum is refused" "$job" ""
forged alice "" "$entry=61"
is "one beyond the time limit is refused" "$job" ""
forged alice "" "${entry}x=30"
is "another name is none" "$job" ""
forged alice "" "SPANK_$entry=30"
is "nor is one with a prefix" "$job" ""
forged alice "[budget class=allocated contract=7200]" "$entry=0"
is "a user cannot send an admin_comment" "$job" ""
forged root "[budget class=allocated contract=7200] [budget class=allocated contract=9] for the audit" "$entry=0"
is "a tag that an administrator sends is written anew, other text kept" "$(field "$job" AdminComment)" "[budget class=unallocated] for the audit"

note "a parameter that is broken leaves the last good ones in force"
cluster submit conf 'PriorityParameters=window=1h,max_min_runtime=never' >/dev/null
ok "the log says what is wrong" wait_for 5 logged submit 'max_min_runtime=never'
row refused alice 'missing' "submissions go on: one without a minimum" -A a --gpus=1
row "$allocated" alice '' "one with" -A a --gpus=1 "$half"
cluster submit conf 'PriorityParameters=window=1h,max_min_runtime=10m' >/dev/null
row refused alice 'longer than the 00:10:00' "and a good one is in force at once" -A a --gpus=1 "$half"
cluster submit conf 'PriorityParameters=window=1h' 'JobRequeue=0' >/dev/null
ok "C7: with JobRequeue=0 everybody is told" wait_for 5 eval 'submit alice -A a --gpus=1 "$half"; [[ $told == *"ended, not requeued"* ]]'
row "$allocated" alice '' "but who asks for it with --requeue" -A a --requeue --gpus=1 "$half"
is "... and nothing is said" "$told" ""
cluster submit conf 'JobRequeue=1' >/dev/null

note "what must always hold, over random submissions"
# shellcheck disable=SC2016
as submit alice bash -c '
	gpus=(--gpus=1 --gpus=9 --gres=gpu:2 --exclusive -n2 --gpus-per-node=3) parts=(main short open cpu main,short debug whole)
	RANDOM=4711
	for ((i = 0; i < 500; i++)); do
		options=("${gpus[RANDOM % 6]}" -p "${parts[RANDOM % 7]}" -A "$( ((RANDOM % 5)) && echo a || echo zero)")
		((RANDOM % 3)) || options+=(-t $((RANDOM % 600)))
		((RANDOM % 4)) || options+=(--time-min=$((1 + RANDOM % 60)))
		((RANDOM % 8)) || options+=(--array=0-$((RANDOM % 9)))
		((RANDOM % 5 == 0)) || options+=(--comment="text min-runtime=$((RANDOM % (RANDOM % 2 ? 40 : 700)))")
		sbatch -Q -H --output=/dev/null "${options[@]}" --wrap true >/dev/null 2>&1
	done' random
on submit scontrol show job -o >"$scratch/all"
awk '
	function seconds(text, n, d, p) {
		if (text == "UNLIMITED") return 1e9
		if (split(text, d, "-") == 2) text = d[2]; else d[1] = 0
		split(text, p, ":")
		return d[1] * 86400 + p[1] * 3600 + p[2] * 60 + p[3]
	}
	/AdminComment=\[budget/ {
		jobs++
		match($0, /TimeLimit=[^ ]*/); limit = seconds(substr($0, RSTART + 10, RLENGTH - 10))
		if (match($0, /TimeLimit=Partition_Limit/)) limit = 1e9
		match($0, /TimeMin=[^ ]*/); least = substr($0, RSTART + 8, RLENGTH - 8)
		contract = match($0, /contract=[0-9]+/) ? substr($0, RSTART + 9, RLENGTH - 9) + 0 : 0
		if (contract > 0) allocated++
		if (contract < 0 || contract > 28800 || contract > limit || (least != "N/A" && seconds(least) < contract)) { if (wrong++ < 3) print "# " $0 }
	}
	END { printf "# %d tagged, %d allocated, %d wrong\n", jobs, allocated, wrong; exit wrong > 0 || allocated < 50 }' "$scratch/all" >"$scratch/checked"
ok "0 <= minimum <= maximum, <= time limit, <= --time-min, of every record" test $? = 0
cat "$scratch/checked"
grep 'TRES=[^ ]*gres/gpu' "$scratch/all" | grep -v 'UserId=root' | grep -v 'AdminComment=.budget class=' >"$scratch/untagged"
is "every GPU job of a user has a tag" "$(cut -c1-200 "$scratch/untagged")" ""
ok "slurmctld still serves" serves submit

note "without priority/budget jobs go through as they are"
cluster submit down >/dev/null
cluster_up plain --nodes 1 --gpus 2 --conf 'JobSubmitPlugins=contract'
ok "a GPU job without a minimum is taken" as plain alice sbatch -Q -H --gpus=1 --wrap true
is "it has no tag" "$(on plain scontrol show job 1 | grep -c AdminComment)" 0
ok "the log says why" logged plain 'job_submit/contract: jobs are accepted without a contract: .*PriorityType=priority/budget'
ok "an update is taken" as plain alice scontrol update jobid=1 timelimit=5

finish
