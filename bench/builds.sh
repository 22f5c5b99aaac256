#!/usr/bin/env bash
# Two builds of drps side by side: does a change cost speed? Trains the same plans with both, in turn and in random order, and with
# a copy of the first build, whose distance from the first is what chance does. The tools of the first build make the data and the
# plans, so the second one must read plans of the first.
#   bench/builds.sh FOLDER_OF_TOOLS OTHER_FOLDER_OF_TOOLS [ROUNDS]
# Columns: case; build; millions of samples a second, medians over rounds of the median epoch; ratio to the first build, median of
# pairs. Environment: DRPS_BENCH_SAMPLES (clicks, default 1M), DRPS_BENCH_RATINGS (default 4M).
export DRPS_TOOLS=${1:?the folder of tools of a build}
. "$(dirname "$0")/lib.sh"
other=${2:?the folder of tools of another build}
rounds=${3:-12}
cp -r "$tools" "$work/copy"

"$tools/drps-gen" ctr --samples "${DRPS_BENCH_SAMPLES:-1M}" --rows 5M -q -o "$work/clicks"
"$tools/drps-gen" matrix --ratings "${DRPS_BENCH_RATINGS:-4M}" --users 60K --items 20K -q -o "$work/ratings"
factors=--factors
"$tools/drps-index" --help | grep -- --factors >/dev/null || factors=--rank # its name in older builds
index() { "$tools/drps-index" --batch-size 1000 -q "$@"; }
index "$work/clicks" -o "$work/lor" --algo lor
index "$work/clicks" -o "$work/fm" --algo fm "$factors" 16
index "$work/ratings" -o "$work/lmf" --algo lmf "$factors" 32 --order grid

# rate TOOLS PLAN CPUS OPTION...: millions of samples a second
rate() {
    taskset -c "$3" "$1/drps-train" "$work/$2" -o "$work/model" --force --quiet --json "${@:4}" |
        jq '[.epochs[1:][].samples_per_s / 1e6] | sort | .[length / 2 | floor]'
}

# case_of TITLE PLAN CPUS OPTION...
case_of() {
    local title=$1 i build
    shift
    rm -f "$work"/rates.*
    for ((i = 0; i < rounds; i++)); do
        for build in $(shuf -e first copy second); do
            case $build in first) rate "$tools" "$@" ;; copy) rate "$work/copy" "$@" ;; second) rate "$other" "$@" ;; esac >>"$work/rates.$build"
        done
    done
    for build in first copy second; do
        paste "$work/rates.first" "$work/rates.$build" | awk '{print $2 / $1}' | sort -g | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}' >"$work/ratio"
        printf '| %s | %s | %.2f | %.3f |\n' "$title" "$build" "$(sort -g "$work/rates.$build" | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}')" "$(cat "$work/ratio")"
    done
}
{
    echo "| case | build | M samples/s | ratio |"
    echo "| --- | --- | --- | --- |"
    case_of "lor, resident, one thread" lor 1 --epochs 8 --store resident --memory 2G
    case_of "fm of 16 factors, resident, one thread" fm 1 --epochs 4 --store resident --memory 2G
    case_of "lmf of 32 factors, resident, two threads" lmf 0,1 --epochs 3 --threads 2 --store resident --memory 2G
    case_of "fm of 16 factors, relay in 64M, two processors" fm 0,1 --epochs 3 --store relay --memory 64M
} | tables builds 2
