#!/usr/bin/env bash
# Quasi-Newton methods: they come to the optimum, which another program has computed; the model is the same from every store, with
# little memory and with more threads; what they cannot do is refused.
. "$(dirname "$0")/lib.sh"

"$tools/drps-gen" ctr --samples 6K --fields 12 --rows 20K --seed 3 -o data.svm --quiet
"$tools/drps-index" data.svm --algo lor --batch-size 1500 -o plan --quiet
"$tools/drps-gen" ctr --samples 30K --fields 20 --rows 60K --seed 3 -o many.svm --quiet
"$tools/drps-index" many.svm --algo lor --test-fraction 0.1 -o many --quiet

train() { "$tools/drps-train" "$@" -o model --force --quiet --checkpoint-every never; }
objective() { all_values objective | tail -1; }

# ---- The optimum ----

train plan --optimizer lbfgs --l2 1 --tolerance 1e-6 --epochs 400 --json >lbfgs.json
[[ $(all_values ended <lbfgs.json) = converged ]] || fail "lbfgs did not converge"

# Of a9a, with a feature that all samples have in place of an intercept: liblinear-train -s 0 -e 1e-10 -c 1 comes to 10529.3114042.
a9a=$source/../shared/data/a9a/a9a.xz
if [[ -f $a9a ]]; then
    xzcat "$a9a" | sed 's/ *$/ 200:1/' >a9a.svm
    "$tools/drps-index" a9a.svm --algo lor --no-bias -o a9a --quiet
    for optimizer in lbfgs bfgs; do
        train a9a --optimizer $optimizer --l2 1 --tolerance 1e-6 --epochs 250 --json >a9a.json
        near "$(objective <a9a.json)" 10529.3114042 1e-6 || fail "$optimizer comes to $(objective <a9a.json) on a9a"
        [[ $optimizer = lbfgs ]] || [[ $(all_values ended <a9a.json) = converged ]] || fail "$optimizer did not converge on a9a"
    done
    echo "ok optimum of a9a"
else
    echo "SKIPPED: the optimum of a9a, as ../shared/data has none"
fi

# Squared and softmax losses; predictions are made with such a model as with any.
awk 'BEGIN { srand(4); for (i = 0; i < 400; i++) { a = rand(); b = rand(); printf "%.4f 1:%.4f 2:%.4f\n", 3 + 2 * a - b, a, b } }' >lir.svm
"$tools/drps-index" lir.svm --algo lir -o lir --quiet
for optimizer in lbfgs bfgs dfp sr1 broyden; do
    train lir --optimizer $optimizer --json >lir.json
    [[ $(all_values ended <lir.json) = converged ]] || fail "$optimizer did not converge on a plane"
    "$tools/drps-predict" model lir.svm -o - --quiet | paste - <(cut -d ' ' -f 1 lir.svm) |
        awk '{ d = $1 - $2; if (d * d > 1e-6) exit 1 }' || fail "$optimizer does not predict a plane"
done
awk 'BEGIN { srand(5); for (i = 0; i < 300; i++) { a = rand(); b = rand(); print (a > b ? (a > .7 ? "x" : "y") : "z"), "1:" a, "2:" b } }' >mlr.svm
"$tools/drps-index" mlr.svm --algo mlr -o mlr --quiet
for optimizer in lbfgs bfgs; do
    train mlr --optimizer $optimizer --l2 0.1 --epochs 300 --tolerance 1e-5 --json >mlr-$optimizer.json
    [[ $(all_values ended <mlr-$optimizer.json) = converged ]] || fail "$optimizer did not converge with three classes"
done
near "$(objective <mlr-lbfgs.json)" "$(objective <mlr-bfgs.json)" 1e-6 || fail "lbfgs and bfgs come to other optima of three classes"
echo "ok optima"

# A step that is so long that gradients are no finite numbers is made shorter; where they are none at the beginning nothing helps.
awk 'BEGIN { srand(6); for (i = 0; i < 100; i++) { a = rand(); printf "%.4f 1:%.4fe21\n", 2 * a, a } }' >huge.svm
"$tools/drps-index" huge.svm --algo lir --no-bias -o huge --quiet
train huge --optimizer lbfgs --json >huge.json
[[ $(all_values ended <huge.json) = converged && $(all_values gradient_norm <huge.json | sed -n 2p) = null ]] || fail "a step that overflows: $(cat huge.json)"
sed 's/^[0-9.]*/1e30/; s/ 1:[0-9.]*/ 1:1e20/' lir.svm >labels.svm
"$tools/drps-index" labels.svm --algo lir --no-bias -o labels --quiet
fails 1 "where training begins.*gradient.*scale" train labels --optimizer lbfgs

# ---- Stores, memory, threads ----

content() { # PLAN OPTIONS...: objectives and content of a run
    train "$@" --json >train.json
    echo "$(all_values objective <train.json) $(all_values test_loss <train.json) $("$tools/drps-stat" model --json | value content)"
}
same() { # PLAN OPTIMIZER STORE...: with one thread and two
    local plan=$1 optimizer=$2 want store threads got
    shift 2
    want=$(content "$plan" --optimizer "$optimizer" --l2 1 --epochs 6 --store resident)
    for store in "$@"; do
        for threads in 1 2 5; do
            got=$(content "$plan" --optimizer "$optimizer" --l2 1 --epochs 6 --store "$store" --threads $threads)
            [[ $got = "$want" ]] || fail "$optimizer on $store with $threads threads: $got instead of $want"
        done
    done
}
same plan lbfgs resident relay file rocksdb leveldb
same lir bfgs resident relay file
want=$(content many --optimizer lbfgs --l2 1 --epochs 4 --store resident)
least=$({ train many --optimizer lbfgs --store relay --memory 1M 2>&1 || true; } | sed -n 's/.*at least \([0-9.]*\) MiB.*/\1/p' |
    awk '{print int(($1 + 0.1) * 1024)}')
got=$(content many --optimizer lbfgs --l2 1 --epochs 4 --store relay --memory "${least}K")
[[ $got = "$want" ]] || fail "relay in ${least}K: $got instead of $want"
[[ $(all_values windows <train.json | awk '/^[0-9]/') -gt 3 ]] || fail "all rows of many are in memory in ${least}K"
got=$(content many --optimizer lbfgs --l2 1 --epochs 4 --store file --memory 40M)
[[ $got = "$want" ]] || fail "file in 40M: $got instead of $want"
echo "ok stores"

# ---- A run that is stopped, and begins with what another left ----

"$tools/drps-train" many -o kept --optimizer lbfgs --l2 1 --epochs 2 --keep-checkpoints --quiet
"$tools/drps-train" many -o kept --resume --epochs 4 --quiet --json >train.json
[[ "$(all_values objective <train.json) $(all_values test_loss <train.json) $("$tools/drps-stat" kept --json | value content)" = "$want" ]] ||
    fail "two passes and two more are not four"
"$tools/drps-train" many -o kept --optimizer lbfgs --l2 1 --epochs 1 --keep-checkpoints --quiet --force
"$tools/drps-train" many -o warm --optimizer lbfgs --l2 1 --epochs 2 --from kept.checkpoint --quiet --json >train.json
[[ $(all_values state <train.json) = false ]] || fail "a warm start takes pairs of another run"
"$tools/drps-train" lir -o first --optimizer lbfgs --quiet
"$tools/drps-train" lir -o second --optimizer bfgs --from first --quiet --json >train.json
near "$(objective <train.json)" "$(all_values objective <train.json | head -1)" 0.01 || fail "a warm start does not begin at the optimum"
echo "ok resume"

# ---- What is refused ----

refused() { # PATTERN PLAN OPTIONS...
    local pattern=$1
    shift
    fails "${status:-2}" "$pattern" "$tools/drps-train" "$@" -o refused --quiet
    absent refused
}
"$tools/drps-index" data.svm --algo svm -o svm --quiet
"$tools/drps-index" data.svm --algo fm --factors 4 -o fm --quiet
"$tools/drps-index" data.svm --algo lor --workers 2 -o two --quiet
refused "lbfgs needs a loss with a curvature, and hinge" svm --optimizer lbfgs
refused "lbfgs is for linear models" fm --optimizer lbfgs
refused "lbfgs runs on one rank" two --optimizer lbfgs --local 2
refused "a learning rate does not go with lbfgs.*--lr" plan --optimizer lbfgs --lr 0.1
refused "l1 does not go with bfgs" plan --optimizer bfgs --l1 1
refused "eps does not go with lbfgs" plan --optimizer lbfgs --eps 1
refused "local steps do not go with lbfgs" plan --optimizer lbfgs --local-steps
refused "patience does not go with lbfgs" many --optimizer lbfgs --patience 1
refused "only lbfgs remembers pairs" plan --optimizer bfgs --memory-pairs 4
refused "a tolerance is of quasi-Newton methods" plan --tolerance 0.1
refused "a matrix that checkpoints do not have" plan --optimizer sr1 --checkpoint-every 1e
refused "a matrix that checkpoints do not have" plan --optimizer bfgs --keep-checkpoints
status=1 refused "a matrix of all parameters [0-9.]+ GiB" many --optimizer dfp --memory 100M
fails 2 "newton" "$tools/drps-train" plan -o refused --optimizer newton
fails 2 "memory-pairs" "$tools/drps-train" plan -o refused --optimizer lbfgs --memory-pairs 33
echo "ok refused"
