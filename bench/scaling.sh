#!/usr/bin/env bash
# One set trained by 1 to 8 processes over ZeroMQ, each of which takes the time of a machine of its own for a batch
# (drps-train --emulate): samples/s, efficiency, and the simulator's forecast of both. Then the forecast for more machines,
# with links of 1 Gbit/s. Needs jq.
#   bench/scaling.sh [--seconds 0.1] [--timings "homogeneous pauses"] [--processes "1 2 3 4 5 6 8"] [--machines "13 64 1000"]
#                    [--batches 120] [--batch 500] [--epochs 2] [--sync bsp] [--rate 1000] [--index "--algo lor"]
# --seconds: a batch takes, on average of the model; --batches: of an epoch, of all processes together, each of --batch samples;
# --rate: Mbit/s of a link. Messages and evaluation take what they take on this machine's cores; a run in which more than 2 % of
# the batches took longer than they should, or which ended them more than 5 % late, is marked.
. "$(dirname "$0")/lib.sh"
declare -A option=([seconds]=0.1 [timings]="homogeneous pauses" [processes]="1 2 3 4 5 6 8" [machines]="13 64 1000" [batches]=120
    [batch]=500 [epochs]=2 [sync]=bsp [rate]=1000 [index]="--algo lor")
while (($#)); do
    [[ -n ${option[${1#--}]:-} && $# -gt 1 ]] || { sed -n '5,9s/^# \?//p' "${BASH_SOURCE[0]}" >&2 && exit 2; }
    option[${1#--}]=$2
    shift 2
done
plans_most=64 # machines that a plan is made for; the bytes of more follow from those

# plan N BATCHES-A-MACHINE: $work/plan-N of the text $work/ctr-BATCHES.svm, and what drps-index says of it
plan() {
    local samples=$(($1 * $2 * option[batch])) text partition=()
    text=$work/ctr-$samples.svm
    [[ -e $text ]] || "$tools/drps-gen" ctr --samples $samples --fields 20 --rows 500K --seed 1 -o "$text" --quiet
    (($1 == 1)) || partition=(--partition auto)
    # shellcheck disable=SC2086
    "$tools/drps-index" "$text" ${option[index]} --batch-size "${option[batch]}" --workers "$1" "${partition[@]}" \
        -o "$work/plan-$1" --force --quiet --json >"$work/plan-$1.json"
}

# link_ms N: a round's messages on the busiest link: parameters there, gradients back, both directions at a time
link_ms() {
    (($1 > 1)) || { echo 0 && return; }
    jq --argjson rate "${option[rate]}" '(.batches // 1) as $rounds |
        [.ranks[] | .pulled_bytes, .served_bytes] | max * 2 * 8 / $rounds / ($rate * 1e3)' "$work/plan-$1.json"
}

# simulated N ROUNDS TIMING NETWORK-MS EPOCHS MODES: seconds of an epoch, a line a mode; batches are claimed in windows of
# 16 steps, as where all rows are in memory
simulated() {
    "$tools/sim_sched" --workers "$1" --rounds "$2" --timing "$3:${option[seconds]}" --network-ms "$4" --epochs "$5" \
        --window-steps 16 --modes "$6" --json | jq '.modes[].epoch_claims_s'
}

sync=()
[[ ${option[sync]} = bsp ]] || sync=(--sync "${option[sync]%%:*}")
[[ ${option[sync]} != *:* ]] || sync+=(--staleness "${option[sync]#*:}")

measure() { # TIMING N: a row
    local rounds samples forecast how=(--local "$2")
    rounds=$(jq .batches "$work/plan-$2.json") samples=$(jq .samples "$work/plan-$2.json")
    (($2 == 1)) || how+=("${sync[@]}")
    "$tools/drps-train" "$work/plan-$2" -o "$work/model" --force --epochs "${option[epochs]}" "${how[@]}" \
        --emulate "$1:${option[seconds]}" --quiet --json >"$work/train.json"
    forecast=$(simulated "$2" "$rounds" "$1" 0 "${option[epochs]}" "${option[sync]}")
    jq -r --arg name "$1" --argjson n "$2" --argjson f "$forecast" --argjson samples "$samples" \
        --argjson rounds "$rounds" '.emulated as $e | ([.epochs[].seconds] | add / length) as $s |
        "\($name) \($n) \($samples / $s) \($samples / $f) \(($s / $f - 1) * 100) \(($s - $f) / $rounds * 1e3) " +
        "\($e.overrun_share * 100) \($e.late_share * 100) \($e.computed_seconds / $e.iterations * 1e3)"' "$work/train.json"
}

echo "$(nproc) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg); ${option[index]}, batches of ${option[batch]} samples that take" \
    "${option[seconds]} s, ${option[batches]} an epoch; ${option[sync]}"
for n in ${option[processes]}; do
    plan "$n" $((option[batches] / n))
done
titles="timing | processes | samples/s | efficiency | forecast: samples/s | forecast: efficiency | seconds an epoch over the forecast | ms a round more | too long | late | ms a batch really computed"
echo "| $titles |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
for timing in ${option[timings]}; do
    for n in ${option[processes]}; do measure "$timing" "$n"; done | awk '
        NR == 1 { one = $3 / $2; one_forecast = $4 / $2 } # efficiency: over as many times the first row'"'"'s rate a process
        { printf "| %s | %d | %.0f | %.2f | %.0f | %.2f | %+.1f %% | %.2f | %.2f %%%s | %.2f %% | %.2f |\n", $1, $2, $3, $3 / $2 / one, $4,
                 $4 / $2 / one_forecast, $5, $6, $7, ($7 > 2 || $8 > 5 ? " (not valid)" : ""), $8, $9 }' | tables scaling 2 "$titles"
done
echo
echo "Forecast of 100 rounds, over one machine; a round's messages at ${option[rate]} Mbit/s on the busiest link"
titles="machines | ms of messages a round | timing | bsp: samples/s | bsp: efficiency | bsp: without messages | wsp: samples/s | wsp: efficiency | wsp: without messages"
echo "| $titles |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
declare -A one # machine's seconds, by timing
for n in 1 ${option[machines]}; do
    largest=$((n < plans_most ? n : plans_most))
    [[ -e $work/link-$largest ]] || { plan "$largest" 10 && link_ms "$largest" >"$work/link-$largest"; }
    # Beyond the largest plan: of the rows that a machine uses, (n - 1) / n lie elsewhere.
    ms=$(jq "if $n > $largest then . * (1 - 1 / $n) / (1 - 1 / $largest) else . end" "$work/link-$largest")
    for timing in ${option[timings]}; do
        paste <(simulated "$n" 100 "$timing" "$ms" 1 "bsp wsp") <(simulated "$n" 100 "$timing" 0 1 "bsp wsp") >"$work/seconds"
        one[$timing]=${one[$timing]:-$(awk 'NR == 1 {print $2}' "$work/seconds")}
        awk -v n="$n" -v ms="$ms" -v name="$timing" -v one="${one[$timing]}" -v samples=$((n * 100 * option[batch])) '
            NR == 1 { printf "| %d | %.2f | %s |", n, ms, name }
            { printf " %.0f | %.2f | %.2f |", samples / $1, one / $1, one / $2 }
            END { print "" }' "$work/seconds" | tables scaling-simulated 3 "$titles"
    done
done
