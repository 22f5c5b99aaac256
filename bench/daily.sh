#!/usr/bin/env bash
# A week of clicks with features that come and go, of which a model is to be had each night that does well on the next day:
#   daily   drps-index --base of the day, drps-train --from the model of the day before, one epoch, with the optimizer's state
#   fresh   the same, but the optimizer begins anew each day (--no-state)
#   replay  as daily, with a fifth of the samples of the plan before (drps-index --replay 0.2)
#   full    a plan and a model of all days so far, from scratch, of the epoch that is best on the next day
#   alone   a plan and a model of the day alone, of the epoch that is best on the next day
# Each way has the learning rate of a few whose mean loss over days 2 to 7 is best. Losses are of the next day's samples, and of 5 %
# of the day's own, which nobody trains on. Prints tables: loss; and what a night takes, daily and full, with these rates.
#   bench/daily.sh [SAMPLES]      of a day (default 100000); there are twice as many features at a time
. "$(dirname "$0")/lib.sh"
day=${1:-100000}
rates=(${DRPS_BENCH_RATES:-0.01 0.02 0.04 0.08 0.16})
model=(--algo fm --factors 8 --batch-size 500)
cd "$work"

"$tools/drps-gen" ctr --samples $((8 * day)) --day-samples "$day" --drift 0.1 --fields 20 --rows $((2 * day)) --interactions 4 \
    --seed 3 -o all --quiet
for d in 1 2 3 4 5 6 7 8; do
    sed -n "$(((d - 1) * day + 1)),$((d * day))p" all | awk -v d=$d 'NR % 20 == 0 {print >("own" d); next} {print >("day" d)}'
done
rm all

index() { "$tools/drps-index" "$@" --quiet --json >index.json; }
train() { "$tools/drps-train" "$@" --quiet --json >train.json 2>train.err || { cat train.err >&2 && exit 1; }; }
own() { "$tools/drps-predict" "$1" "own$2" -o scores --force --metrics --json --quiet | jq .test_loss; }
# took NAME DAY: the night's seconds, text, plan, and what drps-train has read and written, of the last index and train
took() {
    jq -rs '[.[0].seconds + .[1].seconds, .[0].plan_bytes, .[1].process_read_bytes, .[1].process_written_bytes, .[0].rows] | @tsv' \
        index.json train.json >"$1.$2.took"
}

# follow NAME RATE SHARE OPTION...: day after day, each model from the one before. The first day is that of all ways.
follow() {
    local name=$1 rate=$2 share=$3 d
    shift 3
    for d in 2 3 4 5 6 7; do
        index day$d --base "$name$((d - 1))" --replay "$share" --test "day$((d + 1))" -o "$name$d"
        train "$name$d" --from "$name$((d - 1)).m" -o "$name$d.m" --lr "$rate" --keep-checkpoints "$@"
        took "$name" $d
        jq .epochs[-1].test_loss train.json >"$name.$d.next"
        own "$name$d.m" $d >"$name.$d.own"
        rm -rf "$name$((d - 1))"{,.m,.m.checkpoint}
    done
    rm -rf "$name"7{,.m,.m.checkpoint}
}

# anew NAME RATE DAY FILE...: a plan and a model of these files, of the best epoch
anew() {
    local name=$1 rate=$2 d=$3 best
    shift 3
    index "$@" "${model[@]}" --test "day$((d + 1))" -o "$name"
    train "$name" -o "$name.m" --lr "$rate" --epochs 12 --patience 1
    best=$(jq .best_epoch train.json)
    jq ".epochs[$best - 1].test_loss" train.json >"$name.$d.next"
    own "$name.m" "$d" >"$name.$d.own"
    train "$name" -o "$name.m" --force --lr "$rate" --epochs "$best"
    took "$name" "$d"
    rm -rf "$name" "$name.m"
}

mean() { cat "$1".[2-7]."$2" | awk '{s += $1} END {printf "%.6f", s / NR}'; }
declare -A rate_of
# better NAME RATE: NAME.try, run with RATE, becomes NAME if its mean loss is less
better() {
    local file
    if [[ -z ${rate_of[$1]:-} ]] || awk "BEGIN {exit !($(mean "$1.try" next) < $(mean "$1" next))}"; then
        for file in "$1.try".[2-7].*; do mv "$file" "$1${file#"$1.try"}"; done
        rate_of[$1]=$2
    fi
}
for rate in "${rates[@]}"; do
    for d in 2 3 4 5 6 7; do
        anew full.try "$rate" $d $(seq -f day%g 1 $d)
        anew alone.try "$rate" $d day$d
    done
    better full "$rate" && better alone "$rate"
    for way in daily fresh replay; do
        index day1 "${model[@]}" --test day2 -o $way.try1
        train $way.try1 -o $way.try1.m --lr 0.04 --epochs 2 --keep-checkpoints
        follow $way.try "$rate" $([[ $way = replay ]] && echo 0.2 || echo 0) $([[ $way != fresh ]] || echo --no-state)
        better $way "$rate"
    done
done

echo "$day samples a day, of which 5 % are held out; fm of 8 factors; rates: daily ${rate_of[daily]}, fresh ${rate_of[fresh]}, replay ${rate_of[replay]}, full ${rate_of[full]}, alone ${rate_of[alone]}"
echo
{
    echo "| day | rows | next day: daily | fresh | replay | full | alone | same day: daily | same day: full |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for d in 2 3 4 5 6 7; do
        echo "| $d | $(cut -f5 daily.$d.took) |$(for w in daily fresh replay full alone; do printf ' %.5f |' "$(cat $w.$d.next)"; done)$(for w in daily full; do printf ' %.5f |' "$(cat $w.$d.own)"; done)"
    done
    echo "| mean | |$(for w in daily fresh replay full alone; do printf ' %.5f |' "$(mean $w next)"; done)$(for w in daily full; do printf ' %.5f |' "$(mean $w own)"; done)"
} | tables daily-loss
awk "BEGIN {printf \"\nnext day: daily has %.4f of the loss of full, fresh %.4f, replay %.4f, alone %.4f; same day: daily %.4f\n\n\", $(mean daily next) / $(mean full next), $(mean fresh next) / $(mean full next), $(mean replay next) / $(mean full next), $(mean alone next) / $(mean full next), $(mean daily own) / $(mean full own)}"
{
    echo "| day | daily: seconds | daily: text | daily: plan | daily: read | daily: written | full: seconds | full: text | full: plan | full: read | full: written |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    mib() { awk "BEGIN {printf \"%.1f MiB\", $1 / 1048576}"; }
    for d in 2 3 4 5 6 7; do
        line="| $d |"
        for w in daily full; do
            read -r seconds plan reads writes _ <$w.$d.took
            text=$(if [[ $w = daily ]]; then stat -c %s day$d; else stat -c %s $(seq -f day%g 1 $d) | paste -sd+ | bc; fi)
            line+=" $(printf %.2f "$seconds") | $(mib "$text") | $(mib "$plan") | $(mib "$reads") | $(mib "$writes") |"
        done
        echo "$line"
    done
} | tables daily-night
