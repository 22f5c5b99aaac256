#!/usr/bin/env bash
# Held-out loss on real data stays where it was measured against exact solvers (bench/RESULTS.md).
. "$(dirname "$0")/lib.sh"
data=$source/../shared/data
[[ -d $data ]] || skip "no data sets in $data"

better() { # NAME VALUE LIMIT
    awk "BEGIN {exit !($2 <= $3)}" || fail "$1: $2 is worse than $3"
    echo "ok $1: $2 <= $3"
}
best() { all_values "$1" | sort -n | awk 'NR == 1'; }
quiet="--quiet --json"

xz -dc "$data/a9a/a9a.xz" >a9a
xz -dc "$data/a9a/a9a.t.xz" >a9a.t
"$tools/drps-index" a9a --test a9a.t --algo lor -o plan $quiet >/dev/null
"$tools/drps-train" plan -o model --epochs 20 --lr 0.03 $quiet >train.json
better "a9a, logistic loss" "$(best test_loss <train.json)" 0.32698 # LIBLINEAR 0.32374 + 1 %
"$tools/drps-index" a9a --test a9a.t --algo svm -o plan --force $quiet >/dev/null
"$tools/drps-train" plan -o model --force --epochs 30 --lr 0.02 $quiet >train.json
better "a9a, hinge loss" "$(best test_loss <train.json)" 0.35572 # LIBLINEAR 0.35220 + 1 %
"$tools/drps-index" "$data/ml-1m/ratings.tsv.xz" --algo lmf --factors 16 --test-fraction 0.1 --batch-size 1000 -o plan --force $quiet >/dev/null
"$tools/drps-train" plan -o model --force --epochs 30 --lr 0.05 --l2 0.05 $quiet >train.json
better "ml-1m, RMSE of rank 16" "$(best test_rmse <train.json)" 0.8535
