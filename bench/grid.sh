#!/usr/bin/env bash
# Grid order against shuffled, matrix factorisation: held-out RMSE after equal epochs on ml-1m (it must stay within
# 0.5 %), and what the forecast says of an epoch's row traffic: rows that the relay store sends, those that it holds in
# memory between windows left out, and bytes that a block pool reads.
#   bench/grid.sh [DATA [RATINGS]]      DATA: folder with ml-1m/ratings.tsv.xz (default ../shared/data); RATINGS: generated
#                                       ones, of 80 thousand rows (5M)
. "$(dirname "$0")/lib.sh"
data=${1:-$root/../shared/data}
[[ -d $data/ml-1m ]] || { echo "bench: no ml-1m in $data" >&2; exit 77; }
orders=(shuffled grid:16 grid) # grid: as drps-index chooses
xz -dc "$data/ml-1m/ratings.tsv.xz" >"$work/ml-1m.tsv"
"$tools/drps-gen" matrix --users 60K --items 20K --ratings "${2:-5M}" --factors 8 --seed 1 -o "$work/matrix.tsv" --force --quiet

compile() { # SET RANK BATCH ORDER: a plan, and its summary in index.json
    local order=(--order "${4%%:*}")
    [[ $4 = *:* ]] && order+=(--grid "${4##*:}")
    "$tools/drps-index" "$work/$1.tsv" --algo lmf --factors "$2" --batch-size "$3" --test-fraction 0.1 "${order[@]}" \
        -o "$work/plan" --force --quiet --json >"$work/index.json"
}

echo "held-out RMSE on ml-1m, AdaGrad 0.1, l2 0.05, batch 1000, 20 epochs"
for rank in 16 64; do
    shuffled=
    for order in "${orders[@]}"; do
        compile ml-1m $rank 1000 "$order"
        "$tools/drps-train" "$work/plan" -o "$work/model" --force --epochs 20 --lr 0.1 --l2 0.05 --quiet --json >"$work/train.json"
        rmse=$(jq '[.epochs[].test_rmse] | min' "$work/train.json")
        shuffled=${shuffled:-$rmse}
        record "grid-rmse|rank $rank|$order" "$(printf %.4f "$rmse")"
        printf 'rank %-3s %-9s best epoch %.4f (%+.2f %%), last %.4f\n' $rank "$order" "$rmse" \
            "$(awk "BEGIN {print 100 * ($rmse / $shuffled - 1)}")" "$(jq '.epochs[-1].test_rmse' "$work/train.json")"
    done
done

# The grid that is chosen for memory that holds 1 / SHARE of the rows. Small sets need long rows for that: --memory is 64M
# at least. It is 48 MiB and the rows by 0.72, see parts_room_rows() in index/run/parts.c.
chosen() { # SET BATCH SHARE
    local rank=16000 rows memory
    compile "$1" 64 "$2" shuffled
    rows=$(jq .rows "$work/index.json")
    memory=$((48 * 1048576 + rows / $3 * (8 * (rank + 1) + 45) * 100 / 72))
    "$tools/drps-index" "$work/$1.tsv" --algo lmf --factors $rank --batch-size "$2" --test-fraction 0.1 --order grid \
        --memory $memory -o "$work/plan" --force --quiet
    jq -r '"\(.grid_users),\(.grid_items)"' "$work/plan/plan.json"
}

# A row of RANK floats with one optimizer state has 8 (RANK + 1) bytes.
traffic() { # SET BATCH
    local share order
    echo
    echo "$1, batch $2: thousands of rows that the relay store sends in an epoch (GB read at rank 64, at rank 2000); GB that a pool reads, rank 64"
    for share in 4 8 16 32; do
        for order in "${orders[@]}"; do
            [[ $order != grid ]] || order=grid:$(chosen "$1" "$2" $share)
            compile "$1" 64 "$2" "$order"
            jq -r --arg order "$order" --argjson share $share '
                (.forecast[0].memory_bytes / $share | floor) as $memory
                | def at(name): .forecast[] | select(.store == name and .memory_bytes == $memory);
                  def gb: . / 1e7 | round / 100;
                  (at("relay") | if .feasible then (.read_bytes / 520) as $n
                      | "\($n / 1000 | round) (\(.read_bytes | gb), \($n * 16008 | gb))" else "does not fit" end) as $relay
                | (at("pib") | if .feasible then .read_bytes | gb else "does not fit" end) as $pib
                | "memory 1/\($share)|\($order)|\($relay)|\($pib)"' "$work/index.json"
        done
    done | column -t -s '|'
}
traffic ml-1m 100
traffic matrix 1000
