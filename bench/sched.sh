#!/usr/bin/env bash
# The parallel models in simulated time: tables, rows (rows.sh), and docs/sched.png. Needs jq, gnuplot.
#   bench/sched.sh [--workers "4 8 16 64 256"] [--large 1000] [--rounds 1000] [--simulated 640] [--plot 16] [--png docs/sched.png]
# Figures are means over seeds 1, 2, ...: so many that --simulated workers are, 3 to 40 (few workers: SGD's noise is large).
# --plot: the number of workers that is drawn; --large: one run with so many, 100 rounds.
. "$(dirname "$0")/lib.sh"
declare -A option=([workers]="4 8 16 64 256" [large]=1000 [rounds]=1000 [simulated]=640 [plot]=16 [png]=$root/docs/sched.png)
while (($#)); do
    [[ -n ${option[${1#--}]:-} && $# -gt 1 ]] || { sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}" >&2 && exit 2; }
    option[${1#--}]=$2
    shift 2
done
timings="homogeneous straggler pauses tail=3 tail tail=1.5 tail=1.2"
drawn="homogeneous straggler pauses tail"
modes="bsp asp ssp:1 ssp:3 ssp:10 ssp:100 wsp wsp-literal"

# simulate WORKERS TIMING ROUNDS SEEDS: $work/TIMING.WORKERS, the means over the seeds, relative to ASP's and to the best
simulate() {
    for ((seed = 1; seed <= $4; seed++)); do
        "$tools/sim_sched" --json --workers "$1" --timing "$2" --rounds "$3" --seed $seed --modes "$modes"
    done | jq -s --arg modes "$modes" 'def mean(f): map(f) | if any(. == null) then null else add / length end;
        def error(f): map(f) | if any(. == null) or length < 2 then null
            else (add / length) as $m | (map((. - $m) * (. - $m)) | add / (length - 1) / length | sqrt) end;
        [.[].modes[]] as $all | [$modes | split(" ")[] as $m | $all | map(select(.mode == $m)) | {mode: $m,
            rate: mean(.iterations_per_s), waiting: mean(.waiting_share), first: mean(.first_round_share),
            bound: mean(.bound_share), sets: mean(.wait_set_share), expected: mean(.wait_expected_ms), needed: mean(.wait_needed_ms), stale: mean(.stale_rounds),
            stale_max: (map(.max_stale_rounds) | max), lag: (map(.max_lag) | max), target: mean(.target_rounds), error: error(.target_rounds),
            epoch: mean(.epoch_s), claims: mean(.epoch_claims_s), us: mean(.decision_us), p99: mean(.decision_p99_us)}]
        | (map(select(.mode == "asp").rate) | first) as $asp | (map(select(.mode == "bsp").rate) | first) as $bsp
        | (map(select(.mode | startswith("wsp") | not).target | select(.)) | min) as $best
        | map(.of_asp = .rate / $asp | .of_bsp = .rate / $bsp | .of_best = (if .target and $best then .target / $best else null end)
            | .error = (if .error and .of_best then .error / $best else null end)
            | .ideal = '"$1 * $3"' / $asp | .epoch /= .ideal | .claims /= .ideal)' >"$work/$2.$1"
}

table() { # WORKERS
    echo "| $1 workers | of ASP | of BSP | waiting: all, first round, bound, sets | a wait expected, needed | staleness: mean, max | lag: max | target: rounds, of the best | epoch: with, without claims | decision: mean, p99 |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for timing in $timings; do
        [[ -e $work/$timing.$1 ]] || continue
        jq -r --arg timing "$timing" 'def r(n): if . == null then "-" else . * pow(10; n) | round / pow(10; n) end;
            .[] | "| \($timing), \(.mode) | \(.of_asp | r(2)) | \(.of_bsp | r(2)) | \(.waiting * 100 | r(1)), \(.first * 100 | r(1)), \(.bound * 100 | r(1)), \(.sets * 100 | r(1)) % | \(.expected | r(1)), \(.needed | r(1)) ms | \(.stale | r(2)), \(.stale_max | r(1)) | \(.lag) | \(.target | r(1)), \(.of_best | r(2)) +- \(.error | r(2)) | \(.claims | r(2)), \(.epoch | r(2)) | \(.us | r(2)), \(.p99 | r(2)) us |"' \
            "$work/$timing.$1"
    done
    echo
}

plot() { # WORKERS: three panels, a group of bars a timing
    local panel field i
    for panel in of_asp waiting target; do
        { echo "timing $modes"
          for timing in $drawn; do
              echo "$timing $(jq -r "map(.$panel // \"nan\") | join(\" \")" "$work/$timing.$1")"
          done; } >"$work/$panel.dat"
    done
    {
        echo "set terminal pngcairo size 1500,480 font 'sans,10'; set output '${option[png]}'"
        echo "set multiplot layout 1,3 title '$1 workers, simulated: bench/sched.sh'"
        echo "set style data histograms; set style histogram clustered gap 1; set style fill solid .8 border -1"
        echo "set grid ytics; set key top left horizontal maxcols 2; set xtics scale 0"
        while read -r field title; do
            echo "set title '$title'; set yrange [0:$([[ $field = target ]] && echo "*" || echo 1.4)]"
            echo -n "plot "
            for i in 2 3 4 5 6 7 8 9; do echo -n "'$work/$field.dat' using $i:xtic(1) title columnheader($i) noenhanced$([[ $i = 9 ]] || echo ,) "; done
            echo
        done <<TEXT
of_asp iterations a second, relative to ASP
waiting share of time spent waiting
target rounds until SGD has 1/100 of its loss
TEXT
        echo "unset multiplot"
    } | gnuplot
}

for workers in ${option[workers]}; do
    seeds=$((option[simulated] / workers))
    seeds=$((seeds < 3 ? 3 : seeds > 40 ? 40 : seeds))
    for timing in $timings; do simulate "$workers" "$timing" "${option[rounds]}" $seeds; done
    table "$workers" | tables "sched-$workers"
done
plot "${option[plot]}"
simulate "${option[large]}" pauses 100 1
table "${option[large]}" | tables "sched-${option[large]}"
