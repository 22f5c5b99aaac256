#!/usr/bin/env bash
# "Accelerating Distributed Machine Learning with Model Compression and Graph Partition", Figure 7: what machines push and pull by
# the ratio n : m of samples to rows, on random graphs; the columns are those of bench/papers/compress-fig6.sh.
#   bench/papers/compress-fig7.sh [--quick]
# The paper does not say how large its graphs are. Here m is 8,000, each sample has 20 of them, all alike, and there are 8 machines.
# All are exact counts. Environment: bench/lib.sh's.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/compress.sh"

for bins in 0 1024; do
    for ratio in $(quickly "1/4 1" "1/4 1/2 1 2 4"); do
        title="$( ((bins)) && echo "$bins bins" || echo "not hashed"), ${ratio/\// : }"
        [[ $ratio = */* ]] || title+=" : 1"
        compare "$title" random "$(awk "BEGIN { print 8000 * $ratio }"):8000:20" "$bins" 8
    done
done
compared compress-fig7 "bins, n : m"
