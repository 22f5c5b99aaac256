#!/usr/bin/env bash
# Kernels of each level of instructions give the same bytes: plans, models of every algorithm and optimizer, scores and
# recommendations; and ranks of unequal machines come to the model of equal ones.
. "$(dirname "$0")/lib.sh"

export DRPS_INSTRUCTIONS
levels=()
for level in baseline avx2 avx512; do
    DRPS_INSTRUCTIONS=$level "$tools/drps-gen" --help >/dev/null 2>err.txt && levels+=($level)
done
unset DRPS_INSTRUCTIONS
fails 2 'instructions "sse9" are none of baseline, avx2, avx512' env DRPS_INSTRUCTIONS=sse9 "$tools/drps-gen" ctr --samples 10 -o none
[[ ${#levels[@]} -gt 1 ]] || skip "this processor or this build has the kernels of one level alone: $(cat err.txt)"
absent none

# A level by name; "old": the highest, with the C library's functions of an older processor.
as() { # LEVEL COMMAND...
    local level=$1
    shift
    if [[ $level = old ]]; then
        GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F OPENBLAS_CORETYPE=Prescott "$@"
    else
        DRPS_INSTRUCTIONS=$level "$@"
    fi
}

gen() { "$tools/drps-gen" "$@" --seed 3 --quiet; }
gen ctr --samples 6K --fields 12 --rows 8K -o click.svm
gen matrix --users 300 --items 200 --ratings 8K -o ratings.tsv
five_classes
awk 'BEGIN { srand(4); for (i = 0; i < 3000; i++) { printf "%.3f", rand() * 3
    for (f = 1; f <= 37; f++) printf " %d:%.4f", f, rand() - .5; print "" } }' >dense.svm
awk 'BEGIN { srand(5); for (i = 0; i < 3000; i++) { printf "%d", rand() < .4
    for (f = 0; f < 7; f++) printf " %d:%d:%.2f", f, 100 * f + int(rand() * 30), f < 5 ? 1 : rand(); print "" } }' >fields.ffm
awk 'BEGIN { srand(6); for (i = 1; i <= 500; i++) { printf "0"
    for (k = 1; k <= 60; k++) if (rand() < .2) printf " %d:%d", k, 1 + int(rand() * 4); print "" } }' >words.svm

compared=0
# same NAME INDEX-OPTIONS... -- TRAIN-OPTIONS...: plan, model, losses and scores of each level
same() {
    local name=$1 index=() level want=
    shift
    while [[ $1 != -- ]]; do
        index+=("$1")
        shift
    done
    shift
    for level in "${levels[@]}" old; do
        rm -rf plan model
        as $level "$tools/drps-index" "${index[@]}" --memory 64M --seed 7 -o plan --quiet
        as $level "$tools/drps-train" plan -o model --epochs 3 "$@" --quiet --json >train.json
        as $level "$tools/drps-predict" model "${index[0]}" -o scores --force --quiet
        got="$(cat plan/*.rec | cksum) $(all_values train_loss <train.json | xargs) $(value content <train.json) $(cksum <scores)"
        [[ $(value content <train.json) =~ ^[0-9a-f]{16}$ ]] || fail "$name: no content"
        [[ $got = "${want:=$got}" ]] || fail "$name with $level: $got, with ${levels[0]}: $want"
        compared=$((compared + 1))
    done
    echo "ok $name"
}

same lor click.svm --algo lor -- --store relay --memory 40M
same lor-ftrl click.svm --algo lor -- --optimizer ftrl --l1 .1 --l2 .01
same lor-adam click.svm --algo lor -- --optimizer adam --l1 1e-5 --l2 1e-4
same lor-sgd click.svm --algo lor -- --optimizer sgd --lr-decay cosine --l1 1e-4
same lor-bfgs dense.svm --algo lir -- --optimizer bfgs
same lor-lbfgs click.svm --algo lor -- --optimizer lbfgs --memory-pairs 5
same svm click.svm --algo svm -- --l2 1e-4
same lir-dense dense.svm --algo lir --dense -- --store file --memory 40M
for factors in 3 4 8 16 23 32; do same fm-$factors dense.svm --algo fm --factors $factors -- --l2 1e-3; done
for factors in 3 4 8 16; do same ffm-$factors fields.ffm --algo ffm --factors $factors --; done
for factors in 7 8 16 64; do same lmf-$factors ratings.tsv --algo lmf --factors $factors --; done
same mlr train.svm --algo mlr --
same svm-classes train.svm --algo svm --
for algo in bpr warp wmf; do same $algo ratings.tsv --algo $algo --factors 16 --; done
same topic words.svm --algo topic --factors 5 --
same expr click.svm --algo expr --loss 'log(1 + exp(-y * w*x)) + 0.01 * square(tanh(w*x))' --
same threads click.svm --algo fm --factors 8 -- --threads 3

# Recommendations: products of blocks by OpenBLAS only say which scores are computed.
rm -rf plan model
"$tools/drps-index" ratings.tsv --algo lmf --factors 16 -o plan --quiet
"$tools/drps-train" plan -o model --epochs 3 --quiet
for level in "${levels[@]}" old; do
    as $level "$tools/drps-recommend" model -o best.$level --quiet
    cmp best.$level best.baseline || fail "$level recommends something else"
done

# ---- Unequal machines ----

"$tools/drps-index" click.svm --algo fm --factors 8 --workers 2 -o ranks --quiet
"$tools/drps-train" ranks --local 2 --transport inproc -o equal --epochs 3 --quiet --json >train.json
ports 2 >peers.txt
as baseline "$tools/drps-train" ranks -o one --epochs 3 --peers peers.txt --rank 0 --quiet --json >one.json 2>err.txt &
first=$!
as "${levels[-1]}" "$tools/drps-train" ranks -o one --epochs 3 --peers peers.txt --rank 1 --quiet 2>err-1.txt || true
if ! wait $first; then
    grep -q "no ZeroMQ" err.txt || fail "unequal ranks: $(cat err.txt err-1.txt)"
else
    [[ $(value content <one.json) = "$(value content <train.json)" ]] || fail "unequal ranks come to another model"
    echo "ok unequal ranks"
fi
echo "$compared runs compared"
