#!/usr/bin/env bash
# Xie et al., "Orpheus", Figures 6 and 7, Table 2: time to a loss by the number of machines, of the paper's systems that can be had here: parameter
# servers (Bosen), SVB and all parts of Orpheus.
#   bench/papers/orpheus-fig7.sh [--quick] [DATA]
# What it needs, its environment and what is printed: orpheus.sh.
figure=paper-orpheus-fig7
. "$(dirname "${BASH_SOURCE[0]}")/orpheus.sh"
for ranks in 1 2 4 8; do
    ((ranks <= hosts)) || continue
    parts="--exchange-to $((ranks > 4 ? 4 : ranks / 2)) --average 10"
    ((ranks > 2)) || parts= # there is one to send to
    way "$ranks" "$ranks, servers" --exchange servers
    ((ranks > 1)) || continue
    way "$ranks" "$ranks, SVB" --exchange vectors
    # shellcheck disable=SC2086 # options
    way "$ranks" "$ranks, Orpheus" --exchange vectors --sv-count 25 $parts
done | table "$figure" 1 "$titles"
