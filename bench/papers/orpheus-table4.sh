#!/usr/bin/env bash
# Xie et al., "Orpheus", Table 4: what checkpoints cost. The paper has hours; here are the bytes that a worker writes in a round, for
# matrices of the paper's sizes: a checkpoint of the matrix after each round, or after a hundred of them, as the paper's baseline; a log of
# vectors after each round, and a new checkpoint whenever the log is as large as the matrix. Logged are a worker's own vectors (100; to
# restore, the logs of all workers are needed), or all that it applies: also 25 of each of the 4 others that reach it; also 25 of
# each other's; everybody's. Counted, not written: matrices of a hundredth of the width and height are written to show that the counts are
# right.
#   bench/papers/orpheus-table4.sh [--quick]
# All are exact. Environment: bench/lib.sh's.
. "$(dirname "$0")/lib.sh"
rounds=$(quickly 100 10000)

# what the paper prints: hours without checkpoints, with those of the matrix, of vectors; with failures, the same two
table4="mlr 1.9 2.4 1.9 2.9 2.3
lstm 4.1 5.2 4.2 6.7 4.8"

while read -r model none matrix vectors failing_matrix failing_vectors; do
    "$tools/bench_orpheus" "$model" "$rounds" "$work/$model" |
        jq -r --arg row "${model^^}" --argjson rounds "$rounds" \
            --arg paper "$none | $matrix | $vectors | $failing_matrix | $failing_vectors" '
            def mb: . / $rounds / 1e4 | round / 100;
            def both: (.log + .snapshots) | mb;
            "| \($row) | \($paper) | \(.matrix * $rounds | mb) | \(.own.full | mb) | \(.own | both) | \(.multicast | both) | " +
            "\(.chosen | both) | \(.all | both) |"'
done <<<"$table4" | table paper-orpheus-table4 1 "model | paper: hours without | with the matrix's | with vectors' | failures: matrix's | failures: vectors' | MB a round: matrix | every 100 rounds | own vectors | of 4 others | 25 of all | all"
