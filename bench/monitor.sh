#!/usr/bin/env bash
# What numbers to watch cost: training with them, a file and a port that is asked each second (bench_monitor), beside training without: both runs of a
# pair at the same time, so that what else runs on the machine slows both. Differences are of the pairs: medians, with least and most. And what one answer
# costs: runs that are asked 100 times a second.
#   bench/monitor.sh [PAIRS [EPOCHS]]      default 9 pairs of 10 epochs
# A factorisation machine of 16 factors on the CTR-like set: all rows in memory, and with store relay in a fourth of what these take.
# Needs libmicrohttpd; ports from 29100 on, of this machine.
. "$(dirname "$0")/lib.sh"
pairs=${1:-9} epochs=${2:-10}
export DRPS_BENCH_SAMPLES=${DRPS_BENCH_SAMPLES:-400K}

"$tools/drps-index" "$(ctr_text)" --algo fm --factors 16 -o "$work/plan" --quiet
rows=$("$tools/drps-stat" "$work/plan" --json | jq '.rows * .row_bytes / 1048576 | floor')

# run NAME STORE MEMORY [PORT [ASKS]]: one run in a folder of its own; NAME.run gets its seconds, those of the processor, content and answers
run() {
    local name=$1
    shift
    mkdir -p "$work/$name"
    "$tools/bench_monitor" "$work/plan" "$work/$name" "$epochs" "$@" >"$work/$name.run"
}
# beside NAME NAME STORE MEMORY [ASKS]: two runs at the same time, the first one watched. A line of the numbers of both.
beside() {
    local watched
    run "$1" "$3" "$4" "$port" "${5:-1}" &
    watched=$!
    run "$2" "$3" "$4"
    wait "$watched"
    [[ $(cut -d ' ' -f 3 "$work/$1.run") = "$(cut -d ' ' -f 3 "$work/$2.run")" ]] || { echo "bench: the models differ" >&2; return 1; }
    paste -d ' ' "$work/$1.run" "$work/$2.run"
    port=$((port + 1))
}
# differences COLUMN FILE: the median of with / without - 1 in percent, least and most
differences() {
    awk -v c="$1" '{printf "%.6f\n", 100 * ($c / $(c + 4) - 1)}' "$2" | sort -g |
        awk '{v[NR] = $1} END {printf "%.2f %% (%.2f to %.2f)", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2, v[1], v[NR]}'
}
table() {
    local store memory i
    echo "| store | s without | s of the processor | difference, s | difference, processor | an answer, ms of the processor |"
    echo "| --- | --- | --- | --- | --- | --- |"
    for store in resident relay; do
        memory=$((rows * 2 + 256))
        [[ $store = resident ]] || memory=$((rows / 4 + 64))
        run a $store "$memory" # files are in the page cache for all
        for ((i = 0; i < pairs; i++)); do
            beside a b $store "$memory" >>"$work/$store.pairs"
            beside a b $store "$memory" 100 >>"$work/$store.often"
        done
        echo "| $store | $(cut -d ' ' -f 5 "$work/$store.pairs" | median) | $(cut -d ' ' -f 6 "$work/$store.pairs" | median) | $(differences 1 "$work/$store.pairs") | $(differences 2 "$work/$store.pairs") | $(awk '{printf "%.3f\n", 1000 * ($2 - $6) / $4}' "$work/$store.often" | median) |"
    done
}
port=29100
echo "$(nproc) cores, load $(cut -d ' ' -f 1 /proc/loadavg); $pairs pairs of $epochs epochs of $DRPS_BENCH_SAMPLES samples"
table | tables monitor
