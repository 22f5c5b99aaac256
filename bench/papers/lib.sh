# shellcheck shell=bash
# What the scripts of this folder share: data sets, and options that a build may lack. Source it with "$@".
#   bench/papers/NAME.sh [--quick] [DATA]      DATA: default ../shared/data; a set that is not there is generated, and it says so
# --quick: small samples of the same sets, to see that it works. Environment: bench/lib.sh's.
quick=
if [[ ${1:-} = --quick ]]; then
    quick=1
    shift
fi
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
data=${1:-$root/../shared/data}

# quickly QUICK FULL: the first with --quick, else the second
quickly() { if [[ -n $quick ]]; then echo "$1"; else echo "$2"; fi; }

# there FOLDER SET: is the folder in DATA? Else says that SET is generated.
there() {
    [[ ! -d $data/$1 ]] || return 0
    echo "$(basename "$0"): no $1 in $data: $2 is generated" >&2
    return 1
}

# known TOOL OPTION: has the tool of this build the option?
known() { "$tools/$1" --help | grep -E -- "(^|[ ,])$2([=, ]|\$)" >/dev/null; }

# need PROGRAM...: programs of this build, besides the tools
need() {
    local program
    for program in "$@"; do
        [[ -x $tools/$program ]] || {
            echo "$(basename "$0"): $tools has no $program: build drps with -DDRPS_BUILD_BENCH=ON, or set DRPS_TOOLS" >&2
            exit 1
        }
    done
}

# packed FILE [LINES]: the file of DATA, or its first lines
packed() { xz -dc "$data/$1" | awk -v most="${2:-0}" '!most || NR <= most'; }

# mixed: the lines of its input in an order that depends on their number alone (7919 is a prime)
mixed() { awk '{ line[NR] = $0 } END { for (i = 0; i < NR; i++) print line[(i * 7919) % NR + 1] }'; }

# unit: libsvm samples of the same features, each of length 1
unit() {
    awk '{
        value = sprintf("%.5f", 1 / sqrt(NF > 1 ? NF - 1 : 1))
        for (i = 2; i <= NF; i++) sub(/:.*/, ":" value, $i)
        print
    }'
}

# table TOPIC LABELS TITLES: prints the lines of a table below its titles; they are recorded, too
table() {
    {
        echo "| $3 |"
        awk -v titles="$3" 'BEGIN { gsub(/[^|]+/, " --- ", titles); print "|" titles "|" }'
        cat
    } | tables "$1" "$2"
}

gen() { "$tools/drps-gen" "$@" --force --quiet; }

# ---- Sets of "redundant": each makes a file of libsvm lines ----

set_text() { # OUTPUT
    if there imdb "text"; then packed imdb/imdb-bigram.train.libsvm.xz "$(quickly 5000 0)" | unit >"$1"; else
        gen classification --samples "$(quickly 5K 25K)" --nnz 300 --rows 430K --zipf 1.05 -o "$1"
    fi
}
set_url() { gen classification --samples "$(quickly 30K 240K)" --nnz 115 --rows 3200K --zipf 1.5 -o "$1"; }
set_ctr() { gen ctr --samples "$(quickly 30K 860K)" --fields 39 --rows 5M --zipf 1.05 -o "$1"; }
