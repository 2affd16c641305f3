# shellcheck shell=bash disable=SC2154,SC2034 # the variables of tests/minicluster
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Files of a private cluster, sourced by tests/minicluster: users, slurm.conf, gres.conf, slurmdbd.conf and the budgets.
# Times are seconds of the cluster's clock. Needs $dir and the options of `up`.

# line_name LINE: what decides whether a line replaces another: the key, for NodeName=, PartitionName= and the like
# key and value.
line_name() {
    local key=${1%%=*} value=${1#*=}
    key=${key,,}
    case $key in
    nodename | partitionname | downnodes | frontendname | nodeset) echo "$key=${value%%[[:space:]]*}" ;;
    *) echo "$key" ;;
    esac
}

# merge_lines LINE...: reads a configuration and prints it with each LINE in the place of the one it replaces, or at the
# end. "Key=" removes.
merge_lines() {
    local -A by_name=() used=()
    local line name
    for line; do
        name=$(line_name "$line")
        by_name[$name]=$line
    done
    while IFS= read -r line; do
        name=$(line_name "$line")
        if [[ -n ${by_name[$name]+x} ]]; then
            used[$name]=1
            line=${by_name[$name]}
        fi
        if [[ ${line#*=} ]]; then printf '%s\n' "$line"; fi
    done
    for line; do
        name=$(line_name "$line")
        if [[ -z ${used[$name]:-} && ${line#*=} ]]; then printf '%s\n' "${by_name[$name]}"; fi
        used[$name]=1
    done
}

# port_of I: the I-th port of the cluster; the first of every 64 is held by hold-ports.
port_of() { echo $((port_base + 1 + $1 + $1 / 63)); }

at_least() { echo $(($1 > $2 ? $1 : $2)); }
at_most() { echo $(($1 < $2 ? $1 : $2)); }

# slurm_conf: prints the configuration before --conf. Intervals are short for tests; with --speed they are as long as
# is needed for about the same real time, within Slurm's stock values.
slurm_conf() {
    local tres=gres/gpu gres=gpu:$gpus main backfill patience=120 hosts="SlurmctldHost=$node_host(127.0.0.1)"
    [[ -n $gpu_type ]] && tres+=,gres/gpu:$gpu_type gres=gpu:$gpu_type:$gpus
    main=$(at_most 60 "$(at_least 2 "$speed")")
    backfill=$(at_most 30 "$(at_least 2 $((speed / 2)))")
    if [[ $backup ]]; then patience=10 hosts+=$'\n'"SlurmctldHost=$backup_host(127.0.0.2)"; fi
    cat <<END
ClusterName=mini
$hosts
SlurmctldPort=$(port_of 1)
SlurmUser=$owner
SlurmdUser=$owner
AuthType=auth/munge
AuthInfo=socket=$dir/run/munge.socket,cred_expire=$(at_least 5 $((2 * speed)))
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/run/slurmctld.own-pid
SlurmdPidFile=$dir/run/slurmd-%n.own-pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd-%n.log
SlurmctldDebug=info
SlurmdDebug=info
PluginDir=$plugin_path
ProctrackType=proctrack/linuxproc
SlurmdParameters=config_overrides
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
KillWait=$(at_least 2 $((speed / 2)))
MessageTimeout=$(at_least 10 $((10 * speed)))
SlurmctldTimeout=$(at_most 60000 $((patience * speed)))
SlurmdTimeout=$(at_most 60000 $((300 * speed)))
InactiveLimit=0
MaxJobCount=100000
MaxArraySize=10001
MinJobAge=$(at_least 300 $((60 * speed)))
JobRequeue=1
PreemptMode=OFF
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
DefMemPerCPU=1000
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=$main,bf_interval=$backfill,bf_continue,bf_max_job_test=1000,default_queue_depth=1000,batch_sched_delay=0
PriorityType=$priority
PriorityCalcPeriod=1
PriorityWeightFairshare=100000
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$(port_of 0)
AccountingStoragePass=$dir/run/munge.socket
AccountingStorageEnforce=associations,limits,qos
JobAcctGatherType=jobacct_gather/none
END
    if ((gpus > 0)); then
        echo "AccountingStorageTRES=$tres"
        echo "GresTypes=gpu"
    fi
    local i line
    for ((i = 1; i <= nodes; i++)); do
        line="NodeName=n$i NodeHostname=$node_host NodeAddr=127.0.0.1 Port=$(port_of $((i + 1)))"
        line+=" Sockets=1 CoresPerSocket=$cpus ThreadsPerCore=1 RealMemory=$((cpus * 4000))"
        if ((gpus > 0)); then line+=" Gres=$gres"; fi
        echo "$line State=UNKNOWN"
    done
    echo "PartitionName=main Nodes=n[1-$nodes] Default=YES MaxTime=INFINITE DefaultTime=60 State=UP"
}

# backup_conf: writes the backup controller's configuration: its own pid file, since a controller ends the one whose pid
# it finds there, and its own log. It binds to the address of its host's name, 127.0.0.2. What slurmdbd tells "the
# controller" (a change by sacctmgr) goes to 127.0.0.1 always: the backup hears of it when it next takes over.
backup_conf() {
    local flags
    flags=$(sed -n 's/^DebugFlags=//Ip' "$dir/etc/slurm.conf")
    merge_lines "SlurmctldPidFile=$dir/run/slurmctld-backup.own-pid" \
        "SlurmctldLogFile=$dir/log/slurmctld-backup.log" \
        "DebugFlags=${flags:+$flags,}NO_CONF_HASH" \
        <"$dir/etc/slurm.conf" >"$dir/etc/slurmctld-backup.conf"
}

gres_conf() {
    if ((gpus > 0)); then
        echo "Name=gpu ${gpu_type:+Type=$gpu_type }File=$dir/dev/gpu[0-$((gpus - 1))]"
    fi
}

slurmdbd_conf() {
    cat <<END
AuthType=auth/munge
AuthInfo=socket=$dir/run/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$(port_of 0)
CommunicationParameters=NoInAddrAny
SlurmUser=$owner
PidFile=$dir/run/slurmdbd.own-pid
LogFile=$dir/log/slurmdbd.log
DebugLevel=info
MessageTimeout=$(at_least 10 $((10 * speed)))
PluginDir=$plugin_path
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct_db
END
}

# write_users: the machine's users and ours, for libnss-wrapper; ours hide the machine's of the same name. Slurm's
# --export=NONE asks `su` without the wrapper, which does not know ours.
write_users() {
    local user id=20000 hidden
    hidden=$(IFS='|' && echo "${users[*]}")
    if [[ $single_user ]]; then
        getent passwd >"$dir/etc/passwd"
        getent group >"$dir/etc/group"
        return
    fi
    getent passwd | grep -vE "^($hidden):" >"$dir/etc/passwd"
    getent group | grep -vE "^($hidden):" >"$dir/etc/group"
    for user in "${users[@]}"; do
        while id=$((id + 1)) && getent passwd "$id" >/dev/null || getent group "$id" >/dev/null; do :; done
        echo "$user:*:$id:$id:$user of a private cluster:$dir/home/$user:/bin/sh" >>"$dir/etc/passwd"
        echo "$user:x:$id:" >>"$dir/etc/group"
        mkdir -m 700 "$dir/home/$user"
        chown "$id:$id" "$dir/home/$user"
    done
}

# default_budgets: an account team_NAME for each user, equal shares, in the format of `sacctmgr load`.
default_budgets() {
    local user
    echo "Cluster - 'mini':Fairshare=1:QOS='normal'"
    echo "Parent - 'root'"
    echo "User - '$owner':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1"
    for user in "${users[@]}"; do
        echo "Account - 'team_$user':Description='team of $user':Organization='mini':Fairshare=1"
    done
    for user in "${users[@]}"; do
        echo "Parent - 'team_$user'"
        echo "User - '$user':DefaultAccount='team_$user':Fairshare=1"
    done
}

# budget_users FILE: the users a budgets file names.
budget_users() { sed -nE "s/^User[[:space:]]*-[[:space:]]*'?([A-Za-z0-9_.-]+)'?.*/\1/p" "$1" | sort -u; }

write_config() {
    local i
    for ((i = 0; i < gpus; i++)); do ln -s /dev/null "$dir/dev/gpu$i"; done
    printf '%s\n' "127.0.0.1 $node_host localhost" "127.0.0.2 $backup_host" >"$dir/etc/hosts"
    if ((${#plugstack[@]})); then
        printf '%s\n' "${plugstack[@]}" >"$dir/etc/plugstack.conf"
        conf=("PlugStackConfig=$dir/etc/plugstack.conf" "${conf[@]}")
    fi
    slurm_conf | merge_lines "${conf[@]}" >"$dir/etc/slurm.conf"
    gres_conf >"$dir/etc/gres.conf"
    (umask 077 && slurmdbd_conf | merge_lines "${dbd_conf[@]}" >"$dir/etc/slurmdbd.conf")
    if [[ $(slurmctld -V) != *' '22.05* && $(slurmctld -V) != *' '23.02* ]]; then
        echo "CgroupPlugin=disabled" >"$dir/etc/cgroup.conf"
    fi
    # A command that reads slurm.conf and asks nobody.
    slurm scontrol show hostnames n1 >"$dir/log/slurm.conf.out" 2>&1 || {
        warn "Slurm does not take the configuration; check --conf (${conf[*]}):"
        cat "$dir/log/slurm.conf.out" >&2
        exit 1
    }
    if [[ $budgets ]]; then cp -- "$budgets" "$dir/etc/budgets"; else default_budgets >"$dir/etc/budgets"; fi
    (umask 077 && head -c 1024 /dev/urandom >"$dir/etc/munge.key")
}
