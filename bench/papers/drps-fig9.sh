#!/usr/bin/env bash
# "DRPS", Figure 9: convergence by parallel model, five machines. SSP's bound is tuned from 0 (bsp) to infinity (asp), as the paper tunes it by
# hand. "its": wsp as it is printed (wsp-literal); "ours": drps's wsp. The figure is curves; what it says in numbers are the paper's Table 2
# (lines 3 to 6). Time is that of bsp to its own loss after all epochs but one.
#   bench/papers/drps-fig9.sh [--quick] [DATA]
# Sets and times: drps-parallel.sh. Needs jq. Environment: bench/lib.sh's.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/drps-parallel.sh"

# paper SET MODE: its time over bsp's
paper() {
    case $1.${2%%:*} in
    *.bsp) echo 1 ;;
    matrix.asp) echo 1.01 ;; matrix.ssp) echo .87 ;; matrix.wsp*) echo .77 ;;
    movielens.asp) echo 1.04 ;; movielens.ssp) echo .83 ;; movielens.wsp*) echo .67 ;;
    classification.asp) echo 1.08 ;; classification.ssp) echo .99 ;; classification.wsp*) echo .85 ;;
    avazu.asp) echo 1.04 ;; avazu.ssp) echo .96 ;; avazu.wsp*) echo .93 ;;
    esac
}

# row SET TIMING NAME LINE BSP
row() {
    awk -v head="| $(title "$1"), $2, $3 | $(paper "$1" "${4%% *}")" -v bsp="$5" '
        { of = $2 == "-" ? "-" : sprintf("%.2f", $2 / bsp)
          printf "%s | %s | %s | %.1f | %.0f | %.1f | %.1f |\n", head, of, $3 == "-" ? "not reached" : sprintf("%.2f", $3), $4, 100 * $5, $6, 100 * $7 }' <<<"$4"
}

for set in $sets; do
    plan "$set" ours --partition auto
    for timing in $timings; do
        results "$set" "$timing" >"$work/$set-$timing.lines"
        bsp=$(awk '$1 == "bsp" { print $2 }' "$work/$set-$timing.lines")
        best=$(best_bound <"$work/$set-$timing.lines")
        while read -r line; do
            case $line in
            bsp*) row "$set" "$timing" bsp "$line" "$bsp" ;;
            asp*) row "$set" "$timing" "asp, ssp of bound inf" "$line" "$bsp" ;;
            ssp*) bound=${line%% *} && row "$set" "$timing" "ssp of bound ${bound#ssp:}" "$line" "$bsp" ;;
            wsp-literal*) row "$set" "$timing" "its wsp" "$line" "$bsp" ;;
            wsp*) row "$set" "$timing" "our wsp" "$line" "$bsp" ;;
            esac
        done <"$work/$set-$timing.lines"
        bound=$(awk '{ split($1, m, ":"); print m[1] == "bsp" ? 0 : m[1] == "asp" ? "inf" : m[2] }' <<<"$best")
        row "$set" "$timing" "best ssp (bound $bound)" "ssp${best#"${best%% *}"}" "$bsp"
    done
done | table paper-drps-fig9 1 "set, times, model | paper: time of bsp's | time of bsp's | epochs to the loss | s that passed | waiting, % | staleness | late, %"
