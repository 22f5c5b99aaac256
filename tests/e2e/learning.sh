#!/usr/bin/env bash
# When learning goes wrong: each sentence is provoked by a small data set, and compared as a whole; a run on sound data has none. The loss
# of the best constant stands beside losses. Decays, means over batches and chosen rates give the same bits after a resume, on ranks and
# from every store.
. "$(dirname "$0")/lib.sh"

index() { "$tools/drps-index" "$@" --force --batch-size 20 --quiet; }
train() { "$tools/drps-train" "$@" --force --quiet --checkpoint-every never; }

# says TOOL SENTENCES COMMAND...: its warnings, in their order, a line each, are these, and --json has them
says() {
    local tool=$1 want=$2
    shift 2
    "$@" >out.json 2>err.txt || fail "'$*' failed: $(cat err.txt)"
    sed -n "s/^drps-$tool: warning: //p" err.txt | sed 's/ ([^()]*--[^()]*)$//' >got.txt
    printf '%s' "$want" >want.txt
    diff want.txt got.txt >&2 || fail "'$*' said something else"
    [[ $(grep -c . want.txt) = $(grep -cF -f <(sed 's/"/\\"/g' want.txt; [[ -s want.txt ]] || echo none) <(sed -n '/"warnings"/,/]/p' out.json)) ]] ||
        fail "'$*': --json has not these warnings: $(sed -n '/"warnings"/,/]/p' out.json)"
}

# samples N SEED NOISE: labels that follow from features 1 to 20, but for a share of noise
samples() {
    awk -v n="$1" -v seed="$2" -v noise="$3" 'BEGIN { srand(seed); for (i = 0; i < n; i++) {
        score = 0; line = ""
        for (f = 1; f <= 20; f++) if (rand() < .3) { score += f % 2 ? 1 : -1; line = line " " f ":1" }
        y = score > 0; if (rand() < noise) y = !y
        print (y ? 1 : -1) line " " 21 + int(rand() * 1000) ":1" } }'
}
samples 600 1 .05 >sound.svm
samples 200 2 .05 >sound.t.svm

# ---- Labels ----

awk '{ $1 = 1; print }' sound.svm >one.svm
fails 1 "every training label is 1: classification needs two classes" index one.svm --algo lor -o plan
says index "every training label is 1: there is nothing else to learn (check the label column)
" index one.svm --algo lir -o plan --json
sed -n '/^1 /p' sound.t.svm >ones.t.svm
says index "every test label is 1: without a sample of the other class there is no AUC, and the accuracy says little; take other samples for tests
" index sound.svm --test ones.t.svm --algo lor -o plan --json
fails 2 "the test samples of plan have no auc, as all are of one class: judge epochs by another metric" \
    train plan -o model --patience 1 --metric auc
sed 's/^[^ ]*/elm/' sound.svm >elm.svm
awk '{ $1 = NR % 2 ? "oak" : "ash"; print }' sound.t.svm >trees.t.svm
says index "every training sample is of class elm: there is nothing to tell apart (check the label column)
2 of 3 classes, first ash, are of test samples alone: no training sample shows what they are, and such test samples will be taken for others
" index elm.svm --test trees.t.svm --algo mlr -o plan --json
echo "ok labels"

# ---- Samples: drps-stat --check ----

# checked SENTENCE: of data.svm and data.t.svm
checked() {
    index data.svm --test data.t.svm --algo "${2:-lor}" -o plan
    says stat "$1" "$tools/drps-stat" --check plan --json
}
cp sound.svm data.svm && cp sound.t.svm data.t.svm
checked ""
[[ $(value samples <out.json) = 600 && $(value test_copies <out.json) = 0 ]] || fail "$(cat out.json)"
sed 's/$/ 5000:2 5001:1/' sound.svm >data.svm
checked "2 features are the same in every training sample, first feature 5000: nothing can be learnt from them; leave them out
"
sed 's/$/ 5000:2/' sound.svm >data.svm
checked "feature 5000 is the same in every training sample: nothing can be learnt from it; leave it out
"
awk '{ print $0 (($1 > 0) != (NR == 7) ? " 7000:1" : "") }' sound.svm >data.svm
checked "feature 7000 alone decides the label, but for 1 of 600 samples: it may be made of the label, and will not be there when the model is used; leave it out unless it is known before the label
"
# A value that is larger in one class, and with names the one that is there.
awk '{ print $0 " 7000:" ($1 > 0 ? 3 : 1) + rand() }' sound.svm >data.svm
checked "feature 7000 alone decides the label of all 600 samples: it may be made of the label, and will not be there when the model is used; leave it out unless it is known before the label
"
awk '{ $1 = NR % 3 ? NR % 3 == 1 ? "ash" : "elm" : "oak"; print $0 " 800" NR % 3 ":1" }' sound.svm >data.svm
awk '{ $1 = "ash"; print }' sound.t.svm >data.t.svm
checked "feature 8000 alone decides the label of all 600 samples (2 more do, too): it may be made of the label, and will not be there when the model is used; leave it out unless it is known before the label
" mlr
# One class that a feature tells from the others is no leak.
awk '{ $1 = NR % 3 ? NR % 3 == 1 ? "ash" : "elm" : "oak"; print $0 (NR % 3 ? "" : " 8000:1") }' sound.svm >data.svm
checked "" mlr
awk '{ $1 = NR * 7 % 31; print $0 " 9000:" 2 * $1 - 5 }' sound.svm >data.svm
cp sound.t.svm data.t.svm
checked "feature 9000 alone decides the label: it may be made of the label, and will not be there when the model is used; leave it out unless it is known before the label
" lir
cp sound.svm data.svm
{ cat sound.t.svm; sed -n 101,150p sound.svm; } >data.t.svm
checked "50 of 250 test samples (20.0 %) are in training, too, with the same features and label: test losses will be too good; take them out of one of both
"
# Each sample is there twice; most of the twins of test samples are in training.
sed p sound.svm >twice.svm
index twice.svm --test-fraction .2 --algo lor -o plan
"$tools/drps-stat" --check plan --json >out.json 2>err.txt
grep -q "warning: [0-9]* of [0-9]* test samples ([78][0-9].[0-9] %) are in training, too, with the same features and label: " err.txt ||
    fail "$(cat err.txt out.json)"
# Samples of few features are alike by chance, in training and among test samples: no word of that.
few() {
    awk -v n="$1" -v seed="$2" 'BEGIN { srand(seed); for (i = 0; i < n; i++) {
        a = int(rand() * 8); b = int(rand() * 8); c = int(rand() * 4); y = a + b > 7; if (rand() < .2) y = !y
        print (y ? 1 : -1), 1 + a ":1", 20 + b ":1", 50 + c ":1" } }'
}
few 600 1 >data.svm && few 200 2 >data.t.svm
checked ""
[[ $(value test_copies <out.json) -gt 100 ]] || fail "$(cat out.json)"
"$tools/drps-stat" --check plan >out.txt
grep -q "^plan plan: 600 training samples and 200 test samples checked in" out.txt && grep -q "^  copies " out.txt || fail "$(cat out.txt)"
awk 'BEGIN { for (u = 1; u <= 30; u++) for (i = 1; i <= 5; i++) print u "\t" i "\t" (u * i) % 5 + 1 }' >ratings.tsv
"$tools/drps-index" ratings.tsv --algo lmf --quiet -o rated
grep -q "nothing looks wrong; features of ratings are not checked$" < <("$tools/drps-stat" --check rated) || fail "ratings: $("$tools/drps-stat" --check rated)"
[[ $("$tools/drps-stat" --check rated --json | value constant_features) = null ]] || fail "features of ratings are counted"
fails 1 "no-plan: No such file or directory" "$tools/drps-stat" --check no-plan
echo "ok samples"

# ---- Training ----

index sound.svm --test sound.t.svm --algo lor -o plan
says train "" train plan -o model --epochs 4 --json
constant=$("$tools/drps-stat" plan --json | value constant_loss)
share=$(awk '$1 > 0 { n++ } END { printf "%.17g", n / NR }' sound.svm)
near "$constant" "$(awk -v p="$share" 'BEGIN { printf "%.17g", -p * log(p) - (1 - p) * log(1 - p) }')" 1e-9 || fail "a constant has $constant"
[[ $(value constant_loss <out.json) = "$constant" && $("$tools/drps-stat" model --json | all_values constant_loss) = "$constant" ]] ||
    fail "a constant has $constant, not $(value constant_loss <out.json)"
"$tools/drps-train" plan -o model --force --epochs 1 >out.txt
grep -qE "^const +$(printf %.6f "$constant") +0\.[0-9]{6}$" out.txt || fail "$(cat out.txt)"
grep -qE "^ +const +$(printf %.5f "$constant") " < <("$tools/drps-stat" model) || fail "$("$tools/drps-stat" model)"
"$tools/drps-index" sound.svm --algo lor -o one.plan | grep -qF "logistic loss (the best constant has $(printf %.6f "$constant")); label 1" ||
    fail "drps-index does not say what a constant has"

# number KEY: of the last epoch in out.json; the second argument counts from the end
number() { all_values "$1" <out.json | tail -"${2:-1}" | head -1; }
six() { printf %.6f "$1"; }

train plan -o model --optimizer sgd --lr 3 --epochs 1 --json >out.json 2>/dev/null
says train "nothing was learnt: the training loss of epoch 1, $(six "$(number train_loss)"), is above that of the best constant, $(six "$constant"); try a smaller learning rate (it is 3, try 0.3), or more epochs
" train plan -o model --optimizer sgd --lr 3 --epochs 1 --json

# The rate and the eps that are meant: those of ones where three of four training values are 1, or more.
usual() { # WANT PLAN OPTIONS...
    local want=$1 got
    shift
    train "$@" -o model --epochs 1 --json >out.json
    got=$(printf '%g %g' "$(all_values lr <out.json | head -1)" "$(all_values eps <out.json | head -1)")
    [[ $got = "$want" ]] || fail "$*: rate and eps are $got, not $want"
}
index sound.svm --algo lor --workers 2 -o ranks
usual "0.07 1" plan
usual "0.07 1" ranks --local 2
usual "0.2 1" plan --lr .2
usual "0.07 0.01" plan --eps .01
usual "0.1 1e-08" plan --optimizer ftrl
usual "0.001 1e-08" plan --optimizer adam
usual "0.001 0.01" plan --optimizer adam --eps .01
for row in 74:0.05:1e-08 75:0.07:1; do # ones of a hundred values
    awk -v ones="${row%%:*}" '{ line = NR % 2 ? 1 : -1; for (i = 1; i <= 100; i++) line = line " " i ":" (i <= ones ? 1 : 2); print line }' sound.t.svm >share.svm
    index share.svm --algo lor -o share
    usual "$(cut -d: -f2,3 <<<"$row" | tr : ' ')" share
done
index sound.svm --algo svm -o svm
usual "0.05 1e-08" svm

# Hinges want scores apart: where these tell samples apart, and where a later epoch is better, something was learnt. With tiny steps a
# smaller rate does not help.
awk '{ $1 = NR % 10 ? -1 : 1; print $0 (NR % 10 ? "" : " 9000:10") }' sound.svm >rare.svm
index rare.svm --test-fraction .3 --algo svm -o rare
train rare -o model --epochs 1 --lr .0005 --optimizer sgd --json >out.json 2>/dev/null
awk -v a="$(number train_loss)" -v b="$(value constant_loss <out.json)" -v auc="$(number test_auc)" 'BEGIN { exit !(a > 1.01 * b && auc > .6) }' ||
    fail "the hinge loss is to be large, the AUC too: $(cat out.json)"
says train "" train rare -o model --epochs 1 --lr .0005 --optimizer sgd --json
index rare.svm --algo svm -o rare
train rare -o model --epochs 1 --lr 1e-7 --optimizer sgd --json >out.json 2>/dev/null
says train "nothing was learnt: the training loss of epoch 1, $(six "$(number train_loss)"), is above that of the best constant, $(six "$(value constant_loss <out.json)"); try more epochs, or another learning rate (it is 1e-07)
" train rare -o model --epochs 1 --lr 1e-7 --optimizer sgd --json
says train "" train rare -o model --epochs 30 --json

# What cannot be learnt: labels by chance, and a feature for each sample.
samples 600 3 .5 >chance.svm && samples 200 4 .5 >chance.t.svm
index chance.svm --test chance.t.svm --algo svm -o chance
train chance -o model --lr 3 --epochs 1 --json >out.json 2>/dev/null
awk -v auc="$(number test_auc)" 'BEGIN { exit !(auc < .6) }' || fail "chance has an AUC of $(number test_auc)"
says train "nothing was learnt: the training loss of epoch 1, $(six "$(number train_loss)"), is above that of the best constant, $(six "$(value constant_loss <out.json)"); try a smaller learning rate (it is 3, try 0.3), or more epochs
" train chance -o model --lr 3 --epochs 1 --json
index chance.svm --test chance.t.svm --algo lor -o chance
test_constant=$("$tools/drps-stat" chance --json | value test_constant_loss)
chance=$("$tools/drps-stat" chance --json | value constant_loss)
train chance -o model --lr .5 --epochs 5 --json >out.json 2>/dev/null
says train "the model of epoch 5 is worse than none on test samples: their loss, $(six "$(number test_loss)"), is above that of the best constant, $(six "$test_constant"), while that of training samples, $(six "$(number train_loss)"), is not; what it learnt holds for these alone: try fewer epochs, patience, or an l2 regularisation
the test loss was least in epoch 1, $(six "$(number test_loss 5)"), and is $(six "$(number test_loss)") in epoch 5, the last: train for fewer epochs, or with patience, which keeps the best one
" train chance -o model --lr .5 --epochs 5 --json
[[ $(awk -v a="$(number train_loss)" -v b="$chance" 'BEGIN { print a < b }') = 1 ]] || fail "chance was not learnt by heart"
# Two epochs tell as much, where the loss is clearly larger: labels of test samples are the others.
for i in {1..200}; do echo "$((i % 2)) $((i % 2 + 1)):1"; done >one.svm
for i in {1..50}; do echo "$((i % 2)) $((2 - i % 2)):1"; done >other.svm
index one.svm --test other.svm --algo lor --batch-size 50 -o apart
train apart -o model --lr .2 --epochs 2 >out.txt 2>err.txt
grep -qE 'warning: the test loss was least in epoch 1, [0-9.]+, and is [0-9.]+ in epoch 2, the last: .*\(--patience\)$' err.txt || fail "two epochs: $(cat err.txt)"
train apart -o model --lr .2 --epochs 2 --patience 3 >out.txt 2>err.txt
if grep -q 'was least' err.txt; then fail "with patience: $(cat err.txt)"; fi

# A step that is a little too long: the loss grows from epoch to epoch, and with a longer one without bound.
awk 'BEGIN { srand(5); for (i = 0; i < 400; i++) { x = rand() * 2 - 1; print 2 * x + rand() * .1, "1:" x } }' >line.svm
"$tools/drps-index" line.svm --algo lir --batch-size 100 -o line --quiet
train line -o model --optimizer sgd --lr .02 --epochs 8 --json >out.json 2>/dev/null
says train "the training loss has grown for 6 epochs, from $(six "$(number train_loss 7)") to $(six "$(number train_loss)"): try a smaller learning rate (it is 0.02, try 0.002)
" train line -o model --optimizer sgd --lr .02 --epochs 8 --json
fails 1 "no model is written: the training loss of epoch [0-9]+, .*, is [0-9.e+]+ times that of the best constant, and grows: training diverged; try a smaller learning rate \(it is 0.023, try 0.0023\)" \
    train line -o none --optimizer sgd --epochs 30 --lr .023
absent none
fails 1 "no model is written: the training loss is no finite number in epoch 1, step [0-9]*: training diverged; try a smaller learning rate \(it is 1e\+30, try 1e\+29\)" \
    train line -o none --optimizer sgd --lr 1e30
absent none
# With patience the best epoch before is the model.
"$tools/drps-index" line.svm --algo lir --batch-size 80 --test-fraction .2 -o line --force --quiet
train line -o model --optimizer sgd --epochs 60 --patience 50 --lr .032 --json >out.json 2>err.txt
best=$(value best_epoch <out.json)
grep -qE "warning: the training loss of epoch [0-9]+, .* times that of the best constant, and grows: training diverged; .*; the model is that of epoch $best" err.txt ||
    fail "$(cat err.txt) $(value best_epoch <out.json) $(all_values train_loss <out.json | tr '\n' ' ')"
echo "ok training"

# ---- What steps and what judges ----

content() { "$tools/drps-stat" "${1:-model}" --json | value content; }
train plan -o model --epochs 6
plain=$(content)
for options in "--lr-decay inverse" "--lr-decay sqrt" "--lr-decay cosine --batch-mean" "--optimizer sgd --batch-mean --l2 .01" "--optimizer ftrl --batch-mean" "--optimizer adam --lr-decay sqrt --beta1 .8" "--optimizer adam --batch-mean --l2 .01"; do
    # shellcheck disable=SC2086  # words
    train plan -o model --epochs 6 $options
    want=$(content)
    [[ $want != "$plain" ]] || fail "$options change nothing"
    for store in relay file; do
        # shellcheck disable=SC2086
        train plan -o model --epochs 6 $options --store $store
        [[ $(content) = "$want" ]] || fail "$options, store $store: $(content), not $want"
    done
    rm -rf model
    [[ $options != *cosine* ]] || continue # whose rates depend on the number of epochs
    # shellcheck disable=SC2086
    "$tools/drps-train" plan -o model --epochs 3 $options --keep-checkpoints --quiet
    "$tools/drps-train" plan -o model --epochs 6 --resume --quiet
    [[ $(content) = "$want" ]] || fail "$options, resumed: $(content), not $want"
    rm -rf model model.checkpoint
done
# A mean over 20 samples is a sum with a rate of a 20th, l2 included.
train plan -o model --epochs 3 --optimizer sgd --lr .002 --l2 .2 --json >out.json
sum=$(all_values test_loss <out.json | tr '\n' ' ')
train plan -o model --epochs 3 --optimizer sgd --lr .04 --l2 .2 --batch-mean --json >out.json
near "${sum% }" "$(all_values test_loss <out.json | tr '\n' ' ' | sed 's/ $//')" 1e-5 || fail "a sum has $sum, a mean $(all_values test_loss <out.json | tr '\n' ' ')"
"$tools/drps-train" plan -o model --epochs 1 --lr .03 --quiet --force
want=$(content)
train plan -o model --epochs 1 --lr .03 --lr-decay inverse
[[ $(content) = "$want" ]] || fail "the first epoch has another rate than was asked for"

# Early stopping by another metric keeps its best epoch.
train chance -o model --epochs 8 --lr .1 --patience 8 --metric auc --json >out.json 2>/dev/null
best=$(value best_epoch <out.json)
[[ $(all_values test_auc <out.json | sort -rn | head -1) = "$(all_values test_auc <out.json | sed -n "${best}p")" && $(value metric <out.json) = auc ]] ||
    fail "best epoch $best of $(all_values test_auc <out.json | tr '\n' ' ')"
rm -rf model
"$tools/drps-train" chance -o model --epochs 2 --patience 8 --metric auc --keep-checkpoints --quiet --lr .1 2>/dev/null
fails 2 "were judged by the metric auc, not loss: go on with that one" "$tools/drps-train" chance -o model --epochs 3 --resume --metric loss --quiet
"$tools/drps-train" chance -o model --epochs 8 --resume --json --quiet >more.json 2>/dev/null
[[ $(value best_epoch <more.json) = "$best" ]] || fail "resumed: best epoch $(value best_epoch <more.json), not $best"
rm -rf model model.checkpoint
fails 2 "--metric says which epoch is the best" train plan -o model --metric auc
fails 2 "the metric rmse is of labels that are numbers, and plan has the logistic loss" train plan -o model --metric rmse --patience 2
fails 2 "the metric auc is of two classes, and line has the squared loss" train line -o model --metric auc --patience 2
fails 2 "the rate of ftrl does not decay \(it falls by itself\): leave the decay of the learning rate out" train plan -o model --optimizer ftrl --lr-decay sqrt
fails 2 "beta1 is of the optimizer adam: leave it out \(--beta1\)" train plan -o model --beta1 .5
fails 2 "--beta2" train plan -o model --optimizer adam --beta2 1
fails 2 "no mean over a batch where local steps step after each sample" train plan -o model --batch-mean --local-steps
echo "ok steps"

# ---- --auto ----

"$tools/drps-train" plan -o model --force --auto --epochs 3 --checkpoint-every never >out.txt
rate=$(sed -n 's/^rate      --lr \([^:]*\): test loss .* the least of [0-9]* that were tried, with 30 batches each in .*/\1/p' out.txt)
[[ -n $rate && $(grep -c '^pilot [0-9] ' out.txt) -ge 3 ]] || fail "$(cat out.txt)"
want=$(content)
train plan -o model --lr "$rate" --epochs 3
[[ $(content) = "$want" ]] || fail "--lr $rate: $(content), not $want"
least=$(sed -n 's/^pilot .*: test loss //p' out.txt | sort -n | head -1)
grep -qF "rate      --lr $rate: test loss $least," out.txt || fail "$least is not the least: $(cat out.txt)"
train plan -o model --auto --epochs 3 --store relay --json >out.json
[[ $(content) = "$want" && $(sed -n 's/^    "lr": "\(.*\)",$/\1/p' out.json) = "$rate" ]] || fail "relay: $(content), not $want"
train plan -o model --auto --epochs 1 --local-steps
# Values near 3000: sgd diverges with all but tiny rates.
awk 'BEGIN { srand(3); for (i = 0; i < 2000; i++) { a = 3000 + 100 * (rand() - .5); b = 3000 + 100 * (rand() - .5); print a / 3000 - b / 3000 " 1:" a " 2:" b } }' >large.svm
"$tools/drps-index" large.svm --algo lir --quiet -o large
train large -o model --auto --optimizer sgd --batch-mean --epochs 1 --json >out.json
rate=$(sed -n 's/^    "lr": "\(.*\)",$/\1/p' out.json)
awk -v rate="$rate" 'BEGIN { exit !(rate > 0 && rate < 1e-6) }' || fail "--auto took --lr $rate"
fails 2 "the optimizer lbfgs has no learning rate" train plan -o model --auto --optimizer lbfgs
fails 2 "--auto chooses the learning rate: leave --lr out" train plan -o model --auto --lr .1
echo "ok auto"

# ---- Several ranks ----

index sound.svm --test sound.t.svm --algo lor --workers 2 -o plan-2
if ! train plan-2 -o model --local 2 --auto --lr-decay sqrt --batch-mean --epochs 3 --json >out.json 2>err.txt; then
    grep -q "this build has no ZeroMQ" err.txt || fail "$(cat err.txt)"
    skip "this build has no ZeroMQ"
fi
want=$(content)
rate=$(sed -n 's/^    "lr": "\(.*\)",$/\1/p' out.json)
train plan-2 -o model --local 2 --transport inproc --lr "$rate" --lr-decay sqrt --batch-mean --epochs 3
[[ $(content) = "$want" ]] || fail "inproc, --lr $rate: $(content), not $want"
says train "nothing was learnt: the training loss of epoch 1, $(
    train plan-2 -o model --local 2 --optimizer sgd --lr 3 --json 2>/dev/null >out.json; six "$(number train_loss)"
), is above that of the best constant, $(six "$constant"); try a smaller learning rate (it is 3, try 0.3), or more epochs
" train plan-2 -o model --local 2 --optimizer sgd --lr 3 --json
fails 2 "plan-2 is dealt to several workers: check the plan for one" "$tools/drps-stat" --check plan-2
echo "ok ranks"

# ---- Real data ----

a9a=$source/../shared/data/a9a/a9a.xz
[[ -r $a9a ]] || {
    echo "SKIPPED: a9a, as ../shared/data has none"
    exit 0
}
says index "" "$tools/drps-index" "$a9a" --test "${a9a%.xz}.t.xz" --algo lor -o real --quiet --json
says stat "" "$tools/drps-stat" --check real --json
says train "" train real -o model --epochs 10 --json
echo "ok real data"
