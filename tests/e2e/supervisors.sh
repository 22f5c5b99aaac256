#!/usr/bin/env bash
# Ranks that somebody else starts again: mpirun in a loop; srun in examples/slurm.sh, under daemons of Slurm that run here for
# this test. Each comes to the model of an undisturbed run. Under Slurm also: index, then training; and both over MPI. What is
# not installed is skipped, and said.
. "$(dirname "$0")/lib.sh"
. "$source/tests/support/mpi.sh"

"$tools/drps-gen" ctr --samples 20K --fields 12 --rows 20K --seed 3 -o data.svm --quiet
"$tools/drps-index" data.svm --algo fm --factors 4 --workers 3 --batch-size 100 --test-fraction 0.1 -o plan --quiet
how=(--epochs 60 --checkpoint-every 60b --silence 1 --timeout 60)
if ! "$tools/drps-train" plan -o want "${how[@]}" --local 3 --quiet --json >want.json 2>err.txt; then
    grep -q "this build has no ZeroMQ" err.txt || fail "$(cat err.txt)"
    skip "this build has no ZeroMQ"
fi
want=$(value content <want.json)
tried=0

# Ranks are started through this, which says their process's id.
mkdir bin pids
cat >bin/drps-train <<END
#!/bin/sh
echo \$\$ >"$PWD/pids/\${OMPI_COMM_WORLD_RANK:-\$SLURM_PROCID}"
exec "$tools/drps-train" "\$@"
END
chmod +x bin/drps-train
export PATH=$PWD/bin:$PATH

# signal NAME RANK PROCESS: to a rank of the model `got` when there is a checkpoint; PROCESS must not end before. Nothing slower
# than looking is done meanwhile: under load one question to Slurm may take as long as the run.
signal() {
    local until=$((SECONDS + 120))
    until (($(newest got.checkpoint/rank-0) >= 2)) && [[ -s pids/$2 ]]; do
        kill -0 "$3" 2>/dev/null && [[ $SECONDS -lt $until ]] || fail "no checkpoint: $(cat log.txt)"
        pause
    done
    kill -"$1" "$(cat "pids/$2")"
}
same() { # WHAT
    [[ $("$tools/drps-stat" got --json | all_values content | head -1) = "$want" ]] || fail "$1: another model than $want: $(cat log.txt)"
    grep -q "going on from checkpoint" log.txt || fail "$1: did not go on: $(cat log.txt)"
    [[ ! -e got.checkpoint ]] || fail "$1: checkpoints were left behind"
    rm -rf got got.* pids/*
    tried=$((tried + 1))
    echo "ok $1"
}

# ---- mpirun: it ends all ranks when one ends, and a loop starts them again ----

by_mpirun() {
    local root=()
    [[ $EUID != 0 ]] || root=(--allow-run-as-root)
    ports 3 >peers.txt
    until mpirun "${root[@]}" --oversubscribe -n 3 drps-train plan -o got --peers peers.txt --resume "${how[@]}" >>log.txt 2>&1; do
        [[ $? -gt 2 ]] || return 1
        echo "again" >>log.txt
    done
}
if [[ -x $(command -v mpirun) ]]; then
    : >log.txt
    by_mpirun &
    job=$!
    signal KILL 1 $job
    wait $job || fail "mpirun: $(cat log.txt)"
    grep -q again log.txt || fail "mpirun started the ranks once: $(cat log.txt)"
    same mpirun
else
    echo "skipped: mpirun is not installed"
fi

# ---- Slurm ----

daemons=()
# The first one, munged, last: who ends asks it once more.
stop_daemons() {
    local i
    for ((i = ${#daemons[@]} - 1; i >= 0; i--)); do
        kill "${daemons[i]}" 2>/dev/null || true
        timeout 10 tail -q --pid="${daemons[i]}" -f /dev/null || kill -KILL "${daemons[i]}" || true
    done
}
trap 'stop_daemons; rm -rf "$work"' EXIT
daemon() { # NAME COMMAND...: in the background, with what it says in slurm/NAME
    "${@:2}" >"slurm/$1" 2>&1 &
    daemons+=($!)
}

start_slurm() {
    local host port n
    host=$(hostname -s)
    port=$(ports 1) && port=${port##*:}
    mkdir -p slurm/state slurm/munge
    chmod 755 . slurm slurm/munge # as munged wants it
    (umask 077 && head -c 1024 /dev/urandom >slurm/munge/key)
    export SLURM_CONF=$PWD/slurm/slurm.conf
    cat >"$SLURM_CONF" <<END
ClusterName=drps
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$PWD/slurm/munge/socket
CredType=cred/munge
StateSaveLocation=$PWD/slurm/state
SlurmdSpoolDir=$PWD/slurm/spool.%n
SlurmctldPidFile=$PWD/slurm/ctld.pid
SlurmdPidFile=$PWD/slurm/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=1
PartitionName=all Nodes=n[1-3] Default=YES MaxTime=INFINITE State=UP
END
    for n in 1 2 3; do
        echo "NodeName=n$n NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + n)) CPUs=1 State=UNKNOWN" >>"$SLURM_CONF"
    done
    daemon munged munged --foreground --force --key-file="$PWD/slurm/munge/key" --socket="$PWD/slurm/munge/socket" \
        --pid-file="$PWD/slurm/munge/pid" --log-file="$PWD/slurm/munge/log" --seed-file="$PWD/slurm/munge/seed"
    until [[ -S slurm/munge/socket ]]; do kill -0 "${daemons[0]}" 2>/dev/null || return 1; pause; done
    daemon slurmctld slurmctld -D -c
    for n in 1 2 3; do daemon slurmd-$n slurmd -D -N n$n; done
    for ((n = 0; n < 60; n++)); do
        [[ $(timeout 5 sinfo -h -t idle -o %D 2>/dev/null) != 3 ]] || return 0
        kill -0 "${daemons[@]}" 2>/dev/null || return 1
        read -rt 0.5 <> <(:) || true
    done
    return 1
}

# batch: examples/slurm.sh under sbatch; its number is in $job. All three nodes are this machine, so ranks have three ports.
batch() {
    ports 3 >peers.txt
    : >log.txt
    job=$(PEERS=$PWD/peers.txt sbatch --parsable --nodes=3 --output="$PWD/log.txt" "$source/examples/slurm.sh" "$PWD/plan" "$PWD/got" "${how[@]}")
}
# two_steps WHAT OPTION...: how ranks talk, which "${step[@]}" starts
two_steps() {
    timeout 120 "${step[@]}" "${index[@]}" --shared -o compiled "${@:2}" >log.txt 2>&1 || fail "$1: $(cat log.txt)"
    same_plan one compiled || fail "$1: another plan than one machine's: $(cat log.txt)"
    timeout 120 "${step[@]}" "$tools/drps-train" compiled -o got --epochs 2 --quiet "${@:2}" >log.txt 2>&1 || fail "$1: $(cat log.txt)"
    [[ $("$tools/drps-stat" got --json | all_values content | head -1) = $("$tools/drps-stat" short --json | all_values content | head -1) ]] ||
        fail "$1: another model"
    rm -rf compiled got pids/*
    echo "ok $1"
}
done_with() { # until the job has gone from the queue: it is neither pending, configuring, running nor completing
    local jobs
    until jobs=$(squeue -h -j "$job" 2>/dev/null) && [[ -z $jobs ]]; do read -rt 0.2 <> <(:) || true; done
}

if [[ -x $(PATH=$PATH:/usr/sbin command -v slurmctld) && -x $(PATH=$PATH:/usr/sbin command -v munged) ]]; then
    PATH=$PATH:/usr/sbin
    if ! start_slurm; then
        echo "skipped: no Slurm of three nodes can be started here: $(tail -n 2 slurm/munged slurm/slurmctld slurm/slurmd-1 2>/dev/null | tr '\n' ' ')"
    else
        # A step for the index, and then one for training, each a command line for all ranks.
        index=("$tools/drps-index" data.svm --algo fm --factors 4 --batch-size 100 --test-fraction 0.1 --samples dealt --memory 256M --quiet)
        "${index[@]}" --workers 3 -o one
        "$tools/drps-train" one -o short --epochs 2 --local 3 --quiet
        # PMIx, by which the ranks of MPI find each other, takes daemons of one machine for one: a single node, and before any step of
        # several nodes.
        step=(srun --quiet --nodes=1 --ntasks=3 --overcommit --mpi=pmix --kill-on-bad-exit=1)
        if ! why=$(no_mpi "$tools"); then
            echo "skipped: over MPI under Slurm: $why"
        elif [[ $("${step[@]}" printenv PMIX_RANK 2>log.txt | sort | tr -d '\n') != 012 ]]; then
            echo "skipped: over MPI under Slurm, which starts no ranks by PMIx: $(cat log.txt)"
        else
            two_steps "slurm, index and training over MPI" --transport mpi
        fi
        ports 3 >peers.txt
        step=(srun --quiet --nodes=3 --ntasks=3 --kill-on-bad-exit=1)
        two_steps "slurm, index and training" --peers "$PWD/peers.txt"

        batch
        signal KILL 2 $$
        done_with
        grep -q "ranks were lost (status 137): starting again" log.txt || fail "slurm: nothing was lost: $(cat log.txt)"
        same "slurm, a rank killed"

        # The whole job ends and is queued again, as when a machine fails. Slurm would wait a minute before it starts the job, as a
        # start within the second in which it ended is refused (operations.md): here until that second is over.
        batch
        signal STOP 0 $$ # or it could be done before Slurm has heard of it
        scontrol requeue "$job"
        until [[ $(squeue -h -j "$job" -t PENDING -o %t) = PD ]]; do read -rt 0.2 <> <(:) || true; done
        ended=$EPOCHSECONDS
        until ((EPOCHSECONDS > ended)); do read -rt 0.2 <> <(:) || true; done
        scontrol update JobId="$job" StartTime=now
        done_with
        ! grep "JobId=$job: Job credential revoked" slurm/slurmctld || fail "slurm did not start the job again"
        same "slurm, the job queued again"
        stop_daemons
        daemons=()
    fi
else
    echo "skipped: Slurm (slurmctld, slurmd, munged) is not installed"
fi
[[ $tried -gt 0 ]] || skip "there is neither mpirun nor Slurm"
