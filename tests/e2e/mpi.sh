#!/usr/bin/env bash
# Ranks that talk over MPI, under mpirun: the plan and the model of other ranks, bit for bit; what cannot be is refused before work
# starts; a rank that fails is named on all; one that is killed ends the job within seconds, and the same command goes on.
. "$(dirname "$0")/lib.sh"
. "$source/tests/support/mpi.sh"

# What needs no MPI.
cannot() { # PATTERN OPTION...
    fails 2 "$1" "$tools/drps-train" plan -o model --transport mpi "${@:2}"
}
"$tools/drps-gen" ctr --samples 12K --fields 12 --rows 20K --seed 3 -o data.svm --quiet
"$tools/drps-index" data.svm --algo fm --factors 4 --workers 4 --residuals all --batch-size 100 --test-fraction 0.1 -o plan --quiet
launchers=(-u OMPI_COMM_WORLD_RANK -u PMI_RANK -u SLURM_PROCID -u JOB_COMPLETION_INDEX)
fails 2 "started by mpirun or srun, and this process was not" env "${launchers[@]}" "$tools/drps-train" plan -o model --transport mpi
cannot "are started by mpirun or srun" --local 4
cannot "are for --transport zmq" --peers peers.txt
cannot "are for --transport zmq" --insecure
cannot "run mpirun again, with --resume" --on-failure resume
fails 2 "needs --local, unless it is mpi" "$tools/drps-train" plan -o model --transport zmq
if ! why=$(no_mpi "$tools"); then
    fails 2 "MPI" env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 "$tools/drps-train" plan -o model --transport mpi
    skip "$why"
fi

run() { "${mpirun[@]}" -n "$1" "$tools/drps-train" plan -o "${@:2}" --transport mpi; } # RANKS MODEL OPTION...
content() { "$tools/drps-stat" "$1" --json | all_values content | head -1; }

# ---- The same model ----

same() { # OPTION...: of all ranks, over MPI and as threads
    rm -rf want got
    "$tools/drps-train" plan -o want "$@" --local 4 --transport inproc --quiet
    run 4 got "$@" --quiet 2>log.txt || fail "mpirun $*: $(cat log.txt)"
    [[ $(content got) = "$(content want)" ]] || fail "another model with $*"
    [[ $(ls) != *got.* ]] || fail "something was left beside the model: $(ls)"
}
same --epochs 2 --store resident
same --epochs 2 --store relay --push-values 16bit
run 4 got --epochs 1 --sync asp --force --quiet --json 2>log.txt >got.json || fail "asp: $(cat log.txt)"
[[ $(grep -c "\"rank\":" got.json) = 4 ]] || fail "asp: $(cat got.json)"

# ---- A plan ----

index=("$tools/drps-index" data.svm --algo fm --factors 4 --batch-size 100 --memory 256M --quiet)
compiled() { # WHAT ONE-MACHINE'S-OPTIONS: those of three ranks are in "${of_three[@]}"
    rm -rf one compiled
    "${index[@]}" -o one "${@:2}"
    "${mpirun[@]}" -n 3 "${index[@]}" -o compiled --transport mpi "${of_three[@]}" 2>log.txt || fail "$1: $(cat log.txt)"
    same_plan one compiled || fail "$1: three ranks make another plan than one"
    [[ $(ls) != *compiled.* ]] || fail "$1: something was left beside the plan: $(ls)"
}
of_three=(--samples dealt --shared)
compiled "each reads its share" --samples dealt --workers 3
of_three=(--blocks auto)
compiled "counting for one" --blocks auto
fails 2 "started by mpirun or srun" env "${launchers[@]}" "${index[@]}" -o compiled --force --transport mpi
fails 2 "are for --transport zmq" "${index[@]}" -o compiled --force --transport mpi --peers peers.txt

# ---- What ends the job ----

ends() { # PATTERN COMMAND...: with a status that is not 0, soon, and nothing half-made
    local status=0
    "${@:2}" >log.txt 2>&1 || status=$?
    [[ $status != 0 && $status != 124 ]] || fail "'${*:2}' ended with $status: $(cat log.txt)"
    grep -q -- "$1" log.txt || fail "'${*:2}' did not say '$1' but: $(cat log.txt)"
    absent model
}
ends "plan is a plan for 4 workers, and 3 ranks were started" run 3 model --epochs 1
ends "rank 0 gave up: got exists already" run 4 got --epochs 1
one=("$tools/drps-train" plan -o model --transport mpi)
ends "rank 2 was started with epochs 3, rank 0 with 2" "${mpirun[@]}" -n 2 "${one[@]}" --epochs 2 : -n 2 "${one[@]}" --epochs 3

# ---- A rank is killed ----

mkdir pids
cat >rank <<END
#!/bin/sh
echo \$\$ >pids/\$OMPI_COMM_WORLD_RANK
exec "$tools/drps-train" "\$@"
END
chmod +x rank
how=(plan -o model --transport mpi --epochs 40 --checkpoint-every 50b --silence 1 --resume)
"$tools/drps-train" plan -o whole --epochs 40 --local 4 --transport inproc --quiet
"${mpirun[@]}" -n 4 ./rank "${how[@]}" >log.txt 2>&1 &
job=$!
until (($(newest model.checkpoint/rank-0) >= 2)) && [[ -s pids/2 ]]; do
    kill -0 $job 2>/dev/null || fail "no checkpoint: $(cat log.txt)"
    pause
done
kill -KILL "$(cat pids/2)"
status=0
wait $job || status=$?
[[ $status != 0 && $status != 124 && ! -e model ]] || fail "status $status after a rank was killed: $(cat log.txt)"
"${mpirun[@]}" -n 4 ./rank "${how[@]}" >log.txt 2>&1 || fail "again: $(cat log.txt)"
grep -q "going on from checkpoint" log.txt || fail "did not go on: $(cat log.txt)"
[[ $(content model) = "$(content whole)" ]] || fail "another model after a rank was killed"
absent model.checkpoint
