#!/usr/bin/env bash
# Figures that benchmarks measured, and the pages that are written from them: bench/RESULTS.md and docs/papers.md. Needs awk.
set -euo pipefail
shopt -s nullglob

usage() {
    cat <<'TEXT'
Usage: bench/results.sh add FILE...    append the rows of FILEs to bench/history
       bench/results.sh write          write bench/RESULTS.md from bench/questions.md, and docs/papers.md from bench/papers/questions.md,
                                       and from bench/history
       bench/results.sh check          say whether the pages are that, and whether each of their numbers is in bench/history
       bench/results.sh show PATTERN   the newest rows whose name matches an extended regular expression

A row has seven fields with tabs between them: date, commit, machine, command, name, value, unit. A name is TOPIC|ROW|COLUMN, and
bench/history/TOPIC.tsv holds the rows of its topic. Of rows with one name the last one is the newest. Scripts in bench/ append
their rows to the file that DRPS_BENCH_ROWS names.

In questions.md these are replaced, all else is copied:
  @table TOPIC | TITLE | COLUMN = TITLE | ...    when, where and how its rows were measured, and their table: its first
                                                 column has TITLE, the others are these columns ("= TITLE" may be left out);
                                                 a row has the cells of its newest run
  @rows PATTERN                                  the next table has only rows whose ROW matches
  @at COMMIT                                     the next table is of that commit, not of the newest
  {TOPIC|ROW|COLUMN}                             a value with its unit
TEXT
}

here=${DRPS_BENCH_RESULTS:-$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)} # a folder with questions.md, history and RESULTS.md
pages=("questions.md RESULTS.md") # in it: what each is written from
[[ ! -e $here/papers/questions.md ]] || pages+=("papers/questions.md ../docs/papers.md")
rows=("$here"/history/*.tsv)

die() { echo "results.sh: $*" >&2 && exit 1; }

# fields FILE...: fails and says so where a line is not a row.
fields() {
    awk -F'\t' '
        function bad(what) { printf "results.sh: %s:%d: %s\n", FILENAME, FNR, what > "/dev/stderr"; failed = 1 }
        NF != 7 { bad("has " NF " fields, a row has 7"); next }
        $1 !~ /^[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]$/ { bad("has no date: " $1) }
        split($5, part, "|") != 3 || part[1] !~ /^[a-z0-9-]+$/ { bad("has no name of the form topic|row|column: " $5) }
        $6 == "" { bad("has no value") }
        END { exit failed }' "$@"
}

# The program of awk that writes the results: first the files of bench/history, then questions.md.
# shellcheck disable=SC2016 # awk expands
program='
    function trim(s) { gsub(/^ +| +$/, "", s); return s }
    function shown(key) { return value[key] (unit[key] == "" ? "" : " " unit[key]) }
    function fail(what) { printf "results.sh: %s:%d: %s\n", name, FNR, what > "/dev/stderr"; failed = 1 }
    function key_of(topic, r, column) { return topic "|" row[topic, r] "|" column (at == "" ? "" : SUBSEP at) }
    function table(line,    n, cell, topic, i, r, key, k, out, rule, column, title, newest, count, runs, listed) {
        n = split(line, cell, "|")
        topic = trim(cell[1])
        out = "| " trim(cell[2]) " |"
        rule = "| --- |"
        for (i = 3; i <= n; i++) {
            k = index(cell[i], " = ")
            column[i] = trim(k ? substr(cell[i], 1, k - 1) : cell[i])
            title[i] = trim(k ? substr(cell[i], k + 3) : cell[i])
            out = out " " title[i] " |"
            rule = rule " --- |"
        }
        out = out "\n" rule "\n"
        count = 0
        for (r = 1; r <= rows[topic]; r++) {
            if (row[topic, r] !~ pattern || place[topic, row[topic, r]] != r) continue
            newest = "" # the key of the cell that was measured last: those of other runs are left out
            for (i = 3; i <= n; i++) {
                key = key_of(topic, r, column[i])
                if (key in value && (newest == "" || when[key] > when[newest])) newest = key
            }
            if (newest == "") continue
            if (!(run[newest] in listed)) { listed[run[newest]] = 1; runs[++count] = run[newest] }
            out = out "| " row[topic, r] " |"
            for (i = 3; i <= n; i++) {
                key = key_of(topic, r, column[i])
                out = out (key in value && run[key] == run[newest] ? " " shown(key) : "") " |"
            }
            out = out "\n"
        }
        if (!count) fail("no row of " topic " has these columns")
        for (i = 1; i <= count; i++) print runs[i] (i < count ? "  " : "") # two blanks end a line
        printf "\n%s", out
        pattern = at = ""
    }
    function keep(key) {
        value[key] = $6
        unit[key] = $7
        when[key] = NR
        run[key] = this
    }
    BEGIN { FS = "\t" }
    FILENAME != questions {
        split($5, part, "|")
        this = $1 ", " $2 ", " $3 ": `" $4 "`"
        if (run_of[part[1], part[2]] != this) { # a row stands where its newest run has it
            row[part[1], ++rows[part[1]]] = part[2]
            place[part[1], part[2]] = rows[part[1]]
            run_of[part[1], part[2]] = this
        }
        keep($5)
        keep($5 SUBSEP $2)
        next
    }
    /^@rows / { pattern = substr($0, 7); next }
    /^@at / { at = substr($0, 5); next }
    /^@table / { table(substr($0, 8)); next }
    {
        while (match($0, /\{[a-z0-9-]+\|[^}]*\}/)) {
            key = substr($0, RSTART + 1, RLENGTH - 2)
            if (!(key in value)) fail("no value of " key)
            $0 = substr($0, 1, RSTART - 1) shown(key) substr($0, RSTART + RLENGTH)
        }
        print
    }
    END { exit failed }'

render() { # QUESTIONS: the page that is written from it
    echo "<!-- Written by bench/results.sh from bench/$1 and bench/history: edit those. -->"
    awk -v questions="$here/$1" -v name="$1" "$program" "${rows[@]}" "$here/$1"
}

# numbers: those of its input, a line each.
numbers() { grep -oE '[0-9]+([.,][0-9]+)*' | LC_ALL=C sort -u; }

check() { # QUESTIONS PAGE
    local missing
    render "$1" | cmp -s - "$here/$2" ||
        die "$(basename "$2") is not what bench/results.sh write makes of bench/history and bench/$1"
    missing=$(comm -23 <(numbers <"$here/$2") <(cat "${rows[@]}" | numbers))
    [[ -z $missing ]] || die "numbers of $(basename "$2") that are not in bench/history: ${missing//$'\n'/ }"
}

write() { # QUESTIONS PAGE
    render "$1" >"$here/$2.new" || { rm -f "$here/$2.new" && exit 1; }
    mv "$here/$2.new" "$here/$2"
}

# each COMMAND: with each page
each() {
    local page
    fields "${rows[@]}"
    for page in "${pages[@]}"; do "$1" "${page% *}" "${page#* }"; done
}

add() {
    local file
    (($#)) || { usage >&2 && exit 2; }
    fields "$@"
    mkdir -p "$here/history"
    for file in "$@"; do
        awk -F'\t' -v folder="$here/history" '{ split($5, part, "|"); print >> (folder "/" part[1] ".tsv") }' "$file"
    done
}

case ${1:-} in
add) add "${@:2}" ;;
write) each write ;;
check) each check ;;
show)
    (($# == 2)) || { usage >&2 && exit 2; }
    cat "${rows[@]}" | awk -F'\t' -v p="$2" '$5 ~ p { if (!($5 in row)) name[++n] = $5; row[$5] = $0 }
        END { for (i = 1; i <= n; i++) print row[name[i]] }'
    ;;
-h | --help) usage ;;
*) usage >&2 && exit 2 ;;
esac
