#!/usr/bin/env bash
# Draw the held-out loss of every epoch from the tables that bench/quality.sh left. Needs gnuplot.
#   bench/curves.sh CURVES OUTPUT.png      CURVES: the folder `curves` of bench/quality.sh's scratch folder
set -euo pipefail
curves=$1
output=$2
names=()
for file in "$curves"/*.tsv; do names+=("$(basename "$file" .tsv)"); done
{
    echo "set terminal pngcairo size 1500,1000 font 'sans,10'"
    echo "set output '$output'"
    echo "set multiplot layout 3,4 title 'Held-out loss (line) and training loss (dashed) by epoch'"
    echo "set xlabel 'epoch'; set key top right; set grid"
    for name in "${names[@]}"; do
        echo "set title '$name'; plot '$curves/$name.tsv' using 1:3 with lines lw 2 title 'held out', \
            '' using 1:2 with lines dt 2 title 'training'"
    done
    echo "unset multiplot"
} | gnuplot
