#!/usr/bin/env bash
# Hashed features: the loss of features by name where no two share a bin, the same model in every store and from every
# rank, prediction as the plan says, and what cannot be hashed.
. "$(dirname "$0")/lib.sh"

# Numbers with values, a line a sample; the label follows some of 2,000 features.
awk 'BEGIN {srand(11); for (i = 0; i < 4000; i++) {s = 0; line = ""
    for (k = 0; k < 20; k++) {f = int(2000 * rand() ^ 2) + 1; v = 1 + (rand() < 0.2); s += v * (f % 7 < 3 ? 1 : -1); line = line " " f ":" v}
    print (rand() < 1 / (1 + exp(-s / 3)) ? 1 : -1) line}}' >all.svm
head -3500 all.svm >train.svm
tail -500 all.svm >test.svm
loss() { all_values test_loss <"$1" | tail -1; }
make() { # make PLAN OPTION...
    local plan=$1
    shift
    "$tools/drps-index" train.svm --test test.svm --batch-size 100 -o "$plan" --force --quiet "$@"
}
learn() { # learn PLAN MODEL OPTION...
    local plan=$1 model=$2
    shift 2
    "$tools/drps-train" "$plan" -o "$model" --epochs 3 --force --quiet --json "$@" >"$model.json" 2>"$model.txt" || fail "drps-train $plan $*: $(cat "$model.txt")"
}

# No two of 2,000 features share one of 2^30 bins: weights have signs, losses are the same.
for algo in lor svm mlr; do
    make plain --algo $algo
    make hashed --algo $algo --hash-bits 30
    "$tools/drps-stat" hashed --verify >/dev/null || fail "a hashed plan does not verify"
    learn plain plain-model
    learn hashed hashed-model
    near "$(loss plain-model.json)" "$(loss hashed-model.json)" 1e-6 || fail "$algo: loss $(loss plain-model.json), hashed $(loss hashed-model.json)"
done

# Prediction hashes as the plan says; rows are bounded; every store, memory and number of ranks gives the same.
for options in "--algo lor --hash-bits 8" "--algo fm --factors 4 --hash-bits 10 --hash-seed 5" "--algo lor --hash-bits 12 --hash-kind oph --hash-bins 64"; do
    # shellcheck disable=SC2086  # words
    make plan $options 2>oph.txt
    bits=${options#*--hash-bits }
    rows=$("$tools/drps-stat" plan --json | value rows)
    ((rows <= (1 << ${bits%% *}) + 1)) || fail "$options: $rows rows"
    for store in resident relay file; do
        learn plan model --store $store $([[ $store = resident ]] || echo --memory 44M)
        content=$(value content <model.json)
        [[ $content = "${first:=$content}" ]] || fail "$options: store $store has content $content, resident $first"
    done
    unset first
    "$tools/drps-predict" model test.svm --metrics -o scores.txt --force --quiet --json >predict.json
    near "$(loss model.json)" "$(value test_loss <predict.json)" 1e-6 || fail "$options: test loss $(loss model.json), predicted $(value test_loss <predict.json)"
    # shellcheck disable=SC2086
    make plan2 $options --workers 2 2>oph.txt
    "$tools/drps-stat" plan2 --verify >/dev/null || fail "$options --workers 2 makes a plan that does not verify"
    learn plan2 model2 --local 2
    "$tools/drps-predict" model2 test.svm --metrics -o scores.txt --force --quiet --json >predict.json
    near "$(loss model2.json)" "$(value test_loss <predict.json)" 1e-6 || fail "$options: of 2 ranks $(loss model2.json), predicted $(value test_loss <predict.json)"
done
grep -q "is of sets: features have values other than 1" oph.txt || fail "values are not told of: $(cat oph.txt)"

# Values of few sizes take few bits, also where a block builder has numbered the rows anew.
make plan --algo lor --hash-bits 8
make blocks --algo lor --hash-bits 8 --blocks auto
"$tools/drps-stat" blocks --verify >/dev/null || fail "a plan with blocks does not verify"
for plan in plan blocks; do
    (($(stat -c %s $plan/data.rec) < 4000 * 20 * 3)) || fail "$plan/data.rec has $(stat -c %s $plan/data.rec) bytes"
done

# What is shown: bins by their numbers.
grep -q "hashing  oph, 64 of 2^12 bins a sample; features are called by the numbers of their bins" < <("$tools/drps-stat" model) || fail "drps-stat does not say how features are hashed"
"$tools/drps-stat" model --export weights.txt --quiet 2>export.txt
grep -q "names are numbers of bins" export.txt || fail "an export does not say what its names are: $(cat export.txt)"
awk -F'\t' '$1 != "(intercept)" && !($1 ~ /^[0-9]+$/ && $1 < 4096) {exit 1}' weights.txt || fail "names of an export are no bins"
"$tools/drps-predict" model test.svm --explain 3 -o explained.txt --quiet
[[ $(awk -F'\t' '$1 == 1 && $2 ~ /^[0-9]+$/' explained.txt | wc -l) = 3 ]] || fail "an explanation has not three bins: $(head -5 explained.txt)"

# Columns with names, in another order, and fields: each field has bins of its own.
awk 'BEGIN {srand(3); print "y,color,size,shape,cost"; for (i = 0; i < 2000; i++) {c = int(rand() * 30); s = int(rand() * 9)
    print (rand() < 1 / (1 + exp(-(c % 3 - 1) * 2 - (s % 2))) ? 1 : 0) ",c" c "," s ",h" int(rand() * 500) "," rand()}}' >all.csv
head -1801 all.csv >train.csv
(head -1 all.csv && tail -200 all.csv) >test.csv
awk -F, -v OFS=, '{print $4, $5, $2, $1, $3}' test.csv >other.csv
for algo in lor ffm; do
    "$tools/drps-index" train.csv --test test.csv --label y --columns 'size:category' --algo $algo --hash-bits 5 -o columns --force --quiet
    learn columns columns-model
    for file in test.csv other.csv; do
        "$tools/drps-predict" columns-model $file --label y --metrics -o scores-$file.txt --force --quiet --json >predict.json
        near "$(loss columns-model.json)" "$(value test_loss <predict.json)" 1e-6 || fail "$algo, $file: test loss $(loss columns-model.json), predicted $(value test_loss <predict.json)"
    done
    [[ $algo = ffm ]] || fails 2 "features in format libsvm are numbers, but those of columns-model are strings" "$tools/drps-predict" columns-model test.svm --format libsvm -o never
done
rows=$("$tools/drps-stat" columns --json | value rows)
((rows > 33 && rows <= 4 * 32 + 1)) || fail "fields have $rows rows together"

# A plan that goes on from a hashed one hashes alike; a model that is hashed otherwise is no beginning.
make day1 --algo lor --hash-bits 9
learn day1 model1 --keep-checkpoints
"$tools/drps-index" test.svm --base day1 -o day2 --quiet
[[ $("$tools/drps-stat" day2 --json | all_values bits) = 9 ]] || fail "a plan with a base does not say how it hashes"
learn day2 model-of-2 --from model1
make again --algo lor --hash-bits 9 --seed 4
learn again model-again --from model1
make finer --algo lor --hash-bits 10
make seeded --algo lor --hash-bits 9 --hash-seed 1
make plain --algo lor
fails 2 "features of model1 are hashed \(signed, 2\^9 bins\), those of the plan \(not\)" "$tools/drps-train" plain -o never --from model1
fails 2 "hashed \(signed, 2\^9 bins\), those of the plan \(signed, 2\^10 bins\)" "$tools/drps-train" finer -o never --from model1
fails 2 "are hashed with another seed" "$tools/drps-train" seeded -o never --from model1
"$tools/drps-index" --from-plan day1 --workers 2 -o dealt --quiet
[[ $("$tools/drps-stat" dealt --json | all_values bits) = 9 ]] || fail "a plan that is dealt anew does not say how it hashes"

# What cannot be hashed, or is half said.
printf '1 2 3\n2 1 4\n1 3 5\n' >ratings.txt
fails 2 "would make one row of several users or items" "$tools/drps-index" ratings.txt --format ratings --algo lmf --hash-bits 8 -o never
fails 2 "counts each word" "$tools/drps-index" train.svm --algo topic --hash-bits 8 -o never
fails 2 "needs the field of each" "$tools/drps-index" train.csv --algo ffm --hash-bits 12 --hash-kind oph -o never
fails 2 "2\^30 of each are more than 2\^32: hash into fewer bits" "$tools/drps-index" train.csv --label y --algo ffm --columns size:category --hash-bits 30 --cross color*shape -o never
fails 2 "say how --hash-bits B hashes" "$tools/drps-index" train.svm --algo lor --hash-kind oph -o never
fails 2 "how many features --hash-kind oph makes" "$tools/drps-index" train.svm --algo lor --hash-bits 8 --hash-bins 8 -o never
fails 2 "power of two from 2 to 128 \(with 8 bits\), not 100" "$tools/drps-index" train.svm --algo lor --hash-bits 8 --hash-kind oph --hash-bins 100 -o never
fails 2 "leave out .*--hash-bits" "$tools/drps-index" test.svm --base day1 --hash-bits 9 -o never
absent never
echo "ok hashing"
