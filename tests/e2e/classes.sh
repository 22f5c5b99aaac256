#!/usr/bin/env bash
# Labels that are names: classes are found, kept, printed and predicted; every store gives the same model; the predictor
# sees what evaluation saw.
. "$(dirname "$0")/lib.sh"

# Three classes, a feature each that tells them apart, and noise. The order of lines is that of no name.
awk 'BEGIN {srand(5); split("rose lily 10", name, " ")
    for (i = 0; i < 3300; i++) {
        c = int(rand() * 3) + 1; printf "%s %d:1", name[c], rand() < 0.9 ? c : int(rand() * 3) + 1
        for (f = 10; f < 9000; f += 1 + int(rand() * 700)) printf " %d:%.2f", f, rand()
        printf "\n"}}' >all.svm
head -3000 all.svm >train.svm
tail -300 all.svm >test.svm
"$tools/drps-index" train.svm --test test.svm --algo mlr --memory 64M -o plan >index.txt
grep -q 'mlr, softmax loss (the best constant has [0-9.]*, on test samples [0-9.]*); classes 10, lily, rose$' index.txt || fail "drps-index does not name the classes: $(cat index.txt)"
"$tools/drps-stat" plan --verify >/dev/null || fail "the plan does not verify"
"$tools/drps-stat" plan | grep 'classes  3: 10, lily, rose' >/dev/null || fail "drps-stat does not show the plan's classes"

content() { # TRAIN-OPTIONS...: "losses accuracies content" of a run
    "$tools/drps-train" plan -o model --force --epochs 3 "$@" --quiet --json >train.json
    echo "$(all_values train_loss <train.json) $(all_values test_accuracy <train.json) $("$tools/drps-stat" model --json | value content)"
}
want=$(content --store resident)
least=$({ "$tools/drps-train" plan -o refused --store relay --memory 1M 2>&1 || true; } |
    sed -n 's/.*at least \([0-9.]*\) MiB.*/\1/p' | awk '{print int(($1 + 0.1) * 1024)}')
for options in "--store relay --memory ${least}K" "--store file --memory 80M" "--store rocksdb --memory 80M"; do
    # shellcheck disable=SC2086  # several words
    got=$(content $options)
    [[ $got = "$want" ]] || fail "$options: $got instead of $want"
done
for optimizer in "sgd --lr 0.01" "ftrl --l1 0.5" "adagrad --l1 1e-5" "adam --l1 1e-5" "adagrad --local-steps"; do
    # shellcheck disable=SC2086  # several words
    set -- --optimizer $optimizer --threads 2 --l2 1e-4
    want=$(content --store resident "$@")
    got=$(content --store relay --memory "$((least + 500))K" "$@")
    [[ $got = "$want" ]] || fail "$optimizer on relay: $got instead of $want"
done
awk "BEGIN {exit !($(all_values test_accuracy <train.json | tail -1) > 0.8)}" || fail "accuracies $(all_values test_accuracy <train.json)"
want=$(content --store relay --memory "${least}K")
rm -rf model model.checkpoint
# Wherever it is killed, if it is, it goes on to the same model.
{ timeout --foreground -s KILL 0.1 "$tools/drps-train" plan -o model --epochs 3 --store relay --memory "${least}K" --checkpoint-every 7b --quiet >killed.txt || true; } 2>/dev/null
"$tools/drps-train" plan -o model --epochs 3 --store relay --memory "${least}K" --resume --quiet
[[ $("$tools/drps-stat" model --json | value content) = "${want##* }" ]] || fail "another model after a checkpoint"
echo "ok stores"

# In rounds, the same as one worker with batches of both.
"$tools/drps-index" train.svm --test test.svm --algo mlr --batch-size 50 --workers 2 -o plan-two --quiet
"$tools/drps-train" plan-two -o two --local 2 --epochs 3 --quiet --json >two.json
want=$(value content <two.json)
for options in "--store relay" --no-fresh "--transport inproc"; do
    # shellcheck disable=SC2086  # several words
    got=$("$tools/drps-train" plan-two -o two --force --local 2 --epochs 3 $options --quiet --json | value content)
    [[ -n $got && $got = "$want" ]] || fail "two workers, $options: $got instead of $want"
done
"$tools/drps-index" train.svm --test test.svm --algo mlr --batch-size 100 -o plan-one --quiet
"$tools/drps-train" plan-one -o one --epochs 3 --quiet --json >one.json
near "$(all_values test_loss <two.json | tail -1)" "$(all_values test_loss <one.json | tail -1)" 0.02 || fail "two workers learn otherwise"
"$tools/drps-index" --from-plan plan-one --workers 3 -o plan-three | grep 'classes 10, lily, rose$' >/dev/null || fail "a plan from another one does not name its classes"
"$tools/drps-stat" plan-three | grep 'classes  3: 10, lily, rose' >/dev/null || fail "classes do not come along from another plan"
"$tools/drps-stat" plan-three/rank-2 --verify >/dev/null || fail "a part with classes does not verify"
echo "ok workers"

"$tools/drps-train" plan -o model --force --epochs 3 >train.txt
grep -Eq '^ +3 +0\.[0-9]+ +0\.[0-9]+ +- +0\.[89][0-9]* ' train.txt || fail "no accuracy without AUC: $(cat train.txt)"
"$tools/drps-train" plan -o model --force --epochs 3 --quiet --json >train.json
"$tools/drps-stat" model | grep 'classes  3: 10, lily, rose' >/dev/null || fail "drps-stat does not show the model's classes"
"$tools/drps-stat" model --verify >/dev/null || fail "the model does not verify"

"$tools/drps-predict" model test.svm -o names.txt --metrics --quiet --json >predict.json
for key in loss accuracy; do
    near "$(value test_$key <predict.json)" "$(all_values test_$key <train.json | tail -1)" 1e-6 || fail "another $key than that of training's evaluation"
done
right=$(paste <(cut -d' ' -f1 test.svm) names.txt | awk '$1 == $2 {n++} END {print n / NR}')
near "$right" "$(value test_accuracy <predict.json)" 1e-6 || fail "$right of the names are right, the accuracy is $(value test_accuracy <predict.json)"
[[ $(sort -u names.txt | tr '\n' ' ') = "10 lily rose " ]] || fail "names are $(sort -u names.txt)"
"$tools/drps-predict" model test.svm -o chances.txt --probabilities --quiet
[[ $(head -1 chances.txt) = $'10\tlily\trose' && $(wc -l <chances.txt) = 301 ]] || fail "probabilities begin with $(head -1 chances.txt)"
tail -n +2 chances.txt | paste - names.txt | awk -F'\t' '{s = $1 + $2 + $3; m = 1; for (c = 2; c <= 3; c++) if ($c > $m) m = c
    if (s < 1 - 1e-6 || s > 1 + 1e-6 || $4 != (m == 1 ? "10" : m == 2 ? "lily" : "rose")) exit 1}' || fail "probabilities that do not fit the names"
sed '1s/^[^ ]*/tulip/;2s/^[^ ]*//;2s/^/10.0/' test.svm >other.svm
"$tools/drps-predict" model other.svm -o other.txt --metrics --force >other.out
cmp names.txt other.txt || fail "labels change what is predicted"
grep -q '1 labels are no class of the model' other.out || fail "unknown labels are not counted: $(cat other.out)"
# All weights of a row take l1, not the first alone: with enough of it nothing but the intercept is left.
"$tools/drps-train" plan -o sparse --optimizer ftrl --l1 1e4 --quiet
"$tools/drps-predict" sparse test.svm -o sparse.txt --probabilities --quiet
[[ $(tail -n +2 sparse.txt | sort -u | wc -l) = 1 ]] || fail "l1 leaves weights: $(head -3 sparse.txt)"
echo "ok predict"

# csv, whose labels may hold blanks; the same samples give the same classes however they are written.
awk 'BEGIN {srand(2); print "kind,size,colour"
    for (i = 0; i < 900; i++) {k = int(rand() * 3); printf "%s,%d,c%d\n", k == 0 ? "\"plum, small\"" : k == 1 ? "pear" : "fig", k * 10 + rand() * 9, k}}' >fruit.csv
"$tools/drps-index" fruit.csv --algo mlr --label kind --test-fraction 0.2 -o plan-csv >index.txt 2>/dev/null
grep -q 'classes fig, pear, plum, small$' index.txt || fail "classes of csv: $(cat index.txt)"
"$tools/drps-train" plan-csv -o model-csv --epochs 5 --lr 0.5 --quiet
cut -d, -f2- <(sed 's/"plum, small"/plum/' fruit.csv) >unlabelled.csv
"$tools/drps-predict" model-csv unlabelled.csv -o fruit.txt --quiet
[[ $(sort -u fruit.txt | tr '\n' ';') = "fig;pear;plum, small;" ]] || fail "csv: $(sort -u fruit.txt)"
echo "ok csv"

# Training begins with an earlier model of the same classes alone.
"$tools/drps-train" plan -o warm --from model --epochs 1 --quiet
sed 's/^lily/lilac/' train.svm >lilac.svm
"$tools/drps-index" lilac.svm --algo mlr -o plan-lilac --quiet
fails 2 'other classes than the plan' "$tools/drps-train" plan-lilac -o never --from model --quiet
absent never
echo "ok warm start"

sed 's/^[^ ]*/one/' train.svm >one.svm
fails 1 'every label is one: the algorithm mlr needs two classes or more' "$tools/drps-index" one.svm --algo mlr -o never
awk 'BEGIN {for (i = 0; i < 65536; i++) print "c" i " 1:1"}' >many.svm
fails 1 'many.svm:65536:1: label is one more than 65,535 classes' "$tools/drps-index" many.svm --algo mlr --on-error skip -o never
sed 's/^rose/1/;s/^lily/2/' train.svm >numbers.svm
fails 1 'for classes use the algorithm mlr' "$tools/drps-index" numbers.svm --algo lor -o never
"$tools/drps-index" numbers.svm --algo lir -o plan-lir --quiet
"$tools/drps-train" plan-lir -o lir --quiet
fails 2 'no named classes to give probabilities of: algorithm lir' "$tools/drps-predict" lir numbers.svm -o never.txt --probabilities
absent never
absent never.txt
echo "ok mistakes"
