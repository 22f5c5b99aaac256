#!/usr/bin/env bash
# Topics of real documents: the objective by epoch beside a plain program's, and what they take in memory and out of core.
#   bench/topics.sh [DOCUMENTS]      so many documents of 20 News Groups for the comparison (default 2000)
# Counts become log(1 + count). Fails where an epoch's objective is not the plain program's to 1e-6, or where a store, a memory or a number of
# threads gives another model. Bytes and objectives are counts; times are of this machine.
. "$(dirname "$0")/lib.sh"
documents=${1:-2000}
data=$root/../shared/data
[[ -f $data/20news/20news.train.libsvm.xz ]] || { echo "bench: there is no $data/20news" >&2; exit 1; }

logs() { awk '{ printf "%s", $1; for (i = 2; i <= NF; i++) { split($i, e, ":"); printf " %s:%.6g", e[1], log(1 + e[2]) } print "" }'; }
xzcat "$data/20news/20news.train.libsvm.xz" | logs >"$work/train.svm"
xzcat "$data/20news/20news.test.libsvm.xz" | logs >"$work/test.svm"
xzcat "$data/20news/vocab.txt.xz" >"$work/words.txt"
train() { "$tools/drps-train" "$@" --force --quiet --json --checkpoint-every never; }

# ---- Beside a plain program ----

shuf -n "$documents" --random-source="$work/words.txt" "$work/train.svm" >"$work/some.svm"
{
    echo "| topics, l1, l2 | epoch 1 | epoch 2 | epoch 5 | epoch 10 | plain, epoch 10 | furthest apart | above the epoch before |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for way in "10 1 1" "20 0.5 1" "20 0 0.1"; do
        read -r topics l1 l2 <<<"$way"
        "$tools/drps-index" "$work/some.svm" --algo topic --factors "$topics" --order given --batch-size 200 -o "$work/some" --quiet --force
        train "$work/some" -o "$work/model" --epochs 10 --l1 "$l1" --l2 "$l2" | jq -r '.epochs[].train_loss' >"$work/own"
        "$tools/bench_topics" "$work/some.svm" "$topics" "$l1" "$l2" 200 10 | cut -d ' ' -f 2 >"$work/plain"
        paste "$work/own" "$work/plain" | awk -v way="$topics, $l1, $l2" '
            { at[NR] = $1; d = $1 / $2 - 1; if (d < 0) d = -d; if (d > apart) apart = d; if (NR > 1 && $1 > last) rises++; last = $1; plain = $2 }
            END { printf "| %s | %.6f | %.6f | %.6f | %.6f | %.6f | %.1e | %d |\n", way, at[1], at[2], at[5], at[10], plain, apart, rises
                  if (apart > 1e-6) { print "bench: " way ": the plain program comes to another objective" >"/dev/stderr"; exit 1 } }'
    done
} | tables topics

# ---- All of them: in memory and out of core ----

mib() { awk '{ printf "%.1f MiB", $1 / 1048576 }'; }
of() { jq "$1" "$work/run.json" | mib; }
"$tools/drps-index" "$work/train.svm" --test "$work/test.svm" --algo topic --factors 50 --batch-size 200 -o "$work/news" --quiet --force
want=
echo
{
    echo "| 20 News Groups, 50 topics, 10 epochs | rows | of them in memory | read an epoch | written an epoch | objective | held-out | seconds an epoch |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for way in "resident 8G 1" "resident 8G 4" "relay 48M 1" "relay 48M 4" "file 50M 1"; do
        read -r store memory threads <<<"$way"
        train "$work/news" -o "$work/news.model" --l1 0.5 --epochs 10 --store "$store" --memory "$memory" --threads "$threads" >"$work/run.json"
        content=$(jq -r .content "$work/run.json")
        [[ $content = "${want:=$content}" ]] || { echo "bench: $way: another model" >&2; exit 1; }
        echo "| $store, threads: $threads | $(of '.rows * .row_bytes') | $(of '.blocks.pool_bytes // .windows.pool_bytes // (.rows * .row_bytes)') | $(of '.epochs[8].read_bytes') | $(of '.epochs[8].written_bytes') | $(jq '.epochs[9].train_loss' "$work/run.json") | $(jq '.epochs[9].test_loss' "$work/run.json") | $(jq '.epochs[8].seconds' "$work/run.json") |"
    done
} | tables topics

# ---- Ranks: rounds of 200 documents, whoever codes them ----

echo
{
    echo "| ranks, documents of a batch, rows placed by | objective | held-out | rows of other ranks in a round, each | kB of them there, and as many back | kB of sums |"
    echo "| --- | --- | --- | --- | --- | --- |"
    for way in "1 200 auto" "2 100 auto" "4 50 auto" "4 50 range" "8 25 auto"; do
        read -r ranks batch partition <<<"$way"
        options=()
        ((ranks == 1)) || options=(--workers "$ranks" --partition "$partition")
        "$tools/drps-index" "$work/train.svm" --test "$work/test.svm" --algo topic --factors 50 --batch-size "$batch" "${options[@]}" -o "$work/of" --quiet --force
        train "$work/of" -o "$work/news.model" --l1 0.5 --epochs 10 --local "$ranks" >"$work/run.json"
        rounds=$((10 * $("$tools/drps-stat" "$work/of" --json | jq .batches)))
        jq -r --arg way "$ranks, $batch, $partition" --argjson rounds "$rounds" --argjson ranks "$ranks" '
            def kb(f): [.ranks[]?.sent | f] | (add // 0) / $rounds / $ranks / 1000 * 10 | round / 10;
            "| \($way) | \(.epochs[9].train_loss) | \(.epochs[9].test_loss) | \(kb(1000 * .pushed.rows)) | \(kb(.pushed.bytes)) | \(kb(.sums.bytes)) |"' "$work/run.json"
    done
} | tables topics-ranks
echo
echo "all of one rank with the same bits; some topics:"
"$tools/drps-stat" "$work/news.model" --topics 12 --words "$work/words.txt" | sed -n '1,12p'
