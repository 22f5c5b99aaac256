#!/usr/bin/env bash
# What numbers to watch cost: training with them, a file and a port that is asked each second (bench_monitor), beside training without, pairs of
# runs in turn. Differences are of the pairs: medians, with least and most. And what one answer costs: runs that are asked 100 times a second.
#   bench/monitor.sh [PAIRS [EPOCHS]]      default 9 pairs of 10 epochs
# A factorisation machine of 16 factors on the CTR-like set: all rows in memory, and with store relay in a fourth of what these take.
# Needs libmicrohttpd; ports from 29100 on, of this machine.
. "$(dirname "$0")/lib.sh"
pairs=${1:-9} epochs=${2:-10}
export DRPS_BENCH_SAMPLES=${DRPS_BENCH_SAMPLES:-400K}

"$tools/drps-index" "$(ctr_text)" --algo fm --factors 16 -o "$work/plan" --quiet
rows=$("$tools/drps-stat" "$work/plan" --json | jq '.rows * .row_bytes / 1048576 | floor')

# run STORE MEMORY [PORT [ASKS]]: "seconds, seconds of the processor, content" of one run
run() { "$tools/bench_monitor" "$work/plan" "$work" "$epochs" "$@"; }
# differences COLUMN FILE: the median of with / without - 1 in percent, least and most; lines have both runs of a pair
differences() {
    awk -v c="$1" '{printf "%.6f\n", 100 * ($c / $(c + 4) - 1)}' "$2" | sort -g |
        awk '{v[NR] = $1} END {printf "%.2f %% (%.2f to %.2f)", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2, v[1], v[NR]}'
}
table() {
    local store memory i with without
    echo "| store | s without | s of the processor | difference, s | difference, processor | an answer, ms of the processor |"
    echo "| --- | --- | --- | --- | --- | --- |"
    for store in resident relay; do
        memory=$((rows * 2 + 256))
        [[ $store = resident ]] || memory=$((rows / 4 + 64))
        run $store "$memory" >/dev/null # files are in the page cache for all
        for ((i = 0; i < pairs; i++)); do
            if ((i % 2)); then
                with=$(run $store "$memory" $((29100 + i))) without=$(run $store "$memory")
            else
                without=$(run $store "$memory") with=$(run $store "$memory" $((29100 + i)))
            fi
            [[ $(cut -d ' ' -f 3 <<<"$with") = $(cut -d ' ' -f 3 <<<"$without") ]] || { echo "bench: the models differ" >&2; return 1; }
            echo "$with $without"
            echo "$(run $store "$memory" $((29100 + pairs + i)) 100) $without" >>"$work/$store.often"
        done >"$work/$store"
        echo "| $store | $(cut -d ' ' -f 5 "$work/$store" | median) | $(cut -d ' ' -f 6 "$work/$store" | median) | $(differences 1 "$work/$store") | $(differences 2 "$work/$store") | $(awk '{printf "%.3f\n", 1000 * ($2 - $6) / $4}' "$work/$store.often" | median) |"
    done
}
echo "$(nproc) cores, load $(cut -d ' ' -f 1 /proc/loadavg); $pairs pairs of $epochs epochs of $DRPS_BENCH_SAMPLES samples"
table | tables monitor
