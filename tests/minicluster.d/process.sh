# shellcheck shell=bash disable=SC2154,SC2034 # the variables of tests/minicluster
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Processes of a private cluster, sourced by tests/minicluster: start, stop and kill by process id and start time,
# never by name. A daemon NAME has run/NAME.pid ("pid starttime") and log/NAME.out. Deadlines are seconds of real
# time. Needs $dir.

# proc_stat PID: sets proc_state and proc_start; fails when there is no such process. A zombie counts as gone.
proc_stat() {
    local line fields
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    read -ra fields <<<"${line##*) }"
    proc_state=${fields[0]} proc_start=${fields[19]}
    [[ $proc_state != [ZX] ]]
}

# daemon_pid NAME: sets pid when the daemon runs, else fails.
daemon_pid() {
    local start
    pid=
    [[ -r $dir/run/$1.pid ]] || return 1
    read -r pid start <"$dir/run/$1.pid" || return 1
    proc_stat "$pid" && [[ $proc_start == "$start" ]]
}

daemon_gone() { ! daemon_pid "$1"; }

# wait_until SECONDS COMMAND...: 0 as soon as the command succeeds, 1 at the deadline. If $watch names daemons, it
# gives up when one of them is gone.
wait_until() {
    local deadline=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000)) name
    shift
    until "$@"; do
        for name in ${watch:-}; do
            daemon_pid "$name" || return 1
        done
        ((${EPOCHREALTIME/[.,]/} < deadline)) || return 1
        sleep 0.03
    done
}

# port_open PORT [N]: somebody listens there, on 127.0.0.1 or 127.0.0.N. No connection is made: the daemons would log it
# as an error.
port_open() { grep -q "$(printf '%02X00007F:%04X 00000000:0000 0A' "${2:-1}" "$1")" /proc/net/tcp; }

# close_inherited: a daemon must not keep a caller's pipes or locks open.
close_inherited() {
    local entry fd
    for entry in /proc/"$BASHPID"/fd/*; do
        fd=${entry##*/}
        if ((fd > 2)); then eval "exec $fd>&-"; fi
    done
}

# daemon_launch NAME COMMAND...: runs it in a session of its own and records its process id.
daemon_launch() {
    local name=$1
    shift
    (
        trap - EXIT INT TERM HUP ERR
        exec </dev/null >>"$dir/log/$name.out" 2>&1
        close_inherited
        cd "$dir/log" || exit
        export MINICLUSTER_DAEMON=$dir
        exec setsid "$@"
    ) &
    proc_stat $! || true
    echo "$! ${proc_start:-0}" >"$dir/run/$name.pid"
}

# daemon_signal NAME SIGNAL: to the daemon's whole group: the prefix of --wrap and slurmscriptd belong to it too.
daemon_signal() {
    daemon_pid "$1" || return 0
    kill "-$2" -- "-$pid" 2>/dev/null || kill "-$2" "$pid" 2>/dev/null || true
}

# daemon_stop NAME...: SIGTERM, then SIGKILL at the deadline.
daemon_stop() {
    local name seconds
    for name; do daemon_signal "$name" TERM; done
    for name; do
        seconds=$(stop_seconds "$name")
        if ! wait_until "$seconds" daemon_gone "$name"; then
            warn "$name did not end within $seconds s of SIGTERM, it is killed"
            daemon_kill "$name"
        fi
        rm -f "$dir/run/$name.pid"
    done
}

daemon_kill() {
    daemon_signal "$1" KILL
    wait_until 10 daemon_gone "$1" || fail "$1 (process $pid) is still there 10 s after SIGKILL"
    rm -f "$dir/run/$1.pid"
}

# process_tree: prints "pid parent" of every process.
process_tree() { cat /proc/[0-9]*/stat 2>/dev/null | sed -n 's/^\([0-9]*\) (.*) [^ ] \([0-9]*\) .*/\1 \2/p'; }

# step_pids: slurmstepd overwrites its environment; it is known by the log and the sockets it holds open.
step_pids() {
    local exe
    while read -r exe; do
        if find "${exe%/exe}/fd" "${exe%/exe}/cwd" -lname "$dir/*" -print -quit 2>/dev/null | grep -q .; then
            tr -dc '0-9\n' <<<"$exe"
        fi
    done < <(find /proc/[0-9]*/exe -maxdepth 0 -lname '*/slurmstepd*' 2>/dev/null)
}

# is_client PID: a Slurm command or a job of this cluster; a shell or a test that only has our environment is not.
is_client() {
    case $(readlink "/proc/$1/exe" 2>/dev/null) in
    */srun | */sbatch | */salloc | */sattach | */sbcast | */squeue | */sinfo | */scontrol | */sacctmgr | */sacct) return 0 ;;
    esac
    grep -qzE '^SLURM_JOB_ID=' "/proc/$1/environ" 2>/dev/null
}

# cluster_pids: every process of the cluster, down to the processes of its jobs, without us and our ancestors.
cluster_pids() {
    local -A parent=() found=() ours=()
    local pid up exe more=1
    while read -r pid up; do parent[$pid]=$up; done < <(process_tree)
    for ((pid = BASHPID; pid > 1; pid = ${parent[$pid]:-0})); do ours[$pid]=1; done
    while read -r exe; do
        found[$exe]=1
    done < <(grep -lzFx "MINICLUSTER_DAEMON=$dir" /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\n')
    while read -r pid; do
        if is_client "$pid"; then found[$pid]=1; fi
    done < <(grep -lzFx "SLURM_CONF=$dir/etc/slurm.conf" /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\n')
    while read -r pid; do found[$pid]=1; done < <(step_pids)
    while ((more)); do
        more=0
        for pid in "${!parent[@]}"; do
            if [[ -n ${found[${parent[$pid]}]:-} && -z ${found[$pid]:-} ]]; then found[$pid]=1 more=1; fi
        done
    done
    for pid in "${!found[@]}"; do
        if [[ -z ${ours[$pid]:-} ]] && proc_stat "$pid"; then echo "$pid"; fi
    done
}

# kill_all: SIGKILL to whatever is left, until nothing is.
kill_all() {
    local pids
    mapfile -t pids < <(cluster_pids)
    ((${#pids[@]} == 0)) && return 0
    kill -KILL "${pids[@]}" 2>/dev/null || true
    return 1
}
