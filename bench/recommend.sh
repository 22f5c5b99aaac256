#!/usr/bin/env bash
# Recommending beside the bare products of the same users and items (bench_products), one thread each: seconds of the processor, which
# other processes on the machine change less than those of the clock. Models are random: each user and item has one rating, an epoch.
#   bench/recommend.sh [USERS]      1 M users x 1 M items of 64 factors, for 16,000 of the users, or so many; 50,000 x 50,000 whole; the
#                                   first then out of memory, a quarter as many users, with --memory 128M in a cgroup of that + 10 %
# All 10^12 pairs of the first are hours of one processor: what a user costs is the same for all. OPENBLAS_CORETYPE helps an OpenBLAS that
# does not know the processor. The times of drps-recommend have all in them: reading names and model, and writing.
. "$(dirname "$0")/lib.sh"
slice=${1:-16000}
outside=$((slice / 4))
cd "$work"

model() { # NAME ROWS: a model of so many users and items
    [[ ! -d $1 ]] || return 0
    awk -v n="$2" 'BEGIN { for (i = 0; i < n; i++) print "u" i "\ti" i "\t" 1 + i % 5 }' >"$1.tsv"
    "$tools/drps-index" "$1.tsv" --algo lmf --factors 64 --batch-size 10000 --no-forecast -o "$1.plan" --force --quiet
    "$tools/drps-train" "$1.plan" -o "$1" --epochs 1 --quiet
    rm -r "$1.tsv" "$1.plan"
}

# processor COMMAND...: sets `spent` to the seconds of the processor that it took
processor() {
    local TIMEFORMAT='%U %S'
    spent=$({ time "$@" >run.json 2>err.txt; } 2>&1) || { cat err.txt >&2 && return 1; }
    spent=$(awk '{ print $1 + $2 }' <<<"$spent")
}

# compare NAME USERS OPTION...: a row for each product
compare() {
    local name=$1 users=$2 rows product bare blocks
    shift 2
    rows=${name#*x }
    "$tools/bench_products" "$users" "$rows" 64 >bare.txt 2>/dev/null
    for product in openblas own; do
        bare=$(awk -v p=$product '$1 == (p == "own" ? p : "sgemm-tiles") { print $2 }' bare.txt)
        blocks=$(awk -v p=$product '$1 == (p == "own" ? p : "sgemm-blocks") { print $2 }' bare.txt)
        [[ -n $bare ]] || continue
        processor "$tools/drps-recommend" "$@" -n 10 -o best --force --quiet --threads 1 --products $product
        awk -v n="$name, $users users, $product" -v a="$spent" -v b="$bare" -v c="$blocks" -v pairs="$users" -v rows="$rows" 'BEGIN {
            printf "| %s | %.2f | %.2f | %.3f | %.2f | %.1f |\n", n, a, b, a / b, c, pairs * rows * 128e-9 / a }'
    done
}

model large 1000000
model small 50000
for ((i = 0; i < slice; i++)); do echo "u$((i * (1000000 / slice)))"; done >some
head -"$outside" some >few
echo "$(nproc) cores, load $(cut -d ' ' -f 1 /proc/loadavg); one thread; OPENBLAS_CORETYPE ${OPENBLAS_CORETYPE:-not set}"
{
    echo "| users x items | drps-recommend, s | bare products, s | ratio | products of larger blocks, s | GFlop/s of drps-recommend |"
    echo "| --- | --- | --- | --- | --- | --- |"
    compare "1000000 x 1000000" "$slice" large --users some
    compare "50000 x 50000" 50000 small
} | tables recommend

{
    echo "| model and memory | s of the processor | s of the clock | passes over the items | read of items | peak resident set |"
    echo "| --- | --- | --- | --- | --- | --- |"
    for memory in 128 2048; do # MiB
        limit=$((memory * 1153434))
        processor in_cgroup $limit "$tools/drps-recommend" large --users few -n 10 -o best --force --threads 1 --memory ${memory}M --json
        jq -r --arg m "520 MB of parameters, $outside users, --memory ${memory}M" --arg s "$spent" \
            '"| \($m) | \($s) | \(.seconds * 100 | round / 100) | \(.item_passes) | \(.item_bytes / 1e9 * 1000 | round / 1000) GB | \(.peak_rss_bytes / 1048576 | round) MiB |"' run.json
    done
} | tables recommend-memory
