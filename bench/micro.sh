#!/usr/bin/env bash
# Micro order against shuffled: the least held-out loss of equal epochs (ratings: RMSE), by seed, and what the relay store
# would read in an epoch with a part of the rows in memory, by the forecast.
#   bench/micro.sh [DATA [SAMPLES]]     DATA: folder of data sets (default ../shared/data); SAMPLES of generated clicks (4M),
#                                       of which the losses take a quarter
. "$(dirname "$0")/lib.sh"
data=${1:-$root/../shared/data}
samples=$(numfmt --from=si "${2:-4M}")
[[ -d $data/ml-1m ]] || { echo "bench: no ml-1m in $data" >&2; exit 77; }
clicks() { # SAMPLES FILE
    "$tools/drps-gen" ctr --samples "$1" --rows $(($1 * 5 / 2)) --seed 1 -o "$2" --force --quiet
}
clicks $((samples / 4)) "$work/few.svm"
clicks "$samples" "$work/many.svm"

# least ORDER SEED EPOCHS "INDEX OPTIONS" "TRAIN OPTIONS": the best epoch
least() {
    # shellcheck disable=SC2086 # words
    "$tools/drps-index" $4 --order "$1" --seed "$2" -o "$work/plan" --force --quiet --no-forecast
    # shellcheck disable=SC2086
    "$tools/drps-train" "$work/plan" -o "$work/model" --force --quiet --json --threads 1 --seed "$2" --epochs "$3" $5 \
        >"$work/train.json" 2>"$work/said" || { cat "$work/said" >&2; exit 1; } # it says that losses grow, which is so
    jq '[.epochs[] | .test_rmse // .test_loss] | min' "$work/train.json"
}
row() { # SET EPOCHS "INDEX OPTIONS" "TRAIN OPTIONS"
    local seed order loss
    printf '| %s | %s |' "$1" "$2"
    for seed in 1 2; do
        for order in shuffled micro; do
            loss=$(least $order $seed "$2" "$3" "$4")
            printf ' %.5f |' "$loss"
        done
    done
    echo
}
echo "| set | epochs | shuffled, seed 1 | micro | shuffled, seed 2 | micro |"
echo "| --- | --- | --- | --- | --- | --- |"
both() { echo "$data/$1.xz --test $data/$2.xz"; }
row "generated clicks, lor" 3 "$work/few.svm --algo lor --batch-size 1000 --test-fraction 0.02" ""
row "generated clicks, fm" 3 "$work/few.svm --algo fm --factors 8 --batch-size 1000 --test-fraction 0.02" ""
row "a9a, lor" 5 "$(both a9a/a9a a9a/a9a.t) --algo lor" ""
row "criteo-sample, lor" 3 "$(both criteo-sample/criteo.train.libsvm criteo-sample/criteo.test.libsvm) --algo lor" ""
row "criteo-sample, fm" 3 "$(both criteo-sample/criteo.train.libsvm criteo-sample/criteo.test.libsvm) --algo fm --factors 8" ""
row "ipinyou, lor" 8 "$(both ipinyou/train.fm.txt ipinyou/test.fm.txt) --algo lor" ""
row "frappe, lor" 12 "$(both frappe/frappe.validation.libfm frappe/frappe.test.libfm) --algo lor" "--lr 0.3"
row "frappe, fm" 12 "$(both frappe/frappe.validation.libfm frappe/frappe.test.libfm) --algo fm --factors 8" "--lr 0.1"
row "ml-1m, lmf" 12 "$data/ml-1m/ratings.tsv.xz --algo lmf --factors 16 --batch-size 1000 --test-fraction 0.1" "--lr 0.1 --l2 0.05"

echo
echo "MB that the relay store reads in an epoch, $samples generated clicks, fm of 8 factors, batches of 1000"
echo "| part of the rows in memory | shuffled | micro |"
echo "| --- | --- | --- |"
for order in shuffled micro; do
    "$tools/drps-index" "$work/many.svm" --algo fm --factors 8 --batch-size 1000 --test-fraction 0.02 --memory 4G --order $order \
        -o "$work/plan" --force --quiet --json |
        jq -r '[.forecast[] | select(.store == "relay" and .feasible)] | .[0].memory_bytes as $all | .[1:][] |
            "1/\($all / .memory_bytes | round)\t\(.read_bytes / 1e6 | round)"' >"$work/$order"
done
join -t $'\t' "$work/shuffled" "$work/micro" --nocheck-order | sed 's/^/| /; s/\t/ | /g; s/$/ |/'
