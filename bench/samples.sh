#!/usr/bin/env bash
# Samples dealt in turn against samples placed with the rows that they use (anywhere, or in their round): bytes that training sent, beside the plan's
# forecast, and held-out loss after some epochs. Every round has the same number of samples, whatever the number of workers.
#   bench/samples.sh [DATA]      DATA: default ../shared/data
# Threads of one process: times mean nothing here. Environment, besides lib.sh's: DRPS_BENCH_WORKERS (default "2 4 5 8")
. "$(dirname "$0")/lib.sh"
data=${1:-$root/../shared/data}

titles="set | workers | rows by, samples | MB sent, all | forecast | held-out RMSE or loss, by epoch"
run() { measure "$@" | tables samples 3 "$titles"; }
measure() { # NAME ROUND EPOCHS INDEX-OPTIONS...
    local name=$1 round=$2 epochs=$3 workers how
    shift 3
    for workers in ${DRPS_BENCH_WORKERS:-2 4 5 8}; do
        for how in "hash dealt" "range dealt" "auto dealt" "auto placed" "auto round"; do
            "$tools/drps-index" "$@" --workers "$workers" --batch-size $((round / workers)) --test-fraction 0.1 \
                --partition "${how% *}" --samples "${how#* }" -o "$work/plan" --force --quiet
            "$tools/drps-stat" --verify "$work/plan" >/dev/null
            "$tools/drps-train" "$work/plan" -o "$work/model" --force --local "$workers" --transport inproc --store resident \
                --epochs "$epochs" --quiet --json |
                jq -r --arg name "$name" --arg workers "$workers" --arg how "$how" '
                    def digits(n): . * pow(10; n) | round / pow(10; n);
                    "| \($name) | \($workers) | \($how) | \([.ranks[].sent_bytes] | add / 1e6 | digits(2)) | " +
                    "\([.ranks[].forecast_sent_bytes] | add / 1e6 | digits(2)) | " +
                    "\([.epochs[] | (.test_rmse // .test_loss) | digits(5)] | map(tostring) | join(", ")) |"'
        done
    done
}

echo "| $titles |"
echo "| --- | --- | --- | --- | --- | --- |"
"$tools/drps-gen" ctr --samples 400K --fields 20 --rows 500K --seed 1 -o "$work/ctr.svm" --force --quiet
run "CTR, LR" 2000 3 "$work/ctr.svm" --algo lor
run "CTR, FM" 2000 3 "$work/ctr.svm" --algo fm --factors 8
if [[ -d $data/ml-1m ]]; then
    xz -dc "$data/ml-1m/ratings.tsv.xz" >"$work/ratings.tsv"
    xz -dc "$data/criteo-sample/criteo.train.libsvm.xz" >"$work/criteo.svm"
    xz -dc "$data/ipinyou/train.fm.txt.xz" >"$work/ipinyou.svm"
    run "ml-1m, LMF" 2000 4 "$work/ratings.tsv" --algo lmf --factors 16
    run "criteo-sample, FM" 800 3 "$work/criteo.svm" --format libsvm --algo fm --factors 8
    run "ipinyou, LR" 800 3 "$work/ipinyou.svm" --format libsvm --algo lor
else
    echo "bench: no ml-1m in $data: CTR only" >&2
fi
