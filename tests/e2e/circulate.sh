#!/usr/bin/env bash
# Rows that circulate between processes: the model of one worker with the same lanes from every number of them, every store and
# machine by machine; bytes on the wire as the plan says; a rank that is killed, and a run that is stopped, go on.
. "$(dirname "$0")/lib.sh"

"$tools/drps-gen" matrix --users 900 --items 400 --ratings 30K --seed 3 -o ratings.tsv --quiet
for n in 1 2 4; do
    "$tools/drps-index" ratings.tsv --algo lmf --factors 8 --order grid --grid 1,2 --lanes 4 --workers $n --batch-size 50 \
        --test-fraction 0.1 --memory 64M -o plan-$n --quiet --json >index.json
    "$tools/drps-stat" plan-$n --verify >/dev/null || fail "plan-$n does not verify"
done
handed=$(value handed_rows <index.json) plain=$(value plain_rows <index.json)
[[ $handed = 2800 ]] || fail "4 workers hand $handed rows on, not 4 and 3 times 400"
((plain > 20 * handed)) || fail "rounds would move $plain rows"

# train PLAN OPTIONS...: its JSON is left in train.json
train() { "$tools/drps-train" "$1" -o model --force --epochs 4 "${@:2}" --quiet --json >train.json; }
content() { value content <train.json; }
same() { [[ $(content) = "$want" ]] || fail "$1: $(content), not $want"; }

train plan-1
want=$(content)
if ! train plan-2 --local 2 2>err.txt; then
    grep -q "this build has no ZeroMQ" err.txt || fail "$(cat err.txt)"
    skip "this build has no ZeroMQ"
fi
for n in 2 4; do
    for store in resident relay file rocksdb leveldb; do
        train plan-$n --local $n --store $store 2>err.txt || {
            grep -q "store \"$store\" is none of" err.txt || fail "$store: $(cat err.txt)"
            continue
        }
        same "$n workers, $store"
        for kind in sent received; do
            [[ $(all_values ${kind}_bytes <train.json) = "$(all_values forecast_${kind}_bytes <train.json)" ]] ||
                fail "$kind $(all_values ${kind}_bytes <train.json | xargs), forecast $(all_values forecast_${kind}_bytes <train.json | xargs)"
        done
    done
done
echo "ok the same model"

# Each rank from a command of its own.
ports 2 >peers.txt
"$tools/drps-train" plan-2 -o unused --epochs 4 --peers peers.txt --rank 1 --quiet &
other=$!
train plan-2 --peers peers.txt --rank 0
wait $other
same "by peers"

# Rows have names: training begins with those of a model of any plan, and others begin with these.
first_loss() { all_values train_loss <train.json | head -1; }
"$tools/drps-index" ratings.tsv --algo lmf --factors 8 --batch-size 50 --test-fraction 0.1 --memory 64M -o shuffled --quiet
train shuffled
anew=$(first_loss)
mv model old
train plan-2 --local 2 --from old
awk "BEGIN {exit !($(first_loss) < 0.95 * $anew)}" || fail "rows that circulate, of a model: loss $(first_loss), anew $anew"
rm -r old
mv model old
train shuffled --from old
awk "BEGIN {exit !($(first_loss) < 0.95 * $anew)}" || fail "of rows that circulated: loss $(first_loss), anew $anew"
rm -r old
echo "ok warm starts"

fails 2 "rows circulate" "$tools/drps-train" plan-2 -o model --force --local 2 --sync asp
fails 2 "between 16 at most" "$tools/drps-index" ratings.tsv --algo lmf --order grid --workers 17 -o never
echo "ok what is refused"

# A run of many epochs: a rank is killed once there are checkpoints, and training goes on by itself; then another is stopped
# and resumed.
long=(--epochs 200 --checkpoint-every 3e)
"$tools/drps-train" plan-1 -o want "${long[@]}" --quiet --json >train.json
want=$(content)
reached() { # FOLDER CHECKPOINT PID
    until [[ -n $(find "$1.checkpoint/rank-0" -maxdepth 1 -name '[0-9]*' 2>/dev/null | awk -F/ -v n="$2" '$NF + 0 >= n') ]]; do
        kill -0 "$3" 2>/dev/null || fail "no checkpoint $2: $(cat err.txt)"
        pause
    done
}
children() { cat "/proc/$1"/task/*/children 2>/dev/null || true; }
"$tools/drps-train" plan-4 -o got "${long[@]}" --local 4 --on-failure resume --silence 1 --json >train.json 2>err.txt &
watcher=$!
reached got 2 $watcher
ranks=()
until ((${#ranks[@]} == 3)); do
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

"$tools/drps-train" plan-2 -o part "${long[@]}" --local 2 --quiet --json >train.json 2>err.txt &
pid=$!
reached part 1 $pid
kill -TERM $pid
status=0
wait $pid || status=$?
[[ $status = 130 ]] || fail "stopped with $status: $(cat err.txt)"
"$tools/drps-train" plan-2 -o part "${long[@]}" --local 2 --resume --quiet --json >train.json
same "stopped and resumed"
[[ ! -e part.checkpoint ]] || fail "checkpoints were left behind"
echo "ok stopped and resumed"
