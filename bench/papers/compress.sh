# shellcheck shell=bash
# What the scripts of "compress" share: a placement by each way, and the tables. Source it after lib.sh.

need bench_compress
ways=(random metis dppa:1:32 dppa:2:32 dppa:1:0 auto)
titles="random | MGP | DPPA, S 32, alpha 1 | S 32, alpha 2 | S n/k, alpha 1 | ours"
: >"$work/compared.tsv"

# compare TITLE KIND DATA BINS MACHINES: a line a way is added to compared.tsv
compare() {
    "$tools/bench_compress" "${@:2}" "${ways[@]}" | awk -v title="$1" '{ print title "\t" $0 }' >>"$work/compared.tsv"
}

# one COLUMN: of all that was compared, that column of bench_compress to that of random, which is in thousands
one() {
    awk -F '\t' -v column="$1" -v ways="${ways[*]}" '
        !($1 in seen) { seen[$1] = 1; order[++titles] = $1 }
        { value[$1, $2] = $(column + 1) }
        END {
            n = split(ways, way, " ")
            for (t = 1; t <= titles; t++) {
                base = value[order[t], "random"]
                line = sprintf("| %s | %.1f |", order[t], base / 1000)
                for (w = 2; w <= n; w++) {
                    key = order[t] SUBSEP way[w]
                    line = line (key in value ? sprintf(" %.3f |", value[key] / base) : " not in this build |")
                }
                print line
            }
        }' "$work/compared.tsv"
}

# compared NAME LABELS: the tables of all that was compared, and the seconds of the processor, which are not recorded
compared() {
    local what column
    for what in sets:2 busiest:3 batches:4; do
        column=${what#*:} what=${what%:*}
        echo "$what: thousand rows at random; the others to that"
        one "$column" | table "paper-$1-$what" 1 "$2 | $titles"
    done
    echo "samples of the machine that has most, to the average; seconds of the processor:"
    awk -F '\t' '{ printf "%s | %s | %s | %s\n", $1, $2, $7, $8 }' "$work/compared.tsv"
}
