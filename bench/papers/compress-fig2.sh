#!/usr/bin/env bash
# "Accelerating Distributed Machine Learning with Model Compression and Graph Partition", Figure 2: how many samples have a feature,
# and how many features a sample has.
#   bench/papers/compress-fig2.sh [--quick] [DATA]
# The paper's figure is a plot without numbers, of rcv1.binary and news20: most degrees are small, and large ones are rare. Here the
# same of the sets of hashing.sh as they are, and hashed into 2^12 bins (drps-stat --degrees): bins are had by more samples, and
# samples have as many. All are exact counts. Environment: bench/lib.sh's, and hashing.sh's.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/hashing.sh"
for set in "${sets[@]}"; do
    make_set "$set"
    for bits in 0 12; do
        hashing=() name=$set
        ((!bits)) || { hashing=(--hash-bits "$bits") name="$set, 2^$bits bins"; }
        "$tools/drps-index" "$work/train" --format libsvm --algo "$algo" --force --quiet --no-forecast -o "$work/plan" "${hashing[@]}"
        "$tools/drps-stat" "$work/plan" --degrees --json | jq -r --arg name "$name" '
            def share(most): ([.ranges[] | select(.from <= most) | .count] | add) / .count * 1e3 | round / 10;
            "| \($name) | \(.features.count) | \(.features.median) | \(.features.p99) | \(.features.most) | \(.features | share(1)) | \(.features | share(8)) | " +
            "\(.samples.median) | \(.samples.p99) | \(.samples.most) | \(.edges / .features.count / .samples.count * 1e6 | round / 1e4) |"'
    done
done | table paper-compress-fig2 1 "set | features | of a feature: median | of a feature: 99 % | of a feature: most | features of degree 1, % | features of degree below 16, % | of a sample: median | of a sample: 99 % | of a sample: most | of all pairs, %"
