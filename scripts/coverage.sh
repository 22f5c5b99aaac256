#!/usr/bin/env bash
# Which lines the tests run: builds with gcc's counters, runs tests, and prints a table of the folders.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tree=$PWD

usage() {
    cat <<'TEXT'
Usage: scripts/coverage.sh [-b FOLDER] [-j JOBS] [--e2e | --last] [--uncovered FOLDER]... [--write] [LABEL...]

Builds drps in FOLDER (default: build-coverage) with gcc's counters and without optimisation, runs the tests that have one
of the labels (default: unit), JOBS at a time (default: one a processor), and prints how many lines of each folder ran.
--e2e        also the tests of whole tools
--last       no tests: what the last run counted, as long as nothing was built since
--uncovered  lists the lines of FOLDER, as storage or storage/kv, that did not run
--write      also puts the table into docs/coverage.md
A folder counts what lies below it. A line counts that gcc made code for. Not counted is what a process does that a signal
or _exit() ends: children that tests kill, or that end so, write no counters. Needs gcov, which comes with gcc.
The exit status is 1 where a test failed; the table is printed all the same.
TEXT
}

modules=(base net partition sched storage index engine tools)
folder=build-coverage
jobs=$(nproc)
labels=()
uncovered=()
run=1
write=0
while (($#)); do
    case $1 in
    -b | -j | --uncovered)
        if (($# < 2)); then
            echo "coverage: $1 needs an argument" >&2
            exit 2
        fi
        case $1 in
        -b) folder=$2 ;;
        -j) jobs=$2 ;;
        *) uncovered+=("${2%/}") ;;
        esac
        shift
        ;;
    --e2e) labels+=(unit e2e) ;;
    --last) run=0 ;;
    --write) write=1 ;;
    -h | --help)
        usage
        exit 0
        ;;
    -*)
        echo "coverage: unknown option '$1'" >&2
        usage >&2
        exit 2
        ;;
    *) labels+=("$1") ;;
    esac
    shift
done
if ((!${#labels[@]})); then labels=(unit); fi
lines=$folder/lines.tsv # FILE, line, times, text: one row a line that gcc made code for
ran=$folder/labels      # of the tests that were counted

# run_tests: build, set the counters to nothing, and run.
run_tests() {
    if [[ ! -e $folder/CMakeCache.txt ]]; then
        cmake -S . -B "$folder" -DCMAKE_C_COMPILER=gcc -DDRPS_COVERAGE=ON -DDRPS_BUILD_BENCH=OFF
    fi
    cmake --build "$folder" -j "$jobs"
    find "$folder" -name '*.gcda' -delete
    echo "${labels[*]}" >"$ran"
    ctest --test-dir "$folder" -L "^($(
        IFS='|'
        echo "${labels[*]}"
    ))\$" -j "$jobs" --output-on-failure --no-tests=error
}

# count: what gcov says of every object; one that never ran has no data. A line of a header is in many: they are summed.
count() {
    local compiler
    compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$folder/CMakeCache.txt")
    find "$folder" -name '*.c.gcno' -print0 | xargs -0 "$(gcov_of "$compiler")" -t 2> >(grep -v 'cannot open data file' >&2) |
        awk -v tree="$tree/" -v modules="${modules[*]}" '
        BEGIN { split(modules, m, " "); for (i in m) wanted[m[i]] = 1 }
        {
            times = $0; sub(/:.*/, "", times); gsub(/[ *]/, "", times)
            rest = substr($0, index($0, ":") + 1)
            number = rest; sub(/:.*/, "", number); number += 0
            text = substr(rest, index(rest, ":") + 1)
        }
        number == 0 && text ~ /^Source:/ {
            file = substr(text, 8); known = index(file, tree) == 1
            file = substr(file, length(tree) + 1)
            top = file; sub(/\/.*/, "", top); known = known && (top in wanted)
            if (known) { known = (getline text < file) > 0; close(file) } # an object of a source that is gone stays
        }
        number > 0 && known && times != "-" {
            line = file "\t" number
            ran[line] += times + 0 # "#####" and "=====" are 0
            source[line] = text
        }
        END { for (line in ran) print line "\t" ran[line] "\t" source[line] }' |
        LC_ALL=C sort -t "$(printf '\t')" -k1,1 -k2,2n >"$lines"
}

# gcov_of COMPILER: the gcov of its version, whose name ends as the compiler's does.
gcov_of() {
    local name=${1##*/} other
    other=${1%"$name"}gcov${name#gcc}
    if command -v "$other" >/dev/null; then echo "$other"; else echo gcov; fi
}

# table: a row a folder, with what lies below it, and one for the whole.
table() {
    awk -F '\t' '
        {
            path = $1
            while (sub(/\/[^\/]*$/, "", path)) { all[path]++; ran[path] += $3 > 0 }
            all["(all)"]++; ran["(all)"] += $3 > 0
        }
        END { for (f in all) printf "%s\t%d\t%d\t%.1f\n", f, all[f], ran[f], 100 * ran[f] / all[f] }' "$lines" |
        LC_ALL=C sort
}

# write_table DOCUMENT: between its two marks.
write_table() {
    local new
    new=$(mktemp)
    {
        sed '/^<!-- table -->$/q' "$1"
        echo "Tests labelled $(<"$ran"), $(date -r "$lines" +%F), gcc $(gcc -dumpfullversion):"
        echo
        echo "| folder | lines | run | % |"
        echo "| --- | ---: | ---: | ---: |"
        table | awk -F '\t' '{ name = $1 == "(all)" ? "all" : "`" $1 "/`"; print "| " name " | " $2 " | " $3 " | " $4 " |" }'
        sed -n '/^<!-- end of table -->$/,$p' "$1"
    } >"$new"
    cat "$new" >"$1"
    rm "$new"
}

failed=0
if ((run)); then
    run_tests || failed=1
    count
elif [[ ! -e $lines ]]; then
    echo "coverage: nothing was counted in $folder yet" >&2
    exit 1
fi
table | awk -F '\t' 'BEGIN { printf "%-28s %8s %8s %6s\n", "folder", "lines", "run", "%" }
    { printf "%-28s %8d %8d %6s\n", $1, $2, $3, $4 }'
for wanted in "${uncovered[@]}"; do
    echo
    echo "Not run in $wanted:"
    awk -F '\t' -v under="$wanted/" 'index($1, under) == 1 && $3 == 0 { print $1 ":" $2 ": " substr($0, length($1 $2 $3) + 4) }' "$lines"
done
if ((write)); then write_table docs/coverage.md; fi
exit "$failed"
