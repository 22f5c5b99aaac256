#!/usr/bin/env bash
# Training on newer data from a model, and with other machines from checkpoints: what is printed, what is refused, what
# stays, and that a model larger than --memory can be begun with.
. "$(dirname "$0")/lib.sh"
mib=$((1024 * 1024))

# ---- Newer data ----

"$tools/drps-gen" ctr --samples 30K --fields 8 --rows 20K --seed 3 -o old.svm --quiet
"$tools/drps-gen" ctr --samples 34K --fields 8 --rows 20K --seed 3 -o all.svm --quiet
tail -4000 all.svm >new.svm
"$tools/drps-index" old.svm --algo fm --factors 4 -o old-plan --quiet
"$tools/drps-index" new.svm --algo fm --factors 4 -o new-plan --quiet
"$tools/drps-train" old-plan -o old --epochs 3 --quiet --keep-checkpoints
"$tools/drps-train" new-plan -o fresh --quiet --json >fresh.json
"$tools/drps-train" new-plan --from old -o new --json >new.json 2>new.txt
grep -qE "^drps-train: rows from old: [0-9],[0-9]{3} of [0-9],[0-9]{3}, with the optimizer's state; the others are new\$" new.txt || fail "no line: $(cat new.txt)"
"$tools/drps-train" new-plan --from old --no-state -o none --json 2>none.txt >none.json
grep -qE '^drps-train: rows from old: [0-9],[0-9]{3} of [0-9],[0-9]{3}; the others are new$' none.txt || fail "no line: $(cat none.txt)"
# Of the earlier rows those that were found are taken, and the others are left out.
left=$("$tools/drps-stat" old --json | value rows)
left=$((left - $(sed -n 's/^drps-train: rows from old: \([0-9,]*\) of .*/\1/p' none.txt | tr -d ,)))
[[ $(sed -n 's/^drps-train: \([0-9,]*\) rows of old are left out.*/\1/p' none.txt | tr -d ,) = "$left" && $(all_values left_out <none.json) = "$left" ]] ||
    fail "$left rows are left out: $(cat none.txt)"
loss() { all_values train_loss <"$1" | head -1; }
awk "BEGIN {exit !($(loss new.json) < $(loss fresh.json) - 0.02)}" ||
    fail "the first epoch from a model has loss $(loss new.json), a fresh one $(loss fresh.json)"
[[ $(all_values all <new.json) = "$(value rows <new.json)" ]] || fail "of $(all_values all <new.json) rows: $(cat new.json)"
content() { "$tools/drps-stat" "$1" --json | value content; }
with_state=$(content new)
"$tools/drps-train" new-plan --from old.checkpoint -o new --force 2>new.txt >new.out
[[ $(content new) = "$with_state" ]] || fail "old.checkpoint is not what old stands for"
grep -q "with the optimizer's state; the others are new" new.txt || fail "no state: $(cat new.txt)"
grep -qE "^  from +[0-9],[0-9]{3} of [0-9],[0-9]{3} rows of an earlier run, with the optimizer's state" new.out || fail "$(cat new.out)"
[[ -d old.checkpoint/rank-0/1 ]] || fail "what was begun with is gone"
echo "newer data ok: loss $(loss new.json), fresh $(loss fresh.json)"

# ---- A run that has ended ----

fails 1 "old exists already, with the checkpoints that its run has kept in old.checkpoint.*\(--force\)" "$tools/drps-train" old-plan -o old
fails 2 "no way back" "$tools/drps-train" old-plan -o old --epochs 2 --resume
ended=$(content old)
"$tools/drps-train" old-plan -o old --resume --keep-checkpoints >/dev/null 2>ended.txt
grep -q "the run has ended: checkpoint 1 is of its last epoch, 3" ended.txt || fail "$(cat ended.txt)"
[[ $(content old) = "$ended" ]] || fail "the model has changed"
"$tools/drps-train" new-plan -o short --epochs 2 --quiet
ended=$(content short)
fails 2 "short was trained for 2 epochs, and no checkpoint is in short.checkpoint.*\(--from, --keep-checkpoints\)" \
    "$tools/drps-train" new-plan -o short --epochs 4 --resume
for e in 1 2; do "$tools/drps-train" new-plan -o short --epochs $e --resume --quiet; done
[[ $(content short) = "$ended" ]] || fail "the model has changed"
fails 2 "no-state goes with --from" "$tools/drps-train" new-plan -o never --no-state

"$tools/drps-index" new.svm --algo fm --factors 4 --test-fraction 0.1 -o judged-plan --quiet
"$tools/drps-train" judged-plan -o judged --epochs 30 --patience 1 --lr 0.5 --keep-checkpoints --quiet --json >judged.json 2>judged.txt
best=$(all_values best_epoch <judged.json)
grep -q "the model is that of epoch $best, and judged.checkpoint has the optimizer's state of epoch $((best + 1))" judged.txt || fail "$(cat judged.txt)"
"$tools/drps-train" new-plan --from judged -o more-judged --quiet 2>judged.txt
grep -q "warning: judged begins without the optimizer's state in judged.checkpoint: its parameters are those of another epoch" judged.txt || fail "$(cat judged.txt)"

mkdir -p full/rank-0/1.partial && touch full/rank-0/1.partial/notes
"$tools/drps-train" new-plan -o counted --epochs 4 --checkpoint-every 1e --checkpoint-dir full --quiet 2>counted.txt
[[ $(grep -c "no checkpoint was written" counted.txt) = 1 ]] || fail "not told of once: $(cat counted.txt)"
grep -q "3 checkpoints could not be written in full (--checkpoint-dir)" counted.txt || fail "not counted: $(cat counted.txt)"
echo "runs that have ended ok"

# ---- Refusals ----

"$tools/drps-index" new.svm --algo fm --factors 8 -o eight --quiet
"$tools/drps-index" new.svm --algo lor -o lor --quiet
fails 2 "old has 4 factors a row, the plan 8.*\(--from\)" "$tools/drps-train" eight --from old -o never
fails 2 "old is of algorithm fm, the plan of lor.*\(--from\)" "$tools/drps-train" lor --from old -o never
fails 2 "old-plan is neither a model" "$tools/drps-train" new-plan --from old-plan -o never
fails 2 "give no other options" "$tools/drps-index" --from-plan old-plan --algo lor --workers 2 -o never
fails 2 "give no other options" "$tools/drps-index" new.svm --from-plan old-plan --workers 2 -o never
absent never
cp -r old damaged && sst=$(find damaged/rows -name '*.sst' -o -name '*.ldb' | head -1) && size=$(stat -c %s "$sst")
printf '\xff\x00\xff' | dd of="$sst" bs=1 seek=$((size / 3)) conv=notrunc status=none
fails 1 "damaged" "$tools/drps-train" new-plan --from damaged -o never
absent never
echo "refusals ok"

# ---- Other machines ----

"$tools/drps-index" old.svm --algo fm --factors 4 --workers 3 -o three --quiet
"$tools/drps-train" three -o cluster --local 3 --epochs 4 --quiet --json >whole.json
rm -r cluster
"$tools/drps-train" three -o cluster --local 3 --epochs 2 --quiet --keep-checkpoints
rm -r cluster
fails 2 "checkpoints of a run that has not ended" "$tools/drps-train" three -o cluster --local 3
for n in 2 1 5; do
    "$tools/drps-index" --from-plan three --workers $n -o dealt-$n --quiet
    "$tools/drps-stat" dealt-$n --verify >/dev/null || fail "dealt-$n does not verify"
    "$tools/drps-train" dealt-$n --from cluster.checkpoint -o cluster-$n --local $n --epochs 2 --quiet --json >$n.json
    for e in 1 2; do
        want=$(all_values train_loss <whole.json | sed -n $((e + 2))p) got=$(all_values train_loss <$n.json | sed -n ${e}p)
        awk "BEGIN {d = $got - $want; exit !(d < 0.01 && d > -0.01)}" || fail "$n ranks: epoch $e has loss $got, undisturbed $want"
    done
done
fails 2 "is of plan .*\(--from\)" "$tools/drps-train" dealt-2 -o cluster --local 2 --resume
"$tools/drps-train" dealt-2 --from cluster.checkpoint -o cluster --local 2 --quiet
absent cluster.checkpoint
echo "other machines ok"

# Ranks that begin with different rows all refuse.
ports 2 >peers.txt
"$tools/drps-train" dealt-2 --from cluster-2 -o never --peers peers.txt --rank 1 --timeout 60 --quiet 2>one.txt &
fails 2 "not all ranks begin with the same rows" "$tools/drps-train" dealt-2 --from cluster-1 -o never --peers peers.txt --rank 0 --timeout 60 --quiet
status=0
wait $! || status=$?
[[ $status != 0 ]] || fail "rank 1 trained alone"
absent never
echo "ranks that differ ok"

# ---- Memory ----

"$tools/drps-gen" ctr --samples 200K --fields 30 --rows 4M --zipf 0.4 --seed 5 -o large.svm --quiet
"$tools/drps-index" large.svm --algo fm --factors 16 --batch-size 200 --memory 64M -o large --quiet
"$tools/drps-train" large -o large-model --store relay --memory 96M --quiet --keep-checkpoints --json >large.json
[[ $(($(value rows <large.json) * 136)) -gt $((96 * mib)) ]] || fail "$(value rows <large.json) rows fit the memory: nothing is tested"
for from in large-model large-model.checkpoint; do
    in_cgroup $((96 * mib * 11 / 10)) "$tools/drps-train" large --from $from -o more --force --store relay --memory 96M --quiet --json \
        >more.json || fail "drps-train --from $from --memory 96M was ended by its limit"
    [[ $(all_values all <more.json) = "$(all_values rows <more.json | sed -n 1p)" ]] || fail "not all rows were found"
    echo "$from ok: peak $(($(value peak_rss_bytes <more.json) / mib)) MiB of 96"
done
