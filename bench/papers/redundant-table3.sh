#!/usr/bin/env bash
# "Reducing Redundant Communication", Table III: seconds of an epoch in which gradients are reduced (and sent directly), parameters
# broadcast, and gradients computed, for the existing method, the proposed one and what drps does by itself; and how long a way
# communicates, to the existing one (the paper's rate leaves computing out: .727 / .848 is its .857 of news20, 500). MB are those of all
# ranks, and exact.
#   bench/papers/redundant-table3.sh [--quick] [DATA]
# Ten processes of one machine, whose cores they share: the paper had ten processors on five machines and 10 Gbit/s.
# Environment: bench/lib.sh's.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redundant.sh"

printed() { # SET BATCH WAY: the paper's cells
    awk -v row="$1 $2 $3" '$1 " " $2 " " $3 == row { print $4 " | " $5 " | " $6 " | " $7; there = 1 }
        END { if (!there) print " | | | " }' <<<"$table3"
}

awk '{ print $1, $2 }' <<<"$table3" | uniq | wanted | while read -r set batch; do
    existing=
    for way in "${ways[@]}"; do
        name=$(part "$way" 1)
        row="| $(title "$set"), $batch | $name | $(printed "$set" "$batch" "$name") |"
        if measure "$way" "$set" "$batch"; then
            existing=${existing:-$(jq '.reduce + .broadcast' "$work/way.json")}
            jq -r --arg row "$row" --argjson existing "$existing" '
                def digits(n): . * pow(10; n) | round / pow(10; n);
                "\($row) \(.reduce | digits(4)) | \(.broadcast | digits(4)) | \(.compute | digits(4)) | " +
                "\((.reduce + .broadcast) / $existing | digits(3)) | \(.mb | digits(2)) |"' "$work/way.json"
        else
            echo "$row not in this build | | | | |"
        fi
    done
done | table paper-redundant-table3 2 "set, mini-batch | way | paper: reduce, direct | paper: broadcast | paper: compute | paper: rate | reduce, direct | broadcast | compute | rate | MB"
