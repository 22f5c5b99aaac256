#!/usr/bin/env bash
# Xie et al., "Orpheus", Figure 9: how many of 100 vectors are sent (C).
#   bench/papers/orpheus-fig9.sh [--quick] [DATA]
# What it needs, its environment and what is printed: orpheus.sh.
figure=paper-orpheus-fig9
. "$(dirname "${BASH_SOURCE[0]}")/orpheus.sh"
for c in 100 50 25 10 5; do
    echo "C $c: --exchange vectors$( ((c == 100)) || echo " --sv-count $c")"
done | ways
