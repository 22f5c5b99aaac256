#!/usr/bin/env bash
# "Accelerating Distributed Machine Learning with Model Compression and Graph Partition", Figure 6: what machines push and pull by
# the number of partitions and of hashing bins: samples and rows at random, by a multilevel graph partition (MGP: METIS), by DPPA,
# and by drps's own (homes and placed samples).
#   bench/papers/compress-fig6.sh [--quick] [DATA]
# The paper counts a row once for each machine that pulls it (by sets); the tables are to random. Its Eq. (1) is of the busiest
# machine: what it pulls and serves. A batch of 100 pulls its rows anew (by batches). DPPA of S: samples looked at together; n/k as
# printed. All are exact counts. Environment: bench/lib.sh's.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/compress.sh"

if there 20news text; then
    packed 20news/20news.train.libsvm.xz "$(quickly 1000 0)" >"$work/news.svm"
else
    gen classification --samples "$(quickly 1000 11K)" --nnz 130 --rows 45K --zipf 1.05 -o "$work/news.svm"
fi
for bins in $(quickly "0 1024" "0 1024"); do
    for machines in $(quickly "4" "4 8 16"); do
        title="$( ((bins)) && echo "$bins bins" || echo "not hashed"), $machines"
        compare "$title" libsvm "$work/news.svm" "$bins" "$machines"
    done
done
compared compress-fig6 "bins, machines"
