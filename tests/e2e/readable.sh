#!/usr/bin/env bash
# Models that can be read: the largest weights with their names, in the units of the data, too; predictions explained by parts that
# add up to the score; exports that hold all parameters, whatever the memory.
. "$(dirname "$0")/lib.sh"

index() { "$tools/drps-index" "$@" --quiet --force; }
train() { "$tools/drps-train" "$@" --quiet --force --epochs 3; }
stat() { "$tools/drps-stat" "$@"; }
explain() { "$tools/drps-predict" "$@" --quiet --force; }

# ---- Weights: of a table in which city decides most, and income is scaled by itself ----

awk 'BEGIN {srand(1); print "age,city,income,bought"
    for (i = 0; i < 3000; i++) {c = int(rand() * 8); a = int(rand() * 60) + 18; inc = int(rand() * 100000)
        printf "%d,%s,%d,%d\n", a, c < 3 ? "near\"" c "\"" : "c" c, inc, rand() < 1 / (1 + exp(-(c < 3 ? 3 : -2) - (a - 45) / 20))}}' >buy.csv
sed -i 's/near"\([0-9]\)"/"near ""\1"""/' buy.csv
index buy.csv --label bought --algo lor -o plan
train plan -o lor
stat lor --weights --top 8 >top.txt
[[ $(sed -n 1p top.txt | tr -s ' ') = ' weight per unit feature' ]] || fail "another head: $(cat top.txt)"
grep -q '(intercept)$' <(sed -n 2p top.txt) || fail "the intercept is not first: $(cat top.txt)"
tail -n +3 top.txt | awk '/city=/ && /near/ != ($1 > 0) {exit 1} /city=/ {n++} END {exit n < 7}' || fail "what decides is not on top: $(cat top.txt)"
[[ $(grep -c 'city=near "[012]"$' top.txt) = 3 ]] || fail "other names: $(cat top.txt)"
tail -n +3 top.txt | awk '{size = $1 < 0 ? -$1 : $1} last && size > last {exit 1} {last = size}' || fail "the largest does not come first: $(cat top.txt)"
[[ $(stat lor --weights | wc -l) = 12 ]] || fail "not all weights, of fewer than 20: $(stat lor --weights)"

# A weight in the units of the data: what the score changes by when the number does, by 1000 here.
per_unit=$(stat lor --weights --json | awk '/"name": "income"/ {found = 1} found && /"per_unit"/ {gsub(/[^-0-9.e]/, "", $2); print $2; exit}')
printf 'age,city,income\n40,c5,20000\n40,c5,21000\n' >two.csv
explain lor two.csv -o two.tsv --explain 9
awk -F '\t' -v w="$per_unit" '$2 == "(score)" {s[$1] = $4} END {d = s[2] - s[1] - 1000 * w; exit !(d * d < 1e-10)}' two.tsv ||
    fail "the weight per unit of income is $per_unit, but: $(cat two.tsv)"

# How many samples have a feature, and the standard error: of the sum over them of p (1 - p) x^2.
number() { sed -n "/\"name\": \"$2\"/,/}/p" $1 | all_values "$3"; } # number FILE NAME KEY
stat lor --weights --plan plan --json >plan.json
[[ $(number plan.json city=c5 samples) = $(grep -c ',c5,' buy.csv) && $(number plan.json age samples) = 3000 ]] || fail "other counts: $(cat plan.json)"
"$tools/drps-predict" lor buy.csv -o p.txt --quiet
expected=$(paste -d, <(tail -n +2 buy.csv) p.txt | awk -F , '$2 == "c5" {sum += $NF * (1 - $NF)} END {printf "%.9g", 1 / sqrt(sum)}')
near "$(number plan.json city=c5 error)" "$expected" 1e-5 || fail "the error of c5 is $(number plan.json city=c5 error), not $expected"
near "$(all_values intercept_error <plan.json)" "$(awk '{sum += $1 * (1 - $1)} END {printf "%.9g", 1 / sqrt(sum)}' p.txt)" 1e-5 || fail "another error of the intercept"
[[ $(stat lor --weights --plan plan --top 1 | head -1 | tr -s ' ') = ' weight error per unit samples feature' ]] || fail "another head: $(stat lor --weights --plan plan)"
index buy.csv --label bought --algo lir -o plan-lir
train plan-lir -o lir
stat lir --weights --plan plan-lir --json >plan.json
"$tools/drps-predict" lir buy.csv -o v.txt --quiet
expected=$(paste -d, <(tail -n +2 buy.csv) v.txt | awk -F , '{d = $NF - $4; s += d * d; n += $2 == "c5"} END {printf "%.9g", sqrt(s / NR / n)}')
near "$(number plan.json city=c5 error)" "$expected" 1e-5 || fail "the error of c5 in lir is $(number plan.json city=c5 error), not $expected"
fails 2 'the model is not of plan: it was trained from another plan' stat lir --weights --plan plan
fails 1 'nowhere' stat lir --weights --plan nowhere
# A plan whose batches are another's.
head -2991 buy.csv >fewer.csv
index fewer.csv --label bought --algo lor --order given -o plan-fewer
index buy.csv --label bought --algo lor --order given -o plan-all
train plan-all -o lor-all
cp plan-fewer/data.rec plan-fewer/rows.rec plan-all/
fails 1 'batches have 2990 samples, plan.json says 3000' stat lor-all --weights --plan plan-all
awk 'BEGIN {srand(3); for (i = 0; i < 500; i++) print int(rand() * 2), "0:" int(rand() * 9) ":1 1:" 9 + int(rand() * 9) ":1"}' >fields.ffm
for algo in ffm lor; do index fields.ffm --format libffm --algo $algo -o plan-$algo; done
train plan-ffm -o ffm-of-fields
cp plan-lor/data.rec plan-ffm/
fails 1 'data.rec: record 0: entries of 0 fields, plan.json says 2' stat ffm-of-fields --weights --plan plan-ffm
fails 2 "lor has no named classes: leave out --class" stat lor --weights --class x
fails 2 'give that, too' stat lor --top 3
fails 2 'are for models, and plan is a plan' stat plan --weights
fails 2 'ask one' stat lor --weights --verify
fails 1 'at least [0-9.]+ [KM]iB' stat lor --weights --memory 1M
echo "ok weights"

# ---- Of classes, factors and several scores ----

five_classes
index train.svm --algo mlr -o plan-mlr
train plan-mlr -o mlr
stat mlr --weights --top 5 >classes.txt
[[ $(awk '/^class/ {c = $2} c && $1 + 0 > 0 && $2 ~ /^[0-9]+$/ {print c $2}' classes.txt | tr '\n' ' ') = 'ash1 beech2 elm3 oak4 yew5 ' ]] ||
    fail "other features decide classes: $(cat classes.txt)"
[[ $(stat mlr --weights --top 5 --class elm) = "$(sed -n '/^class elm/,/^$/p' classes.txt | sed '/^$/d')" ]] || fail "a class alone is another list"
stat mlr --weights --class elm --plan plan-mlr --json >plan.json
"$tools/drps-predict" mlr train.svm -o p.txt --quiet --force --probabilities
expected=$(paste <(tail -n +2 p.txt | cut -f 3) train.svm | awk '/ 3:1/ {sum += $1 * (1 - $1)} END {printf "%.9g", 1 / sqrt(sum)}')
near "$(number plan.json 3 error)" "$expected" 1e-5 || fail "the error of 3 for elm is $(number plan.json 3 error), not $expected"
index buy.csv --label bought --algo fm --factors 3 -o plan-fm
train plan-fm -o fm
stat fm --weights >factors.txt
head -1 factors.txt | grep -q factors || fail "no factors: $(cat factors.txt)"
echo "ok lists"

# ---- Explanations add up to the score, which is what prediction makes of it ----

"$tools/drps-gen" matrix --users 60 --items 30 --ratings 2K --seed 3 -o ratings.tsv --quiet
index ratings.tsv --algo lmf --factors 4 -o plan-lmf
train plan-lmf -o lmf
"$tools/drps-gen" ctr --samples 2K --fields 6 --rows 900 --seed 5 -o ctr.svm --quiet
awk '{printf "%s", $1; for (i = 2; i <= NF; i++) {split($i, a, ":"); printf " %d:%s:%s", i % 3, a[1], a[2] * i / 3} print ""}' ctr.svm >ctr.ffm
index ctr.ffm --format libffm --algo ffm --factors 4 -o plan-ffm
train plan-ffm -o ffm
index ctr.ffm --format libffm --algo fm --factors 5 -o plan-fm2
train plan-fm2 -o fm2
index ctr.svm --algo svm -o plan-svm
train plan-svm -o svm
for case in lor:buy.csv fm:buy.csv mlr:test.svm lmf:ratings.tsv ffm:ctr.ffm fm2:ctr.ffm svm:ctr.svm; do
    model=${case%:*} data=${case#*:}
    explain "$model" "$data" -o "all.tsv" --explain 1000
    explain "$model" "$data" -o "two.tsv" --explain 2
    explain "$model" "$data" -o scores.txt
    for file in all two; do # parts are sums of a few floats: 1e-6 of the largest
        awk -F '\t' 'NR == 1 {next} $2 ~ /^\(score/ {d = sum - $4; if (d * d > 1e-10 * (1 + $4 * $4)) {print "sample " $1 ": " sum " is not " $4; bad = 1} sum = 0; next}
            {sum += $4} END {exit bad || NR < 300}' $file.tsv || fail "$model: parts do not add up"
    done
    awk -F '\t' '$2 ~ /^\(score/ {print $2 == "(score)" ? $4 : substr($2, 11, length($2) - 11)}' all.tsv >sums.txt
    paste sums.txt scores.txt | awk -v logistic="$([[ $model = svm || $model = lmf || $model = mlr ]] || echo 1)" '
        $1 !~ /[0-9]/ {if ($1 != $2) exit 1; next}
        {v = logistic ? 1 / (1 + exp(-$1)) : $1; d = v - $2; if (d * d > 1e-10 * (1 + v * v)) exit 1}' || fail "$model: the sums are not the scores"
    awk -F '\t' '$2 == "(intercept)" {n = 0; last = 0} $2 !~ /^\(/ {m = $4 < 0 ? -$4 : $4; if (++n > 2 || n > 1 && m > last) exit 1; last = m}' two.tsv ||
        fail "$model: not the two largest"
done
grep -q $'\t''user=[0-9]*\*item=[0-9]*'$'\t' <(explain lmf ratings.tsv -o - --explain 9) || fail "no product of user and item"
head -5 buy.csv | explain lor - -o - --explain 1 --as json >lines.json
[[ $(wc -l <lines.json) = 4 ]] || fail "not an object a sample: $(cat lines.json)"
if command -v python3 >/dev/null; then
    python3 -c 'import json
for line in open("lines.json"):
    e = json.loads(line)
    assert len(e["features"]) == 1, e
    assert abs(e["intercept"] + sum(f["contribution"] for f in e["features"]) + e["others"] - e["score"]) < 1e-6, e' || fail "JSON does not add up"
fi
index ratings.tsv --algo bpr --factors 4 -o plan-bpr
train plan-bpr -o bpr
fails 2 'items drawn against them' stat bpr --weights --plan plan-bpr
# Pieces of the data, batches and memory do not matter.
explain ffm ctr.ffm -o few.tsv --explain 1000 --memory 24M
explain ffm ctr.ffm -o all.tsv --explain 1000
cmp few.tsv all.tsv || fail "memory matters to explanations"
fails 2 'in place of probabilities' explain mlr test.svm -o - --explain 3 --probabilities
fails 2 '--as goes with --explain' explain lor buy.csv -o - --as json
echo "ok explanations"

# ---- Alike: items as drps-recommend has them, features of any model with factors ----

stat lmf --similar item=5 --top 1000 >alike.txt
[[ $(wc -l <alike.txt) = $(($(stat lmf --json | value rows) - 1)) ]] || fail "not all rows but the item itself and the intercept, and a head"
"$tools/drps-recommend" lmf -n 3 --similar 5 --quiet >best.txt
paste <(grep 'item=' alike.txt | head -3 | awk '{print $3, $1}') best.txt |
    awk '{d = $2 - $6; if ($1 != "item=" $5 || d * d > 1e-10) exit 1} END {exit NR != 3}' || fail "other items than drps-recommend: $(cat best.txt alike.txt | head -8)"
stat fm --similar 'city=c5' --top 3 --json | all_values similarity | awk 'last && $1 > last || $1 > 1.0001 {exit 1} {last = $1} END {exit NR != 3}' || fail "features are not in order"
stat lmf --similar 5 --top 1000 | cmp - alike.txt || fail "an item is not found as drps-recommend does"
fails 1 "no feature 'item=none'" stat lmf --similar none
fails 2 'similar and --export are for models, and plan is a plan; of a plan there are --check, --degrees and --verify' stat plan --similar age
fails 1 "no feature 'city=c99'" stat fm --similar city=c99
fails 2 'no factors' stat lor --similar age
fails 2 'not of --similar' stat fm --similar age --plan plan-fm
echo "ok alike"

# ---- Exports ----

stat lor --export lor.txt --quiet
[[ $(wc -l <lor.txt) = 11 ]] || fail "not a line a row: $(cat lor.txt)"
[[ $(cut -f 1 lor.txt | head -1) = '(intercept)' ]] || fail "the intercept is not first: $(cat lor.txt)"
# The score of a sample of the export's numbers: 40, c5, 20000 as the plan scales them.
want=$(explain lor two.csv -o - --explain 9 | awk -F '\t' '$1 == 1 && $2 == "(score)" {print $4}')
got=$(awk -F '\t' 'NR == FNR {if ($1 == 1) x[$2] = $3; next} {sum += x[$1] * $2} END {printf "%.9g", sum}' <(explain lor two.csv -o - --explain 9) lor.txt)
near "$got" "$want" 1e-6 || fail "the export's score is $got, not $want"
fails 1 'lor.txt.*exist' stat lor --export lor.txt
stat lor --export lor.csv --quiet
[[ $(head -1 lor.csv) = feature,weight,shift,unit ]] || fail "another head: $(head -1 lor.csv)"
# With shift and unit the score is that of the numbers of the data.
got=$(awk -F, '$1 ~ /^(\(intercept\)|city=c5)$/ {sum += $2} $1 == "age" {sum += $2 * (40 - $3) / $4} $1 == "income" {sum += $2 * (20000 - $3) / $4; n = $4} END {printf "%.9g", sum; exit n == 1}' lor.csv) ||
    fail "income has no unit: $(cat lor.csv)"
near "$got" "$want" 1e-6 || fail "the csv's score is $got, not $want"
grep -q '^"city=near ""2""",' lor.csv || fail "quotes are not doubled: $(cat lor.csv)"
stat mlr --export - --as csv --quiet >mlr.csv
[[ $(head -1 mlr.csv) = feature,ash,beech,elm,oak,yew ]] || fail "columns are not called by classes"
stat ffm --export ffm.csv --quiet
[[ $(head -1 ffm.csv | tr ',' '\n' | tail -1) = field2_f4 ]] || fail "columns are not called by fields"
for model in lor mlr lmf ffm; do
    stat $model --export "$model.npy" --force --quiet
    stat $model --export "$model.text" --force --quiet
    rows=$(wc -l <"$model.text") dim=$(($(head -1 "$model.text" | tr '\t' '\n' | wc -l) - 1))
    head -c 128 "$model.npy" | tr -d '\0' | grep -aq "'shape': ($rows, $dim)" || fail "$model.npy has another shape than $rows x $dim"
    [[ $(wc -c <"$model.npy") = $((128 + 4 * rows * dim)) ]] || fail "$model.npy has another size"
    cmp <(cut -f 1 "$model.text") "$model.npy.names" || fail "$model: other names"
    paste <(tail -c +129 "$model.npy" | od -An -v -w4 -t f4) <(cut -f 2- "$model.text" | tr '\t' '\n') |
        awk '{d = $1 - $2; if (NF != 2 || d * d > 1e-12 * $2 * $2) exit 1}' || fail "$model: other numbers"
done
fails 2 'no place for two' stat lor --export - --as npy
# On standard output all is as in a file, and what is said of it is not among it.
cmp <(stat lor --export - 2>/dev/null) lor.txt || fail "an export to standard output is another one"
for question in --weights '--similar age' '--export never.txt' --verify '--topics 3'; do
    for shown in '--epoch 1' --windows '--link 1Gbit'; do
        fails 2 'show how training went' stat lor $question $shown
    done
done
fails 2 'weights and --similar do not go together' stat lor --weights --similar age
absent never.txt
fails 2 'keeps its own files' stat lor --export lor/x.csv
fails 2 'is not one of: text, csv, npy' stat lor --export x.csv --as pickle
fails 2 'are for models' stat plan --export x.csv
absent x.csv
# A small memory reads the dictionary for each slice of the rows; the file is the same.
awk 'BEGIN {srand(2); for (i = 0; i < 40000; i++) {printf "%d |n", rand() < .5 ? 1 : -1
    for (k = 0; k < 3; k++) printf " a_long_name_that_fills_the_memory_%d", rand() * 100000; print ""}}' >words.vw
index words.vw --algo lor -o plan-words
train plan-words -o words
stat words --export large.txt --quiet
stat words --export small.txt --quiet --memory "$(stat words --export never.txt --memory 1M 2>&1 | sed -n 's/.*at least \([0-9.]*\) MiB.*/\1M/p')"
cmp large.txt small.txt || fail "memory matters to exports"
[[ $(sort -u large.txt | wc -l) = $(($(stat words --json | value rows))) ]] || fail "rows are missing"
grep -q $'^n^a_long_name_that_fills_the_memory_[0-9]*\t' large.txt || fail "names of Vowpal Wabbit's text: $(sed -n 2p large.txt)"
echo "ok exports"
