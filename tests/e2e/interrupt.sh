#!/usr/bin/env bash
# Ctrl-C ends cleanly with 130; kill -9 leaves nothing that looks complete, and the next run works.
. "$(dirname "$0")/lib.sh"
"$tools/drps-gen" ctr --samples 200K --fields 30 --rows 300K --seed 6 -o data.svm --quiet
"$tools/drps-index" data.svm --algo fm --rank 8 --test-fraction 0.1 -o plan --quiet --json >/dev/null

# wait_for PATH PID: until the file exists; the process must live on, or have made what PATH.partial becomes
wait_for() {
    until [[ -e $1 || -e ${1%.partial} ]]; do
        kill -0 "$2" 2>/dev/null || [[ -e ${1%.partial} ]] || fail "process ended before $1 existed"
        read -rt 0.01 <> <(:) || true
    done
}

# The model so far, from rows in memory and from rows on their way between windows.
for store in resident relay; do
    memory=$([[ $store = resident ]] && echo 56M || echo 46M) # not enough to hold all rows between windows
    : >progress.txt # not by the shell that starts the next command, which may be late: the loop would see the old lines
    "$tools/drps-train" plan -o model --epochs 100000 --store $store --memory $memory >>progress.txt &
    pid=$!
    until [[ $(wc -l <progress.txt) -ge 3 ]]; do # a head and two epochs
        kill -0 $pid 2>/dev/null || fail "drps-train --store $store ended too soon"
        read -rt 0.01 <> <(:) || true
    done
    kill -INT $pid
    status=0
    wait $pid || status=$?
    [[ $status = 130 ]] || fail "after SIGINT drps-train --store $store exited with $status"
    absent model.partial
    [[ ! -e model/store ]] || fail "the files of store $store are in the model"
    "$tools/drps-stat" model --verify >stat.txt
    grep -qi interrupted stat.txt || fail "drps-stat does not say that the model was interrupted"
    "$tools/drps-predict" model data.svm -o scores.txt --force --quiet || fail "the interrupted model does not predict"
    [[ $store = resident ]] || "$tools/drps-stat" model --json >relay.json
    rm -r model
done
[[ $(all_values windows <relay.json | awk '/^[0-9]/') -ge 5 ]] || fail "relay had few windows: $(all_values windows <relay.json)"
[[ $(all_values reads <relay.json | awk '{n += $1} END {print n + 0}') -gt 0 ]] || fail "relay was interrupted before it read anything"

"$tools/drps-index" data.svm --algo lor -o plan2 --quiet &
pid=$!
wait_for plan2.partial $pid
kill -INT $pid 2>/dev/null || true # it may be done
status=0
wait $pid || status=$?
[[ $status = 130 || $status = 0 ]] || fail "after SIGINT drps-index exited with $status"
[[ $status = 0 ]] || absent plan2

# While a builder counts: alone, and waiting for shards, which end too.
"$tools/drps-gen" ctr --samples 60K --fields 20 --rows 100K --seed 1 -o greedy.svm --quiet
for shards in 1 3; do
    "$tools/drps-index" greedy.svm --algo fm --rank 8 --blocks greedy --shards $shards -o plan3 --quiet 2>stopped.txt &
    pid=$!
    wait_for plan3.partial/scratch/names.rec $pid
    children=
    while ((shards > 1)) && (($(wc -w <<<"$children") < shards)); do
        kill -0 $pid || fail "drps-index --shards $shards ended before it had shards"
        children=$(cat /proc/$pid/task/$pid/children 2>/dev/null) || break # not on every kernel
    done
    read -rt 1 <> <(:) || true
    kill -TERM $pid
    SECONDS=0
    status=0
    wait $pid || status=$?
    [[ $status = 130 ]] || fail "after SIGTERM drps-index --blocks greedy --shards $shards exited with $status"
    ((SECONDS <= 300)) || fail "drps-index --blocks greedy --shards $shards took $SECONDS s to stop"
    grep -q interrupted stopped.txt || fail "drps-index --shards $shards does not say that it was interrupted"
    absent plan3
    absent plan3.partial
    for child in $children; do
        ! kill -0 "$child" 2>/dev/null || fail "shard $child still runs"
    done
done

for tool in index rocksdb relay; do
    for round in 1 2 3; do
        if [[ $tool = index ]]; then set -- "$tools/drps-index" data.svm --algo lor -o killed --quiet
        else set -- "$tools/drps-train" plan -o killed --epochs 1000 --store $tool --memory 128M --quiet; fi
        "$@" &
        pid=$!
        wait_for killed.partial $pid
        read -rt "0.0$((round * 3))" <> <(:) || true
        kill -KILL $pid 2>/dev/null || true
        wait $pid 2>/dev/null || true
        [[ ! -e killed ]] || [[ $tool = index ]] && "$tools/drps-stat" killed --verify >/dev/null 2>&1 ||
            [[ ! -e killed ]] || fail "killed drps-$tool left something that looks complete"
        rm -rf killed
    done
    if [[ $tool != index ]]; then "$tools/drps-train" plan -o killed --store $tool --memory 96M --quiet; else "$tools/drps-index" data.svm --algo lor -o killed --quiet; fi >/dev/null ||
        fail "drps-$tool after a killed run"
    absent killed.partial
    rm -rf killed
done
echo "ok"
