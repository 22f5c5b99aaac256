#!/usr/bin/env bash
# "Timed Dataflow", Table II: how many times faster training is with filters, and under SSP, than under BSP without, over the same
# iterations.
#   bench/papers/timed-table2.sh [--quick] [DATA]
# bench/papers/timed-speed.sh says what is emulated. Under SSP pulls run ahead. Needs root and iproute2. Environment: bench/lib.sh's,
# DRPS_BENCH_RATE (of links, default 100 Mbit/s).
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/timed.sh"
. "$(dirname "$0")/timed-speed.sh"

# faster SYNC OPTIONS...: a cell
faster() {
    local got
    if got=$(seconds "$1" "$computing" "${@:2}"); then awk "BEGIN { printf \"%.2f\", $plain / $got }"; else echo "not in this build"; fi
}

make_hosts
for m in "${models[@]}"; do
    speed_plan $m
    plain=$(seconds bsp "$computing" --no-overlap)
    mapfile -t paper < <(paper_speedups $m)
    syncs=(bsp ssp4 ssp8)
    for i in 0 1 2; do
        sync=${syncs[i]}
        mapfile -t theirs < <(filters_of theirs "$sync")
        mapfile -t ours < <(filters_of ours "$sync")
        [[ $sync != bsp ]] || theirs+=(--no-overlap)
        echo "| $title, $sync | ${paper[i]} | $(faster "$sync") | $(faster "$sync" "${theirs[@]}") | $(faster "$sync" "${ours[@]}") |"
    done
done | table paper-timed-table2 1 "model | paper | without filters | its filters | ours"
