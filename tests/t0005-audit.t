#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# tests/audit --contracts finds what it is for: a recording in tests/data/audit in which all is well passes, and a copy
# of it with one thing wrong gives one finding, by its rule. Needs no Slurm. TAP.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# shellcheck source=tests/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"

# audit [OPTION...]: of the copy; the output goes to a file, the exit status to $status
audit() {
    status=0
    "$here/audit" --contracts --recorded "$scratch/copy" "$@" >"$scratch/out" 2>&1 || status=$?
}

# fresh [FILE,... SED]: a copy, with files changed; fails if that changes nothing in one of them
fresh() {
    local file
    rm -rf "$scratch/copy"
    cp -r "$here/data/audit" "$scratch/copy"
    chmod -R u+w "$scratch/copy"
    [ $# -gt 0 ] || return 0
    for file in ${1//,/ }; do
        sed -i -E "$2" "$scratch/copy/$file"
        if cmp -s "$here/data/audit/$file" "$scratch/copy/$file"; then
            echo "# this changes nothing in $file: $2"
            return 1
        fi
    done
}

# expect STATUS COUNT PATTERN: the exit status, so many findings, and a line with the pattern
expect() { [ "$status" -eq "$1" ] && [ "$(grep -c '^finding' "$scratch/out")" -eq "$2" ] && grep -qE "$3" "$scratch/out"; }

# judge STATUS COUNT WHY FILE,... SED PATTERN [OPTION...]
judge() {
    local bad=1
    if fresh "$4" "$5"; then
        audit "${@:7}"
        if expect "$1" "$2" "$6"; then bad=0; else sed 's/^/# /' "$scratch/out"; fi
    fi
    report "$bad" "$3"
}

# fault WHY FILE,... SED PATTERN [OPTION...]: one finding; says: none, but such a line
fault() { judge 1 1 "$1" "$2" "$3" "^finding $4" "${@:5}"; }
says() { judge 0 0 "$@"; }

# row JOB START SED: that changes the row of a run; log PATTERN SED: lines of the log
row() { printf '/^%s\\|([^|]*\\|){6}%s\\|/%s' "$1" "$2" "$3"; }
log() { printf '/%s/%s' "$1" "$2"; }

fresh
audit --least 4 --shares a:367/c:72/d:561 --from 1796000400 --to 1796001100
expect 0 0 '^audit of contracts: 15 runs \(14 tagged\) on 4 nodes; 4 preemptions \(1 unallocated, 2 claim, 1 priority\), 4 served and 0 by another place, the slowest in 2.0 s, 4 judged' &&
    bad=0 || bad=1
[ "$bad" -eq 0 ] || sed 's/^/# /' "$scratch/out"
report "$bad" "the recording as it is has no finding, and the last line counts what was checked"
if grep -q '^early end: job 3 .* 440 of 600 s: completed' "$scratch/out" &&
    grep -q '^early end: job 12 .* cancelled by uid 20001' "$scratch/out"; then bad=0; else bad=1; fi
report "$bad" "ends inside a contract are listed with their cause"

# Rights. What the row and the log both say is changed in both.
long='s/contract=100/contract=400/; s/over=220/over=0/'
fault "C2: a run is stopped inside its contract, whatever the log says" rows,log,jobs "$long" 'C2: job 6 stopped .* 320 of 400 s'
says "a start that the database has lost is that of the log" rows "$(row 1 1796000400 's/\|1796000398\|1796000400\|/|1796000398|None|/')" \
    '^not told: job 1 has no start .* 1796000400'
fault "C2: and counts" rows,log,jobs "$long;/^6\\|.*\\|1796000420\\|/s/\\|1796000420\\|/|None|/" 'C2: job 6 stopped .* 320 of 400 s'
fault "C2: one second short of it" rows,log 's/contract=20/contract=331/; s/over=310/over=0/' 'C2: job 1 .* 330 of 331 s'
says "C2: at the last second it is over" rows,log 's/contract=20/contract=330/; s/over=310/over=0/' '4 served'
fault "C2, U6: suspended time does not count towards it" rows "$(row 6 1796000420 's/00:00:00/00:03:50/')" 'C2: job 6 .* 90 of 100 s'
fault "C9: without a tag a run has the longest contract" rows "$(row 1 1796000400 's/\[budget [^]]*\]//')" 'C2: job 1 .* of 28800 s \(no readable tag'
fault "U10: the log has another contract than the row" log "$(log 'preempting JobId=1' 's/contract=20/contract=25/')" 'U10: job 1 .* contract 25 s in the log, 20'
fault "U10: and for how long it had been over" log "$(log 'preempting JobId=1' 's/over=310/over=290/')" 'U10: job 1 .* over=290'
fault "U10: and another class" log "$(log 'preempting JobId=2' 's/class=unallocated/class=allocated/')" 'U10: job 2 .* class allocated'
fault "U10: the row does not say why it was stopped" rows "$(row 1 1796000400 's/ preempted_for.*over=310//')" 'U10: job 1 .* does not say why'
fault "U10: the row names another job" rows "$(row 1 1796000400 's/preempted_for=4/preempted_for=5/')" 'U10: job 1 .* for job 5 in the row'
fault "U10: the row gives another reason" rows "$(row 1 1796000400 's/reason=claim/reason=priority/')" 'U10: job 1 .* reason priority'
fault "P6: the log counts another restart" log "$(log 'preempting JobId=1' 's/restart=0/restart=1/')" 'P6: job 1 .* restart 1 in the log, 0'
fault "C8: a run in a partition in which nobody is stopped" rows "$(row 1 1796000400 's/\|main\|/|quiet|/')" 'C8: job 1 .* partition quiet'
fault "C8: or one that the site exempts" rows "$(row 1 1796000400 's/\|main\|/|long|/')" 'C8: job 1 .* partition long' --never short,long
fault "C8: a QOS that the site exempts" rows "$(row 1 1796000400 's/\|normal\|/|staff|/')" 'C8: job 1 .* QOS staff' --never-qos staff
fault "C8: what slurm.conf exempts" rows,config "$(row 1 1796000400 's/\|normal\|/|staff|/');s/margin=0.05/&,exempt_qos=course\/staff/" 'C8: job 1 .* QOS staff'
fault "C8: a run in a reservation" rows "$(row 1 1796000400 's/\|normal\|\|/|normal|course|/')" 'C8: job 1 .* reservation course'
fault "P1: for a job that is unallocated itself" rows "$(row 4 1796000731 's/class=allocated contract=60/class=unallocated/')" 'P1: job 1 .* is unallocated'
allocated='/^(2\||JobId=2 )/s/class=unallocated/class=allocated contract=100/'
allocated+=';/preempting JobId=2/{s/class=unallocated/class=allocated contract=100/;s/over=320/over=220/}'
fault "P2: an allocated run as unallocated" rows,log,jobs "$allocated" 'P2: job 2 .* its class is allocated'
fault "P3: an equal claim is not a better one" log "$(log 'preempting JobId=1' 's/0.410/0.930/')" 'P3: job 1 .* 0.930 x 1.05 is not below'
fault "P3: nor is one within the margin" log "$(log 'preempting JobId=1' 's/0.410/0.890/')" 'P3: job 1 .* 0.890'
says "P3: one just beyond it is" log "$(log 'preempting JobId=1' 's/0.410/0.885/')" '4 served'
fault "P3: with a larger margin it is not" log "$(log 'preempting JobId=1' 's/0.410/0.885/')" 'P3: job 1 .* 0.885 x 1.1' --margin 0.1
fault "P3: the margin is that of slurm.conf" config 's/margin=0.05/margin=0.5/' 'P3: job 6 .* 0.500 x 1.5'
fault "P3: by claim without ratios" log "$(log 'preempting JobId=1' 's/ ratios=[^ ]*//')" 'P3: job 1 .* without ratios'
fault "P3: by claim inside one leaf" associations 's/^d\|(dan|dora)\|1/d|\1|parent/' 'P3: job 6 .* inside the leaf d'
fault "P4: by stated priority across leaves" associations 's/^c\|cleo\|parent/c|cleo|1/' 'P4: job 9 .* of c for c cleo'
fault "P4: an equal stated priority is not a higher one" qos 's/high\|100/high|-1/' 'P4: job 9 .* QOS high'
fault "P1: a right that is not known" rows,log 's/(reason|right)=claim (account=c )?ratios=0.410/\1=wish \2ratios=0.410/' 'P1: job 1 .* right=wish'

# What was gained by it.
fault "P1: Slurm's line without ours" log "$(log 'preempting JobId=1' d)" "P1: job 1 .* without ours"
fault "P1: ours without Slurm's" log "$(log 'preempted JobId=1 ' d)" "P1: job 1 .* without Slurm's"
fault "P1: neither" log "$(log '(preempted|preempting) JobId=1 ' d)" 'P1: job 1 \(run 0.* PREEMPTED, and no line'
fault "P1: the two lines name different jobs" log "$(log 'preempted JobId=1 ' 's/JobId=4/JobId=5/')" 'P1: job 1 .* for job 5 by Slurm'
fault "P1: a line about no run" log '1{p;s/sched: .*/preempted JobId=99 has been requeued to reclaim resources for JobId=4/}' 'P1: job 99 .* no row'
fault "P1: whom it was for never starts" rows,log "$(row 4 1796000731 d);$(log 'Allocate JobId=4' d)" 'P1: job 1 .* has not started in'
says "P1: unless he was cancelled" rows,log "$(row 4 1796000731 '{s/\|1796000731\|/|None|/;s/COMPLETED/CANCELLED by 20002/;s/\|n1\|/|None assigned|/}');$(log 'Allocate JobId=4' d)" \
    '^not told: job 1 .* was CANCELLED by 20002'
says "P1: or there was no time yet" rows,when "$(row 5 1796000732 d);s/now=.*/now=1796000735/" '^not told: job 2 .* has not started yet'
fault "P1: he starts late" rows "$(row 4 1796000731 's/\|1796000731\|/|1796000745|/')" 'P1: job 1 .* started 14.8 s later on n1, 14 s are' --start-within 14
fault "P5: he starts elsewhere" rows "$(row 4 1796000731 's/\|n1\|/|n5|/')" 'P5: job 1 .* later on n5, it had n1, where nobody'
says "P5: another takes the place, as Slurm keeps it for nobody" rows "$(row 4 1796000731 '{s/gpu=8/gpu=4/;s/\|n1\|/|n5|/}');/^12\|/{s/1796000873\|1796000875/1796000733|1796000733/;s/1796000890/1796000748/;s/\|n2\|/|n1|/}" \
    '^not told: job 1 .* later on n5, before it job 12 on n1'
says "P5: unless it was for an array, of which another task starts there" rows,log \
    "$(row 4 1796000731 '{s/^4\|/14|/;s/\|60\|4\|/|60|4_2|/}');$(log 'Allocate JobId=4 ' 's/JobId=4/JobId=4_2(14)/')" '4 served'
fault "P5: there was room without" rows "$(row 3 1796000410 's/1796000850/1796000810/')" 'P5: job 9 .* needless'
says "P5: a job that has just ended may still hold its place" rows "$(row 3 1796000410 's/1796000850/1796000819/')" '4 judged'
more="$(row 7 1796000430 '{s/1796000920/1796000740/;s/COMPLETED/PREEMPTED/;s/class=unallocated/& preempted_for=8 reason=unallocated/}')"
more+=';/preempted JobId=6 /{p;s/JobId=6/JobId=7/}'
more+=';/preempting JobId=6/{p;s/JobId=6 .* over=220 gpus=12/JobId=7 restart=0 leaf="a" class=unallocated start=1796000430 over=310 gpus=4/;s/right=claim ratios=[^ ]*/right=unallocated/}'
fault "P5: of several victims one could have stayed" rows,log "$more" 'P5: job 7 .* needless'
parts="$more;/^6\\|/s/\\|60\\|6\\|/|60|6+0|/;/^7\\|/s/\\|60\\|7\\|/|60|6+1|/;/preempted JobId=7 /d"
says "C7: the parts of a heterogeneous job go together, by one line of Slurm's" rows,log "$parts" '5 served and 0'
fault "P5: an allocated run while an unallocated one stayed" rows "$(row 3 1796000410 's/class=allocated contract=600/class=unallocated/')" 'P5: job 9 .* unallocated job 3'

# States, places, records.
fault "Q5: more GPUs held than a node has" rows "$(row 12 1796000875 's/\|n2\|/|n1|/')" 'Q5: n1 has 8 GPUs, runs held 12'
fault "P6: it comes back with another contract" rows "$(row 1 1796000800 's/contract=20/contract=10/')" 'P6: job 1 \(run 1.* with 10 s, had allocated with 20'
says "P6: unless somebody changed it" rows,log "$(row 1 1796000800 's/contract=20/contract=10/');$(log 'Allocate JobId=4 ' 's/sched: .*/_slurm_rpc_update_job: complete JobId=1 uid=20001 usec=3/')" \
    '^not told: job 1 .* changed by an update'
fault "P6: the record counts other restarts" jobs 's/^(JobId=2 .*)Restarts=1/\1Restarts=2/' 'P6: job 2 counts 2 restarts, 1'
waiting='s/^JobId=2 .*/JobId=2 Priority=0 Nice=0 JobState=PENDING Reason=JobHeldAdmin Restarts=1 TimeLimit=01:00:00 StartTime=0/'
fault "P6: it is held since it was stopped" rows,jobs "$(row 2 1796001000 d);$waiting" 'P6: job 2 is held \(JobHeldAdmin\)'
says "P6: unless by hand" rows,jobs,log "$(row 2 1796001000 d);$waiting;$(log 'Allocate JobId=10 ' 's/sched: .*/sched: _hold_job_rec: hold on JobId=2 by uid 0/')" \
    '^not told: job 2 is held by hand'
fault "C1: a minimum above the longest" rows '/^3\|/s/contract=600/contract=28801/;/^3\|/s/\|60\|/|600|/' 'C1: job 3 .* 28801 s'
fault "C1: a site's own longest one" rows 's/contract=600/contract=599/' 'C1: job 3 .* 599 s, the longest is 500' --maximum 500
fault "C1: or that of slurm.conf" config 's/margin=0.05/&,max_min_runtime=9m/' 'C1: job 3 .* 600 s, the longest is 540'
fault "C1: in any of its forms" config 's/margin=0.05/&,max_min_runtime=0-0:09/' 'C1: job 3 .* 600 s, the longest is 540'
says "C9: of whom nobody asked a minimum has none" rows "$(row 12 1796000875 's/contract=100/contract=none/')" ' 1 early ends'
fault "C9: and is protected for the longest" rows "$(row 1 1796000400 's/contract=20/contract=none/')" 'C2: job 1 .* of 28800 s'
fault "C4: a minimum above the limit" rows "$(row 3 1796000410 's/\|60\|/|9|/')" 'C4: job 3 .* 600 s and a limit of 540'
fault "C1: a tag that cannot be read" rows "$(row 12 1796000875 's/contract=100/contract=soon/')" 'C1: job 12 .* cannot be read'
fault "C3: an unallocated run with a contract" rows "$(row 7 1796000430 's/unallocated/unallocated contract=5/')" 'C3: job 7'
fault "C4: a limit that ends a run inside its contract" rows "$(row 12 1796000875 's/CANCELLED by 20001/TIMEOUT/')" 'C4: job 12 .* ran into its limit'
fault "C2: an end inside the contract without a known cause" rows "$(row 12 1796000875 's/CANCELLED by 20001/VANISHED/')" 'C2: job 12 .* VANISHED'
says "C2: a requeue by hand is listed" rows "$(row 12 1796000875 's/CANCELLED by 20001/REQUEUED/')" '^early end: job 12 .* requeued by hand'
says "GPUs by node that are not known give no verdict" rows '/^6.batch/d;/^8.batch/d' '^not told: job 6 .* needed'
fault "fewer preemptions than are wanted" when 's/now=.*/now=1796001101/' 'audit: 4 preemptions .* at least 5' --least 5
fault "U3: shares that are not the budgets" when 's/now=.*/now=1796001101/' 'U3: account d .* 2.0 points' --points 1.9 --shares a:367/c:72/d:520 --from 1796000400 --to 1796001100
fault "nothing to check is a finding" rows,log 'd' 'audit: no rows'

fresh && rm "$scratch/copy/nodes" && audit
report $((status != 2)) "a file that is missing is told apart: exit status 2"
audit --recorded
report $((status != 2)) "as is an option without its value"

closing
