#!/usr/bin/env bash
# svm of several classes, one versus the rest: every store and any number of ranks give the same model; the predictor sees
# what evaluation saw; two classes that are numbers are one margin as ever.
. "$(dirname "$0")/lib.sh"

awk 'BEGIN {srand(7); split("rose lily 10 blåklint", name, " ")
    for (i = 0; i < 2200; i++) {
        c = int(rand() * 4) + 1; printf "%s %d:1", name[c], rand() < 0.9 ? c : int(rand() * 4) + 1
        for (f = 10; f < 6000; f += 1 + int(rand() * 700)) printf " %d:%.2f", f, rand()
        printf "\n"}}' >all.svm
head -2000 all.svm >train.svm
tail -200 all.svm >test.svm
for loss in hinge squared-hinge; do
    "$tools/drps-index" train.svm --test test.svm --algo svm --loss $loss --memory 64M -o plan-$loss >index.txt
    grep "svm, $loss loss .*; classes 10, blåklint, lily, rose\$" index.txt >/dev/null || fail "classes are not told: $(cat index.txt)"
    "$tools/drps-stat" plan-$loss --verify >/dev/null || fail "the plan does not verify"
done

content() { # PLAN TRAIN-OPTIONS...: "losses accuracies content" of a run
    local plan=$1
    shift
    "$tools/drps-train" "$plan" -o model --force --epochs 3 "$@" --quiet --json >train.json
    echo "$(all_values train_loss <train.json) $(all_values test_accuracy <train.json) $("$tools/drps-stat" model --json | value content)"
}
least=$({ "$tools/drps-train" plan-hinge -o refused --store relay --memory 1M 2>&1 || true; } |
    sed -n 's/.*at least \([0-9.]*\) MiB.*/\1/p' | awk '{print int(($1 + 0.1) * 1024)}')
for loss in squared-hinge hinge; do
    want=$(content plan-$loss --store resident)
    for options in "--store relay --memory ${least}K" "--store file --memory 80M" "--store rocksdb --memory 80M" "--store leveldb --memory 80M"; do
        # shellcheck disable=SC2086  # several words
        got=$(content plan-$loss $options)
        [[ $got = "$want" ]] || fail "$loss, $options: $got instead of $want"
    done
done
awk "BEGIN {exit !($(all_values test_accuracy <train.json | tail -1) > 0.8)}" || fail "accuracies $(all_values test_accuracy <train.json)"
rm -rf model model.checkpoint
{ timeout --foreground -s KILL 0.1 "$tools/drps-train" plan-hinge -o model --epochs 3 --store relay --memory "${least}K" --checkpoint-every 7b --quiet >killed.txt || true; } 2>/dev/null
"$tools/drps-train" plan-hinge -o model --epochs 3 --store relay --memory "${least}K" --resume --quiet
[[ $("$tools/drps-stat" model --json | value content) = "${want##* }" ]] || fail "another model after a checkpoint"
echo "ok stores"

"$tools/drps-index" train.svm --test test.svm --algo svm --batch-size 50 --workers 2 -o plan-two --quiet
"$tools/drps-train" plan-two -o two --local 2 --epochs 3 --quiet --json >two.json
want=$(value content <two.json)
for options in "--store relay" --no-fresh "--transport inproc"; do
    # shellcheck disable=SC2086  # several words
    got=$("$tools/drps-train" plan-two -o two --force --local 2 --epochs 3 $options --quiet --json | value content)
    [[ -n $got && $got = "$want" ]] || fail "two workers, $options: $got instead of $want"
done
echo "ok workers"

"$tools/drps-train" plan-hinge -o model --force --epochs 3 --quiet --json >train.json
for tool in "drps-index train.svm --algo svm -o plan-json" "drps-stat plan-hinge" "drps-stat model" "drps-train plan-hinge -o model-json"; do
    # shellcheck disable=SC2086  # several words
    "$tools/"$tool --json --quiet | tr -d ' \n' | grep '"classes":\["10","blåklint","lily","rose"\]' >/dev/null || fail "$tool --json does not name the classes"
done
[[ $("$tools/drps-stat" model-json --json | grep -c '"classes"') = 1 ]] || fail "model.json does not have the classes once"
"$tools/drps-predict" model test.svm -o names.txt --metrics --quiet --json >predict.json
for key in loss accuracy; do
    near "$(value test_$key <predict.json)" "$(all_values test_$key <train.json | tail -1)" 1e-6 || fail "another $key than that of training's evaluation"
done
right=$(paste <(cut -d' ' -f1 test.svm) names.txt | awk '$1 == $2 {n++} END {print n / NR}')
near "$right" "$(value test_accuracy <predict.json)" 1e-6 || fail "$right of the names are right, the accuracy is $(value test_accuracy <predict.json)"
fails 2 'no probabilities: the scores of algorithm svm are margins; use the algorithm mlr' "$tools/drps-predict" model test.svm -o never.txt --probabilities
absent never.txt
"$tools/drps-train" plan-hinge -o warm --from model --epochs 1 --quiet
sed 's/^lily/lilac/' train.svm >lilac.svm
"$tools/drps-index" lilac.svm --algo svm -o plan-lilac --quiet
fails 2 'other classes than the plan' "$tools/drps-train" plan-lilac -o never --from model --quiet
absent never
echo "ok predict"

# Two classes that are numbers, however they are written, are signs; a third number makes classes of all.
sed 's/^rose/1/; s/^lily/1.0/; s/^10/-1/; s/^bl[^ ]*/-1e0/' train.svm >signs.svm
"$tools/drps-index" signs.svm --algo svm -o plan-signs >index.txt
grep 'label 1 is the positive class, -1 the negative' index.txt >/dev/null || fail "two numbers are not signs: $(cat index.txt)"
sed 's/^\(rose\|lily\) /1 /; s/^\(10\|bl[^ ]*\) /-1 /' train.svm >plain.svm
"$tools/drps-index" plain.svm --algo svm -o plan-plain --quiet
for plan in signs plain; do "$tools/drps-train" plan-$plan -o model-$plan --quiet; done
[[ $("$tools/drps-stat" model-signs --json | value content) = "$("$tools/drps-stat" model-plain --json | value content)" ]] || fail "signs written otherwise make another model"
fails 2 'no named classes to give probabilities of: algorithm svm' "$tools/drps-predict" model-plain plain.svm -o never.txt --probabilities
sed 's/^rose/1/; s/^lily/01/; s/^bl[^ ]*/2/' train.svm >numbers.svm
"$tools/drps-index" numbers.svm --algo svm -o plan-numbers | grep 'classes 1, 2, 10$' >/dev/null || fail "three numbers are not three classes"
echo "ok numbers"
