#!/usr/bin/env bash
# Xie et al., "Orpheus", Figure 10: to how many of the others at random (Q).
#   bench/papers/orpheus-fig10.sh [--quick] [DATA]
# What it needs, its environment and what is printed: orpheus.sh.
figure=paper-orpheus-fig10
. "$(dirname "${BASH_SOURCE[0]}")/orpheus.sh"
for q in 7 4 2 1; do
    echo "Q $q: --exchange vectors --sv-count 25 --exchange-to $q"
    ((q == hosts - 1)) || echo "Q $q, averaged every 10 rounds: --exchange vectors --sv-count 25 --exchange-to $q --average 10"
done | ways
