#!/usr/bin/env bash
# What drps-index --partition and --samples make of plans for eight workers, as the plans say. First table: values moved in
# the training rounds of an epoch, to what dealt samples and hashed rows would move, and the busiest link to the average
# (a link carries what its machine serves and pulls). Second table: the most rows of a machine to the average, uses of blocks,
# seconds and MiB of drps-index. All are exact counts but the last two.
#   bench/placed.sh [DATA]      DATA: default ../shared/data; sets that are not there are left out, and it says so
# Environment, besides lib.sh's: DRPS_BENCH_WORKERS (default 8)
. "$(dirname "$0")/lib.sh"
data=${1:-$root/../shared/data}
workers=${DRPS_BENCH_WORKERS:-8}
ways=("range dealt" "hash dealt" "greedy dealt" "dppa dealt" "auto dealt" "greedy placed" "dppa placed" "auto placed" "auto round")

# measure NAME INDEX-OPTIONS...: a line of tab-separated figures for each way, to figures.tsv
measure() {
    local name=$1 how
    shift
    for how in "${ways[@]}"; do
        "$tools/drps-index" "$@" --workers "$workers" --partition "${how% *}" --samples "${how#* }" -o "$work/plan" --force --quiet --no-forecast --json |
            jq -r --arg name "$name" --arg how "$how" '
                [$name, $how, .moved_of_hashed, .busiest_of_average, ([.ranks[].rows] | max / (add / length)), .block_uses,
                 .seconds, .peak_rss_bytes / 1048576] | @tsv' >>"$work/figures.tsv"
    done
}

# text FOLDER FILE...: sets `input`, unpacked; fails, and says so, where the set is not there
text() {
    local folder=$1 file
    shift
    if [[ ! -d $data/$folder ]]; then
        echo "bench: no $folder in $data: left out" >&2
        return 1
    fi
    input=$work/$folder.txt
    for file in "$@"; do xz -dc "$data/$folder/$file.xz"; done >"$input"
}

"$tools/drps-gen" ctr --samples 400K --fields 20 --rows 500K --seed 1 -o "$work/ctr.svm" --force --quiet
measure "CTR of independent features 1000" "$work/ctr.svm" --algo lor --batch-size 1000
if text criteo-sample criteo.train.libsvm; then measure "criteo 100" "$input" --format libsvm --algo lor --batch-size 100; fi
if text ipinyou train.fm.txt; then
    measure "ipinyou 100" "$input" --format libsvm --algo lor --batch-size 100
    measure "ipinyou 1000" "$input" --format libsvm --algo lor --batch-size 1000
fi
if text frappe frappe.test.libfm frappe.validation.libfm; then measure "frappe 100" "$input" --format libsvm --algo lor --batch-size 100; fi
if text ml-1m ratings.tsv; then
    measure "ml-1m 100" "$input" --format ratings --algo lmf --factors 16 --batch-size 100
    measure "ml-1m 1000" "$input" --format ratings --algo lmf --factors 16 --batch-size 1000
fi
if text 20news 20news.train.libsvm; then measure "20news 100" "$input" --format libsvm --algo lir --batch-size 100; fi

# pivot TITLE FORMAT FIELD...: a line for each set, with the given fields of each way
pivot() {
    awk -F '\t' -v title="$1" -v format="$2" -v fields="${*:3}" '
        BEGIN { n = split(fields, field, " ") }
        !($1 in line) { line[$1] = ""; order[++sets] = $1 }
        {
            cell = format
            for (i = 1; i <= n; i++) {
                match(cell, /%[.0-9]*[fd]/)
                cell = substr(cell, 1, RSTART - 1) sprintf(substr(cell, RSTART, RLENGTH), $field[i]) substr(cell, RSTART + RLENGTH)
            }
            line[$1] = line[$1] " " cell " |"
            if (sets == 1) head = head " " $2 " |"
        }
        END {
            print "| " title " |" head
            gsub(/[^|]+/, " --- ", head)
            print "| --- |" head
            for (i = 1; i <= sets; i++) print "| " order[i] " |" line[order[i]]
        }' "$work/figures.tsv"
}
pivot "moved, busiest link" "%.2f, %.2f" 3 4 | tables links
echo
pivot "rows, block uses, s, MiB" "%.2f, %d, %.1f, %d" 5 6 7 8 | tables placed
