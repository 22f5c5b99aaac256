#!/usr/bin/env bash
# How good recommendations of bpr, warp and wmf are on MovieLens 1M: a fifth of each user's ratings, rounded down, is held out at
# random (seed 1), and every rating is a choice. Of each setting precision, recall, NDCG and MAP at 10 among all items that the user
# has not rated in training, by drps-recommend --test.
#   bench/implicit.sh [-s FOLDER] [DATA]   DATA: folder with ml-1m (default ../shared/data)
#                                          -s: leave train.tsv and test.tsv there, for other programs
# Settings are lines of "options of drps-index | options of drps-train" in DRPS_BENCH_SETTINGS, or the ones below.
. "$(dirname "$0")/lib.sh"
keep=
while getopts s: option; do
    case $option in
    s) keep=$OPTARG ;;
    *) echo "usage: bench/implicit.sh [-s FOLDER] [DATA]" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
data=${1:-$root/../shared/data}
[[ -d $data/ml-1m ]] || { echo "bench: no ml-1m in $data" >&2; exit 77; }
cd "$work"

# Numbers of a congruential generator (69069, 1, 2^32) shuffle each user's lines, whatever awk there is.
xz -dc "$data/ml-1m/ratings.tsv.xz" |
    awk 'BEGIN { x = 1 } { x = (x * 69069 + 1) % 4294967296; printf "%s\t%010d\t%s\t%s\n", $1, x, $2, $3 }' |
    LC_ALL=C sort -k1,1n -k2,2n | awk '{ print $1 "\t" $3 "\t" $4 }' >shuffled.tsv
awk 'NR == FNR { n[$1]++; next } { print >(++k[$1] <= int(n[$1] / 5) ? "test.tsv" : "train.tsv") }' shuffled.tsv shuffled.tsv
if [[ $keep ]]; then mkdir -p "$keep" && cp train.tsv test.tsv "$keep"; fi

settings=${DRPS_BENCH_SETTINGS:-'
--algo wmf --factors 64 --alpha 0.3 --negatives-per 100 --negative-weight 20|--epochs 12 --lr 0.2 --l2 0.004 --lr-decay cosine
--algo wmf --factors 32 --alpha 0.25|--epochs 12 --lr 0.2 --l2 0.003 --lr-decay cosine
--algo bpr --factors 64|--epochs 40 --l2 0.025
--algo warp --factors 32|--epochs 12 --l2 0.2
'}

{
    echo "| settings of drps-index | of drps-train | precision@10 | recall@10 | NDCG@10 | MAP@10 | AUC of 100 drawn | s |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
    while IFS='|' read -r index train; do
        [[ ${index// /} ]] || continue
        # shellcheck disable=SC2086 # several options
        "$tools/drps-index" train.tsv --test test.tsv $index -o plan --force --quiet
        # shellcheck disable=SC2086
        "$tools/drps-train" plan -o model --threads 1 --checkpoint-every never $train --force --quiet --json >train.json 2>/dev/null
        "$tools/drps-recommend" model --seen train.tsv --test test.tsv --json >quality.json
        printf '| `%s` | `%s` | %.4f | %.4f | %.4f | %.4f | %.4f | %.0f |\n' "$(xargs <<<"$index")" "$(xargs <<<"$train")" \
            "$(jq .test.precision quality.json)" "$(jq .test.recall quality.json)" "$(jq .test.ndcg quality.json)" "$(jq .test.map quality.json)" \
            "$(jq '.epochs[-1].test_auc' train.json)" "$(jq .seconds train.json)"
    done <<<"$settings"
} | tables implicit 2
