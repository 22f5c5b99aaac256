#!/usr/bin/env bash
# Workers that have as many entries of a round, or a share of them: plans are whole and say how far off they are, train to the
# model of dealt samples but for rounding, and to the same from every store; what cannot be is refused.
. "$(dirname "$0")/lib.sh"

"$tools/drps-gen" classification --samples 1950 --nnz 20 --rows 3K --seed 3 -o text.svm --quiet
index() { "$tools/drps-index" text.svm --format libsvm --algo lor --workers 3 --batch-size 50 --partition counts "$@" -o plan --force \
    --quiet --json >index.json; }

index --balance 1.03
"$tools/drps-stat" plan --verify >/dev/null || fail "the plan does not verify"
awk -v now="$(value largest_of_round <index.json)" -v before="$(value largest_before <index.json)" 'BEGIN { exit !(now <= 1.03 && now < before) }' ||
    fail "$(cat index.json)"
index --balance 1.03 --machine-weights 1,2,0.5
"$tools/drps-stat" plan --verify >/dev/null || fail "the plan of weights does not verify"
awk -v now="$(value largest_of_round <index.json)" 'BEGIN { exit !(now <= 1.03) }' || fail "$(cat index.json)"
echo "ok plans"

fails 2 "one for each" "$tools/drps-index" text.svm --algo lor --workers 3 --machine-weights 1,2 -o never
fails 2 "not for the partition auto" "$tools/drps-index" text.svm --algo lor --workers 2 --machine-weights 1,2 --partition auto -o never
fails 2 "out of range" "$tools/drps-index" text.svm --algo lor --workers 2 --machine-weights 1,0 -o never
fails 2 "have samples dealt" "$tools/drps-index" text.svm --algo lor --workers 2 --samples placed --balance 1.03 -o never
fails 2 "2 workers or more" "$tools/drps-index" text.svm --algo lor --balance 1.03 -o never
fails 2 "from 1 to 1000" "$tools/drps-index" text.svm --algo lor --workers 2 --balance 0.97 -o never
echo "ok what is refused"

train() { "$tools/drps-train" plan -o model --force --epochs 2 --local 3 "$@" --quiet --json >train.json 2>err.txt; }
if ! train; then
    grep -q "this build has no ZeroMQ" err.txt || fail "$(cat err.txt)"
    skip "this build has no ZeroMQ"
fi
want=$(value content <train.json) loss=$(all_values train_loss <train.json | tail -1)
for store in relay file; do
    train --store $store || fail "$store: $(cat err.txt)"
    [[ $(value content <train.json) = "$want" ]] || fail "$store: another model"
done
index --samples dealt
train
awk -v a="$loss" -v b="$(all_values train_loss <train.json | tail -1)" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < (1e-5 * b) ^ 2) }' || fail "loss $loss; dealt $(all_values train_loss <train.json | xargs)"
echo "ok the same model"
