#!/usr/bin/env bash
# drps-predict on files as people have them: without labels, with other columns, or of another kind than the model's.
. "$(dirname "$0")/lib.sh"

# The label's column and the separator are remembered by plan and model, and columns that training ignored do not count.
awk 'BEGIN {srand(1); print "id|note|age|zip|bought"
    for (i = 0; i < 2000; i++) {z = int(rand() * 50); printf "%d|n%d|%d|z%d|%d\n", i, rand() * 1000, rand() * 60, z, (z % 2 == 0) != (rand() < 0.1)}}' >all.csv
sed -n 1,1501p all.csv >train.csv
(head -1 all.csv && tail -n +1502 all.csv && echo '9|words|3|never|1') >test.csv
"$tools/drps-index" train.csv --test test.csv --format csv --label bought --separator '|' --columns id:ignore,note:ignore --algo lor -o plan --quiet --json >index.json
[[ $("$tools/drps-stat" plan --json | value label_column) = bought ]] || fail "the plan does not say which column is the label"
"$tools/drps-train" plan -o model --quiet --epochs 3 --json >train.json
[[ $("$tools/drps-stat" model --json | value label_column) = bought ]] || fail "the model does not say which column is the label"
"$tools/drps-predict" model test.csv -o scores.txt --metrics --quiet --json >predict.json || fail "the label has to be named again"
for key in nnz unseen; do
    [[ $(value test_$key <predict.json) = "$(value test_$key <index.json)" ]] ||
        fail "drps-predict counts $(value test_$key <predict.json) $key, drps-index $(value test_$key <index.json)"
done
near "$(value test_loss <predict.json)" "$(all_values test_loss <train.json | tail -1)" 1e-5 || fail "another loss than that of training's evaluation"
cut -d'|' -f1-4 test.csv >unlabelled.csv
"$tools/drps-predict" model unlabelled.csv -o unlabelled.txt --quiet || fail "a file without the label's column is refused"
cmp scores.txt unlabelled.txt || fail "other scores without the label's column"
fails 2 "has no column 'bought'" "$tools/drps-predict" model unlabelled.csv --metrics -o never.txt
absent never.txt
fails 1 "label \(column note\)" "$tools/drps-predict" model test.csv --label note --metrics -o never.txt # who names it again decides
echo "ok label"

# Ratings without ratings.
"$tools/drps-gen" matrix --users 60 --items 30 --ratings 2K --seed 3 -o ratings.tsv --quiet
"$tools/drps-index" ratings.tsv --algo lmf -o plan-lmf --quiet
"$tools/drps-train" plan-lmf -o lmf --quiet
"$tools/drps-predict" lmf ratings.tsv -o three.txt --quiet
cut -f1,2 ratings.tsv >pairs.tsv
"$tools/drps-predict" lmf pairs.tsv -o two.txt --quiet || fail "ratings of two columns are refused"
cmp two.txt three.txt || fail "other scores without the third column"
fails 1 "fewer than 3 columns" "$tools/drps-predict" lmf pairs.tsv --metrics -o never.txt
echo "ok ratings"

# Data of which the model knows nothing.
printf '1 900001:1 900002:1\n0 900003:1\n' >other.svm
"$tools/drps-gen" ctr --samples 1K --fields 4 --rows 2K --seed 3 -o data.svm --quiet
"$tools/drps-index" data.svm --algo lor -o plan-lor --quiet
"$tools/drps-train" plan-lor -o lor --quiet
"$tools/drps-predict" lor data.svm -o known.txt --quiet 2>err.txt
[[ ! -s err.txt ]] || fail "data that the model knows: $(cat err.txt)"
"$tools/drps-predict" lor other.svm -o other.txt --quiet 2>err.txt
grep -q "warning: none of the 3 features of other.svm is in lor: is it the right file, read in the right format? (--format)" err.txt || fail "unknown data: $(cat err.txt)"
printf 'fruit,label\napple,1\npear,0\n' >fruit.csv
"$tools/drps-predict" lmf fruit.csv --format csv -o fruit.txt --quiet 2>err.txt
grep -q "warning: none of the columns of fruit.csv is in lmf" err.txt || fail "unknown columns: $(cat err.txt)"
printf '{"label": 1, "a": 1, "b": 0}\n{"label": 0, "a": 0, "b": 1}\n' >keys.jsonl
printf '{"A": 1, "bee": 0}\n{"bee": 3}\n' >misspelt.jsonl
"$tools/drps-index" keys.jsonl --algo lor -o keys.plan --quiet
"$tools/drps-train" keys.plan -o keys --quiet
"$tools/drps-predict" keys misspelt.jsonl -o keys.txt --quiet 2>err.txt
grep -q "warning: none of the keys of misspelt.jsonl is in keys (it has a, b): is it the right file?" err.txt || fail "unknown keys: $(cat err.txt)"
echo '{"bee": 3, "b": 1}' >>misspelt.jsonl
"$tools/drps-predict" keys misspelt.jsonl -o keys.txt --quiet --force 2>err.txt
[[ ! -s err.txt ]] || fail "a key that the model knows: $(cat err.txt)"
echo "ok unknown data"

# Without metrics labels are not looked at, whatever they are, nor are they missed.
awk -F'|' -v OFS='|' 'NR > 1 {split("NA,,?,foo,1", word, ","); $5 = word[NR % 5 + 1]} 1' test.csv >odd.csv
"$tools/drps-predict" model odd.csv -o odd.txt --quiet || fail "labels of any kind are refused"
cmp scores.txt odd.txt || fail "other scores with other labels"
fails 1 'label \(column bought\) is' "$tools/drps-predict" model odd.csv --metrics -o never.txt
printf '1 1:1 2:1\n0 2:1 3:1\n1 1:1 3:1\n0 3:1\n' >pair.svm
printf '? 1:1 2:1\n2:1 3:1\nfoo 1:1 3:1\nNA 3:1\n' >odd.svm
"$tools/drps-index" pair.svm --algo lor -o pair.plan --quiet
"$tools/drps-train" pair.plan -o pair --quiet 2>/dev/null
"$tools/drps-predict" pair pair.svm -o pair.txt --quiet
"$tools/drps-predict" pair odd.svm -o odd-pair.txt --quiet || fail "labels of libsvm are looked at, or missed"
cmp pair.txt odd-pair.txt || fail "other scores with other labels in libsvm"
fails 1 "odd.svm:1:1: label is not a number: '\?'" "$tools/drps-predict" pair odd.svm --metrics -o never.txt
echo "ok labels of any kind"

# A line without a sample has no score, and those that are blank or comments are counted.
printf '# who\n1 1:1 2:1\n\n0 2:1 3:1\n \t\nx 1:y\n1 1:1 3:1 # rest\n' >blank.svm
"$tools/drps-predict" pair blank.svm -o blank.txt --on-error skip >out.txt 2>err.txt
[[ $(wc -l <blank.txt) = 3 ]] || fail "$(wc -l <blank.txt) scores of three samples"
grep -q '; 1 bad line skipped; 3 lines without a sample have no score$' out.txt || fail "blank lines are not told: $(cat out.txt)"
"$tools/drps-predict" pair blank.svm -o blank.txt --on-error skip --json --force >blank.json 2>err.txt
[[ $(value blank_lines <blank.json) = 3 && $(value skipped_lines <blank.json) = 1 ]] || fail "blank lines are not counted: $(cat blank.json)"
printf '1 1:1 2:1\n\n' | "$tools/drps-predict" pair - -o blank.txt --force >out.txt
grep -q '; 1 line without a sample has no score$' out.txt || fail "a blank line is not told: $(cat out.txt)"
"$tools/drps-predict" pair pair.svm -o blank.txt --force >out.txt
grep -q 'without a sample' out.txt && fail "there is no blank line: $(cat out.txt)"
echo "ok blank lines"

# Most of the features are unknown, or all of the labels.
printf 'a 1:1 2:1\nb 2:1 3:1\na 1:1 3:1\nb 3:1\n' >letters.svm
"$tools/drps-index" letters.svm --algo mlr -o letters.plan --quiet
"$tools/drps-train" letters.plan -o letters --quiet 2>/dev/null
printf 'a 1:1 7:1 8:1\n' | "$tools/drps-predict" letters - -o letters.txt --quiet 2>err.txt
grep -q 'warning: 2 of 3 features are not in letters and are left out' err.txt || fail "most are unknown: $(cat err.txt)"
printf 'a 1:1 2:1 7:1 8:1\n' | "$tools/drps-predict" letters - -o letters.txt --quiet --force 2>err.txt
[[ ! -s err.txt ]] || fail "a half is known: $(cat err.txt)"
printf 'c 1:1 2:1\nd 3:1\n' | "$tools/drps-predict" letters - -o letters.txt --metrics --force >out.txt 2>err.txt
grep -q 'warning: none of the labels is a class of letters' err.txt || fail "labels that are no class: $(cat err.txt)"
grep -q '^no loss, accuracy 0.00000; 2 labels are no class' out.txt || fail "a loss of no label: $(cat out.txt)"
printf 'c 1:1 2:1\na 1:1\n' | "$tools/drps-predict" letters - -o letters.txt --metrics --quiet --force 2>err.txt
[[ ! -s err.txt ]] || fail "a label is known: $(cat err.txt)"
echo "ok little is known"
