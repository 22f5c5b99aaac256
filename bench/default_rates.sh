#!/usr/bin/env bash
# Held-out log loss of lor after one epoch and in the best of ten, with the optimizers and rates that could be the default:
# the table of docs/quality.md. Sets whose entries are all 1, or most of them (categories, words), and sets of other values.
# Small sets are split at random several times; the losses are means.
#   bench/default_rates.sh [DATA]      DATA: folder with the sets of a9a, imdb, ... as .xz (default ../shared/data)
. "$(dirname "$0")/lib.sh"
data=${1:-$root/../shared/data}
[[ -d $data/a9a ]] || { echo "bench: no data sets in $data" >&2; exit 77; }
cd "$work"
. "$root/bench/sets_of_classes.sh"
from_one() { awk '{printf "%s", $1; for (i = 2; i <= NF; i++) {split($i, a, ":"); printf " %d:%s", a[1] + 1, a[2]} print ""}'; }
two_classes() { awk -v from="$1" '{$1 = $1 < from; print}' "$2"; }
runs=("--lr .05 --eps 1e-8" "--lr .07 --eps 1" "--lr .1 --eps 1" "--optimizer ftrl --lr .1")

# losses NAME INDEX-OPTIONS...: of each run a line "NAME RUN first best"
losses() {
    local name=$1 run
    shift
    "$tools/drps-index" "$@" --algo lor -o plan --force --quiet
    for run in "${runs[@]}"; do
        # shellcheck disable=SC2086  # words
        "$tools/drps-train" plan -o model --force --quiet --json --epochs 10 $run 2>/dev/null |
            jq -r --arg name "$name" --arg run "$run" '[$name, $run, .epochs[0].test_loss, (.epochs | map(.test_loss) | min)] | @tsv'
    done
}
whole() { losses "$1" "$1.train" --test "$1.test"; }
split() { # NAME FILE SEEDS INDEX-OPTIONS...
    local name=$1 file=$2 seeds=$3 seed
    shift 3
    for seed in $(seq "$seeds"); do losses "$name" "$file" --test-fraction 0.2 --seed "$seed" "$@"; done
}
xz -dc "$data/a9a/a9a.xz" >a9a.train
xz -dc "$data/a9a/a9a.t.xz" >a9a.test
xz -dc "$data"/criteo-sample/criteo.{train,dev,test}.libsvm.xz >criteo
xz -dc "$data"/criteo-sample/{train,dev,test}.csv.xz >criteo-raw
xz -dc "$data/frappe/frappe.validation.libfm.xz" | from_one >frappe.train
xz -dc "$data/frappe/frappe.test.libfm.xz" | from_one >frappe.test
xz -dc "$data"/ipinyou/{train,test}.fm.txt.xz | from_one >ipinyou
for part in train test; do
    xz -dc "$data/imdb/imdb-bigram.$part.libsvm.xz" >imdb-bigrams.$part
    xz -dc "$data/imdb/imdb.$part.libsvm.xz" >imdb-words.$part
    for set in tfidf:10 news:10 mnist:5; do two_classes "${set#*:}" "${set%:*}.$part" >"two-${set%:*}.$part"; done
done
xz -dc "$data/abalone/abalone.libsvm.xz" | two_classes 10 - >abalone
for seed in 1 2; do python3 "$root/bench/click_log.py" 400000 $seed >clicks-$seed.csv; done
"$tools/drps-gen" ctr --samples 200K --rows 300K --test-samples 50K --seed 3 -o ctr.train --test-output ctr.test --quiet
{
    for set in a9a frappe imdb-bigrams imdb-words ctr two-tfidf two-news two-mnist; do whole $set; done
    for set in criteo ipinyou abalone; do split $set $set 5; done
    split criteo-raw criteo-raw 3
    for seed in 1 2; do split clicks-$seed clicks-$seed.csv 3 --label is_attributed; done
} | awk -F'\t' '{
    if (!($1 in seen)) {seen[$1] = 1; set[++sets] = $1}
    if (!($2 in known)) {known[$2] = 1; run[++runs] = $2}
    n[$1, $2]++; first[$1, $2] += $3; best[$1, $2] += $4
} END {
    line = "| set |"; rule = "| --- |"
    for (r = 1; r <= runs; r++) {line = line " " run[r] " |"; rule = rule " --- |"}
    print line "\n" rule
    for (i = 1; i <= sets; i++) {
        line = "| " set[i] " |"
        for (r = 1; r <= runs; r++) {at = set[i] SUBSEP run[r]; line = line sprintf(" %.5f, %.5f |", first[at] / n[at], best[at] / n[at])}
        print line
    }
}' | tables default-rates
