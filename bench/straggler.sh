#!/usr/bin/env bash
# Time to a loss under stragglers, by parallel model: real training by 8 processes over ZeroMQ, each of which takes the time of
# a machine of its own for a batch (drps-train --emulate), beside what the simulator says of the same iteration times. A table,
# the best SSP by its time to each loss, and curves (docs/straggler.png). Needs jq, gnuplot.
#   bench/straggler.sh [--ratings FILE] [--timings "straggler pauses tail"] [--modes "bsp asp ssp:1 ssp:3 ssp:10 wsp"]
#                      [--workers 8] [--batch 2000] [--seconds 0.1] [--seed 1] [--epochs 5] [--rank 8] [--lr 0.1]
#                      [--losses "0.396 0.387 0.385"] [--png docs/straggler.png]
# --ratings: default ../shared/data/ml-1m; --seconds: a batch takes, on average of the model; --losses: of the test set; the time
# to each lies on the line between the ends of two epochs. A run in which more than 2 % of the batches took longer than they
# should, or which ended them more than 5 % late, is marked. Forecast: of computation alone, and with messages, whose time is that of runs without stragglers.
# A folder DRPS_BENCH_DIR keeps what was run, which is not run again: give the same options then.
. "$(dirname "$0")/lib.sh"
declare -A option=([ratings]=$root/../shared/data/ml-1m/ratings.tsv.xz [timings]="straggler pauses tail"
    [modes]="bsp asp ssp:1 ssp:3 ssp:10 wsp" [workers]=8 [batch]=2000 [seconds]=0.1 [seed]=1 [epochs]=5 [rank]=8 [lr]=0.1
    [losses]="0.396 0.387 0.385" [png]=$root/docs/straggler.png)
while (($#)); do
    [[ -n ${option[${1#--}]:-} && $# -gt 1 ]] || { sed -n '5,8s/^# \?//p' "${BASH_SOURCE[0]}" >&2 && exit 2; }
    option[${1#--}]=$2
    shift 2
done
[[ -e $work/plan.json || -e ${option[ratings]} ]] || { echo "straggler.sh: no ${option[ratings]}: give --ratings FILE" >&2 && exit 1; }
[[ -e $work/plan.json ]] || "$tools/drps-index" "${option[ratings]}" --algo lmf --rank "${option[rank]}" --batch-size "${option[batch]}" --workers "${option[workers]}" \
    --partition auto --test-fraction 0.1 -o "$work/plan" --force --quiet --json >"$work/plan.json"
rounds=$(jq .batches "$work/plan.json")

# train TIMING MODE EPOCHS: $work/TIMING-MODE.json
train() {
    local sync=(--sync "${2%%:*}")
    [[ ! -e $work/$1-$2.json ]] || return 0
    [[ $2 != *:* ]] || sync+=(--staleness "${2#*:}")
    "$tools/drps-train" "$work/plan" -o "$work/model" --force --local "${option[workers]}" "${sync[@]}" --epochs "$3" --lr "${option[lr]}" \
        --emulate "$1:${option[seconds]}:${option[seed]}" --quiet --json >"$work/train.json"
    mv "$work/train.json" "$work/$1-$2.json"
}

# simulate TIMING MODE EPOCHS NETWORK-MS: seconds of all epochs, with the windows of claims that the run had
simulate() {
    local steps
    steps=$(jq '.claim_window_steps | if . > 0 then . else 1 end' "$work/$1-$2.json") # bsp: 0, and none are claimed
    "$tools/sim_sched" --workers "${option[workers]}" --rounds "$rounds" --timing "$1:${option[seconds]}:${option[seed]}" --epochs "$3" \
        --window-steps "$steps" --network-ms "$4" --modes "$2" --json | jq '.modes[0].epochs_claims_s | add'
}

# messages_ms MODE: what an iteration takes beside its computation, by two epochs without stragglers
messages_ms() {
    train homogeneous "$1" 2
    jq --argjson all "$(simulate homogeneous "$1" 2 0)" --argjson rounds "$rounds" \
        '([.epochs[].seconds] | add) - $all | if . < 0 then 0 else . / 2 / $rounds * 1e3 end' "$work/homogeneous-$1.json"
}

row() { # TIMING MODE
    local epochs=${option[epochs]} plain full ms=${messages[asp]}
    [[ $2 != bsp ]] || ms=${messages[bsp]}
    train "$1" "$2" "$epochs"
    plain=$(simulate "$1" "$2" "$epochs" 0) full=$(simulate "$1" "$2" "$epochs" "$ms")
    jq -r 'foreach .epochs[] as $e (0; . + $e.seconds; "\(.) \($e.test_loss)")' "$work/$1-$2.json" >"$work/$1-$2.curve"
    jq -r --arg timing "$1" --arg mode "$2" --arg losses "${option[losses]}" --argjson plain "$plain" --argjson full "$full" '
        def r(n): . * pow(10; n) | round / pow(10; n);
        def off(f): (. / f - 1) * 100 | r(1) | if . < 0 then "\(.) %" else "+\(.) %" end;
        [foreach .epochs[] as $e (0; . + $e.seconds; {t: ., loss: $e.test_loss})] as $c |
        def reach($l): [range(1; $c | length) as $i | select($c[$i].loss <= $l) |
            (if $c[$i - 1].loss <= $l then 0 else ($c[$i - 1].loss - $l) / ($c[$i - 1].loss - $c[$i].loss) end) as $part |
            {s: ($c[$i - 1].t + $part * ($c[$i].t - $c[$i - 1].t)), epochs: ($i + $part)}][0];
        ($c[-1].t) as $all | (.epochs | length) as $n |
        "| \($timing) | \($mode) | \($all / $n | r(2)) | \($plain / $n | r(2)), \($all | off($plain)) | \($full / $n | r(2)), \($all | off($full)) |" +
        ([$losses | split(" ")[] | tonumber | reach(.) | if . then " \(.s | r(1)), \(.epochs | r(2)) |" else " - |" end] | join("")) +
        " \([.ranks[].waiting_share] | add / length * 100 | r(0)) % | \([.ranks[].lag_max] | max // 0) |" +
        " \(.emulated.overrun_share * 100 | r(2)) %\(if .emulated.overrun_share > .02 or .emulated.late_share > .05 then " (not valid)" else "" end), \(.emulated.late_share * 100 | r(1)) % |"' \
        "$work/$1-$2.json"
}

best_ssp() { # TIMING: "loss: mode seconds" of the fastest SSP
    local loss i=0
    for loss in ${option[losses]}; do
        i=$((i + 1))
        grep "^| $1 | ssp" "$work/rows" | awk -F '|' -v column=$((6 + i)) '$column !~ /-/ {split($column, at, ","); print at[1] + 0, $3}' |
            sort -n | awk -v timing="$1" -v loss="$loss" 'NR == 1 {print "best SSP, " timing ", loss " loss ": bound " substr($2, 5) ", " $1 " s"}'
    done
}

plot() {
    local timing mode n
    n=$(wc -w <<<"${option[timings]}")
    {
        echo "set terminal pngcairo size $((500 * n)),480 font 'sans,10'; set output '${option[png]}'"
        echo "set multiplot layout 1,$n title 'Matrix factorisation, ${option[workers]} processes, batches of ${option[seconds]} s: bench/straggler.sh'"
        echo "set grid; set key top right; set xlabel 'seconds'; set ylabel 'test loss'; set style data linespoints; set linetype 5 lc 'red'; set xrange [0:*]"
        for timing in ${option[timings]}; do
            echo "set title '$timing'"
            echo -n "plot "
            for mode in ${option[modes]}; do echo -n "'$work/$timing-$mode.curve' using 1:2 title '$mode' noenhanced, "; done
            for loss in ${option[losses]}; do echo -n "$loss notitle lc 'gray' dt 2, "; done
            echo
        done
        echo "unset multiplot"
    } | sed 's/, $//' | gnuplot
}

echo "$(nproc) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg); ${option[workers]} processes, $rounds batches of ${option[batch]} samples each an epoch," \
    "rank ${option[rank]}, rate ${option[lr]}; a batch takes ${option[seconds]} s"
declare -A messages=([bsp]=$(messages_ms bsp) [asp]=$(messages_ms asp))
printf 'messages: %.2f ms an iteration of bsp, %.2f of the others\n\n' "${messages[bsp]}" "${messages[asp]}"
echo "| timing | mode | s an epoch | forecast, off by | with messages, off by |$(for l in ${option[losses]}; do echo -n " s, epochs to $l |"; done) waiting | largest lag | too long, late |"
echo "| --- | --- | --- | --- | --- |$(for l in ${option[losses]}; do echo -n " --- |"; done) --- | --- | --- |"
for timing in ${option[timings]}; do
    for mode in ${option[modes]}; do row "$timing" "$mode"; done
done | tee "$work/rows"
echo
for timing in ${option[timings]}; do best_ssp "$timing"; done
plot
