#!/usr/bin/env bash
# Time to a loss under stragglers, by parallel model: real training by 8 ranks, each of which takes the time of a machine of its own
# for a batch (drps-train --emulate), with several seeds; beside it the simulator's seconds for the same iteration times. Tables, the
# best SSP by its time to each loss, and curves (docs/straggler.png). Needs jq, gnuplot.
#   bench/straggler.sh [--algos "lmf lor fm"] [--timings "straggler pauses tail"] [--modes "bsp ssp:1 ssp:3 ssp:10 ssp:100 asp wsp"]
#                      [--seeds "1 2 3 4 5"] [--workers 8] [--seconds 0.1] [--epochs 3] [--parallel 4] [--retries 1]
#                      [--transport inproc] [--lmf FILE] [--fm "FILE --test FILE"] [--png docs/straggler.png]
# --seeds: of a run's first factors and of its iteration times; figures are medians, of pairs with the same seed where they are
# ratios; simulated: the run's epochs, each with the simulator's seconds. --parallel: runs at a time: ranks mostly wait. --seconds: a batch takes, on average of the model. A run in which more than
# 2 % of the batches took longer than they should, or which ended them more than 2 % late, is made again, --retries times, and
# counted in the table if it is no better. Data: of lmf (ml-1m) and fm (frappe) in ../shared/data, or those given; that of lor is made. What is trained how:
# `describe` below. A folder DRPS_BENCH_DIR keeps what was run, which is not run again: give the same options then.
. "$(dirname "$0")/lib.sh"
declare -A option=([algos]="lmf lor fm" [timings]="straggler pauses tail" [modes]="bsp ssp:1 ssp:3 ssp:10 ssp:100 asp wsp" [seeds]="1 2 3 4 5"
    [workers]=8 [seconds]=0.1 [epochs]=3 [parallel]=4 [retries]=1 [transport]=inproc [lmf]=$root/../shared/data/ml-1m/ratings.tsv.xz
    [fm]="$root/../shared/data/frappe/frappe.validation.libfm.xz --test $root/../shared/data/frappe/frappe.test.libfm.xz"
    [png]=$root/docs/straggler.png)
while (($#)); do
    [[ -n ${option[${1#--}]:-} && $# -gt 1 ]] || { sed -n '5,7s/^# \?//p' "${BASH_SOURCE[0]}" >&2 && exit 2; }
    option[${1#--}]=$2
    shift 2
done

# describe ALGO: sets what is indexed, `index`, and trained, `train` and `train_bsp`, and the `losses` of the test set. Rates and eps
# are such that all modes reach the losses after about as many epochs, seeds hardly matter, and evaluations lie around them:
# AdaGrad's first steps are as long as the rate where eps is small, whatever the gradient, and stale ones add up.
describe() {
    case $1 in
    lmf)
        index="${option[lmf]} --factors 8 --batch-size 2000 --test-fraction 0.1"
        train="--lr 0.05 --eps 0.1" train_bsp=$train losses="0.39 0.385"
        ;;
    lor) # BSP makes one step of eight gradients
        index="$work/ctr.svm --batch-size 400 --test-fraction 0.1"
        train="--lr 0.03 --eps 0.1" train_bsp="--lr 0.05 --eps 0.1" losses="0.458 0.456"
        ;;
    fm)
        index="${option[fm]} --factors 8 --batch-size 200"
        train="--lr 0.05 --eps 1" train_bsp=$train losses="0.33 0.31"
        ;;
    *) echo "straggler.sh: no '$1': --algos of lmf, lor and fm" >&2 && exit 2 ;;
    esac
}

prepare() { # ALGO: its plan
    [[ ! -e $work/$1/plan.json ]] || return 0
    [[ $1 = lor || -e ${option[$1]%% *} ]] || { echo "straggler.sh: no ${option[$1]%% *}: give --$1, or --algos without $1" >&2 && exit 1; }
    mkdir -p "$work/$1"
    [[ $1 != lor || -e $work/ctr.svm ]] || "$tools/drps-gen" ctr --samples 200K --fields 20 --rows 100K --seed 4 -o "$work/ctr.svm" --quiet
    # shellcheck disable=SC2086 # words
    "$tools/drps-index" $index --algo "$1" --workers "${option[workers]}" --partition auto -o "$work/$1/plan" --force --quiet --json >"$work/plan.json"
    mv "$work/plan.json" "$work/$1/plan.json"
}

sync_of() { # MODE: its options
    echo "--sync ${1%%:*}"
    [[ $1 != *:* ]] || echo "--staleness ${1#*:}"
}

# train ALGO TIMING MODE SEED: $work/ALGO/TIMING-MODE-SEED.json, if it is not there
train() {
    local run=$work/$1/$2-$3-$4 how=$train
    [[ ! -e $run.json ]] || return 0
    [[ $3 != bsp ]] || how=$train_bsp
    # shellcheck disable=SC2046,SC2086 # words
    "$tools/drps-train" "$work/$1/plan" -o "$run.model" --force --local "${option[workers]}" --transport "${option[transport]}" $(sync_of "$3") --epochs "${option[epochs]}" \
        $how --seed "$4" --emulate "$2:${option[seconds]}:$4" --quiet --json >"$run.new"
    rm -r "$run.model"
    mv "$run.new" "$run.json"
}

is_valid() { jq -e '.emulated | .overrun_share <= .02 and .late_share <= .02' "$1" >/dev/null; }

# train_all ALGO: every run, some at a time; again those that the machine had no time for
train_all() {
    local seed timing mode run again
    for ((again = 0; again <= option[retries]; again++)); do
        for seed in ${option[seeds]}; do
            for timing in ${option[timings]}; do
                for mode in ${option[modes]}; do
                    run=$work/$1/$timing-$mode-$seed.json
                    if ((again)); then is_valid "$run" || rm "$run"; fi
                    [[ ! -e $run ]] || continue
                    while (($(jobs -rp | wc -l) >= option[parallel])); do wait -n; done
                    train "$1" "$timing" "$mode" "$seed" &
                done
            done
        done
        while (($(jobs -rp | wc -l))); do wait -n; done
    done
}

# simulate ALGO TIMING MODE SEED: seconds of all epochs, of computation alone, with the windows of claims that the run had
simulate() {
    local steps
    steps=$(jq '.claim_window_steps | if . > 0 then . else 1 end' "$work/$1/$2-$3-$4.json") # bsp: 0, and none are claimed
    "$tools/sim_sched" --workers "${option[workers]}" --rounds "$(jq .batches "$work/$1/plan.json")" --timing "$2:${option[seconds]}:$4" \
        --epochs "${option[epochs]}" --window-steps "$steps" --modes "$3" --json | jq '.modes[0].epochs_claims_s | add'
}

# The seconds and epochs to each of $losses, on the line between the ends of two epochs, and what else a row needs of a run
digest='[foreach .epochs[] as $e (0; . + $e.seconds; {t: ., loss: $e.test_loss})] as $c |
    def reach($l): [range(1; $c | length) as $i | select($c[$i].loss <= $l) |
        (if $c[$i - 1].loss <= $l then 0 else ($c[$i - 1].loss - $l) / ($c[$i - 1].loss - $c[$i].loss) end) as $part |
        {s: ($c[$i - 1].t + $part * ($c[$i].t - $c[$i - 1].t)), epochs: ($i + $part)}][0];
    {mode: $mode, seed: $seed, epoch: ($c[-1].t / ($c | length)), forecast: ($forecast / ($c | length)), curve: $c,
     reach: [$losses | split(" ")[] | tonumber | reach(.)], waiting: ([.ranks[].waiting_share] | add / length),
     stale: (([.ranks[] | .stale_mean * .iterations] | add) / ([.ranks[].iterations, 1e-9] | add)), stale_max: ([.ranks[].stale_max] | max),
     late: .emulated.late_share, valid: (.emulated.overrun_share <= .02 and .emulated.late_share <= .02)}'

rows() { # ALGO TIMING: a row a mode, and the best SSP
    local mode seed
    for mode in ${option[modes]}; do
        for seed in ${option[seeds]}; do
            jq -c --arg mode "$mode" --arg losses "$losses" --argjson seed "$seed" \
                --argjson forecast "$(simulate "$1" "$2" "$mode" "$seed")" "$digest" "$work/$1/$2-$mode-$seed.json"
        done
    done >"$work/$1/$2.runs"
    for mode in ${option[modes]}; do # medians, for the plot
        jq -rs --arg mode "$mode" 'def median: sort | (.[(length - 1) / 2 | floor] + .[length / 2 | floor]) / 2;
            map(select(.mode == $mode).curve) | transpose[] | "\(map(.t) | median) \(map(.loss) | median)"' "$work/$1/$2.runs" >"$work/$1/$2-$mode.curve"
    done
    jq -rs --arg losses "$losses" --arg modes "${option[modes]}" 'def median: sort | (.[(length - 1) / 2 | floor] + .[length / 2 | floor]) / 2;
        def r(n): . * pow(10; n) | round / pow(10; n); . as $runs | ($losses | split(" ")) as $l | range($l | length) as $i | ($modes | split(" ")[]) as $m |
        [$runs[] | select(.mode == $m).reach[$i]] | if any(. == null) then empty else
            "\($l[$i])\t\($m)\t\(map(.s) | "\(median | r(1)) (\(min | r(1)) to \(max | r(1)))"), \(map(.epochs) | median | r(2))" end' "$work/$1/$2.runs" |
        while IFS=$'\t' read -r loss mode figure; do
            record "straggler|$(model_name "$1" "" | sed 's/, rank $//') to $loss, $2|$mode" "$figure"
        done
    jq -rs --arg name "$1, $2" --arg losses "$losses" --arg modes "${option[modes]}" '
        def median: if any(. == null) or length == 0 then null else sort | (.[(length - 1) / 2 | floor] + .[length / 2 | floor]) / 2 end;
        def r(n): if . == null then "-" else . * pow(10; n) | round / pow(10; n) end;
        def spread(n): if any(. == null) then "-" else "\(median | r(n)) (\(min | r(n)) to \(max | r(n)))" end;
        . as $runs | ($losses | split(" ")) as $l | [$modes | split(" ")[] as $m | {mode: $m, runs: ($runs | map(select(.mode == $m)))}] as $by |
        def to($i; f): [.runs[].reach[$i] | f];
        def over($other; $i; f): [.runs, $other.runs] | transpose |
            map(if .[0].reach[$i] and .[1].reach[$i] then (.[0] | f) / (.[1] | f) else null end);
        def over_both($other; $i): "\(over($other; $i; .reach[$i].s) | spread(2)), simulated \(over($other; $i; .reach[$i].epochs * .forecast) | spread(2))";
        ([$by[] | select(.mode == "wsp")][0]) as $wsp |
        ($by[] | . as $b | "| \($name), \(.mode) | \([.runs[].epoch] | median | r(2)) | \([.runs[] | .epoch / .forecast] | median | r(3)) |" +
            ([range($l | length) as $i | " \($b | to($i; .s) | spread(1)) | \($b | to($i; .epochs) | spread(2)) |" +
                (if $wsp then " \($b | over_both($wsp; $i)) |" else " - |" end)] | join("")) +
            " \([.runs[].waiting] | median * 100 | r(0)) % | \([.runs[].stale] | median | r(1)), \([.runs[].stale_max] | max) |" +
            " \([.runs[].late] | max * 100 | r(1)) %\(if all(.runs[]; .valid) then "" else ", \([.runs[] | select(.valid | not)] | length) not valid" end) |"),
        (range($l | length) as $i | [$by[] | select(.mode | startswith("ssp")) | . + {s: (to($i; .s) | median)} | select(.s)] | min_by(.s) |
            if . and $wsp then "best SSP, \($name), loss \($l[$i]): bound \(.mode[4:]), \(.s | r(1)) s, \(over_both($wsp; $i)) times wsp" else empty end)' \
        "$work/$1/$2.runs" | tee >(grep -v '^|' >>"$work/best") | grep '^|'
}

plot() {
    local algo timing mode across down
    across=$(wc -w <<<"${option[timings]}") down=$(wc -w <<<"${option[algos]}")
    {
        echo "set terminal pngcairo size $((500 * across)),$((60 + 400 * down)) font 'sans,10'; set output '${option[png]}'"
        echo "set multiplot layout $down,$across title '${option[workers]} ranks, batches of ${option[seconds]} s, medians of $(wc -w <<<"${option[seeds]}") seeds: bench/straggler.sh'"
        echo "set grid; set key top right; set xlabel 'seconds'; set ylabel 'test loss'; set style data linespoints; set linetype 5 lc 'red'; set xrange [0:*]"
        for algo in ${option[algos]}; do
            describe "$algo"
            for timing in ${option[timings]}; do
                echo "set title '$algo, $timing'"
                echo -n "plot "
                for mode in ${option[modes]}; do echo -n "'$work/$algo/$timing-$mode.curve' using 1:2 title '$mode' noenhanced, "; done
                for loss in $losses; do echo -n "$loss notitle lc 'gray' dt 2, "; done
                echo
            done
        done
        echo "unset multiplot"
    } | sed 's/, $//' | gnuplot
}

: >"$work/best"
for algo in ${option[algos]}; do
    describe "$algo"
    prepare "$algo"
    echo "$algo: $(jq .batches "$work/$algo/plan.json") batches an epoch and rank; $train (bsp: $train_bsp); ${option[workers]} ranks, ${option[transport]}," \
        "a batch takes ${option[seconds]} s; seeds ${option[seeds]}; $(nproc) cores, load $(cut -d ' ' -f 1-3 /proc/loadavg)"
    echo
    train_all "$algo"
    echo "| timing, mode | s an epoch | over the simulated |$(for l in $losses; do echo -n " s to $l | epochs | times wsp's s |"; done) waiting | staleness: mean, largest | late at most |"
    echo "| --- | --- | --- |$(for l in $losses; do echo -n " --- | --- | --- |"; done) --- | --- | --- |"
    for timing in ${option[timings]}; do rows "$algo" "$timing"; done
    echo "load $(cut -d ' ' -f 1-3 /proc/loadavg)"
    echo
done
cat "$work/best"
plot
