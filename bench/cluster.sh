#!/usr/bin/env bash
# Ranks on this machine: samples/s of the second epoch, bytes on the wire beside the forecast, and what workers waited,
# for rounds of the same number of samples on 1 rank, on 2 threads of one process, and on 2 processes over ZeroMQ.
#   bench/cluster.sh [ROUNDS]      how often, one after another; medians are printed (default 3)
# All ranks share this machine's cores: what is seen is what rounds cost, not what more machines bring.
. "$(dirname "$0")/lib.sh"
rounds=${1:-3}
"$tools/drps-gen" ctr --samples "${DRPS_BENCH_SAMPLES:-400K}" --fields 20 --rows 500K --seed 1 -o "$work/ctr.svm" --force --quiet

# measure PLAN TRAIN-OPTIONS...: "samples/s sent-MB forecast-MB waiting-share", of the second epoch and of all ranks
measure() {
    local plan=$1
    shift
    "$tools/drps-train" "$plan" -o "$work/model" --force --epochs 2 --quiet --json "$@" >"$work/train.json"
    jq -r '[.epochs[1].samples_per_s, ([.ranks[]?.sent_bytes] | add // 0) / 2e6,
            ([.ranks[]?.forecast_sent_bytes] | add // 0) / 2e6, ([.ranks[]?.waiting_share] | add // 0) / ([.ranks[]?] | length + 1e-9)] | @tsv' "$work/train.json"
}

# note_row NAME RANKS: the medians, as rows
note_row() {
    local model=${1%%,*} round=${1##*round-} row how
    row="cluster|$(model_name "${model%-*}" "${model#*-}"), rounds of $round"
    case $2 in
    1) how="one worker" ;;
    *) how=${2/2 /two } ;;
    esac
    record "$row|$how" "$(cut -f1 "$work/figures" | median | awk '{printf "%.2f", $1 / 1e6}')" M
    [[ $2 = 1 ]] || record "$row|$how: waiting" "$(cut -f4 "$work/figures" | median | awk '{printf "%.0f", 100 * $1}')" %
    [[ $2 != "2 processes" ]] || record "$row|MB a rank sends in an epoch" "$(cut -f2 "$work/figures" | median | awk '{printf "%.2f", $1 / 2}')"
}

printf '%-22s %-16s %12s %14s %14s %8s\n' model ranks samples/s "MB sent/epoch" "forecast" waited
while read -r name round options; do
    for workers in 1 2; do
        # shellcheck disable=SC2086
        "$tools/drps-index" "$work/ctr.svm" $options --batch-size $((round / workers)) --workers $workers -o "$work/plan-$workers" --force --quiet
    done
    for ranks in "1" "2 threads" "2 processes"; do
        how=()
        [[ $ranks = 1 ]] || how=(--local 2)
        [[ $ranks != "2 threads" ]] || how+=(--transport inproc)
        for ((i = 0; i < rounds; i++)); do measure "$work/plan-${ranks%% *}" "${how[@]}"; done >"$work/figures"
        printf '%-22s %-16s %12.0f %14.2f %14.2f %7.1f%%\n' "$name" "$ranks" "$(cut -f1 "$work/figures" | median)" \
            "$(cut -f2 "$work/figures" | median)" "$(cut -f3 "$work/figures" | median)" \
            "$(cut -f4 "$work/figures" | median | awk '{print 100 * $1}')"
        note_row "$name" "$ranks"
    done
done <<'CASES'
lor,round-1000 1000 --algo lor
lor,round-10000 10000 --algo lor
fm-16,round-2000 2000 --algo fm --factors 16
fm-64,round-2000 2000 --algo fm --factors 64
CASES
