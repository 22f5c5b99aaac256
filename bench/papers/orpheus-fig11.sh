#!/usr/bin/env bash
# Xie et al., "Orpheus", Figures 11 and 12: deterministic, round-robin and random multicast to 4 of the others (DM, RRM, RM); with a tenth of
# the links broken in each round.
#   bench/papers/orpheus-fig11.sh [--quick] [DATA]
# What it needs, its environment and what is printed: orpheus.sh.
figure=paper-orpheus-fig11
. "$(dirname "${BASH_SOURCE[0]}")/orpheus.sh"
for loss in 0 .1; do
    for rule in "DM fixed" "RRM robin" "RM random"; do
        read -r name option <<<"$rule"
        echo "$name$([[ $loss = 0 ]] || echo ", a tenth broken"): --exchange vectors --sv-count 25 --exchange-to 4 --exchange-rule $option$([[ $loss = 0 ]] || echo " --exchange-loss $loss")"
    done
done | ways
