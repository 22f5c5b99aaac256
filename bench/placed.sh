#!/usr/bin/env bash
# What drps-index --partition makes of plans for five workers, as their forecasts say: rows between machines in an epoch,
# how even the machines are, and the I/Os of the block store with half of the rows in memory.
#   bench/placed.sh [DATA]      DATA: default ../shared/data
. "$(dirname "$0")/lib.sh"
data=${1:-$root/../shared/data}

titles="set | rows by, samples | MB pulled, all | MB pulled and served, most of a machine | row uses: max/avg | rows: max/avg | block uses | I/Os | s (batch and block phases)"
run() { forecast "$@" | tables placed 2 "$titles"; }
forecast() { # NAME INDEX-OPTIONS...
    local name=$1 how
    shift
    for how in "range dealt" "hash dealt" "greedy dealt" "dppa dealt" "auto dealt" "greedy placed" "dppa placed" "auto placed"; do
        "$tools/drps-index" "$@" --workers 5 --partition "${how% *}" --samples "${how#* }" -o "$work/plan" --force --quiet --json |
            jq -r --arg name "$name" --arg partition "$how" '
                def digits(n): . * pow(10; n) | round / pow(10; n);
                def uneven: max / (add / length) | digits(2);
                "| \($name) | \($partition) | \([.ranks[].pulled_bytes] | add / 1e6 | digits(2)) | " +
                "\([.ranks[] | .pulled_bytes + .served_bytes] | max / 1e6 | digits(2)) | " +
                "\([.ranks[].row_uses] | uneven) | \([.ranks[].rows] | uneven) | \(.block_uses) | " +
                "\([.forecast[] | select(.store == "pib")][1] | if .feasible then .ios else "-" end) | \(.phase_seconds | .order + .batch + .block + .split | digits(2)) |"'
    done
}

echo "| $titles |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
"$tools/drps-gen" ctr --samples 400K --fields 20 --rows 500K --seed 1 -o "$work/ctr.svm" --force --quiet
run CTR "$work/ctr.svm" --algo lor --batch-size 2000
if [[ -d $data/ml-1m ]]; then
    xz -dc "$data/ml-1m/ratings.tsv.xz" >"$work/ratings.tsv"
    run ml-1m "$work/ratings.tsv" --algo lmf --factors 16 --batch-size 2000
else
    echo "bench: no ml-1m in $data: CTR only" >&2
fi
