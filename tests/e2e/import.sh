#!/usr/bin/env bash
# Models of other programs, imported: they predict what those do, by hand-made files, and by the programs themselves where they are
# installed; files that are no such model are refused with the line.
. "$(dirname "$0")/lib.sh"

import() { "$tools/drps-import" "$@" --quiet --force; }
predict() { "$tools/drps-predict" "$@" -o - --quiet; }
# close_to A B: every number of file A is that of B to 1e-6
close_to() { paste "$1" "$2" | awk 'NF != 2 {exit 1} {d = $1 - $2; if (d * d > 1e-12 * (1 + $2 * $2)) exit 1}'; }
logistic() { awk '{print 1 / (1 + exp(-$1))}'; }

# ---- LIBLINEAR: weights of features 1 to 3, and a bias of 2 times the last number ----

printf 'solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 3\nbias 2\nw\n0.5 \n-1.25 \n0 \n0.25 \n' >lr.txt
printf '1 1:1 2:2\n-1 3:7\n1 1:-2 2:1 4:9\n' >three.svm
import lr.txt -o lr
predict lr three.svm >lr.out
close_to lr.out <(printf '%s\n' $((1))  | awk '{print .5 - 2.5 + .5; print .5; print -1 - 1.25 + .5}' | logistic) || fail "liblinear: $(cat lr.out)"
"$tools/drps-stat" lr --verify >/dev/null || fail "an imported model does not verify"
grep -q 'imported *from a model of liblinear' < <("$tools/drps-stat" lr) || fail "it is not said where the model is from: $("$tools/drps-stat" lr)"
# Without a bias there is no intercept; where the first label is the smaller one, scores change their sign.
sed 's/bias 2/bias -1/; s/label 1 -1/label -1 1/; s/L2R_LR/L2R_L2LOSS_SVC/; $d' lr.txt >svc.txt
import svc.txt -o svc
close_to <(predict svc three.svm) <(printf '2\n0\n2.25\n') || fail "liblinear's smaller label first: $(predict svc three.svm)"
[[ $("$tools/drps-stat" svc --json | value label_positive) = 1* ]] || fail "other labels"
predict svc three.svm --metrics --uncalibrated >/dev/null || fail "labels are not those of the file"
printf 'solver_type L2R_L2LOSS_SVR\nnr_class 2\nnr_feature 2\nbias -1\nw\n0.5 \n-1.25 \n' >svr.txt
import svr.txt -o svr
close_to <(predict svr three.svm) <(printf '%s\n' -2 0 -2.25) || fail "liblinear's regression: $(predict svr three.svm)"
# Classes: columns are those of the labels as they stand there.
printf 'solver_type MCSVM_CS\nnr_class 3\nlabel 10 2 7\nnr_feature 2\nbias 1\nw\n1 0 0 \n0 1 0 \n0 0 0.5 \n' >classes.txt
import classes.txt -o classes
[[ $(printf '7 1:3\n7 2:3\n7 3:1\n' | predict classes - | tr '\n' ' ') = '10 2 7 ' ]] || fail "liblinear's classes: $(printf '7 1:3\n7 2:3\n7 3:1\n' | predict classes -)"
# An imported model is one to begin with.
"$tools/drps-index" three.svm --algo lor -o plan --quiet
"$tools/drps-train" plan --from lr -o trained --epochs 1 --quiet --force
[[ $("$tools/drps-train" plan --from lr -o trained --epochs 1 --force 2>&1 | grep -c 'rows from lr: 4 of 5') = 1 ]] || fail "training does not begin with it"
echo "ok liblinear"

# ---- Vowpal Wabbit: names as the format vw has them ----

cat >vw.txt <<'TEXT'
Version 8.10.1
Id
Min label:-1
Max label:1
bits:18
lda:0
0 ngram:
0 skip:
options: --hash_seed 0 --link logistic
Checksum: 2719485293
:0
user^age:85421:0.25
ad^sports:1232:-1.5
plain:99:2
Constant:116060:0.5
TEXT
printf '1 |user age:2 |ad sports\n-1 | plain unknown\n' >two.vw
import vw.txt -o vw
close_to <(predict vw two.vw) <(printf '%s\n' -.5 2.5 | logistic) || fail "vw: $(predict vw two.vw)"
import vw.txt -o vw --algo lir
close_to <(predict vw two.vw) <(printf '%s\n' -.5 2.5) || fail "vw, as a regression: $(predict vw two.vw)"
grep -q '2  plain$' < <("$tools/drps-stat" vw --weights --top 1) || fail "another name: $("$tools/drps-stat" vw --weights)"
sed 's/^[^:]*:\([0-9]*:-*[0-9.]*\)$/\1/' vw.txt >hashes.txt
fails 1 'hashes.txt:12: hashes without names: write the model with --invert_hash' "$tools/drps-import" hashes.txt -o never
sed 's/--hash_seed 0/--hash_seed 0 -q ab/' vw.txt >pairs.txt
fails 2 'pairs.txt:9: a model with the option q is not known to be a sum' "$tools/drps-import" pairs.txt -o never
# What is not known may be anything; values are no options, in either way of writing them.
for option in --mf --new_mf --ksvm -q:: '--autolink 2' --recall_tree '--log_multi 3' '--plt=7' '--multilabel_oaa 3' --memory_tree '--search 2' '--ngram 2' '--skips 1' \
    '--affix=+2a' '--spelling a' '--link glf1' --link=poisson '--boosting 3' --cubic=abc --some_new_one; do
    sed "s/ --link logistic/ $option/" vw.txt >other.txt
    fails 2 'other.txt:9: a model with the (option|link) [a-z_:0-9]+ is not known' "$tools/drps-import" other.txt -o never
done
for part in '2 ngram' '1 skip'; do
    sed "s/^0 ${part#* }:/$part:/" vw.txt >other.txt
    fails 2 "a model with ${part#* }: is not known" "$tools/drps-import" other.txt -o never
done
sed 's/^lda:0/lda:5/' vw.txt >other.txt
fails 2 'a model with lda:5 is not known' "$tools/drps-import" other.txt -o never
sed 's/--hash_seed 0 --link logistic/--bit_precision=18 --min_prediction -5 --l1 -.5 --quantile_tau=-1 --link=identity/' vw.txt >other.txt
import other.txt -o other
[[ $("$tools/drps-stat" other --json | value algo) = *lir* ]] || fail "options that change no score"
{ cat vw.txt; echo 'Constant:116060:0.75'; } >twice.txt
fails 1 'twice.txt:16: Constant stands there twice' "$tools/drps-import" twice.txt -o never
for labels in -inf,1 0,inf 0,1e50; do
    fails 2 'finite|not two numbers' "$tools/drps-import" vw.txt -o never --labels=$labels
done
{ cat vw.txt; echo 'plain:99:2'; } >twice.txt
fails 1 'feature plain twice' "$tools/drps-import" twice.txt -o never
absent never
absent never.trained
# What a killed import leaves goes with the next one, and nothing has a name of its own.
printf 'Version 8\n:0\n' >long.vw
awk 'BEGIN {for (i = 0; i < 1500000; i++) print "n" i ":" i ":0.5"}' >>long.vw
"$tools/drps-import" long.vw -o killed --quiet &
pid=$!
while [[ ! -e killed.partial/rows && ! -e killed ]] && kill -0 $pid 2>/dev/null; do :; done
kill -KILL $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
[[ ! -e killed.trained ]] || fail "a killed import keeps what it has read"
import vw.txt -o killed
[[ $(echo killed*) = killed ]] || fail "a killed import has left $(echo killed*)"
echo "ok vw"

# ---- libffm: 3 features, 2 fields, 2 factors, as text; and 2 features, 2 fields, 1 factor, as bytes ----

printf 'n 3\nm 2\nk 2\nnormalization 0\nw0,0 1 2\nw0,1 3 4\nw1,0 T -1 0.5\nw1,1 0.5 0.25\nw2,0 2 2\nw2,1 1 1\n' >ffm.txt
printf '1 0:0:1 1:1:2\n0 0:0:1 1:1:2 1:2:0.5 0:9:4\n' >two.ffm
import ffm.txt -o ffm --labels 0,1
# Entries 0 (field 0) and 1 (field 1): 1 * 2 * <w0,1, w1,0>; then with 2 (field 1): + .5 <w0,1, w2,0> + 1 <w1,1, w2,1>.
close_to <(predict ffm two.ffm) <(printf '%s\n' -2 $((0)) | awk 'NR == 1 {print 2 * (-3 + 2)} NR == 2 {print 2 * (-3 + 2) + .5 * (6 + 8) + (.5 + .25)}' | logistic) ||
    fail "libffm: $(predict ffm two.ffm)"
sed 's/normalization 0/normalization 1/' ffm.txt >norm.txt
import norm.txt -o ffm --labels 0,1
close_to <(head -1 two.ffm | predict ffm -) <(echo -.4 | logistic) || fail "libffm, normalised: $(predict ffm two.ffm)"
predict ffm two.ffm --metrics >/dev/null || fail "the labels are others"
one='\0\0\200\077' two='\0\0\0\100' half='\0\0\0\077' any='\1\2\3\4'
pair() { printf "$1$any$any$any$one$one$two$one"; }
{ printf '\2\0\0\0\2\0\0\0\1\0\0\0\0'; pair $one; pair $two; pair $half; pair $one; } >ffm.bin
import ffm.bin -o bytes
close_to <(printf '1 0:0:1 1:1:3\n' | predict bytes -) <(echo 3 | logistic) || fail "libffm's bytes: $(printf '1 0:0:1 1:1:3\n' | predict bytes -)"
# Of 5 factors the last is in a group of its own: <(1, 0, 0, 0, 2), (.5, 0, 0, 0, 2)> is 4.5.
zero='\0\0\0\0'
five() { printf "$1$zero$zero$zero$one$one$one$one$2$any$any$any$one$one$one$one"; }
{ printf '\2\0\0\0\2\0\0\0\5\0\0\0\0'; five $one $one; five $one $two; five $half $two; five $one $one; } >five.bin
import five.bin -o bytes
close_to <(printf '1 0:0:1 1:1:1\n' | predict bytes -) <(echo 4.5 | logistic) || fail "libffm's second group: $(printf '1 0:0:1 1:1:1\n' | predict bytes -)"
head -c 100 ffm.bin >short.bin
fails 1 'promises another size' "$tools/drps-import" short.bin -o never
{ printf '\2\0\0\0\2\0\0\0\1\0\0\0\0'; pair $one; pair $two; pair $half; printf "$one$any$any$any$half$one$one$one"; } >sums.bin
fails 1 'sums below 1' "$tools/drps-import" sums.bin -o never
sed '$d' ffm.txt >short.txt
fails 1 'ends after 5 of 6' "$tools/drps-import" short.txt -o never
sed 's/w1,1/w2,1/' ffm.txt >order.txt
fails 1 'order.txt:8: not the feature and field' "$tools/drps-import" order.txt -o never
absent never
echo "ok libffm"

# ---- What is no model ----

for edit in 's/^-1.25 $/x/:8: too few weights' 's/^-1.25 $/1 2/:8: too many weights' 's/L2R_LR/ONECLASS_SVM/:solver ONECLASS_SVM makes no model' \
    '$d:ends after 3 of 4 weights' '/nr_feature/d:nr_feature is missing' 's/nr_feature 3/nr_feature 2/:more weights than features' 's/label 1 -1/label 1 1/:twice' 's/label 1 -1/&\nlabel/:4: labels stand there twice' 's/label 1 -1/label 1 -inf/:no finite' 's/label 1 -1/label 1e50 1/:no finite' 's/0.25/inf/:no number'; do
    sed "${edit%%:*}" lr.txt >bad.txt
    "$tools/drps-import" bad.txt -o never >out.txt 2>err.txt && fail "a bad model is imported: $edit"
    grep -q "${edit#*:}" err.txt || fail "$edit: $(cat err.txt)"
done
: >empty.txt
fails 1 'no model of LIBLINEAR, .*Vowpal Wabbit, .*libffm' "$tools/drps-import" three.svm -o never
fails 1 'No such file|ENOENT' "$tools/drps-import" nothing -o never
fails 1 'exist' "$tools/drps-import" lr.txt -o lr
fails 1 'empty.txt is empty' "$tools/drps-import" empty.txt -o never
fails 2 'standard input is a pipe' "$tools/drps-import" - -o never
gzip -c lr.txt >lr.txt.gz
fails 1 'lr.txt.gz is compressed .gzip.: unpack it first' "$tools/drps-import" lr.txt.gz -o never
# Options that a file's kind does not take.
fails 2 'is a model of liblinear, which has its own: leave out the algorithm \(--algo\)' "$tools/drps-import" lr.txt -o never --algo lor
fails 2 'is a model of libffm, which has its own' "$tools/drps-import" ffm.txt -o never --algo lor
fails 2 'is a model of liblinear, which has its own: leave out the labels' "$tools/drps-import" lr.txt -o never --labels 0,1
fails 1 'at least 40 MiB: raise the memory limit .--memory' "$tools/drps-import" lr.txt -o never --memory 39M
import lr.txt -o least --memory 40M
grep -q '"made_by": "drps-import' lr/model.json || fail "who made it: $(grep made_by lr/model.json)"
grep -q 'plan' < <("$tools/drps-stat" lr) && fail "an imported model has a plan: $("$tools/drps-stat" lr)"
fails 2 'not of plan: it was imported, and has no plan' "$tools/drps-stat" lr --weights --plan plan
grep -q 'all weights of features are 0' < <("$tools/drps-stat" ffm --weights) || fail "weights that are all 0: $("$tools/drps-stat" ffm --weights)"
fails 2 'smaller first' "$tools/drps-import" lr.txt -o never --labels 1,0
fails 2 'no file' "$tools/drps-import" -o never
fails 2 '-o MODEL is missing' "$tools/drps-import" lr.txt
absent never
echo "ok refused"

# ---- The programs themselves ----

command -v liblinear-train >/dev/null && command -v liblinear-predict >/dev/null || skip "liblinear-tools is not installed; files made by hand were imported"
awk 'BEGIN {srand(4); for (i = 0; i < 800; i++) {printf "%d", rand() < .4 ? 1 : -1; for (f = 1; f < 60; f += 1 + int(rand() * 12)) printf " %d:%.3f", f, rand() * 2 - .5; print ""}}' >two.svm
awk 'BEGIN {srand(5); for (i = 0; i < 600; i++) {c = int(rand() * 4); printf "%d", c * 3; for (f = 1; f < 40; f += 1 + int(rand() * 9)) printf " %d:%.3f", f, rand() + (f % 4 == c); print ""}}' >many.svm
for solver in 0 2 4 6 11; do
    for bias in -1 2; do
        liblinear-train -s $solver -B $bias -q two.svm theirs.txt
        import theirs.txt -o theirs
        if [[ $solver = 0 || $solver = 6 ]]; then
            liblinear-predict -b 1 two.svm theirs.txt theirs.out >/dev/null
            column=$(head -1 theirs.out | awk '{print $2 == 1 ? 2 : 3}')
            close_to <(awk -v c="$column" 'NR > 1 {print $c}' theirs.out) <(predict theirs two.svm | awk '{printf "%.6g\n", $1}') || fail "solver $solver, bias $bias: other probabilities"
        elif [[ $solver = 11 ]]; then
            liblinear-predict two.svm theirs.txt theirs.out >/dev/null
            close_to theirs.out <(predict theirs two.svm) || fail "solver $solver, bias $bias: other values"
        else
            liblinear-predict two.svm theirs.txt theirs.out >/dev/null
            cmp theirs.out <(predict theirs two.svm | awk '{print $1 == "1" || $1 == "-1" ? $1 : ($1 > 0 ? 1 : -1)}') || fail "solver $solver, bias $bias: other labels"
            liblinear-train -s $solver -B $bias -q many.svm theirs.txt
            import theirs.txt -o theirs
            liblinear-predict many.svm theirs.txt theirs.out >/dev/null
            cmp theirs.out <(predict theirs many.svm) || fail "solver $solver, bias $bias: other classes"
        fi
    done
done
echo "ok liblinear itself"
