#!/usr/bin/env bash
# Xie et al., "Orpheus", Table 3, Figures 6 and 8: the parts of the system, one added after another: MLR.
#   bench/papers/orpheus-table3.sh [--quick] [DATA]
# What it needs, its environment and what is printed: orpheus.sh.
figure=paper-orpheus-table3
. "$(dirname "${BASH_SOURCE[0]}")/orpheus.sh"
ways <<'TEXT'
Matrix+PS: --exchange dense
SVB: --exchange vectors
SVB+SVS: --exchange vectors --sv-count 25
SVB+SVS+RM: --exchange vectors --sv-count 25 --exchange-to 4
SVB+SVS+RM+PCS: --exchange vectors --sv-count 25 --exchange-to 4 --average 10
SVB+SVS+RM+PCS+PRR: --exchange vectors --sv-count 25 --exchange-to 4 --average 10 --rotate 5
TEXT
while read -r name hours; do record "$figure|$name|paper: hours" "$hours"; done <<'TEXT'
Matrix+PS 7.1
SVB 2.7
SVB+SVS 2.3
SVB+SVS+RM 2.1
SVB+SVS+RM+PCS 2.0
SVB+SVS+RM+PCS+PRR 1.9
TEXT
