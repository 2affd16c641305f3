#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# slurmctld killed (SIGKILL) at random moments under load: jobs start, end, are cancelled and requeued all the time.
# After each start the first pass ranks right, and each leaf's usage equals what tests/audit adds up from slurmdbd's rows.
# Five kills; 200 in the long form. What Slurm itself lost is listed.

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/lib.sh
. "$here/lib.sh"

rounds=5
if [[ -n ${SLURM_BUDGET_LONG:-} ]]; then rounds=${SLURM_BUDGET_KILLS:-200}; fi
window=300
seed=${SLURM_BUDGET_SEED:-$$}
RANDOM=$seed
note "seed $seed"

budgets=$(budget_file <<-END
	a root 10 ann
	b root 10 bob bea
	c root 10 cal
END
)
cluster_up kills --nodes 4 --gpus 8 --cpus 64 --budgets "$budgets" --priority priority/budget \
	--conf "PriorityParameters=window=$window"s --conf 'AccountingStorageEnforce=associations,limits' \
	--conf 'Licenses=gate:1' --conf 'SlurmctldTimeout=10' --conf 'MinJobAge=30'
rm -f "$budgets"
state=$(cluster_dir kills)/state/slurm_budget_state
scratch=$(mktemp -d)

# client [--user USER] -- COMMAND...: a call that may fail, and takes 5 s at most
client() { timeout 5 "$minicluster" exec --dir "$(cluster_dir kills)" "$@" 2>/dev/null; }

# The load: team a most of it, b little. One client call at a time.
load() {
	local n=0 job jobs account user gpus seconds
	while [[ ! -e $scratch/enough ]]; do
		n=$((n + 1))
		account=a user=ann gpus=$((RANDOM % 6 + 1)) seconds=$((RANDOM % 9 + 1))
		if ((n % 5 == 0)); then account=b user=bob gpus=1; fi
		if ((n % 10 == 0)); then user=bea; fi
		mapfile -t jobs < <(client -- squeue -h -t R -A a,b -o %A)
		if ((${#jobs[@]} < 40)); then
			client --user "$user" -- sbatch -Q -A "$account" --gpus="$gpus" --time=5 --requeue \
				--output=/dev/null --wrap "exec sleep $seconds" >/dev/null
		fi
		# After a kill Slurm may start a job twice, and drains the nodes of the second start ("Duplicate jobid").
		if [[ -n $(client -- sinfo -h -t drain -o %n) ]]; then
			client -- scontrol update nodename='n[1-4]' state=resume
		fi
		((${#jobs[@]})) || continue
		job=${jobs[RANDOM % ${#jobs[@]}]}
		case $((RANDOM % 8)) in
		0) client -- scancel "$job" ;;
		1) client -- scontrol requeue "$job" >/dev/null ;;
		esac
	done
}

# A job that cannot start, as somebody has the licence: its place in the queue can be looked at.
watcher() { as kills "$1" sbatch --parsable -A "$2" --gpus=1 --time=5 -L gate:1 --output=/dev/null --wrap true; }

saved() { "$build_dir/tests/state_dump" "$state" 2>/dev/null | awk '$1 == "saved" { print $2 }'; }
saved_after() { (($(saved) > $1)); }
licence_is_taken() { [[ $(on kills squeue -h -t R -o %A | wc -l) == 1 ]]; }
have_used() { used kills a 60 && used kills b 5; }

audit() { on kills env SLURM_BUDGET_BUILD_DIR="$build_dir" "$tests_dir/audit" --strict --lost "$scratch/lost" --window "$window" "$scratch/state" >"$scratch/audit" 2>&1; }

# agrees: the state as it is now and the database, once everything has been told
agrees() {
	told_all kills || return 1
	cp "$state" "$scratch/state"
	audit
}

some_compared() { tail -n 1 "$scratch/audit" | grep -qE ' ([5-9]|[0-9]{2,}) runs known to both'; }
show_audit() { grep -v '^equal' "$scratch/audit" | sed -n 's/^/#   /; 1,40p'; }

as kills cal sbatch -Q -A c --time=600 -n 1 -L gate:1 --output=/dev/null --wrap 'exec sleep 36000'
ok "somebody has the licence" wait_for 20 licence_is_taken
load &
loading=$!
watch_a=$(watcher ann a) watch_b=$(watcher bob b) watch_c=$(watcher cal c)
ok "team a has used something, team b less" wait_for 60 have_used
ok "the order is c, b, a" wait_for 10 order_is kills "$watch_c $watch_b $watch_a"
ok "the state is on disk" wait_for 20 saved_after 0

for ((round = 1; round <= rounds; round++)); do
	sleep "$((RANDOM % 6)).$((RANDOM % 10))" # a random moment
	cluster kills kill slurmctld
	sleep "$((RANDOM % 3)).$((RANDOM % 10))" # and a random time away
	started=$(date +%s)
	cluster kills start slurmctld >/dev/null 2>&1
	ok "kill $round: it serves again" wait_for 30 serves kills
	ok "kill $round: the first pass comes" wait_for 10 saved_after $((started - 1))
	is "kill $round: and ranks right" "$(order_of kills "$watch_c" "$watch_b" "$watch_a")" "$watch_c $watch_b $watch_a"
	ok "kill $round: usage equals the auditor's sums" wait_for 20 agrees || show_audit
	ok "kill $round: of runs on both sides" some_compared
	note "$(tail -n 1 "$scratch/audit")"
	grep -E '^(end lost|lost|only)' "$scratch/audit" | sed 's/^/#   /'
done

touch "$scratch/enough"
wait "$loading"
for account in a b; do on kills scancel -A "$account"; done
quiet() { [[ -z $(on kills squeue -h -t R,CG -A a,b) ]]; }
ok "all jobs end" wait_for 60 quiet
ended=$(date +%s)
ok "the state of the end is on disk" wait_for 20 saved_after "$ended"
ok "usage equals the auditor's sums at the end" wait_for 20 agrees || show_audit
raw=$(on kills sshare -a -n -P -o RawUsage | paste -sd' ')
ok "no leaf has a negative or absurd usage ($raw)" eval '! grep -qE "(^| )-|[0-9]{9}" <<<"$raw"'
note "$(tail -n 1 "$scratch/audit")"
rm -rf "$scratch"

finish
