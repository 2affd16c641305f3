# shellcheck shell=bash disable=SC2154,SC2034 # the variables of tests/minicluster
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Bringing a private cluster up and down, sourced by tests/minicluster. Deadlines are seconds of real time; on a busy
# machine they are reached late, not early. Needs process.sh and config.sh.

# need COMMAND PACKAGE: notes what is missing.
need() { command -v "$1" >/dev/null || missing+=("$1 (package $2)"); }

check_machine() {
    local missing=()
    need munged munge
    need mariadbd mariadb-server
    need mariadb-install-db mariadb-server
    need slurmctld slurmctld
    need slurmd slurmd
    need slurmdbd slurmdbd
    need sacctmgr slurm-client
    need perl perl-base
    need setsid util-linux
    need setpriv util-linux
    need find findutils
    [[ -n $(LD_PRELOAD=libnss_wrapper.so perl -e 1 2>&1) ]] && missing+=("libnss_wrapper.so (package libnss-wrapper)")
    if [[ $(clocks) ]]; then need faketime faketime; fi
    if ! LC_ALL=C awk '/\|--/ {a = $2} /host LOCAL/ && a !~ /^127\./ {n++} END {exit !n}' /proc/net/fib_trie; then
        warn "there is no IPv4 address but 127.0.0.1: srun's steps may not end (glibc then resolves no IPv4 address)"
    fi
    if ((${#missing[@]} == 0)); then
        stock_plugins=$(ldd "$(command -v slurmctld)" | sed -n 's,.*libslurmfull[^ ]* => \(/.*\)/libslurmfull.*,\1,p')
        [[ -e $stock_plugins/auth_munge.so ]] || missing+=("auth_munge.so (package slurm-wlm-basic-plugins)")
        [[ -e $stock_plugins/accounting_storage_mysql.so ]] ||
            missing+=("accounting_storage_mysql.so (package slurm-wlm-mysql-plugin)")
    fi
    if ((${#missing[@]})); then
        warn "missing on this machine:"
        printf '  %s\n' "${missing[@]}" >&2
        exit 3
    fi
}

# clocks: prints the cluster's clocks, the fast one of all and the backup controller's own. A clock NAME has etc/NAME.
clocks() {
    if ((speed > 1)); then echo clock; fi
    if ((${backup:-0} > 0)); then echo clock-backup; fi
}

# read_clock NAME: sets clock to the values of FAKETIME, FAKETIME_SHARED and LD_PRELOAD.
read_clock() { mapfile -t clock <"$dir/etc/$1"; }

# clock_files NAME: prints the files of the shared memory and its semaphore.
clock_files() {
    local clock semaphore memory
    read_clock "$1"
    read -r semaphore memory <<<"${clock[1]}"
    printf '%s\n' "/dev/shm/sem.${semaphore#/}" "/dev/shm/${memory#/}"
}

# set_client_env: what every Slurm daemon and command of this cluster needs.
set_client_env() {
    local clock preload=libnss_wrapper.so
    export NSS_WRAPPER_PASSWD=$dir/etc/passwd NSS_WRAPPER_GROUP=$dir/etc/group
    export NSS_WRAPPER_HOSTS=$dir/etc/hosts NSS_WRAPPER_HOSTNAME=$node_host
    export SLURM_CONF=$dir/etc/slurm.conf MINICLUSTER_DIR=$dir
    if ((speed > 1)); then
        read_clock clock
        export FAKETIME=${clock[0]} FAKETIME_SHARED=${clock[1]}
        preload+=:${clock[2]}
    fi
    export LD_PRELOAD=$preload
}

# set_backup_env: what the backup controller needs: a host of its own, its configuration, its clock. The kernel's
# monotonic clock is the same on both.
set_backup_env() {
    local clock
    set_client_env
    export NSS_WRAPPER_HOSTNAME=$backup_host SLURM_CONF=$dir/etc/slurmctld-backup.conf
    if ((backup > 0)); then
        read_clock clock-backup
        export FAKETIME=${clock[0]} FAKETIME_SHARED=${clock[1]} FAKETIME_DONT_FAKE_MONOTONIC=1
        export LD_PRELOAD=$LD_PRELOAD:${clock[2]}
    fi
}

# slurm COMMAND...: a Slurm command of this cluster.
slurm() { (set_client_env && exec "$@"); }

start_ports() {
    daemon_launch ports "$parts/hold-ports" $((nodes + 2)) "$dir/run/port-base"
    watch=ports wait_until 10 test -s "$dir/run/port-base" || daemon_failed ports
    port_base=$(<"$dir/run/port-base")
}

# start_clock NAME: one origin of time for all who use it; the clock is faketime's shared memory, which lives as long as
# this process.
start_clock() {
    local shared setting="+0 x$speed"
    if [[ $1 == clock-backup ]]; then setting=+${backup}s; fi
    # shellcheck disable=SC2016 # expanded by the inner shell
    daemon_launch "$1" faketime -m -f "$setting" sh -c '
        printf "%s\n" "$FAKETIME" "$FAKETIME_SHARED" "$LD_PRELOAD" >"$1.new"
        mv "$1.new" "$1"
        LD_PRELOAD= exec sleep infinity' sh "$dir/etc/$1"
    watch=$1 wait_until 10 test -s "$dir/etc/$1" || daemon_failed "$1"
    mapfile -t shared < <(clock_files "$1")
    chmod 666 "${shared[@]}"
}

# database_options: as cheap as can be. A tmpdir of its own is needed: a starting mariadbd removes every temporary
# table it finds in its tmpdir, those of its neighbours too.
database_options() {
    printf '%s\n' --no-defaults --datadir="$dir/db/data" --tmpdir="$dir/db/tmp" --socket="$dir/db/socket" \
        --skip-networking --skip-name-resolve --innodb-buffer-pool-size=64M --innodb-log-file-size=16M \
        --innodb-doublewrite=0 --innodb-flush-method=nosync --innodb-flush-log-at-trx-commit=0 --debug-no-sync \
        --innodb-lock-wait-timeout=900 --performance-schema=0 --max-allowed-packet=16M
    if ((EUID == 0)); then echo --user=root; fi
}

make_database() {
    local options
    mapfile -t options < <(database_options | grep -v -e '^--socket' -e '^--skip-networking')
    mkdir "$dir/db/data" "$dir/db/tmp"
    MINICLUSTER_DAEMON=$dir mariadb-install-db "${options[@]}" --auth-root-authentication-method=normal --skip-test-db \
        >>"$dir/log/mariadb-install-db.out" 2>&1 </dev/null
}

database_answers() { sql 'select 1' >/dev/null 2>&1; }

sql() { mariadb --no-defaults --socket="$dir/db/socket" --user=root --batch --skip-column-names -e "$1"; }

# The starters: each leaves the daemon running; ready_NAME tells whether it serves.
start_munged() {
    daemon_launch munged munged --foreground --socket="$dir/run/munge.socket" --key-file="$dir/etc/munge.key" \
        --pid-file="$dir/run/munged.own-pid" --seed-file="$dir/state/munge.seed" \
        --num-threads=4
}
ready_munged() { munge -n -S "$dir/run/munge.socket" >/dev/null 2>&1; }

start_mariadbd() {
    local options
    mapfile -t options < <(database_options)
    daemon_launch mariadbd mariadbd "${options[@]}" --pid-file="$dir/run/mariadbd.own-pid"
}
ready_mariadbd() { [[ -S $dir/db/socket ]] && database_answers; }

start_slurmdbd() { (set_client_env && export MYSQL_UNIX_PORT=$dir/db/socket && daemon_launch slurmdbd slurmdbd -D); }
ready_slurmdbd() { port_open "$(port_of 0)" && slurm sacctmgr -n show cluster >/dev/null 2>&1; }

# launch_controller NAME: in the environment that is set.
launch_controller() {
    local prefix
    if [[ $preload ]]; then LD_PRELOAD=$preload:$LD_PRELOAD; fi
    read -ra prefix <<<"$wrap"
    daemon_launch "$1" "${prefix[@]}" "$(command -v slurmctld)" -D
}

start_slurmctld() { (set_client_env && launch_controller slurmctld); }
ready_slurmctld() { port_open "$(port_of 1)" && controller_up primary; }

start_slurmctld-backup() {
    backup_conf
    (set_backup_env && launch_controller slurmctld-backup)
}
ready_slurmctld-backup() { port_open "$(port_of 1)" 2 && controller_up backup; }

# controller_up primary|backup: it answers, in control or standing by.
controller_up() { slurm scontrol ping 2>/dev/null | grep -q "^Slurmctld($1) .* UP"; }

# live_controllers: prints their names in one line.
live_controllers() {
    local name
    for name in $(daemons | grep '^slurmctld'); do
        if daemon_pid "$name"; then printf '%s ' "$name"; fi
    done
}

# start_slurmd-nI and ready_slurmd-nI, for one node.
start_slurmd() { (set_client_env && daemon_launch "slurmd-$1" slurmd -D -N "$1"); }
ready_slurmd() { port_open "$(port_of $((${1#n} + 1)))"; }

# daemon_start NAME: starts one daemon and waits until it serves.
daemon_start() {
    local kind=${1%-n*} node=()
    if [[ $1 == slurmd-n* ]]; then node=("${1#slurmd-}"); fi
    if daemon_pid "$1"; then fail "$1 runs already (process $pid)"; fi
    "start_$kind" "${node[@]}"
    watch=$1 wait_until "$(start_seconds "$1")" "ready_$kind" "${node[@]}" || daemon_failed "$1"
}

# start_seconds NAME, stop_seconds NAME: how long a daemon may take to serve, and to end after SIGTERM.
start_seconds() { if [[ $1 == slurmctld* && $wrap ]]; then echo 300; else echo 60; fi; }

stop_seconds() {
    case $1 in
    slurmctld*) if [[ $wrap ]]; then echo 300; else echo 30; fi ;;
    *) echo 10 ;;
    esac
}

# daemon_failed NAME: says so with the end of its log, and gives up.
daemon_failed() {
    if daemon_pid "$1"; then warn "$1 runs, but does not serve"; else warn "$1 did not start, or it ended"; fi
    warn "the end of $dir/log/$1.out:"
    tail -n 30 "$dir/log/$1.out" >&2
    exit 1
}

# live_nodes: the nodes whose slurmd runs.
live_nodes() {
    local i
    for ((i = 1; i <= nodes; i++)); do
        if daemon_pid "slurmd-n$i"; then echo "n$i"; fi
    done
}

# nodes_answer: slurmctld has heard of every node whose slurmd runs.
nodes_answer() {
    local live states
    live=$(live_nodes | paste -sd,)
    [[ -z $live ]] && return 0
    states=$(slurm sinfo -h -N -n "$live" -o %T 2>/dev/null) && ! grep -qE '\*$|^unk' <<<"$states"
}

nodes_idle() { [[ $(slurm sinfo -h -N -p main -o %T 2>/dev/null | grep -cx idle) == "$nodes" ]]; }

cluster_registered() {
    [[ $(slurm sacctmgr -nP show cluster format=controlport 2>/dev/null) =~ ^[1-9] ]] &&
        { ((gpus == 0)) || slurm sacctmgr -nP show tres format=type,name 2>/dev/null | grep -qx 'gres|gpu'; }
}

# load_budgets: without root the user must be an administrator before sacctmgr reads a file.
load_budgets() {
    local output
    if [[ $single_user ]]; then slurm sacctmgr -i -Q add user "$owner" account=root adminlevel=admin >/dev/null; fi
    output=$(slurm sacctmgr -i load file="$dir/etc/budgets" cluster=mini 2>&1) || {
        warn "sacctmgr does not take the budgets ${budgets:-made by default}:"
        printf '%s\n' "$output" >&2
        exit 1
    }
}

daemons() {
    local i
    printf '%s\n' ports
    clocks
    printf '%s\n' munged mariadbd slurmdbd slurmctld
    if [[ $backup ]]; then echo slurmctld-backup; fi
    for ((i = 1; i <= nodes; i++)); do echo "slurmd-n$i"; done
}
