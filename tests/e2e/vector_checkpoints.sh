#!/usr/bin/env bash
# Ranks that exchange vectors and log them, and one process that logs its own: whatever is killed with -9, and when, the run ends with
# the bits of one that nobody disturbed; drps-stat says which rounds are covered, and the run goes on after any of them.
. "$(dirname "$0")/lib.sh"

# reached N: waits until a run, whose process is $run, has logged N kilobytes
reached() {
    until (($(cat model.checkpoint/rank-0/*/vectors.log 2>/dev/null | wc -c) >= $1 * 1000)); do
        kill -0 "$run" 2>/dev/null || fail "the run ended before it had logged $1 kB: $(cat err.txt)"
        pause
    done
}
same() {
    [[ $(value content <train.json) = "$want" ]] || fail "$1: $(value content <train.json), not $want"
    [[ $(all_values train_loss <train.json | xargs) = "$losses" ]] || fail "$1: the losses of epochs are others"
}
five_classes

# One process, with any number of threads.
for way in "mlr 1" "svm 3"; do
    read -r algo threads <<<"$way"
    "$tools/drps-index" train.svm --test test.svm --algo "$algo" --batch-size 20 -o one --quiet --force
    options=(--epochs 20 --threads "$threads" --quiet --json)
    logged=("${options[@]}" --checkpoint-vectors --checkpoint-every 1b)
    "$tools/drps-train" one -o undisturbed --force "${options[@]}" >train.json
    want=$(value content <train.json)
    losses=$(all_values train_loss <train.json | xargs)
    rm -rf model
    within=0
    for at in 300 2100 9500; do
        "$tools/drps-train" one -o model "${logged[@]}" --resume >train.json 2>err.txt &
        run=$!
        reached $at
        kill -9 $run
        wait $run 2>/dev/null || true
        "$tools/drps-stat" model.checkpoint --json >stat.json || fail "after $at kB: nothing is covered"
        (($(value last_round <stat.json) % 105)) && within=1
    done
    "$tools/drps-train" one -o model "${logged[@]}" --resume --keep-checkpoints >train.json 2>err.txt
    same "$algo was killed"
    ((within)) || fail "$algo was never killed within an epoch"
    "$tools/drps-stat" model.checkpoint --verify >/dev/null || fail "the checkpoints of $algo do not verify"
    "$tools/drps-stat" model.checkpoint --json >stat.json
    (($(value last_round <stat.json) == 2100)) || fail "$algo: rounds to $(value last_round <stat.json) are covered"
    for round in "$(value first_round <stat.json)" 2099; do
        cp -r model.checkpoint again.checkpoint
        "$tools/drps-train" one -o again "${options[@]}" --resume-round "$round" >train.json
        same "$algo after round $round"
        rm -rf again
    done
    rm -rf model model.checkpoint
done
fails 2 "store relay cannot be, take resident" "$tools/drps-train" one -o never --checkpoint-vectors --store relay
absent never
echo "ok one process"

"$tools/drps-index" train.svm --test test.svm --algo mlr --workers 3 --batch-size 40 -o plan --quiet

# undisturbed OPTIONS...: what a run without checkpoints comes to; `logged` are the options of one with them
undisturbed() {
    options=(--local 3 --epochs 60 --exchange vectors --sv-count 30 "$@" --quiet --json)
    logged=("${options[@]}" --checkpoint-vectors --checkpoint-every 1b)
    "$tools/drps-train" plan -o undisturbed --force "${options[@]}" >train.json 2>err.txt || return 1
    want=$(value content <train.json)
    losses=$(all_values train_loss <train.json | xargs)
}
if ! undisturbed; then
    grep -q "this build has no ZeroMQ" err.txt || fail "$(cat err.txt)"
    skip "this build has no ZeroMQ"
fi

# One rank is killed, several times; the others and a new one go on.
"$tools/drps-train" plan -o model "${logged[@]}" --on-failure resume >train.json 2>err.txt &
run=$!
for at in 700 2600 6000; do
    reached $at
    # The watching process has an attempt, the attempt a process a rank.
    attempt=$(pgrep -P $run | head -1)
    rank=$(pgrep -P "${attempt:-0}" | sed -n "$((at / 100 % 3 + 1))p") || true
    [[ -z $rank ]] || kill -9 "$rank" 2>/dev/null || true
done
wait $run || fail "a rank was killed: $(cat err.txt)"
grep -q "starting anew, from epoch" err.txt || fail "no rank was killed: $(cat err.txt)"
same "ranks were killed"
[[ $(value resumed_step <train.json) != 0 || $(value resumed_epoch <train.json) -gt 1 ]] || fail "it went on from nothing"
absent model.checkpoint
echo "ok ranks killed"

# All are killed, and start again.
undisturbed --sv-rule random
rm -rf model
within=0
for at in 300 2100 5500; do
    "$tools/drps-train" plan -o model "${logged[@]}" --resume --transport inproc >train.json 2>err.txt &
    run=$!
    reached $at
    kill -9 $run
    wait $run 2>/dev/null || true
    "$tools/drps-stat" model.checkpoint --json >stat.json || fail "after $at kB: nothing is covered"
    (($(value last_round <stat.json) % 18)) && within=1
done
"$tools/drps-train" plan -o model "${logged[@]}" --resume >train.json 2>err.txt
same "all were killed"
((within)) || fail "no run was killed within an epoch"
echo "ok all killed"

# Any covered round, and those that are not.
"$tools/drps-train" plan -o model --force "${logged[@]}" --keep-checkpoints >train.json
same "nobody was killed"
(($(all_values rounds <train.json) == 60 * 18)) || fail "$(all_values rounds <train.json) rounds were logged"
"$tools/drps-stat" model.checkpoint >out.txt
grep -q "covered  drps-train --resume goes on after round 1080" out.txt || fail "$(cat out.txt)"
"$tools/drps-stat" model.checkpoint --verify >/dev/null || fail "the checkpoints do not verify"
"$tools/drps-stat" model.checkpoint --json >stat.json
first=$(value first_round <stat.json)
cp -r model.checkpoint kept
for round in "$first" $((first + 1)) 1079; do
    rm -rf model model.checkpoint
    cp -r kept model.checkpoint
    "$tools/drps-train" plan -o model "${logged[@]}" --resume-round "$round" >train.json
    same "after round $round"
done
rm -rf model model.checkpoint
cp -r kept model.checkpoint
fails 1 "round 1081 is not covered by model.checkpoint: rounds $first to 1080 are" \
    "$tools/drps-train" plan -o model "${logged[@]}" --resume-round 1081
absent model
fails 2 "of ranks that exchange vectors" "$tools/drps-train" plan -o never --local 3 --checkpoint-vectors
fails 2 "there are to be none" "$tools/drps-train" plan -o never --local 3 --exchange vectors --checkpoint-vectors --checkpoint-every never
absent never
echo "ok rounds"
