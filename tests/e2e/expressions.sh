#!/usr/bin/env bash
# Losses as expressions: mistakes are pointed to; a loss that is a built-in is that to the bit; every store, several ranks,
# checkpoints, a warm start and another number of workers give the same; rows of samples; numbers with several outputs.
. "$(dirname "$0")/lib.sh"

five_classes
index() { "$tools/drps-index" "$@" --memory 128M --quiet; }
content() { # PLAN TRAIN-OPTIONS...
    local plan=$1
    shift
    "$tools/drps-train" "$plan" -o model --force --epochs 3 --quiet --json "$@" | value content
}
mlr='cross_entropy(y, softmax(W*x))'
own='cross_entropy(y, softmax(W*x + own)) + 0.1*norm2(own)'

# ---- mistakes: the place is pointed to, and nothing is left ----

# wrong LOSS COLUMN TEXT: drps-index says TEXT of the column, and points there.
wrong() {
    local at=$2
    fails 2 "the loss, column $at: $3" "$tools/drps-index" --algo expr --loss "$1" train.svm -o none
    [[ $(grep -n '\^' err.txt) = "3:$(printf '%*s' $((at + 1)) '')^" ]] || fail "'$1': the mark is not below column $at: $(cat err.txt)"
    absent none
}
wrong 'squared(y, z)' 12 'unknown name'
wrong 'squared(y, W*x' 15 ') is missing'
wrong 'squared(1, W*x)' 1 'one operand is a vector'
wrong 'softmax(w*x)' 1 'this function needs a vector'
wrong 'square(y - sum(W*x))' 1 'the loss is a vector'
grep -q -- '--outputs' err.txt || fail "no word of --outputs: $(cat err.txt)"
wrong 'squared(y, W*x) +' 18 'a number, a name or'
fails 2 'column 12: there is no power here; write square' "$tools/drps-index" --algo expr --loss 'sum((y-W*x)^2)' train.svm -o none
wrong 'sum((y-W*x)**2)' 13 'there is no power here; write square'
wrong 'squared(Y, W*x)' 9 'unknown name; names are case-sensitive'
fails 2 "--algo expr needs --loss" "$tools/drps-index" --algo expr train.svm -o none
fails 2 "needs --algo expr" "$tools/drps-index" --algo mlr --loss "$mlr" train.svm -o none
fails 2 "--outputs needs --algo expr" "$tools/drps-index" --algo lor --outputs 4 train.svm -o none
fails 2 "the outputs are of W\*x" "$tools/drps-index" --algo expr --loss 'squared(y, w*x)' --outputs 4 train.svm -o none
fails 2 "has more than 511 characters" "$tools/drps-index" --algo expr --loss "w*x$(printf '+1%.0s' {1..300})" train.svm -o none
echo "ok mistakes"

# ---- a built-in loss is what it is ----

index train.svm --test test.svm --algo mlr -o built-in
index train.svm --test test.svm --algo expr --loss "$mlr" -o same
index train.svm --test test.svm --algo expr --loss "1 * $mlr" -o text
"$tools/drps-stat" same --verify >/dev/null
grep -qxF "  loss     $mlr" < <("$tools/drps-stat" same) || fail "drps-stat does not show the loss"
want=$(content built-in)
[[ -n $want && $(content same) = "$want" ]] || fail "the loss of mlr as a text gives another model"
grep -qxF "  loss     $mlr" < <("$tools/drps-stat" model) || fail "drps-stat does not show the model's loss"
"$tools/drps-predict" model test.svm -o same.txt --probabilities --metrics --json --quiet >same.json
content text >text.txt
"$tools/drps-predict" model test.svm -o text.names --quiet
"$tools/drps-predict" model test.svm -o text.txt --force --probabilities --metrics --json --quiet >text.json
content built-in >/dev/null
"$tools/drps-predict" model test.svm -o built-in.names --quiet
"$tools/drps-predict" model test.svm -o built-in.txt --probabilities --metrics --json --quiet >built-in.json
"$tools/drps-predict" model test.svm -o softmax.txt --value 'softmax(W*x)' --quiet
tail -n +2 built-in.txt | cmp - softmax.txt || fail "softmax as a value gives other probabilities"
cmp same.txt built-in.txt || fail "other probabilities than those of mlr"
cmp text.names built-in.names || fail "another rounding gives other classes"
near "$(value test_loss <text.json)" "$(value test_loss <built-in.json)" 1e-4 || fail "another held-out loss: $(cat text.json)"
echo "ok built-in"

# ---- every store, threads, checkpoints; rows of samples ----

index train.svm --test test.svm --algo expr --loss "$own" -o own
"$tools/drps-stat" own --verify >/dev/null
grep -q 'own *2100 rows' < <("$tools/drps-stat" own) || fail "not a row for each training sample: $("$tools/drps-stat" own)"
for plan in text own; do
    want=$(content $plan --store resident)
    for store in relay file rocksdb leveldb; do
        got=$(content $plan --store $store --memory 128M)
        [[ -n $got && $got = "$want" ]] || fail "$plan, store $store: $got instead of $want"
    done
    rm -rf model model.checkpoint
    "$tools/drps-train" $plan -o model --epochs 2 --keep-checkpoints --quiet
    got=$("$tools/drps-train" $plan -o model --epochs 3 --resume --quiet --json | value content)
    [[ $got = "$want" ]] || fail "$plan: another model after a checkpoint"
done
[[ $(content own --threads 2) = "$(content own --threads 2 --store relay --memory 128M)" ]] || fail "two threads: another model"
# What a sample keeps is learned from epoch to epoch, and is not for others.
"$tools/drps-train" own -o own-model --epochs 8 --quiet --json >own.json
"$tools/drps-train" text -o text-model --epochs 8 --quiet --json >text.json
# shellcheck disable=SC2046  # two numbers
awk 'BEGIN {exit !(ARGV[1] < ARGV[2])}' $(all_values train_loss <own.json | tail -1) $(all_values train_loss <text.json | tail -1) ||
    fail "rows of samples take nothing up"
"$tools/drps-predict" own-model test.svm -o own.txt --metrics --json --quiet >own.json
awk "BEGIN {exit !($(value test_accuracy <own.json) > 0.8)}" || fail "accuracy $(cat own.json)"
echo "ok stores"

# ---- plans of other losses are not the same; a warm start ----

[[ $("$tools/drps-stat" own --json | value id) != "$("$tools/drps-stat" text --json | value id)" ]] || fail "two losses, one plan"
[[ $("$tools/drps-stat" same --json | value id) != "$("$tools/drps-stat" text --json | value id)" ]] || fail "two texts, one plan"
fails 2 "was trained for loss 1 " "$tools/drps-train" same -o warm --from text-model
"$tools/drps-train" own -o warm --from own-model --epochs 1 --quiet --json >warm.json
# shellcheck disable=SC2046  # two numbers
awk 'BEGIN {exit !(ARGV[1] < ARGV[2])}' $(all_values train_loss <warm.json) $(all_values train_loss <text.json | head -1) ||
    fail "a warm start begins with no rows"
echo "ok warm start"

# ---- several ranks ----

for loss in "1 * $mlr" "$own"; do
    rm -rf ranks
    index train.svm --test test.svm --algo expr --loss "$loss" --batch-size 50 --workers 3 -o ranks
    "$tools/drps-stat" ranks --verify >/dev/null
    want=$(content ranks --local 3)
    [[ -n $want && $(content ranks --local 3 --exchange rows) = "$want" ]] || fail "$loss: servers and rows differ"
    [[ $(content ranks --local 3 --no-fresh) = "$want" ]] || fail "$loss: other rows where all are sent"
    [[ -n $(content ranks --local 3 --exchange dense) && -n $(content ranks --local 3 --exchange auto) ]]
    if [[ $loss = "$own" ]]; then
        fails 2 "rows of samples are no outer products" "$tools/drps-train" ranks -o none --local 3 --exchange vectors
    else
        [[ $(content ranks --local 3 --exchange vectors) = "$want" ]] || fail "$loss: servers and vectors differ"
    fi
done
"$tools/drps-index" --from-plan own --workers 2 -o dealt --quiet
"$tools/drps-stat" dealt --verify >/dev/null
[[ -n $(content dealt --local 2) ]]
echo "ok ranks"

# ---- numbers: one score, and several ----

awk 'BEGIN {srand(3); for (i = 0; i < 3000; i++) {a = rand() < .5; b = rand() < .5; printf "%.4f %d:1 %d:1\n", (a != b ? 1.5 : -0.5) + 0.1 * rand(), 1 + a, 3 + b}}' >xor.svm
index xor.svm --test-fraction 0.2 --algo lir -o lir
index xor.svm --test-fraction 0.2 --algo expr --loss 'squared(y, w*x)' -o line
[[ $(content line) = "$(content lir)" ]] || fail "the loss of lir as a text gives another model"
net='square(y - sum(W*x * sigmoid(W*x)))'
index xor.svm --test-fraction 0.2 --algo expr --loss "$net" --outputs 8 -o net
"$tools/drps-stat" net --verify >/dev/null
"$tools/drps-train" net -o net-model --epochs 20 --quiet --json >net.json
awk "BEGIN {exit !($(all_values test_loss <net.json | tail -1) < 0.01)}" || fail "a layer of eight does not learn what a line cannot: $(all_values test_loss <net.json)"
[[ $(content net) != "$(content net --seed 2)" ]] || fail "rows do not begin by the seed"
"$tools/drps-predict" net-model xor.svm -o net.txt --quiet
[[ $(awk '{print NF}' net.txt | sort -u) = 8 ]] || fail "not eight scores a line: $(head -1 net.txt)"
"$tools/drps-predict" net-model xor.svm -o value.txt --value 'sum(W*x * sigmoid(W*x))' --quiet
paste xor.svm value.txt | awk '{d = $1 - $NF; sum += d * d} END {exit !(sum / NR < 0.01)}' || fail "values are not the labels: $(head -2 value.txt)"
fails 2 "the value, column 1: y is the label" "$tools/drps-predict" net-model xor.svm -o none --value 'y - sum(W*x)'
fails 2 "the value, column 1: samples of this model have several scores" "$tools/drps-predict" net-model xor.svm -o none --value 'w*x'
fails 2 "sample 1, the value: in column 1" "$tools/drps-predict" net-model xor.svm -o none --value 'log(sum(W*x) - 1000)'
fails 2 "exclude each other" "$tools/drps-predict" model xor.svm -o none --value 'w*x' --probabilities
absent none
index xor.svm --algo expr --loss "$net" --outputs 8 --workers 2 -o net-two
want=$(content net-two --local 2)
for options in "--exchange vectors" "--exchange rows" --no-fresh; do
    # shellcheck disable=SC2086  # several words
    [[ $(content net-two --local 2 $options) = "$want" ]] || fail "$options: another model of eight outputs"
done
fails 2 "no named classes to give probabilities of" "$tools/drps-predict" net-model xor.svm -o none --probabilities
echo "ok numbers"

# ---- a loss that is no finite number ends the run, and says where ----

index xor.svm --algo expr --loss 'log(y - 2*(w*x))' --no-bias -o log
fails 1 "epoch 1, step 1, sample [0-9]+ of its 100, the loss: in column 1 a value is not a number" "$tools/drps-train" log -o none
absent none
index xor.svm --algo expr --loss 'log(y - 2*(w*x))' --no-bias --workers 2 -o log-two
fails 1 "epoch 1, step 1, sample [0-9]+ of its 100, the loss: in column 1 a value is not a number" "$tools/drps-train" log-two -o none --local 2
absent none
# A test sample may have such a loss where no training sample does.
{ sed -n 1,30p xor.svm; echo "-3 1:1"; } >odd.svm
for workers in 1 2; do
    index xor.svm --test odd.svm --algo expr --loss 'log(y + 2) + square(w*x)' --workers $workers -o odd --force
    fails 1 "test loss of epoch 1 is no finite number: test batch 1: sample [0-9]+ of its [0-9]+, the loss: in column 1 a value is not a number" \
        "$tools/drps-train" odd -o none --local $workers
    absent none
done
fails 1 "diverges with all learning rates that were tried, .* with the first: .*no finite number.*the loss: in column 1 a value" "$tools/drps-train" log -o none --auto
index xor.svm --algo expr --loss 'abs(y - (w*x))' -o kinks
fails 2 "abs in the loss of kinks has kinks" "$tools/drps-train" kinks -o none --optimizer lbfgs
echo "ok"
