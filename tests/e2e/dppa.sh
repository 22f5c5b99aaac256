#!/usr/bin/env bash
# The partition paper's algorithms from the command line: plans are whole and train to the same model from every store; what they
# move is told; what was done with beta is said; what cannot be is refused.
. "$(dirname "$0")/lib.sh"

"$tools/drps-gen" ctr --samples 1500 --rows 3K --seed 3 -o clicks.svm --quiet
# index LIST OPTIONS...: its JSON is left in index.json
index() { "$tools/drps-index" clicks.svm --format libsvm --algo lor --workers 3 --batch-size 50 --test-fraction 0.1 --samples dppa \
    --partition dppa --dppa "$@" -o plan --force --quiet --json >index.json 2>err.txt; }

for list in alpha=1 alpha=auto,sample=12,traffic=sets bins=256,sample=n/k first=rows,traffic=batches; do
    index "$list" || fail "$list: $(cat err.txt)"
    "$tools/drps-stat" plan --verify >/dev/null || fail "$list: the plan does not verify"
    (($(value busiest_set_rows <index.json) > 0)) || fail "$list: $(cat index.json)"
done
index sample=8,beta=2
grep -q "samples were taken although beta does not pay for them" err.txt || fail "nothing is said of beta: $(cat err.txt)"
cp -r plan first
index sample=8,beta=2
cmp first/rank-2/rows.rec plan/rank-2/rows.rec || fail "the same options make another plan"
echo "ok plans"

fails 2 "say samples dppa" "$tools/drps-index" clicks.svm --algo lor --workers 2 --dppa alpha=2 -o never
fails 2 "is not one of alpha" "$tools/drps-index" clicks.svm --algo lor --workers 2 --samples dppa --dppa size=2 -o never
fails 2 "from 1 to 16" "$tools/drps-index" clicks.svm --algo lor --workers 2 --samples dppa --dppa alpha=17 -o never
fails 2 "samples, rows" "$tools/drps-index" clicks.svm --algo lor --workers 2 --samples dppa --dppa first=both -o never
echo "ok what is refused"

train() { "$tools/drps-train" plan -o model --force --epochs 2 --local 3 "$@" --quiet --json >train.json 2>err.txt; }
if ! train; then
    grep -q "this build has no ZeroMQ" err.txt || fail "$(cat err.txt)"
    skip "this build has no ZeroMQ"
fi
want=$(value content <train.json)
for store in relay file; do
    train --store $store || fail "$store: $(cat err.txt)"
    [[ $(value content <train.json) = "$want" ]] || fail "$store: another model"
done
echo "ok the same model"
