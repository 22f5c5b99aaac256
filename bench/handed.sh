#!/usr/bin/env bash
# What drps-index --hand-on brings, as plans for eight workers say: values moved in the training rounds of an epoch, to what
# dealt samples and hashed rows would move with every row pulled and pushed. Columns: homes and placed samples without, and with
# rows handed on, for the state of sgd, adagrad; slots that a worker has at most (sgd); bytes of the plan's two files for each
# row of a batch that another machine holds (sgd). All are exact counts.
#   bench/handed.sh [DATA]      DATA: default ../shared/data; sets that are not there are left out, and it says so
# Environment, besides lib.sh's: DRPS_BENCH_WORKERS (default 8)
. "$(dirname "$0")/lib.sh"
data=${1:-$root/../shared/data}
workers=${DRPS_BENCH_WORKERS:-8}
titles="set, batch | samples | plain | handed on, sgd | adagrad | slots, most | bytes a remote row"

# plan SAMPLES HAND-ON-OPTIONS INDEX-OPTIONS...: makes $work/plan, and prints its JSON
plan() {
    local samples=$1 hand_on=$2
    shift 2
    # shellcheck disable=SC2086 # several options
    "$tools/drps-index" "$@" --workers "$workers" --partition auto --samples "$samples" $hand_on -o "$work/plan" --force \
        --quiet --no-forecast --json
}

# measure NAME INDEX-OPTIONS...: a line of the table for each way of the samples
measure() {
    local name=$1 samples bytes rows
    shift
    for samples in placed round; do
        plan "$samples" "--hand-on all --hand-on-for adagrad" "$@" >"$work/adagrad.json"
        plan "$samples" "--hand-on all --hand-on-for sgd" "$@" >"$work/sgd.json"
        bytes=$(cat "$work"/plan/rank-*/handed.rec "$work"/plan/rank-*/lent.rec | wc -c)
        rows=$(jq .cluster.pulled_rows "$work/sgd.json")
        jq -r --arg name "$name" --arg samples "$samples" --argjson bytes "$bytes" --argjson rows "$rows" \
            --slurpfile adagrad "$work/adagrad.json" '
            def digits(n): . * pow(10; n) | round / pow(10; n);
            def handed: .moved_of_hashed * (.handed_on_of_plain // 1) | digits(3);
            "| \($name) | \($samples) | \(.moved_of_hashed | digits(3)) | \(handed) | \($adagrad[0] | handed) | " +
            "\(.cluster.handed_on.slots) | \($bytes / $rows | digits(2)) |"' "$work/sgd.json"
    done
}
run() { measure "$@" | tables handed 2 "$titles"; }

# text FOLDER FILE...: sets `input`, unpacked; fails, and says so, where the set is not there
text() {
    local folder=$1 file
    shift
    if [[ ! -d $data/$folder ]]; then
        echo "bench: no $folder in $data: left out" >&2
        return 1
    fi
    input=$work/$folder.txt
    for file in "$@"; do xz -dc "$data/$folder/$file.xz"; done >"$input"
}

echo "| $titles |"
echo "| --- | --- | --- | --- | --- | --- | --- |"
"$tools/drps-gen" ctr --samples 400K --fields 20 --rows 500K --seed 1 -o "$work/ctr.svm" --force --quiet
run "CTR of independent features 1000" "$work/ctr.svm" --algo lor --batch-size 1000
if text criteo-sample criteo.train.libsvm; then run "criteo 100" "$input" --format libsvm --algo lor --batch-size 100; fi
if text ipinyou train.fm.txt; then
    run "ipinyou 100" "$input" --format libsvm --algo lor --batch-size 100
    run "ipinyou 1000" "$input" --format libsvm --algo lor --batch-size 1000
fi
if text frappe frappe.test.libfm frappe.validation.libfm; then run "frappe 100" "$input" --format libsvm --algo lor --batch-size 100; fi
if text ml-1m ratings.tsv; then
    run "ml-1m 100" "$input" --format ratings --algo lmf --factors 16 --batch-size 100
    run "ml-1m 1000" "$input" --format ratings --algo lmf --factors 16 --batch-size 1000
fi
if text 20news 20news.train.libsvm; then run "20news 100" "$input" --format libsvm --algo lir --batch-size 100; fi
