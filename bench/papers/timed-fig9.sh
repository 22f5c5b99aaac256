#!/usr/bin/env bash
# "Timed Dataflow", Figure 9: percent of gradients that the significance filter drops (G-SMP with 16 bits, d = 0.1, which the paper does not
# tell), by threshold, and what it costs in prediction accuracy: in points of accuracy, or percent of the RMSE. Gradients that are
# dropped are added to later ones, as the paper's Eq. 2 says.
#   bench/papers/timed-fig9.sh [--quick] [DATA]
# Exact under BSP; under SSP runs differ. Environment: bench/lib.sh's.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/timed.sh"

# model, way to synchronise, threshold, percent dropped, points lost: what the paper's text says of the figure. Its LR is on clicks.
printed="clicks bsp  3e-4   58 0.5
clicks  ssp8 5.5e-4 55 0.5
ratings bsp  9.5e-3 55 0.5
ratings ssp8 5e-3   50 0.5
alexnet bsp  2.7e-2 65 0.5
alexnet ssp8 1.5e-2 55 0.5"
thresholds="1e-4 3e-4 5.5e-4 1e-3 3e-3 5e-3 9.5e-3 3e-2 1e-1 3e-1"

for model in "${models[@]}"; do
    timed_plan "$model"
    for sync in "${syncs[@]}"; do
        timed_plain "$model" "$sync"
        [[ $model != alexnet ]] || thresholds="1e-4 1e-3 5e-3 1.5e-2 2.7e-2 1e-1"
        for phi in $(quickly "3e-4 5e-3 1e-1" "$thresholds"); do
            row="| $title, $sync | $phi | $(awk -v row="$model $sync $phi" '$1 " " $2 " " $3 == row { print $4 " | " $5; there = 1 } END { if (!there) print " | " }' <<<"$printed") |"
            if timed_train "$model" "$sync" --push-values 16bit --push-filter "phi=$(per_batch "$phi"),d=0.1"; then
                echo "$row $(jq '.dropped * 10 | round / 10' "$work/run.json") | $(points_lost) | $(jq -r .quality "$work/run.json") |"
            else
                echo "$row not in this build | | |"
                break
            fi
        done
    done
done | table paper-timed-fig9 2 "model | threshold | paper: dropped, % | paper: points lost | dropped, % | points lost | accuracy or RMSE"
