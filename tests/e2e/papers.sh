#!/usr/bin/env bash
# bench/papers/ in short: what is redundant is counted as the paper says, and each command prints its table, from sets that it
# generates where there are none.
. "$(dirname "$0")/lib.sh"
[[ -x $tools/bench_redundant ]] || skip "this build has no benchmarks"
command -v jq >/dev/null || skip "needs jq"
export DRPS_TOOLS=$tools TMPDIR=$work

# ---- One row of three workers, by hand: both in round 1, the third in round 2, nobody in round 3, two in round 4 ----

# The feature of each of three workers in four rounds; 9 is the row, others are used once.
features=(9 9 1 2 3 9 4 5 6 9 7 9)
for f in "${features[@]}"; do echo "$((f % 2)) $f:1"; done >row.svm
"$tools/drps-index" row.svm --format libsvm --algo lor --no-bias --order given --batch-size 1 --no-forecast -o row --quiet
"$tools/bench_redundant" row 3 >counts.json
# Of the row, two are broadcast first and two reduced last; 0 and 1 send it to 2, and 2 to 0 and to itself: 3 messages, not 6.
want='{"rounds": 4, "uses": 12, "single": 8, "reduced": 9, "broadcast": 9, "direct": 4, "own": 1}'
[[ $(cat counts.json) = "$want" ]] || fail "counted $(cat counts.json), not $want"
fails 2 "Usage" "$tools/bench_redundant" row 65
"$tools/drps-index" row.svm --format libsvm --algo lor --workers 2 --batch-size 1 -o two --quiet
fails 1 "no plan for one worker" "$tools/bench_redundant" two 3
echo "ok counts"

# ---- The commands ----

papers() { # NAME: its table, without head and rule
    bash "$source/bench/papers/$1.sh" --quick "$work/none" >"$1.md" 2>"$1.err" || fail "$1: $(cat "$1.err")"
    tail -n +3 "$1.md"
}
# cell FILE ROW N: the Nth cell of the line that begins with ROW
cell() { awk -F '|' -v row=" $2 " -v n="$3" '$2 == row { gsub(/ /, "", $(n + 1)); print $(n + 1) }' "$1"; }

papers redundant-table2 >table2
[[ $(wc -l <table2) = 3 && $(cell table2 "CTR, 1000" 4) = 0.834 ]] || fail "Table II: $(cat table2)"
awk -F '|' '{ for (i = 7; i <= 12; i++) if ($i !~ /[0-9]/) exit 1; if ($9 >= 1 || $12 >= 1 || $14 >= 1) exit 1 }' table2 || fail "Table II: $(cat table2)"
papers redundant-keys >keys
[[ $(cell keys "text, 500, LR" 5) = "100and200%" && $(cell keys "text, 500, FM of 8" 5) = "11and22%" ]] || fail "keys: $(cat keys)"
DRPS_BENCH_SETS=clicks papers compress-fig2 >degrees
# 39 features a sample, as they are and in 4,096 bins, where a few share one
[[ $(cell degrees clicks 8) = 39 && $(cell degrees "clicks, 2^12 bins" 2) -le 4096 && $(cell degrees "clicks, 2^12 bins" 8) = 39 ]] || fail "degrees: $(cat degrees)"
papers orpheus-table4 >table4
# 100 samples of 40,000 and 40,000 floats, and the frame: 32 MB; as much again of checkpoints, in the long run
[[ $(cell table4 LSTM 7) = 6400 && $(cell table4 LSTM 8) = 64 && $(cell table4 LSTM 9) = 32 ]] || fail "Table 4: $(cat table4)"
export DRPS_BENCH_MODELS="ratings alexnet"
papers timed-fig9 >fig9
awk -F '|' '$2 ~ /bsp/ { if ($2 == model && $6 <= dropped) exit 1; model = $2; dropped = $6; lines++ } END { exit lines != 6 }' fig9 ||
    fail "Figure 9: a larger threshold drops no more: $(cat fig9)"
export DRPS_BENCH_MODELS=ratings
papers timed-fig10 >fig10
[[ $(cell fig10 "MF, ratings, bsp" 2) = 66 ]] || fail "Figure 10: $(cat fig10)"
awk -F '|' '$2 ~ /bsp/ && ($4 <= 50 || $7 <= 50) { exit 1 }' fig10 || fail "Figure 10: gradients are not shortened: $(cat fig10)"
for name in timed-fig7 timed-fig8; do
    papers $name >out.txt
    [[ -s out.txt ]] || fail "$name prints nothing"
done
papers drps-table2 >out.txt # each line's time over the first: less with an index, and with all
awk -F '|' '{ its = $5; if ($2 ~ /, DRPS /) first = its; else if (!(its > 0 && its < first)) exit 1; lines++ } END { exit lines != 12 }' out.txt || fail "Table 2: $(cat out.txt)"
export DRPS_BENCH_SETS=avazu
papers drps-fig7 >drps7
[[ $(grep -c "| yes |" drps7) = 2 ]] || fail "DRPS, Figure 7: other blocks than recounting: $(cat drps7)"
papers drps-fig8 >drps8
awk -F '|' '{ saved[NR] = $8; sent[NR] = $10 } END { exit !(NR == 6 && saved[2] > 0 && sent[3] > 0 && sent[5] > sent[3]) }' drps8 ||
    fail "DRPS, Figure 8: $(cat drps8)"
papers compress-fig7 >fig7
# The printed DPPA moves less than random does, also where features are hashed.
[[ $(cell fig7 "not hashed, 1 : 4" 6 | awk 'NR == 1 && $1 < 0.9 { print "less" }') = less ]] || fail "Figure 7: $(cat fig7)"
[[ $(cell fig7 "1024 bins, 1 : 1" 6 | awk 'NR == 1 && $1 < 1 { print "less" }') = less ]] || fail "Figure 7: $(cat fig7)"
papers compress-fig8 >fig8
# Lines of this name: rounds, sets, busiest, moved. Pruned nets move less; Algorithm 4 moves less than placing anew does, but some.
moved() { cell fig8 "16 machines, $1, all epochs" "$2" | awk -v line="$3" 'NR == line { print }'; }
awk -v whole="$(moved "not pruned" 2 1)" -v pruned="$(moved pruned 2 1)" -v anew="$(moved "not pruned" 6 4)" -v some="$(moved "not pruned" 7 4)" \
    'BEGIN { exit !(pruned > 0 && pruned < whole && some > 0 && some < anew / 10) }' || fail "Figure 8: $(cat fig8)"
grep -q "images of ten kinds is generated" compress-fig8.err || fail "Figure 8 does not say that its data are generated"
grep -q "SKIPPED metis" compress-fig7.err && echo "no METIS in this build: not compared with it"
echo "ok tables"
