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

for part in train test; do xz -dc "$data/20news/20news.$part.libsvm.xz" >"$work/news.$part"; done
# tfidf FILE: as bench/quality.sh makes it, by the training part's frequencies
tfidf() {
    awk 'FNR == 1 {file++}
        file == 1 {n++; for (i = 2; i <= NF; i++) {split($i, a, ":"); df[a[1]]++}}
        file == 2 {
            sum = 0
            for (i = 2; i <= NF; i++) {
                split($i, a, ":"); id[i] = a[1]; x[i] = (1 + log(a[2])) * (1 + log((1 + n) / (1 + df[a[1]])))
                sum += x[i] * x[i]
            }
            printf "%s", $1
            for (i = 2; i <= NF; i++) printf " %s:%.5g", id[i], x[i] / sqrt(sum)
            print ""}' "$work/news.train" "$1"
}
for part in train test; do tfidf "$work/news.$part" >"$work/tfidf.$part"; done
digits() {
    paste -d ' ' <(xz -dc "$data/mnist/$1-labels-idx1-ubyte.xz" | tail -c +9 | od -An -v -tu1 -w1) \
        <(xz -dc "$data/mnist/$1-images-idx3-ubyte.xz" | tail -c +17 | od -An -v -tu1 -w784) |
        awk '{printf "%s", $1; for (i = 2; i <= NF; i++) if ($i) printf " %d:%.4g", i - 1, $i / 255; print ""}'
}
digits train >"$work/mnist.train"
digits t10k >"$work/mnist.test"

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
