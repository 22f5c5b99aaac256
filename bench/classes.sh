#!/usr/bin/env bash
# Several classes: seconds of an epoch of mlr on one thread, beside the two products alone (bench_classes: over the entries, and dense by
# OpenBLAS), and seconds to LIBLINEAR's accuracy beside LIBLINEAR's own (-s 0, one versus the rest, -B 1; with its best -c of bench/quality.sh).
#   bench/classes.sh [EPOCHS]      default 20; an epoch's seconds are the median of them
# 20 News Groups as counts and as tf-idf, and MNIST, from ../shared/data; there is no Reuters set. Seconds of LIBLINEAR are of its own
# training, without reading the file; drps's are of the training in its epochs, without drps-index and evaluation.
. "$(dirname "$0")/lib.sh"
epochs=${1:-20} data=$root/../shared/data
command -v liblinear-train >/dev/null || { echo "bench: install LIBLINEAR (liblinear-tools)" >&2; exit 1; }
[[ -d $data/20news && -d $data/mnist ]] || { echo "bench: there is no 20news and mnist in $data" >&2; exit 77; }

cd "$work"
. "$root/bench/sets_of_classes.sh"

row() { # NAME C TRAIN-OPTIONS...
    local name=$1 c=$2 began accuracy products
    shift 2
    "$tools/drps-index" "$work/$name.train" --test "$work/$name.test" --algo mlr -o "$work/$name" --quiet
    "$tools/drps-train" "$work/$name" -o "$work/$name.model" --epochs "$epochs" --threads 1 --checkpoint-every never "$@" --force --quiet --json >"$work/run.json"
    products=$("$tools/bench_classes" "$work/$name.train" "$(jq '.classes | length' "$work/run.json")" "$(jq .batch_size "$work/$name/plan.json")")
    began=$(date +%s.%N)
    liblinear-train -s 0 -c "$c" -B 1 -q "$work/$name.train" "$work/$name.liblinear"
    began=$(awk -v a="$began" -v b="$(date +%s.%N)" 'BEGIN { print b - a }')
    local reading
    reading=$(date +%s.%N)
    liblinear-train -s 0 -c "$c" -B 1 -e 1e9 -q "$work/$name.train" "$work/unused" # no step
    reading=$(awk -v a="$reading" -v b="$(date +%s.%N)" 'BEGIN { print b - a }')
    accuracy=$(liblinear-predict "$work/$name.test" "$work/$name.liblinear" "$work/out" | sed 's/.* = \([0-9.]*\)%.*/\1/')
    jq -r --argjson goal "$accuracy" --argjson n "$(wc -l <"$work/$name.train")" '.epochs as $e | [range($e | length) | select($e[.].test_accuracy * 100 >= $goal)][0] as $i
        | "\($e | map($n / .samples_per_s) | sort | .[length / 2 | floor]) \(if $i == null then "-" else $e[:$i + 1] | map($n / .samples_per_s) | add end) \($e | map(.test_accuracy) | max)"' "$work/run.json" |
        awk -v name="$name" -v sparse="$(awk '/^sparse/ { print $2 }' <<<"$products")" -v dense="$(awk '/^dense/ { print $2 }' <<<"$products")" \
            -v its="$began" -v reading="$reading" -v accuracy="$accuracy" '
            { printf "| %s | %.3f | %.3f | %.2f | %.3f | %.2f | %s | %.4f | %.4f |\n", name, $1, sparse, $1 / sparse, dense, its - reading, $2 == "-" ? "-" : sprintf("%.2f", $2), accuracy / 100, $3 }'
}
echo "$(nproc) cores, load $(cut -d ' ' -f 1 /proc/loadavg); one thread, $epochs epochs"
{
    echo "| set | s an epoch | products over entries, s | times these | dense products, s | LIBLINEAR, s | s to its accuracy | its accuracy | best of drps |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    row news 0.3 --lr 0.03
    row tfidf 100
    row mnist 1
} | tables classes
