#!/usr/bin/env bash
# bench/RESULTS.md is what bench/results.sh writes, and has no number that was not measured; rows are added, checked and shown,
# the newest of a name first; what a benchmark prints as a table becomes rows.
. "$(dirname "$0")/lib.sh"
results=$source/bench/results.sh
"$results" check || fail "run bench/results.sh write"

# ---- A folder of its own ----

export DRPS_BENCH_RESULTS=$work/bench
mkdir -p bench
row() { printf '%s\t%s\tsome machine\tsome command\t%s\t%s\t%s\n' "$@"; } # DATE COMMIT NAME VALUE UNIT
row 2026-01-01 aaaaaaa 'speed|LR|rate' 10 K >rows.tsv
row 2026-01-01 aaaaaaa 'speed|LR|memory' 5 MiB >>rows.tsv
row 2026-01-01 aaaaaaa 'speed|FM|rate' 3 K >>rows.tsv
row 2026-01-02 bbbbbbb 'speed|LR|rate' 12.5 K >>rows.tsv
"$results" add rows.tsv
[[ $(wc -l <bench/history/speed.tsv) = 4 ]] || fail "4 rows, but history has $(wc -l <bench/history/speed.tsv)"
[[ $("$results" show '^speed.LR.rate$' | cut -f6) = 12.5 ]] || fail "show: not the newest row"

cat >bench/questions.md <<'TEXT'
@table speed | model | rate = samples/s | memory
Then {speed|FM|rate}.
@at aaaaaaa
@rows LR
@table speed | model | rate | memory
TEXT
"$results" write
# A row has the cells of its newest run, and stands where that run has it; an older commit is there if asked for.
cat >expected.md <<'TEXT'
2026-01-01, aaaaaaa, some machine: `some command`  
2026-01-02, bbbbbbb, some machine: `some command`

| model | samples/s | memory |
| --- | --- | --- |
| FM | 3 K | |
| LR | 12.5 K | |
Then 3 K.
2026-01-01, aaaaaaa, some machine: `some command`

| model | rate | memory |
| --- | --- | --- |
| LR | 10 K | 5 MiB |
TEXT
tail -n +2 bench/RESULTS.md | diff expected.md - || fail "write: other tables than expected"
"$results" check

echo "more" >>bench/RESULTS.md
fails 1 "not what bench/results.sh write makes" "$results" check
echo "It was 77 K." >>bench/questions.md
"$results" write
fails 1 "not in bench/history: 77" "$results" check
echo "{speed|LR|colour}" >>bench/questions.md
fails 1 "questions.md:7: no value of speed\|LR\|colour" "$results" write
printf 'yesterday\taaaaaaa\tm\tc\tspeed\t1\n' >bad.tsv
fails 1 "bad.tsv:1: has 6 fields" "$results" add bad.tsv
row yesterday aaaaaaa speed 1 K >bad.tsv
fails 1 "has no date: yesterday" "$results" add bad.tsv
[[ $(wc -l <bench/history/speed.tsv) = 4 ]] || fail "a bad file was added"

# ---- Rows of a benchmark ----

cat >speed.sh <<'TEXT'
. "$1/bench/rows.sh"
{
    echo "| model | run | rate | memory |"
    echo "| --- | --- | --- | --- |"
    echo "| LR | first | 12 MiB | - |"
    echo "| SVM | first | not in this build | |"
    echo "| FM | first | 3 (1 to 2) | 5 |"
    echo
    echo "The end."
} | tables speed 2
record "speed|MF|rate" 7 K
record "speed|MF|memory" ""
TEXT
DRPS_BENCH_ROWS=$work/new.tsv DRPS_BENCH_SAMPLES=9K bash speed.sh "$source" "two words" >printed.txt
[[ $(wc -l <printed.txt) = 7 ]] || fail "tables did not copy its input: $(cat printed.txt)"
printf '%s\n' 'speed|LR, first|rate,12,MiB' 'speed|FM, first|rate,3 (1 to 2),' 'speed|FM, first|memory,5,' 'speed|MF|rate,7,K' >want.txt
cut -f 5-7 new.tsv | tr '\t' , | diff want.txt - || fail "other rows than the tables have"
[[ $(cut -f 4 new.tsv | sort -u) = 'DRPS_BENCH_SAMPLES="9K" bench/speed.sh '*' "two words"' ]] || fail "the command: $(cut -f 4 new.tsv)"
"$results" add new.tsv
bash speed.sh "$source" >printed.txt
[[ $(wc -l <new.tsv) = 4 ]] || fail "rows were written without DRPS_BENCH_ROWS"
