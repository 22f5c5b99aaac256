#!/usr/bin/env bash
# Ctrl-C ends cleanly with 130; kill -9 leaves nothing that looks complete, and the next run works.
. "$(dirname "$0")/lib.sh"
"$tools/drps-gen" ctr --samples 200K --fields 30 --rows 300K --seed 6 -o data.svm --quiet
"$tools/drps-index" data.svm --algo fm --factors 8 --test-fraction 0.1 -o plan --quiet --json >/dev/null

# wait_for PATH PID: until the file exists; the process must live on, or have made what PATH.partial becomes
wait_for() {
    until [[ -e $1 || -e ${1%.partial} ]]; do
        kill -0 "$2" 2>/dev/null || [[ -e ${1%.partial} ]] || fail "process ended before $1 existed"
        pause
    done
}

# The model so far, from rows in memory and from rows on their way between windows.
for store in resident relay; do
    memory=$([[ $store = resident ]] && echo 56M || echo 46M) # not enough to hold all rows between windows
    : >progress.txt # not by the shell that starts the next command, which may be late: the loop would see the old lines
    "$tools/drps-train" plan -o model --epochs 100000 --store $store --memory $memory >>progress.txt 2>stopped.txt &
    pid=$!
    until [[ $(wc -l <progress.txt) -ge 4 ]]; do # a head, the best constant and two epochs
        kill -0 $pid 2>/dev/null || fail "drps-train --store $store ended too soon"
        pause
    done
    kill -INT $pid
    status=0
    wait $pid || status=$?
    grep -q 'the model so far is model: to go on, resume it with the same command (--resume)$' stopped.txt ||
        fail "drps-train --store $store did not say how to go on: $(cat stopped.txt)"
    [[ $status = 130 ]] || fail "after SIGINT drps-train --store $store exited with $status"
    absent model.partial
    [[ ! -e model/store ]] || fail "the files of store $store are in the model"
    "$tools/drps-stat" model --verify >/dev/null || fail "the interrupted model does not verify"
    "$tools/drps-stat" model >stat.txt
    grep -qi interrupted stat.txt || fail "drps-stat does not say that the model was interrupted"
    "$tools/drps-predict" model data.svm -o scores.txt --force --quiet || fail "the interrupted model does not predict"
    [[ $store = resident ]] || "$tools/drps-stat" model --json >relay.json
    # Going on from the checkpoint, to the end of the epoch that was under way.
    under_way=$(($(grep -c '^ *[0-9]' progress.txt) + 1))
    fails 2 'has checkpoints of a run that has not ended' "$tools/drps-train" plan -o model
    "$tools/drps-train" plan -o model --resume --epochs $under_way --checkpoint-every 1e --store $store --memory $memory >/dev/null 2>&1 ||
        fail "drps-train --store $store does not go on"
    "$tools/drps-stat" model >stat.txt
    grep -Eq '^resumed in epoch [3-9].* of it, with the first step done after [0-9.]+ s$' stat.txt && ! grep -qi interrupted stat.txt || fail "drps-stat of a resumed run: $(cat stat.txt)"
    absent model.checkpoint
    rm -r model
done
"$tools/drps-train" plan -o model --epochs 2 --checkpoint-every 1e --quiet
"$tools/drps-stat" model >stat.txt
grep -q '^checkpoints: 1 written' stat.txt || fail "drps-stat does not say what checkpoints cost: $(cat stat.txt)"
rm -r model
# A checkpoint of the last epoch leaves no step to do.
for go_on in "" "--resume --force"; do
    # shellcheck disable=SC2086  # words
    "$tools/drps-train" plan -o model --epochs 1 --keep-checkpoints $go_on --quiet
done
"$tools/drps-stat" model >stat.txt
grep -qx 'resumed in epoch 2, after 0 batches of it' stat.txt || fail "drps-stat of a run without a step: $(cat stat.txt)"
rm -r model model.checkpoint
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
    "$tools/drps-index" greedy.svm --algo fm --factors 8 --blocks greedy --shards $shards -o plan3 --quiet 2>stopped.txt &
    pid=$!
    wait_for plan3.partial/scratch/names.rec $pid
    children=
    while ((shards > 1)) && (($(wc -w <<<"$children") < shards)); do
        kill -0 $pid || fail "drps-index --shards $shards ended before it had shards"
        children=$(cat /proc/$pid/task/$pid/children 2>/dev/null) || break # not on every kernel
        pause
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

# listens PID: a tool runs there and looks for SIGTERM, or the process has ended
listens() {
    local name caught
    { read -r name <"/proc/$1/comm" && caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status"); } 2>/dev/null || return 0
    [[ -z $caught || ($name = drps-* && $((0x$caught >> 14 & 1)) = 1) ]]
}

# stopped WANT DELAY OUT COMMAND...: SIGTERM after DELAY seconds ends the command soon, with 130. WANT is nothing: OUT is not
# left, unless the command was done before; model: OUT may be a whole model; always: it cannot have been done before. DELAY
# begin: as soon as the process runs, whether it looks for signals or not.
stopped() {
    local want=$1 delay=$2 out=$3 status=0 early=0 since
    shift 3
    rm -f stopped.txt
    "$@" <&0 >/dev/null 2>stopped.txt &
    pid=$!
    # Until it has begun, it is a copy of this shell, and would run its trap.
    until [[ -e stopped.txt ]]; do pause; done
    if [[ $delay != begin ]]; then
        until listens $pid; do pause; done
        read -rt "$delay" <> <(:) || true
    fi
    kill -TERM $pid 2>/dev/null || true
    since=$SECONDS
    wait $pid || status=$?
    ((SECONDS - since <= 20)) || fail "'$*' took $((SECONDS - since)) s to stop"
    # Before it looks for signals a tool ends by them, and has made nothing yet.
    [[ $status != 143 || $delay != begin || -s stopped.txt ]] || status=130 early=1
    [[ $status = 130 || ($status = 0 && $want != always) ]] || fail "'$*' after $delay s and SIGTERM: $status, $(cat stopped.txt)"
    ((status == 0 || early)) || grep -q interrupted stopped.txt || fail "'$*' does not say that it was interrupted"
    [[ ! -e $out.partial ]] || fail "'$*' left $out.partial"
    if [[ $want = model && -e $out ]]; then
        "$tools/drps-stat" "$out" --verify >/dev/null || fail "'$*' left a model that does not verify"
    elif [[ $status = 130 ]]; then
        [[ ! -e $out ]] || fail "'$*' left $out"
    fi
    rm -rf "$out" "$out.checkpoint"
}
"$tools/drps-train" plan -o whole --quiet
"$tools/drps-index" data.svm --algo fm --factors 8 --test-fraction 0.1 --workers 2 -o ranks --quiet
mkfifo silent
exec 8<>silent # a writer that writes nothing
for delay in begin 0.05 0.3 1.2; do
    stopped nothing $delay o.svm "$tools/drps-gen" ctr --samples 20M -o o.svm
    stopped nothing $delay o "$tools/drps-index" data.svm --algo fm --factors 8 --blocks auto --test-fraction 0.1 -o o
    stopped nothing $delay o "$tools/drps-stat" plan --verify
    stopped nothing $delay o "$tools/drps-stat" whole --verify
    stopped nothing $delay o "$tools/drps-predict" whole data.svm data.svm data.svm -o o
    for store in relay file rocksdb; do
        stopped model $delay o "$tools/drps-train" plan -o o --epochs 100000 --store $store --memory 96M
    done
    stopped model $delay o "$tools/drps-train" ranks -o o --local 2 --epochs 100000 --memory 128M
    [[ ! -e o.rank-1.partial ]] || fail "rank 1 left its partial folder"
done
stopped always 0.5 o "$tools/drps-index" - --algo lor -o o <&8
stopped always 0.5 o "$tools/drps-index" silent --algo lor -o o
stopped always 0.5 o "$tools/drps-index" data.svm --test silent --algo lor -o o
stopped always 0.5 o "$tools/drps-predict" whole silent -o o
# Two signals in a row are one: what the first removes stays removed. Two of a kind could become one on the way.
"$tools/drps-predict" whole silent -o twice --quiet 2>stopped.txt &
pid=$!
wait_for twice.partial $pid
kill -INT $pid
kill -TERM $pid 2>/dev/null || true
status=0
wait $pid || status=$?
[[ $status = 130 ]] || fail "after two signals drps-predict exited with $status: $(cat stopped.txt)"
absent twice
exec 8>&-
mkfifo unread
exec 8<>unread # a reader that reads nothing
# One that comes later ends a tool that does not listen.
"$tools/drps-predict" whole data.svm -o unread --quiet 2>stopped.txt &
pid=$!
read -rN 1 -u 8 || fail "drps-predict writes nothing: $(cat stopped.txt)" # more than a pipe holds will come at once
kill -INT $pid
read -rt 1.2 <> <(:) || true # the time is what is tested
kill -INT $pid
status=0
wait $pid || status=$?
[[ $status = 130 ]] || fail "after a later signal drps-predict exited with $status: $(cat stopped.txt)"
stopped always 0.5 o bash -c 'exec "$0" ctr --samples 20M >unread' "$tools/drps-gen"
exec 8>&-
stopped always 0.5 o "$tools/drps-index" unread --algo lor -o o # nobody writes to it at all
ports 2 >peers.txt
stopped always 0.5 o "$tools/drps-train" ranks --rank 0 --peers peers.txt -o o --insecure
stopped always 0.5 o "$tools/drps-index" data.svm --algo fm --blocks auto --peers peers.txt --peer-rank 0 --insecure -o o

# Ranks that a killed drps-train has started end with it, long before the others would be taken for dead.
"$tools/drps-train" ranks -o o --local 2 --epochs 100000 --memory 128M --silence 600 --quiet >/dev/null 2>&1 &
pid=$!
wait_for o.rank-1.partial $pid
children=$(cat /proc/$pid/task/$pid/children 2>/dev/null || true) # not on every kernel
kill -KILL $pid
wait $pid 2>/dev/null || true
SECONDS=0
for child in $children; do
    while kill -0 "$child" 2>/dev/null; do
        ((SECONDS <= 60)) || fail "rank $child outlives drps-train"
        pause
    done
done
"$tools/drps-train" ranks -o o --local 2 --memory 128M --quiet || fail "drps-train --local after a killed run"
absent o.partial
[[ ! -e o.rank-1.partial ]] || fail "the killed rank's folder is in the way"
rm -r o

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
