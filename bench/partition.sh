#!/usr/bin/env bash
# Placement of rows and samples for 5 to 64 machines: balance, remote rows, time (bench_partition.c says what its columns
# are). Tables go to FOLDER/SET.tsv, what the bars are about to standard output; draws FOLDER/placement.png with gnuplot.
#   bench/partition.sh [FOLDER [DATA]]      FOLDER: default the scratch folder; DATA: default ../shared/data
. "$(dirname "$0")/lib.sh"
out=${1:-$work}
data=${2:-$root/../shared/data}
mkdir -p "$out"

# run SET FORMAT INPUT BATCH BLOCK_BYTES
run() {
    echo "$1" >&2
    "$tools/bench_partition" "$2" "$3" "$4" "$5" >"$out/$1.tsv"
}
# unpacked FILE.xz: a copy in the scratch folder
unpacked() {
    local text
    text=$work/$(basename "$1" .xz)
    xz -dc "$1" >"$text"
    echo "$text"
}

run clicks ctr 300000 100 4096
run clicks-rows ctr 300000 100 68 # a unit a row: about 100 K units
"$tools/drps-gen" ctr --samples 200K --rows 500K --seed 1 --force --quiet -o "$work/independent.svm"
run independent libsvm "$work/independent.svm" 100 4096
if [[ -d $data/ml-1m ]]; then
    run ml-1m ratings "$(unpacked "$data/ml-1m/ratings.tsv.xz")" 100 68 # ratings: rows are large, a unit each
    run ipinyou libsvm "$(unpacked "$data/ipinyou/train.fm.txt.xz")" 100 4096
    run criteo-sample libsvm "$(unpacked "$data/criteo-sample/criteo.train.libsvm.xz")" 100 4096
    run frappe libsvm "$(unpacked "$data/frappe/frappe.test.libfm.xz")" 100 4096
else
    echo "bench: no ml-1m in $data: generated sets only" >&2
fi

# One line for each set and number of machines; "dealt": samples at random, "placed": samples by auto.
{
    echo "set machines units dealt:busiest/avg:hash greedy homes of_bound of_greedy busiest_of_greedy s placed:busiest/avg of_hash of_bound s(samples) dppa:of_hash"
    for table in "$out"/*.tsv; do
        awk -v set="$(basename "$table" .tsv)" -F '\t' '
            NR == 1 { next }
            { key = $2 " " $3 }
            key == "hash hash" { random = $10 }
            key == "hash greedy" { greedy = $10 }
            key == "hash homes" { dealt = $4 " " random " " greedy " " $10 " " $8 " " $9 " " $11 " " $13 }
            key == "dppa homes" { dppa = $7 }
            key == "auto homes" { print set, $1, dealt, $10, $7, $8, $14, dppa }' "$table"
    done
} | column -t

if command -v gnuplot >/dev/null; then
    sets=("$out"/*.tsv)
    {
        echo "set terminal pngcairo size 1500,900 font 'sans,11'; set output '$out/placement.png'"
        echo "set multiplot layout 2,4 title 'Remote rows of an epoch, to those with rows and samples both at random'"
        echo "set logscale x 2; set xtics (5, 8, 16, 64); set xrange [4.5:72]; set yrange [0:1.05]; set grid; set key bottom left"
        echo "set xlabel 'machines'; set datafile separator '\t'"
        for table in "${sets[@]}"; do
            line() { # SAMPLES ROWS TITLE STYLE
                echo "'< grep -P \"\\\\t$1\\\\t$2\\\\t\" $table' using 1:7 with linespoints $4 title '$3'"
            }
            echo "set title '$(basename "$table" .tsv)'; plot $(line hash greedy 'rows greedy' 'lw 2 dt 2'), \
                $(line hash homes 'homes' 'lw 2'), $(line dppa homes 'samples dppa, homes' 'lw 2 dt 4'), \
                $(line auto homes 'samples auto, homes' 'lw 2')"
        done
        echo "unset multiplot"
    } | gnuplot
fi
