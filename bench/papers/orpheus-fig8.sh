#!/usr/bin/env bash
# Xie et al., "Orpheus", Figure 8 (and 6): time of computing and of waiting, and to a loss, for four configurations of MLR: the whole
# matrix; vectors to all (SVB); 25 of 100 vectors (SVS); these to 4 of the others at random (RM).
#   bench/papers/orpheus-fig8.sh [--quick] [DATA]
# What it needs, its environment and what is printed: orpheus.sh.
figure=paper-orpheus-fig8
. "$(dirname "${BASH_SOURCE[0]}")/orpheus.sh"
ways <<'TEXT'
Matrix+PS: --exchange dense
SVB: --exchange vectors
SVB+SVS: --exchange vectors --sv-count 25
SVB+SVS+RM: --exchange vectors --sv-count 25 --exchange-to 4
TEXT
