#!/usr/bin/env bash
# drps-index over three processes: the plan of one, with and without keys; mistakes, full disks, interruption and killed
# ranks: all end, the one to blame is named, and nothing is left.
. "$(dirname "$0")/lib.sh"
"$tools/drps-gen" ctr --samples 12K --fields 12 --rows 20K --seed 3 -o data.svm --quiet
"$tools/drps-gen" matrix --users 600 --items 300 --ratings 12K --seed 3 -o ratings.tsv --quiet

# start N OPTIONS...: ranks 1 to N - 1 in the background, in folders of their own; their ids are in pids
start() {
    local n=$1 r
    shift
    pids=()
    for ((r = 1; r < n; r++)); do
        mkdir -p "machine-$r"
        "$tools/drps-index" --peers peers.txt --peer-rank $r -o "machine-$r/plan" --timeout 60 "$@" 2>"rank-$r.txt" &
        pids+=($!)
    done
}
empty() { [[ -z $(ls -A "machine-$1") ]] || fail "rank $1 left behind: $(ls "machine-$1")"; }

ports 2 >peers.txt
start 2 --quiet
if ! "$tools/drps-index" data.svm --algo lor --blocks frequency --peers peers.txt --peer-rank 0 -o plan --timeout 60 --quiet 2>err.txt; then
    grep -q "this build has no ZeroMQ" err.txt || fail "two ranks: $(cat err.txt)"
    skip "this build has no ZeroMQ"
fi
wait "${pids[0]}" || fail "rank 1 ended with $?: $(cat rank-1.txt)"
rm -r plan

# ---- The plan of one process ----

same() { # NAME INDEX-OPTIONS...
    local name=$1 pid
    shift
    "$tools/drps-index" "$@" --test-fraction 0.1 -o one --force --quiet
    ports 3 >peers.txt
    start 3
    "$tools/drps-index" "$@" --test-fraction 0.1 -o plan --peers peers.txt --peer-rank 0 --timeout 60 --quiet
    for pid in "${pids[@]}"; do wait "$pid" || fail "$name: a rank ended with $?: $(cat rank-*.txt)"; done
    same_plan one plan || fail "$name: three processes make another plan than one"
    for r in 1 2; do
        empty $r
        grep -qE "rank $r: [0-9.]+ [KMG]?i?B(ytes)? of row lists and questions, [0-9.]+ .* of answers; counted for" "rank-$r.txt" ||
            fail "$name: rank $r says: $(cat "rank-$r.txt")"
    done
    [[ ! -e plan.rank-0.partial ]] || fail "$name: rank 0 left its share"
    rm -r plan
    echo "ok $name"
}
same topk data.svm --algo fm --factors 4 --blocks topk --prune 4
same "topk of a part" data.svm --algo lor --blocks topk --prune-to 2K --sample 0.5 --batch-size 50
same greedy data.svm --algo lor --blocks greedy
same pairwise ratings.tsv --algo lmf --factors 4 --blocks pairwise --prune-to 100
same auto data.svm --algo fm --factors 4 --blocks auto --workers 2 --partition auto

# Encrypted, and ranks as a launcher says.
ports 3 >peers.txt
for r in 0 1 2; do
    echo "$(sed -n "$((r + 1))p" peers.txt) $("$tools/drps-train" --make-keys keys-$r)"
done >keyed.txt
launched() { # RANK OPTIONS...: the same command on all machines
    local r=$1
    shift
    PMI_RANK=$r PMI_SIZE=3 "$tools/drps-index" data.svm --algo lor --blocks auto --peers keyed.txt --keys "keys-$r" -o plan --timeout 60 --quiet "$@"
}
launched 1 &
launched 2 &
launched 0 || fail "with keys: $?"
wait
"$tools/drps-index" data.svm --algo lor --blocks auto -o one --force --quiet
same_plan one plan || fail "with keys: another plan"
rm -r plan
echo "ok keys and launchers"

# ---- Mistakes ----

index() { "$tools/drps-index" data.svm --algo lor -o never "$@"; }
ports 3 >peers.txt
fails 1 "rank 1 .*did not start" index --peers peers.txt --peer-rank 0 --timeout 1
fails 2 "shards counts on this machine" index --blocks topk --peers peers.txt --peer-rank 0 --shards 2
fails 2 "need --peers" index --blocks topk --peer-rank 0
fails 2 "need --peers" index --blocks topk --insecure
fails 2 "which rank is this\? Give --peer-rank" index --blocks topk --peers peers.txt
fails 2 "PMI_SIZE|started 4 ranks, and there are 3 peers" env PMI_RANK=0 PMI_SIZE=4 "$tools/drps-index" data.svm --algo lor --blocks topk -o never --peers peers.txt
fails 2 "peers.txt has 3 ranks, and there is no rank 3" index --blocks topk --peers peers.txt --peer-rank 3
fails 1 "nowhere" index --blocks topk --peers nowhere --peer-rank 0
fails 1 "rank 1 " index --blocks topk --peers peers.txt --peer-rank 0 --timeout 1 # nobody is there
printf '10.0.0.1:7000\n10.0.0.2:7000\n' >far.txt
fails 2 "keys|insecure" index --blocks topk --peers far.txt --peer-rank 0 --timeout 1
ports 2 >peers.txt
start 2 --quiet
fails 1 "missing.svm" "$tools/drps-index" missing.svm --algo lor --blocks topk -o never --peers peers.txt --peer-rank 0 --timeout 60
wait "${pids[0]}" && fail "rank 1 did not notice that rank 0 has no data"
grep -q "rank 0 .*gave up: .*missing.svm" rank-1.txt || fail "rank 1 says: $(cat rank-1.txt)"
# A rank of drps-train at one of the addresses.
"$tools/drps-index" data.svm --algo lor --workers 2 -o plan-2 --quiet
"$tools/drps-train" plan-2 -o never-a-model --peers peers.txt --rank 1 --timeout 60 --quiet 2>rank-1.txt &
other=$!
fails 2 "rank 1 .*another plan" index --blocks topk --peers peers.txt --peer-rank 0 --timeout 60
wait $other && fail "drps-train did not notice"
absent never
empty 1
echo "ok mistakes"

# ---- Ends of all kinds, while ranks count ----

"$tools/drps-gen" ctr --samples 60K --fields 20 --rows 100K --seed 1 -o greedy.svm --quiet # takes long
counting() { # until every rank has its share; the processes must live on
    local pid r tries=0
    for r in machine-1/plan.rank-1 machine-2/plan.rank-2 never.rank-0; do
        until [[ -s $r.partial/rows.rec ]]; do
            for pid in "$@"; do kill -0 "$pid" || fail "ended early: $(cat err.txt rank-*.txt)"; done
            ((++tries < 20000)) || fail "$r.partial/rows.rec never appeared"
            pause
        done
    done
}
# ends SIGNAL RANK: rank RANK gets the signal; the others say so and exit with 1
ends() {
    local signal=$1 victim=$2 all says=(err.txt rank-1.txt rank-2.txt) r status
    ports 3 >peers.txt
    start 3 --silence 1
    "$tools/drps-index" greedy.svm --algo fm --factors 8 --blocks greedy -o never --peers peers.txt --peer-rank 0 \
        --silence 1 --timeout 60 --quiet 2>err.txt &
    all=($! "${pids[@]}")
    counting "${all[@]}"
    kill -"$signal" "${all[victim]}"
    SECONDS=0
    for r in 0 1 2; do
        status=0 && wait "${all[r]}" 2>/dev/null || status=$?
        if ((r == victim)); then
            [[ $signal = KILL || $status = 130 ]] || fail "rank $r ended with $status after $signal: $(cat "${says[r]}")"
            continue
        fi
        [[ $status = 1 ]] || fail "rank $r ended with $status after $signal for rank $victim: $(cat "${says[r]}")"
        grep -qE "rank $victim \\(.*$([[ $signal = KILL ]] && echo 'dead or cut off' || echo 'gave up: .*interrupted')" "${says[r]}" ||
            fail "rank $r does not name rank $victim after $signal: $(cat "${says[r]}")"
    done
    ((SECONDS <= 300)) || fail "$signal for rank $victim: it took $SECONDS s to end"
    [[ ! -e never ]] || fail "a plan although rank $victim got $signal"
    [[ $signal = KILL ]] || { absent never && [[ ! -e never.rank-0.partial ]] && empty 1 && empty 2; } || fail "$signal for rank $victim: left behind"
    rm -rf never.partial never.rank-0.partial machine-1 machine-2 # what a killed rank could not tidy up
    echo "ok $signal for rank $victim, ended after $SECONDS s"
}
for signal in INT KILL; do
    for victim in 0 1 2; do ends $signal $victim; done
done

# Before rank 0 counts: it reads from a pipe that nobody writes to.
mkfifo pipe
ports 2 >peers.txt
start 2 --silence 1
"$tools/drps-index" - --algo lor --format libsvm --blocks greedy -o never --peers peers.txt --peer-rank 0 --silence 1 --timeout 60 --quiet <pipe 2>err.txt &
master=$!
exec 4>pipe
for ((i = 0; i < 20000; i++)); do
    [[ ! -e machine-1/plan.rank-1.partial || ! -e never.partial ]] || break
    pause
done
cat data.svm >&4
kill -KILL "${pids[0]}"
status=0 && { while kill -0 $master 2>/dev/null; do cat data.svm >&4 2>/dev/null || break; done; wait $master || status=$?; }
exec 4>&-
[[ $status = 1 ]] || fail "rank 0 ended with $status while it read: $(cat err.txt)"
grep -q "rank 1 (.*dead or cut off" err.txt || fail "rank 0 says while it reads: $(cat err.txt)"
absent never
rm -rf machine-1
echo "ok killed before rank 0 counts"

# A disk too small for a rank's share.
mkdir -p machine-2
if mount -t tmpfs -o size=64k tmpfs machine-2 2>/dev/null; then
    trap 'umount -l machine-2 2>/dev/null || true; rm -rf "$work"' EXIT
    ports 3 >peers.txt
    start 3 --quiet
    fails 1 "rank 2.*[nN]o space" "$tools/drps-index" greedy.svm --algo lor --blocks greedy --batch-size 20 -o never --peers peers.txt --peer-rank 0 --timeout 60
    wait "${pids[1]}" && fail "rank 2 did not notice that its disk is full"
    grep -q "[nN]o space" rank-2.txt || fail "rank 2 says: $(cat rank-2.txt)"
    wait "${pids[0]}" || true # it has done its part
    absent never
    empty 1
    empty 2
    echo "ok full disk"
else
    echo "not tried: a full disk, which needs root"
fi
