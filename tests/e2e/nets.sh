#!/usr/bin/env bash
# Nets: mistakes are told with file and line; every store, checkpoints, a kill and several ranks come to one model; prediction,
# new data, a warm start, classes, real labels and dropout; a net that is fm written out learns as fm does; what nets cannot is refused.
# shellcheck disable=SC2016  # what nets have in backquotes is not for the shell
. "$(dirname "$0")/lib.sh"

# The label of a sample of three fields says whether its first two are alike; the third, one of $3 ids from $4 on, is noise.
clicks() { # SAMPLES SEED IDS [FIRST]
    awk -v n="$1" -v seed="$2" -v ids="$3" -v first="${4:-21}" 'BEGIN { srand(seed); for (i = 0; i < n; i++) {
        a = int(rand() * 6); b = int(rand() * 6); print (a % 2 == b % 2) + 0, "0:" 1 + a ":1 1:" 11 + b ":1 2:" first + int(rand() * ids) ":1" } }'
}
clicks 3000 1 1000 >train.ffm
clicks 600 2 1000 >test.ffm
clicks 2000 3 1000 1500 >new.ffm
index() { "$tools/drps-index" "$@" --quiet --force; }
train() { "$tools/drps-train" "$@" --force --quiet --json; }
content() { # PLAN TRAIN-OPTIONS...
    train "$@" -o model --epochs 3 --checkpoint-every never | value content
}
verify() { "$tools/drps-stat" "$1" --verify >/dev/null || fail "$1 does not verify"; }
loss() { all_values "$1_loss" <"$2" | tail -1; } # train or test, of the last epoch
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }
cat >net.txt <<'END'
# A deep factorization machine
x     = embedding 8
first = linear
pairs = fm x
h     = full 32 x
h     = relu h
h     = dropout 0.2 h
deep  = full 1 h
score = sum first pairs deep
END

# ---- Mistakes ----

refused() { # STATUS PATTERN INDEX-OPTIONS...
    local status=$1 pattern=$2
    shift 2
    fails "$status" "$pattern" "$tools/drps-index" "$@" -o none
    absent none
}

wrong() { # TEXT PATTERN
    printf '%b' "$1" >wrong.txt
    refused 2 "wrong.txt: $2" train.ffm --algo net --net wrong.txt
}
wrong 'x = bag 8\n\nh = fulll 4 x\nscore = full 1 h\n' 'line 3: there is no layer `fulll`; there are embedding, bag, .*, join, lstm, image, conv, pool$'
wrong 'x = bag 8\nscore = full 1 y\n' 'line 2: no line before this one has the name `y`, which full reads'
wrong 'x = bag 8\nscore = full 1\n' 'line 2: full needs 1 input and has 0'
wrong 'x = bag 8\ny = linear\nscore = full 1 x\n' 'line 2: no line reads this `y`'
wrong 'x = bag 8\nh = full 1 x\n' 'line 2: the last line must be `score`'
wrong '# nothing\n' 'no layer in the net'
wrong 'x = bag 8\n# two scores\nscore = full 2 x\n' 'line 3: score has 2 floats, and a sample has 1 score'
wrong 'x = numbers 4\ny = linear\nx = join x y\nscore = full 1 x\n' 'line 1: numbers 4, and the data has 3 fields'
printf 'x = bag 8\nscore = full 1 x\0\n' >wrong.txt
refused 1 'wrong.txt:2:17: a control character' train.ffm --algo net --net wrong.txt
{ cat net.txt && head -c 5000 /dev/zero | tr '\0' '#'; } >wrong.txt
refused 1 'wrong.txt has [0-9]* bytes; at most 4095' train.ffm --algo net --net wrong.txt
printf 'x = bag 5000\nscore = full 1 x\n' >wrong.txt
refused 2 '5000 factors are too many: at most 4096' train.ffm --algo net --net wrong.txt
refused 1 'there is no file missing.txt, and no net of this name; name a file, or one of mlp' train.ffm --algo net --net missing.txt
refused 2 'algo net needs --net FILE' train.ffm --algo net
refused 2 'the algorithm fm is no net: leave out the net net.txt' train.ffm --algo fm --net net.txt
refused 2 'algo mlp is a net that is built in; for that of --net say --algo net' train.ffm --net net.txt --algo mlp
refused 2 "'deepfmm' is not one of: .* mlp, wide-deep, deepfm, dlrm, dcn" train.ffm --algo deepfmm
refused 2 'the net net.txt says how many factors' train.ffm --algo net --net net.txt --factors 8
refused 2 'do not leave that out' train.ffm --algo deepfm --no-bias
refused 2 'leave handing rows on out' train.ffm --algo deepfm --workers 2 --hand-on 100
refused 2 'loss softmax does not fit' train.ffm --algo mlp --loss softmax
refused 2 'loss logistic does not fit' train.ffm --algo deepfm --task regression --loss logistic
printf 'x = bag 8\nscore = full classes x\n' >classes.txt
refused 2 'for labels that are classes, not for regression' train.ffm --algo net --net classes.txt --task regression
# Numbers that are not whole are no classes. A net with a name takes them for what they are where that is the task.
awk 'BEGIN { srand(7); for (i = 0; i < 600; i++) { a = rand(); b = rand(); printf "%.1f 1:%.3f 2:%.3f\n", 2 * a + b, a, b } }' >amounts.svm
for net in mlp "net --net classes.txt"; do
    refused 1 'labels are [0-9]+ numbers, such as [0-9]*\.[0-9], and a net with `full classes` .*choose the task regression, .*\(--task\)$' amounts.svm --algo $net
done
"$tools/drps-index" amounts.svm --algo mlp --task regression --test-fraction .2 -o amounts --quiet || fail "a perceptron of numbers"
"$tools/drps-stat" amounts >out.txt
grep -q 'score = full 1 h' out.txt || fail "the net of numbers: $(cat out.txt)"
grep -q 'net, squared loss' out.txt || fail "the loss of numbers: $(cat out.txt)"
"$tools/drps-train" amounts -o amounts.model --epochs 20 --json >out.json 2>err.txt || fail "$(cat err.txt)"
awk -v a="$(all_values test_rmse <out.json | tail -1)" 'BEGIN { exit !(a < .3) }' || fail "numbers are not learnt: $(cat out.json)"
sed 's/^\([0-9]\)\.[0-9]/\1/' amounts.svm >whole.svm
"$tools/drps-index" whole.svm --algo mlp -o whole --quiet || fail "whole numbers are classes"
refused 2 'one machine makes the plan of a net' train.ffm --algo deepfm --local 2
cut -d ' ' -f 1,2 train.ffm | sed 's/ 0:/ /' >train.svm
refused 2 'needs fields, and format libsvm has none' train.svm --algo deepfm
printf 'algo = mlp\n' >settings
index train.ffm --config settings --algo lor -o other || fail "the net of a configuration that the command line does not want stays"
echo "ok mistakes"

# ---- One model: stores, little memory, checkpoints, kills, optimizers ----

index train.ffm --test test.ffm --algo net --net net.txt --batch-size 50 -o plan
verify plan
grep -qxF '  net      # A deep factorization machine' < <("$tools/drps-stat" plan) || fail "drps-stat does not show the net"
grep -qE '^  table +net +93 rows, from row 0 on' < <("$tools/drps-stat" plan) || fail "93 rows of 9 floats hold 834 parameters"
want=$(content plan --store resident)
verify model
grep -qxF '           score = sum first pairs deep' < <("$tools/drps-stat" model) || fail "drps-stat does not show the model's net"
least() { # PLAN TRAIN-OPTIONS...
    { "$tools/drps-train" "$@" -o refused --memory 1M 2>&1 || true; } | sed -n 's/.*at least \([0-9.]*\) MiB.*/\1/p' |
        awk '{print int(($1 + 0.1) * 1024) "K"}'
}
stores() { # PLAN
    local plan=$1 store got want
    want=$(content "$plan" --store resident)
    for store in relay file rocksdb leveldb; do
        got=$(content "$plan" --store $store --memory "$(least "$plan" --store $store)" 2>err.txt) || grep -q "is none of" err.txt ||
            fail "$plan, $store: $(cat err.txt)" # not every build has all
        [[ -z $got || $got = "$want" ]] || fail "$plan, $store: $got, not $want"
    done
}
stores plan
[[ -n $want && $(content plan --one-by-one) = "$want" ]] || fail "another model one by one"
[[ $(content plan --seed 2) != "$want" ]] || fail "rows and dropout do not depend on the seed"
two=$(content plan --threads 2)
[[ -n $two && $(content plan --threads 2 --store relay) = "$two" ]] || fail "two threads: two models"
for optimizer in sgd adam ftrl "ftrl --l1 0.001 --l2 0.01"; do
    # shellcheck disable=SC2086  # several words
    { [[ $(content plan --optimizer $optimizer) = "$(content plan --optimizer $optimizer --store relay --memory 40M)" ]] &&
        less "$(loss train <(train plan -o model --epochs 3 --optimizer $optimizer))" 0.69; } || fail "$optimizer"
done
"$tools/drps-train" plan -o resumed --epochs 1 --quiet --keep-checkpoints
[[ $(train plan -o resumed --epochs 3 --resume | value content) = "$want" ]] || fail "another model after a checkpoint"
clicks 20000 4 60000 >many.ffm # of which not all rows fit little memory
for options in "--batch-size 50" "--blocks auto" "--blocks topk" "--blocks greedy" "--order given"; do
    # shellcheck disable=SC2086  # several words
    index many.ffm --algo net --net net.txt $options -o "many ${options##* }"
    verify "many ${options##* }"
    if [[ $options = --b*-size* ]]; then
        stores "many 50"
    else
        [[ $(content "many ${options##* }" --store file --memory 45M) = "$(content "many ${options##* }" --store resident)" ]] || fail "$options: two models"
    fi
done
whole=$(content "many 50")
for store in relay file; do
    rm -rf killed killed.checkpoint
    "$tools/drps-train" "many 50" -o killed --epochs 3 --store $store --memory 45M --checkpoint-every 30b --quiet &
    pid=$!
    for ((i = 0; i < 400; i++)); do
        (($(newest killed.checkpoint/rank-0) < 5)) || break
        kill -0 $pid 2>/dev/null || break
        pause
    done
    kill -9 $pid 2>/dev/null || :
    wait $pid 2>/dev/null || :
    [[ $(train "many 50" -o killed --epochs 3 --store $store --memory 45M --resume | value content) = "$whole" ]] || fail "$store: killed, resumed, another model"
done
fails 2 "each sample changes all parameters of a net" "$tools/drps-train" plan -o none --local-steps
fails 2 "lbfgs is for linear models" "$tools/drps-train" plan -o none --optimizer lbfgs
absent none
echo "ok one model"

# ---- Prediction, and what shows a model ----

train plan -o model --epochs 5 >train.json
"$tools/drps-predict" model test.ffm -o scores --metrics --json >predict.json
near "$(value test_loss <predict.json)" "$(loss test train.json)" 1e-5 || fail "prediction has another loss"
head -50 test.ffm | while IFS= read -r line; do "$tools/drps-predict" model - -o - --quiet <<<"$line"; done >pieces
near "$(head -50 scores)" "$(cat pieces)" 1e-5 || fail "a sample has another score by itself"
printf '1 0:77:1\n0\n1 2:21:0.5 0:1:1 0:2:1\n' >odd.ffm # an unknown feature, none at all, and two of a field
[[ $("$tools/drps-predict" model odd.ffm -o - --quiet | wc -l) = 3 ]] || fail "not three scores"
"$tools/drps-stat" model --export model.csv --quiet
[[ $(head -1 model.csv) = feature,weight,f1,f2,f3,f4,f5,f6,f7,f8 ]] || fail "columns: $(head -1 model.csv)"
[[ $(sed -n 2,3p model.csv | cut -d , -f 1) = $'(intercept)\n(net 1)' ]] || fail "rows: $(sed -n 2,3p model.csv)"
[[ $(wc -l <model.csv) = $(($("$tools/drps-stat" model --json | value rows) + 1)) ]] || fail "not a line for each row"
"$tools/drps-stat" model --weights >weights.txt || fail "no weights"
"$tools/drps-stat" model --html page.html --quiet
fails 2 "not exported as ONNX" "$tools/drps-stat" model --export model.onnx
fails 2 "a net's score is no sum of its features' weights" "$tools/drps-stat" model --weights --plan plan
fails 2 "cannot be explained: a net's score is no sum over features" "$tools/drps-predict" model test.ffm -o none --explain 3
fails 2 "recommending needs users and items" "$tools/drps-recommend" model --users 1 -o none
absent none
"$tools/drps-predict" model test.ffm -o calibrated --calibrate platt --json >predict.json
less "$(value test_loss <predict.json)" 0.2 || fail "calibrated: $(cat predict.json)"
echo "ok prediction"

# ---- New data, a warm start, and batches dealt to ranks ----

train plan -o old --epochs 2 >old.json
[[ $(all_values train_loss <train.json | sed -n 1,2p) = "$(all_values train_loss <old.json)" ]] || fail "the same epochs have other losses"
train plan -o warm --from old --epochs 1 >warm.json
less "$(loss train warm.json)" "$(loss train old.json)" || fail "a warm start begins anew: $(loss train warm.json)"
sed 's/32/33/' net.txt >other.txt
index train.ffm --algo net --net other.txt -o other
fails 2 "old has another net than the plan" "$tools/drps-train" other -o none --from old
index train.ffm --algo deepfm -o other
fails 2 "old has 8 factors a row, the plan 16" "$tools/drps-train" other -o none --from old
index train.ffm --algo fm --factors 8 -o other
fails 2 "old is of algorithm net, the plan of fm" "$tools/drps-train" other -o none --from old
absent none
for workers in 1 2; do
    index new.ffm --base plan --workers $workers -o base
    verify base
    grep -qE '^  table +net +93 rows, from row 0 on' < <("$tools/drps-stat" base) || fail "the net's rows have moved"
done
index new.ffm --base plan -o base
train base -o day --from old >day.json
[[ $(train base -o day --from old --store relay | value content) = "$(value content <day.json)" ]] || fail "new data: two models"
train base -o anew >anew.json 2>err.txt
less "$(loss train day.json)" "$(loss train anew.json)" || fail "new data: the old model does not help"
fails 2 "leave out --algo, --net" "$tools/drps-index" new.ffm --base plan --net net.txt -o none
echo "1 9:1:1" >far.ffm
fails 1 "a sample has the field 9" "$tools/drps-index" far.ffm --base plan -o none
absent none

# ---- Several ranks ----

local=(--local 2 --transport zmq)
index --from-plan plan --workers 2 -o dealt
verify dealt
if ! "$tools/drps-train" dealt -o model "${local[@]}" --force --quiet 2>err.txt; then
    grep -q "this build has no ZeroMQ" err.txt || fail "$(cat err.txt)"
    local[3]=inproc
fi
want=$(content dealt "${local[@]}")
[[ -n $want && $(content dealt "${local[@]}" --store relay) = "$want" ]] || fail "dealt: two models"
printf 'x = numbers 3\nh = full 60 x\nh = tanh h\nscore = full 1 h\n' >numbers.txt # rows of one float
local[1]=3
for placed in "range numbers" "counts net" "hash numbers" "auto net" "dppa net" "greedy net" "range net"; do
    # By range and by counts the first rank can hold a part of the net's rows alone.
    index train.ffm --test test.ffm --algo net --net "${placed#* }.txt" --batch-size 20 --workers 3 --partition "${placed% *}" -o ranks
    verify ranks
    want=$(content ranks "${local[@]}" --store resident)
    got=$(content ranks "${local[@]}" --store relay --no-fresh)
    [[ -n $want && $got = "$want" ]] || fail "placed by ${placed/ /, }: two models"
done
local+=(--threads 2 --optimizer ftrl --l1 0.001)
want=$(content ranks "${local[@]}")
[[ -n $want && $(content ranks "${local[@]}" --no-fresh --store file) = "$want" ]] || fail "ranks, ftrl: two models"
for sync in ssp asp; do
    train ranks "${local[@]:0:4}" -o ranks-model --epochs 5 --sync $sync >sync.json
    less "$(loss test sync.json)" 0.3 || fail "$sync does not learn: $(loss test sync.json)"
done
verify ranks-model
index --from-plan dealt --workers 1 -o one
[[ -n $(content one) ]] || fail "ranks' batches do not come together"
echo "ok ranks"

# ---- Classes, numbers, dropout, and what others learn ----

awk 'BEGIN { srand(7); split("ash beech elm", name, " "); for (i = 0; i < 2000; i++) {
    c = int(rand() * 3) + 1; printf "%s %d:1", name[c], rand() < .9 ? c : int(rand() * 3) + 1
    for (f = 10; f < 600; f += 1 + int(rand() * 200)) printf " %d:%.2f", f, rand(); printf "\n" } }' >classes.svm
"$tools/drps-index" classes.svm --test-fraction 0.2 --algo mlp --factors 8 -o classes --force >said 2>&1 || fail "$(cat said)"
grep -q 'a net of 782 parameters' said || fail "the net has 3 + 8 + 64 * 9 + 3 * 65 parameters: $(cat said)"
verify classes
train classes -o classes-model --epochs 5 >classes.json
less 0.85 "$(all_values test_accuracy <classes.json | tail -1)" || fail "classes are not learned: $(cat classes.json)"
[[ $(train classes -o model --epochs 5 --store relay | value content) = "$(value content <classes.json)" ]] || fail "classes: two models"
"$tools/drps-predict" classes-model classes.svm -o names --quiet
paste -d ' ' names classes.svm | awk '$1 == $2 { n++ } END { exit !(n > NR * 0.85) }' || fail "predictions are not names: $(head -2 names)"
"$tools/drps-predict" classes-model classes.svm -o probabilities --probabilities --quiet
[[ $(head -1 probabilities) = $'ash\tbeech\telm' ]] || fail "$(head -1 probabilities)"
awk 'NR > 1 { s = $1 + $2 + $3 - 1; if (NF != 3 || s * s > 1e-12) exit 1 }' probabilities || fail "probabilities do not add up to 1"
"$tools/drps-stat" classes-model --export - --as csv --quiet >classes.csv
[[ $(head -1 classes.csv) = feature,weight,f1,* ]] || fail "columns: $(head -1 classes.csv)"
refused 2 'loss logistic does not fit' classes.svm --algo mlp --loss logistic

awk 'BEGIN { srand(5); for (i = 0; i < 3000; i++) { a = int(rand() * 6); b = int(rand() * 6)
    printf "%.3f 0:%d:1 1:%d:1\n", (a % 2 == b % 2) * 3 + rand() / 10, 1 + a, 11 + b } }' >real.ffm
printf 'x = embedding 8\nh = full 16 x\nh = relu h\nscore = full 1 h\n' >real.txt
index real.ffm --test-fraction 0.2 --algo net --net real.txt --task regression -o real
train real -o model --epochs 10 >real.json
less "$(loss test real.json)" 0.2 || fail "numbers are not learned: $(loss test real.json)"

printf 'a = linear\nx = embedding 8\nb = fm x\nscore = sum a b\n' >fm.txt
index train.ffm --test test.ffm --algo net --net fm.txt -o written
index train.ffm --test test.ffm --algo fm --factors 8 -o fm
train written -o model --epochs 6 >written.json
train fm -o model --epochs 6 >fm.json
near "$(all_values test_loss <written.json)" "$(all_values test_loss <fm.json)" 0.001 || fail "fm written out: $(loss test written.json), not $(loss test fm.json)"
index train.ffm --test test.ffm --algo deepfm -o deep
index train.ffm --test test.ffm --algo lor -o linear
train deep -o model --epochs 5 >deep.json
train linear -o model --epochs 5 >linear.json 2>err.txt
less "$(loss test deep.json)" 0.1 || fail "deepfm does not learn the pair: $(loss test deep.json)"
less 0.6 "$(loss test linear.json)" || fail "lor learns the pair"
sed -i '/dropout/d' net.txt
index train.ffm --test test.ffm --algo net --net net.txt --batch-size 50 -o full
[[ $(train full -o model --epochs 2 | all_values train_loss) != "$(all_values train_loss <old.json)" ]] || fail "dropout leaves nothing out"
echo "ok"
