#!/usr/bin/env bash
# What checkpoints cost, and how long it takes to go on from one: factorization machines of several sizes, by store. Prints a table,
# records its figures (rows.sh) and draws docs/checkpoint.png. A model that differs from the one without checkpoints ends the script.
#   bench/checkpoint.sh
# Options, each with a value:
#   --sizes "100M 500M 2G"          bytes of rows with the optimizer's state, about
#   --stores "resident relay file rocksdb leveldb"   all but resident get memory for a quarter of the rows
#   --every 10s     time between checkpoints       --seconds N   that a run takes at least (60: some checkpoints)
#   --rounds N (3)  runs in turn: without checkpoints, with them, and with all rows written at each; medians
#   --samples N (1M), --rows N (2M)   clicks of 39 features    --scratch DIR (/tmp), --png FILE (docs/checkpoint.png)
# Columns: samples/s without and with checkpoints, their time included; the part that is left, median of pairs, and what would be at
# one checkpoint a minute; the bytes that a checkpoint writes and its seconds, as it is (only what has changed since the one before)
# and with --checkpoint-rows; beside it cp and sync of the same file, which is what the disk allows, and RocksDB's own checkpoint of the
# database that a killed run has left (second names of its files: no copy, and lost when the database is); seconds from the start
# of drps-train --resume until its first step was done.
# Needs jq; the picture gnuplot. Disk: some eight times the largest size. As it stands it takes about two hours.
usage() { sed -n '2,/^usage()/{/^usage()/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; }
declare -A option=()
while (($#)); do
    case ${1#--} in
    sizes | stores | every | seconds | rounds | samples | rows | scratch | png) ;;
    *) usage >&2 && exit 2 ;;
    esac
    (($# > 1)) || { echo "$1: the value is missing" >&2 && exit 2; }
    option[${1#--}]=$2
    shift 2
done
export TMPDIR=${option[scratch]:-/tmp}
# shellcheck source=bench/lib.sh
. "$(dirname "$0")/lib.sh"
every=${option[every]:-10s}
seconds=${option[seconds]:-60}
rounds=${option[rounds]:-3}
cd "$work"

die() { echo "checkpoint.sh: $*" >&2 && exit 1; }
# took COMMAND...: its seconds
took() {
    local begin=${EPOCHREALTIME/./}
    "$@" >/dev/null
    echo $((${EPOCHREALTIME/./} - begin)) | awk '{printf "%.3f\n", $1 / 1e6}'
}

"$tools/drps-gen" ctr --samples "${option[samples]:-1M}" --rows "${option[rows]:-2M}" --seed 1 -q -o clicks
"$tools/drps-index" clicks --algo lor --batch-size 1000 -q -o lor
rows=$(jq .rows lor/plan.json)

# memory_of PLAN STORE BYTES: for so many bytes of rows, or for the least that will do if that is more
memory_of() {
    local least
    least=$({ "$tools/drps-train" "$1" -o none --store "$2" --memory 1M 2>&1 || true; } |
        sed -n 's/.*at least \([0-9.]*\) MiB.*/\1/p' | awk '{print int(($1 + 1) * 1048576)}')
    [[ -n $least ]] || die "no store $2"
    if [[ $2 = resident ]]; then echo $((least + 1024 * 1048576)); else echo $((least + $3 / 4)); fi
}

train() { # OPTION...: of the plan, store and memory at hand
    "$tools/drps-train" plan -o model --store "$store" --memory "$memory" --force --quiet --json "$@"
}

# rate FILE: samples a second with the time of checkpoints
rate() { jq "$samples * (.epochs | length) / (([.epochs[].seconds] | add) + .checkpoints.seconds)" "$1"; }

# checkpoints FILE: appends seconds and bytes of one to FILE.seconds and FILE.bytes
checkpoints() {
    [[ $(jq .checkpoints.written "$1.json") -gt 0 ]] || die "no checkpoint was written in $(jq .seconds "$1.json") s: more --seconds"
    jq '.checkpoints.seconds / .checkpoints.written' "$1.json" >>"$1.seconds"
    jq '.checkpoints.bytes / .checkpoints.written' "$1.json" >>"$1.bytes"
}

pair() { # ROUND: a run without checkpoints, one with, and one with all rows; who begins changes
    local way ways="with without all"
    local -A options=([with]="--checkpoint-every $every" [without]="--checkpoint-every never"
        [all]="--checkpoint-every $every --checkpoint-rows")
    (($1 % 2)) || ways="all without with"
    for way in $ways; do
        rm -rf model model.checkpoint
        # shellcheck disable=SC2086  # words
        train --epochs "$epochs" ${options[$way]} >"$way.json"
        [[ $(jq -c '[.content, [.epochs[].train_loss]]' "$way.json") = "$same" ]] || die "the model with --store $store is another one"
        rate "$way.json" >>"$way.rates"
    done
    checkpoints with
    checkpoints all
    paste with.rates without.rates | tail -n 1 | awk '{print $1 / $2}' >>left
}

# Leaves checkpoints of a run that was killed, once there are two.
kill_one() {
    local pid
    rm -rf model model.checkpoint
    "$tools/drps-train" plan -o model --store "$store" --memory "$memory" --epochs 100000 --checkpoint-every "$every" -q >/dev/null 2>&1 &
    pid=$!
    until [[ -e model.checkpoint/rank-0/2 ]]; do
        kill -0 $pid 2>/dev/null || die "the run that was to be killed has ended"
        read -rt 0.05 <> <(:) || true
    done
    kill -KILL $pid
    wait $pid 2>/dev/null || true
}

# Seconds until the first step of a run that goes on; it is stopped when it has surely done some.
resume() {
    local limit=$((15 + $1 / 20000000))
    timeout --foreground -s INT -k 600 "$limit" "$tools/drps-train" plan -o model --store "$store" --memory "$memory" --resume --quiet --json \
        >resumed.json 2>resumed.txt || [[ -s resumed.json ]] || die "no resumed run: $(cat resumed.txt)"
    jq -e '.resumed_epoch > 0' resumed.json >/dev/null || die "the run began anew"
    jq -e '.first_step_seconds | numbers' resumed.json || die "no step within $limit s"
}

case_of() { # SIZE: one row of the table
    local i bytes newest copied own=- again
    memory=$(memory_of plan "$store" "$state")
    rm -f ./*.rates ./*.seconds ./*.bytes left
    for ((i = 0; i < rounds; i++)); do pair "$i"; done
    bytes=$(median <all.bytes | awk '{printf "%.0f", $1}')
    kill_one
    if [[ $store = rocksdb && -x $tools/bench_rocksdb_checkpoint ]]; then
        own=$("$tools/bench_rocksdb_checkpoint" model.partial/store/blocks own | jq .seconds)
        rm -rf own
    fi
    newest=$(find model.checkpoint/rank-0 -name checkpoint.json | sort -V | tail -n 1)
    cat "${newest%/*}"/*/*.rec >before # so that it is in the page cache, as rows are that are written
    copied=$(for ((i = 0; i < rounds; i++)); do took sh -c 'cp before copy && sync copy'; done | median)
    rm -f before copy
    again=$(resume "$bytes")
    printf '| %s | %s | %.0f K | %.0f K | %.1f %% | %.2f %% | %.0f MB | %.2f s | %.0f MB | %.2f s | %.2f s | %s | %.2f s |\n' "$1" "$store" \
        "$(median <without.rates | awk '{print $1 / 1e3}')" "$(median <with.rates | awk '{print $1 / 1e3}')" \
        "$(median <left | awk '{print 100 * $1}')" "$(median <with.seconds | awk '{print 100 * (1 - $1 / 60)}')" \
        "$(median <with.bytes | awk '{print $1 / 1e6}')" "$(median <with.seconds)" \
        "$(awk -v b="$bytes" 'BEGIN {print b / 1e6}')" "$(median <all.seconds)" "$copied" \
        "$([[ $own = - ]] && echo - || printf '%.3f s' "$own")" "$again"
    echo "$store $state $(median <with.seconds) $copied $again $(median <left)" >>"$work/picture.tsv"
    rm -rf model model.checkpoint model.partial model.trained
}

draw() { # FILE
    gnuplot <<PLOT
set terminal pngcairo size 1200,450 font 'sans,10'
set output '$1'
set multiplot layout 1,3
set grid; set logscale x; set xlabel 'MB of rows with the optimizer''s state'; set key top left
stores = '${option[stores]:-resident relay file rocksdb leveldb}'
set yrange [0:*]
set ylabel 'seconds a checkpoint'
plot for [s in stores] '< grep ^'.s.' $work/picture.tsv' using (\$2 / 1e6):3 with linespoints lw 2 pt 7 title s, \
    '$work/picture.tsv' using (\$2 / 1e6):4 smooth unique with lines dt 2 lw 2 title 'cp and sync'
set ylabel 'seconds until the first step, resumed'
plot for [s in stores] '< grep ^'.s.' $work/picture.tsv' using (\$2 / 1e6):5 with linespoints lw 2 pt 7 title s
set ylabel 'samples/s with one every $every, % of those without'; set key bottom left
plot for [s in stores] '< grep ^'.s.' $work/picture.tsv' using (\$2 / 1e6):(100 * \$6) with linespoints lw 2 pt 7 title s
unset multiplot
PLOT
}

{
    echo "| rows with state | store | samples/s without | with one every $every | part left | with one a minute | a checkpoint writes | it takes | all rows | they take | cp and sync | RocksDB's own | resumed: first step after |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for size in ${option[sizes]:-100M 500M 2G}; do
        factors=$(numfmt --from=si "$size" | awk -v rows="$rows" '{f = int($1 / rows / 8 + .5) - 1; print f < 1 ? 1 : f}')
        rm -rf plan
        "$tools/drps-index" clicks --algo fm --factors "$factors" --batch-size 1000 -q -o plan
        samples=$(jq .samples plan/plan.json) state=$((rows * 8 * (factors + 1)))
        store=resident memory=$(memory_of plan resident "$state")
        train --epochs 2 --checkpoint-every never >first.json
        epochs=$(jq "$seconds / .epochs[1].seconds | ceil | if . < 2 then 2 else . end" first.json)
        train --epochs "$epochs" --checkpoint-every never >same.json
        same=$(jq -c '[.content, [.epochs[].train_loss]]' same.json)
        for store in ${option[stores]:-resident relay file rocksdb leveldb}; do
            case_of "$(awk -v b="$state" 'BEGIN {printf "%.0f MB", b / 1e6}')"
        done
    done
} | tables checkpoint 2
if command -v gnuplot >/dev/null; then draw "${option[png]:-$root/docs/checkpoint.png}"; else echo "checkpoint.sh: no gnuplot, no picture" >&2; fi
