#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# slurmctld under valgrind's memcheck with all plugins: jobs with and without a minimum, arrays, heterogeneous
# jobs, updates, requeues, preemption, the tools, a reconfigure and a stop, from its state and with a rebuild:
# no error and no definite leak has a frame of ours.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

budgets=$(budget_file <<-END
	a root 10 alice
	b root 10 bob:3
END
)
reports=$(mktemp -d "${TMPDIR:-/tmp}/slurm-budget-test-$$-valgrind-XXXXXX")
cluster_up memcheck --nodes 2 --gpus 2 --budgets "$budgets" --priority priority/budget \
	--conf PreemptType=preempt/contract --conf PreemptMode=REQUEUE --conf JobSubmitPlugins=contract \
	--conf 'PriorityParameters=window=1h,missing_min_runtime=unallocated' --conf 'AccountingStorageEnforce=associations,limits,qos' \
	--wrap "valgrind --leak-check=full --show-leak-kinds=definite --keep-debuginfo=yes --fullpath-after= --errors-for-leak-kinds=definite --num-callers=40 --log-file=$reports/%p"
rm -f "$budgets"

empty() { [[ -z $(on memcheck squeue -h -t PD,R,CG) ]]; }
pending() { on memcheck squeue -h -r -t PD -o %A | wc -l; }

blocker=$(sleeper memcheck alice a 4 60 -N 2)
ok "a job takes the cluster" wait_for 60 job_is memcheck "$blocker" RUNNING
sleepers memcheck alice a 1 1 5
sleeper memcheck alice a 1 1 --array=1-6 >/dev/null
sleeper memcheck bob b 1 1 --array=1-6 >/dev/null
as memcheck bob sbatch -Q -A b --output=/dev/null --wrap 'exec sleep 1' >/dev/null
ok "jobs and arrays wait" wait_for 20 eval '(($(pending) >= 17))'
for command in 'sprio -l' 'sshare -a -l' 'squeue -o %Q' 'scontrol show assoc_mgr'; do
	# shellcheck disable=SC2086
	ok "$command answers" eval 'on memcheck $command >/dev/null'
done
on memcheck sacctmgr -i modify account a set fairshare=20 >/dev/null
ok "the controller reads its configuration again" on memcheck scontrol reconfigure
on memcheck scontrol requeue "$blocker"
ok "the blocker waits again" wait_for 60 job_is memcheck "$blocker" PENDING
on memcheck scancel "$blocker"
ok "the queue empties" wait_for 120 empty
ok "a minimum that is none is refused" eval '! sleeper memcheck alice a 1 1 --comment=min-runtime=soon 2>/dev/null | grep -q .'
held=$(sleeper memcheck alice a 1 1 --hold --comment=min-runtime=10)
for change in comment=min-runtime=20 timelimit=5 account=a comment=min-runtime=0 qos=normal partition=main numnodes=1 name=x; do
	as memcheck alice scontrol update jobid="$held" "$change" >/dev/null 2>&1
done
on memcheck scontrol update jobid="$held" admincomment='[budget class=allocated contract=1] seen' >/dev/null
ok "a job is changed in many ways" eval 'on memcheck scontrol show job $held | grep -q "AdminComment=.budget class=unallocated. seen"'
on memcheck scancel "$held"
# shellcheck disable=SC2034 # in an eval
victim=$(as memcheck alice sbatch --parsable -A a -n1 -o /dev/null : -A a --gpus=2 -N1 -w n2 --comment=min-runtime=2s --time=60 --wrap 'exec sleep 60' 2>/dev/null | cut -d';' -f1)
ok "a heterogeneous job with a contract runs" wait_for 60 eval 'on memcheck squeue -h -t R -o %A | grep -qx $((victim + 1))'
ok "it gives way after that" wait_for 60 job_is memcheck "$(sleeper memcheck bob b 4 60 -N 2 --comment=min-runtime=2s)" RUNNING
for job in $(on memcheck squeue -h -o %A); do on memcheck scancel "$job"; done
ok "the queue is empty again" wait_for 60 empty
ok "the controller stops" cluster memcheck stop slurmctld

state=$(cluster_dir memcheck)/state/slurm_budget_state
rebuilt() { grep -qE 'usage rebuilt from the accounting database: [1-9]' "$(controller_log memcheck)"; }
cluster memcheck start slurmctld
ok "it goes on from its state" wait_for 60 logged memcheck 'usage as saved at'
ok "a job runs under it" wait_for 60 job_is memcheck "$(sleeper memcheck bob b 1 60)" RUNNING
ok "it stops again" cluster memcheck stop slurmctld
rm -f "$state"
cluster memcheck start slurmctld
ok "without its state usage is rebuilt" wait_for 60 rebuilt
on memcheck scancel -A b
ok "and that job ends" wait_for 60 empty
ok "it stops for good" cluster memcheck stop slurmctld

# findings: the headings of memcheck's error blocks that have a frame in our modules.
findings() {
	awk '
		{ sub(/^==[0-9]+== ?/, "") }
		/^$/ { if (ours && !loader) print heading; heading = ""; ours = loader = 0; next }
		heading == "" { heading = $0 }
		/(priority_budget|preempt_contract|job_submit_contract)\.so|libslurm_budget_|\/(plugins|plugins\/slurm|common)\/[a-z_]+\.(c|cc|h):/ { ours = 1 }
		/ is_dst \(elf\// { loader = 1 } # reads words of a run path beyond its end, where that is a word long
		END { if (ours && !loader) print heading }' "$reports"/* | grep -vE '^(Memcheck|Command|Copyright|Using|Parent|Warning: invalid file descriptor)' || true
}
ended=$(grep -ls 'ERROR SUMMARY' "$reports"/* | wc -l)
ok "memcheck saw the controllers to their end ($ended reports)" test "$ended" -ge 3
found=$(findings)
is "no error and no definite leak of ours" "$found" ""
[[ -z $found ]] || grep -hB2 -A12 -E 'priority_budget|_contract|libslurm_budget_' "$reports"/* | head -40 | sed 's/^/# /'
rm -rf "$reports"

finish
