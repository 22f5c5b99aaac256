#!/usr/bin/env bash
# On a terminal, training, writing the model, prediction and checking say how far they are, how long it still takes, and how fast they are.
. "$(dirname "$0")/lib.sh"

command -v script >/dev/null || skip "script, which makes a terminal, is not installed"
"$tools/drps-gen" matrix --users 300K --items 1K --ratings 600K --seed 3 -o data.tsv --quiet
"$tools/drps-index" data.tsv --algo lmf --factors 128 --test-fraction 0.1 -o plan --quiet # large enough to be written for some tenths of a second
# terminal COMMAND...: what it shows, a line each time
terminal() { script -qec "stty cols 120; $*" /dev/null </dev/null | tr '\r' '\n'; }

terminal "$tools/drps-train" plan -o model --epochs 3 --memory 1G >train.txt || fail "$(cat train.txt)"
grep -qE 'epoch 1 of 3, loss [0-9.]+: [0-9]+ % of [0-9,]+ samples, [0-9.]+ (s|min) left, [0-9.]+ (s|min) of all, [0-9,]+/s' train.txt || fail "training shows: $(cat train.txt)"
grep -qE '(writing the parameters|making the model): [0-9]+ % of [0-9.]+ MiB, .* left, [0-9.]+ [KMG]iB/s' train.txt || fail "no progress of writing: $(cat train.txt)"
"$tools/drps-index" --from-plan plan --workers 1 --servers 1 --separate -o apart --quiet # rank 0 trains nothing
terminal "$tools/drps-train" apart -o other --epochs 2 --local 2 --transport inproc --memory 1G >train.txt || fail "$(cat train.txt)"
grep -qE 'epoch 1 of 2, training: [0-9]+ % of [0-9,]+ samples' train.txt || fail "training without samples shows: $(cat train.txt)"
terminal "$tools/drps-predict" model data.tsv -o scores.txt >predict.txt || fail "$(cat predict.txt)"
grep -qE 'scoring: [0-9]+ % of [0-9.]+ MiB, .* left, [0-9.]+ [KMG]iB/s' predict.txt || fail "prediction shows: $(cat predict.txt)"
terminal "cat data.tsv | $tools/drps-predict model - -o scores.txt --force" >pipe.txt || fail "$(cat pipe.txt)"
grep -qE 'scoring: [0-9,]+ samples in [0-9]+ s, [0-9,]+/s' pipe.txt || fail "prediction of a pipe shows: $(cat pipe.txt)"
for what in plan model; do
    terminal "$tools/drps-stat" $what --verify >verify.txt || fail "$(cat verify.txt)"
    grep -qE 'checking: [0-9]+ % of [0-9.]+ MiB, .* left, [0-9.]+ [KMG]iB/s' verify.txt || fail "checking a $what shows: $(cat verify.txt)"
done
echo "ok"
