#!/usr/bin/env bash
# Calibration: what is kept in a model makes its scores probabilities; parameters and content stay; it is left out when asked, and
# taken out again; models whose scores no probability is made of are refused.
. "$(dirname "$0")/lib.sh"

awk 'BEGIN {srand(1); print "age,city,bought"
    for (i = 0; i < 6000; i++) {c = int(rand() * 8); a = int(rand() * 60) + 18
        printf "%d,c%d,%d\n", a, c, rand() < 1 / (1 + exp(-(c < 3 ? 2 : -1) - (a - 45) / 10))}}' >all.csv
sed -n 1,3001p all.csv >train.csv
(head -1 all.csv && sed -n 3002,5001p all.csv) >held.csv
(head -1 all.csv && tail -n +5002 all.csv) >test.csv
predict() { "$tools/drps-predict" "$@" --quiet; }
content() { "$tools/drps-stat" "$1" --json | value content; }
error() { value_of error "$@"; }
# value_of KEY MODEL ARGUMENTS...: of the curve
value_of() { local key=$1; shift; predict "$@" --json --calibration | sed -n '/"calibration": {/,$p' | all_values "$key" | head -1; }

for algo in lor svm; do
    "$tools/drps-index" train.csv --label bought --algo $algo -o plan --quiet --force
    "$tools/drps-train" plan -o model --epochs 1 --lr 0.01 --quiet --force
    before=$(content model)
    predict model test.csv -o raw.txt --force
    for how in platt isotonic; do
        predict model held.csv --calibrate $how --json >made.json
        [[ $(content model) = "$before" ]] || fail "$algo: $how changes the content"
        "$tools/drps-stat" model --verify >/dev/null || fail "$algo: the calibrated model does not verify"
        grep -q "calibrated *$how, of 2,000 samples" < <("$tools/drps-stat" model) || fail "$algo: drps-stat does not tell of $how"
        predict model test.csv -o $how.txt --force
        awk '$1 < 0 || $1 > 1 {exit 1}' $how.txt || fail "$algo, $how: no probabilities"
        paste raw.txt $how.txt | sort -g | awk 'NR > 1 && $2 < last - 1e-7 {exit 1} {last = $2}' || fail "$algo, $how: the order of scores changes"
        awk -v e="$(error model test.csv)" 'BEGIN {exit !(e < 0.06)}' || fail "$algo, $how: the error is $(error model test.csv)"
        predict model test.csv -o again.txt --force --uncalibrated
        cmp raw.txt again.txt || fail "$algo, $how: other scores without it"
        # The mean of the log loss is that of the scores as they are written.
        paste -d, test.csv <(echo p; cat $how.txt) | awk -F , 'NR > 1 {sum -= log($3 ? $4 : 1 - $4)} END {printf "%.7f\n", sum / (NR - 1)}' >loss.txt
        near "$(cat loss.txt)" "$(value_of log_loss model test.csv)" 1e-4 || fail "$algo, $how: the log loss is $(cat loss.txt), not $(value_of log_loss model test.csv)"
    done
    predict model held.csv --calibrate none
    predict model test.csv -o again.txt --force
    cmp raw.txt again.txt || fail "$algo: a calibration is left"
    [[ $("$tools/drps-stat" model --json | grep -c calibration) = 0 ]] || fail "$algo: model.json still has it"
    absent model/model.json.next
done
fails 2 'margins, no probabilities' predict model test.csv --calibration

# The model's metrics are of what is written: of svm, too, whose scores are margins.
"$tools/drps-index" train.csv --label bought --algo svm -o plan --quiet --force
"$tools/drps-train" plan -o model --epochs 1 --lr 0.01 --quiet --force
for how in platt isotonic; do
    predict model held.csv --calibrate $how
    predict model test.csv -o $how.txt --force --metrics --json >metrics.json
    paste -d, test.csv <(echo p; cat $how.txt) | awk -F , 'NR > 1 {sum -= log($3 ? $4 : 1 - $4); good += ($4 > 0.5) == $3} END {printf "%.7f %.7f\n", sum / (NR - 1), good / (NR - 1)}' >due.txt
    near "$(value test_loss <metrics.json) $(value test_accuracy <metrics.json)" "$(cat due.txt)" 1e-4 || fail "svm, $how: loss and accuracy are not $(cat due.txt): $(cat metrics.json)"
done
"$tools/drps-predict" model held.csv --calibrate platt >out.txt
grep -q '^model now has calibration platt, in place of isotonic, of 2,000 samples$' out.txt || fail "what is replaced is not said: $(cat out.txt)"
"$tools/drps-predict" model --calibrate none >out.txt
[[ $(cat out.txt) = 'model now has no calibration, in place of platt, of 2,000 samples' ]] || fail "taken out without data: $(cat out.txt)"
fails 2 'no data' predict model --calibrate platt
fails 2 'no data' predict model --calibrate none --calibration
"$tools/drps-index" train.csv --label bought --algo lor -o plan --quiet --force
"$tools/drps-train" plan -o model --epochs 1 --lr 0.01 --quiet --force
raw=$(value_of log_loss model test.csv)
predict model held.csv --calibrate platt
predict model test.csv -o platt.txt --force --metrics --json >metrics.json
near "$(value test_loss <metrics.json)" "$(value_of log_loss model test.csv)" 1e-6 || fail "loss and log loss differ"
near "$raw" "$(value_of log_loss model test.csv --uncalibrated)" 1e-9 || fail "the curve without calibration is another one"
predict model test.csv -o explained.tsv --explain 9
"$tools/drps-predict" model test.csv -o raw.txt --force --uncalibrated --quiet
paste <(awk -F '\t' '$2 == "(score)" {print $4}' explained.tsv) raw.txt | awk '{d = 1 / (1 + exp(-$1)) - $2; if (d * d > 1e-10) exit 1}' ||
    fail "explained scores are calibrated"
# A weight counts as copies do.
awk 'NR == 1 {print; next} {print; if (NR % 3 == 0) print}' held.csv >copies.csv
awk 'NR == 1 {print $0 ",n"; next} {print $0 "," (NR % 3 ? 1 : 2)}' held.csv >weighed.csv
predict model copies.csv --calibrate platt
copies=$("$tools/drps-stat" model --json | all_values a)
predict model weighed.csv --calibrate platt --weight n
near "$copies" "$("$tools/drps-stat" model --json | all_values a)" 1e-6 || fail "a weight of 2 is not two copies"
echo "ok calibration"

awk -F , 'NR == 1 || $3 == 1' held.csv >ones.csv
cp model/model.json before.json
fails 2 'calibration of model stays .* of the larger label and 0 of the smaller' predict model ones.csv --calibrate isotonic
cmp model/model.json before.json || fail "a failure changes the model"
# 100 samples, and 10 of each label, are the least.
(head -1 held.csv && grep -m 90 ',1$' held.csv && grep -m 10 ',0$' held.csv) >least.csv
cp -r model other
predict other least.csv --calibrate platt
sed '$d' least.csv >fewer.csv
(cat fewer.csv && grep ',1$' held.csv | tail -1) >nine.csv
fails 2 'at least 100 samples, 10 of each label: the data have 90 of the larger label and 9 of' predict model fewer.csv --calibrate platt
fails 2 'have 91 of the larger label and 9 of the smaller' predict model nine.csv --calibrate isotonic
: >empty.csv
fails 2 'empty.csv has no samples' predict model empty.csv --calibrate platt
cmp model/model.json before.json || fail "a failure changes the model"
predict model empty.csv -o none.txt 2>err.txt
[[ -e none.txt && ! -s none.txt ]] && grep -q 'empty.csv has no samples' err.txt || fail "empty data: $(cat err.txt)"
absent model/model.json.next
# A folder in the way stands for a disk that is full.
mkdir model/model.json.next
fails 1 'the calibration of model stays as it was: ' predict model held.csv --calibrate platt
cmp model/model.json before.json || fail "a failure changes the model"
rmdir model/model.json.next
fails 2 'is not one of: none, platt, isotonic' predict model held.csv --calibrate magic
fails 2 'ask for explanations, values' predict model held.csv --calibrate platt --explain 3 -o -
fails 2 '-o FILE is missing' predict model held.csv
head -3 held.csv | cut -d, -f 1,2 >unlabelled.csv
fails 2 "no column 'bought'" predict model unlabelled.csv --calibrate platt
"$tools/drps-index" train.csv --label bought --algo lir -o plan-lir --quiet
"$tools/drps-train" plan-lir -o lir --quiet
fails 2 'no score that a probability' predict lir held.csv --calibration
five_classes
"$tools/drps-index" train.svm --algo mlr -o plan-mlr --quiet
"$tools/drps-train" plan-mlr -o mlr --quiet
fails 2 'no score that a probability' predict mlr test.svm --calibrate platt
# A damaged calibration is found, as any other byte of model.json.
sed -i 's/"method": "platt"/"method": "plott"/' model/model.json
fails 1 'fails its checksum' predict model held.csv -o -
echo "ok refused"
