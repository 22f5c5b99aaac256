#!/usr/bin/env bash
# "Timed Dataflow", Figure 11: communication to a second of computation, and time to that of BSP without filters, which is 1.
#   bench/papers/timed-fig11.sh [--quick] [DATA]
# bench/papers/timed-speed.sh says what is emulated. Needs root and iproute2. Environment: bench/lib.sh's, DRPS_BENCH_RATE (of
# links, default 100 Mbit/s).
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/timed.sh"
. "$(dirname "$0")/timed-speed.sh"

# show WAY PAPER SYNC OPTIONS...: a line
show() {
    local got
    if ! got=$(seconds "$3" "$computing" "${@:4}"); then
        echo "| $title, $1 | $2 | not in this build | |"
        return
    fi
    plain=${plain:-$got}
    awk -v row="| $title, $1 | $2" -v got="$got" -v computing="$computing" -v plain="$plain" 'BEGIN {
        printf "%s | %.2f | %.2f |\n", row, got / computing - 1, got / plain }'
}

make_hosts
for m in "${models[@]}"; do
    speed_plan $m
    plain=
    # shellcheck disable=SC2034 # the loop names them
    read -r without bsp ssp8 < <(paper_ratios $m)
    show "bsp without" "$without" bsp --no-overlap
    for sync in bsp ssp8; do
        mapfile -t theirs < <(filters_of theirs $sync)
        mapfile -t ours < <(filters_of ours $sync)
        how=(--no-overlap)
        [[ $sync = bsp ]] || how=()
        show "$sync, its filters" "${!sync}" $sync "${how[@]}" "${theirs[@]}"
        show "$sync, ours" "" $sync "${ours[@]}"
    done
done | table paper-timed-fig11 1 "model, way | paper: communication to computation | communication to computation | time, to that of bsp without"
