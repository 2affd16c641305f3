#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# slurmctld under valgrind's memcheck with jobs, arrays, requeues, the tools, a
# reconfigure and a stop, from its state and with a rebuild: no error and no definite leak has a frame of ours.

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
		/^$/ { if (ours) print heading; heading = ""; ours = 0; next }
		heading == "" { heading = $0 }
		/priority_budget\.so|libslurm_budget_|\/(plugins|plugins\/slurm|common)\/[a-z_]+\.(c|cc|h):/ { ours = 1 }
		END { if (ours) print heading }' "$reports"/* | grep -vE '^(Memcheck|Command|Copyright|Using|Parent|Warning: invalid file descriptor)' || true
}
ended=$(grep -ls 'ERROR SUMMARY' "$reports"/* | wc -l)
ok "memcheck saw the controllers to their end ($ended reports)" test "$ended" -ge 3
found=$(findings)
is "no error and no definite leak of ours" "$found" ""
[[ -z $found ]] || grep -hB2 -A12 -E 'priority_budget|libslurm_budget_' "$reports"/* | head -60 | sed 's/^/# /'
rm -rf "$reports"

finish
