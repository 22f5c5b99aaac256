#!/usr/bin/env bash
# "Reducing Redundant Communication", Table II: elements (rows of parameters or gradients that go one way, in millions an epoch)
# that are reduced (and as many broadcast), and those that go from worker to worker directly; and what is sent with the method, to
# what is sent without.
#   bench/papers/redundant-table2.sh [--quick] [DATA]
# The paper's formula: of n elements that workers use in an epoch, d are used by one worker alone in their round; 2 n without the
# method, 2 (n - d) + d with it. Step by step: Algorithms 2 and 3 and section IV-D, message by message; a row that nobody used
# before is broadcast, one that nobody uses after is reduced, so less is direct than by the formula where an epoch has few rounds.
# Handed on: the same idea in drps (drps-index --hand-on), values that cross the network, to those of the same plan without. Placed:
# those of a plan with homes and placed samples (--partition auto), to those of hashed rows and dealt samples. All are exact
# counts. Environment: bench/lib.sh's.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redundant.sh"

wanted <<<"$table2" | while read -r set batch reduced direct rate; do
    "$tools/drps-index" "$(file_of "$set")" --format libsvm --algo lor --batch-size $((batch / workers)) -o "$work/one" --force --quiet --no-forecast
    counts=$("$tools/bench_redundant" "$work/one" $workers)
    plan placed "$set" "$batch" --partition auto
    if known drps-index --hand-on; then
        plan handed "$set" "$batch" --partition hash --samples dealt --hand-on all --hand-on-for sgd
        handed=$(jq '.handed_on_of_plain * 1000 | round / 1000' "$work/handed.json")
    else
        handed="not in this build"
    fi
    jq -r --arg row "$(title "$set"), $batch" --arg paper "$reduced | $direct | $rate" \
        --arg derived "$(awk "BEGIN { printf \"%.3f\", (2 * $reduced + $direct) / 2 / ($reduced + $direct) }")" --arg handed "$handed" \
        --slurpfile placed "$work/placed.json" '
        def millions: . / 1e4 | round / 100;
        def rate: . * 1000 | round / 1000;
        "| \($row) | \($paper) | \($derived) | \(.uses - .single | millions) | \(.single | millions) | \(1 - .single / .uses / 2 | rate) | " +
        "\(.reduced | millions) | \(.direct | millions) | \((.reduced + .broadcast + .direct) / .uses / 2 | rate) | " +
        "\($handed) | \($placed[0].moved_of_hashed | rate) |"' <<<"$counts"
done | table paper-redundant-table2 1 "set, mini-batch | paper: reduced | paper: direct | paper: rate | paper: rate of its elements | formula: reduced | formula: direct | formula: rate | steps: reduced | steps: direct | steps: rate | handed on: rate | placed: rate"
