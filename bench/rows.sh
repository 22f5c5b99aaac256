# shellcheck shell=bash
# Rows of bench/results.sh, written by benchmark scripts. Source it. Where DRPS_BENCH_ROWS is not set, nothing is written.
# Date, commit (with a + where files other than those of bench/ were changed), machine and command are of the script that runs.

# The script as it was called, with the settings of its environment.
rows_command() {
    local words name shown=() here script
    here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) script=$(realpath "$0")
    [[ $script = "$here"/* ]] || script=$here/$(basename "$0")
    mapfile -d '' -t words </proc/$$/cmdline
    for name in ${!DRPS_BENCH_@}; do
        case $name in DRPS_BENCH_DIR | DRPS_BENCH_KEEP | DRPS_BENCH_RESULTS | DRPS_BENCH_ROWS) ;; *) shown+=("$name=\"${!name}\"") ;; esac
    done
    shown+=("bench/${script#"$here/"}")
    for name in "${words[@]:2}"; do
        [[ $name != *[!A-Za-z0-9_./:=,@%+-]* ]] || name=\"$name\"
        shown+=("$name")
    done
    echo "${shown[*]}"
}

rows_head() { # date, commit, machine and command, with tabs between them
    local here commit
    here=$(dirname "${BASH_SOURCE[0]}")
    commit=$(git -C "$here" rev-parse --short=7 HEAD 2>/dev/null || echo "not noted")
    git -C "$here/.." diff --quiet HEAD -- . ':!bench' 2>/dev/null || commit+=+
    printf '%s\t%s\t%s\t%s' "$(date +%F)" "$commit" \
        "$(nproc) cores of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(awk '/^MemTotal/ {printf "%.0f GiB", $2 / 1048576}' /proc/meminfo), load $(cut -d ' ' -f 1 /proc/loadavg)" \
        "$(rows_command | tr '\t|' ' /')"
}
rows_file=${DRPS_BENCH_ROWS:-/dev/null}
rows_head=$([[ $rows_file = /dev/null ]] || rows_head)

# record NAME VALUE [UNIT]: NAME is TOPIC|ROW|COLUMN. An empty value and "-" are no figure.
record() {
    [[ -z $2 || $2 = - ]] || printf '%s\t%s\t%s\t%s\n' "$rows_head" "$1" "$2" "${3:-}" >>"$rows_file"
}

# tables TOPIC [LABELS [TITLES]]: copies its input; the cells of the Markdown tables in it become rows, but empty ones, "-" and
# "not ...". The first LABELS cells (1) of a line are its ROW, the titles above are COLUMNs. "12 MiB" has the unit MiB. TITLES: of an
# input without titles, as "model | rate".
tables() {
    awk -v topic="$1" -v labels="${2:-1}" -v head="$rows_head" -v rows="$rows_file" -v given="${3:-}" '
        function cells(line, cell,    n, i) {
            sub(/^\| */, "", line)
            sub(/ *\|$/, "", line)
            n = split(line, cell, /\|/)
            for (i = 1; i <= n; i++) gsub(/^ +| +$/, "", cell[i])
            return n
        }
        BEGIN { if (given != "") inside = cells("| " given " |", title) }
        { print; fflush() }
        !/^\| / { inside = given != ""; next }
        !inside { inside = 1; cells($0, title); next }
        /^\| ---/ { next }
        {
            n = cells($0, cell)
            row = cell[1]
            for (i = 2; i <= labels; i++) row = row ", " cell[i]
            for (i = labels + 1; i <= n; i++) {
                if (cell[i] == "" || cell[i] ~ /^(-$|not )/) continue
                value = cell[i]
                unit = ""
                if (match(value, /^[-+]?[0-9.]+ [^0-9]+$/)) {
                    at = index(value, " ")
                    unit = substr(value, at + 1)
                    value = substr(value, 1, at - 1)
                }
                printf "%s\t%s|%s|%s\t%s\t%s\n", head, topic, row, title[i], value, unit >>rows
            }
        }'
}

# model_name ALGO FACTORS: as results name it
model_name() {
    case $1 in
    lor) echo LR ;;
    fm) echo "FM, rank $2" ;;
    lmf) echo "MF, rank $2" ;;
    *) echo "$1${2:+, rank $2}" ;;
    esac
}
