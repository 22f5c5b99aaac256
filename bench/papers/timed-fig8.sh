#!/usr/bin/env bash
# "Timed Dataflow", Figure 8: network traffic of pulling parameters that is saved, in percent of the bytes without filters. By the
# paper's method (versions, P-SMP, 16 bits): the largest threshold tried that loses at most half a point of accuracy (or percent of the
# RMSE). Ours: 8 bits (LR 16), thresholds of the change itself (of values below 1), and the largest that loses at most a tenth of a point.
# Either way servers stay exact and compare with what they have sent last, where the paper's drop the update itself. Under SSP
# the copies that the bound allows are used (--pull-cached).
#   bench/papers/timed-fig8.sh [--quick] [DATA]
# Bytes are those of messages. Exact under BSP; under SSP runs differ. Environment: bench/lib.sh's.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/timed.sh"

printed="clicks bsp 75
clicks ssp8 74
ratings bsp 65
ratings ssp8 62
alexnet bsp 77
alexnet ssp8 66"
thresholds=$(quickly "1e-1 1e-4" "3e-1 1e-1 3e-2 1e-2 3e-3 1e-3 2e-4 1e-4")

for model in "${models[@]}"; do
    timed_plan "$model"
    theirs=() ours=() bits=16bit # a row of one value has no 8 bits
    [[ $model != ratings && $model != alexnet ]] || bits=8bit
    for psi in $thresholds; do
        theirs+=("--pull-values 16bit --pull-filter d=0.1,eps=1e-6,psi=$psi")
        ours+=("--pull-values $bits --pull-filter d=0.1,psi=$psi")
    done
    # Under SSP a worker's copies serve as long as the bound allows; where they lose too much, 16 bits are left.
    theirs+=("--pull-values 16bit --pull-cached" "--pull-values 16bit")
    ours+=("--pull-values 16bit --pull-cached" "--pull-values 16bit")
    for sync in "${syncs[@]}"; do
        timed_plain "$model" "$sync"
        first_within 0.5 "$model" "$sync" "${theirs[@]}" || true
        row="| $title, $sync | $(awk -v row="$model $sync" '$1 " " $2 == row { print $3 }' <<<"$printed") | $(cells .pull_saved) |"
        first_within 0.1 "$model" "$sync" "${ours[@]}" || true
        echo "$row $(cells .pull_saved) |"
    done
done | table paper-timed-fig8 1 "model | paper: saved, % | its method: saved, % | its method: points lost | its method: options | ours: saved, % | ours: points lost | ours: options"
