#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Live test of tests/minicluster, as root: two clusters started at the same moment, jobs of several users, restarts, a fast
# clock, and that nothing is left. TAP lines and the closing count. Seconds are real ones unless a name says otherwise.
# shellcheck disable=SC2317,SC2016 # functions called by name; strings expanded in the cluster
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
base=$(mktemp -d "${TMPDIR:-/tmp}/mct.XXXXXX")
chmod 755 "$base"
one=$base/one two=$base/two broken=$base/broken
passed=0 failed=0

mini() { "$here/minicluster" "$@"; }
on() { mini exec --dir "$1" -- "${@:2}"; }
as() { mini exec --dir "$1" --user "$2" -- "${@:3}"; }

# ok DESCRIPTION COMMAND...: one test line, by the command's exit status.
ok() {
    local description=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        echo "ok $((passed + failed)) - $description"
    else
        failed=$((failed + 1))
        echo "not ok $((passed + failed)) - $description"
        echo "#   failed: $*"
    fi
}

# is DESCRIPTION GOT WANTED
is() {
    ok "$1" test "$2" = "$3"
    [[ $2 == "$3" ]] || printf '#   got:    %s\n#   wanted: %s\n' "$2" "$3"
}

# code COMMAND...: prints its exit code.
code() {
    local code=0
    "$@" >/dev/null 2>&1 </dev/null || code=$?
    echo "$code"
}

# eventually SECONDS COMMAND...: 0 as soon as it succeeds.
eventually() {
    local deadline=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000))
    shift
    until "$@"; do
        ((${EPOCHREALTIME/[.,]/} < deadline)) || return 1
        sleep 0.1
    done
}

# state DIR JOB WANTED: the job's state in slurmdbd's records.
state() { [[ $(on "$1" sacct -nXP -j "$2" -o state 2>/dev/null) == "$3"* ]]; }
running() { [[ $(on "$1" squeue -h -j "$2" -o %T 2>/dev/null) == RUNNING ]]; }

# job_process FILE: the process id that a job has written there; fails unless it lives.
job_process() {
    local process
    process=$(cat "$1") && [[ $process ]] && ! gone "$process" && echo "$process"
}

alive() { job_process "$1" >/dev/null 2>&1; }

# gone PID...: none exists; a zombie counts as gone.
gone() {
    local pid fields
    for pid; do
        { read -r fields <"/proc/$pid/stat"; } 2>/dev/null || continue
        fields=${fields##*) }
        [[ ${fields%% *} == [ZX] ]] || return 1
    done
}

# ours: processes that have anything of this test's folder open, or in their command line or environment.
ours() {
    {
        find /proc/[0-9]*/{cwd,root,exe,fd} -lname "$base*" 2>/dev/null
        grep -lF "$base" /proc/[0-9]*/{cmdline,environ} 2>/dev/null
    } | sed -n 's,^/proc/\([0-9]*\)/.*,\1,p' | sort -un | while read -r pid; do
        gone "$pid" || echo "$pid"
    done
}

# listening ADDRESS FIRST: ports of the block of 64 from FIRST on which somebody listens at an address that matches.
listening() {
    local address port
    while IFS=: read -r address port; do
        if [[ $address =~ $1 ]] && ((16#$port >= $2 && 16#$port < $2 + 64)); then echo $((16#$port)); fi
    done < <(awk '$4 == "0A" {print $2}' /proc/net/tcp)
}

machine() { cat /etc/passwd /etc/group /proc/sysvipc/{shm,sem,msg} | cksum; }

cleanup() {
    local dir
    for dir in "$one" "$two" "$broken"; do
        if [[ -d $dir ]]; then mini down --dir "$dir" >/dev/null 2>&1; fi
    done
    rm -rf "$base"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

write_budgets() {
    cat <<'END'
Cluster - 'elsewhere':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'physics':Description='physics':Organization='physics':Fairshare=60
Account - 'biology':Description='biology':Organization='biology':Fairshare=40
Parent - 'physics'
User - 'carol':DefaultAccount='physics':Fairshare=1
Parent - 'biology'
User - 'dave':DefaultAccount='biology':Fairshare=1
END
}

# --- usage, and two clusters started at the same moment --------------------------------------------------------------

if ((EUID != 0)); then
    ok "this test is run as root" false
    echo "$passed passed, $failed failed"
    exit 1
fi
before=$(machine)
write_budgets >"$base/budgets"

is "help succeeds" "$(code mini --help)" 0
is "an unknown command is wrong usage" "$(code mini fly)" 2
is "an unknown option is wrong usage" "$(code mini up --wings 2)" 2
is "a number out of range is wrong usage" "$(code mini up --dir "$one" --nodes 0)" 2
is "a fast clock and a backup's own clock is wrong usage" "$(code mini up --dir "$one" --speed 60 --backup 90)" 2
is "no cluster has a code of its own" "$(code mini status --dir "$one")" 4

mini up --dir "$one" --nodes 2 >"$base/one.log" 2>&1 &
first=$!
mini up --dir "$two" --nodes 1 --gpu-type a100 --speed 60 --budgets "$base/budgets" --conf KillWait=11 \
    --conf 'PartitionName=debug Nodes=ALL' >"$base/two.log" 2>&1 &
second=$!
wait "$first"
is "the first of two simultaneous clusters comes up" $? 0
wait "$second"
is "the second of two simultaneous clusters comes up" $? 0
sed 's/^/# /' "$base/one.log" "$base/two.log"

# A controller that cannot start, while the others work.
mini up --dir "$broken" --nodes 1 --backup 90 --priority priority/nonsense >"$base/broken.log" 2>&1 &
third=$!

# --- the first: users, accounts, GPUs, records -----------------------------------------------------------------------

is "a second up in the same folder is refused" "$(code mini up --dir "$one")" 4
is "exec passes the exit code on" "$(code on "$one" sh -c 'exit 7')" 7
is "exec knows its users only" "$(code as "$one" mallory true)" 2
is "a user has a uid of its own" "$(as "$one" bob sh -c 'id -un; test "$(id -u)" != 0 && pwd')" "bob
$one/home/bob"
ok "the machine does not know the user" test "$(code getent passwd bob)" != 0

script='echo "$(id -un) $SLURM_JOB_ACCOUNT $CUDA_VISIBLE_DEVICES"'
a=$(as "$one" alice sbatch --parsable -o out --gres=gpu:2 --wrap "$script")
b=$(as "$one" bob sbatch --parsable -o out --gres=gpu:8 --wrap "$script")
ok "alice's job is recorded as completed" eventually 15 state "$one" "$a" COMPLETED
ok "bob's job is recorded as completed" eventually 15 state "$one" "$b" COMPLETED
is "alice's job ran as alice with two GPUs" "$(cat "$one/home/alice/out")" "alice team_alice 0,1"
is "bob's job ran as bob with eight GPUs" "$(cat "$one/home/bob/out")" "bob team_bob 0,1,2,3,4,5,6,7"
is "the records have users, accounts and GPUs" \
    "$(on "$one" sacct -nXP -j "$a,$b" -o user,account,alloctres | grep -o '^[^|]*|[^|]*\|gres/gpu=[0-9]*' | paste -sd' ')" \
    "alice|team_alice gres/gpu=2 bob|team_bob gres/gpu=8"
is "srun works for a user" "$(as "$one" alice srun --gres=gpu:1 id -un)" alice
is "env lines work in a shell" "$(eval "$(mini env --dir "$one")" && sinfo -h -o %D)" 2
mapfile -t ports < <(cat "$one/run/port-base" "$two/run/port-base")
is "the ports are used: one held, slurmdbd, slurmctld, two slurmd" "$(listening '^0100007F$' "${ports[0]}" | wc -l)" 5
is "all listen on loopback only" "$(listening . "${ports[0]}" | wc -l)" 5

# --- the second: budgets, options, a fast clock ----------------------------------------------------------------------

ok "two clusters have ports of their own" test "${ports[0]}" != "${ports[1]}"
is "the other cluster has no jobs" "$(on "$two" squeue -h; on "$two" sacct -nX -a)" ""
is "the budgets are loaded" "$(on "$two" sacctmgr -nP show assoc format=account,user,share where account=physics,biology |
    sort | paste -sd' ')" "biology|dave|1 biology||40 physics|carol|1 physics||60"
is "--conf replaces and adds" "$(on "$two" scontrol show config | sed -n 's/^KillWait *= //p') $(on "$two" sinfo -h -o %P |
    sort | paste -sd' ')" "11 sec debug main*"
mini conf --dir "$two" KillWait=12
is "conf changes a live cluster" "$(on "$two" scontrol show config | sed -n 's/^KillWait *= //p')" "12 sec"

began=${EPOCHREALTIME/[.,]/}
fast=$(on "$two" date +%s)
c=$(as "$two" carol sbatch --parsable --gres=gpu:a100:1 --time=2 --wrap 'sleep 86400')
ok "a limit of 2 fast minutes ends a job in TIMEOUT" eventually 20 state "$two" "$c" TIMEOUT
elapsed=$(((${EPOCHREALTIME/[.,]/} - began) / 1000))
fast=$(($(on "$two" date +%s) - fast))
echo "# $fast s of the fast clock in $elapsed ms"
ok "it took seconds, not minutes: $elapsed ms" test "$elapsed" -ge 1900 -a "$elapsed" -lt 15000
ok "the clock in exec is 60 times as fast" test $((fast * 1000)) -gt $((elapsed * 55)) -a $((fast * 1000)) -lt $((elapsed * 75))
limit=$(on "$two" sacct -nXP -j "$c" -o elapsedraw)
ok "the record has fast seconds: $limit" test "$limit" -ge 120 -a "$limit" -le 400

# --- restarts --------------------------------------------------------------------------------------------------------

d=$(as "$one" alice sbatch --parsable --gres=gpu:8 --wrap 'echo $$ >pid && sleep 300 && true')
e=$(as "$one" bob sbatch --parsable --gres=gpu:1 --wrap 'echo $$ >pid && env -i sleep 300 && true')
ok "a long job runs" eventually 10 running "$one" "$d"
ok "another long job runs" eventually 10 running "$one" "$e"
ok "its process is there" eventually 10 alive "$one/home/alice/pid"
ok "so is the other's" eventually 10 alive "$one/home/bob/pid"
process=$(job_process "$one/home/alice/pid")
started=$(on "$one" squeue -h -j "$d" -o %S)
controller=$(<"$one/run/slurmctld.pid")
mini restart slurmctld --dir "$one"
is "restart slurmctld succeeds" $? 0
ok "it is another process" test "$controller" != "$(<"$one/run/slurmctld.pid")"
is "the job runs on since its start" "$(on "$one" squeue -h -j "$d" -o '%T %S')" "RUNNING $started"
is "as the same process" "$(job_process "$one/home/alice/pid")" "$process"
mini kill slurmctld slurmd-n2 --dir "$one"
is "kill succeeds" $? 0
is "status tells that daemons are missing" "$(code mini status --dir "$one")" 1
mini start slurmctld slurmd-n2 --dir "$one"
is "start succeeds" $? 0
is "all daemons run again" "$(code mini status --dir "$one")" 0
is "the job still runs" "$(on "$one" squeue -h -j "$d" -o '%T %S')" "RUNNING $started"
is "as the same process still" "$(job_process "$one/home/alice/pid")" "$process"

# --- down ------------------------------------------------------------------------------------------------------------

wait "$third"
is "up fails with a plugin that does not exist" $? 1
ok "it names the daemon and shows why" grep -q 'slurmctld.*did not start.*\|cannot find priority plugin' "$base/broken.log"
ok "it leaves no folder" test ! -e "$broken"

mapfile -t pids < <(
    cut -d' ' -f1 "$one"/run/*.pid "$two"/run/*.pid
    cat "$one"/home/{alice,bob}/pid
    for user in alice bob; do pgrep -P "$(cat "$one/home/$user/pid")"; done
)
ok "there are processes to end: ${#pids[@]}" test "${#pids[@]}" -ge 17
ok "the search for what is left finds them" test "$(ours | wc -l)" -ge "${#pids[@]}"
mapfile -t shared < <(sed -n '2s,[ /]\+,\n,gp' "$two/etc/clock" | grep .)
mini down --dir "$one" --save-logs "$base/logs"
is "down of the first succeeds" $? 0
mini down --dir "$two"
is "down of the second succeeds" $? 0
ok "the logs were saved" test -s "$base/logs/slurmctld.log"
ok "the folders are gone" test ! -e "$one" -a ! -e "$two"
ok "daemons, steps and jobs are gone" gone "${pids[@]}"
is "no process is left" "$(ours)" ""
is "no port is left" "$(listening . "${ports[0]}")$(listening . "${ports[1]}")" ""
is "two names of shared memory were used" "${#shared[@]}" 2
is "no shared memory is left" "$(find /dev/shm -name "*${shared[0]}*" -o -name "*${shared[1]}*")" ""
is "users and System V IPC of the machine are as before" "$(machine)" "$before"
is "down of nothing is refused" "$(code mini down --dir "$one")" 4

echo "$passed passed, $failed failed"
exit $((failed > 0))
