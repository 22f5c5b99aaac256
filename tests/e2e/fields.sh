#!/usr/bin/env bash
# Field-aware models: pairs of fields that other models cannot tell apart are learned; the model is the same from every store and with
# little memory; text in either format is scored as held-out samples were; what does not fit is refused.
. "$(dirname "$0")/lib.sh"

# The label of a sample of three fields says whether its first two are alike; the third is noise. Ids 1 to 6, 11 to 16, and 21 to 60.
clicks() { # SAMPLES SEED
    awk -v n="$1" -v seed="$2" 'BEGIN { srand(seed); for (i = 0; i < n; i++) {
        a = int(rand() * 6); b = int(rand() * 6); print (a % 2 == b % 2) + 0, "0:" 1 + a ":1 1:" 11 + b ":1 2:" 21 + int(rand() * 40) ":1" } }'
}
clicks 3000 1 >train.ffm
clicks 600 2 >test.ffm
csv() { awk 'BEGIN { print "click,a,b,c" } { printf "%s", $1; for (i = 2; i <= 4; i++) { split($i, e, ":"); printf ",n%s", e[2] } print "" }' "$1"; }
csv train.ffm >train.csv
csv test.ffm >test.csv
index() { "$tools/drps-index" "$@" --quiet --force; }
train() { "$tools/drps-train" "$@" --force --quiet --checkpoint-every never; }

index train.ffm --test test.ffm --algo ffm --batch-size 50 -o plan
"$tools/drps-stat" plan --verify >/dev/null || fail "the plan does not verify"
train plan -o model --epochs 15 --store resident --json >train.json
"$tools/drps-stat" model --verify >/dev/null || fail "the model does not verify"
index train.ffm --test test.ffm --algo lor -o linear
train linear -o linear.model --epochs 15 --json >linear.json
awk -v a="$(all_values test_loss <train.json | tail -1)" -v b="$(all_values test_loss <linear.json | tail -1)" 'BEGIN { exit !(a < .1 && b > .6) }' ||
    fail "pairs are not learned: $(all_values test_loss <train.json | tail -1), linear $(all_values test_loss <linear.json | tail -1)"
echo "ok pairs"

for store in "relay --memory 40M" "file --memory 40M" "rocksdb"; do
    # shellcheck disable=SC2086 # the store's options
    train plan -o other --epochs 15 --store $store --json >other.json || continue # not every build has all
    [[ $(value content <other.json) = "$(value content <train.json)" ]] || fail "$store: another model"
done
"$tools/drps-train" plan -o resumed --epochs 7 --store resident --force --quiet --keep-checkpoints
"$tools/drps-train" plan -o resumed --epochs 15 --store resident --force --quiet --resume --json >other.json
[[ $(value content <other.json) = "$(value content <train.json)" ]] || fail "resumed: another model"
index train.ffm --test test.ffm --algo ffm --batch-size 25 --workers 2 -o two
"$tools/drps-stat" two --verify >/dev/null || fail "the plan of two does not verify"
if train two --local 2 -o ranks --epochs 15 --json >other.json 2>err.txt; then
    near "$(all_values train_loss <other.json | tail -1)" "$(all_values train_loss <train.json | tail -1)" 0.2 || fail "two ranks learn something else"
fi
echo "ok stores, resuming and ranks"

"$tools/drps-predict" model test.ffm -o scores --metrics --json >predict.json
near "$(value test_loss <predict.json)" "$(all_values test_loss <train.json | tail -1)" 1e-5 || fail "prediction has another loss"
index train.csv --test test.csv --label click --columns '*:category' --algo ffm --batch-size 50 --seed 1 -o columns
train columns -o columns.model --epochs 15 --json >columns.json
"$tools/drps-predict" columns.model test.csv -o columns.scores --metrics --json >predict.json
near "$(value test_loss <predict.json)" "$(all_values test_loss <columns.json | tail -1)" 1e-5 || fail "prediction from columns has another loss"
awk -F , '{ print $3 "," $4 "," $1 "," $2 }' test.csv >turned.csv # columns in another order are the same fields
"$tools/drps-predict" columns.model turned.csv -o turned.scores --quiet
near "$(cat columns.scores)" "$(cat turned.scores)" 1e-4 || fail "the order of columns matters"
echo "1 9:1:1 0:2:1" >far.ffm # a field that training had not is left out
"$tools/drps-predict" model far.ffm -o far --json | grep -q '"test_unseen": 1' || fail "a field that training had not was scored"
index train.ffm --algo ffm --no-normalize -o whole
grep -q normalized < <("$tools/drps-stat" whole --json) && fail "samples are divided by their length"
echo "ok prediction"

echo "1 1:1" >plain.svm
fails 2 "needs fields, and format libsvm has none" "$tools/drps-index" plain.svm --algo ffm --format libsvm -o bad
echo "1 65535:1:1" >large.ffm
fails 1 "large.ffm:1:3: field is above 65534" "$tools/drps-index" large.ffm --format libffm --algo ffm -o bad
printf '1 65534:1:1\n0 0:2:1\n' >large.ffm
fails 2 "65535 fields of 4 factors" "$tools/drps-index" large.ffm --format libffm --algo ffm -o bad
fails 2 "fm normalises none" "$tools/drps-index" train.ffm --algo fm --no-normalize -o bad
fails 2 "has 3 fields|normalised" "$tools/drps-train" whole --from model -o bad
absent bad
echo "ok refusals"
