#!/usr/bin/env bash
# "Timed Dataflow", Figure 10: network traffic of pushing gradients that is saved, in percent of the bytes without filters. By
# the paper's method (G-SMP, 16 bits, what is dropped is added to later gradients): the largest threshold tried that loses at most
# half a point of accuracy (or percent of the RMSE). Ours: 8 bits, and of each message the largest values alone: the smallest share tried
# that loses at most a tenth of a point.
#   bench/papers/timed-fig10.sh [--quick] [DATA]
# Bytes are those of messages, lists of what is sent included. The paper's do not count keys; drps sends none. Exact under BSP; under SSP runs differ.
# Environment: bench/lib.sh's.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/timed.sh"

printed="clicks bsp 79
clicks ssp8 76
ratings bsp 66
ratings ssp8 64
alexnet bsp 72
alexnet ssp8 70"
thresholds=$(quickly "1e-1 5e-3" "3e-1 1e-1 3e-2 9.5e-3 3e-3 1e-3 5.5e-4 3e-4")
shares=$(quickly "1% 10%" "1% 2% 5% 10% 20% 50%")

for model in "${models[@]}"; do
    timed_plan "$model"
    theirs=() ours=()
    for phi in $thresholds; do theirs+=("--push-values 16bit --push-filter d=0.1,phi=$(per_batch "$phi")"); done
    for share in $shares; do ours+=("--push-values 8bit --push-top $share"); done
    for sync in "${syncs[@]}"; do
        timed_plain "$model" "$sync"
        first_within 0.5 "$model" "$sync" "${theirs[@]}" || true
        row="| $title, $sync | $(awk -v row="$model $sync" '$1 " " $2 == row { print $3 }' <<<"$printed") | $(cells .saved) |"
        first_within 0.1 "$model" "$sync" "${ours[@]}" || true
        echo "$row $(cells .saved) |"
    done
done | table paper-timed-fig10 1 "model | paper: saved, % | its method: saved, % | its method: points lost | its method: options | ours: saved, % | ours: points lost | ours: options"
