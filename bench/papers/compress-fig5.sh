#!/usr/bin/env bash
# "Accelerating Distributed Machine Learning with Model Compression and Graph Partition", Figure 5: what an epoch pulls, the size of
# the model, and how well it predicts, by the number of bins that features are hashed into.
#   bench/papers/compress-fig5.sh [--quick] [DATA]
# The paper's figure is a plot without numbers: with fewer bins the model gets smaller nearly exponentially, and the accuracy falls
# nearly linearly. Its method: one-permutation hashing with re-randomized densification, 256 features of a sample, which is a set
# (--hash-kind oph); data and rows at random. Ours: signed hashing, which keeps values; and rows and samples placed (--partition
# auto). Quality: accuracy, or AUC of two classes, of the epoch with the least loss. Rows pulled are counted by drps-index.
# All are exact, but for the rounding of a model's losses. Environment: bench/lib.sh's, and hashing.sh's.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/hashing.sh"
random=(--partition hash --samples dealt)
for set in "${sets[@]}"; do
    make_set "$set"
    for b in $bits; do
        its=(--hash-bits "$b" --hash-kind oph)
        learned=$(learn "${its[@]}")
        echo -n "| $set, 2^$b | $(parameters) | $(sent "${its[@]}" "${random[@]}") | $learned | "
        ours=(--hash-bits "$b")
        learned=$(learn "${ours[@]}")
        echo "$(parameters) | $(sent "${ours[@]}" "${random[@]}") | $(sent "${ours[@]}") | $learned |"
    done
    learned=$(learn)
    echo "| $set, not hashed | - | - | - | - | $(parameters) | $(sent "${random[@]}") | $(sent) | $learned |"
done | table paper-compress-fig5 1 "set, bins | its: parameters | its: thousand rows pulled | its: accuracy or AUC, % | its: loss | ours: parameters | ours: thousand rows pulled | ours: thousand rows pulled, placed | ours: accuracy or AUC, % | ours: loss"
