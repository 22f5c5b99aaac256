#!/usr/bin/env bash
# Rows that are handed on between processes: the model without, from every store and machine by machine; bytes on the wire as the
# plan says, and fewer; a rank that is killed, and a run that is stopped, go on; what cannot be is refused.
. "$(dirname "$0")/lib.sh"

"$tools/drps-gen" matrix --users 300 --items 300 --ratings 6K --seed 3 -o ratings.tsv --quiet
"$tools/drps-index" ratings.tsv --algo lmf --factors 8 --workers 3 --partition auto --batch-size 40 --test-fraction 0.1 --memory 64M \
    --hand-on all --hand-on-for sgd -o plan --quiet --json >index.json
"$tools/drps-stat" plan --verify >/dev/null || fail "the plan does not verify"
"$tools/drps-stat" plan >out.txt
grep -q "rows are handed on with the state of sgd" out.txt || fail "$(cat out.txt)"
awk -v share="$(value handed_on_of_plain <index.json)" 'BEGIN { exit !(share > 0 && share < 1) }' || fail "$(cat index.json)"

# train OPTIONS...: its JSON is left in train.json
train() { "$tools/drps-train" plan -o model --force --optimizer sgd --epochs 3 "$@" --quiet --json >train.json; }
content() { value content <train.json; }
same() { [[ $(content) = "$want" ]] || fail "$1: $(content), not $want"; }
all_bytes() { all_values "$1" <train.json | awk '{ sum += $1 } END { print sum }'; }

if ! train --local 3 --no-hand-on --no-fresh 2>err.txt; then
    grep -q "this build has no ZeroMQ" err.txt || fail "$(cat err.txt)"
    skip "this build has no ZeroMQ"
fi
want=$(content) plain=$(all_bytes sent_bytes)
for store in resident relay file rocksdb leveldb; do
    train --local 3 --store $store --no-fresh 2>err.txt || {
        grep -q "store \"$store\" is none of" err.txt || fail "$store: $(cat err.txt)"
        continue
    }
    same "$store"
    for kind in sent received; do
        [[ $(all_values ${kind}_bytes <train.json) = "$(all_values forecast_${kind}_bytes <train.json)" ]] ||
            fail "$kind $(all_values ${kind}_bytes <train.json | xargs), forecast $(all_values forecast_${kind}_bytes <train.json | xargs)"
    done
    (($(all_bytes sent_bytes) < plain)) || fail "$(all_bytes sent_bytes) bytes were sent, $plain without"
done
"$tools/drps-stat" model >out.txt
grep -q "handed on" out.txt || fail "$(cat out.txt)"
echo "ok the same model"

# Each rank from a command of its own.
ports 3 >peers.txt
pids=()
for rank in 1 2; do
    "$tools/drps-train" plan -o unused-$rank --optimizer sgd --epochs 3 --peers peers.txt --rank $rank --quiet &
    pids+=($!)
done
train --peers peers.txt --rank 0
wait "${pids[@]}"
same "by peers"

fails 2 "2 workers or more" "$tools/drps-index" ratings.tsv --algo lmf --hand-on all -o never
fails 2 "either" "$tools/drps-index" ratings.tsv --algo lmf --workers 2 --hand-on 9 --residuals 9 -o never
fails 2 "give both" "$tools/drps-index" ratings.tsv --algo lmf --workers 2 --hand-on-for sgd -o never
fails 2 "not one of: sgd" "$tools/drps-index" ratings.tsv --algo lmf --workers 2 --hand-on 9 --hand-on-for adamax -o never
fails 2 "drps-index --residuals" "$tools/drps-train" plan -o model --force --local 3 --optimizer sgd --push-values 8bit
"$tools/drps-train" plan -o model --force --local 3 --epochs 1 >out.txt 2>err.txt
grep -q "rows are not handed on" err.txt || fail "nothing is said with adagrad: $(cat err.txt)"
echo "ok what is refused"

# A run of many epochs: a rank is killed once there are checkpoints, and training goes on by itself; then another is stopped
# and resumed.
long=(--optimizer sgd --epochs 60 --checkpoint-every 3e --local 3)
"$tools/drps-train" plan -o want "${long[@]}" --no-hand-on --quiet --json >train.json
want=$(content)
reached() { # FOLDER CHECKPOINT PID
    until [[ -n $(find "$1.checkpoint/rank-0" -maxdepth 1 -name '[0-9]*' 2>/dev/null | awk -F/ -v n="$2" '$NF + 0 >= n') ]]; do
        kill -0 "$3" 2>/dev/null || fail "no checkpoint $2: $(cat err.txt)"
        pause
    done
}
children() { cat "/proc/$1"/task/*/children 2>/dev/null || true; }
"$tools/drps-train" plan -o got "${long[@]}" --on-failure resume --silence 1 --json >train.json 2>err.txt &
watcher=$!
reached got 2 $watcher
ranks=()
until ((${#ranks[@]} == 2)); do
    kill -0 $watcher 2>/dev/null || fail "it has ended: $(cat err.txt)"
    first=$(children $watcher)
    read -ra ranks <<<"$(children "${first% }")"
    pause
done
kill -KILL "${ranks[1]}"
wait $watcher || fail "with a rank lost: $(cat err.txt)"
grep -q "starting anew, from epoch" err.txt || fail "did not start anew: $(cat err.txt)"
same "a rank killed"
echo "ok a rank killed"

"$tools/drps-train" plan -o part "${long[@]}" --quiet --json >train.json 2>err.txt &
pid=$!
reached part 1 $pid
kill -TERM $pid
status=0
wait $pid || status=$?
[[ $status = 130 ]] || fail "stopped with $status: $(cat err.txt)"
"$tools/drps-train" plan -o part "${long[@]}" --resume --quiet --json >train.json
same "stopped and resumed"
[[ ! -e part.checkpoint ]] || fail "checkpoints were left behind"
echo "ok stopped and resumed"
